"""Confidence limits and p-values of all pairs of groups with independent rows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from crossfusion._base import CodeArray
from crossfusion.arrays.distance import cfd
from crossfusion.arrays.permutation import permutation_test
from crossfusion.fusion import Fusion, Pairwise
from crossfusion.inference import TestResult, add_pair_tests, ask_pairs, fill_matrix

T = TypeVar("T")


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
) -> Pairwise:
    """Add confidence limits and p-values of all pairs, from the rows and the codes of their groups.

    `progress` is called after each interval and each test.
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
        return report_done(cfd(x, labels=labels, given=strata, weights=weights, level=level))

    def test(a: int, b: int, number: int) -> TestResult:
        x, labels, strata = select(a, b)
        tested = permutation_test(x, labels, strata=strata, permutations=number, seed=seed, statistic=statistic)
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
