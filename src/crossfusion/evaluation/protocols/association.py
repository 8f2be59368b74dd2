"""How closely distances and degradation go together, where pairs share their domains.

Distances and rates come as arrays of shape (corrections, domains, domains), NaN where a pair is not there. Pairs are
not independent, domains are: intervals leave one domain out at a time, p-values exchange the domains' names.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import factorial
from typing import Any

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.evaluation.protocols.study_result import Association, Outcome
from crossfusion.inference import compute_half_width

MIN_DOMAINS = 4  # of which one can be left out so that three pairs of different distances remain
NO_ERROR = 1e-6  # on Fisher's scale, below which values that are left do not differ
Statistic = Callable[[FloatArray, FloatArray], float]
Points = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class Correlation:
    """A correlation, its limits, and how many permutations correlate as strongly; None where there can be none."""

    value: float
    lower: float | None
    upper: float | None
    pvalue: float | None


def pearson(x: FloatArray, y: FloatArray) -> float:
    """Correlation; NaN for fewer than three points, or where one side does not vary."""
    if len(x) < 3:
        return float("nan")
    x, y = x - x.mean(), y - y.mean()
    spread = float(np.sqrt(np.sum(x * x) * np.sum(y * y)))
    return float(np.clip(np.sum(x * y) / spread, -1, 1)) if spread > 0 else float("nan")


def rank_values(values: FloatArray) -> FloatArray:
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    shared: FloatArray = (np.cumsum(count) - (count - 1) / 2)[place]
    return shared


def spearman(x: FloatArray, y: FloatArray) -> float:
    """Correlation of ranks."""
    return pearson(rank_values(x), rank_values(y))


def list_points(distance: FloatArray, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Every pair after every correction."""
    there = np.isfinite(distance) & np.isfinite(rate)
    return distance[there], rate[there]


