"""Populations whose distance is known, and rows drawn from them.

Cells are groups in strata. The noise of a cell has variance 1 in each feature, times that of its group. Groups lie on a
line, evenly from the first to the last, and are pulled apart along it by a shift. So the distance of the population is
a formula, and the same noise serves for all shifts.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.coverage.noise import FAMILIES, Rows
from paper.arrays import FloatArray

Codes = NDArray[np.int64]

APART = 2.0  # between the means of strata, in each feature


@dataclass(frozen=True)
class Patients:
    """Units whose rows are alike.

    Parameters
    ----------
    number : tuple of int
        Patients of each group; one number if all groups have the same.
    icc : float
        Intra-class correlation: share of the variance that lies between patients.
    paired : bool
        Whether every patient has rows in all groups.
    shared : float
        Share of a paired patient's effect that is the same in all groups.
    uneven : bool
        Whether some patients have four times the rows of others.
    """

    number: tuple[int, ...] = (20,)
    icc: float = 0.5
    paired: bool = False
    shared: float = 1.0
    uneven: bool = False

    def units(self, rows: int, group: int) -> Codes:
        """Patient of each of the rows that a group has in a stratum."""
        number = self.number[group % len(self.number)]
        share = np.linspace(1, 4 if self.uneven else 1, number)
        ends = np.round(rows * np.cumsum(share) / share.sum())
        found = np.searchsorted(ends, np.arange(rows), side="right")
        return found if self.paired else found + group * max(self.number)


@dataclass(frozen=True)
class Population:
    """Groups, perhaps in strata, whose distance is known at every shift.

    Parameters
    ----------
    sizes : tuple of tuples of int
        Rows of each group, in each stratum.
    dim : int
        Number of features.
    family : str
        Shape of the noise, of `FAMILIES`.
    spreads : tuple of float
        Standard deviation of each group in each feature; 1 for all if empty.
    weights : {"pooled", "balanced"}
        As in `cfd`.
    along : {"all", "one"}
        Features along which groups are shifted.
    patients : Patients, optional
        Units of the rows; else rows are independent.
    """

    sizes: tuple[tuple[int, ...], ...]
    dim: int
    family: str = "normal"
    spreads: tuple[float, ...] = ()
    weights: str = "pooled"
    along: str = "all"
    patients: Patients | None = None

    @property
    def group(self) -> Codes:
        """Group of each cell."""
        return np.repeat(np.arange(len(self.sizes)), self.strata)

    @property
    def stratum(self) -> Codes:
        """Stratum of each cell."""
        return np.tile(np.arange(self.strata), len(self.sizes))

    @property
    def strata(self) -> int:
        """Number of strata."""
        return len(self.sizes[0])

    @property
    def count(self) -> Codes:
        """Rows of each cell."""
        return np.array(self.sizes).reshape(-1)

    @property
    def spread(self) -> FloatArray:
        """Standard deviation of each cell in each feature."""
        return np.array(self.spreads or [1.0] * len(self.sizes))[self.group]

    @property
    def weight(self) -> FloatArray:
        """Weight of each cell, as the page on mathematics has it."""
        if self.weights == "pooled":
            return np.asarray(self.count / self.count.sum())
        of_group = np.bincount(self.group, weights=self.count)
        of_stratum = np.bincount(self.stratum, weights=self.count / of_group[self.group]) / len(of_group)
        return np.asarray((of_stratum / len(of_group))[self.stratum])

    @property
    def position(self) -> FloatArray:
        """Place of each cell on the line, from 0 to 1."""
        return np.asarray(self.group / (len(self.sizes) - 1))

    @property
    def form(self) -> FloatArray:
        """Matrix Q of the variance between, which is μ'Qμ for means μ of the cells."""
        weight, stratum = self.weight, self.stratum
        of_stratum = np.bincount(stratum, weights=weight)[stratum]
        return np.asarray(np.diag(weight) - (stratum[:, None] == stratum) * np.outer(weight, weight) / of_stratum)

    @property
    def within(self) -> float:
        """Variance within the groups."""
        return self.dim * float(np.sum(self.weight * self.spread**2))

    @property
    def pull(self) -> float:
        """Variance between the groups at shift 1."""
        return float(self.position @ self.form @ self.position)

    def distance(self, shift: float) -> float:
        """Distance between the groups of the population, given the strata."""
        return math.log1p(shift**2 * self.pull / self.within)

    def shift(self, distance: float) -> float:
        """Shift at which the groups are so far apart."""
        return math.sqrt(math.expm1(distance) * self.within / self.pull)

    def steps(self, number: float) -> float:
        """Distance that is about so many standard errors large."""
        form, errors, noise = self.form, self.covariance(), FAMILIES[self.family].covariance(self.dim)
        along = noise.sum() / self.dim if self.along == "all" else noise[0, 0]  # variance along the line
        slope = 4 * float(along * (self.position @ form @ errors @ form @ self.position)) / self.pull
        steady = 2 * float(np.trace(form @ errors @ form @ errors) * np.sum(noise**2))
        # between = number · √(steady + slope · between), solved for the variance between
        between = (number**2 * slope + number * math.sqrt(number**2 * slope**2 + 4 * steady)) / 2
        return math.log1p(between / self.within)

    def covariance(self) -> FloatArray:
        """Covariance of the errors of the cells' means, of one feature."""
        if self.patients is None:
            return np.asarray(np.diag(self.spread**2 / self.count))
        units, (_, _, unit) = self.patients, self.labels()
        cell = np.repeat(np.arange(len(self.count)), self.count)
        rows = np.zeros((len(self.count), unit.max() + 1))
        np.add.at(rows, (cell, unit), 1 / self.count[cell])
        alike = np.where(self.group[:, None] == self.group, 1.0, units.shared)
        found = units.icc * alike * (rows @ rows.T) + np.diag((1 - units.icc) / self.count)
        return np.asarray(found * np.outer(self.spread, self.spread))

    def labels(self) -> tuple[Codes, Codes, Codes]:
        """Group, stratum and unit of each row; a row is its own unit where there are no patients."""
        group, stratum = (np.repeat(codes, self.count) for codes in (self.group, self.stratum))
        if self.patients is None:
            return group, stratum, np.arange(len(group))
        cells = zip(self.count.tolist(), self.group.tolist(), strict=True)
        return group, stratum, np.concatenate([self.patients.units(rows, cell) for rows, cell in cells])

    def noise(self, draw: Generator) -> Rows:
        """Rows of all cells, one after the other, without a shift."""
        rows = FAMILIES[self.family].draw(draw, int(self.count.sum()), self.dim)
        if self.patients is not None:
            rows = self._with_patients(draw, rows, self.patients)
        rows *= np.repeat(self.spread, self.count)[:, None].astype(np.float32)
        rows += np.repeat(APART * self.stratum, self.count)[:, None].astype(np.float32)
        return rows

    def _with_patients(self, draw: Generator, rows: Rows, units: Patients) -> Rows:
        """Rows that share a part of their noise with the others of their patient."""
        group, _, unit = self.labels()
        family, number = FAMILIES[self.family], int(unit.max()) + 1
        effect = family.draw(draw, number, self.dim)[unit] * np.float32(math.sqrt(units.icc * units.shared))
        if units.shared < 1:
            own = family.draw(draw, number * len(self.sizes), self.dim)[unit * len(self.sizes) + group]
            effect += own * np.float32(math.sqrt(units.icc * (1 - units.shared)))
        return effect + rows * np.float32(math.sqrt(1 - units.icc))

    def pull_apart(self, rows: Rows, shift: float) -> Rows:
        """These rows, their groups pulled apart."""
        moved = rows.copy()
        features = slice(None) if self.along == "all" else slice(1)
        place = np.repeat(self.position, self.count) * shift / math.sqrt(len(moved[0, features]))
        moved[:, features] += place[:, None].astype(np.float32)
        return moved
