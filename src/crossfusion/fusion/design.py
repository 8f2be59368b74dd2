"""Who is compared with whom: cells of groups within parts, and their weights.

Two partitions are always in play. The coarse one has parts: a single one, or the strata of ``given``. The fine one has
cells: the compared groups within each part.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FloatArray, InputError, check_option
from crossfusion.moments import Moments

Codes = NDArray[Any]
WEIGHTS = ("pooled", "balanced")


@dataclass(frozen=True)
class Design:
    """Moments of the observed cells, each with its group and its part, and the groups' labels."""

    cells: Moments
    group: Codes
    part: Codes
    labels: Sequence[Hashable]

    def check_groups(self) -> None:
        """Refuse a comparison of one group with nothing."""
        if len(self.labels) < 2:
            shown = ", ".join(map(repr, self.labels))
            raise InputError(problem=f"there is only one group to compare ({shown})", remedy="pass at least two")

    def pair(self, first: int, second: int) -> tuple["Design", Codes]:
        """The design of two groups alone, and which of the cells it has."""
        kept = np.flatnonzero((self.group == first) | (self.group == second))
        part = np.unique(self.part[kept], return_inverse=True)[1]
        group = (self.group[kept] == second).astype(int)
        return Design(self.cells[kept], group, part, [self.labels[first], self.labels[second]]), kept

    def weights(self, scheme: str) -> FloatArray:
        """Weights of the cells, summing to 1: by rows ("pooled"), or the same say for every group ("balanced").

        Balanced within parts: part q weighs as much as it does on average in the groups, and its cells weigh the same.
        """
        check_option(scheme, WEIGHTS, "weights")
        count = self.cells.count
        if scheme == "pooled":
            return np.asarray(count / count.sum())
        share = count / np.bincount(self.group, weights=count)[self.group]
        cells_in_part = np.maximum(np.bincount(self.part), 1)  # leaving a unit out may empty a part
        weight_of_part = np.bincount(self.part, weights=share) / len(self.labels)
        return np.asarray((weight_of_part / cells_in_part)[self.part])


def between_by_feature(mean: FloatArray, weight: FloatArray, part: Codes) -> FloatArray:
    """Weighted scatter of means around the means of their parts, Σ w ‖μ − μ_part‖², for each feature."""
    points = Moments(weight, mean, np.zeros_like(mean))
    with np.errstate(over="ignore", invalid="ignore"):
        between = np.asarray(points.merge(part, int(part.max()) + 1).sumsq.sum(axis=0))
    check_range(between)
    return between


def stratum_means(mean: FloatArray, weight: FloatArray, part: Codes) -> FloatArray:
    """Weighted mean of the cells' means in each part."""
    return Moments(weight, mean, np.zeros_like(mean)).merge(part, int(part.max()) + 1).mean


def split_by_stratum(part: Codes) -> list[Codes]:
    """Indices of the cells of each part."""
    order = np.argsort(part, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(part[order])) + 1)


def check_range(between: FloatArray) -> None:
    """Refuse groups too far apart to square their distance."""
    if not np.isfinite(between).all():
        raise InputError(
            problem="the groups are so far apart that squares exceed the range of float64", remedy="scale the rows down"
        )


def error_of_mean(cells: Moments) -> FloatArray:
    """Unbiased squared error of each cell's mean, s²/n; NaN where a cell has one row."""
    freedom = np.where(cells.count > 1, cells.count - 1, np.nan)
    return np.asarray(cells.dispersion / freedom)
