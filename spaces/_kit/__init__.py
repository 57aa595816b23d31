"""What the demos share: reading input, limits, pictures, result panels, and one look."""
