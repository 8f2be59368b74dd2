"""Permutation test for a difference in spread between groups, the companion of the test of their means."""

from dataclasses import replace
from typing import Any

import numpy as np

from crossfusion._base import FloatArray, RowLens, accept_old_names, align_index, as_lens_rows, check_lens, factors
from crossfusion.arrays.frame_columns import take_columns
from crossfusion.arrays.permutation import (
    drop_units,
    leave_out_units,
    make_codes,
    make_design,
    make_keys,
    reduce_finite,
)
from crossfusion.fusion import MIN_UNITS, Codes, Design, check_min_units
from crossfusion.inference import Entries, TestResult, check_test_options, find_exchangeable, run_test
from crossfusion.moments import Moments, reduce_groups, squared_distance_to_mean


@accept_old_names(strata="given")
def dispersion_test(
    x: Any,
    labels: Any,
    *,
    units: Any = None,
    given: Any = None,
    permutations: int = 999,
    seed: int = 0,
    min_units: int = MIN_UNITS,
    lens: RowLens | None = None,
) -> TestResult:
    r"""Test whether groups differ in the distance of rows from their centroid.

    The statistic is the F of an analysis of variance of :math:`z_i = \lVert x_i - \mu_{k(i)} \rVert`,

    .. math:: F = \frac{\sum_k n_k (\bar z_k - \bar z)^2 / (K - 1)}{\sum_k \sum_{i \in k} (z_i - \bar z_k)^2 / (N - K)},

    as in PERMDISP with centroids on Euclidean distances [1]_.

    Parameters
    ----------
    x : array of shape (rows, dim)
        The rows.
    labels : array of shape (rows,)
        The group of each row, or the name of a column if `x` is a pandas, Polars or PyArrow table; the same goes for
        `units` and `given`. Named columns are not features.
    units : array of shape (rows,), optional
        The unit of each row, such as the patient. All rows of a unit are relabeled together. Each unit must have one
        label.
    given : array of shape (rows,), optional
        The stratum of each row: centroids are computed per group and stratum, and labels permuted within strata.
    permutations : int
        Number of random permutations. If there are at most `permutations` + 1 in all, each is used once instead.
    seed : int
        Seed of the random permutations.
    min_units : int
        Minimum number of units, or of rows without `units`, per label (and stratum), at least 2. Labels with fewer are
        left out and named in `excluded`.
    lens : crossfusion.lens.Lens, optional
        A map that is applied to the rows first.

    Returns
    -------
    TestResult
        Statistic, p-value, and the statistic under each permutation; `distance` is the CFD of z, not of the rows.

    Notes
    -----
    Groups with equal means may still differ in spread, which `permutation_test` does not see: report both tests.

    The distances z are permuted, not the rows, so that a difference in position has no effect. Rows are closer to their
    estimated centroid than to the true one, especially in small groups with many features. The factor √(1 − 1/n) (or
    its estimate from units) is removed before permuting and reapplied for the new group. The level is approximate:
    slightly above nominal if groups have fewer than about thirty rows or units. The cost of reading the rows is linear
    in rows × dim; the permutations need only z.

    References
    ----------
    .. [1] M. J. Anderson, "Distance-based tests for homogeneity of multivariate dispersions", Biometrics 62, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(size=(100, 16)), rng.normal(scale=1.5, size=(100, 16))])
    >>> labels = np.repeat(["narrow", "wide"], 100)
    >>> cf.dispersion_test(x, labels).pvalue
    0.001
    >>> round(cf.permutation_test(x, labels).pvalue, 1)  # the means are equal
    0.6
    """
    check_test_options(permutations, seed, "pseudo-f")
    check_min_units(min_units)
    check_lens(lens, adds_factors=False)
    x, labels, units, given = take_columns(x, labels=labels, units=units, given=given)
    rows, _ = as_lens_rows(x, "x", lens)
    labels, units, given = align_index("x", x, labels=labels, units=units, given=given)
    keys = make_keys(rows, labels=labels, given=given, units=units)
    rows, keys, excluded = leave_out_units(rows, keys, min_units)
    cell, cells = factors.encode(drop_units(keys))
    moments = reduce_finite(rows, cell, cells.num_rows)
    make_design(moments, cells).check_groups()
    label, stratum, unit = make_codes(keys)
    items = find_exchangeable(label, stratum, unit, crossed=False)
    distance = np.sqrt(squared_distance_to_mean(rows, cell, moments.mean))[:, None]
    design = make_design(reduce_groups(distance, cell, cells.num_rows, name="x")[0], cells)
    shrunk = _estimate_shrinkage(rows, moments, cell, unit)
    values = Entries(distance / shrunk[cell][:, None], stratum, shrink=_arrange_by_stratum(shrunk, design))
    tested = run_test(design, values, items, permutations=permutations, seed=seed, statistic="pseudo-f")
    return replace(tested, excluded=excluded)


def _estimate_shrinkage(rows: Any, moments: Moments, cell: Codes, unit: Codes | None) -> FloatArray:
    """Estimate by what factor the rows of each cell are closer to the estimated centroid than to the true one.

    It is √(σ² / (σ² + V)), for variance σ² and squared error V of the mean: √(1 − 1/n) for n independent rows.
    """
    if unit is None:
        error = 1 / np.maximum(moments.count - 1, 1)
    else:
        width = int(unit.max()) + 1
        pair, codes = np.unique(cell.astype(np.int64) * width + unit, return_inverse=True)
        owner = pair // width
        unit_moments = reduce_groups(rows, codes.astype(np.int32), len(pair), name="x")[0]
        number = np.bincount(owner).astype(np.float64)
        gap = (unit_moments.mean - moments.mean[owner]) * (unit_moments.count / moments.count[owner])[:, None]
        squares = np.bincount(owner, weights=np.einsum("ij,ij->i", gap, gap)) * number / np.maximum(number - 1, 1)
        variance = moments.dispersion
        error = np.divide(squares, variance, out=np.zeros_like(squares), where=variance > 0)
    return np.asarray(1 / np.sqrt(1 + error))


def _arrange_by_stratum(shrunk: FloatArray, design: Design) -> FloatArray:
    table = np.ones((int(design.stratum.max()) + 1, len(design.labels)))
    table[design.stratum, design.group] = shrunk
    return table
