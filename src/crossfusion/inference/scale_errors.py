"""How the errors of the features' standard deviations, by which features are divided, affect a distance.

If each feature is divided by its standard deviation within groups, a row that lies far out in one feature changes the
unit of that feature alone. So in its influence on log(1 + mean_j B_j / W_j), its squared deviation in feature j counts
B_j / W_j, and not the mean over features as in log(1 + Σ B_j / Σ W_j).

Rows of a unit are dependent, so the error of W_j is estimated from the units: W_j is a sum over units, whose scatter
shows the variance of W_j and its covariance with the errors of the means.
"""

from dataclasses import dataclass

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.fusion import Design, between_by_feature
from crossfusion.moments import Moments


@dataclass(frozen=True)
class ScaleErrors:
    """Relative variance of W_j, and its relative covariance with the bias of the variance between; over features."""

    variance: float = 0.0
    covariance: float = 0.0

    @property
    def shrinkage(self) -> float:
        """Factor of the variance between."""
        return max(1 - self.variance, 0.0)

    @property
    def bias_factor(self) -> float:
        """Factor of its bias."""
        return max(1 + self.covariance - self.variance, 0.0)

    def inflate(self, freedom: float) -> float:
        """Factor of the variance of a quotient of two variances, the upper one with some degrees of freedom.

        As that of an F-distributed variable, compared with a chi-square one, after shrinking.
        """
        lower = max(2 / self.variance, MIN_FREEDOM) if self.variance > 0 else np.inf
        return 1.0 if np.isinf(lower) else (freedom + lower - 2) / (lower - 4)


MIN_FREEDOM = 5.0  # of W_j, below which the variance of its inverse has no value


def weigh_features(design: Design, weight: FloatArray) -> FloatArray | None:
    """Compute how much the squared deviation of a row in each feature counts; None if all count the same."""
    if design.scale is None:
        return None
    between = between_by_feature(design.cells.mean, weight, design.stratum)
    within = np.asarray((weight / design.cells.count) @ design.cells.sumsq)
    ratio = np.divide(between, within, out=np.zeros_like(between), where=within > 0)
    whole = float(between.sum() / within.sum())
    return np.where(within > 0, ratio / whole, 0.0) if whole > 0 else np.ones_like(ratio)


def estimate_scale_errors(
    moments: Moments, cell: FloatArray, design: Design, weight: FloatArray, form: FloatArray
) -> ScaleErrors:
    """Estimate the error of the scale of a design from the moments of its units, if it has one.

    `form` holds the factor with which the squared error of each cell's mean enters the bias.
    """
    if design.scale is None:
        return ScaleErrors()
    cells, dim = design.cells, design.cells.dim
    variance, covariance, bias = np.zeros((3, dim))
    for k in range(len(cells)):
        own = np.flatnonzero(cell == k)
        share = (moments.count[own] / cells.count[k])[:, None]
        square = (moments.mean[own] - cells.mean[k]) ** 2
        scatter = (moments.sumsq[own] / cells.count[k] + share * square) * weight[k]
        error = share**2 * square * form[k]
        number = len(own)
        several = number / max(number - 1, 1)
        if number > 2:  # as centering takes one of them, the squares of normal units vary by (number - 2) / number
            apart, factor = scatter - share * scatter.sum(axis=0), number / (number - 2)
            variance += factor * np.sum(apart**2, axis=0)
            covariance += factor * several * np.sum(apart * (error - error.mean(axis=0)), axis=0)
        else:  # two have equal squares: as of normal units
            variance += 2 / (number + 1) * scatter.sum(axis=0) ** 2
            covariance += 2 / (number + 1) * scatter.sum(axis=0) * several * error.sum(axis=0)
        bias += several * error.sum(axis=0)
    within = np.asarray((weight / cells.count) @ cells.sumsq)
    varied = within > 0
    relative = float(np.mean(variance[varied] / within[varied] ** 2))
    return ScaleErrors(relative, float(np.sum(covariance[varied] / within[varied]) / max(bias.sum(), 1e-300)))
