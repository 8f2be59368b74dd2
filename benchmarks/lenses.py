"""Lenses against the matrix products that they need, and the memory that they take."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import crossfusion as cf
from benchmarks.timing import best_times, peak_memory
from crossfusion._base import map_threads, multiply_matrices, thread_count
from paper.checks import check_whole

HEADER = ["lens", "rows", "features", "s", "share of the product's speed", "aim"]
SHAPES = (200_000, 64), (40_000, 512), (16_000, 1536)
CELLS = 1_000_000, 50, 128  # rows, features, regions
FITTED_ROWS = 20_000
GROUPS = 10
BLOCK = 128  # rows of a product, which stay in the cache with what comes out
TASK = 64 * BLOCK


def run(*, repeats: int = 5) -> dict[str, Any]:
    """Measure everything and return it as a table.

    Parameters
    ----------
    repeats : int
        Rounds, in which the sides alternate; the best of each side counts.

    Returns
    -------
    dict
        A title, the names of the columns, and the rows as text.
    """
    check_whole(repeats, "repeats")
    grown = _memory()  # before others leave memory to reuse
    rows = [_kernel(number, dim, repeats) for number, dim in SHAPES]
    number, dim = SHAPES[0]
    rows += [_codebook(repeats), _plain(number, dim, repeats, "unit"), _plain(number, dim, repeats, "standardize")]
    rows.append(_whiten(SHAPES[1], repeats))
    mapped = 4 * 1024 * number
    title = (
        f"{thread_count()} threads, best of {repeats}; the product of the same size in float64, on all threads;"
        f" a kernel takes {grown / 1e6:.0f} MB at its peak, where the mapped rows would take {mapped / 1e6:.0f} MB"
    )
    return {"title": title, "header": HEADER, "rows": rows}


def _draw(number: int, dim: int) -> tuple[NDArray[np.float32], dict[str, Any]]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((number, dim), np.float32), {"group": rng.integers(0, GROUPS, number)}


def _multiply(rows: NDArray[np.float64], vectors: NDArray[np.float64]) -> Callable[[], None]:
    """The product alone, block by block on all threads, as a lens computes it."""

    def work(start: int) -> None:
        for place in range(start, min(start + TASK, len(rows)), BLOCK):
            multiply_matrices(rows[place : place + BLOCK], vectors)

    def multiply() -> None:
        starts = range(0, len(rows), TASK)
        with map_threads(len(starts)) as run:
            list(run(work, starts))

    return multiply


def _row(name: str, rows: Any, times: dict[str, float], aim: str) -> list[str]:
    share = times["alone"] / times["lens"]
    return [name, f"{len(rows):,}", f"{rows.shape[1]:,}", f"{times['lens']:.3f}", f"{share:.2g}", aim]


def _kernel(number: int, dim: int, repeats: int) -> list[str]:
    rows, by = _draw(number, dim)
    lens = cf.lens.kernel(rows[:FITTED_ROWS])
    sides = {
        "lens": lambda: cf.summarize(rows, by=by, lens=lens),
        "alone": _multiply(rows.astype(np.float64), lens.steps[0].frequencies),
    }
    return _row("kernel, 1,024 features", rows, best_times(sides, repeats), "≥ 0.5")


def _codebook(repeats: int) -> list[str]:
    number, dim, regions = CELLS
    rows, by = _draw(number, dim)
    lens = cf.lens.codebook(rows[:FITTED_ROWS], regions=regions)
    sides = {
        "lens": lambda: cf.summarize(rows, by=by, lens=lens),
        "alone": _multiply(rows.astype(np.float64), lens.steps[0].points),
    }
    return _row(f"codebook, {regions} regions", rows, best_times(sides, repeats), "≥ 0.5")


def _whiten(shape: tuple[int, int], repeats: int) -> list[str]:
    rows, by = _draw(*shape)
    lens = cf.lens.whiten(rows[:FITTED_ROWS], rank=min(256, shape[1] // 2))
    directions = lens.steps[1].directions
    sides = {
        "lens": lambda: cf.summarize(rows, by=by, lens=lens),
        "alone": _multiply(rows.astype(np.float64), np.concatenate([directions, directions], axis=1)),
    }
    return _row(f"whiten, {directions.shape[1]} directions", rows, best_times(sides, repeats), "(for information)")


def _plain(number: int, dim: int, repeats: int, name: str) -> list[str]:
    """A lens without a product, beside the same summary without a lens."""
    rows, by = _draw(number, dim)
    lens = cf.lens.unit() if name == "unit" else cf.lens.standardize(rows, by=by)
    sides = {
        "lens": lambda: cf.summarize(rows, by=by, lens=lens),
        "alone": lambda: cf.summarize(rows, by=by),
    }
    return _row(f"{name}, beside no lens", rows, best_times(sides, repeats), "(for information)")


def _memory() -> int:
    """Growth of memory while rows are mapped and reduced."""
    number, dim = SHAPES[0]
    rows, by = _draw(number, dim)
    lens = cf.lens.kernel(rows[:FITTED_ROWS])
    return peak_memory(lambda: cf.summarize(rows, by=by, lens=lens))
