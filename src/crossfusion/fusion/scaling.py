"""Features in units of their own standard deviation, so that each counts the same (``scale="features"``).

With the variance W_j within groups and B_j between them, CFD is then log(1 + mean_j B_j / W_j). Moments are per
feature, so it suffices to divide means by √W_j and sums of squares by W_j: every formula applies to the result.

Dividing by an estimate has a bias of its own. For normal rows, W_j is independent of the means and E[1 / W_j] is larger
than 1 / E[W_j] by ν / (ν − 2) for ν degrees of freedom, the same factor for every feature. The unbiased estimate
multiplies the variance between by (ν − 2) / ν. The error of a cell's mean that it subtracts is divided by W_j, too, to
which the cell contributes: to first order, the quotient is too small by the difference of their relative covariance
and the relative variance of W_j, 2 / ν.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crossfusion._base import MAX_LISTED_GROUPS, FloatArray, InputError, check_option, count_text, label_text
from crossfusion.moments import Moments

SCALES = ("features",)
TEST_PLACE = "without regard to groups (of the distance: within groups)"  # what a test divides by, as permutations need
TOO_FEW_ROWS = "the groups have too few rows to estimate the standard deviation of each feature"
ROUNDING = 16 * np.finfo(np.float64).eps  # of a feature's largest mean: a smaller standard deviation is rounding
MIN_FREEDOM = 2.0  # of the variance within, at or below which its inverse has no expected value


@dataclass(frozen=True)
class FeatureScale:
    """The factor of each feature of a design, and how far the variances that it comes from are in error.

    `factor` is 0 for the features in `constant`, which do not vary within groups; `separating` lists those of them
    whose means differ between groups. `freedom` is ν; `overlap` is the relative covariance of each cell's variance and
    W_j.
    """

    factor: FloatArray
    constant: tuple[Hashable, ...]
    separating: tuple[Hashable, ...]
    freedom: float
    overlap: FloatArray

    def select(self, cells: Any) -> "FeatureScale":
        """The same scale, for some of the cells."""
        return replace(self, overlap=self.overlap[cells])

    def share_evenly(self, cells: int) -> "FeatureScale":
        """The same scale for other cells, as if their variances were in error as those behind the scale are."""
        return replace(self, overlap=np.full(cells, 2 / self.freedom))

    @property
    def shrinkage(self) -> float:
        """Factor that removes the bias of dividing the variance between by an estimate."""
        return 1 - 2 / self.freedom if self.freedom > MIN_FREEDOM else np.nan

    @property
    def error_factor(self) -> FloatArray:
        """Factor of each cell that removes the bias of dividing its mean's squared error by an estimate."""
        return np.asarray(1 + self.overlap - 2 / self.freedom)


def check_scale(scale: Any) -> None:
    """Check the name of a scale; None leaves features as they are."""
    if scale is not None:
        check_option(scale, SCALES, "scale")


def measure_within_scale(cells: Moments, weight: FloatArray, names: Sequence[Hashable] | None) -> FeatureScale:
    """Measure the standard deviation of each feature within cells, at the weights of the comparison."""
    variance = (weight / cells.count) @ cells.sumsq
    varied = np.sqrt(variance) > ROUNDING * np.abs(cells.mean).max(axis=0)
    apart = ~varied & (np.ptp(cells.mean, axis=0) > ROUNDING * np.abs(cells.mean).max(axis=0))
    several = cells.count > 1
    part = np.where(several, weight * (cells.count - 1) / cells.count, 0.0)
    part = part / max(part.sum(), np.finfo(np.float64).tiny)
    overlap = 2 * part / np.where(several, cells.count - 1, 1.0)
    inverse = float(part @ overlap) / 2
    freedom = 1 / inverse if inverse > 0 else np.nan
    return FeatureScale(
        factor=_invert(variance, varied),
        constant=_name_features(~varied, names),
        separating=_name_features(apart, names),
        freedom=freedom,
        overlap=np.where(several, overlap, 2 * inverse),
    )


def measure_total_scale(strata: Moments, cells: int, names: Sequence[Hashable] | None) -> FeatureScale:
    """Measure the standard deviation of each feature within whole strata, which no permutation of labels changes."""
    variance = strata.sumsq.sum(axis=0) / strata.count.sum()
    varied = np.sqrt(variance) > ROUNDING * np.abs(strata.mean).max(axis=0)
    constant = _name_features(~varied, names)
    return FeatureScale(_invert(variance, varied), constant, (), np.inf, np.zeros(cells))


def _invert(variance: FloatArray, varied: Any) -> FloatArray:
    """Compute the factor of each feature, 0 for those that do not vary."""
    if not varied.any():
        raise InputError(
            "scale",
            problem="divides each feature by its standard deviation, and no feature varies within groups",
            remedy="leave it out",
        )
    return np.divide(1.0, np.sqrt(variance), out=np.zeros_like(variance), where=varied)


def _name_features(mask: Any, names: Sequence[Hashable] | None) -> tuple[Hashable, ...]:
    """Name features, by their numbers from 0 if they have no names."""
    return tuple(k if names is None else names[k] for k in np.flatnonzero(mask).tolist())


def list_features(names: Sequence[Hashable]) -> str:
    """List the first few features, and count the others."""
    more = len(names) - MAX_LISTED_GROUPS
    listed = ", ".join(label_text(name) for name in names[:MAX_LISTED_GROUPS])
    return listed + (f" and {more:,} more" if more > 0 else "")


def name_scale(scale: FeatureScale | None) -> dict[str, Any]:
    """Fields of a result that name the scale and the features it leaves out."""
    return {} if scale is None else {"scale": SCALES[0], "constant": scale.constant}


def describe_scale(constant: Sequence[Hashable], place: str = "within groups") -> str:
    """Say that features count the same, and name those that are left out."""
    said = f"each feature in units of its standard deviation {place}"
    if not constant:
        return said
    return f"{said}; left out as constant: {count_text(len(constant), 'feature')} ({list_features(constant)})"


def caution_about_separating(scale: FeatureScale | None) -> str | None:
    """Return a caution if features that are left out differ between groups."""
    if scale is None or not scale.separating:
        return None
    one = len(scale.separating) == 1
    said, differ = ("feature {} does", "differs") if one else ("features {} do", "differ")
    return (
        f"{said.format(list_features(scale.separating))} not vary within groups, yet {differ} between them, and cannot"
        " be put in units of a standard deviation: compare without scale, too"
    )


class ScaledRows:
    """Rows whose features are multiplied by a factor whenever some of them are taken."""

    ndim = 2

    def __init__(self, rows: Any, factor: FloatArray) -> None:
        self.rows: Any = rows.rows if isinstance(rows, ScaledRows) else rows
        self.factor: FloatArray = rows.factor * factor if isinstance(rows, ScaledRows) else factor
        self.shape: tuple[int, int] = rows.shape
        self.dtype = np.dtype(np.float64)

    def __getitem__(self, index: Any) -> Any:
        with np.errstate(invalid="ignore", over="ignore"):  # of rows that are left out
            chosen = self.rows[index]
            if isinstance(chosen, np.ndarray):
                return np.multiply(chosen, self.factor, dtype=np.float64)
            return chosen.multiply(self.factor).tocsr()
