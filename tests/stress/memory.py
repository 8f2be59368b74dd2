"""Processes that may not have much memory: a right result or one line, and no half file."""

import json
import re
import resource
from pathlib import Path

import numpy as np

from tests.stress import children, writing
from tests.stress.judging import Broken, Ended, check_files, outcome, snapshot

ASKED = ["matrix", "../s.parquet", "--between", "site", "--given", "label", "--json"]
NOISE = r"<jemalloc>|OpenBLAS|.*mimalloc"  # what allocators write themselves
GIVEN_UP = "OpenBLAS error: Memory allocation still failed after .* giving up."
EXPECTED: list[object] = []


def prepare(folder: Path) -> None:
    """The files, and an answer that was given without a limit."""
    writing.prepare(folder)
    own = folder / "plain"
    own.mkdir()
    EXPECTED.append(json.loads(children.fork(ASKED, own, folder / "logs").wait().out))


def used() -> dict[str, int]:
    """Bytes of this process: all that is mapped, and what is data."""
    status = Path("/proc/self/status").read_text()
    return {
        name: int(found[1]) << 10 for name in ("VmSize", "VmData") if (found := re.search(rf"{name}:\s+(\d+)", status))
    }


def case(folder: Path, own: Path, draw: np.random.Generator, number: int) -> str:
    """A call with some more than what it begins with."""
    more = int(2 ** draw.uniform(21, 29))
    kind = (resource.RLIMIT_AS, resource.RLIMIT_DATA)[number % 2]

    def before() -> None:
        most = used()["VmSize" if kind == resource.RLIMIT_AS else "VmData"] + more
        resource.setrlimit(kind, (most, most))

    if number % 3 == 0:
        ended = children.fork(ASKED, own, folder / "logs", before).wait()
        found = judged(ended)
        if found == "right" and json.loads(ended.out) != EXPECTED[0]:
            raise ended.broken("another result")
        return found
    call = writing.pick(draw)
    old = call.begin(own, bool(draw.random() < 0.5))
    files = snapshot(own)
    ended = children.fork(call.words, own, folder / "logs", before).wait()
    found = judged(ended)
    try:
        check_files(own, files, found)
        call.state(own, old)
    except Broken as problem:
        raise ended.broken(str(problem)) from problem
    return found


def judged(ended: Ended) -> str:
    """Right or refused; who is refused is told of memory, and not that a whole file is damaged."""
    if ended.code == 1 and re.fullmatch(GIVEN_UP, ended.err.splitlines()[-1] if ended.err else ""):
        return "ended by OpenBLAS"  # which exits by itself
    found = outcome(ended, NOISE)
    if found == "refused" and not re.search(r"memory|thread|allocate", ended.err):
        raise ended.broken("refused for another reason than memory")
    if found == "refused" and "write it again" in ended.err:
        raise ended.broken("a whole file is called damaged")
    return found
