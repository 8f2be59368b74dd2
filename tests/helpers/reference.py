"""The mathematics of the design once more, straight from its definitions and without rounding."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
