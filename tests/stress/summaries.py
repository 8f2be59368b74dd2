"""Summaries cut at every byte, and with flipped bits: refused, or the very same values."""

from pathlib import Path

import numpy as np

import crossfusion as cf
from tests.fuzz.breaking import MUTATIONS
from tests.stress import data
from tests.stress.judging import Broken

WHOLE: list[tuple[bytes, cf.Summary]] = []


def prepare(folder: Path) -> None:
    """A small summary with tags, and its bytes."""
    path = folder / "s.parquet"
    cf.summarize(data.X, by={"site": data.BY["site"], "label": data.BY["label"]}).write(path)
    WHOLE.append((path.read_bytes(), cf.read_summary(path)))


def case(_folder: Path, own: Path, draw: np.random.Generator, number: int) -> str:
    """A hundred broken files: cut at the next bytes, one bit flipped, or broken in another way."""
    content, whole = WHOLE[0]
    same = 0
    for k in range(100 * number, 100 * number + 100):
        way = ("cut", "flip", "other")[k % 3]
        if way == "cut":
            broken = content[: k // 3 % len(content)]
        elif way == "flip":
            place = (k // 3 * 8 + int(draw.integers(8))) % (8 * len(content))
            flipped = content[place // 8] ^ 1 << place % 8
            broken = content[: place // 8] + bytes([flipped]) + content[place // 8 + 1 :]
        else:
            broken = MUTATIONS[int(draw.integers(len(MUTATIONS)))](bytearray(content), draw)
        path = own / "own.parquet"
        path.write_bytes(broken)
        same += _same(path, whole, f"{way}, number {k}")
    return "times 100 refused or the same" if same < 100 else "times 100 the same"


def _same(path: Path, whole: cf.Summary, what: str) -> bool:
    """Whether it is read, as it was written."""
    try:
        found = cf.read_summary(path)
    except cf.CrossfusionError as problem:
        if not str(problem) or len(str(problem).splitlines()) > 1:
            raise Broken(f"{what}: not one line: {problem}") from problem
        return False
    except BaseException as problem:
        raise Broken(f"{what}: {type(problem).__name__}: {problem}") from problem
    moments = found.moments, whole.moments
    alike = all(
        np.array_equal(getattr(moments[0], name), getattr(moments[1], name)) for name in ("count", "mean", "sumsq")
    )
    facts = found.keys.equals(whole.keys) and (found.tags, found.batches) == (whole.tags, whole.batches)
    if not (alike and facts):
        raise Broken(f"{what}: read without an error, but not what was written")
    return True
