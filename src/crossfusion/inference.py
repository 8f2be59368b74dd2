"""Intervals and tests of distances between groups, from the moments of the units they are made of."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import TypeVar

import numpy as np

from crossfusion.adjust import adjusted_pvalues
from crossfusion.design import Design
from crossfusion.errors import InputError, warn
from crossfusion.interval import stack
from crossfusion.items import is_crossed
from crossfusion.judge import TestResult, of_moments
from crossfusion.kernels import FloatArray
from crossfusion.pairwise import Pairwise
from crossfusion.unit_errors import Pieces, of_units

T = TypeVar("T")


def test_of_units(pieces: Pieces, design: Design, *, permutations: int, seed: int) -> TestResult:
    """Permutation test of the groups of a design, by exchanging units, or labels within units that have several."""
    label, part = design.group[pieces.cell], design.part[pieces.cell]
    options = {"permutations": permutations, "seed": seed}
    crossed = is_crossed(label, pieces.unit)
    return of_moments(pieces.moments, label, part, pieces.unit, design, crossed=crossed, **options)


def with_limits(result: Pairwise, pieces: Pieces, design: Design, *, weights: str, level: float | None) -> Pairwise:
    """The distances of all pairs with the estimates, and at a level the limits, that their units imply."""
    found = _of_pairs(
        result, pieces, design, lambda pair, own: of_units(own, pair, pair.weights(weights)).errors, "interval"
    )
    errors = stack(list(found.values()))
    centred = replace(result, unbiased=_matrix(result, list(found), errors.estimate, 0.0))
    if level is None:
        return centred
    lower, upper = (_matrix(result, list(found), limit, 0.0) for limit in errors.limits(level))
    return replace(centred, level=level, lower=lower, upper=upper)


def with_tests(
    result: Pairwise, pieces: Pieces, design: Design, *, permutations: int, seed: int, adjust: str
) -> Pairwise:
    """The distances of all pairs with the p-values of their permutation tests."""
    found = _of_pairs(
        result,
        pieces,
        design,
        lambda pair, own: test_of_units(own, pair, permutations=permutations, seed=seed).pvalue,
        "test",
    )
    return with_pvalues(result, found, adjust)


def with_pvalues(result: Pairwise, found: dict[tuple[int, int], float], adjust: str) -> Pairwise:
    """The distances of all pairs with p-values, as they are and adjusted for their number."""
    pvalues = np.array(list(found.values()))
    raw, adjusted = (
        _matrix(result, list(found), values, 1.0) for values in (pvalues, adjusted_pvalues(pvalues, method=adjust))
    )
    return replace(result, pvalue=raw, adjusted=adjusted)


def _of_pairs(
    result: Pairwise, pieces: Pieces, design: Design, ask: Callable[[Design, Pieces], T], what: str
) -> dict[tuple[int, int], T]:
    """The answer for each pair of groups that share a stratum; with a warning where there is none."""
    found: dict[tuple[int, int], T] = {}
    problems: list[InputError] = []
    for a, b in combinations(range(len(result.labels)), 2):
        if result.overlap[a, b] == 0:
            continue
        pair, cells = design.pair(a, b)
        try:
            found[a, b] = ask(pair, pieces.of_cells(cells))
        except InputError as problem:
            problems.append(problem)
    if not found:
        raise problems[0] if problems else InputError("no stratum holds two of the compared groups: pass coarser ones")
    if problems:
        warn(f"pairs without an {what} ({len(problems)} of {len(found) + len(problems)}): {problems[0]}")
    return found


def _matrix(result: Pairwise, pairs: list[tuple[int, int]], values: FloatArray, diagonal: float) -> FloatArray:
    """Symmetric matrix of the pairs' values, NaN for those without."""
    number = len(result.labels)
    matrix = np.full((number, number), np.nan)
    np.fill_diagonal(matrix, diagonal)
    first, second = np.array(pairs).T
    matrix[first, second] = matrix[second, first] = values
    return matrix
