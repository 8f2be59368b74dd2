"""Which cells are compared, and how they are weighted.

A stratum holds rows that share a value of the adjusting factors (``given``); without them there is one stratum. A cell
holds the rows of one group in one stratum.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FloatArray, InputError, check_option
from crossfusion.fusion.scaling import FeatureScale, measure_total_scale, measure_within_scale
from crossfusion.moments import Moments

Codes = NDArray[Any]
WEIGHTS = ("pooled", "balanced")
MIN_VARIANCE = 1e-313  # below, squares have few digits or are 0
NO_VARIANCE = "every group has one row (in its stratum), so the variance within groups is unknown"


@dataclass(frozen=True)
class Design:
    """Moments of the observed cells, the group and stratum of each, and the labels of the groups.

    `borrowed` is the variance within a cell that has one row: by default, the one pooled over all cells. `features`
    holds the names of the features, `strata` those of the strata, if they have any. `scale` says what the features were
    divided by, if anything. `side`, if there is one, numbers the side of each cell: cells of one side (in a stratum)
    are compared together, as a mixture with fixed weights.
    """

    cells: Moments
    group: Codes
    stratum: Codes
    labels: Sequence[Hashable]
    borrowed: float | None = None
    features: Sequence[str] | None = None
    strata: Sequence[Hashable] | None = None
    scale: FeatureScale | None = None
    side: Codes | None = None

    def check_groups(self) -> None:
        """Reject a comparison of fewer than two groups, or of values whose squares underflow."""
        if len(self.labels) < 2:
            shown = ", ".join(map(repr, self.labels))
            raise InputError(problem=f"there is only one group to compare ({shown})", remedy="pass at least two")
        within = float(self.cells.dispersion.max())
        if within < MIN_VARIANCE:
            apart = float(np.ptp(self.cells.mean, axis=0).max())
            if (within or apart) and apart < MIN_VARIANCE**0.5:
                raise InputError(
                    problem="the values differ by so little that their squares fall below the range of float64",
                    remedy="scale the rows up",
                )

    def pair(self, first: int, second: int) -> tuple["Design", Codes]:
        """Design of two groups alone, and the indices of its cells."""
        kept = np.flatnonzero((self.group == first) | (self.group == second))
        stratum = np.unique(self.stratum[kept], return_inverse=True)[1]
        group = (self.group[kept] == second).astype(int)
        labels = [self.labels[first], self.labels[second]]
        pair = replace(self, cells=self.cells[kept], group=group, stratum=stratum, labels=labels, strata=None)
        return replace(pair, borrowed=self.pooled_variance, scale=self.scale and self.scale.select(kept)), kept

    def standardize(self, weight: FloatArray) -> "Design":
        """Divide each feature by its standard deviation within cells, at these weights."""
        return self.rescale(measure_within_scale(self.cells, weight, self.features))

    def rescale(self, scale: FeatureScale) -> "Design":
        """Put features in a scale."""
        return replace(self, cells=self.cells.multiply(scale.factor), scale=scale)

    def standardize_in_total(self) -> "Design":
        """Divide each feature by its standard deviation within whole strata, whatever the groups in them."""
        strata = self.cells.merge(self.stratum, int(self.stratum.max()) + 1)
        return self.rescale(measure_total_scale(strata, len(self.cells), self.features))

    @property
    def dim(self) -> int:
        """Number of features, without those that `scale` leaves out."""
        return self.cells.dim if self.scale is None else int(np.count_nonzero(self.scale.factor))

    @property
    def shrinkage(self) -> float:
        """Factor of the variance between cells that removes the bias of `scale`; 1 without one."""
        return 1.0 if self.scale is None else self.scale.shrinkage

    def estimate_mean_errors(self) -> FloatArray:
        """Estimate the squared error of each cell's mean, without the bias of `scale`."""
        error = estimate_mean_errors(self.cells, self.borrowed)
        return error if self.scale is None else error * self.scale.error_factor

    @property
    def pooled_variance(self) -> float:
        """Variance that a cell with one row borrows; NaN if there is none."""
        return _pool_variance(self.cells) if self.borrowed is None else self.borrowed

    def select(self, kept: Codes) -> "Design":
        """Design of some cells alone, with groups and strata renumbered."""
        if len(kept) == len(self.cells):
            return self
        present, group = np.unique(self.group[kept], return_inverse=True)
        places, stratum = np.unique(self.stratum[kept], return_inverse=True)
        labels = [self.labels[k] for k in present]
        strata = None if self.strata is None else [self.strata[k] for k in places]
        return replace(self, cells=self.cells[kept], group=group, stratum=stratum, labels=labels, strata=strata)

    @property
    def rank(self) -> int:
        """Number of differences between means that are compared."""
        sides = len(self.cells) if self.side is None else len(np.unique(self.side))
        return sides - len(np.unique(self.stratum))

    def compute_sides(self, weight: FloatArray) -> "Sides":
        """Compute the means that are compared, and the variances within and between them."""
        mean, stratum = self.cells.mean, self.stratum
        center = compute_stratum_means(mean, weight, stratum)[stratum]
        within = float(np.sum(weight * self.cells.dispersion))
        if self.side is None:
            between = float(between_by_feature(mean, weight, stratum).sum())
            return Sides(mean, center, within, between, self.compute_share(weight))
        means = compute_stratum_means(mean, weight, self.side)
        whole = np.bincount(self.side, weights=weight).astype(np.float64)
        first = np.unique(self.side, return_index=True)[1]
        between = float(between_by_feature(means, whole, stratum[first]).sum())
        within += float(between_by_feature(mean, weight, self.side).sum())
        return Sides(means[self.side], center, within, between, self.compute_share(weight))

    def compute_share(self, weight: FloatArray) -> FloatArray:
        """Compute the share of each cell in the weight of its side."""
        if self.side is None:
            return np.ones(len(weight))
        return np.asarray(weight / np.bincount(self.side, weights=weight)[self.side])

    def name_stratum(self, cell: int) -> Hashable | None:
        """Name of the stratum of a cell; None without strata."""
        return None if self.strata is None else self.strata[self.stratum[cell]]

    def weights(self, scheme: str) -> FloatArray:
        """Weights of the cells, summing to 1: by rows ("pooled"), or equal for all groups ("balanced").

        With balanced weights, a stratum weighs its average share of a group's rows, divided equally among its cells.
        """
        check_option(scheme, WEIGHTS, "weights")
        count = self.cells.count
        if scheme == "pooled":
            return np.asarray(count / count.sum())
        share = count / np.bincount(self.group, weights=count)[self.group]
        cells_in_stratum = np.maximum(np.bincount(self.stratum), 1)  # leaving a unit out may empty a stratum
        weight_of_stratum = np.bincount(self.stratum, weights=share) / len(self.labels)
        return np.asarray((weight_of_stratum / cells_in_stratum)[self.stratum])


