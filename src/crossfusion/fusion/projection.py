"""The plane that shows the most variance between groups.

It is spanned by the two leading eigenvectors of the scatter of the group means, Σ w (μ_g − μ)(μ_g − μ)ᵀ, so no other
plane shows more of the variance between groups. Two groups need only one direction; the second is then the direction of
the largest remaining variance.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion import plots
from crossfusion._base import (
    MAX_LISTED_GROUPS,
    CodeArray,
    FloatArray,
    InputError,
    align_index,
    as_rows,
    check_length,
    check_same_dim,
    count_text,
    first_line,
    label_text,
    percent,
    python_value,
    quantity_text,
    require_finite,
)
from crossfusion.fusion.design import Design, compute_stratum_means
from crossfusion.fusion.display import Content, TextTable
from crossfusion.fusion.result import Result
from crossfusion.fusion.scaling import describe_scale
from crossfusion.moments import Moments

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RANK_TOLERANCE = 1e-12  # relative to the largest eigenvalue: smaller ones are rounding errors
MAX_BASIS_ROWS = 2000  # rows used to find a second direction


@dataclass(frozen=True, eq=False, repr=False)
class Projection(Result):
    """Projection of groups onto the plane with the most variance between them.

    Parameters
    ----------
    labels : tuple
        The groups.
    means : array of shape (groups, 2)
        Coordinates of the group means, relative to the mean of all rows.
    axes : array of shape (2, features)
        The two directions, as unit vectors; zeros if there is no second direction.
    shown : float, optional
        Share of the variance between groups that the plane shows; None if there is no variance between groups.
    second : str
        Origin of the second direction: "between" if it separates groups. If only the first direction does, "rows" or
        "cells": the second direction then shows their largest remaining variance.
    scale : str, optional
        "features" if each feature is in units of its standard deviation within groups, as `axes` then are.
    constant : tuple, optional
        With `scale`: the features left out because they do not vary within groups.
    points : array of shape (rows, 2), optional
        Coordinates of the rows, if rows were passed.
    codes : array of int, optional
        Group of each of these rows, as an index into `labels`.

    Notes
    -----
    `to_frame` returns one row per group with group, first, second. `plot` draws the group means and, if rows were
    passed, the rows.

    Examples
    --------
    >>> import crossfusion as cf
    >>> x = [[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]]
    >>> summary = cf.summarize(x, by={"site": ["A", "A", "B", "B"]})
    >>> summary.project("site")
    Projection of 2 groups: the plane shows 100% of the variance between them
        first  second
    A  -1.000       0
    B   1.000       0
    """

    labels: tuple[Hashable, ...]
    means: FloatArray
    axes: FloatArray
    shown: float | None
    second: str
    points: FloatArray | None = None
    codes: CodeArray | None = None
    scale: str | None = None
    constant: tuple[Hashable, ...] | None = None

    def _values(self) -> dict[str, Any]:
        unscaled = () if self.scale else ("scale", "constant")
        return {name: value for name, value in super()._values().items() if name not in unscaled}

    def _columns(self) -> dict[str, Any]:
        first, second = self.means.T
        return {"group": list(self.labels), "first": first, "second": second}

    def _draw(self, axes: Any) -> "Figure":
        """Draw the group means and, if rows were passed, the rows."""
        return plots.cloud(
            self.labels, self.means, self.points, self.codes, shown=self.shown, second=self.second, axes=axes
        )

    def _contents(self) -> list[Content]:
        rows = [
            [label_text(label), *map(quantity_text, place)]
            for label, place in zip(self.labels[:MAX_LISTED_GROUPS], self.means.tolist(), strict=False)
        ]
        said = f"the plane shows {percent(self.shown)} of the variance between them"
        table = TextTable(["", "first", "second"], rows, more=len(self.labels) - len(rows))
        scale = [f"scale: {describe_scale(self.constant or ())}"] if self.scale else []
        return [f"Projection of {count_text(len(self.labels), 'group')}: {said}", table, *scale]


def check_projectable(rows: Any, labels: Any, known: tuple[Hashable, ...], dim: int) -> tuple[Any, CodeArray]:
    """Check the rows and labels to project, and return the rows as an array and the code of each row's group."""
    if rows is None or labels is None:
        raise InputError("labels", problem="and rows go together", remedy="pass some rows and the group of each")
    (labels,) = align_index("rows", rows, labels=labels)
    given = as_rows(rows, "rows")
    found = given if isinstance(given, np.ndarray) else given.toarray()
    check_same_dim({"the summary": dim, "rows": found.shape[1]})
    require_finite(found, "rows", "raise", "leave those rows out, with their labels")
    try:
        names = [_normalize_label(entry) for entry in labels]
        hash(tuple(names))
    except TypeError as problem:
        raise InputError(
            "labels", problem=f"must hold the group of each row ({first_line(problem)})", remedy="pass a list"
        ) from problem
    check_length(len(names), len(found), "labels", "rows")
    places = {label: k for k, label in enumerate(known)}
    for name in dict.fromkeys(names):
        if name not in places:
            raise InputError(
                "labels", problem=f"has {name!r}, which is not a group of the summary", remedy="pass rows that it holds"
            )
    return found, np.array([places[name] for name in names], np.int32)


