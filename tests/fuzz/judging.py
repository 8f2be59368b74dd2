"""Whether a file was read, or refused in one line, in time, in bounded memory and without a word from elsewhere."""

import contextlib
import faulthandler
import io
import json
import os
import re
import resource
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NoReturn

import crossfusion as cf
from crossfusion.cli import main
from tests.helpers import PATIENCE

SECONDS = PATIENCE  # of a case
CPU_SECONDS, GIGABYTES = 20, 1  # of a case in a process of its own, beyond what that has already
MEGABYTES = 300  # of all cases together, beyond what reading a whole file takes


def peak() -> float:
    """Megabytes that were in memory at the most."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says begins with the peak of whoever started this process
        return int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) / 2**10
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
    with standard_error() as taken:
        found = _judge(ask)
        sys.stderr.flush()
        taken.seek(0)
        said = taken.read().decode("utf-8", "replace")
    return found or (f"on standard error: {said!r}" if said else "")


def judge_isolated(ask: Callable[[], object]) -> str:
    """The same, in a child process with limits: some damage makes h5py hang or crash, which is not held against us."""
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as trace:
        child = os.fork()
        if child == 0:
            _answer(ask, answer, trace)
        _, status = os.waitpid(child, 0)
        answer.seek(0)
        trace.seek(0)
        found, frames = answer.read().decode(), trace.read().decode("utf-8", "replace")
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        return found
    return "" if is_in_h5py(frames) else f"the process ended with status {status}: {frames}"


def _answer(ask: Callable[[], object], answer: IO[bytes], trace: IO[bytes]) -> NoReturn:
    """Write what is wrong to a file, or where Python was when the process ended to another one."""
    memory = Path("/proc/self/statm")
    if memory.exists():
        size = int(memory.read_text().split()[0]) * resource.getpagesize() + (GIGABYTES << 30)
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
    faulthandler.enable(trace)
    faulthandler.register(signal.SIGXCPU, trace, chain=True)
    answer.write(judge(ask).encode())
    answer.flush()
    os._exit(0)


def is_in_h5py(trace: str) -> bool:
    """Whether a thread of a traceback, most recent call first, was in h5py."""
    return re.search(r'\(most recent call first\):\n  File "[^"]*\bh5py/', trace) is not None


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