@dataclass(frozen=True)
class Sides:
    """For each cell, the mean of its side and of its stratum, and its share of the weight of its side.

    `within` includes the variance between the cells of a side.
    """

    mean: FloatArray
    center: FloatArray
    within: float
    between: float
    share: FloatArray

    def find_direction(self, mean: FloatArray) -> FloatArray:
        """Find the direction in which an error of each cell's mean changes log(total / within), times total / 2.

        For a mixture, that is μ_c − μ_g for the total less (μ_c − μ_side) total / within for the variance within.
        """
        return np.asarray(self.mean - self.center - (mean - self.mean) * (self.between / self.within))


def between_by_feature(mean: FloatArray, weight: FloatArray, stratum: Codes) -> FloatArray:
    """Compute the weighted variance of means around the mean of their stratum, Σ w ‖μ − μ_g‖², per feature."""
    points = Moments(weight, mean, np.zeros_like(mean))
    with np.errstate(over="ignore", invalid="ignore"):
        between = np.asarray(points.merge(stratum, int(stratum.max()) + 1).sumsq.sum(axis=0))
    check_range(between)
    return between


def compute_stratum_means(mean: FloatArray, weight: FloatArray, stratum: Codes) -> FloatArray:
    """Compute the weighted mean of the cells' means in each stratum."""
    return Moments(weight, mean, np.zeros_like(mean)).merge(stratum, int(stratum.max()) + 1).mean


def split_by_stratum(stratum: Codes) -> list[Codes]:
    """List the indices of the cells of each stratum."""
    order = np.argsort(stratum, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(stratum[order])) + 1)


def check_range(between: FloatArray) -> None:
    """Reject groups whose squared distance overflows."""
    if not np.isfinite(between).all():
        raise InputError(
            problem="the groups are so far apart that squares exceed the range of float64", remedy="scale the rows down"
        )


def estimate_mean_errors(cells: Moments, borrowed: float | None = None) -> FloatArray:
    """Estimate the squared error of each cell's mean, s²/n.

    A cell with one row borrows the variance s², by default the one pooled over all cells; NaN if there is none.
    """
    several = cells.count > 1
    if several.all():
        return np.asarray(cells.dispersion / (cells.count - 1))
    own = cells.dispersion / np.where(several, cells.count - 1, 1.0)
    return np.where(several, own, (_pool_variance(cells) if borrowed is None else borrowed) / cells.count)


def _pool_variance(cells: Moments) -> float:
    """Pool the variance within the cells, Σ (n − 1) s² / Σ (n − 1); NaN if all of them have one row."""
    several = cells.count > 1
    freedom = float(np.sum(cells.count[several] - 1))
    return float(np.sum((cells.count * cells.dispersion)[several])) / freedom if freedom else np.nan
