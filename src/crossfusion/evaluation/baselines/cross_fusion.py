"""The Cross-Fusion Distance as one number among others."""

from typing import Any

from crossfusion._base import InputError
from crossfusion.arrays import distance


def cfd(a: Any, b: Any, *, trim: float = 0.0) -> float:
    r"""Cross-Fusion Distance of the paper: the plug-in estimate with pooled weights.

    .. math:: \log\Bigl(1 + \frac{w_A w_B \lVert\mu_A-\mu_B\rVert^2}{w_A\sigma_A^2 + w_B\sigma_B^2}\Bigr)

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The two groups of rows.
    trim : float
        Share of each group's rows to leave out, those farthest from the mean.

    Returns
    -------
    float
        The distance; infinite if neither group has any variance.

    Notes
    -----
    Linear in rows and features. Blind to everything except means and total variance: groups with equal means and
    different shapes are at distance zero. Pooled weights depend on imbalance, and the plug-in estimate is positive
    without a shift.

    References
    ----------
    Zhang, Zhang and Song, *Cross-Fusion Distance* (2026).
    """
    return float(distance.cfd(a, b, trim=trim))


def cfd_unbiased(a: Any, b: Any, *, trim: float = 0.0) -> float:
    """Unbiased estimate of the Cross-Fusion Distance; small negative values are expected.

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The two groups. If one of them has one row, it borrows the variance of the other.
    trim : float
        Share of each group's rows to leave out, those farthest from the mean.

    Returns
    -------
    float
        The distance.

    Notes
    -----
    Linear in rows and features. Blind to the same differences as ``cfd``.

    References
    ----------
    The page "Mathematics" of the documentation.
    """
    found = distance.cfd(a, b, trim=trim)
    if found.unbiased is None:
        raise InputError(problem=f"cfd_unbiased is undefined: {found.reason}", remedy="pass more rows")
    return found.unbiased


def cfd_balanced(a: Any, b: Any, *, trim: float = 0.0) -> float:
    """Plug-in Cross-Fusion Distance with the same weight for both groups, whatever their sizes.

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The two groups of rows.
    trim : float
        Share of each group's rows to leave out, those farthest from the mean.

    Returns
    -------
    float
        The plug-in distance.

    Notes
    -----
    Linear in rows and features. Blind to shapes, like ``cfd``. Imbalance does not change it, except that the
    bias of the plug-in estimate grows as the smaller group shrinks.

    References
    ----------
    The page "Mathematics" of the documentation.
    """
    return float(distance.cfd(a, b, weights="balanced", trim=trim))
