"""Balanced accuracy and AUC of held-out rows: of all groups, of one group against the others, and of pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.arrays.accuracy import Share, compute_placements, estimate_share
from crossfusion.arrays.held_out import HeldOut


@dataclass(frozen=True)
class Comparison:
    """Held-out rows with their scores for the groups of their stratum, and the weight of each stratum."""

    held: HeldOut
    strata: FloatArray
    scores: FloatArray

    @cached_property
    def members(self) -> dict[int, dict[int, int]]:
        """Cell of each group, by stratum that holds several."""
        strata = np.flatnonzero(self.strata > 0).tolist()
        found = {stratum: np.flatnonzero(self.held.stratum == stratum) for stratum in strata}
        return {
            stratum: dict(zip(self.held.group[cells].tolist(), cells.tolist(), strict=True))
            for stratum, cells in found.items()
        }

    def recognize_all(self) -> tuple[Share, float]:
        """Balanced accuracy of all groups together, and that of guessing."""
        weight, values, chance = {}, {}, 0.0
        for stratum, cells in self.members.items():
            chance += float(self.strata[stratum]) / len(cells)
            for group, cell in cells.items():
                scores = self._select(cell)[:, list(cells)]
                won = scores == scores.max(axis=1, keepdims=True)  # equal scores share a row
                values[cell] = won[:, list(cells).index(group)] / won.sum(axis=1)
                weight[cell] = float(self.strata[stratum]) / len(cells)
        return estimate_share(self.held, weight, values, effect=1), chance

    def compare_with_rest(self, group: int) -> tuple[Share, Share] | None:
        """Balanced accuracy and AUC of a group against all others; None if it is alone in its strata."""
        return self._measure({stratum: own for stratum, own in self.members.items() if group in own}, group)

    def compare_pair(self, first: int, second: int) -> tuple[Share, Share] | None:
        """Balanced accuracy and AUC of two groups; None if they share no stratum."""
        both = {
            stratum: {first: own[first], second: own[second]}
            for stratum, own in self.members.items()
            if first in own and second in own
        }
        return self._measure(both, first)

    def average_auc(self) -> Share:
        """AUC of each group against all others, averaged over groups."""
        groups = sorted({group for own in self.members.values() for group in own})
        weight: dict[int, float] = {}
        sums: dict[int, FloatArray] = {}
        for group in groups:
            own, values = self._place({s: cells for s, cells in self.members.items() if group in cells}, group)
            for cell, share in own.items():
                weight[cell] = weight.get(cell, 0.0) + share / len(groups)
                sums[cell] = sums.get(cell, 0.0) + values[cell] * share / len(groups)
        return estimate_share(self.held, weight, {cell: sums[cell] / weight[cell] for cell in weight}, effect=2)

    def _select(self, cell: int) -> FloatArray:
        """Scores of the rows of a cell."""
        return self.scores[self.held.edges[cell] : self.held.edges[cell + 1]]

    def _weigh(self, strata: dict[int, dict[int, int]], group: int) -> dict[int, float]:
        """Weights of cells: half for the group, half for the others, which weigh the same in each stratum."""
        total = sum(float(self.strata[stratum]) for stratum in strata)
        return {
            cell: float(self.strata[stratum]) / total / 2 / (1 if other == group else len(cells) - 1)
            for stratum, cells in strata.items()
            for other, cell in cells.items()
        }

    def _measure(self, strata: dict[int, dict[int, int]], group: int) -> tuple[Share, Share] | None:
        if not strata:
            return None
        weight = self._weigh(strata, group)
        values = {}
        for cells in strata.values():
            for other, cell in cells.items():
                odds = self._compute_odds(cell, group, list(cells))
                values[cell] = 0.5 + 0.5 * np.sign(odds if other == group else -odds)
        accuracy = estimate_share(self.held, weight, values, effect=1)
        _, placements = self._place(strata, group)
        return accuracy, estimate_share(self.held, weight, placements, effect=2)

    def _place(self, strata: dict[int, dict[int, int]], group: int) -> tuple[dict[int, float], dict[int, FloatArray]]:
        """Weights of cells, and the placement of each of their rows among those of the other side."""
        values: dict[int, FloatArray] = {}
        for cells in strata.values():
            odds = {cell: self._compute_odds(cell, group, list(cells)) for cell in cells.values()}
            others = [cell for other, cell in cells.items() if other != group]
            values |= compute_placements(self.held, cells[group], others, odds)
        return self._weigh(strata, group), values

    def _compute_odds(self, cell: int, group: int, groups: Sequence[int]) -> FloatArray:
        """Log odds of a group against the others of some groups together, as if both were equally probable before."""
        scores = self._select(cell)
        others = scores[:, [other for other in groups if other != group]]
        top = others.max(axis=1)
        rest = top + np.log(np.mean(np.exp(others - top[:, None]), axis=1))
        return np.asarray(scores[:, group] - rest)
