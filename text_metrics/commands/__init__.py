"""The commands of `text-metrics`: a module or a folder for each, and what they share."""
