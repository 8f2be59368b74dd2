"""Scores of predictions, for any number of resamples at once.

A resample gives each unit a whole number of times that it counts. Confusion matrices of units add, so accuracy and F1
of all resamples are one matrix product; areas under curves are cumulative sums along one order of the rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossfusion._base import FloatArray


@dataclass(frozen=True)
class Predictions:
    """What models said about rows that they were not trained on."""

    unit: Any  # place of each row's unit among those that are resampled
    truth: Any  # class of each row, and what was said
    guess: Any  # class of each row, and what was said
    fold: Any  # which model said it
    score: FloatArray | None = None  # how strongly each class was said


def count_confusion(said: Predictions, classes: int, times: FloatArray) -> FloatArray:
    """Confusion matrices, truth by guess, of each resample."""
    cells = np.zeros((times.shape[1], classes * classes))
    np.add.at(cells, (said.unit, said.truth * classes + said.guess), 1)
    matrices: FloatArray = (times @ cells).reshape(-1, classes, classes)
    return matrices


def accuracy(said: Predictions, classes: int, times: FloatArray) -> FloatArray:
    """Share of rows whose class was said."""
    matrices = count_confusion(said, classes, times)
    with np.errstate(invalid="ignore"):
        share: FloatArray = np.trace(matrices, axis1=1, axis2=2) / matrices.sum(axis=(1, 2))
    return share


def f1_macro(said: Predictions, classes: int, times: FloatArray) -> FloatArray:
    """Mean over classes of F1, from the predictions of all models together; classes that do not occur are left out."""
    matrices = count_confusion(said, classes, times)
    hits = np.diagonal(matrices, axis1=1, axis2=2)
    either = matrices.sum(axis=1) + matrices.sum(axis=2)
    with np.errstate(invalid="ignore"):
        f1 = np.where(either > 0, 2 * hits / either, 0)
        mean: FloatArray = f1.sum(axis=1) / (either > 0).sum(axis=1)
    return mean


def auc(said: Predictions, classes: int, times: FloatArray) -> FloatArray:
    """Area under the curve of each class against the rest, averaged over classes and over models.

    Scores of different models are not compared with one another.
    """
    areas = [
        _compute_area(said, np.flatnonzero(said.fold == fold), one, times)
        for fold in np.unique(said.fold)
        for one in range(classes)
    ]
    found = np.array(areas)
    defined = np.isfinite(found)
    with np.errstate(invalid="ignore"):
        mean: FloatArray = np.where(defined, found, 0).sum(axis=0) / defined.sum(axis=0)
    return mean


def _compute_area(said: Predictions, rows: Any, one: int, times: FloatArray) -> FloatArray:
    """Share of pairs of a row of the class and another one that are in order, ties by half; NaN without such pairs."""
    assert said.score is not None
    level, place = np.unique(said.score[rows, one], return_inverse=True)
    order = np.argsort(place, kind="stable")
    start = np.searchsorted(place[order], np.arange(len(level)))
    weight = times[:, said.unit[rows[order]]]
    is_one = said.truth[rows[order]] == one
    own, rest = (np.add.reduceat(weight * side, start, axis=1) for side in (is_one, ~is_one))
    below = np.cumsum(rest, axis=1) - rest / 2
    with np.errstate(invalid="ignore"):
        area: FloatArray = np.sum(own * below, axis=1) / (own.sum(axis=1) * rest.sum(axis=1))
    return area


METRICS: Mapping[str, Callable[[Predictions, int, FloatArray], FloatArray]] = {
    made.__name__: made for made in (f1_macro, auc, accuracy)
}
