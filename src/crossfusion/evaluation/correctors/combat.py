"""ComBat: location and scale of each feature, shrunk towards what all features of a domain have in common."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from crossfusion._base import FloatArray, InputError, align_index, arg, label_text, warn
from crossfusion.evaluation.correctors.domains import Domains, as_codes, as_domains

TOLERANCE, MAX_STEPS = 1e-6, 1000  # relative change of the estimates, and steps until it


def combat(x: Any, domain: Any, *, reference: Any = None, covariate: Any = None) -> FloatArray:
    r"""ComBat: correct location and scale of each feature in each domain by parametric empirical Bayes.

    .. math:: x' = \frac{\hat\sigma}{\delta^*_d}\,(z - \gamma^*_d) + \hat\alpha, \qquad z = (x - \hat\alpha)/\hat\sigma

    Parameters
    ----------
    x : array of shape (rows, dim)
        Rows of all domains, at least two per domain.
    domain : array of shape (rows,)
        The domain of each row.
    reference : optional
        The domain to align with; its rows are not changed.
    covariate : array of shape (rows,), optional
        A known property of each row, such as the tissue, whose effect is kept. Do not pass the label that a model is to
        predict: it is unknown in a new domain, and a correction that has seen it cannot be judged by it.

    Returns
    -------
    array of shape (rows, dim)
        Corrected rows; features that are constant within domains are only centered.

    Notes
    -----
    Linear in rows and features for each iteration of the estimates. Means are shrunk, not set equal, so CFD becomes
    small but not zero.

    References
    ----------
    Johnson, Li and Rabinovic, *Adjusting batch effects in microarray expression data using empirical Bayes methods*
    (2007).
    """
    (covariate,) = align_index("x", x, covariate=covariate)
    found = as_domains(x, domain)
    _check_rows(found)
    goal = None if reference is None else found.number(reference, "reference")
    expected, location = _fit_location(found, covariate, goal)
    residuals = found.x - expected - location[found.code]
    variance = np.mean(np.square(residuals if goal is None else residuals[found.rows(goal)]), axis=0)
    flat = variance <= 1e-24 * np.abs(found.x).max(axis=0) ** 2
    scale = np.sqrt(np.where(flat, 1.0, variance))
    z = (found.x - expected) / scale
    for k in range(len(found.names)):
        if k != goal:
            rows = found.rows(k)
            z[rows] = _remove_effect(z[rows], ~flat)
    corrected: FloatArray = z * scale + expected
    if goal is not None:
        corrected[found.rows(goal)] = found.x[found.rows(goal)]
    return corrected


def _check_rows(found: Domains) -> None:
    for name, count in zip(found.names, found.counts, strict=True):
        if count < 2:
            raise InputError(
                problem=f"domain {label_text(name)!r} has one row, which has no scale",
                remedy="leave it out, or use center",
            )


def _fit_location(found: Domains, covariate: Any, goal: int | None) -> tuple[FloatArray, FloatArray]:
    """What each row is expected to be without its domain, and each domain's location around that."""
    kinds = len(found.names)
    design = np.eye(kinds)[found.code]
    if covariate is not None:
        levels, values = as_codes(covariate, len(found.x), "covariate")
        design = np.hstack([design, np.eye(len(values))[levels][:, 1:]])
        if np.linalg.matrix_rank(design) < design.shape[1]:
            raise InputError(
                "covariate",
                problem=f"cannot be told apart from {arg('domain')}",
                remedy="pass one whose values several domains share",
            )
    solution = np.linalg.lstsq(design, found.x, rcond=None)[0]
    means = solution[:kinds]
    grand = means[goal] if goal is not None else np.average(means, axis=0, weights=found.counts)
    return grand + design[:, kinds:] @ solution[kinds:], means - grand


@dataclass(frozen=True)
class _Prior:
    """What the features of one domain have in common: locations are normal, variances inverse gamma."""

    mean: float
    variance: float
    shape: float
    scale: float

    @classmethod
    def fit(cls, location: FloatArray, variance: FloatArray) -> "_Prior":
        """Estimate the prior by moments."""
        m, s2 = float(variance.mean()), float(variance.var(ddof=1))
        return cls(float(location.mean()), float(location.var(ddof=1)), (2 * s2 + m**2) / s2, (m * s2 + m**3) / s2)


def _remove_effect(z: FloatArray, spread: Any) -> FloatArray:
    """Standardized rows of one domain without its location and scale; features without spread only centered."""
    location, variance = z.mean(axis=0), np.where(spread, z.var(axis=0, ddof=1), 1.0)
    if spread.sum() > 1 and np.ptp(variance[spread]) > 0 and np.ptp(location[spread]) > 0:
        location[spread], variance[spread] = _estimate_posterior(location[spread], variance[spread], len(z))
    free = np.where(variance > 0, variance, 1.0)
    adjusted: FloatArray = (z - location) / np.sqrt(free)
    return adjusted


def _estimate_posterior(location: FloatArray, variance: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Conditional posterior means of location and variance, which are iterated until they agree."""
    prior = _Prior.fit(location, variance)
    gamma, delta = location, variance
    for _ in range(MAX_STEPS):
        weight = n * prior.variance
        new_gamma = (weight * location + delta * prior.mean) / (weight + delta)
        squares = (n - 1) * variance + n * (location - new_gamma) ** 2
        new_delta = (prior.scale + squares / 2) / (n / 2 + prior.shape - 1)
        change = max(_measure_change(new_gamma, gamma), _measure_change(new_delta, delta))
        gamma, delta = new_gamma, new_delta
        if change < TOLERANCE:
            return gamma, delta
    warn(f"the estimates of combat still change by {change:.1e} after {MAX_STEPS} steps", "interpret them with caution")
    return gamma, delta


def _measure_change(new: FloatArray, old: FloatArray) -> float:
    """Largest change, relative to the largest value."""
    return float(np.abs(new - old).max() / max(np.abs(new).max(), 1e-300))
