"""Further questions about the score of a set, answered for any metric of sets by calls of its `compute`."""
