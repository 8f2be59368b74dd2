"""Permutation tests against scikit-bio's, which start from a matrix of distances."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.timing import best_times, peak_memory
from crossfusion import dispersion_test, permutation_test
from crossfusion._base import thread_count
from paper.arrays import FloatArray
from paper.checks import check_whole, load_library

HEADER = ["test", "against", "n", "d", "groups", "times as fast", "statistics differ by", "aim"]
PERMUTATIONS = 999
DIM = 256
SIZES = 2000, 1000, 10_000
LARGE = 200_000
MINUTES = 10_000  # rows from which scikit-bio takes minutes


def run(*, repeats: int = 3, quick: bool = False) -> dict[str, Any]:
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
    rows += [_permanova(medium, 2, repeats, "≥ 20"), _permanova(medium, 5, repeats, "(for information)")]
    rows.append(_permdisp(small, repeats))
    if not quick:
        rows.append(_permanova(large, 2, 1, "≥ 100"))
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


def _permanova(number: int, groups: int, repeats: int, aim: str) -> list[str]:
    x, labels = _data(number, groups)

    def theirs() -> float:
        found = _peer("permanova")(_distance_matrix(x), labels.astype(str), permutations=PERMUTATIONS)
        return float(found["test statistic"])

    def ours() -> float:
        return permutation_test(x, labels, permutations=PERMUTATIONS, statistic="pseudo-f").statistic

    return _compare("permutation_test", "scikit-bio permanova", ours, theirs, (number, DIM, groups), repeats, aim)


def _permdisp(number: int, repeats: int) -> list[str]:
    x, labels = _data(number, 2)

    def theirs() -> float:
        found = _peer("permdisp")(
            _distance_matrix(x), labels.astype(str), test="centroid", permutations=PERMUTATIONS, dimensions=number - 1
        )
        return float(found["test statistic"])

    def ours() -> float:
        return dispersion_test(x, labels, permutations=PERMUTATIONS).statistic

    aim = "(for information)"
    return _compare("dispersion_test", "scikit-bio permdisp", ours, theirs, (number, DIM, 2), min(repeats, 1), aim)


def _compare(
    name: str,
    peer: str,
    ours: Callable[[], float],
    theirs: Callable[[], float],
    shape: tuple[int, int, int],
    repeats: int,
    aim: str,
) -> list[str]:
    """One row: the same statistic by both sides, and how much faster ours has it; theirs with the better threads.

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

    sides = {"ours": lambda: keep("ours", ours()), "theirs on one thread": on_one_thread}
    if shape[0] < MINUTES:
        sides["theirs"] = lambda: keep("theirs", theirs())
    best = best_times(sides, repeats)
    seconds = min(time for side, time in best.items() if side != "ours")
    differ = f"{abs(values['ours'] / values['theirs'] - 1):.0e}"
    number, dim, groups = shape
    return [name, peer, f"{number:,}", f"{dim}", f"{groups}", f"{seconds / best['ours']:.0f}", differ, aim]


def _large() -> list[list[str]]:
    """Rows whose distance matrix would take 320 GB."""
    draw = np.random.default_rng(0)
    x, labels = draw.standard_normal((LARGE, DIM), np.float32), draw.integers(0, 2, LARGE)
    permutation_test(x, labels, permutations=1)  # compilers start, buffers are there
    extra = peak_memory(lambda: permutation_test(x, labels, permutations=PERMUTATIONS))
    sides = {
        "test": lambda: permutation_test(x, labels, permutations=PERMUTATIONS),
        "read": lambda: permutation_test(x, labels, permutations=1),
    }
    best = best_times(sides, 1)

    def row(against: str, value: str, aim: str) -> list[str]:
        return ["permutation_test", against, f"{LARGE:,}", f"{DIM}", "2", value, "", aim]

    return [
        row("peak extra memory", f"{extra / 2**20:.0f} MB", "about 64 MB"),
        row("the same with one permutation", f"1/{best['test'] / best['read']:.0f}", "(for information)"),
    ]
