"""What those who maintain this repository run; it is not installed."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
