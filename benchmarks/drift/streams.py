"""Streams of periods, whose effects follow each other, with drift or without."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paper.arrays import FloatArray

Rows = NDArray[np.float32]


@dataclass(frozen=True)
class Stream:
    """What is drawn: normal rows of variance 1 in each feature, around means of periods.

    Parameters
    ----------
    reference, ahead : int
        Periods of the reference, and after it.
    rows, dim : int
        Rows of a period, and features.
    effect : float
        Variance of the periods' own effects, over that of the error of a mean of so many independent rows.
    directions : int
        Features that the effects show in.
    rho : float
        Correlation of the effects of periods that follow each other.
    patients : int
        Of a period, each with an effect that holds half of the variance; 0: rows are independent.
    shift : float
        Length of the shift in the end, over the deviation of rows in one feature.
    onset, ramp : int
        Period after the reference in which drift sets in, and in how many it grows to its length.
    """

    reference: int = 8
    ahead: int = 8
    rows: int = 50
    dim: int = 32
    effect: float = 0.0
    directions: int = 32
    rho: float = 0.0
    patients: int = 0
    shift: float = 0.0
    onset: int = 0
    ramp: int = 1

    @property
    def periods(self) -> int:
        """All of them."""
        return self.reference + self.ahead

    def draw(self, seed: list[int]) -> Rows:
        """Rows of shape (periods, rows, dim)."""
        draw = np.random.default_rng(seed)
        rows = draw.standard_normal((self.periods, self.rows, self.dim))
        if self.patients:
            own = draw.standard_normal((self.periods, self.patients, self.dim))
            rows = np.sqrt(0.5) * (rows + own[:, self.patient()])
        means = np.zeros((self.periods, self.dim))
        scale = np.sqrt(self.effect * self.dim / self.rows / self.directions)
        means[:, : self.directions] = scale * self._effects(draw)
        means += self._drift()[:, None] / np.sqrt(self.dim)
        return np.asarray(rows + means[:, None, :], dtype=np.float32)

    def patient(self) -> NDArray[np.intp]:
        """The patient of each row of a period."""
        return np.arange(self.rows) % max(self.patients, 1)

    def _effects(self, draw: np.random.Generator) -> FloatArray:
        effects = draw.standard_normal((self.periods, self.directions))
        for k in range(1, self.periods):
            effects[k] = self.rho * effects[k - 1] + np.sqrt(1 - self.rho**2) * effects[k]
        return effects

    def _drift(self) -> FloatArray:
        """Length of the shift in each period."""
        since = np.arange(self.periods) - self.reference - self.onset + 1
        return np.asarray(self.shift * np.clip(since / self.ramp, 0.0, 1.0))
