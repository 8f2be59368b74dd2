"""Intervals and tests of rows drawn again and again."""

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

import crossfusion as cf
from benchmarks.coverage.noise import Rows
from benchmarks.coverage.plan import Task
from benchmarks.coverage.promises import LEVEL, SIZE, standard_error
from paper.arrays import FloatArray

OTHERS = 1  # what the seeds of rows that lenses are fitted on begin with
KERNEL_FEATURES = 128  # of a lens
UPPER_LEVEL = 0.9  # its upper limit is missed in 5 %
PERMUTATIONS = 199  # so that p ≤ 0.05 has a probability of exactly 10 in 200


def measure(task: Task, draws: int) -> list[dict[str, Any]]:
    """The points of a task, one at each distance."""
    return (_tests if task.test else _intervals)(task, task.draws(draws))


def _draw_answers(task: Task, draws: int, ask: Callable[[Rows, int], tuple[float, ...]]) -> FloatArray:
    """Answers for each draw and each distance; the same noise serves for all distances."""
    population = task.population
    seeds = np.random.SeedSequence([zlib.crc32(repr(population).encode()), len(task.test)])
    shifts = [population.shift(distance) for distance in task.distances]
    answers = []
    for number, seed in enumerate(seeds.spawn(draws)):
        rows = population.noise(np.random.default_rng(seed))
        answers.append([ask(population.pull_apart(rows, shift), number) for shift in shifts])
    return np.array(answers)


def _intervals(task: Task, draws: int) -> list[dict[str, Any]]:
    population, one_sided = task.population, task.section == "upper"
    group, stratum, unit = population.labels()
    asked: dict[str, Any] = {"labels": group, "weights": population.weights, "level": LEVEL}
    if population.strata > 1:
        asked["given"] = stratum

    def ask(rows: Rows, number: int) -> tuple[float, ...]:
        options = asked | {"lens": _fit_lens(task, rows, number)}
        units = None if population.patients is None else unit
        found = _answer(cf.cfd(rows, units=units, **options), one_sided)
        if one_sided or units is None:
            return (*found, np.nan, np.nan)
        return found + _answer(cf.cfd(rows, **options), False)[:2]

    found = _draw_answers(task, draws, ask)
    return [
        {"column": column} | _point(distance, found[:, k])
        for k, (column, distance) in enumerate(zip(task.columns, task.distances, strict=True))
    ]


def _fit_lens(task: Task, rows: Rows, number: int) -> Any:
    """The lens of a task, fitted on these rows, or on others of the population."""
    if not task.lens:
        return None
    if task.fitted == "others":
        rows = task.population.noise(np.random.default_rng([OTHERS, number]))
    by = {"group": task.population.labels()[0]}
    if task.lens == "unit":
        return cf.lens.unit()
    if task.lens == "kernel":
        return cf.lens.kernel(rows, features=KERNEL_FEATURES)
    return (cf.lens.standardize if task.lens == "standardize" else cf.lens.whiten)(rows, by=by)


def _answer(fusion: cf.Fusion, one_sided: bool) -> tuple[float, ...]:
    """Limits, estimate, standard error and, if `one_sided`, the upper limit that equivalence at 5 % depends on."""
    upper = fusion.limits(UPPER_LEVEL) if one_sided else None
    assert fusion.interval is not None
    assert fusion.unbiased is not None
    assert fusion.stderr is not None
    return (*fusion.interval, fusion.unbiased, fusion.stderr, np.nan if upper is None else upper[1])


def _point(distance: float, found: FloatArray) -> dict[str, Any]:
    low, high, estimate, stderr, upper, naive_low, naive_high = found.T
    draws = len(found)
    below, above = int(np.sum(distance < low)), int(np.sum(distance > high))
    coverage = (draws - below - above) / draws
    point: dict[str, Any] = {
        "distance": distance,
        "draws": draws,
        "coverage": coverage,
        "error": standard_error(coverage, draws),
        "below": below / draws,
        "above": above / draws,
        "ratio": distance / float(stderr.mean()),
        "width": float(np.mean(high - low)),
        "stderr_over_sd": float(stderr.mean() / estimate.std()),
    }
    if not np.isnan(upper[0]):
        point["above_90"] = float(np.mean(distance > upper))
    if not np.isnan(naive_low[0]):
        point["naive"] = float(np.mean((naive_low <= distance) & (distance <= naive_high)))
    return point


def _tests(task: Task, draws: int) -> list[dict[str, Any]]:
    group, stratum, unit = task.population.labels()
    test = cf.permutation_test if task.test == "permutation" else cf.dispersion_test
    options: dict[str, Any] = {"labels": group, "permutations": PERMUTATIONS}
    if task.population.strata > 1:
        options["strata"] = stratum
    if task.told:
        options[task.told] = unit

    def ask(rows: Rows, number: int) -> tuple[float, ...]:
        return (test(rows, seed=number, lens=_fit_lens(task, rows, number), **options).pvalue,)

    rejected = np.mean(_draw_answers(task, draws, ask)[:, :, 0] <= SIZE, axis=0).tolist()
    return [
        {"distance": distance, "draws": draws, "rejected": share, "error": standard_error(share, draws)}
        for distance, share in zip(task.distances, rejected, strict=True)
    ]
