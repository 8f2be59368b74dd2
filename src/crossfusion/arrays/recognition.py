"""Balanced accuracy and AUC of held-out rows: of all groups, of one group against the others, and of pairs."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FloatArray
from crossfusion.arrays.accuracy import Share, compute_placements, estimate_share
from crossfusion.arrays.held_out import HeldOut
from crossfusion.fusion import Codes

Shares = tuple[Share, Share]


@dataclass(frozen=True)
class Comparison:
    """Held-out rows with their scores for the groups of their stratum, and the weight of each stratum."""

    held: HeldOut
    strata: FloatArray
    scores: FloatArray

    @cached_property
    def weight(self) -> FloatArray:
        """Weight of each cell if all groups of a stratum weigh the same; 0 if the stratum holds one group."""
        return np.asarray((self.strata / np.maximum(self.members, 1))[self.held.stratum])

    @cached_property
    def members(self) -> Codes:
        """Number of groups in each stratum."""
        return np.bincount(self.held.stratum, minlength=len(self.strata))

    @property
    def chance(self) -> float:
        """Balanced accuracy of guessing."""
        return float(np.sum(self.strata / np.maximum(self.members, 1)))

    @cached_property
    def odds(self) -> FloatArray:
        """Log odds of each group against the others of the stratum together, as if both were equally probable before.

        The sum over the others is taken without the largest score where that is the group's own, so nothing cancels.
        """
        scores = np.where(np.isnan(self.scores), -np.inf, self.scores)
        everyone, best = np.arange(len(scores)), scores.argmax(axis=1)
        top = scores[everyone, best]
        powers = np.exp(scores - top[:, None])
        rest = powers.sum(axis=1)[:, None] - powers
        without = scores.copy()
        without[everyone, best] = -np.inf
        second = without.max(axis=1)
        powers = np.exp(without - second[:, None])
        others = self.members[self.held.stratum[self.held.cell]] - 1
        found = self.scores - (top[:, None] + np.log(np.maximum(rest, np.finfo(float).tiny)))
        found[everyone, best] = top - (second + np.log(powers.sum(axis=1)))
        return np.asarray(found + np.log(others)[:, None])

    def recognize_all(self) -> Share:
        """Balanced accuracy of all groups together; equal scores share a row."""
        known = np.where(np.isnan(self.scores), -np.inf, self.scores)
        won = known == known.max(axis=1, keepdims=True)
        right = won[np.arange(len(won)), self.held.group[self.held.cell]]
        return estimate_share(self.held, self.weight, right / won.sum(axis=1), effect=1)

    def compare_with_rest(self) -> tuple[list[Shares | None], Share]:
        """Balanced accuracy and AUC of each group against all others, and the mean AUC.

        None for a group that is alone in its strata.
        """
        groups = np.unique(self.held.group[self.weight > 0])
        found: list[Shares | None] = [None] * self.scores.shape[1]
        weights, values = np.zeros(len(self.weight)), np.zeros(len(self.scores))
        for group in groups.tolist():
            weight = self._weigh(group)
            shares, placements = measure(self.held, weight, self.odds[:, group], self.held.group == group)
            found[group] = shares
            weights += weight / len(groups)
            used = weight[self.held.cell] > 0
            values[used] += (weight[self.held.cell] * placements)[used] / len(groups)
        average = np.divide(values, weights[self.held.cell], out=values, where=weights[self.held.cell] > 0)
        return found, estimate_share(self.held, weights, average, effect=2)

    def compare_pair(self, first: int, second: int) -> Shares | None:
        """Balanced accuracy and AUC of two groups; None if they share no stratum."""
        a, b = (np.flatnonzero((self.held.group == group) & (self.weight > 0)) for group in (first, second))
        shared = np.intersect1d(self.held.stratum[a], self.held.stratum[b], assume_unique=True)
        if not len(shared):
            return None
        cells = np.sort(np.concatenate([own[np.isin(self.held.stratum[own], shared)] for own in (a, b)]))
        held, rows = self.held.select(cells)
        weight = self.strata[held.stratum]
        odds = self.scores[rows, first] - self.scores[rows, second]
        return measure(held, weight / weight.sum(), odds, held.group == first)[0]

    def _weigh(self, group: int) -> FloatArray:
        """Weigh cells: half for the group, half for the others, which weigh the same in each stratum."""
        own = self.held.group == group
        there = np.bincount(self.held.stratum, weights=own, minlength=len(self.strata))
        strata = self.strata * there
        each = np.where(own, 1, 1 / np.maximum(self.members - 1, 1)[self.held.stratum])
        return np.asarray((strata / strata.sum() / 2)[self.held.stratum] * each)


def measure(held: HeldOut, weight: FloatArray, odds: FloatArray, own: NDArray[np.bool_]) -> tuple[Shares, FloatArray]:
    """Balanced accuracy and AUC of the odds of rows, for the cells of one side, and the placements of rows."""
    mine, used = own[held.cell], weight[held.cell] > 0
    right = np.where(used, 0.5 + 0.5 * np.sign(np.where(mine, odds, -odds)), np.nan)
    placements = compute_placements(held, odds, mine, used)
    accuracy = estimate_share(held, weight, right, effect=1)
    return (accuracy, estimate_share(held, weight, placements, effect=2)), placements
