"""Every command with words, files and values that are wrong."""

import os
from pathlib import Path

import numpy as np

from tests.fuzz import judging
from tests.stress import children, data
from tests.stress.calls import CALLS, LONG, broken
from tests.stress.judging import Broken, Ended, check_files, outcome, snapshot

WHOLE = list(CALLS.values())


def prepare(folder: Path) -> None:
    """Make the files, and see that calls that are right are not refused."""
    data.prepare(folder)
    own = folder / "case"
    for name, call in CALLS.items():
        own.mkdir()
        ended = here([*call.split(), *([] if "--csv" in call or name == "completion" else ["--json"])], own)
        if outcome(ended) not in ("right", "alarm"):
            raise ended.broken(f"{name}: refused, though nothing is wrong")
        check_files(own, {}, "right")
        for path in sorted(own.rglob("*"), reverse=True):
            path.unlink()
        own.rmdir()


def here(words: list[str], own: Path) -> Ended:
    """Call a command in this process, from a folder; what libraries write is seen as well."""
    back = Path.cwd()
    os.chdir(own)
    try:
        with judging.standard_error() as taken:
            code, out, err = judging.called(words)
            taken.seek(0)
            said = taken.read().decode("utf-8", "replace")
    except Exception as problem:
        raise Broken(f"{type(problem).__name__}: {problem}: crossfusion {words}") from problem
    finally:
        os.chdir(back)
    return Ended(words, code, out, err + said)


def case(folder: Path, own: Path, draw: np.random.Generator, number: int) -> str:
    """A call with something wrong; often there is a file already where it writes."""
    if number % 20 == 19:
        words = list(LONG.values())[int(draw.integers(len(LONG)))].split()
    else:
        words = broken(WHOLE[int(draw.integers(len(WHOLE)))].split(), draw)
        if any(word in ("histopathology", "demo") for word in words):
            return "left out"  # by chance whole
    if draw.random() < 0.5 and "--csv" not in words:
        words.append("--json")
    if draw.random() < 0.5:
        data.summary(slice(0, 9)).write(own / "own.parquet")
        (own / "own.html").write_text("<html></html>")
    before, whole = snapshot(own), snapshot(folder / "images")
    ended = children.spawn(words, own) if number % 40 == 7 else here(words, own)
    found = outcome(ended)
    try:
        check_files(own, before, found)
    except Broken as problem:
        raise ended.broken(str(problem)) from problem
    if snapshot(folder / "images") != whole:
        raise ended.broken("a file that was only to be read is another one")
    return found
