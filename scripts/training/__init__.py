"""Training of models that this repository ships."""
