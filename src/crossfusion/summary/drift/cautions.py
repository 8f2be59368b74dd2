"""Cautions of a series of periods: windows that rest on few rows, and windows whose means mislead."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from crossfusion.fusion import (
    EQUAL_MEANS_CAUTION,
    GEOMETRY_REMEDY,
    MIN_SHARED_ROWS,
    SPREAD_CAUTION,
    are_few,
    count_shared_rows,
    split_cautions,
)
from crossfusion.summary.drift.result import Drift, list_windows

if TYPE_CHECKING:
    from crossfusion.summary.drift.detection import Comparison

KINDS = (EQUAL_MEANS_CAUTION, SPREAD_CAUTION, GEOMETRY_REMEDY)  # words by which cautions of means are recognized


def caution_about_few_rows(found: Drift, compared: "Sequence[Comparison]") -> str | None:
    """Name the windows whose comparison rests on few of their rows, or of the reference's."""
    if found.compared is None:
        return None
    shared = np.array(  # windows × (shared, all) × sides
        [(count_shared_rows(entry.design)[0], count_shared_rows(entry.whole)[1]) for entry in compared]
    )
    few = are_few(shared[:, 0, 1], shared[:, 1, 1]) | (shared[:, 0, 0] < np.minimum(MIN_SHARED_ROWS, shared[:, 1, 0]))
    named = [
        f"{found.window(k)} ({shared[k, 0, 1]:,.12g} of {shared[k, 1, 1]:,.12g} rows, {shared[k, 0, 0]:,.12g} of the"
        " reference)"
        for k in np.flatnonzero(few & ~np.isnan(found.distance)).tolist()
    ]
    return f"few rows are in strata shared with the reference: {list_windows(named)}" if named else None


def list_cautions_of_means(found: Drift, compared: "Sequence[Comparison]") -> list[str]:
    """Name the windows whose means hide a change, with the caution of the latest one of each kind."""
    said = []
    for kind in KINDS:
        texts = {
            found.window(k): text
            for k, entry in enumerate(compared)
            for text in split_cautions(entry.fusion.caution)
            if kind in text
        }
        if texts:
            said.append(f"{list_windows(list(texts))}: {list(texts.values())[-1]}")
    return said
