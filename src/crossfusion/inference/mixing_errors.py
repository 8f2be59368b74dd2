"""Chance, test and interval of the mutual information of group and region.

The sample overestimates mutual information, most where groups mix. Its mean under permutations of units says by how
much, for any number of regions and any dependence of the rows of a unit. Its variance comes from leaving out each unit
in turn. Near zero, mutual information is a quadratic form of the errors of the groups' shares, as the variance between
means is: half the squared distance of the shares, each in units of the root of the region's share. So its limits are
those of such a distance.
"""

from dataclasses import dataclass

import numpy as np

from crossfusion._base import FloatArray, InputError
from crossfusion.fusion import Codes, Design, measure_entropy, measure_information
from crossfusion.inference.intervals import Errors, compute_half_width
from crossfusion.inference.permutation.exchangeable import encode_strata_sets, find_exchangeable, is_crossed
from crossfusion.inference.permutation.orders import LabelOrders
from crossfusion.inference.unit_errors import UnitMoments, estimate_unit_errors
from crossfusion.moments import Moments

SMALL = 1e-5  # unit of information in which log(1 + x) is x, for limits of distances


@dataclass(frozen=True)
class RegionCounts:
    """Rows of each entry in each region: of a cell, or a unit in a cell. `unit` is None if rows are the units."""

    count: FloatArray
    cell: Codes
    unit: Codes | None
    group: Codes
    stratum: Codes

    @property
    def cells(self) -> FloatArray:
        """Rows of each cell in each region."""
        return self._add(self.cell, len(self.group))

    def _add(self, code: Codes, number: int) -> FloatArray:
        total = np.zeros((number, self.count.shape[1]))
        np.add.at(total, code, self.count)
        return total

    @property
    def information(self) -> float:
        """Mutual information of group and region within strata."""
        return float(measure_information(self.cells, self.stratum).sum())

    @property
    def entropy(self) -> float:
        """Entropy of the group within strata."""
        return measure_entropy(self.cells.sum(axis=1), self.stratum)

    def permute(self, permutations: int, seed: int) -> FloatArray:
        """Mutual information under permutations of units, or of rows."""
        return self._permute_rows(permutations, seed) if self.unit is None else self._permute_units(permutations, seed)

    def _permute_units(self, permutations: int, seed: int) -> FloatArray:
        unit, groups = self.unit, int(self.group.max()) + 1
        assert unit is not None
        label, stratum = self.group[self.cell], self.stratum[self.cell]
        items = find_exchangeable(label, stratum, unit, crossed=is_crossed(label, unit))
        orders = LabelOrders.make(items.label, items.block)
        if orders.count(2) == 1:
            raise InputError(
                problem="there is only one way to arrange the units, so chance cannot be judged",
                remedy="pass more units, or coarser strata",
            )
        drawn = orders.draw_random(seed)(0, permutations)[:, orders.place[items.item]]
        code = np.arange((int(stratum.max()) + 1) * groups) // groups
        return np.array(
            [measure_information(self._add(stratum * groups + labels, len(code)), code).sum() for labels in drawn]
        )

    def _permute_rows(self, permutations: int, seed: int) -> FloatArray:
        draw = np.random.default_rng(seed)
        cells = np.rint(self.cells).astype(np.int64)
        rows = cells.sum(axis=1)
        found = np.zeros(permutations)
        for k in range(permutations):
            drawn = np.zeros(cells.shape)
            for stratum in range(int(self.stratum.max()) + 1):
                members = np.flatnonzero(self.stratum == stratum)
                left = cells[members].sum(axis=0)
                for cell in members:
                    drawn[cell] = draw.multivariate_hypergeometric(left, rows[cell], method="marginals")
                    left = left - drawn[cell].astype(np.int64)
            found[k] = measure_information(drawn, self.stratum).sum()
        return found

    def estimate_interval(self, level: float, chance: float) -> tuple[float, float, float]:
        """Estimate the limits and the standard error of the mutual information in excess of chance."""
        cells, moments = self.cells, self._make_moments()
        design = Design(moments.moments.merge(self.cell, len(cells)), self.group, self.stratum, range(len(cells)))
        near = estimate_unit_errors(moments, design, design.weights("pooled")).errors
        within = float(np.sum(design.weights("pooled") * design.cells.dispersion))
        variance = self._leave_out_units()
        excess = self.information - chance
        errors = Errors(
            between=np.array(SMALL * excess),
            within=np.array(1.0),
            total=np.array(1 + SMALL * self.information),
            linear=np.array(SMALL**2 * variance),
            bias=np.array(SMALL * float(near.bias) * within / 2),
            quadratic=np.array(SMALL**2 * float(near.quadratic) * within**2 / 4),
            freedom=near.freedom,
        )
        stderr = float(np.sqrt(variance))
        low, high = (float(end) / SMALL for end in errors.limits(level))
        return min(low, max(excess - compute_half_width(level, float(near.freedom)) * stderr, 0.0)), high, stderr

    def _make_moments(self) -> UnitMoments:
        """Moments of each entry's rows with one feature per region, in units of the root of the region's share."""
        assert self.unit is not None
        strata = np.zeros((int(self.stratum.max()) + 1, self.count.shape[1]))
        np.add.at(strata, self.stratum, self.cells)
        share = (strata / strata.sum(axis=1, keepdims=True))[self.stratum[self.cell]]
        rows = self.count.sum(axis=1)
        mean = self.count / rows[:, None]
        square = np.divide(mean - mean**2, share, out=np.zeros_like(mean), where=share > 0) * rows[:, None]
        scaled = np.divide(mean, np.sqrt(share), out=np.zeros_like(mean), where=share > 0)
        return UnitMoments(Moments(rows, scaled, square), self.cell, self.unit)

    def _leave_out_units(self) -> float:
        """Estimate the variance of the mutual information by leaving out each unit in turn."""
        assert self.unit is not None
        cells, number = self.cells, int(self.unit.max()) + 1
        found = np.zeros(number)
        order = np.argsort(self.unit, kind="stable")
        for entries in np.split(order, np.flatnonzero(np.diff(self.unit[order])) + 1):
            left = cells.copy()
            np.subtract.at(left, self.cell[entries], self.count[entries])
            found[self.unit[entries[0]]] = measure_information(np.maximum(left, 0.0), self.stratum).sum()
        kind = encode_strata_sets(self.unit, self.group[self.cell])
        size = np.bincount(kind)
        apart = (found - (np.bincount(kind, weights=found) / size)[kind]) ** 2
        return float(np.sum(apart * ((size - 1) / size)[kind]))
