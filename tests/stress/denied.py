"""Files and folders that another user may not read or write."""

import ctypes
import os
from pathlib import Path

import numpy as np

from tests.stress import children, writing
from tests.stress.judging import Broken, check_files, outcome, snapshot

VERSION = 0x20080522  # of Linux's capset


def prepare(folder: Path) -> None:
    """The files, in a folder that all may enter."""
    writing.prepare(folder)
    folder.chmod(0o755)


def give_up_power() -> None:
    """To root nothing is denied, unless it gives up its capabilities; what is its own it may still use."""
    if os.geteuid() == 0:
        header, none = (ctypes.c_uint32 * 2)(VERSION, 0), (ctypes.c_uint32 * 6)()
        if ctypes.CDLL(None, use_errno=True).capset(header, none):
            raise OSError(ctypes.get_errno(), "capabilities cannot be given up")


def case(folder: Path, own: Path, draw: np.random.Generator, number: int) -> str:
    """Deny one thing: to write the folder, to enter it, to read the input, to take the lock, to use a home."""
    call = writing.pick(draw)
    old = call.begin(own, bool(draw.random() < 0.7))
    words = list(call.words)
    own.chmod(0o777)
    for path in own.iterdir():
        path.chmod(0o666)
    way = number % 5
    if way == 0:
        own.chmod(0o555)
    elif way == 1:
        words = [f"shut/{word}" if word == call.target else word for word in words]
        (own / "shut").mkdir(mode=0o000)
    elif way == 2:
        secret = next(word for word in words if word.startswith("../"))
        (own / "secret.parquet").write_bytes((own / secret).read_bytes())
        (own / "secret.parquet").chmod(0o000)
        words[words.index(secret)] = "secret.parquet"
    elif way == 3:
        (own / f".{call.target}.lock").touch(mode=0o400)
    else:
        os.environ["MPLCONFIGDIR"] = "/proc/nothing"
    files = snapshot(own)
    ended = children.fork(words, own, folder / "logs", give_up_power).wait()
    os.environ.pop("MPLCONFIGDIR", None)
    tolerated = "mkdir -p failed|Matplotlib|.*MPLCONFIGDIR"
    found = outcome(ended, tolerated)
    if found != "refused" and (way in (0, 1, 2) or (way == 3 and call.adds)):
        raise ended.broken("what is denied was done")
    if way == 4 and found != "right":
        raise ended.broken("refused, though nothing that it needs is denied")
    try:
        own.chmod(0o755)
        check_files(own, files, found)
        call.state(own, old)
    except Broken as problem:
        raise ended.broken(str(problem)) from problem
    return found