def average_points(distance: FloatArray, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Every correction, averaged over the pairs: the paper's points."""
    there = np.isfinite(distance) & np.isfinite(rate)
    kept = there.any(axis=(1, 2))
    number = there.sum(axis=(1, 2))[kept]
    x, y = (np.where(there, values, 0).sum(axis=(1, 2))[kept] / number for values in (distance, rate))
    return x, y


def correlate(
    distance: FloatArray,
    rate: FloatArray,
    statistic: Statistic,
    points: Points,
    *,
    level: float,
    permutations: "Permutations",
) -> Correlation:
    """A correlation with its interval and p-value."""

    def compute(distance: FloatArray, rate: FloatArray) -> float:
        return statistic(*points(distance, rate))

    value = compute(distance, rate)
    lower, upper = _jackknife(value, distance, rate, compute, level)
    return Correlation(value, lower, upper, _compute_pvalue(value, distance, rate, compute, permutations))


def _jackknife(
    value: float, distance: FloatArray, rate: FloatArray, statistic: Statistic, level: float
) -> tuple[float | None, float | None]:
    """Limits from leaving out one domain at a time, on Fisher's scale; none where that gives no error."""
    domains = distance.shape[1]
    if domains < MIN_DOMAINS:
        return None, None
    left = [np.delete(np.arange(domains), k) for k in range(domains)]
    values = np.array([value, *(statistic(distance[:, keep][:, :, keep], rate[:, keep][:, :, keep]) for keep in left)])
    if not np.all(np.abs(values) < 1 - 1e-12):  # NaN too
        return None, None
    scale = np.arctanh(values)
    error = np.sqrt((domains - 1) / domains * np.sum((scale[1:] - scale[1:].mean()) ** 2))
    if error < NO_ERROR:  # ranks of few points that none of the domains changes
        return None, None
    half = compute_half_width(level, domains - 1) * float(error)
    return float(np.tanh(scale[0] - half)), float(np.tanh(scale[0] + half))


@dataclass(frozen=True)
class Permutations:
    """Which names are exchanged: of domains, of corrections, or of both; all ways there are, or random ones."""

    domains: bool
    corrections: bool
    most: int
    seed: int

    def list_orders(self, shape: tuple[int, ...]) -> tuple[bool, Iterator[tuple[Any, Any]]]:
        """Whether these are all there are, and orders of corrections and of domains."""
        sizes = shape[0] if self.corrections else 1, shape[1] if self.domains else 1
        if factorial(sizes[0]) * factorial(sizes[1]) <= self.most + 1:
            every = ((c, d) for c in permutations(range(sizes[0])) for d in permutations(range(sizes[1])))
            return True, self._complete_orders(every, shape)
        draw = np.random.default_rng(self.seed)
        some = ((draw.permutation(sizes[0]), draw.permutation(sizes[1])) for _ in range(self.most))
        return False, self._complete_orders(some, shape)

    def _complete_orders(self, orders: Any, shape: tuple[int, ...]) -> Iterator[tuple[Any, Any]]:
        for c, d in orders:
            yield (
                np.array(c) if self.corrections else np.arange(shape[0]),
                np.array(d) if self.domains else np.arange(shape[1]),
            )


def _compute_pvalue(
    value: float, distance: FloatArray, rate: FloatArray, statistic: Statistic, permutations: Permutations
) -> float | None:
    """Share of permutations of the distances that correlate at least as strongly (one-sided)."""
    if np.isnan(value):
        return None
    exact, orders = permutations.list_orders(distance.shape)
    found = np.array([statistic(distance[c][:, d][:, :, d], rate) for c, d in orders])
    if len(found) < 2:
        return None
    as_strong = np.sum(found >= value - 1e-12)
    return float(as_strong / len(found) if exact else (as_strong + 1) / (len(found) + 1))


def correlate_distances(
    outcomes: Sequence[Outcome], domains: Sequence[Any], *, level: float, permutations: int, seed: int
) -> tuple[Association, ...]:
    """Correlations of every distance with degradation, over pairs within each correction, corrections, and all."""
    names = list(dict.fromkeys(outcome.correction for outcome in outcomes))
    at = {domain: k for k, domain in enumerate(domains)}

    def grid(value: Callable[[Outcome], float]) -> FloatArray:
        cells = np.full((len(names), len(at), len(at)), np.nan)
        for outcome in outcomes:
            cells[names.index(outcome.correction), at[outcome.train], at[outcome.test]] = value(outcome)
        return cells

    rate = grid(lambda outcome: outcome.cddr)
    distances = {name: grid(_make_getter(name)) for name in outcomes[0].distances}
    sets: list[tuple[str, str | None, Any, Points, Permutations]] = [
        ("pairs", name, slice(k, k + 1), list_points, Permutations(True, False, permutations, seed))
        for k, name in enumerate(names)
    ]
    if len(names) > 1:
        sets.append(("corrections", None, slice(None), average_points, Permutations(False, True, permutations, seed)))
        sets.append(("all", None, slice(None), list_points, Permutations(True, True, permutations, seed)))
    found: list[Association] = []
    for over, correction, part, points, relabelings in sets:
        entries = {
            name: [
                correlate(cells[part], rate[part], correlation, points, level=level, permutations=relabelings)
                for correlation in (pearson, spearman)
            ]
            for name, cells in distances.items()
        }
        placed = [_rank_descending([pair[k].value for pair in entries.values()]) for k in range(2)]
        for number, (name, (linear, ranked)) in enumerate(entries.items()):
            size = len(points(distances[name][part], rate[part])[0])
            limits = [(c.value, c.lower, c.upper, c.pvalue) for c in (linear, ranked)]
            found.append(
                Association(over, correction, name, size, *limits[0], *limits[1], placed[0][number], placed[1][number])
            )
    return tuple(found)


def _make_getter(name: str) -> Callable[[Outcome], float]:
    return lambda outcome: outcome.distances[name]


def _rank_descending(values: list[float]) -> list[int]:
    """Rank of each value, 1 for the highest; undefined ones come last."""
    known = np.nan_to_num(np.array(values), nan=-np.inf)
    return [1 + int(np.sum(known > value + 1e-12)) for value in known]
