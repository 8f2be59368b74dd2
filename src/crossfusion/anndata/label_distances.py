"""Batches within each label, and distances as columns of a table."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from crossfusion._base import FloatArray, InputError, factors, plain_value
from crossfusion.fusion import Fusion
from crossfusion.summary import Summary


@dataclass(frozen=True)
class WithinLabel:
    """How far batches are apart among the cells of one label.

    Parameters
    ----------
    embedding : str
        The embedding.
    label : value
        The label.
    cells, batches : int
        Cells of this label, and batches that have some.
    fusion : Fusion or None
        Distance between the batches; None where there is one batch only.
    """

    embedding: str
    label: Hashable
    cells: int
    batches: int
    fusion: Fusion | None

    def to_dict(self) -> dict[str, Any]:
        """Fields by name, ready for JSON.

        Returns
        -------
        dict
            Plain Python values.
        """
        plain = {entry.name: plain_value(getattr(self, entry.name)) for entry in fields(self)[:-1]}
        return plain | {"fusion": None if self.fusion is None else self.fusion.to_dict()}


def within_labels(
    embedding: str,
    summary: Summary,
    batch: str,
    label: str,
    *,
    units: str | None,
    weights: str,
    level: float | None,
) -> list[WithinLabel]:
    """Distance between batches among the cells of each label, in the order of the labels."""
    rows = []
    for value in factors.labels(summary.rollup(label).keys):
        own = summary.select(**{label: [value]})
        batches = len(own.rollup(batch))
        fusion = _between(own, batch, units, weights, level) if batches > 1 else None
        rows.append(WithinLabel(embedding, value, int(own.moments.count.sum()), batches, fusion))
    return rows


def _between(summary: Summary, batch: str, units: str | None, weights: str, level: float | None) -> Fusion:
    """Distance between batches; without an unbiased one where units are all alike, and leave no error to speak of."""
    try:
        return summary.cfd(batch, units=units, level=level, weights=weights)
    except InputError:
        return replace(summary.cfd(batch, weights=weights), unbiased=None)


def columns_of(name: str, fusions: Iterable[Fusion | None], *, intervals: bool) -> dict[str, FloatArray]:
    """Columns of some distances: unbiased, plug-in, and limits if there are any; NaN where there is none."""
    found = list(fusions)
    columns: dict[str, list[float | None]] = {
        name: [None if fusion is None else fusion.unbiased for fusion in found],
        f"{name}_distance": [None if fusion is None else fusion.distance for fusion in found],
    }
    if intervals:
        limits = [(None, None) if fusion is None or fusion.interval is None else fusion.interval for fusion in found]
        columns |= {f"{name}_lower": [low for low, _ in limits], f"{name}_upper": [high for _, high in limits]}
    return {column: np.array([np.nan if v is None else v for v in values]) for column, values in columns.items()}
