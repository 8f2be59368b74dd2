"""Permutation tests against scikit-bio's, which start from a matrix of distances."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.timing import best_times, peak_memory
from crossfusion import dispersion_test, permutation_test
from crossfusion._base import thread_count
from paper.arrays import FloatArray
from paper.checks import check_whole, load_library

HEADER = ["test", "statistic", "against", "n", "d", "groups", "times as fast", "statistics differ by", "aim"]
PERMUTATIONS = 999
DIM = 256
SIZES = 2000, 1000, 10_000
LARGE = 200_000
MINUTES = 10_000  # rows from which scikit-bio takes minutes
INFORMATION = "(for information)"


def run(*, repeats: int = 7, quick: bool = False) -> dict[str, Any]:
    """Measure everything and return it as a table.

    Parameters
    ----------
    repeats : int
        Rounds, in which the sides alternate; the best of each side counts. What takes a minute runs once.
    quick : bool
        Leave out what takes minutes.

    Returns
    -------
    dict
        A title, the names of the columns, and the rows as text.
    """
    check_whole(repeats, "repeats")
    rows = _large()  # before the peer leaves memory to reuse
    medium, small, large = SIZES
    rows += _permanova(medium, 2, repeats, "≥ 30")
    rows += _permanova(medium, 5, repeats, INFORMATION)
    rows += _permdisp(small, repeats)
    if not quick:
        rows += _permanova(large, 2, 1, "≥ 300")
    title = f"{PERMUTATIONS} permutations, {thread_count()} threads, best of {repeats}"
    return {"title": title, "header": HEADER, "rows": rows}


def _data(number: int, groups: int) -> tuple[FloatArray, Any]:
    draw = np.random.default_rng(0)
    labels = draw.integers(0, groups, number)
    return draw.normal(size=(number, DIM)) + 0.1 * labels[:, None], labels


def _distance_matrix(x: FloatArray) -> Any:
    """What scikit-bio starts from; SciPy is the fastest way to it."""
    skbio = load_library("skbio", "scikit-bio", "bench", "the comparison with scikit-bio")
    spatial = load_library("scipy.spatial.distance", "SciPy", "bench", "the comparison with scikit-bio")
    return skbio.DistanceMatrix(spatial.squareform(spatial.pdist(x)))


def _peer(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(
        load_library("skbio.stats.distance", "scikit-bio", "bench", "the comparison with scikit-bio"), name
    )
    return function


def _permanova(number: int, groups: int, repeats: int, aim: str) -> list[list[str]]:
    """The same statistic by both sides and, beside it, the Welch statistic, which the peer does not have."""
    x, labels = _data(number, groups)

    def theirs() -> float:
        found = _peer("permanova")(_distance_matrix(x), labels.astype(str), permutations=PERMUTATIONS)
        return float(found["test statistic"])

    def ours(statistic: str) -> Callable[[], float]:
        return lambda: permutation_test(x, labels, permutations=PERMUTATIONS, statistic=statistic).statistic

    sides = {"pseudo-f": (ours("pseudo-f"), aim), "welch": (ours("welch"), INFORMATION)}
    return _compare("permutation_test", "scikit-bio permanova", sides, theirs, (number, DIM, groups), repeats)


def _permdisp(number: int, repeats: int) -> list[list[str]]:
    x, labels = _data(number, 2)

    def theirs() -> float:
        found = _peer("permdisp")(
            _distance_matrix(x), labels.astype(str), test="centroid", permutations=PERMUTATIONS, dimensions=number - 1
        )
        return float(found["test statistic"])

    def ours() -> float:
        return dispersion_test(x, labels, permutations=PERMUTATIONS).statistic

    sides = {"pseudo-f": (ours, INFORMATION)}
    return _compare("dispersion_test", "scikit-bio permdisp", sides, theirs, (number, DIM, 2), min(repeats, 1))


def _compare(
    name: str,
    peer: str,
    ours: dict[str, tuple[Callable[[], float], str]],
    theirs: Callable[[], float],
    shape: tuple[int, int, int],
    repeats: int,
) -> list[list[str]]:
    """A row for each of our statistics, the first of which is theirs, too: how much faster ours is.

    Theirs has the better number of threads.

    On cores that others use, its threads may wait for one another. Where a run takes minutes, it has one thread: the
    two differ little there.
    """
    values: dict[str, float] = {}

    def keep(side: str, value: float) -> None:
        values[side] = value

    def on_one_thread() -> None:
        limits = load_library("threadpoolctl", "threadpoolctl", "bench", "the comparison with scikit-bio")
        with limits.threadpool_limits(1):
            keep("theirs", theirs())

    def run_ours(statistic: str) -> Callable[[], None]:
        return lambda: keep(statistic, ours[statistic][0]())

    sides = {"theirs on one thread": on_one_thread} | {statistic: run_ours(statistic) for statistic in ours}
    if shape[0] < MINUTES:
        sides["theirs"] = lambda: keep("theirs", theirs())
    best = best_times(sides, repeats)
    seconds = min(time for side, time in best.items() if side not in ours)
    differ = [f"{abs(values[next(iter(ours))] / values['theirs'] - 1):.0e}", *("" for _ in ours)]
    where = [f"{size:,}" for size in shape]
    return [
        [name, statistic, peer, *where, f"{seconds / best[statistic]:.0f}", gap, aim]
        for (statistic, (_, aim)), gap in zip(ours.items(), differ, strict=False)
    ]


def _large() -> list[list[str]]:
    """Rows whose distance matrix would take 320 GB."""
    draw = np.random.default_rng(0)
    x, labels = draw.standard_normal((LARGE, DIM), np.float32), draw.integers(0, 2, LARGE)

    def test(statistic: str, permutations: int) -> Any:
        return permutation_test(x, labels, permutations=permutations, statistic=statistic)

    def row(statistic: str, against: str, value: str, aim: str) -> list[str]:
        return ["permutation_test", statistic, against, f"{LARGE:,}", f"{DIM}", "2", value, "", aim]

    found = []
    for statistic in ("pseudo-f", "welch"):
        test(statistic, 1)  # buffers are there then
        extra = peak_memory(partial(test, statistic, PERMUTATIONS))
        sides = {"all": partial(test, statistic, PERMUTATIONS), "one": partial(test, statistic, 1)}
        best = best_times(sides, 1)
        found += [
            row(statistic, "peak extra memory", f"{extra / 2**20:.0f} MB", "about 64 MB"),
            row(statistic, "one permutation", f"1/{best['all'] / best['one']:.0f}", INFORMATION),
        ]
    return found
