"""Distances based on nearest neighbors: the largest (Hausdorff) and the average (Chamfer)."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FloatArray, as_row_pair, map_threads
from crossfusion.evaluation.baselines.pair_distances import SquaredDistances, map_blocks

IndexArray = NDArray[np.intp]

PROBES = 8, 2  # rows followed to the end, at first and later, to raise the bound that lets other rows go
FIRST_VISIT = 16  # rows of the other group in the first visit
VISIT_GROWTH = 4  # factor by which each following visit is larger
VISIT_BLOCK_PAIRS = 2**18  # pairs per block of a visit
VISIT_BLOCK_ROWS = 256  # most rows per block of a visit
MIN_PARALLEL_PAIRS = 2**22  # pairs from which more threads are worth their start


def hausdorff(a: Any, b: Any) -> float:
    r"""Hausdorff distance: the largest distance from a row of one group to the other group.

    .. math:: \max\Bigl(\max_i \min_j \lVert a_i-b_j\rVert,\; \max_j \min_i \lVert a_i-b_j\rVert\Bigr)

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The two groups of rows.

    Returns
    -------
    float
        The larger of both directions.

    Notes
    -----
    O(n_a n_b d) at worst, usually far less: a row is discarded as soon as a row of the other group is closer to it than
    the largest nearest distance found so far. A single outlier determines it: blind to everything else.

    References
    ----------
    Taha and Hanbury, *An efficient algorithm for calculating the exact Hausdorff distance* (2015).
    """
    a, b = as_row_pair(a, b)
    squares = SquaredDistances.between(a, b)
    with map_threads(1):
        return math.sqrt(_find_farthest(squares, _find_farthest(squares.flip(), 0.0)))


def _find_farthest(squares: SquaredDistances, bound: float) -> float:
    """Largest squared distance from a row on the right to its nearest on the left, or `bound` if all are smaller."""
    order = np.random.default_rng(0).permutation(len(squares.left))
    nearest = np.full(len(squares.right), np.inf)  # among the rows visited so far
    rows = np.arange(len(nearest))
    lonely = squares.norm_b  # outliers are the likely winners; later, rows whose nearest is far
    visited, step = 0, FIRST_VISIT
    while visited < len(order):
        number = PROBES[visited > 0]
        probes = rows[np.argpartition(lonely, -number)[-number:]] if len(rows) > number else rows
        nearest[probes] = squares.flip().compute_block(probes, slice(None)).min(axis=1)
        bound = float(nearest[probes].max(initial=bound))
        if len(rows) <= number:
            break
        _visit(squares, order[visited : visited + step], rows, nearest)
        rows = rows[nearest[rows] > bound]
        lonely = nearest[rows]
        visited, step = visited + step, step * VISIT_GROWTH
    return float(nearest[rows].max(initial=bound))


def _visit(squares: SquaredDistances, left: IndexArray, right: IndexArray, nearest: FloatArray) -> None:
    """Lower `nearest` of some rows on the right by their distances to some on the left, in place."""
    wide = VISIT_BLOCK_PAIRS // min(VISIT_BLOCK_ROWS, len(left))

    def lower(start: int) -> None:
        columns = right[start : start + wide]
        where = slice(columns[0], columns[-1] + 1) if columns[-1] - columns[0] == len(columns) - 1 else columns
        for begin in range(0, len(left), VISIT_BLOCK_ROWS):
            block = squares.compute_block(left[begin : begin + VISIT_BLOCK_ROWS], where)
            nearest[where] = np.minimum(nearest[where], block.min(axis=0))

    starts = range(0, len(right), wide)
    with map_threads(len(starts) if len(left) * len(right) > MIN_PARALLEL_PAIRS else 1) as apply:
        list(apply(lower, starts))


def chamfer(a: Any, b: Any) -> float:
    r"""Chamfer distance: the mean distance from a row to the other group.

    .. math:: \frac12\Bigl(\frac1{n_A}\sum_i \min_j \lVert a_i-b_j\rVert
              + \frac1{n_B}\sum_j \min_i \lVert a_i-b_j\rVert\Bigr)

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The two groups of rows.

    Returns
    -------
    float
        The average of both directions; distances, not their squares.

    Notes
    -----
    O(n_a n_b d), in memory linear in the rows; one pass serves both directions. Blind to density:
    a group and any subset that keeps its outline are close. In many dimensions two samples of the same distribution are
    far apart, but less so with more rows.

    References
    ----------
    Barrow, Tenenbaum, Bolles and Wolf, *Parametric correspondence and chamfer matching* (1977).
    """
    a, b = as_row_pair(a, b)
    nearest_a, nearest_b = np.full(len(a), np.inf), np.full(len(b), np.inf)

    def minima(squares: FloatArray, rows: slice, columns: slice) -> tuple[slice, FloatArray, slice, FloatArray]:
        return rows, squares.min(axis=1), columns, squares.min(axis=0)

    for rows, of_rows, columns, of_columns in map_blocks(minima, a, b):
        nearest_a[rows] = np.minimum(nearest_a[rows], of_rows)
        nearest_b[columns] = np.minimum(nearest_b[columns], of_columns)
    return float(np.sqrt(nearest_a).mean() + np.sqrt(nearest_b).mean()) / 2
