"""The rows on the plane that separates the groups most, unadjusted and adjusted."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from crossfusion._base import FloatArray, factors, label_text
from crossfusion.fusion import MAX_BASIS_ROWS, Codes, center_strata, find_plane
from crossfusion.io import Rows
from crossfusion.report.html.markup import shorten
from crossfusion.report.question import Question
from crossfusion.summary import Summary

MAX_POINTS = 3000  # rows that are drawn one by one
DENSITY_BINS = 60  # of the density, along the wider side
PROJECTED_NAME_LENGTH = 200  # characters of a name that are kept: groups have theirs in full elsewhere
COORDINATE_STEPS = 1000  # coordinates are whole numbers of this part of the extent
Names = tuple[str, ...]


def project_groups(summary: Summary, question: Question, strata: Names, rows: Rows | None) -> dict[str, Any]:
    """Colorings, the code of each drawn row in each, and the views: unadjusted and, with strata, adjusted for them."""
    colorings = list(dict.fromkeys([question.between, *((name,) for name in question.factors)]))
    drawn = None if rows is None else Rows(rows.x[:MAX_POINTS], rows.keys.slice(0, MAX_POINTS))
    found = [_code_rows(summary, names, drawn) for names in colorings]
    views = {"plain": _project(summary, question, (), colorings, rows)}
    if strata:
        views["adjusted"] = _project(summary, question, strata, colorings, rows)
    return {
        "factors": [
            {"name": " × ".join(names), "labels": labels} for names, (labels, _) in zip(colorings, found, strict=True)
        ],
        "codes": None if rows is None else [codes for _, codes in found],
        "of": None if rows is None else len(rows.x),
        "views": views,
    }


def _project(
    summary: Summary, question: Question, strata: Names, colorings: Sequence[Names], rows: Rows | None
) -> dict[str, Any]:
    """One view: means of the groups of each coloring and rows, relative to the centers of their strata."""
    design, weights = summary._make_design(question.between, strata or None), question.weights
    centers = center_strata(design, weights=weights)
    places = {name: k for k, name in enumerate(design.strata or [None])}
    cells = summary.moments.mean - centers[_find_strata(summary.keys, strata, places)]
    around = None if rows is None else np.asarray(rows.x, np.float64) - centers[_find_strata(rows.keys, strata, places)]
    axes, shown, second = find_plane(design, cells if around is None else around[:MAX_BASIS_ROWS], weights=weights)
    weight = design.weights(weights)
    gaps = (design.cells.mean - centers[design.stratum]) @ axes.T
    means = [_average(gaps, weight, design.group, len(design.labels))]
    flat, count = cells @ axes.T, summary.moments.count
    for names in colorings[1:]:
        code, found = factors.encode(summary.keys.select(list(names)))
        means.append(_average(flat, count, code, found.num_rows))
    cloud = None if around is None else around @ axes.T
    extent = _measure_extent([*means, *([] if cloud is None else [cloud])])
    return {
        "shown": shown,
        "second": second if second == "between" else "rows" if rows is not None else "cells",
        "means": [_round_coordinates(each, extent) for each in means],
        "at": None if cloud is None else _round_coordinates(cloud[:MAX_POINTS], extent),
        "density": _count_density(cloud / extent) if cloud is not None and len(cloud) > MAX_POINTS else None,
    }


def _find_strata(keys: Any, strata: Names, places: dict[Any, int]) -> Codes:
    """The stratum of each key."""
    if not strata:
        return np.zeros(keys.num_rows, np.int64)
    code, found = factors.encode(keys.select(list(strata)))
    return np.array([places[label] for label in factors.list_labels(found)], np.int64)[code]


def _average(values: FloatArray, weight: FloatArray, group: Codes, number: int) -> FloatArray:
    """Weighted means by group."""
    total = np.bincount(group, weights=weight, minlength=number)
    sums = [np.bincount(group, weights=weight * column, minlength=number) for column in values.T]
    return np.stack(sums, axis=1) / total[:, None]


def _measure_extent(placed: Sequence[FloatArray]) -> float:
    return float(np.quantile(np.abs(np.concatenate(placed)), 0.9995)) or 1.0


def _round_coordinates(places: FloatArray, extent: float) -> list[list[int]]:
    """Coordinates as whole numbers; what lies far outside is put on the edge."""
    found: list[list[int]] = np.rint(np.clip(places / extent, -1.05, 1.05) * COORDINATE_STEPS).astype(int).tolist()
    return found


def _code_rows(summary: Summary, names: Names, rows: Rows | None) -> tuple[list[str], list[int]]:
    """Names of a coloring's groups, and of each row its code among them."""
    values = factors.list_labels(summary.rollup(names).keys.select(list(names)))
    shown = [shorten(label_text(value), PROJECTED_NAME_LENGTH) for value in values]
    if rows is None:
        return shown, []
    code, present = factors.encode(rows.keys.select(list(names)))
    places = {label_text(value): k for k, value in enumerate(values)}
    own = np.array([places.get(label_text(value), -1) for value in factors.list_labels(present)], int)
    return shown, own[code].tolist()


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
