"""The commands, and their parts."""
