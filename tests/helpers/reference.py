"""The mathematics of the design once more, straight from its definitions and without rounding."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Cell:
    """Count, mean and centred sum of squares."""

    count: int
    mean: list[Fraction]
    sumsq: list[Fraction]

    @property
    def dispersion(self) -> Fraction:
        """Mean squared distance from the mean, σ²."""
        return sum(self.sumsq, Fraction(0)) / self.count

    def variance(self, borrowed: Fraction | None) -> Fraction:
        """Unbiased variance s²; of one row, the borrowed one (0 if nothing is known)."""
        return sum(self.sumsq, Fraction(0)) / (self.count - 1) if self.count > 1 else borrowed or Fraction(0)


@dataclass(frozen=True)
class Distance:
    """Plug-in and unbiased parts of a distance."""

    within: Fraction
    between: Fraction
    within_unbiased: Fraction
    between_unbiased: Fraction
    overlap: Fraction
    defined: bool  # whether the unbiased parts are: a variance is known

    @property
    def distance(self) -> float:
        """Plug-in distance."""
        return log_ratio(self.between, self.within)

    @property
    def unbiased(self) -> float | None:
        """Distance of the unbiased parts."""
        return log_ratio(self.between_unbiased, self.within_unbiased) if self.defined else None


def log_ratio(between: Fraction, within: Fraction) -> float:
    """Logarithm of (within + between) / within, with 60 digits; infinite without any spread within."""
    if within == 0:
        return math.inf if between else 0.0
    with mpmath.workdps(60):
        ratio = between / within
        return float(mpmath.log1p(mpmath.mpf(ratio.numerator) / ratio.denominator))


def moments(rows: Any) -> Cell:
    """Moments of rows, by integer arithmetic."""
    values = np.asarray(rows).astype(np.float64)
    scale = max((value.as_integer_ratio()[1] for value in values.flat), default=1)
    columns = [[top * (scale // bottom) for top, bottom in map(float.as_integer_ratio, c)] for c in values.T.tolist()]
    n = len(values)
    return Cell(
        n,
        [Fraction(sum(column), n * scale) for column in columns],
        [Fraction(n * sum(v * v for v in column) - sum(column) ** 2, n * scale**2) for column in columns],
    )


def cells(rows: Any, *factors: Sequence[Any]) -> dict[Key, Cell]:
    """Moments of the observed combinations of factor values."""
    values = np.asarray(rows)
    members: dict[Key, list[int]] = {}
    for row, key in enumerate(zip(*factors, strict=True)):
        members.setdefault(key, []).append(row)
    return {key: moments(values[index]) for key, index in members.items()}


def weights(cell: Mapping[Key, Cell], scheme: str) -> dict[Key, Fraction]:
    """Weights of cells (group, stratum)."""
    if scheme == "pooled":
        total = sum(c.count for c in cell.values())
        return {key: Fraction(c.count, total) for key, c in cell.items()}
    rows_of = {p: sum(c.count for (group, _), c in cell.items() if group == p) for p, _ in cell}
    found = {}
    for key in cell:
        present = [p for p, q in cell if q == key[1]]
        of_stratum = sum((Fraction(cell[p, key[1]].count, rows_of[p]) for p in present), Fraction(0))
        found[key] = of_stratum / len(rows_of) / len(present)
    return found


def pool(cell: Mapping[Key, Cell]) -> Fraction | None:
    """Pooled variance within cells of several rows; None if there are none."""
    several = [c for c in cell.values() if c.count > 1]
    scatter = sum((sum(c.sumsq, Fraction(0)) for c in several), Fraction(0))
    return scatter / sum(c.count - 1 for c in several) if several else None


def fuse(
    cell: Mapping[Key, Cell],
    weight: Mapping[Key, Fraction],
    part: Callable[[Key], Any],
    borrowed: Fraction | None = None,
) -> Distance:
    """Distance of cells within parts, for any weights; cells of one row borrow a variance."""
    borrowed = pool(cell) if borrowed is None else borrowed
    variance = {key: c.variance(borrowed) for key, c in cell.items()}
    parts: dict[Any, list[Key]] = {}
    for key in cell:
        parts.setdefault(part(key), []).append(key)
    between = correction = overlap = Fraction(0)
    for keys in parts.values():
        total = sum((weight[key] for key in keys), Fraction(0))
        for feature in range(len(cell[keys[0]].mean)):
            centre = sum(weight[key] * cell[key].mean[feature] for key in keys) / total
            between += sum(weight[key] * (cell[key].mean[feature] - centre) ** 2 for key in keys)
        correction += sum(weight[key] * (1 - weight[key] / total) * variance[key] / cell[key].count for key in keys)
        overlap += total if len(keys) > 1 else 0
    within = sum((weight[key] * c.dispersion for key, c in cell.items()), Fraction(0))
    within_unbiased = sum((weight[key] * variance[key] for key in cell), Fraction(0))
    defined = borrowed is not None
    return Distance(within, between, within_unbiased, between - correction, overlap, defined)


def cfd(rows: Any, labels: Sequence[Any], given: Sequence[Any] | None = None, scheme: str = "pooled") -> Distance:
    """Cross-Fusion Distance of labelled rows."""
    cell = cells(rows, labels, [0] * len(labels) if given is None else given)
    return fuse(cell, weights(cell, scheme), lambda key: key[1])


def merge(parts: Sequence[Cell]) -> Cell:
    """Moments of the union of disjoint sets of rows."""
    count = sum(c.count for c in parts)
    features = range(len(parts[0].mean))
    mean = [sum((c.count * c.mean[f] for c in parts), Fraction(0)) / count for f in features]
    sumsq = [sum((c.sumsq[f] + c.count * (c.mean[f] - mean[f]) ** 2 for c in parts), Fraction(0)) for f in features]
    return Cell(count, mean, sumsq)


def roll_up(cell: Mapping[Key, Cell], part: Callable[[Key], Any]) -> dict[Any, Cell]:
    """Moments of the parts that cells belong to."""
    members: dict[Any, list[Cell]] = {}
    for key, c in cell.items():
        members.setdefault(part(key), []).append(c)
    return {key: merge(parts) for key, parts in members.items()}


def pair(cell: Mapping[Key, Cell], first: Any, second: Any, scheme: str) -> Distance:
    """Distance of two groups alone; cells of one row borrow from all groups."""
    return _fuse_two({key: c for key, c in cell.items() if key[0] in (first, second)}, scheme, pool(cell))


def one_vs_rest(cell: Mapping[Key, Cell], group: Any, scheme: str) -> Distance:
    """Distance of one group from all others together, within strata."""
    return _fuse_two(roll_up(cell, lambda key: (key[0] == group, key[1])), scheme, pool(cell))


def _fuse_two(cell: Mapping[Key, Cell], scheme: str, borrowed: Fraction | None) -> Distance:
    """Distance within strata; undefined without a variance to borrow, even if a cell has several rows by merging."""
    found = fuse(cell, weights(cell, scheme), lambda key: key[1], borrowed)
    return replace(found, defined=borrowed is not None)


def hierarchy(leaf: Mapping[Key, Cell], scheme: str) -> list[Distance]:
    """Distance that each level adds: the combinations of the first k values of a leaf's key, within those of k - 1."""
    total = sum(c.count for c in leaf.values())
    weight = {k: Fraction(c.count, total) if scheme == "pooled" else Fraction(1, len(leaf)) for k, c in leaf.items()}
    borrowed = pool(leaf)
    error = {key: c.variance(borrowed) / c.count for key, c in leaf.items()}
    within = sum((weight[key] * c.dispersion for key, c in leaf.items()), Fraction(0))
    within_unbiased = sum((weight[key] * error[key] * c.count for key, c in leaf.items()), Fraction(0))
    found = []
    for depth in range(len(next(iter(leaf))), 0, -1):
        fine, coarse = (_weighted_means(leaf, weight, k) for k in (depth, depth - 1))
        between = correction = overlap = Fraction(0)
        for key, (of_key, mean) in fine.items():
            center = coarse[key[:-1]][1]
            between += of_key * sum((a - b) ** 2 for a, b in zip(mean, center, strict=True))
            overlap += of_key if coarse[key[:-1]][0] != of_key else 0
        for key, own in weight.items():
            correction += own**2 * (1 / fine[key[:depth]][0] - 1 / coarse[key[: depth - 1]][0]) * error[key]
        found.append(Distance(within, between, within_unbiased, between - correction, overlap, borrowed is not None))
        within, within_unbiased = within + between, within_unbiased + between - correction
    return found[::-1]


