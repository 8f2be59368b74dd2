"""How far batches are apart within each label."""

from collections.abc import Hashable
from dataclasses import dataclass, replace

from crossfusion._base import InputError, factors
from crossfusion.fusion import Fusion, Record
from crossfusion.summary import Summary


@dataclass(frozen=True)
class WithinLabel(Record):
    """Distance between batches among the cells of one label.

    Parameters
    ----------
    embedding : str
        The embedding.
    label : value
        The label.
    cells, batches : int
        Number of cells with this label, and of batches that contain such cells.
    fusion : Fusion or None
        Distance between the batches; None if there is only one batch.
    """

    embedding: str
    label: Hashable
    cells: int
    batches: int
    fusion: Fusion | None


def compare_within_labels(
    embedding: str, summary: Summary, batch: str, label: str, *, units: str | None, weights: str, level: float | None
) -> list[WithinLabel]:
    """Distance between batches among the cells of each label, in the order of the labels."""
    rows = []
    for value in factors.list_labels(summary.rollup(label).keys):
        own = summary.select(**{label: [value]})
        batches = len(own.rollup(batch))
        fusion = _compare_batches(own, batch, units, weights, level) if batches > 1 else None
        rows.append(WithinLabel(embedding, value, int(own.moments.count.sum()), batches, fusion))
    return rows


def _compare_batches(summary: Summary, batch: str, units: str | None, weights: str, level: float | None) -> Fusion:
    """Distance between batches; without an unbiased one where units are all alike, and leave no error to speak of."""
    try:
        return summary.cfd(batch, units=units, level=level, weights=weights)
    except InputError:
        return replace(summary.cfd(batch, weights=weights), unbiased=None)
