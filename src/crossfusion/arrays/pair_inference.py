"""Confidence limits and p-values of all pairs of groups with independent rows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from crossfusion._base import CodeArray
from crossfusion.arrays.distance import cfd, compare_in_scale
from crossfusion.arrays.permutation import permutation_test
from crossfusion.fusion import FeatureScale, Fusion, Pairwise, compare_pairs, leave_out_cells, restore_labels
from crossfusion.inference import MIN_CELL_ROWS, TestResult, add_pair_tests, ask_pairs, fill_matrix
from crossfusion.summary import Factors, Summary

T = TypeVar("T")


def leave_out_small_groups(
    summary: Summary,
    between: Factors,
    given: Factors | None,
    group: CodeArray,
    stratum: CodeArray | None,
    weights: str,
    scale: str | None = None,
) -> tuple[Pairwise, CodeArray, FeatureScale | None]:
    """Compute the distances of pairs without groups (in a stratum) of too few rows for an interval.

    Returns them, the codes of the rows' groups, -1 for rows that are left out, and the scale of the features.
    """
    design = summary._make_design(between, given)
    kept, excluded = leave_out_cells(design, design.cells.count, MIN_CELL_ROWS, of="rows")
    compared = design.select(kept)
    if scale is not None:
        compared = compared.standardize(compared.weights(weights))
    result = replace(compare_pairs(compared, weights=weights), excluded=excluded)
    cell = group if stratum is None else group.astype(np.int64) * (int(stratum.max()) + 1) + stratum
    _, place, count = np.unique(cell, return_inverse=True, return_counts=True)
    codes = np.where(count[place] < MIN_CELL_ROWS, -1, group)
    return restore_labels(result, design.labels), codes, compared.scale


def infer_pairs(
    result: Pairwise,
    rows: Any,
    group: CodeArray,
    stratum: CodeArray | None,
    *,
    weights: str,
    level: float | None,
    permutations: int | None,
    seed: int,
    statistic: str,
    adjust: str,
    progress: Callable[[int], None] | None = None,
    scale: FeatureScale | None = None,
) -> Pairwise:
    """Add confidence limits and p-values of all pairs, from the rows and the codes of their groups.

    `progress` is called after each interval and each test. Limits are in the `scale` of all groups; a test has its own.
    """

    def select(a: int, b: int) -> tuple[Any, Any, Any]:
        own = np.flatnonzero((group == a) | (group == b))
        return rows[own], group[own], None if stratum is None else stratum[own]

    def report_done(done: T) -> T:
        if progress is not None:
            progress(1)
        return done

    def measure(a: int, b: int) -> Fusion:
        x, labels, strata = select(a, b)
        if scale is None or level is None:
            return report_done(cfd(x, labels=labels, given=strata, weights=weights, level=level))
        return report_done(compare_in_scale(x, labels, strata, weights=weights, level=level, scale=scale))

    def test(a: int, b: int, number: int) -> TestResult:
        x, labels, strata = select(a, b)
        options: dict[str, Any] = {"permutations": number, "seed": seed, "statistic": statistic}
        tested = permutation_test(x, labels, given=strata, **options, scale=result.scale)
        return tested if number != permutations else report_done(tested)  # once per pair

    if level is not None:
        found = ask_pairs(result, measure, "an interval")
        limits = np.array([[*(fusion.interval or (np.nan, np.nan)), fusion.stderr] for fusion in found.values()])
        lower, upper, stderr = (
            fill_matrix(result, dict(zip(found, values.tolist(), strict=True)), 0.0) for values in limits.T
        )
        result = replace(result, level=level, lower=lower, upper=upper, stderr=stderr)
    if permutations is not None:
        result = add_pair_tests(result, test, permutations, adjust)
    return result
