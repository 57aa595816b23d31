"""The metrics, each a folder that `evaluate.load` takes, and the core that they share."""
