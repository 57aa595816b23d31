"""Shared parts of the demos."""
