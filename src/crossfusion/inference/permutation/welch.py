"""The Welch statistic W*d of groups within strata, from the means of groups and the squared errors of these means.

With the squared error e_c of the mean μ_c of group c and the weights w_c = 1 / e_c, a stratum of k groups has::

    W*d = Σ w_c ‖μ_c − μ_w‖² / (k − 1) / (1 + 2 (k − 2) / (k² − 1) h),   μ_w = Σ w_c μ_c / Σ w_c
    h   = Σ (1 − w_c / Σ w)² / (items_c − 1)

(B. Hamidi et al., Microbiome 7:51, 2019); of two groups, that is ‖μ_1 − μ_2‖² / (e_1 + e_2), the T²_w of Alekseyenko
(Bioinformatics 32, 2016). Strata weigh by ω = Σ n_c (1 − n_c / n) e_c, the sum of squares between their groups that is
expected if all means are equal: Σ ω W*d / Σ ω. A stratum with few items has an unstable W*d, and a small say.

Items that have shares p of a group's rows, with variance v, give its mean the squared error e = v Σ p². The sum
Σ p² ‖x − μ_c‖² estimates v (Σ p² − 2 Σ p³ + (Σ p²)²). For items of equal size, v is the variance s² and e = s² / items.
A group with a single item borrows the pooled variance of the others.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.fusion import Codes, Design, compute_stratum_means

Powers = tuple[FloatArray, FloatArray]  # vectors and scalars of entries, of which both statistics are made

NEGLIGIBLE = 1e-10  # share of a stratum's variance below which items of a group count as equal


class Group(NamedTuple):
    """Sums of a group under each permutation: of its rows, times their mean; the variance and squared shares of items.

    Or those of several groups under one permutation. The variance of a single item, which has no freedom, has no
    meaning.
    """

    sums: FloatArray
    rows: FloatArray
    variance: FloatArray
    shares: FloatArray
    freedom: Any


def raise_entries(gap: FloatArray, square: FloatArray, rows: FloatArray) -> Powers:
    """Compute n x and n² x, and n, n² ‖x‖², n² and n³, of entries x of n rows each."""
    scaled = gap * rows[:, None]
    powers = np.stack([rows, rows**2 * square, rows**2, rows**3], axis=1)
    return np.hstack([scaled, scaled * rows[:, None]]), powers


def describe_groups(sums: FloatArray, powers: FloatArray, dim: int, freedom: Any) -> Group:
    """Compute the variance of entries from the sums of `raise_entries`, or of x, 1 and ‖x‖² for one row each."""
    rows, square = powers[:, 0], powers[:, 1]
    first, second = sums[:, :dim], sums[:, dim:]
    if powers.shape[1] == 2:
        scatter = np.maximum(square - square_rows(first) / rows, 0.0)
        return Group(first, rows, scatter / np.maximum(freedom, 1), 1 / rows, freedom)
    shares, cubes = powers[:, 2] / rows**2, powers[:, 3] / rows**3
    crossed = np.einsum("ij,ij->i", first, second) / rows
    scatter = np.maximum(square - 2 * crossed + shares * square_rows(first), 0.0) / rows**2
    return Group(first, rows, correct_centering(scatter, shares, cubes, freedom > 0), shares, freedom)


@dataclass(frozen=True)
class StratumCells:
    """Cells of strata with several groups, in the order of the strata, which keep their items in all permutations.

    `freedom` is the number of items minus 1; `starts` holds the first cell of each stratum, and `rows` the number of
    rows of each stratum.
    """

    stratum: Codes
    label: Codes
    freedom: Codes
    rows: FloatArray

    @property
    def starts(self) -> Codes:
        """First cell of each stratum."""
        return np.flatnonzero(np.diff(self.stratum, prepend=-1))

    def add(self, values: FloatArray) -> FloatArray:
        """Sum over the cells of each stratum."""
        return np.asarray(np.add.reduceat(values, self.starts, axis=0))

    def select(self, kept: Codes) -> "StratumCells":
        """All cells of some strata."""
        strata = np.isin(self.stratum[self.starts], self.stratum[kept])
        return StratumCells(self.stratum[kept], self.label[kept], self.freedom[kept], self.rows[strata])


class Pool:
    """Variance of items, pooled over groups."""

    def __init__(self) -> None:
        self.scatter: Any = 0.0
        self.freedom = 0

    def add(self, variance: FloatArray, freedom: int) -> None:
        """Add a group."""
        self.scatter = self.scatter + freedom * variance
        self.freedom += freedom


class Welch:
    """The statistic, to which strata are added one by one, those without any freedom last."""

    def __init__(self) -> None:
        self.weighted: Any = 0.0
        self.expected: Any = 0.0
        self._pool = Pool()

    def add_stratum(self, groups: Iterable[Group], rows: float, size: float) -> None:
        """Add a stratum with variances of about `size` from its groups, those with a single item last."""
        sums, pool = _StratumSums(size), Pool()
        for group in groups:
            variance, freedom = group.variance, group.freedom
            if freedom:
                pool.add(variance, freedom)
                self._pool.add(variance, freedom)
            else:
                known = pool if pool.freedom else self._pool
                variance, freedom = known.scatter / known.freedom, known.freedom
            chance = group.rows * (1 - group.rows / rows) * group.shares
            self.expected = self.expected + chance * variance
            sums.add(group, np.maximum(variance, NEGLIGIBLE * size), chance, freedom)
        self.weighted = self.weighted + sums.finish()

    def finish(self, number: int) -> FloatArray:
        """Return the statistic under each of a number of permutations."""
        return divide(self.weighted + np.zeros(number), self.expected + np.zeros(number))


class _StratumSums:
    """Sums over the groups of a stratum, with weights in units of 1 / `size`, as powers of others may overflow."""

    def __init__(self, size: float) -> None:
        self.size = size
        self.groups = 0
        self.weight: Any = 0.0
        self.mean: Any = 0.0
        self.square: Any = 0.0
        self.expected: Any = 0.0
        self.uneven: list[Any] = [0.0, 0.0, 0.0]

    def add(self, group: Group, variance: FloatArray, chance: FloatArray, freedom: int) -> None:
        weight = self.size / variance / group.shares
        scaled = weight / group.rows
        self.groups += 1
        self.weight = self.weight + weight
        self.mean = self.mean + scaled[:, None] * group.sums
        self.square = self.square + scaled / group.rows * square_rows(group.sums)
        self.expected = self.expected + chance * variance
        for power in range(3):
            self.uneven[power] = self.uneven[power] + weight**power / freedom

    def finish(self) -> FloatArray:
        """Return ω W*d."""
        k, (zeroth, first, second) = self.groups, self.uneven
        apart = np.maximum(self.square - square_rows(self.mean) / self.weight, 0.0)
        h = zeroth - 2 * first / self.weight + second / self.weight**2
        return np.asarray(self.expected * (apart / self.size) / (k - 1) / (1 + 2 * (k - 2) / (k * k - 1) * h))


@dataclass(frozen=True)
class CellSpread:
    """Variance of the items of each cell (NaN for one), the sum of their squared shares, and their number."""

    variance: FloatArray
    shares: FloatArray
    items: Codes

    @property
    def pooled(self) -> float:
        """Variance pooled over cells."""
        several = self.items > 1
        return float(np.average(self.variance[several], weights=self.items[several] - 1))

    @property
    def borrowed(self) -> FloatArray:
        """Variance of each cell, the pooled one for a single item."""
        return np.where(self.items > 1, self.variance, self.pooled)


def measure_rows(design: Design) -> CellSpread:
    """Measure the spread of rows that are items themselves."""
    count = design.cells.count
    with np.errstate(invalid="ignore"):
        variance = np.where(count > 1, design.cells.sumsq.sum(axis=1) / (count - 1), np.nan)
    return CellSpread(variance, 1 / count, count.astype(int))


def measure_items(mean: FloatArray, count: FloatArray, cell: Codes, design: Design) -> CellSpread:
    """Measure the spread of items with a mean and a number of rows."""
    share = count / design.cells.count[cell]
    gap = (mean - design.cells.mean[cell]) * share[:, None]
    powers = (square_rows(gap), share**2, share**3)
    found, second, third = (np.bincount(cell, weights=values).astype(np.float64) for values in powers)
    items = np.bincount(cell)
    return CellSpread(correct_centering(found, second, third, items > 1), second, items)


def correct_centering(found: FloatArray, second: FloatArray, third: FloatArray, several: Any = True) -> FloatArray:
    """Estimate the variance of items from Σ p² ‖x − μ‖², Σ p² and Σ p³; NaN for a single item."""
    single = np.full_like(found, np.nan, dtype=np.float64)
    return np.asarray(np.divide(found, second - 2 * third + second**2, out=single, where=several))


def combine_cells(groups: Group, cells: StratumCells, size: FloatArray) -> float:
    """Compute the statistic of all groups under one permutation, with variances of about `size` in each stratum."""
    own, several = np.diff(cells.starts, append=len(cells.stratum)), cells.freedom > 0

    def spread(of_strata: FloatArray) -> FloatArray:
        return np.repeat(of_strata, own, axis=0)

    scatter, freedom = cells.add(np.where(several, cells.freedom * groups.variance, 0.0)), cells.add(cells.freedom)
    scatter, freedom = np.where(freedom > 0, scatter, scatter.sum()), np.where(freedom > 0, freedom, freedom.sum())
    variance = np.where(several, groups.variance, spread(scatter / freedom))
    chance = groups.rows * (1 - groups.rows / spread(cells.rows)) * groups.shares
    raised = np.maximum(variance, NEGLIGIBLE * size[cells.stratum])
    weight = size[cells.stratum] / raised / groups.shares  # in units of 1 / size, as powers of others may overflow
    scaled, total = weight / groups.rows, cells.add(weight)
    square = cells.add(scaled / groups.rows * square_rows(groups.sums))
    apart = np.maximum(square - square_rows(cells.add(scaled[:, None] * groups.sums)) / total, 0.0)
    h = cells.add((1 - weight / spread(total)) ** 2 / np.where(several, cells.freedom, spread(freedom)))
    ratio = apart / size[cells.stratum[cells.starts]] / (own - 1) / (1 + 2 * (own - 2) / (own * own - 1) * h)
    return float(divide(np.sum(cells.add(chance * raised) * ratio), np.sum(chance * variance)))


def compute_observed(design: Design, spread: CellSpread, scale: FloatArray) -> float:
    """Compute the statistic of the observed labels, in strata of a given scale."""
    cells = design.cells
    gap = cells.mean - compute_stratum_means(cells.mean, cells.count, design.stratum)[design.stratum]
    rows = np.bincount(design.stratum, weights=cells.count).astype(np.float64)
    compared = (np.bincount(design.stratum) > 1) & (scale > 0)
    order = np.argsort(design.stratum, kind="stable")
    order = order[compared[design.stratum[order]]]
    largest = np.zeros(len(rows))
    np.maximum.at(largest, design.stratum, spread.borrowed)
    count, freedom = cells.count[order], spread.items[order] - 1
    groups = Group(count[:, None] * gap[order], count, spread.variance[order], spread.shares[order], freedom)
    members = StratumCells(design.stratum[order], design.group[order], freedom, rows[compared])
    return combine_cells(groups, members, np.where(largest > 0, largest, scale))


def measure_scale(design: Design, spread: CellSpread) -> FloatArray:
    """Measure the variance of items in each stratum, within and between groups: 0 if all are equal."""
    cells, stratum = design.cells, design.stratum
    gap = cells.mean - compute_stratum_means(cells.mean, cells.count, stratum)[stratum]
    scale = np.zeros(int(stratum.max()) + 1)
    np.maximum.at(scale, stratum, spread.borrowed + square_rows(gap))
    return scale


def measure_imbalance(design: Design, spread: CellSpread) -> float:
    """Divide the expected variance between groups by what it would be if all in a stratum had the same spread.

    Pseudo-F takes the spreads for equal: above 1, it rejects too often, and below 1 too seldom.
    """
    count, stratum, freedom = design.cells.count, design.stratum, spread.items - 1
    chance = count * (1 - count / np.bincount(stratum, weights=count)[stratum]) * spread.shares
    scatter, total = (np.bincount(stratum, weights=v) for v in (freedom * spread.borrowed, freedom))
    pooled = np.divide(scatter, total, out=np.full_like(scatter, spread.pooled), where=total > 0)[stratum]
    return float(divide(np.sum(chance * spread.borrowed), np.sum(chance * pooled))) or 1.0


def divide(between: Any, within: Any) -> FloatArray:
    """Divide between by within; infinite if only `within` is 0, and 0 if both are."""
    nothing_within = np.where(np.asarray(between) > 0, np.inf, 0.0)
    return np.asarray(np.divide(between, within, out=nothing_within, where=np.asarray(within) > 0))


def square_rows(sums: FloatArray) -> FloatArray:
    """Compute the squared length of each row."""
    return np.asarray(np.einsum("ij,ij->i", sums, sums))
