"""Many writers to one file, some killed, some with the same rows: nothing is lost, nothing is used twice."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import crossfusion as cf
from tests.stress import children
from tests.stress.judging import Broken, outcome

ROWS, DIM = 20, 3


def prepare(folder: Path) -> None:
    """The rows of each writer: powers of two as numbers of rows would grow; distinct values tell them apart."""
    children.preload()
    for k in range(8):
        x = np.random.default_rng(k).normal(k, 1, (ROWS, DIM))
        pq.write_table(pa.table({"site": ["A", "B"] * (ROWS // 2), "v": list(x)}), folder / f"{k}.parquet")


def case(folder: Path, own: Path, draw: np.random.Generator, number: int) -> str:
    """Two or eight at once, each twice for some, a kill for some; then those that were killed again."""
    writers = 8 if number % 2 else 2
    parts = [*range(writers), *(int(k) for k in draw.integers(0, writers, int(draw.integers(0, 3))))]
    draw.shuffle(parts)
    running = [(part, children.fork(call(part), own, folder / f"logs{place}")) for place, part in enumerate(parts)]
    victims = [child for _, child in running if draw.random() < 0.25]
    for child in victims:
        time.sleep(float(draw.uniform(0, 0.15)))
        child.kill(signal.SIGKILL)
    told: dict[int, int] = dict.fromkeys(range(writers), 0)
    for part, child in running:
        ended = child.wait()
        if ended.code == -signal.SIGKILL:
            continue
        seen = outcome(ended)
        if seen == "refused" and "already contains these rows" not in ended.err:
            raise ended.broken("refused for another reason")
        told[part] += seen == "right"
    for part in range(writers):
        if told[part] > 1:
            raise Broken(f"part {part} was added {told[part]} times, as its writers say")
        ended = children.fork(call(part), own, folder / "logs").wait()
        if outcome(ended) == "refused" and "already contains these rows" not in ended.err:
            raise ended.broken("refused for another reason")
        if told[part] and ended.code == 0:
            raise ended.broken(f"part {part} was added, and then lost")
    check(folder, own, writers)
    return f"{writers} writers{', some killed' if victims else ''}"


def call(part: int) -> list[str]:
    """Append the rows of a part."""
    return f"summarize ../{part}.parquet --by site --append -o own.parquet".split()


def check(folder: Path, own: Path, writers: int) -> None:
    """The file is what one summary of all rows is, with no litter beside it."""
    expected = cf.summarize([str(folder / f"{k}.parquet") for k in range(writers)], by="site")
    found = cf.read_summary(own / "own.parquet")
    if not (found.moments.count == expected.moments.count).all():
        raise Broken(f"{found.moments.count} rows instead of {expected.moments.count}")
    if not np.allclose(found.moments.mean, expected.moments.mean, rtol=1e-12, atol=1e-12):
        raise Broken("other means")
    left = sorted(set(os.listdir(own)) - {"own.parquet", ".own.parquet.lock"})
    if left:
        raise Broken(f"{left} was left")
