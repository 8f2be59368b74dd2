"""Intervals and tests of all pairs of groups, and the number of permutations that their adjusted p-values need."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from crossfusion._base import FloatArray, InputError, pvalue_text, warn
from crossfusion.fusion import Pairwise, join_cautions
from crossfusion.inference.multiple_testing import adjusted_pvalues
from crossfusion.inference.permutation.result import TestResult

T = TypeVar("T")
REACHABLE = 0.01  # adjusted p-value that every pair should be able to reach
WORRISOME = 0.05  # smallest reachable adjusted p-value from which on there is a caution
MAX_TOTAL = 10**7  # permutations of all pairs together, unless more are requested
REACH_CAUTION = "adjusted p-values of"  # how the caution begins
ENOUGH_EXTREME = 10  # permutations that reach the observed statistic, from which on more of them are not needed


def add_pair_tests(
    result: Pairwise, test: Callable[[int, int, int], TestResult], permutations: int, adjust: str
) -> Pairwise:
    """Test all pairs, with enough permutations for adjusted p-values of 0.01 if that is feasible.

    `test` takes two groups and a number of permutations. Pairs that fewer than ten of the requested permutations
    separate as far are tested again with more. The level holds: for small p-values only the second test counts, and
    larger ones are rejected by the first test in any case.
    """
    pairs = max(count_pairs(result), 1)
    number = max(permutations, min(math.ceil(pairs / REACHABLE) - 1, MAX_TOTAL // pairs))

    def ask(a: int, b: int) -> TestResult:
        found = test(a, b, permutations)
        if found.exact or number == permutations or found.pvalue * (permutations + 1) > ENOUGH_EXTREME:
            return found
        return test(a, b, number)

    return _add_pvalues(result, ask_pairs(result, ask, "a test"), number, adjust)


def count_pairs(result: Pairwise) -> int:
    """Count the pairs that share a stratum."""
    return int(np.sum(result.overlap > 0) - len(result.labels)) // 2


def _add_pvalues(
    result: Pairwise, found: Mapping[tuple[int, int], TestResult], permutations: int, adjust: str
) -> Pairwise:
    """Add test results of all pairs, with p-values adjusted for the number of pairs."""
    tests = list(found.values())
    pvalues = [tested.pvalue for tested in tests]

    def fill(values: Iterable[float], diagonal: float) -> FloatArray:
        return fill_matrix(result, dict(zip(found, values, strict=True)), diagonal)

    return replace(
        result,
        statistic=fill((tested.statistic for tested in tests), 0.0),
        pvalue=fill(pvalues, 1.0),
        adjusted=fill(adjusted_pvalues(pvalues, method=adjust).tolist(), 1.0),
        permutations=permutations,
        adjust=adjust,
        statistic_name=tests[0].statistic_name,
        caution=join_cautions(result.caution, _caution_about_reach(tests, permutations, adjust)),
    )


def _caution_about_reach(tests: Sequence[TestResult], permutations: int, adjust: str) -> str | None:
    """Return a caution if pairs have too few permutations for a small adjusted p-value, however far apart they are."""
    smallest = [tested.smallest_pvalue if tested.exact else 1 / (permutations + 1) for tested in tests]
    reach = adjusted_pvalues(smallest, method=adjust)
    stuck = reach > WORRISOME
    if not stuck.any():
        return None
    if any(tested.exact for tested, unable in zip(tests, stuck, strict=True) if unable):
        why = "too few permutations of the labels exist: more units are needed, or fewer pairs"
    else:
        why = f"{permutations:,} permutations are too few for so many pairs: request more, or compare fewer groups"
    which = f"{stuck.sum():,} of {len(tests):,} pairs"
    return f"{REACH_CAUTION} {which} cannot be below {pvalue_text(reach[stuck].min())} because {why}"


def ask_pairs(
    result: Pairwise, ask: Callable[[int, int], T], what: str, each: Callable[..., Iterable[Any]] = map
) -> dict[tuple[int, int], T]:
    """Call `ask` for each pair of groups that share a stratum, by `each`; warn if it fails for some pairs."""
    pairs = [pair for pair in combinations(range(len(result.labels)), 2) if result.overlap[pair] > 0]  # not NaN

    def attempt(pair: tuple[int, int]) -> T | InputError:
        try:
            return ask(*pair)
        except InputError as problem:
            return problem

    asked = dict(zip(pairs, each(attempt, pairs), strict=True))
    found = {pair: answer for pair, answer in asked.items() if not isinstance(answer, InputError)}
    problems = [answer for answer in asked.values() if isinstance(answer, InputError)]
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
