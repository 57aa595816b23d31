"""Further questions about scores of sets, answered by calls of `compute`."""
