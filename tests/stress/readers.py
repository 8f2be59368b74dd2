"""Broken files of every format, by tests/fuzz, with seeds of this run."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.fuzz.formats import FORMATS
from tests.helpers import PATIENCE, ROOT
from tests.stress.judging import Broken

CASES = 40  # of a process


def prepare(_folder: Path) -> None:
    """Nothing: each process makes its own files."""


def case(_folder: Path, _own: Path, draw: np.random.Generator, number: int) -> str:
    """Some broken files of a format, one format after the other."""
    name, seed = list(FORMATS)[number % len(FORMATS)], int(draw.integers(1, 10**6))
    command = [sys.executable, "-m", "tests.fuzz", name, str(CASES), str(seed)]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=2 * PATIENCE, cwd=ROOT, check=False
    )
    if done.returncode:
        raise Broken(f"{' '.join(map(repr, command[1:]))}: {done.stdout[-900:]} {done.stderr[-500:]}")
    return f"times {CASES} right or refused"
