"""Parts of scripts/calibrate_gruen.py."""
