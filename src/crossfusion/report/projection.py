"""The fused cloud on the plane that separates the groups most.

The plane is spanned by the two leading eigenvectors of the scatter of the groups' means, Σ w (μ_g − μ)(μ_g − μ)ᵀ, so no
other plane shows more of the variance between the groups. Two groups need one direction only; the second is then that
of the largest variance of what is left.
"""

from typing import Any

import numpy as np

from crossfusion import factors
from crossfusion.kernels import FloatArray
from crossfusion.page.markup import shortened
from crossfusion.report.question import Question
from crossfusion.sources.whole import Rows
from crossfusion.summary import Summary
from crossfusion.text import label_text

POINTS = 3000  # rows that are drawn one by one
LOOKED_AT = 2000  # rows from which a second direction is found
BINS = 60  # of the density, along the wider side
NAME = 200  # characters of a name that are kept: groups have theirs in full elsewhere
UNITS = 1000  # coordinates are whole numbers of this part of the extent
FLAT = 1e-12  # of the largest eigenvalue: what is smaller is rounding


def projection(summary: Summary, question: Question, rows: Rows | None) -> dict[str, Any]:
    """Means of all groups, and if there are rows some of them, on the plane."""
    groups = summary.rollup(question.between).moments
    weight = groups.count / groups.count.sum()
    centre = weight @ groups.mean
    axes, shown = _plane(groups.mean - centre, weight)
    second = "between"
    if len(axes) < 2:
        second = "rows" if rows is not None else "cells"
        rest = np.asarray(rows.x[:LOOKED_AT], np.float64) if rows is not None else summary.moments.mean
        axes = _completed(axes, rest - centre)
    cloud = None if rows is None else (np.asarray(rows.x, np.float64) - centre) @ axes.T
    means = {name: (summary.rollup([name]).moments.mean - centre) @ axes.T for name in question.factors}
    placed = np.concatenate([*means.values(), *([] if cloud is None else [cloud])])
    extent = float(np.quantile(np.abs(placed), 0.9995)) or 1.0
    found: dict[str, Any] = {"shown": shown, "second": second, "points": None, "density": None, "of": None}
    codes = {name: _codes(summary, name, rows) for name in question.factors}
    found["factors"] = [
        {"name": name, "labels": codes[name][0], "means": _whole(means[name], extent)} for name in question.factors
    ]
    if cloud is not None:
        found["of"] = len(cloud)
        found["points"] = {
            "at": _whole(cloud[:POINTS], extent),
            "codes": {name: codes[name][1][:POINTS] for name in question.factors},
        }
        found["density"] = _density(cloud / extent) if len(cloud) > POINTS else None
    return found


def _plane(gap: FloatArray, weight: FloatArray) -> tuple[FloatArray, float | None]:
    """Up to two directions as rows, and how much of the scatter they show."""
    _, size, axes = np.linalg.svd(np.sqrt(weight)[:, None] * gap, full_matrices=False)
    variance = size**2
    if not variance.sum() > 0:
        return axes[:0], None
    kept = axes[: min(2, int(np.sum(variance > FLAT * variance[0])))]
    return _turned(kept), float(variance[:2].sum() / variance.sum())


def _completed(axes: FloatArray, rest: FloatArray) -> FloatArray:
    """Directions of the largest variance in what the axes leave, until there are two; zeros where nothing is left."""
    left = rest - rest.mean(axis=0) if len(axes) == 0 else rest - rest @ axes.T @ axes
    _, size, more = np.linalg.svd(left - left.mean(axis=0), full_matrices=False)
    more = _turned(more[: 2 - len(axes)] * (size[: 2 - len(axes), None] > 0))
    found = np.concatenate([axes, more])
    return np.concatenate([found, np.zeros((2 - len(found), rest.shape[1]))])


def _turned(axes: FloatArray) -> FloatArray:
    """The same directions, their largest entry positive, so that a page is the same each time."""
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    return np.asarray(np.where(largest < 0, -axes, axes))


def _whole(places: FloatArray, extent: float) -> list[list[int]]:
    """Coordinates as whole numbers; what lies far outside is put on the edge."""
    found: list[list[int]] = np.rint(np.clip(places / extent, -1.05, 1.05) * UNITS).astype(int).tolist()
    return found


def _codes(summary: Summary, name: str, rows: Rows | None) -> tuple[list[str], list[int]]:
    """Names of a factor's values, and of each row its code among them."""
    values = factors.labels(summary.rollup([name]).keys.select([name]))
    names = [shortened(value, NAME) for value in values]
    if rows is None:
        return names, []
    code, present = factors.encode(rows.keys.select([name]))
    places = {label_text(value): k for k, value in enumerate(values)}
    own = np.array([places.get(label_text(value), -1) for value in factors.labels(present)], int)
    return names, own[code].tolist()


def _density(places: FloatArray) -> dict[str, Any]:
    """How many rows lie in each cell of a grid, those that have any."""
    low, high = places.min(axis=0).clip(-1.05), places.max(axis=0).clip(max=1.05)
    step = float((high - low).max()) / BINS or 1.0
    place = np.floor((np.clip(places, low, high) - low) / step).astype(int)
    cells, count = np.unique(place, axis=0, return_counts=True)
    return {
        "low": [round(float(value) * UNITS, 1) for value in low],
        "step": round(step * UNITS, 2),
        "cells": np.column_stack([cells, count]).tolist(),
    }
