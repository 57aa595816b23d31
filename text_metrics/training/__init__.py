"""Metrics in training: of evaluations of a Trainer, of samples, and as rewards."""
