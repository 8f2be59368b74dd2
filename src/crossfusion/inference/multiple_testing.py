"""Adjustment of p-values for multiple testing."""

from typing import Any

import numpy as np

from crossfusion._base import FloatArray, InputError, check_option

ADJUSTMENTS = ("holm", "bh")


def adjusted_pvalues(pvalues: Any, *, method: str = "holm") -> FloatArray:
    r"""Adjust p-values for the number of tests.

    With the m p-values in ascending order,

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min\bigl(1, (m - j + 1)\,p_{(j)}\bigr)
              \quad\text{(Holm)},\qquad
              \tilde p_{(i)} = \min_{j \ge i} \min\bigl(1, \tfrac{m}{j}\,p_{(j)}\bigr)
              \quad\text{(Benjamini–Hochberg)}.

    Parameters
    ----------
    pvalues : array
        P-values, in any shape; NaN marks a test that was not performed. For a symmetric matrix pass one triangle, such
        as ``p[numpy.triu_indices(len(p), 1)]``, so that no test counts twice.
    method : {"holm", "bh"}
        "holm" bounds the probability of any false rejection [1]_; "bh" (Benjamini and Hochberg) bounds the expected
        share of false rejections, for independent or positively dependent tests [2]_.

    Returns
    -------
    array
        Adjusted p-values in the same shape.

    References
    ----------
    .. [1] S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6,
       1979.
    .. [2] Y. Benjamini, Y. Hochberg, "Controlling the false discovery rate: a practical and powerful approach to
       multiple testing", Journal of the Royal Statistical Society B 57, 1995.

    Examples
    --------
    >>> import crossfusion as cf
    >>> cf.adjusted_pvalues([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    >>> cf.adjusted_pvalues([0.01, 0.04, 0.03], method="bh")
    array([0.03, 0.04, 0.04])
    """
    check_option(method, ADJUSTMENTS, "method")
    try:
        values = np.array(pvalues, np.float64)
    except (TypeError, ValueError) as problem:
        raise InputError(
            "pvalues", problem=f"cannot be read as numbers ({problem})", remedy="pass an array of p-values"
        ) from problem
    if ((values < 0) | (values > 1)).any():
        raise InputError("pvalues", problem="has values outside of 0 to 1", remedy="pass p-values")
    made = ~np.isnan(values)
    known = values[made]
    order = np.argsort(known)
    known[order] = (_adjust_holm if method == "holm" else _adjust_benjamini_hochberg)(known[order])
    values[made] = known
    return values


def _adjust_holm(ascending: FloatArray) -> FloatArray:
    left = np.arange(len(ascending), 0, -1)
    return np.minimum(1, np.maximum.accumulate(left * ascending))


def _adjust_benjamini_hochberg(ascending: FloatArray) -> FloatArray:
    rank = np.arange(1, len(ascending) + 1)
    stepped = len(ascending) / rank * ascending
    return np.minimum(1, np.minimum.accumulate(stepped[::-1])[::-1])
