"""Commands in processes of their own, which may be limited, denied, interrupted and killed."""

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.helpers import PATIENCE
from tests.stress.judging import Broken, Ended

COMMAND = Path(sys.executable).with_name("crossfusion")
SECONDS = float(PATIENCE)  # after which a process is taken to hang
NOT_BEGUN = 71  # exit code of a process that was interrupted before
LOG = ("out.log", "err.log")


def preload() -> None:
    """Import what commands need, so that a forked process begins with its work; none of it starts threads."""
    import filelock  # noqa: F401
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    from crossfusion.cli.commands import cli

    for name in cli.commands:
        assert cli.commands[name].name == name


@dataclass(frozen=True)
class Child:
    """A forked process that runs a command."""

    words: list[str]
    pid: int
    logs: Path

    def kill(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        os.kill(self.pid, number)  # it is ours and not waited for yet, so the number is still its own

    def wait(self) -> Ended:
        """How it ended; a process that hangs is killed, and a finding."""
        deadline = time.monotonic() + SECONDS
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise Broken(f"no end within {SECONDS:g} s: crossfusion {' '.join(self.words)}")
            time.sleep(0.005)
        texts = [(self.logs / name).read_text("utf-8", "replace") for name in LOG]
        return Ended(self.words, os.waitstatus_to_exitcode(status), *texts)


def fork(words: Sequence[str], own: Path, logs: Path, before: Callable[[], None] | None = None) -> Child:
    """Run a command in a copy of this process, from the folder `own`; `before` is called there first."""
    logs.mkdir(exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until it runs the command
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        return Child(list(words), pid, logs)
    code = 70
    try:
        for number, name in enumerate(LOG, 1):
            os.dup2(os.open(logs / name, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o666), number)
        os.chdir(own)
        code = _run(list(words), before)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                code = code or 120  # as Python itself does
        os._exit(code)


def _run(words: list[str], before: Callable[[], None] | None) -> int:
    from crossfusion.cli import main

    if before is not None:
        before()
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    except KeyboardInterrupt:
        return NOT_BEGUN
    try:
        main(words)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(bool(done.code))
    return 0


def spawn(
    words: Sequence[str],
    own: Path,
    environment: Mapping[str, str] | None = None,
    before: Callable[[], None] | None = None,
    command: Sequence[str | Path] = (COMMAND,),
) -> Ended:
    """Run a command, by default that of crossfusion, as a shell does."""
    try:
        done = subprocess.run(
            [*command, *words], cwd=own, env=environment, capture_output=True, preexec_fn=before, timeout=SECONDS,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        raise Broken(f"no end within {SECONDS:g} s: crossfusion {' '.join(words)}") from late
    return Ended(
        list(words), done.returncode, *(text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    )
