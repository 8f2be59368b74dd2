"""How well scores recognize groups: balanced accuracy and AUC of held-out rows, with intervals by unit.

Every figure is Σ_c ω_c mean_e∈c v_e: the mean over the units of a cell, weighted over cells. Its variance is that of
the units' own contributions, and more: the classifiers of two of J folds share most of the units they are fitted to, so
the folds are correlated. With the correlation 1/J that Nadeau and Bengio (2003) propose, the variance is 1 + (J − 1)/J
times as large. Wilson's interval, with the sample size that this variance implies, stays within 0 and 1 and has a width
where all rows are classified correctly.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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


def estimate_share(held: HeldOut, weight: FloatArray, values: FloatArray, effect: float) -> Share:
    """Estimate Σ_c ω_c mean_e v_e from the weights of cells and the values of rows; NaN is left out.

    It is unknown if a weighted cell has values of fewer than two units. `effect` is how much more a unit changes the
    estimate than its own value does: twice for an AUC, whose rows are compared with each other.
    """
    entries, cell = held.average(values), held.entry_cell
    known = ~np.isnan(entries) & (weight[cell] > 0)
    entries, cell, unit = entries[known], cell[known], held.entry_unit[known]
    used = np.flatnonzero(weight)
    number = np.bincount(cell, minlength=len(weight))
    if number[used].min() < MIN_UNITS:
        return UNKNOWN
    mean = np.bincount(cell, weights=entries, minlength=len(weight)) / np.maximum(number, 1)
    gap = (entries - mean[cell]) * (weight * effect / np.sqrt(np.maximum(number * (number - 1), 1)))[cell]
    variance = float(np.sum(np.bincount(unit, weights=gap) ** 2))
    own, freedom = np.bincount(cell, weights=gap**2, minlength=len(weight))[used], number[used] - 1
    spread = float(np.sum(own**2 / freedom))
    shared = 2 - 1 / held.folds
    return Share(
        value=float(weight @ mean),
        variance=shared * variance,
        freedom=float(own.sum()) ** 2 / spread if spread > 0 else float(freedom.sum()),
        least=1 / float(np.sum(weight[used] ** 2 / number[used])),
        most=1 / float(shared * np.sum(weight[used] ** 2 / held.count[used])),
    )


def compute_placements(held: HeldOut, odds: FloatArray, own: NDArray[np.bool_], used: NDArray[np.bool_]) -> FloatArray:
    """Compare the odds of rows of one side with those of the other, within each fold of each stratum.

    A row's placement is the weighted share of rows of the other side that it is ordered correctly with, where cells of
    the other side weigh the same and so do their units; NaN if the other side has no row there.
    """
    rows = np.flatnonzero(used)
    rows = rows[np.lexsort((odds[rows], held.block[rows]))]
    block, ordered, mine = held.block[rows], odds[rows], own[rows]
    new = np.diff(block, prepend=-1) != 0
    first = np.flatnonzero(new | (np.diff(ordered, prepend=np.nan) != 0))  # of rows that are equal
    run = np.cumsum(new | (np.diff(ordered, prepend=np.nan) != 0)) - 1
    last = np.append(first[1:], len(rows))
    start, code = np.flatnonzero(new), np.cumsum(new) - 1
    stop = np.append(start[1:], len(rows))
    found = np.full(len(odds), np.nan)
    for side in (True, False):  # rows of the one among those of the other
        summed = np.concatenate([[0.0], np.cumsum(held.weight[rows] * (mine != side))])
        total = (summed[stop] - summed[start])[code]
        below = (summed[first] + summed[last])[run] / 2 - summed[start][code]
        present = np.bincount(code, weights=mine != side)[code] > 0
        share = np.divide(below, total, out=np.full(len(rows), np.nan), where=present)
        chosen = mine == side
        found[rows[chosen]] = (share if side else 1 - share)[chosen]
    return found
