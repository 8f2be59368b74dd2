"""Intervals and tests of distances between groups, from the moments of units."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from crossfusion._base import FloatArray, map_threads
from crossfusion.fusion import (
    Design,
    Fusion,
    GroupAndRest,
    Pairwise,
    caution_about_equal_means,
    caution_about_geometry,
    caution_about_overlap,
    caution_about_separating,
    caution_about_spread,
    fuse,
    has_equal_means,
    join_cautions,
    split_cautions,
    split_each_from_rest,
)
from crossfusion.inference.intervals import Errors, add_interval, stack_errors
from crossfusion.inference.pairs import add_pair_tests, ask_pairs, fill_matrix
from crossfusion.inference.permutation.exchangeable import is_crossed
from crossfusion.inference.permutation.result import TestResult
from crossfusion.inference.permutation.run import name_test_scale, run_moment_test
from crossfusion.inference.unit_errors import UnitMoments, estimate_unit_bias, estimate_unit_errors


def add_unit_errors(
    fusion: Fusion, units: UnitMoments, design: Design, weight: FloatArray, level: float | None
) -> Fusion:
    """Set the unbiased estimate, the caution and, at a level, the interval from units."""
    number = np.bincount(units.cell).astype(np.float64)
    return _add_errors(fusion, units, design, weight, level, (design, weight, number))


def compare_each_with_rest_by_units(
    units: UnitMoments, design: Design, *, weights: str, level: float | None, dropped: int = 0
) -> dict[Hashable, Fusion]:
    """Compute the distance of each group to the rest, with errors of units at the observed mixture of the rest."""
    return {
        pair.merged.labels[0]: _compare_with_rest(units, pair, weights, level, dropped)
        for pair in split_each_from_rest(design)
    }


def _compare_with_rest(
    units: UnitMoments, pair: GroupAndRest, weights: str, level: float | None, dropped: int
) -> Fusion:
    fusion = fuse(pair.merged, weights=weights, dropped=dropped)
    if fusion.distance is None:
        return fusion
    merged = pair.place[units.cell] * units.unit_count + units.unit
    number = np.bincount(np.unique(merged) // units.unit_count).astype(np.float64)
    shown = pair.merged, pair.merged.weights(weights), number
    return _add_errors(fusion, units, pair.cells, pair.weigh(weights), level, shown)


def _add_errors(
    fusion: Fusion,
    units: UnitMoments,
    design: Design,
    weight: FloatArray,
    level: float | None,
    shown: tuple[Design, FloatArray, FloatArray],
) -> Fusion:
    """Set estimate, caution and interval; `shown` are the cells that are compared, their weights and units."""
    errors = estimate_unit_errors(units, design, weight).errors
    freedom = 2 * float(errors.bias) ** 2 / float(errors.quadratic)  # of a scaled chi-square with these moments
    closeness = float(errors.between + errors.bias), float(errors.bias), freedom, float(errors.freedom)
    caution = join_cautions(
        caution_about_overlap(shown[0]),
        caution_about_equal_means(*closeness)
        or caution_about_spread(*shown[:2], float(errors.between) * fusion.within, shown[2]),
        caution_about_geometry(*shown[:2], estimate_unit_bias(units, design, weight), design.features),
        caution_about_separating(design.scale),
    )
    return replace(add_interval(fusion, errors, level), caution=caution)


def run_unit_test(
    units: UnitMoments, design: Design, *, permutations: int, seed: int, statistic: str, scale: str | None = None
) -> TestResult:
    """Test the groups of a design by permuting labels between units, or within units with several labels."""
    if scale is not None:
        scaled = design.standardize_in_total()
        found = run_unit_test(units.rescale(scaled), scaled, permutations=permutations, seed=seed, statistic=statistic)
        return name_test_scale(found, scaled, design)
    label, stratum = design.group[units.cell], design.stratum[units.cell]
    options: dict[str, Any] = {"permutations": permutations, "seed": seed, "statistic": statistic}
    crossed = is_crossed(label, units.unit)
    return run_moment_test(units.moments, label, stratum, units.unit, design, crossed=crossed, **options)


def add_limits(result: Pairwise, units: UnitMoments, design: Design, *, weights: str, level: float | None) -> Pairwise:
    """Set the unbiased estimates of all pairs and, at a level, their limits from units."""

    def estimate(a: int, b: int) -> Errors:
        pair, cells = design.pair(a, b)
        return estimate_unit_errors(units.select_cells(cells), pair, pair.weights(weights)).errors

    with map_threads(len(result.labels)) as each:
        found = ask_pairs(result, estimate, "an interval", each)
    errors = stack_errors(list(found.values()))

    def fill(values: FloatArray) -> FloatArray:
        return fill_matrix(result, dict(zip(found, values.tolist(), strict=True)), 0.0)

    weight = design.weights(weights)
    geometry = caution_about_geometry(design, weight, estimate_unit_bias(units, design, weight), design.features)
    equal = filter(has_equal_means, split_cautions(result.caution))  # of rows, which err less than units
    centered = replace(
        result,
        unbiased=fill(errors.estimate),
        caution=join_cautions(*equal, geometry, caution_about_separating(design.scale)),
    )
    if level is None:
        return centered
    lower, upper = map(fill, errors.limits(level))
    return replace(centered, level=level, lower=lower, upper=upper, stderr=fill(errors.stderr))


def add_tests(
    result: Pairwise,
    units: UnitMoments,
    design: Design,
    *,
    permutations: int,
    seed: int,
    statistic: str,
    adjust: str,
    scale: str | None = None,
) -> Pairwise:
    """Add the p-values of permutation tests of all pairs."""

    def test(a: int, b: int, number: int) -> TestResult:
        pair, cells = design.pair(a, b)
        options: dict[str, Any] = {"permutations": number, "seed": seed, "statistic": statistic, "scale": scale}
        return run_unit_test(units.select_cells(cells), pair, **options)

    return add_pair_tests(result, test, permutations, adjust)
