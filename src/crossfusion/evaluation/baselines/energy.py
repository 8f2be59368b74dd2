"""The energy distance."""

import math
from typing import Any

import numpy as np

from crossfusion._base import FloatArray, as_row_pair
from crossfusion.evaluation.baselines.pair_distances import ROUNDING, map_pairs


def energy(a: Any, b: Any) -> float:
    r"""Energy distance (the square root).

    .. math:: \bigl(2\,E\lVert X-Y\rVert - E\lVert X-X'\rVert - E\lVert Y-Y'\rVert\bigr)^{1/2}

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The two groups; means run over all pairs of rows, including each row with itself.

    Returns
    -------
    float
        The square root; other libraries call its square the energy distance of two samples.

    Notes
    -----
    O((n_a + n_b)² d), in memory linear in the rows. It is zero only for equal distributions, so blind to nothing in
    principle; in high dimensions a shift outweighs any difference in shape. Its square grows with the scale of the
    features, and two samples of the same distribution are at a distance of about n^(-1/2) times the root of that scale.

    References
    ----------
    Székely and Rizzo, *Energy statistics: a class of statistics based on distances* (2013).
    """
    a, b = as_row_pair(a, b)
    between, within_a, within_b = map(math.fsum, map_pairs(_sum_roots, a, b))
    apart = 2 * between / (len(a) * len(b))
    square = apart - 2 * within_a / len(a) ** 2 - 2 * within_b / len(b) ** 2
    return math.sqrt(square) if square > ROUNDING * apart else 0.0


def _sum_roots(squares: FloatArray) -> float:
    return float(np.sqrt(squares, out=squares).sum())
