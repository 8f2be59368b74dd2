"""A measure over the levels of an experiment, and how sure one can be of what is read off it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from paper.arrays import FloatArray
from paper.claims.outcomes import STABLE, Outcome, above, all_of, steady


@dataclass(frozen=True)
class Curve:
    """Values of a measure by level and trial."""

    levels: FloatArray
    values: FloatArray

    @cached_property
    def mean(self) -> FloatArray:
        """Means over trials."""
        found: FloatArray = self.values.mean(axis=1)
        return found

    @cached_property
    def relative(self) -> FloatArray:
        """Means over the first one."""
        return _divide(self.mean, self.mean[0])

    @cached_property
    def doubt(self) -> FloatArray:
        """Two standard errors of the relative means; trials are paired, as they share random numbers."""
        return _two_errors(_divide(self.values - self.relative[:, None] * self.values[0], self.mean[0]))

    @property
    def is_stable(self) -> Outcome:
        """Every level's relative change is steady."""
        return all_of(self.is_stable_at(k) for k in range(len(self.levels)))

    def is_stable_at(self, k: int) -> Outcome:
        """That of one level is."""
        return steady(self.relative[k] - 1, self.doubt[k])

    def moves_at(self, k: int) -> Outcome:
        """That of one level is beyond STABLE."""
        return above(abs(self.relative[k] - 1), self.doubt[k], STABLE)

    def rises_at(self, k: int) -> Outcome:
        """It is, upwards."""
        return above(self.relative[k] - 1, self.doubt[k], STABLE)

    def goes(self, sign: int) -> Outcome:
        """Every step is upwards (1) or downwards (-1)."""
        steps = sign * np.diff(self.values, axis=0)
        return all_of(above(mean, doubt, 0) for mean, doubt in zip(steps.mean(axis=1), _two_errors(steps), strict=True))

    @property
    def end(self) -> tuple[float, float]:
        """Relative change at the last level, and two standard errors of it."""
        return float(self.relative[-1] - 1), float(self.doubt[-1])

    @property
    def change(self) -> float:
        """The largest relative change from the first level, with its sign."""
        off = self.relative - 1
        return float(off[np.argmax(np.abs(off))])

    def without(self, trial: int) -> "Curve":
        """The same without one trial."""
        return Curve(self.levels, np.delete(self.values, trial, axis=1))


def overall(curve: Curve) -> float:
    """Fractional change of the mean over that of the factor, from the first level to the last."""
    return float(_divide(curve.relative[-1] - 1, _divide(curve.levels[-1], curve.levels[0]) - 1))


def average(curve: Curve) -> float:
    """The same from each level to the next, averaged."""
    fractional = _divide(np.diff(curve.mean), curve.mean[:-1])
    return float(np.mean(_divide(fractional, _divide(np.diff(curve.levels), curve.levels[:-1]))))


SENSITIVITIES: dict[str, Callable[[Curve], float]] = {"first level to last": overall, "averaged over steps": average}


def estimate(statistic: Callable[..., float], *curves: Curve) -> tuple[float, float]:
    """A number read off some curves, and two standard errors of it, by leaving out one trial after another."""
    trials = curves[0].values.shape[1]
    left = np.array([statistic(*(curve.without(trial) for curve in curves)) for trial in range(trials)])
    error = np.sqrt((trials - 1) / trials * np.sum((left - left.mean()) ** 2)) if np.isfinite(left).all() else np.nan
    return float(statistic(*curves)), float(2 * error)


def _divide(over: FloatArray, under: FloatArray) -> FloatArray:
    """A ratio that is not a number where there is none, which decides nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: FloatArray = np.where(np.asarray(under) == 0, np.nan, np.divide(over, under))
    return found


def _two_errors(values: FloatArray) -> FloatArray:
    found: FloatArray = 2 * values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
    return found
