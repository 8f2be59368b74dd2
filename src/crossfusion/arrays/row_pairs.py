"""Limits and p-values of all pairs of groups whose rows are independent."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from crossfusion._base import CodeArray
from crossfusion.arrays.distance import cfd
from crossfusion.arrays.permutation import permutation_test
from crossfusion.fusion import Fusion, Pairwise
from crossfusion.inference import TestResult, add_pvalues, fill_matrix, test_pairs


def number_of_pairs(result: Pairwise) -> int:
    """Pairs that share a stratum."""
    return int(np.sum(result.overlap > 0) - len(result.labels)) // 2


def pairs_of_rows(
    result: Pairwise,
    rows: Any,
    group: CodeArray,
    stratum: CodeArray | None,
    *,
    weights: str,
    level: float | None,
    permutations: int | None,
    seed: int,
    adjust: str,
    progress: Callable[[int], None] | None = None,
) -> Pairwise:
    """The distances of all pairs with their limits and p-values, from the rows and the codes of their groups.

    `progress` is told each interval and each test that is done.
    """

    def chosen(a: int, b: int) -> tuple[Any, Any, Any]:
        own = np.flatnonzero((group == a) | (group == b))
        return rows[own], group[own], None if stratum is None else stratum[own]

    def told(done: Any) -> Any:
        if progress is not None:
            progress(1)
        return done

    def fusion_of(a: int, b: int) -> Fusion:
        x, labels, strata = chosen(a, b)
        fusion: Fusion = told(cfd(x, labels=labels, given=strata, weights=weights, level=level))
        return fusion

    def test_of(a: int, b: int) -> TestResult:
        x, labels, strata = chosen(a, b)
        tested: TestResult = told(permutation_test(x, labels, strata=strata, permutations=permutations or 0, seed=seed))
        return tested

    if level is not None:
        found = test_pairs(result, fusion_of, "an interval")
        limits = np.array([[*(fusion.interval or (np.nan, np.nan)), fusion.stderr] for fusion in found.values()])
        lower, upper, stderr = (
            fill_matrix(result, dict(zip(found, values.tolist(), strict=True)), 0.0) for values in limits.T
        )
        result = replace(result, level=level, lower=lower, upper=upper, stderr=stderr)
    if permutations is not None:
        result = add_pvalues(result, test_pairs(result, test_of, "a test"), permutations, adjust)
    return result
