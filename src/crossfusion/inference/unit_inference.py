"""Intervals and tests of distances between groups, from the moments of units."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import TypeVar

import numpy as np

from crossfusion._base import FloatArray, InputError, warn
from crossfusion.fusion import (
    Design,
    Fusion,
    Pairwise,
    caution_about_equal_means,
    caution_about_geometry,
    caution_about_overlap,
    caution_about_spread,
    join_cautions,
)
from crossfusion.inference.intervals import Errors, add_interval, stack_errors
from crossfusion.inference.multiple_testing import adjusted_pvalues
from crossfusion.inference.permutation.exchangeable import is_crossed
from crossfusion.inference.permutation.result import TestResult, run_moment_test
from crossfusion.inference.unit_errors import UnitMoments, estimate_unit_bias, estimate_unit_errors

T = TypeVar("T")


def add_unit_errors(
    fusion: Fusion, units: UnitMoments, design: Design, weight: FloatArray, level: float | None
) -> Fusion:
    """Set the unbiased estimate, the caution and, at a level, the interval from units."""
    errors = estimate_unit_errors(units, design, weight).errors
    number = np.bincount(units.cell).astype(np.float64)
    freedom = 2 * float(errors.bias) ** 2 / float(errors.quadratic)  # of a scaled chi-square with these moments
    closeness = float(errors.between + errors.bias), float(errors.bias), freedom, float(errors.freedom)
    caution = join_cautions(
        caution_about_overlap(design),
        caution_about_equal_means(*closeness)
        or caution_about_spread(design, weight, float(errors.between) * fusion.within, number),
        caution_about_geometry(design, weight, estimate_unit_bias(units, design, weight), design.features),
    )
    return replace(add_interval(fusion, errors, level), caution=caution)


def run_unit_test(units: UnitMoments, design: Design, *, permutations: int, seed: int) -> TestResult:
    """Test the groups of a design by permuting labels between units, or within units with several labels."""
    label, stratum = design.group[units.cell], design.stratum[units.cell]
    options = {"permutations": permutations, "seed": seed}
    crossed = is_crossed(label, units.unit)
    return run_moment_test(units.moments, label, stratum, units.unit, design, crossed=crossed, **options)


def add_limits(result: Pairwise, units: UnitMoments, design: Design, *, weights: str, level: float | None) -> Pairwise:
    """Set the unbiased estimates of all pairs and, at a level, their limits from units."""

    def estimate(a: int, b: int) -> Errors:
        pair, cells = design.pair(a, b)
        return estimate_unit_errors(units.select_cells(cells), pair, pair.weights(weights)).errors

    found = ask_pairs(result, estimate, "an interval")
    errors = stack_errors(list(found.values()))

    def fill(values: FloatArray) -> FloatArray:
        return fill_matrix(result, dict(zip(found, values.tolist(), strict=True)), 0.0)

    weight = design.weights(weights)
    caution = caution_about_geometry(design, weight, estimate_unit_bias(units, design, weight), design.features)
    centered = replace(result, unbiased=fill(errors.estimate), caution=caution)
    if level is None:
        return centered
    lower, upper = map(fill, errors.limits(level))
    return replace(centered, level=level, lower=lower, upper=upper, stderr=fill(errors.stderr))


def add_tests(
    result: Pairwise, units: UnitMoments, design: Design, *, permutations: int, seed: int, adjust: str
) -> Pairwise:
    """Add the p-values of permutation tests of all pairs."""

    def test(a: int, b: int) -> TestResult:
        pair, cells = design.pair(a, b)
        return run_unit_test(units.select_cells(cells), pair, permutations=permutations, seed=seed)

    return add_pvalues(result, ask_pairs(result, test, "a test"), permutations, adjust)


def add_pvalues(
    result: Pairwise, found: Mapping[tuple[int, int], TestResult], permutations: int, adjust: str
) -> Pairwise:
    """Add test results of all pairs, with p-values adjusted for the number of pairs."""
    pvalues = [tested.pvalue for tested in found.values()]

    def fill(values: Iterable[float], diagonal: float) -> FloatArray:
        return fill_matrix(result, dict(zip(found, values, strict=True)), diagonal)

    return replace(
        result,
        statistic=fill((tested.statistic for tested in found.values()), 0.0),
        pvalue=fill(pvalues, 1.0),
        adjusted=fill(adjusted_pvalues(pvalues, method=adjust).tolist(), 1.0),
        permutations=permutations,
        adjust=adjust,
    )


def ask_pairs(result: Pairwise, ask: Callable[[int, int], T], what: str) -> dict[tuple[int, int], T]:
    """Call `ask` for each pair of groups that share a stratum; warn if it fails for some pairs."""
    found: dict[tuple[int, int], T] = {}
    problems: list[InputError] = []
    for a, b in combinations(range(len(result.labels)), 2):
        if result.overlap[a, b] == 0:
            continue
        try:
            found[a, b] = ask(a, b)
        except InputError as problem:
            problems.append(problem)
    if not found:
        raise (
            problems[0]
            if problems
            else InputError(problem="no stratum holds two of the compared groups", remedy="pass coarser ones")
        )
    if problems:
        warn(f"pairs without {what} ({len(problems)} of {len(found) + len(problems)}): {problems[0].marked}")
    return found


def fill_matrix(result: Pairwise, values: Mapping[tuple[int, int], float], diagonal: float) -> FloatArray:
    """Make a symmetric matrix of the values of pairs, NaN where there is none."""
    number = len(result.labels)
    fill = np.full((number, number), np.nan)
    np.fill_diagonal(fill, diagonal)
    if values:
        first, second = np.array(list(values)).T
        fill[first, second] = fill[second, first] = list(values.values())
    return fill
