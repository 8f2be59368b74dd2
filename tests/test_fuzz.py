"""Every reader gets broken files: an error of ours in one line, no traceback, no hang, no crash, memory bounded."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import FORMATS

CASES = 140  # of each format: more than 2,000 in all


@pytest.mark.parametrize("name", FORMATS)
def test_broken_files_are_refused_in_one_line(name):
    found = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", name, str(CASES), "0"],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=Path(__file__).parent.parent,
    )
    last = found.stderr.splitlines()[-1:] or ["nothing"]
    assert found.returncode == 0, f"{found.stdout}\nlast case: {last[0]}"


def test_there_are_thousands_of_cases():
    assert CASES * len(FORMATS) >= 2000
