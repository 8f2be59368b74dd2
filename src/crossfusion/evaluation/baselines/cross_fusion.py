"""The Cross-Fusion Distance as one number among others."""

from typing import Any

from crossfusion._base import InputError
from crossfusion.arrays import distance


def cfd(a: Any, b: Any, *, trim: float = 0.0) -> float:
    r"""Cross-Fusion Distance, plug-in with pooled weights: the paper's.

    .. math:: \log\Bigl(1 + \frac{w_A w_B \lVert\mu_A-\mu_B\rVert^2}{w_A\sigma_A^2 + w_B\sigma_B^2}\Bigr)

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The two clouds.
    trim : float
        Share of each cloud's rows to leave out, those farthest from its mean.

    Returns
    -------
    float
        The distance; infinite if both clouds have no spread.

    Notes
    -----
    Linear in rows and features. Blind to everything but means and total spread: clouds of equal mean and different
    shape are at distance zero. Pooled weights react to imbalance, and the plug-in is positive without a shift.

    References
    ----------
    Zhang, Zhang and Song, *Cross-Fusion Distance* (2026).
    """
    return distance.cfd(a, b, trim=trim).distance


def cfd_unbiased(a: Any, b: Any, *, trim: float = 0.0) -> float:
    """Cross-Fusion Distance without the bias of small samples; slightly negative values are meant.

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The two clouds, of two rows or more.
    trim : float
        Share of each cloud's rows to leave out, those farthest from its mean.

    Returns
    -------
    float
        The distance.

    Notes
    -----
    Linear in rows and features, and blind to the same as ``cfd``.

    References
    ----------
    The page "Mathematics" of the documentation.
    """
    found = distance.cfd(a, b, trim=trim).unbiased
    if found is None:
        raise InputError(problem="cfd_unbiased is undefined for these rows", remedy="a and b need two rows or more")
    return found


def cfd_balanced(a: Any, b: Any, *, trim: float = 0.0) -> float:
    """Cross-Fusion Distance in which both clouds weigh the same, whatever their numbers of rows.

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The two clouds.
    trim : float
        Share of each cloud's rows to leave out, those farthest from its mean.

    Returns
    -------
    float
        The distance, plug-in.

    Notes
    -----
    Linear in rows and features. Blind to shapes as ``cfd`` is, but not moved by imbalance, except that the bias of the
    plug-in grows as the smaller cloud shrinks.

    References
    ----------
    The page "Mathematics" of the documentation.
    """
    return distance.cfd(a, b, weights="balanced", trim=trim).distance
