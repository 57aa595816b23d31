"""Parts of scripts/training/calibrate_gruen.py."""
