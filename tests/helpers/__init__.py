"""Helpers that several test folders share."""

from pathlib import Path

ROOT = Path(__file__).parents[2]  # of the project
PATIENCE = 900  # seconds after which something is taken to hang, however slow the machine
