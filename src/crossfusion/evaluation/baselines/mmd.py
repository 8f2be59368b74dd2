"""Maximum mean discrepancy with a Gaussian kernel."""

import math
from typing import Any

import numpy as np

from crossfusion._base import FloatArray, InputError, as_row_pair, check_positive
from crossfusion.evaluation.baselines.median_distance import find_median_distance
from crossfusion.evaluation.baselines.pair_distances import ROUNDING, map_pairs


def mmd(a: Any, b: Any, *, bandwidth: float | None = None) -> float:
    r"""Maximum mean discrepancy (the square root of the biased estimate).

    .. math:: \Bigl(\frac1{n_A^2}\sum_{ij} k(a_i,a_j) + \frac1{n_B^2}\sum_{ij} k(b_i,b_j)
              - \frac2{n_A n_B}\sum_{ij} k(a_i,b_j)\Bigr)^{1/2}, \qquad k(x,y) = e^{-\lVert x-y\rVert^2/2h^2}

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The two groups of rows.
    bandwidth : float, optional
        The kernel's h; by default the exact median of the distances between all pairs of pooled rows.

    Returns
    -------
    float
        The square root, between 0 and √2; two samples of the same distribution are at about √((1 - E k)(1/n_A +
        1/n_B)).

    Notes
    -----
    O((n_a + n_b)² d), twice without a `bandwidth`, in memory linear in the rows. Saturates once the groups are several
    bandwidths apart. Blind to structure much finer or much coarser than h, and in high dimensions, where all distances
    are about h, to most differences other than a shift.

    References
    ----------
    Gretton, Borgwardt, Rasch, Schölkopf and Smola, *A kernel two-sample test* (2012).
    Garreau, Jitkrittum and Kanagawa, *Large sample analysis of the median heuristic* (2018).
    """
    a, b = as_row_pair(a, b)
    between, within_a, within_b = _sum_kernel(a, b, bandwidth)
    mean_a, mean_b = ((len(rows) + 2 * part) / len(rows) ** 2 for rows, part in ((a, within_a), (b, within_b)))
    square = mean_a + mean_b - 2 * between / (len(a) * len(b))
    return math.sqrt(square) if square > ROUNDING else 0.0  # equal groups: what is left is rounding, of either sign


def mmd2_unbiased(a: Any, b: Any, *, bandwidth: float | None = None) -> float:
    r"""Unbiased estimate of the squared maximum mean discrepancy; small negative values are expected.

    .. math:: \frac1{n_A(n_A-1)}\sum_{i\ne j} k(a_i,a_j) + \frac1{n_B(n_B-1)}\sum_{i\ne j} k(b_i,b_j)
              - \frac2{n_A n_B}\sum_{ij} k(a_i,b_j)

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The two groups, with at least two rows each.
    bandwidth : float, optional
        The kernel's h, as in ``mmd``.

    Returns
    -------
    float
        The squared discrepancy; its expectation is 0 for samples of the same distribution.

    Notes
    -----
    O((n_a + n_b)² d) in linear memory. Blind to the same differences as ``mmd``.

    References
    ----------
    Gretton, Borgwardt, Rasch, Schölkopf and Smola, *A kernel two-sample test* (2012), lemma 6.
    """
    a, b = as_row_pair(a, b)
    for name, rows in {"a": a, "b": b}.items():
        if len(rows) < 2:
            raise InputError(
                name, problem="has one row, but mmd2_unbiased needs two", remedy="pass two or more, or use mmd"
            )
    between, within_a, within_b = _sum_kernel(a, b, bandwidth)
    mean_a, mean_b = (2 * part / (len(rows) * (len(rows) - 1)) for rows, part in ((a, within_a), (b, within_b)))
    return mean_a + mean_b - 2 * between / (len(a) * len(b))


def _sum_kernel(a: FloatArray, b: FloatArray, bandwidth: float | None) -> tuple[float, ...]:
    """Sums of the kernel over the pairs between the groups and the pairs i < j within each."""
    if bandwidth is None:
        bandwidth = _choose_bandwidth(a, b)
    check_positive(bandwidth, "bandwidth")
    width = float(bandwidth)

    def kernel_sum(squares: FloatArray) -> float:
        with np.errstate(over="ignore", under="ignore"):
            squares /= width  # twice, as the square of a tiny or huge width is out of range
            squares /= -2 * width
            return float(np.exp(squares, out=squares).sum())

    return tuple(map(math.fsum, map_pairs(kernel_sum, a, b)))


def _choose_bandwidth(a: FloatArray, b: FloatArray) -> float:
    median = find_median_distance(a, b)
    if median > 0:
        return median
    if (a == a[0]).all() and (b == a[0]).all():
        return 1.0  # every distance is zero, and every bandwidth gives the same
    raise InputError(
        problem="the median distance between rows is 0, most of them being equal", remedy="pass a bandwidth"
    )
