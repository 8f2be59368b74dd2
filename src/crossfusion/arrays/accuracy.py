"""How well scores recognize groups: balanced accuracy and AUC of held-out rows, with intervals by unit.

Every figure is Σ_c ω_c mean_e∈c v_e: the mean over the units of a cell, weighted over cells. Its variance is that of
the units' own contributions. Wilson's interval, with the sample size that this variance implies, stays within 0 and 1
and has a width where all rows are classified correctly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.arrays.held_out import HeldOut
from crossfusion.fusion import MIN_UNITS
from crossfusion.inference import compute_half_width


@dataclass(frozen=True)
class Share:
    """An estimated share and its variance, degrees of freedom, and least and largest effective sample size."""

    value: float
    variance: float
    freedom: float
    least: float
    most: float

    def limits(self, level: float) -> tuple[float, float]:
        """Compute Wilson's interval for the effective sample size, with a quantile of Student's t."""
        chance = self.value * (1 - self.value)
        size = self.least
        if chance > 0:
            size = min(chance / max(self.variance, chance / self.most), self.most)
        squared = compute_half_width(level, self.freedom) ** 2
        center = (self.value + squared / (2 * size)) / (1 + squared / size)
        half = np.sqrt(squared * (chance / size + squared / (4 * size**2))) / (1 + squared / size)
        return max(float(center - half), 0.0), min(float(center + half), 1.0)


UNKNOWN = Share(np.nan, np.nan, np.nan, np.nan, np.nan)


def estimate_share(held: HeldOut, weight: Mapping[int, float], values: Mapping[int, FloatArray], effect: float) -> Share:
    """Estimate Σ_c ω_c mean_e v_e from the values of the rows of cells.

    It is unknown if values of a cell are NaN for all of its units but one. `effect` is how much more a unit of a cell changes the estimate than its own value does: twice for an AUC, whose
    rows are compared with each other.
    """
    found, variances, freedoms, least, most, unit, influence = 0.0, [], [], 0.0, 0.0, [], []
    for cell, own in weight.items():
        entries = held.average(cell, values[cell])
        known = ~np.isnan(entries)
        entries, number = entries[known], int(known.sum())
        if number < MIN_UNITS:
            return UNKNOWN
        found += own * float(entries.mean())
        gap = (entries - entries.mean()) * (own * effect / np.sqrt(number * (number - 1)))
        variances.append(float(gap @ gap))
        freedoms.append(number - 1)
        least += (own * effect) ** 2 / number
        most += own**2 / len(values[cell])
        unit.append(held.units_of(cell)[known])
        influence.append(gap)
    variance = float(np.sum(np.bincount(np.concatenate(unit), weights=np.concatenate(influence)) ** 2))
    spread = sum(v**2 / f for v, f in zip(variances, freedoms, strict=True))
    freedom = sum(variances) ** 2 / spread if spread > 0 else float(sum(freedoms))
    return Share(found, variance, freedom, 1 / least, 1 / most)


def compute_placements(
    held: HeldOut, own: int, others: Sequence[int], scores: Mapping[int, FloatArray]
) -> dict[int, FloatArray]:
    """Compare the scores of the rows of a cell with those of other cells, within each fold.

    A row's placement is the weighted share of rows of the other side that it is ordered correctly with; NaN if the
    other side has no row in its fold.
    """
    folds = {cell: held.fold[held.edges[cell] : held.edges[cell + 1]] for cell in (own, *others)}
    found = {cell: np.full(len(fold), np.nan) for cell, fold in folds.items()}
    for fold in np.unique(folds[own]):
        left = np.flatnonzero(folds[own] == fold)
        right = {cell: np.flatnonzero(folds[cell] == fold) for cell in others}
        right = {cell: rows for cell, rows in right.items() if len(rows)}
        if not right:
            continue
        weights = [held.weigh(cell, rows) for cell, rows in right.items()]
        opposed = np.concatenate([scores[cell][rows] for cell, rows in right.items()])
        found[own][left] = _share_below(opposed, np.concatenate(weights), scores[own][left])
        for cell, rows in right.items():
            found[cell][rows] = 1 - _share_below(scores[own][left], held.weigh(own, left), scores[cell][rows])
    return found


def _share_below(values: FloatArray, weight: FloatArray, limits: FloatArray) -> FloatArray:
    """Weighted share of values below each limit; equal ones count half."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    summed = np.concatenate([[0.0], np.cumsum(weight[order])])
    return np.asarray(
        (summed[np.searchsorted(ordered, limits, "left")] + summed[np.searchsorted(ordered, limits, "right")])
        / (2 * summed[-1])
    )
