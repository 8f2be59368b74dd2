r"""Confidence limits of the distance, by inverting a test of every value it might have.

The variance between estimated means is a quadratic form of their errors. Far from zero the term that is linear in the
errors dominates, and the distance is about normal. Near zero the quadratic term dominates, which is skewed and has its
own variance. Both belong to one family, a scaled noncentral chi-square, whose variance and skewness depend on the true
distance. So for each supposed distance θ the estimate has

.. math:: \mathrm{Var} = \kappa_2/T^2 + V_1(\theta), \qquad
          V_1(\theta) = V_1 + \frac{4c}{T^2}\bigl(\lambda(\theta) - B_u\bigr)

with λ(θ) = W_u (e^θ − 1) and c = κ₂ / 2κ₁, and the limits are the θ at which the estimate would be just too large or
just too small. κ₁ is the bias of the variance between, κ₂ the variance of its quadratic term, and V₁ the variance of
the linear term, which the sum of squared influences overestimates by 2κ₂/T². 4c/T² is the slope for isotropic errors;
if the observed difference lies in a direction of large variance, the steeper V₁/B_u replaces it. A normal variable
along one direction has a third moment of 1.5 times slope, T and V₁, which is used for all directions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from statistics import NormalDist

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.fusion import Fusion

MIN_LINEAR_SHARE = 0.5  # of the linear variance that the direction found would have: never below
MAX_SKEWNESS = 2.8  # about the chi-square of one degree of freedom; a skewness beyond it is an error of estimation
MAX_STEPS = 100  # at most, towards a limit
BRACKET_TOLERANCE = 1e-12  # of the bracket a limit is searched in, at which it is found


@dataclass(frozen=True)
class Errors:
    """Errors of one estimated distance or of several; variances are divided by the plug-in variance within.

    Parameters
    ----------
    between, within : array
        Unbiased variance between and within the groups, B_u and W_u.
    total : array
        Plug-in total variance T.
    linear : array
        Sum of squared influences: the variance of the term that is linear in the errors, slightly overestimated.
    bias : array
        Contribution of the errors of the means to the variance between, κ₁.
    quadratic : array
        Variance of that contribution, κ₂.
    freedom : array
        Degrees of freedom of `linear`.
    """

    between: FloatArray
    within: FloatArray
    total: FloatArray
    linear: FloatArray
    bias: FloatArray
    quadratic: FloatArray
    freedom: FloatArray

    @property
    def estimate(self) -> FloatArray:
        """The unbiased distance."""
        return np.asarray(np.log1p(self.between / self.within))

    @property
    def stderr(self) -> FloatArray:
        """Standard error if the estimate were true."""
        linear, _ = self._linear(np.maximum(self.between, 0.0))
        return np.asarray(np.sqrt(self.quadratic / self.total**2 + linear))

    def limits(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Lower and upper confidence limits, which are never negative."""
        estimate, top = self.estimate, np.maximum(self.estimate, 0.0) + self.stderr
        normal = NormalDist().inv_cdf((1 + level) / 2)
        heavier = student_ratio(normal, self.freedom)
        sides = np.multiply.outer([normal, -normal], np.ones_like(estimate))  # the upper and the lower quantile

        def excess(distance: FloatArray) -> FloatArray:
            """Compute how far the estimate lies above both quantiles."""
            return np.asarray(estimate - distance - self._quantile(distance, sides, heavier))

        for _ in range(MAX_STEPS):
            too_low = excess(np.array([top, top]))[1] > 0
            if not too_low.any():
                break
            top = np.where(too_low, 2 * top, top)
        lower, upper = _find_crossing(excess, np.array([top, top]))
        return lower, upper

    def _linear(self, supposed: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the variance and third moment of the linear term if `supposed` were the true variance between."""
        second = self.quadratic / self.total**2
        found = np.maximum(self.linear - 2 * second, 0.0)
        slope = 2 * second / self.bias  # 4c/T²
        along = (2 * second + found) / (self.bias + np.maximum(self.between, 0.0))  # in the direction that was found
        steep = np.maximum(slope, along)
        variance = np.maximum(found + steep * (supposed - self.between), MIN_LINEAR_SHARE * along * supposed)
        return variance, 1.5 * steep * self.total * variance

    def _quantile(self, distance: FloatArray, normal: FloatArray, heavier: FloatArray) -> FloatArray:
        """Compute a quantile of the estimate's deviation if `distance` were true, from that of a normal variable.

        `heavier` is the ratio of the quantile of Student's t to it.
        """
        center = np.maximum(self.estimate, 0.0)
        known = np.minimum(distance, center)
        beyond = (distance - known) * np.exp(known)  # a tangent, so that the variance cannot outgrow the distance
        first, third = self._linear(self.within * (np.expm1(known) + beyond))
        variance = self.quadratic / self.total**2 + first
        third = third + 2 * self.quadratic**2 / self.bias / self.total**3
        wider = 1 + (heavier - 1) * first / variance
        skewed = _gamma_quantile(normal, np.minimum(third / variance**1.5, MAX_SKEWNESS))
        return np.asarray(np.sqrt(variance) * wider * skewed)


def stack_errors(errors: Sequence[Errors]) -> Errors:
    """Stack the errors of several estimates into arrays."""
    return Errors(*(np.array([getattr(entry, field.name) for entry in errors]) for field in fields(Errors)))


def _gamma_quantile(normal: FloatArray, skewness: FloatArray) -> FloatArray:
    """Compute a quantile of a gamma variable with mean 0 and variance 1 (Wilson and Hilferty 1931)."""
    small = np.maximum(skewness, 1e-6)
    root = np.maximum(1 + small * normal / 6 - small**2 / 36, 0.0)
    return np.asarray(2 / small * (root**3 - 1))


def student_ratio(normal: float, freedom: FloatArray) -> FloatArray:
    """Divide a quantile of Student's t by the normal one (Abramowitz and Stegun 26.7.5; exact below three degrees)."""
    z, free = normal**2, np.maximum(freedom, 1.0)
    series = (
        1
        + (z + 1) / (4 * free)
        + (5 * z**2 + 16 * z + 3) / (96 * free**2)
        + (3 * z**3 + 19 * z**2 + 17 * z - 15) / (384 * free**3)
    )
    if free.min() >= 3 or normal == 0:
        return np.asarray(series)
    probability = NormalDist().cdf(abs(normal))
    one = np.tan(np.pi * (probability - 0.5))
    two = (2 * probability - 1) * np.sqrt(0.5 / (probability * (1 - probability)))
    return np.where(free < 2, one / abs(normal), np.where(free < 3, two / abs(normal), series))


def compute_half_width(level: float, freedom: float) -> float:
    """Compute half the width of an interval by Student's t, in standard errors."""
    normal = NormalDist().inv_cdf((1 + level) / 2)
    return float(normal * student_ratio(normal, np.array(float(freedom))))


def _find_crossing(function: Callable[[FloatArray], FloatArray], top: FloatArray) -> FloatArray:
    """Find where a decreasing function crosses zero between 0 and `top`; 0 where it starts negative."""
    low, high = np.zeros_like(top), top
    at_low, at_high = function(low), function(high)
    starts_below = at_low <= 0
    moved = np.zeros_like(top)
    for _ in range(MAX_STEPS):
        if np.all(starts_below | (high - low <= BRACKET_TOLERANCE * high)):
            break
        # false position that halves an end which stays put (Illinois), kept off the ends themselves
        share = np.divide(at_low, at_low - at_high, out=np.full_like(top, 0.5), where=at_low > at_high)
        middle = low + (high - low) * np.clip(share, BRACKET_TOLERANCE / 4, 1 - BRACKET_TOLERANCE / 4)
        value = function(middle)
        above = value > 0
        at_high = np.where(above, np.where(moved > 0, at_high / 2, at_high), value)
        at_low = np.where(above, value, np.where(moved < 0, at_low / 2, at_low))
        low, high = np.where(above, middle, low), np.where(above, high, middle)
        moved = np.where(above, 1.0, -1.0)
        if np.all(starts_below | (np.abs(value) <= BRACKET_TOLERANCE * high)):
            return np.where(starts_below, 0.0, middle)
    return np.where(starts_below, 0.0, (low + high) / 2)


def add_interval(fusion: Fusion, errors: Errors, level: float | None) -> Fusion:
    """Set the unbiased estimate that the errors imply and, at a level, the interval."""
    centered = replace(fusion, unbiased=float(errors.estimate), errors=errors)
    if level is None:
        return centered
    low, high = errors.limits(level)
    return replace(centered, level=level, interval=(float(low), float(high)), stderr=float(errors.stderr))
