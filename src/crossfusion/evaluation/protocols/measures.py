"""Distances as the protocols take them: by name, with options, some of them within labels."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from crossfusion._base import FloatArray, InputError, as_names, check_known
from crossfusion.arrays import cfd
from crossfusion.evaluation.baselines import distances as registry

CFD_ROUNDING = 1e-14
SQUARED = {"cfd", "cfd_unbiased", "cfd_balanced", "mmd2_unbiased"}  # grow with the square of a small shift


@dataclass(frozen=True)
class LabeledRows:
    """Rows of one domain, and their labels where they are known."""

    rows: FloatArray
    labels: Any = None


@dataclass(frozen=True)
class Measure:
    """A distance of two groups."""

    name: str  # what it is called
    call: Callable[[LabeledRows, LabeledRows], float]  # of two groups
    order: int  # 2 if it grows with the square of a small shift, else 1


def _compare_within_labels(a: LabeledRows, b: LabeledRows, *, unbiased: bool) -> float:
    """CFD between two groups within labels; NaN if they share none."""
    shared = np.intersect1d(a.labels, b.labels)
    kept = [(np.isin(group.labels, shared), group) for group in (a, b)]
    if not len(shared):
        return float("nan")
    rows = np.concatenate([group.rows[keep] for keep, group in kept])
    labels = np.concatenate([group.labels[keep] for keep, group in kept])
    side = np.repeat([0, 1], [int(keep.sum()) for keep, _ in kept])
    found = cfd(rows, labels=side, given=labels)
    value = found.unbiased if unbiased else found.distance
    return float("nan") if value is None else value


WITHIN_LABELS: Mapping[str, Callable[[LabeledRows, LabeledRows], float]] = {
    "cfd_given_label": partial(_compare_within_labels, unbiased=False),
    "cfd_given_label_unbiased": partial(_compare_within_labels, unbiased=True),
}


def as_measures(distances: Any, *, labeled: bool = False) -> tuple[Measure, ...]:
    """Distances given by one name, several, or names with their options; those within labels where labels are known."""
    asked = distances
    if not isinstance(distances, Mapping) or not distances:
        asked = {name: {} for name in as_names(distances, "distances", "distance", needed=True)}
    known = [*registry, *(WITHIN_LABELS if labeled else ())]
    check_known(asked, known, "distance", "crossfusion")
    return tuple(_make_measure(name, options) for name, options in asked.items())


def _make_measure(name: str, options: Any) -> Measure:
    if options is not None and not isinstance(options, Mapping):
        raise InputError(
            "distances", problem=f"has {options!r} for {name!r}", remedy="map each name to its options, such as {}"
        )
    known = [] if name in WITHIN_LABELS else list(inspect.signature(registry[name]).parameters)[2:]
    check_known(options or {}, known, "option", f"the distance {name!r}")
    if name in WITHIN_LABELS:
        return Measure(name, WITHIN_LABELS[name], 2)
    function = partial(registry[name], **(options or {}))
    return Measure(name, lambda a, b: function(a.rows, b.rows), 2 if name in SQUARED else 1)


def zero_if_rounding(name: str, value: float) -> float:
    """A distance, or 0 for what rounding leaves of CFD, which has no unit, where means were set equal."""
    return 0.0 if name.startswith("cfd") and abs(value) < CFD_ROUNDING else value
