"""Disks that are full, files that may not grow: one line, and the old file."""

import os
import resource
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np

from tests.stress import children, writing
from tests.stress.judging import Broken, check_files, outcome, snapshot

PAGE = 4096


def prepare(folder: Path) -> None:
    """The files."""
    writing.prepare(folder)


def case(folder: Path, own: Path, draw: np.random.Generator, number: int) -> str:
    """A file system of some pages, a limit of a file's size, no more open files, or a full standard output."""
    way = (small_disk if can_mount(folder) else small_files, small_files, few_files, full_output)[number % 4]
    call = writing.pick(draw)
    return way(call, folder, own, draw)


def can_mount(folder: Path) -> bool:
    """Whether this user may mount."""
    place = folder / "mount"
    place.mkdir(exist_ok=True)
    if not shutil.which("mount") or os.geteuid():
        return False
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True, check=False)
    if done.returncode == 0:
        subprocess.run(["umount", place], check=True)
    return done.returncode == 0


def small_disk(call: writing.Writing, folder: Path, own: Path, draw: np.random.Generator) -> str:
    """A file system of its own that holds the old file and hardly anything else."""
    pages = int(draw.integers(2, 40)) * int(draw.choice([1, 1, 8]))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={pages * PAGE}", "tmpfs", own], check=True)
    try:
        return limited(call, folder, own, draw, None)
    finally:
        subprocess.run(["umount", own], check=True)


def small_files(call: writing.Writing, folder: Path, own: Path, draw: np.random.Generator) -> str:
    """No file may grow beyond some bytes, wherever that is."""
    most = 1024 + int(draw.integers(2 ** int(draw.integers(8, 20))))  # what is said is written to a file, too

    def before() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    return limited(call, folder, own, draw, before)


def few_files(call: writing.Writing, folder: Path, own: Path, draw: np.random.Generator) -> str:
    """Few files may be open at once."""
    most = int(draw.integers(4, 24))
    return limited(call, folder, own, draw, lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)))


def limited(call: writing.Writing, folder: Path, own: Path, draw: np.random.Generator, before) -> str:
    """Run with a limit, then without it."""
    old = call.begin(own, bool(draw.random() < 0.5) and os.statvfs(own).f_bavail > 5)
    files = snapshot(own)
    ended = children.fork(call.words, own, folder / "logs", before).wait()
    if ended.code == 120 and before is not None:
        return "no output"  # the very limit took the words
    found = outcome(ended) if ended.err or ended.code == 0 else "refused"
    try:
        check_files(own, files, found)
        state = call.state(own, old)
        if found == "right" and state != "new":
            raise Broken(f"done, but there is the file {state}")
    except Broken as problem:
        raise ended.broken(str(problem)) from problem
    if before is not None:
        writing.rerun(call, folder, own, old, state)
    return found


def full_output(call: writing.Writing, folder: Path, own: Path, draw: np.random.Generator) -> str:
    """Standard output is a full device: what is printed is lost, what is written is whole."""

    def before() -> None:
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)

    old = call.begin(own, bool(draw.random() < 0.5))
    ended = children.fork(call.words, own, folder / "logs", before).wait()
    if outcome(ended) != "refused":
        raise ended.broken("nobody was told that the output is lost")
    call.state(own, old)
    return "refused"
