"""Corrections of each feature by itself: location, and location with scale."""

from typing import Any

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.evaluation.correctors.domains import as_domains


def none(x: Any, domain: Any) -> FloatArray:
    """Leave rows unchanged: the baseline for every correction.

    Parameters
    ----------
    x : array of shape (rows, dim)
        Rows of all domains.
    domain : array of shape (rows,)
        The domain of each row.

    Returns
    -------
    array of shape (rows, dim)
        A copy of the rows.

    Notes
    -----
    Costs one copy of the rows.
    """
    return as_domains(x, domain).x.copy()


def center(x: Any, domain: Any, *, reference: Any = None) -> FloatArray:
    r"""Center each domain: every domain gets the same mean.

    .. math:: x' = x - \mu_d + \mu

    Parameters
    ----------
    x : array of shape (rows, dim)
        Rows of all domains.
    domain : array of shape (rows,)
        The domain of each row.
    reference : optional
        The domain whose mean every domain gets; by default the mean of all rows.

    Returns
    -------
    array of shape (rows, dim)
        Corrected rows.

    Notes
    -----
    Linear in rows and features. CFD compares means only, so this makes CFD zero by construction, whatever other
    differences remain. If domains hold different mixes of labels, it moves rows of one label onto those of another.
    """
    found = as_domains(x, domain)
    own = None if reference is None else found.rows(found.number(reference, "reference"))
    target = found.x.mean(axis=0) if own is None else _compute_mean(found.x, own)
    moved = found.x.copy()
    for number in range(len(found.names)):
        rows = found.rows(number)
        moved[rows] += target - _compute_mean(found.x, rows)
    return moved


def standardize(x: Any, domain: Any, *, reference: Any = None) -> FloatArray:
    r"""Standardize each domain: every feature gets the same mean and standard deviation in all domains.

    .. math:: x' = (x - \mu_d) / \sigma_d

    Parameters
    ----------
    x : array of shape (rows, dim)
        Rows of all domains.
    domain : array of shape (rows,)
        The domain of each row.
    reference : optional
        The domain whose means and standard deviations every domain gets; by default 0 and 1.

    Returns
    -------
    array of shape (rows, dim)
        Corrected rows; a feature that is constant within a domain gets the target's mean there.

    Notes
    -----
    Linear in rows and features. Makes CFD zero by construction, as ``center`` does.
    """
    found = as_domains(x, domain)
    scaled = np.empty_like(found.x)
    for number in range(len(found.names)):
        rows = found.rows(number)
        scaled[rows] = _standardize_rows(found.x[rows])
    if reference is None:
        return scaled
    own = found.rows(found.number(reference, "reference"))
    restored: FloatArray = scaled * found.x[own].std(axis=0) + _compute_mean(found.x, own)
    return restored


def _compute_mean(x: FloatArray, rows: Any) -> FloatArray:
    mean: FloatArray = x[rows].mean(axis=0)
    return mean


def _standardize_rows(rows: FloatArray) -> FloatArray:
    """Standard scores; zero where a feature has no spread beyond rounding."""
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    flat = spread <= 1e-12 * np.abs(rows).max(axis=0)
    scores: FloatArray = (rows - mean) / np.where(flat, 1.0, spread)
    return np.where(flat, 0.0, scores)
