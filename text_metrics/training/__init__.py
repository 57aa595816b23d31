"""Metrics in training: `compute_metrics` of the Trainer of `transformers`, and rewards for reinforcement learning."""