def _normalize_label(entry: Any) -> Any:
    """Convert a label to the form it has in a summary: a plain value, or a tuple for several factors."""
    if isinstance(entry, list | tuple | np.ndarray):
        return tuple(map(_normalize_label, entry))
    value = python_value(entry.as_py() if hasattr(entry, "as_py") else entry)
    return value.decode() if isinstance(value, bytes) else value


def project_groups(
    groups: Moments, labels: tuple[Hashable, ...], cells: FloatArray, rows: Any, codes: Any
) -> Projection:
    """Project groups, and rows if there are any; without rows, `cells` (means) give a second direction."""
    design = Design(groups, np.arange(len(labels)), np.zeros(len(labels), int), labels)
    design.check_groups()
    (center,) = center_strata(design)
    axes, shown, second = find_plane(design, (cells if rows is None else rows[:MAX_BASIS_ROWS]) - center)
    points = None if rows is None else np.asarray(np.asarray(rows, np.float64) - center) @ axes.T
    if second != "between":
        second = "cells" if rows is None else "rows"
    return Projection(labels, (groups.mean - center) @ axes.T, axes, shown, second, points, codes)


def center_strata(design: Design, *, weights: str = "pooled") -> FloatArray:
    """Compute the center of each stratum, the weighted mean of its cells."""
    return compute_stratum_means(design.cells.mean, design.weights(weights), design.stratum)


def find_plane(design: Design, rest: FloatArray, *, weights: str = "pooled") -> tuple[FloatArray, float | None, str]:
    """Find two directions, the share of the variance between groups (within strata) they show, and the second's origin.

    `rest` holds rows or means around the centers of their strata. Where one direction separates the groups, the second
    is that of the largest variance of `rest`, and its origin is "rest" instead of "between".
    """
    gap = design.cells.mean - center_strata(design, weights=weights)[design.stratum]
    axes, shown = _find_between_axes(gap, design.weights(weights))
    if len(axes) == 2:
        return axes, shown, "between"
    return _complete_basis(axes, np.asarray(rest, np.float64)), shown, "rest"


def _find_between_axes(gap: FloatArray, weight: FloatArray) -> tuple[FloatArray, float | None]:
    """Find up to two directions of the between-group variance, and the share of it that they show."""
    _, size, axes = np.linalg.svd(np.sqrt(weight)[:, None] * gap, full_matrices=False)
    variance = size**2
    if not variance.sum() > 0:
        return axes[:0], None
    kept = axes[: min(2, int(np.sum(variance > RANK_TOLERANCE * variance[0])))]
    return _orient(kept), float(variance[:2].sum() / variance.sum())


def _complete_basis(axes: FloatArray, rest: FloatArray) -> FloatArray:
    """Add directions of the largest remaining variance until there are two; zeros if no variance remains."""
    left = rest - rest.mean(axis=0) if len(axes) == 0 else rest - rest @ axes.T @ axes
    _, size, more = np.linalg.svd(left - left.mean(axis=0), full_matrices=False)
    least = np.sqrt(RANK_TOLERANCE) * np.linalg.norm(rest)  # what is smaller is rounding, and may point along the axes
    more = _orient(more[: 2 - len(axes)] * (size[: 2 - len(axes), None] > least))
    found = np.concatenate([axes, more])
    return np.concatenate([found, np.zeros((2 - len(found), rest.shape[1]))])


def _orient(axes: FloatArray) -> FloatArray:
    """Flip directions so that their largest entry is positive, which makes figures reproducible."""
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    return np.asarray(np.where(largest < 0, -axes, axes))
