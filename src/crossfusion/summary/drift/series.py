"""Moments of periods within strata, products of their means, and errors of the means."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crossfusion._base import FloatArray, InputError, arg, as_names, factors
from crossfusion.fusion import Codes, Design, FeatureScale, estimate_mean_errors, measure_within_scale
from crossfusion.inference import UnitMoments, estimate_cell_errors
from crossfusion.moments import Moments, concat
from crossfusion.summary.drift.null_distribution import History, Target
from crossfusion.summary.drift.periods import list_periods
from crossfusion.summary.moment_table import Factors, MomentTable

SIDES = ("reference", "period")
Numbers = Sequence[int]


@dataclass(frozen=True)
class Series:
    """Moments of units in periods and strata, with the period, stratum and unit of each entry.

    Without units, all rows of a period and stratum are one entry.
    """

    moments: Moments
    period: Codes
    stratum: Codes
    unit: Codes | None
    periods: list[Hashable]
    strata: int
    features: tuple[str, ...] | None = None
    stratum_names: Sequence[Hashable] | None = None

    @cached_property
    def _cell(self) -> tuple[Codes, Codes]:
        """The cell of each entry, and the code of each cell among all pairs of a period and a stratum."""
        code = self.period.astype(np.int64) * self.strata + self.stratum
        return factors.renumber(code, len(self.periods) * self.strata)

    @cached_property
    def cells(self) -> Moments:
        """Moments of each observed period and stratum."""
        cell, present = self._cell
        return self.moments.merge(cell, len(present))

    @cached_property
    def place(self) -> Codes:
        """The cell of each period (row) and stratum (column); -1 where there is none."""
        place = np.full(len(self.periods) * self.strata, -1)
        place[self._cell[1]] = np.arange(len(self._cell[1]))
        return place.reshape(len(self.periods), self.strata)

    @cached_property
    def error(self) -> FloatArray:
        """Squared error of the mean of each cell, from its units or rows; a typical value if it has only one."""
        cells = self.cells
        if self.unit is not None:
            found, size = estimate_cell_errors(UnitMoments(self.moments, self._cell[0], self.unit), cells)
        else:
            found, size = estimate_mean_errors(cells), 1 / cells.count
        known = np.isfinite(found)
        typical = float(np.mean(found[known] / size[known])) if known.any() else 0.0
        return np.where(known, found, typical * size)

    def merge_periods(self, periods: Numbers) -> Moments:
        """Merge the moments of some periods, one entry per stratum; empty where they have no rows."""
        key = tuple(periods)
        if key not in self._merge_cache:
            period, stratum = np.divmod(self._cell[1], self.strata)
            kept = np.flatnonzero(np.isin(period, key))
            self._merge_cache[key] = self.cells[kept].merge(stratum[kept], self.strata)
        return self._merge_cache[key]

    @cached_property
    def _merge_cache(self) -> dict[tuple[int, ...], Moments]:
        """Cache of merged periods, since every window is compared with the same reference."""
        return {}

    def design(self, reference: Numbers, periods: Numbers) -> Design:
        """Design that compares two sets of periods within strata."""
        both = concat([self.merge_periods(reference), self.merge_periods(periods)])
        side, stratum = np.divmod(np.arange(2 * self.strata), self.strata)
        kept = np.flatnonzero(both.count > 0)
        present, codes = np.unique(stratum[kept], return_inverse=True)
        names = None if self.stratum_names is None else [self.stratum_names[k] for k in present]
        return Design(both[kept], side[kept], codes, SIDES, features=self.features, strata=names)

    def unit_moments(self, reference: Numbers, periods: Numbers) -> UnitMoments:
        """Moments of units on the two sides, in the cells of `design`."""
        assert self.unit is not None
        side = np.full(len(self.periods), -1)
        side[list(reference)], side[list(periods)] = 0, 1
        here = np.flatnonzero(side[self.period] >= 0)
        cell = np.unique(side[self.period[here]] * self.strata + self.stratum[here], return_inverse=True)[1]
        unit = np.unique(self.unit[here], return_inverse=True)[1]
        code, present = factors.renumber(cell.astype(np.int64) * (int(unit.max()) + 1) + unit, 2**62)
        cell, unit = np.divmod(present, int(unit.max()) + 1)
        return UnitMoments(self.moments[here].merge(code, len(present)), cell, unit)

    def measure_scale(self, reference: Numbers | None) -> FeatureScale:
        """Measure the standard deviation of each feature within the periods and strata of the reference, or of all."""
        periods = list(range(len(self.periods)) if reference is None else reference)
        places = np.unique(self.place[periods])
        cells = self.cells[places[places >= 0]]
        return measure_within_scale(cells, cells.count / cells.count.sum(), self.features)

    def find_shared_strata(self, periods: Numbers, others: Numbers = ()) -> tuple[int, ...]:
        """Find the strata that each of `periods` has, and that `others` have together."""
        everywhere = (self.place[list(periods)] >= 0).all(axis=0)
        if len(others):
            everywhere &= (self.place[list(others)] >= 0).any(axis=0)
        return tuple(np.flatnonzero(everywhere).tolist())

    def weights(self, strata: tuple[int, ...], periods: Numbers) -> FloatArray:
        """Share of each stratum in the rows of some periods."""
        count = self.merge_periods(periods).count[list(strata)]
        return np.asarray(count / count.sum())

    def history(self, periods: Numbers, strata: tuple[int, ...], weight: FloatArray) -> History:
        """Periods without drift, in strata that all of them have."""
        products, center = np.zeros((len(periods), len(periods))), self.merge_periods(periods).mean
        for stratum, share in zip(strata, weight, strict=True):
            mean = self.cells.mean[self.place[list(periods), stratum]]
            gap = mean - center[stratum]
            products += share * (gap @ gap.T)
        error = self.error[self.place[np.ix_(list(periods), list(strata))]] @ weight
        return History(np.array(periods), products, error, self.cells.dim * len(strata))

    def make_target(
        self, periods: Numbers, reference: Numbers, history: Numbers, strata: tuple[int, ...], weight: FloatArray
    ) -> Target:
        """Make the target of a test: periods compared with the reference periods in the history."""
        reference = [number for number in reference if number in history]
        of_periods, of_reference = (self._compute_row_shares(numbers, strata) for numbers in (periods, reference))
        cell = self.place[np.ix_(list(periods), list(strata))]
        error = np.where(cell >= 0, self.error[cell], 0.0) * of_periods**2
        within = np.zeros(len(history))
        within[np.searchsorted(history, reference)] = of_reference @ weight
        return Target(np.array(periods), of_periods @ weight, float(np.sum(error @ weight)), within)

    def _compute_row_shares(self, periods: Numbers, strata: tuple[int, ...]) -> FloatArray:
        """Share of each period (row) in the rows that all of them have in a stratum (column)."""
        cell = self.place[np.ix_(list(periods), list(strata))]
        count = np.where(cell >= 0, self.cells.count[cell], 0.0)
        return np.asarray(count / count.sum(axis=0))

    def squared_gap(self, periods: Numbers, reference: Numbers, strata: tuple[int, ...], weight: FloatArray) -> float:
        """Squared distance of the means of two sets of periods, over strata."""
        chosen = list(strata)
        gap = self.merge_periods(periods).mean[chosen] - self.merge_periods(reference).mean[chosen]
        return float(weight @ np.einsum("ij,ij->i", gap, gap))


def make_series(
    table: MomentTable, time: str, given: Factors | None, units: Factors | None, *, independent: bool = True
) -> Series:
    """Make the series of periods of a table within strata of `given`; independent units must not be missing."""
    strata, names = as_names(given, "given"), as_names(units, "units")
    table._check_factors([*strata, *names])
    for name in (time, *strata):
        if name in names or (name == time and name in strata):
            raise InputError(
                problem=f"{name!r} is used twice",
                remedy=f"{arg('time')}, {arg('given')} and {arg('units')} must be different factors",
            )
    list_periods(table, time)
    fine = table.rollup([time, *strata, *names])
    period, labels = list_periods(fine, time)
    stratum, stratum_names = np.zeros(len(fine), np.int32), None
    if strata:
        stratum, found = factors.encode(fine.keys.select(list(strata)))
        stratum_names = factors.list_labels(found)
    unit = None
    if names:
        if independent:
            factors.check_units(fine.keys, names)
        unit = factors.encode(fine.keys.select(list(names)))[0]
    return Series(fine.moments, period, stratum, unit, labels, int(stratum.max()) + 1, table.features, stratum_names)
