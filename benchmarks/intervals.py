"""What an interval costs, beside the distance alone."""

from statistics import median
from typing import Any

import numpy as np

from benchmarks.timing import best_times
from crossfusion import cfd, summarize
from crossfusion._base import thread_count
from paper.checks import check_whole

HEADER = ["of", "n", "d", "type", "times the cost of the distance", "aim"]
SHAPES = (
    (1_000_000, 256, np.float32),
    (200_000, 256, np.float32),
    (200_000, 256, np.float64),
    (50_000, 1024, np.float32),
)
ROWS, DIM, UNITS = 200_000, 256, 1000  # of the comparison with units


def run(*, repeats: int = 15) -> dict[str, Any]:
    """Measure everything and return it as a table.

    Parameters
    ----------
    repeats : int
        Rounds, in which the sides alternate; the median of their ratios counts.

    Returns
    -------
    dict
        A title, the names of the columns, and the rows as text.
    """
    check_whole(repeats, "repeats")
    rows = [_of_rows(number, dim, dtype, repeats) for number, dim, dtype in SHAPES]
    rows += [_small(repeats), *_of_units(repeats)]
    title = f"An interval at 0.95, {thread_count()} threads, median of {repeats} rounds"
    return {"title": title, "header": HEADER, "rows": rows}


def _data(number: int, dim: int, dtype: Any) -> tuple[Any, Any]:
    draw = np.random.default_rng(0)
    rows = draw.standard_normal((number, dim), np.float32).astype(dtype, copy=False)
    return rows[: number // 2], rows[number // 2 :]


def _ratio(plain: Any, asked: Any, repeats: int) -> float:
    """Median of the rounds' ratios: what disturbs a round disturbs both sides."""
    asked()  # what it needs is imported then
    rounds = [best_times({"plain": plain, "asked": asked}, 1) for _ in range(repeats)]
    return median(times["asked"] / times["plain"] for times in rounds)


def _of_rows(number: int, dim: int, dtype: Any, repeats: int) -> list[str]:
    a, b = _data(number, dim, dtype)
    ratio = _ratio(lambda: cfd(a, b), lambda: cfd(a, b, level=0.95), repeats)
    return ["cfd, rows", f"{number:,}", f"{dim}", np.dtype(dtype).name, f"{ratio:.2f}", "≤ 2.2"]


def _small(repeats: int) -> list[str]:
    """Rows so few that what does not depend on their number decides."""
    a, b = _data(2000, 256, np.float32)
    ratio = _ratio(lambda: cfd(a, b), lambda: cfd(a, b, level=0.95), 3 * repeats)
    return ["cfd, rows", "2,000", "256", "float32", f"{ratio:.2f}", "(some milliseconds)"]


def _of_units(repeats: int) -> list[list[str]]:
    """Units: from rows, where the distance of the units' moments comes first; and from a summary, without rows."""
    number, dim = ROWS, DIM
    draw = np.random.default_rng(0)
    rows = draw.standard_normal((number, dim), np.float32)
    unit = np.sort(draw.integers(0, UNITS, number))
    group = unit % 2
    from_rows = _ratio(
        lambda: cfd(rows, labels=group), lambda: cfd(rows, labels=group, units=unit, level=0.95), repeats
    )
    summary = summarize(rows, by={"group": group, "unit": unit})
    from_summary = _ratio(
        lambda: cfd(rows, labels=group), lambda: summary.cfd("group", units="unit", level=0.95), repeats
    )
    shape = [f"{number:,}", f"{dim}", "float32"]
    return [
        [f"cfd, {UNITS:,} units", *shape, f"{from_rows:.2f}", "(for information)"],
        [f"Summary.cfd, {UNITS:,} units", *shape, f"{from_summary:.2f}", "(for information)"],
    ]
