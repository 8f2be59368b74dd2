"""Corrections that align covariances: CORAL, and the alignment of principal subspaces."""

from typing import Any

import numpy as np

from crossfusion._base import FloatArray, InputError, check_positive, check_whole, count_text, label_text
from crossfusion.evaluation.correctors.domains import Domains, as_domains

DEFAULT_DIM = 50  # of the subspaces, where nothing else is asked for


def coral(x: Any, domain: Any, *, reference: Any = None, ridge: float = 1.0) -> FloatArray:
    r"""CORAL: whiten each domain, then give it the covariance and mean of the reference.

    .. math:: x' = (x - \mu_d)\,(C_d + \lambda_d I)^{-1/2}\,(C + \lambda I)^{1/2} + \mu

    Parameters
    ----------
    x : array of shape (rows, dim)
        Rows of all domains.
    domain : array of shape (rows,)
        The domain of each row.
    reference : optional
        The domain to align with; its rows are not changed. By default the mean of all rows, and the average of the
        domains' covariances weighted by rows.
    ridge : float
        Added to the diagonal of a covariance, in units of its mean variance, so that it can be inverted with fewer
        rows than features. The smaller it is, the closer the covariances agree and the more noise in directions of
        small variance is amplified.

    Returns
    -------
    array of shape (rows, dim)
        Corrected rows.

    Notes
    -----
    Cubic in the features, for each domain. On standardized features, ``ridge=1`` is the identity matrix that the
    authors add. They assume centered features, so means are aligned here too, which makes CFD zero by
    construction.

    References
    ----------
    Sun, Feng and Saenko, *Return of frustratingly easy domain adaptation* (2016).
    """
    check_positive(ridge, "ridge")
    found = as_domains(x, domain)
    covariances = [_compute_covariance(found.x[found.rows(k)]) for k in range(len(found.names))]
    goal = _find_reference(found, reference)
    if goal is None:
        target, center = np.average(covariances, axis=0, weights=found.counts), found.x.mean(axis=0)
    else:
        target, center = covariances[goal], found.x[found.rows(goal)].mean(axis=0)
    color = _raise_to_power(target, ridge, 0.5)
    aligned = found.x.copy()
    for k, covariance in enumerate(covariances):
        if k != goal:
            rows = found.rows(k)
            whitened = (found.x[rows] - found.x[rows].mean(axis=0)) @ _raise_to_power(covariance, ridge, -0.5)
            aligned[rows] = whitened @ color + center
    return aligned


def subspace(x: Any, domain: Any, *, reference: Any = None, dim: int | None = None) -> FloatArray:
    r"""Subspace alignment: rotate the principal axes of each domain towards those of the reference.

    .. math:: x' = (x - \mu_d)\,P_d\,P_d^\top P

    Parameters
    ----------
    x : array of shape (rows, dim)
        Rows of all domains.
    domain : array of shape (rows,)
        The domain of each row.
    reference : optional
        The domain to align with; by default the principal axes of all rows, each domain centered.
    dim : int, optional
        Number of principal axes; by default 50, or as many as rows and features allow.

    Returns
    -------
    array of shape (rows, number of axes)
        Coordinates along the reference's axes: fewer features than `x` has.

    Notes
    -----
    Cubic in the features, for each domain. Domains are centered, which makes CFD zero by construction.

    References
    ----------
    Fernando, Habrard, Sebban and Tuytelaars, *Unsupervised visual domain adaptation using subspace alignment* (2013).
    """
    found = as_domains(x, domain)
    goal = _find_reference(found, reference)
    size = _choose_subspace_size(found, dim)
    centered = found.x.copy()
    for k in range(len(found.names)):
        centered[found.rows(k)] -= found.x[found.rows(k)].mean(axis=0)
    target = _find_axes(centered if goal is None else centered[found.rows(goal)], size)
    aligned = np.empty((len(centered), size))
    for k in range(len(found.names)):
        own = target if k == goal else _find_axes(centered[found.rows(k)], size)
        aligned[found.rows(k)] = (centered[found.rows(k)] @ own) @ (own.T @ target)
    return aligned


def _find_reference(found: Domains, reference: Any) -> int | None:
    return None if reference is None else found.number(reference, "reference")


def _compute_covariance(rows: FloatArray) -> FloatArray:
    centered = rows - rows.mean(axis=0)
    product: FloatArray = centered.T @ centered / len(rows)
    return product


def _raise_to_power(covariance: FloatArray, ridge: float, power: float) -> FloatArray:
    """A power of a covariance with its ridge; of one without any spread, the identity."""
    mean = np.trace(covariance) / len(covariance)
    if mean == 0:
        return np.eye(len(covariance))
    values, vectors = np.linalg.eigh(covariance)
    found: FloatArray = (vectors * (np.maximum(values, 0) + ridge * mean) ** power) @ vectors.T
    return found


def _find_axes(centered: FloatArray, size: int) -> FloatArray:
    """Leading principal axes as columns."""
    if len(centered) < centered.shape[1]:
        _, _, directions = np.linalg.svd(centered, full_matrices=False)
        return np.ascontiguousarray(directions[:size].T)
    _, vectors = np.linalg.eigh(centered.T @ centered)
    return np.ascontiguousarray(vectors[:, ::-1][:, :size])


def _choose_subspace_size(found: Domains, dim: int | None) -> int:
    least = int(np.argmin(found.counts))
    most = min(found.counts[least] - 1, int(found.x.shape[1]))
    if most < 1:
        raise InputError(
            problem=f"domain {label_text(found.names[least])!r} has one row, which spans no subspace",
            remedy="leave it out",
        )
    if dim is None:
        return min(DEFAULT_DIM, int(most))
    check_whole(dim, "dim")
    if dim > most:
        raise InputError(
            "dim",
            dim,
            f"is more than the {most} axes that {count_text(found.x.shape[1], 'feature')} and {found.counts[least]}"
            f" rows of domain {label_text(found.names[least])!r} allow",
            "ask for fewer",
        )
    return int(dim)