def _weighted_means(
    leaf: Mapping[Key, Cell], weight: Mapping[Key, Fraction], depth: int
) -> dict[Key, tuple[Fraction, list[Fraction]]]:
    """Weight and weighted mean of the leaves' means, for each combination of the first values."""
    found: dict[Key, tuple[Fraction, list[Fraction]]] = {}
    for key, c in leaf.items():
        own, sums = found.get(key[:depth], (Fraction(0), [Fraction(0)] * len(c.mean)))
        found[key[:depth]] = own + weight[key], [s + weight[key] * m for s, m in zip(sums, c.mean, strict=True)]
    return {key: (own, [s / own for s in sums]) for key, (own, sums) in found.items()}


def by_feature(cell: Mapping[Key, Cell], scheme: str) -> list[tuple[Fraction, Fraction]]:
    """Variance between and within groups of each feature."""
    weight = weights(cell, scheme)
    found = []
    for feature in range(len(next(iter(cell.values())).mean)):
        one = {key: Cell(c.count, [c.mean[feature]], [c.sumsq[feature]]) for key, c in cell.items()}
        fused = fuse(one, weight, lambda key: key[1])
        found.append((fused.between, fused.within))
    return found


def by_unit(fine: Mapping[Key, Cell], scheme: str) -> dict[Any, tuple[Fraction, Distance | None]]:
    """Contribution of each unit to the variance between groups, and the distance without it; None if there is none.

    Keys are (group, stratum, unit).
    """
    cell = roll_up(fine, lambda key: key[:2])
    weight = weights(cell, scheme)
    by_stratum = {key[::-1]: c for key, c in cell.items()}, {key[::-1]: w for key, w in weight.items()}
    center = _weighted_means(*by_stratum, 1)
    found: dict[Any, tuple[Fraction, Distance | None]] = {}
    for unit in {key[2] for key in fine}:
        contribution = Fraction(0)
        for key, c in fine.items():
            if key[2] == unit:
                whole, (_, middle) = cell[key[:2]], center[(key[1],)]
                products = ((a - m) * (b - m) for a, b, m in zip(c.mean, whole.mean, middle, strict=True))
                contribution += weight[key[:2]] * Fraction(c.count, whole.count) * sum(products)
        others = {key: c for key, c in fine.items() if key[2] != unit}
        found[unit] = contribution, _distance_of(roll_up(others, lambda key: key[:2]), scheme)
    return found


def _distance_of(cell: Mapping[Key, Cell], scheme: str) -> Distance | None:
    """Distance of cells; None where fewer than two groups remain, or no stratum that they share."""
    if len({group for group, _ in cell}) < 2:
        return None
    found = fuse(cell, weights(cell, scheme), lambda key: key[1])
    return found if found.overlap else None
