"""The command `crossfusion` as a user runs it: a process of its own."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.helpers import PATIENCE

COMMAND = [str(Path(sys.executable).with_name("crossfusion"))]


def run_command(
    command: Sequence[Any], code: int = 0, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a program that ends with this exit code, without a traceback."""
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, cwd=cwd, env=environment, timeout=PATIENCE, check=False
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def run(*arguments: Any, code: int = 0, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """Run a command that ends with this exit code, without a traceback."""
    return run_command([*COMMAND, *arguments], code, cwd)


def run_json(*arguments: Any) -> Any:
    """What a command prints as JSON."""
    return json.loads(run(*arguments, "--json").stdout)


def fails(*arguments: Any, cwd: Path | None = None) -> str:
    """The one line that a bad call prints."""
    done = run(*arguments, code=2, cwd=cwd)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("crossfusion: ")
    return done.stderr


def on_terminal(*arguments: Any, columns: int = 80) -> str:
    """Output of a command whose three streams are a terminal."""
    leader, follower = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": "24"}
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stdin=follower, stdout=follower, stderr=follower, env=environment
    )
    os.close(follower)
    text = b""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if select.select([leader], [], [], 0.2)[0]:
            try:
                text += os.read(leader, 65536)
            except OSError:  # the last user of the terminal is gone
                break
    os.close(leader)
    assert process.wait(PATIENCE) == 0
    return text.decode()
