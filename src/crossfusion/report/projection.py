"""The fused cloud on the plane that separates the groups most."""

from typing import Any

import numpy as np

from crossfusion._base import FloatArray, factors, label_text
from crossfusion.fusion import find_plane
from crossfusion.io import Rows
from crossfusion.report.html.markup import shorten
from crossfusion.report.question import Question
from crossfusion.summary import Summary

MAX_POINTS = 3000  # rows that are drawn one by one
DENSITY_BINS = 60  # of the density, along the wider side
PROJECTED_NAME_LENGTH = 200  # characters of a name that are kept: groups have theirs in full elsewhere
COORDINATE_STEPS = 1000  # coordinates are whole numbers of this part of the extent


def project_groups(summary: Summary, question: Question, rows: Rows | None) -> dict[str, Any]:
    """Means of all groups, and if there are rows some of them, on the plane."""
    groups = summary.rollup(question.between).moments
    drawn = None if rows is None else rows.x
    center, axes, shown, second = find_plane(groups, summary.moments.mean, drawn, weights=question.weights)
    cloud = None if rows is None else (np.asarray(rows.x, np.float64) - center) @ axes.T
    means = {name: (summary.rollup([name]).moments.mean - center) @ axes.T for name in question.factors}
    placed = np.concatenate([*means.values(), *([] if cloud is None else [cloud])])
    extent = float(np.quantile(np.abs(placed), 0.9995)) or 1.0
    found: dict[str, Any] = {"shown": shown, "second": second, "points": None, "density": None, "of": None}
    codes = {name: _encode_rows(summary, name, rows) for name in question.factors}
    found["factors"] = [
        {"name": name, "labels": codes[name][0], "means": _round_coordinates(means[name], extent)}
        for name in question.factors
    ]
    if cloud is not None:
        found["of"] = len(cloud)
        found["points"] = {
            "at": _round_coordinates(cloud[:MAX_POINTS], extent),
            "codes": {name: codes[name][1][:MAX_POINTS] for name in question.factors},
        }
        found["density"] = _count_density(cloud / extent) if len(cloud) > MAX_POINTS else None
    return found


def _round_coordinates(places: FloatArray, extent: float) -> list[list[int]]:
    """Coordinates as whole numbers; what lies far outside is put on the edge."""
    found: list[list[int]] = np.rint(np.clip(places / extent, -1.05, 1.05) * COORDINATE_STEPS).astype(int).tolist()
    return found


def _encode_rows(summary: Summary, name: str, rows: Rows | None) -> tuple[list[str], list[int]]:
    """Names of a factor's values, and of each row its code among them."""
    values = factors.list_labels(summary.rollup([name]).keys.select([name]))
    names = [shorten(value, PROJECTED_NAME_LENGTH) for value in values]
    if rows is None:
        return names, []
    code, present = factors.encode(rows.keys.select([name]))
    places = {label_text(value): k for k, value in enumerate(values)}
    own = np.array([places.get(label_text(value), -1) for value in factors.list_labels(present)], int)
    return names, own[code].tolist()


def _count_density(places: FloatArray) -> dict[str, Any]:
    """How many rows lie in each cell of a grid, those that have any."""
    low, high = places.min(axis=0).clip(-1.05), places.max(axis=0).clip(max=1.05)
    step = float((high - low).max()) / DENSITY_BINS or 1.0
    place = np.floor((np.clip(places, low, high) - low) / step).astype(int)
    cells, count = np.unique(place, axis=0, return_counts=True)
    return {
        "low": [round(float(value) * COORDINATE_STEPS, 1) for value in low],
        "step": round(step * COORDINATE_STEPS, 2),
        "cells": np.column_stack([cells, count]).tolist(),
    }
