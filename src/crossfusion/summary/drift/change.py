"""Change point of a series of periods: the split with the most variance between its two sides.

Of all splits into periods before and after, the one with the largest variance between the two, B, is the least
squares estimate of a single change. The distribution of B without drift is simulated from the model that the alarm
uses, averaged over the parameters that the reference does not determine.
"""

from dataclasses import dataclass

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.summary.drift.null_distribution import RHO, History, NullDistribution

NULL_DRAWS = 499
MAX_DIRECTIONS = 64  # directions that are simulated; fewer than there are makes the test conservative
MAX_PERIODS = 400  # periods up to which a p-value is simulated


@dataclass(frozen=True)
class Split:
    """The first period after the change, the variance between before and after, and the p-value."""

    period: int
    between: float
    pvalue: float | None


def locate_change(history: History, count: FloatArray, null: NullDistribution | None, seed: int) -> Split:
    """Locate the change in periods with these numbers of rows."""
    contrast = _compute_contrasts(count)
    between = np.einsum("si,ij,sj->s", contrast, history.products, contrast)
    best = int(between.argmax())
    largest = float(between[best])
    pvalue = None
    if null is not None and len(count) <= MAX_PERIODS:
        drawn = _draw_null(history, contrast, null, seed)
        pvalue = float(1 + np.sum(drawn >= largest)) / (NULL_DRAWS + 1)
    return Split(best + 1, largest, pvalue)


def _compute_contrasts(count: FloatArray) -> FloatArray:
    """Compute, for each split, the weights of means whose squared sum is B: √(w_l w_r) (mean of right − of left)."""
    number, whole = len(count), count.sum()
    after = np.arange(number)[None, :] >= np.arange(1, number)[:, None]
    right = np.where(after, count, 0.0)
    left = np.where(after, 0.0, count)
    size = np.sqrt(left.sum(axis=1) * right.sum(axis=1)) / whole
    return np.asarray(
        size[:, None] * (right / right.sum(axis=1, keepdims=True) - left / left.sum(axis=1, keepdims=True))
    )


def _draw_null(history: History, contrast: FloatArray, null: NullDistribution, seed: int) -> FloatArray:
    """Simulate the largest B of series without drift."""
    draw = np.random.default_rng(seed)
    chosen, times = np.unique(draw.choice(null.weight.size, NULL_DRAWS, p=null.weight.ravel()), return_counts=True)
    lag = np.abs(history.place[:, None] - history.place[None, :])
    error = np.diag(np.maximum(history.error, 1e-9 * null.error))
    found = []
    for node, repeats in zip(chosen.tolist(), times.tolist(), strict=True):
        direction, rho, variance = np.unravel_index(node, null.weight.shape)
        effects = null.variance[variance] * np.power(RHO[int(rho)], lag, dtype=np.float64)
        number = min(max(round(float(null.directions[direction])), 1), MAX_DIRECTIONS)
        noise = draw.standard_normal((len(lag), repeats * number))
        drawn = (contrast @ np.linalg.cholesky(effects + error)) @ noise
        squares = (drawn**2).reshape(len(contrast), repeats, number).sum(axis=2)
        found.append(squares.max(axis=0) / number)
    return np.concatenate(found)
