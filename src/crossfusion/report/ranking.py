"""Groups ranked by their distance to all others together."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from crossfusion._base import factors, label_text, plain_value
from crossfusion.fusion import Fusion, Pairwise
from crossfusion.report.evidence import Evidence
from crossfusion.report.name_text import find_prefix
from crossfusion.report.outlying import Standing
from crossfusion.summary import Summary


def rank_groups(
    evidence: Evidence, found: Mapping[Hashable, Fusion], standing: Standing, pairs: Pairwise
) -> dict[str, Any]:
    """Columns of all groups, in the order of all results, and an order: those that stand out, then by distance.

    Where groups should be apart, each is compared with the closest other one, and the closest come first.
    """
    names, asked = [label_text(label) for label in found], evidence.question
    common = {
        "names": names,
        "prefix": find_prefix(names),
        "rows": plain_value(evidence.summary.rollup(asked.between).moments.count),
        "units": count_units(evidence.summary, asked.between, asked.units),
    }
    if asked.expect == "apart" and len(pairs.labels) == len(names):
        return common | _rank_by_closest(pairs, asked.level)
    estimate = np.array([np.nan if each.unbiased is None else each.unbiased for each in found.values()])
    order = np.argsort(np.where(np.isnan(estimate), np.inf, -estimate), kind="stable").tolist()
    return common | {
        "order": [*standing.outlying, *(k for k in order if k not in set(standing.outlying))],
        "closest": None,
        "unbiased": plain_value(estimate),
        "lower": _list_limits(found, 0),
        "upper": _list_limits(found, 1),
        "outlying": list(standing.outlying),
        "level": next((each.level for each in found.values()), None),
    }


def _rank_by_closest(pairs: Pairwise, level: float) -> dict[str, Any]:
    """The closest other group of each, and those from which it is not significantly separated first."""
    apart = np.where(np.isnan(pairs.unbiased), np.inf, pairs.unbiased)
    np.fill_diagonal(apart, np.inf)
    closest = apart.argmin(axis=1)
    own = (np.arange(len(closest)), closest)
    compared = np.isfinite(apart[own])
    fused = [] if pairs.adjusted is None else np.flatnonzero(compared & ~(pairs.adjusted[own] <= 1 - level)).tolist()
    limits = {name: None if values is None else plain_value(values[own]) for name, values in
              (("lower", pairs.lower), ("upper", pairs.upper))}  # fmt: skip
    return {
        "order": np.argsort(apart[own], kind="stable").tolist(),
        "closest": closest.tolist(),
        "unbiased": plain_value(pairs.unbiased[own]),
        **limits,
        "outlying": fused,
        "level": pairs.level,
    }


def _list_limits(found: Mapping[Hashable, Fusion], end: int) -> list[float | None] | None:
    if all(each.interval is None for each in found.values()):
        return None
    return [None if each.interval is None else each.interval[end] for each in found.values()]


def count_units(summary: Summary, between: Sequence[str], units: Sequence[str]) -> list[int] | None:
    """The number of units of each group, if units are named."""
    if not units:
        return None
    both = summary.rollup(list(dict.fromkeys([*between, *units])))
    found: list[int] = np.bincount(factors.encode(both.keys.select(list(between)))[0]).tolist()
    return found
