"""Whether a file was read, or refused in one line, in time, in bounded memory and without a word from elsewhere."""

import contextlib
import faulthandler
import io
import json
import os
import re
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import crossfusion as cf
from crossfusion.cli import main

SECONDS, MEGABYTES = 20, 300  # of a case; of all cases together, beyond what reading a whole file takes


def peak() -> float:
    """Megabytes that were in memory at the most."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says begins with the peak of whoever started this process
        return int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) / 2**10  # type: ignore[index]
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


@contextlib.contextmanager
def standard_error() -> Iterator[IO[bytes]]:
    """A file of all that is written to standard error, by whichever library."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as taken:
        os.dup2(taken.fileno(), 2)
        faulthandler.dump_traceback_later(SECONDS, exit=True, file=kept)  # even if a library holds everything up
        try:
            yield taken
        finally:
            faulthandler.cancel_dump_traceback_later()
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)


def judge(ask: Callable[[], object]) -> str:
    """What is wrong with how something was read; nothing, if it was read or refused in one line."""
    start = time.monotonic()
    with standard_error() as taken:
        found = _judge(ask)
        sys.stderr.flush()
        taken.seek(0)
        said = taken.read().decode("utf-8", "replace")
    if found:
        return found
    if said:
        return f"on standard error: {said!r}"
    late = time.monotonic() - start
    return f"no answer within {SECONDS} seconds" if late > SECONDS else ""


def _judge(ask: Callable[[], object]) -> str:
    try:
        ask()
    except cf.CrossfusionError as problem:
        return _judge_line(str(problem))
    except BaseException as problem:
        return f"{type(problem).__name__}: {problem}"
    return ""


def _judge_line(line: str) -> str:
    if not line.strip() or len(line.splitlines()) > 1:
        return f"not one line: {line!r}"
    if not line.isprintable():
        return f"not printable: {line!r}"
    return ""


def called(arguments: list[str]) -> tuple[object, str, str]:
    """Exit code, standard output and standard error of a command that runs in this process."""
    out, err = io.StringIO(), io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code: object = 0
        try:
            main(arguments)
        except SystemExit as done:
            code = done.code or 0
    return code, out.getvalue(), err.getvalue()


def run_command(arguments: list[str]) -> None:
    """Run a command; raises AssertionError unless it gives JSON, or one line and exit code 2."""
    code, out, err = called(arguments)
    lines = [line for line in err.splitlines() if not line.startswith("crossfusion: warning: ")]
    if code == 0 and not lines:
        json.loads(out)
    elif not (code == 2 and len(lines) == 1 and lines[0].startswith("crossfusion: ")):
        raise AssertionError(f"exit code {code} and {err!r}")
