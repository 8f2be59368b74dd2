"""The commands of `paper` and `benchmarks`, as they are run in a checkout."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.helpers import ROOT
from tests.helpers.command_line import run_command

ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}


def module_command(*words: Any) -> list[str]:
    """`python -m` and these words."""
    return [sys.executable, "-m", *map(str, words)]


def run_module(*words: Any, code: int = 0, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """Run a command that ends with this exit code, without a traceback."""
    return run_command(module_command(*words), code, cwd, ENVIRONMENT)


def fail_module(*words: Any, cwd: Path | None = None) -> str:
    """The one line that a bad call prints."""
    done = run_module(*words, code=2, cwd=cwd)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    return done.stderr
