"""Groups ranked by their distance to all others together."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from crossfusion._base import factors, label_text, plain_value
from crossfusion.fusion import Fusion
from crossfusion.report.evidence import Evidence
from crossfusion.report.name_text import find_prefix
from crossfusion.report.outlying import Standing
from crossfusion.summary import Summary


def rank_groups(evidence: Evidence, found: Mapping[Hashable, Fusion], standing: Standing) -> dict[str, Any]:
    """Columns of all groups, in the order of all results, and an order: those that stand out, then by distance.

    Where groups should be apart, the closest come first.
    """
    names, ascending = [label_text(label) for label in found], evidence.question.expect == "apart"
    estimate = np.array([np.nan if each.unbiased is None else each.unbiased for each in found.values()])
    sign = 1 if ascending else -1
    order = np.argsort(np.where(np.isnan(estimate), np.inf, sign * estimate), kind="stable").tolist()
    first = [] if ascending else list(standing.outlying)
    return {
        "names": names,
        "prefix": find_prefix(names),
        "order": [*first, *(k for k in order if k not in set(first))],
        "unbiased": plain_value(estimate),
        "lower": _list_limits(found, 0),
        "upper": _list_limits(found, 1),
        "rows": plain_value(evidence.summary.rollup(evidence.question.between).moments.count),
        "units": count_units(evidence.summary, evidence.question.between, evidence.question.units),
        "outlying": list(standing.outlying),
        "level": next((each.level for each in found.values()), None),
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
