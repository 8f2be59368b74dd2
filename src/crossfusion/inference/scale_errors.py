"""How the errors of the features' standard deviations, by which features are divided, affect a distance.

If each feature is divided by its standard deviation within groups, a row that lies far out in one feature changes the
unit of that feature alone. So in its influence on log(1 + mean_j B_j / W_j), its squared deviation in feature j counts
B_j / W_j, and not the mean over features as in log(1 + Σ B_j / Σ W_j).

Rows of a unit are dependent, so the error of W_j is estimated from the units: W_j is a sum over units, whose scatter
shows the variance of W_j and its covariance with the errors of the means.
"""

from dataclasses import dataclass

import numpy as np

from crossfusion._base import FloatArray, InputError
from crossfusion.fusion import Design, between_by_feature
from crossfusion.moments import Moments

MIN_FREEDOM = 5.0  # of W_j, below which the variance of its inverse has no value
MAX_VARIANCE = 2 / 3  # relative, of W_j: three degrees of freedom, below which its inverse has hardly an expected value


@dataclass(frozen=True)
class ScaleErrors:
    """Relative variance of W_j, and its relative covariance with the bias of the variance between; over features."""

    variance: float = 0.0
    covariance: float = 0.0

    @property
    def shrinkage(self) -> float:
        """Factor of the variance between."""
        return 1 - self.variance

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


def weigh_features(design: Design, weight: FloatArray) -> FloatArray:
    """Compute how much the squared deviation of a row in each feature counts."""
    between = between_by_feature(design.compute_sides(weight).mean, weight, design.stratum)
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
    cells = design.cells
    variance, covariance, bias = np.zeros((3, cells.dim))
    for k in range(len(cells)):
        own = np.flatnonzero(cell == k)
        found = _measure_cell(moments[own], cells[k], weight[k])
        variance, covariance = variance + found[0], covariance + found[1] * form[k]
        bias += found[2] * form[k]
    within = np.asarray((weight / cells.count) @ cells.sumsq)
    varied = within > 0
    relative = float(np.mean(variance[varied] / within[varied] ** 2))
    known = max(1 - relative, 1e-300)  # W_j varies with its estimated variance: as 2 / (ν + 2) for 2 / ν
    errors = ScaleErrors(
        relative / known, float(np.sum(covariance[varied] / within[varied]) / max(bias.sum(), 1e-300)) / known
    )
    if errors.variance >= MAX_VARIANCE:
        raise InputError(
            "scale",
            problem="divides features by their standard deviations, for which the groups have too few units that differ"
            f" too much (about {2 / errors.variance:.1f} degrees of freedom)",
            remedy="leave it out, or pass more units",
        )
    return errors


def _measure_cell(units: Moments, whole: Moments, weight: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Estimate the variance of a cell's part of W_j, its covariance with the squared error of the mean, and the latter.

    As centering takes one of the units, their squares vary by (number - 2) / number less if units are normal. Two
    units have equal squares, so that the variance is then that of normal units and rows.
    """
    number, share = len(units), (units.count / whole.count)[:, None]
    square = (units.mean - whole.mean) ** 2
    between, inside = weight * share * square, weight * units.sumsq / whole.count
    error = number / max(number - 1, 1) * share**2 * square
    if number > 2:
        apart, factor = between + inside, number / (number - 2)
        apart = apart - share * apart.sum(axis=0)
        covariance = factor * np.sum(apart * (error - error.mean(axis=0)), axis=0)
        return factor * np.sum(apart**2, axis=0), covariance, error.sum(axis=0)
    one, other, total = between.sum(axis=0), inside.sum(axis=0), error.sum(axis=0)
    rows = max(float(whole.count) - number, 0.0)
    return 2 / (number + 1) * one**2 + 2 / (rows + 2) * other**2, 2 / (number + 1) * one * total, total
