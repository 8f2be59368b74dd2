"""Intervals of differences between distances measured on the same units."""

from dataclasses import dataclass

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.fusion import Fusion
from crossfusion.inference.intervals import compute_half_width
from crossfusion.inference.unit_errors import UnitErrors


@dataclass(frozen=True)
class Side:
    """A distance and the errors of its units."""

    errors: UnitErrors
    fusion: Fusion

    @property
    def stderr(self) -> float:
        """Standard error of the distance."""
        return float(self.errors.errors.stderr)

    def asymmetry(self, limit: int) -> float:
        """Ratio of one side of the interval to that of a symmetric interval, at least 1."""
        if self.fusion.interval is None or self.fusion.unbiased is None or self.fusion.level is None:
            return 1.0
        usual = self.stderr * compute_half_width(self.fusion.level, float(self.errors.errors.freedom))
        return max(abs(self.fusion.interval[limit] - self.fusion.unbiased) / usual, 1.0)


def compute_half_widths(method: Side, reference: Side, level: float) -> tuple[float, float]:
    """Compute how far the limits of a difference lie below and above it.

    If the interval of a distance is longer on one side, so is that of the difference, by its share of the errors.
    """
    influence = method.errors.influence - reference.errors.influence
    kernel = method.errors.kernel - reference.errors.kernel
    freedom = min(float(side.errors.errors.freedom) for side in (method, reference))
    second = 2 * float(np.sum(kernel**2))
    variance = second + max(float(np.sum(influence**2)) - 2 * second, 0.0)
    half = compute_half_width(level, freedom) * float(np.sqrt(variance))
    own, other = method.stderr**2, reference.stderr**2
    shared = (own + other - variance) / 2
    shares = np.maximum([own - shared, other - shared], 0.0)
    shares = shares / shares.sum() if shares.sum() > 0 else np.array([0.5, 0.5])
    below = shares @ np.square([method.asymmetry(0), reference.asymmetry(1)])
    above = shares @ np.square([method.asymmetry(1), reference.asymmetry(0)])
    return half * float(np.sqrt(below)), half * float(np.sqrt(above))


def zero_rounding(values: FloatArray, distances: FloatArray) -> FloatArray:
    """Set values to 0 that are within the rounding error of the distances."""
    least = 1e-12 * np.abs(distances[np.isfinite(distances)]).max(initial=0.0)
    return np.where(np.abs(values) < least, 0.0, values)
