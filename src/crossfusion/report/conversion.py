"""Results as columns for JSON, from which the page draws tables and figures."""

from typing import Any

import numpy as np

from crossfusion._base import FloatArray, label_text, plain_value
from crossfusion.fusion import STATISTIC_NAMES, Attribution, Fusion, Pairwise
from crossfusion.report.evidence import TestOutcome, list_groups
from crossfusion.report.group_order import order_by_clusters
from crossfusion.report.name_text import find_prefix
from crossfusion.report.question import Question
from crossfusion.report.ranking import count_units
from crossfusion.summary import Summary

MAX_CONTRIBUTIONS = 40  # features or units that are listed
PAIR_COLUMNS = ("distance", "unbiased", "overlap", "lower", "upper", "pvalue", "adjusted")
PAIR_DIGITS = 6  # of distances of pairs


def convert_fusion(fusion: Fusion) -> dict[str, Any]:
    """A distance; rows and weights of the groups are told once, with the groups."""
    return {name: entry for name, entry in fusion.to_dict().items() if name not in ("counts", "weights")}


def describe_groups(few: Summary, question: Question, pairs: Pairwise, total: int) -> dict[str, Any]:
    """Name, rows, units, variance and mean distance of each group, and an order that puts close ones together."""
    moments = few.rollup(question.between).moments
    found = np.array(pairs.unbiased)
    np.fill_diagonal(found, np.nan)
    defined = np.isfinite(found)
    mean = np.divide(
        np.where(defined, found, 0).sum(axis=0),
        defined.sum(axis=0),
        where=defined.any(axis=0),
        out=np.full(len(found), np.nan),
    )
    names = [label_text(label) for label in list_groups(few, question.between)]
    return {
        "number": len(names),
        "all": total,
        "names": names,
        "prefix": find_prefix(names),
        "rows": plain_value(moments.count),
        "units": count_units(few, question.between, question.units),
        "dispersion": _round_values(moments.dispersion),
        "distance": _round_values(mean),
        "cluster": order_by_clusters(found),
    }


def convert_pairs(pairs: Pairwise) -> dict[str, Any]:
    """The upper triangle of each matrix, row by row."""
    upper = np.triu_indices(len(pairs.labels), 1)
    columns = {name: _round_values(values[upper]) for name, values in pairs.columns.items() if name in PAIR_COLUMNS}
    return columns | {"level": pairs.level, "permutations": pairs.permutations, "adjust": pairs.adjust}


def _round_values(values: FloatArray) -> list[Any]:
    return [plain_value(float(f"{value:.{PAIR_DIGITS}g}")) for value in np.asarray(values, float)]


def convert_test(tested: TestOutcome) -> dict[str, Any]:
    """The outcome of a test, without its distance, which has other weights than the page may have."""
    test = tested.result
    told = {name: getattr(tested, name) for name in ("exchanged", "number", "total", "by_units", "within")}
    found = test.to_dict() | told | {"statistic_label": STATISTIC_NAMES[test.statistic_name]}
    del found["distance"]
    drawn = test.statistic > 0 and np.isfinite([test.statistic, *test.null]).all()
    return found | {"null": _round_values(test.null) if drawn else []}


def convert_attribution(found: Attribution) -> dict[str, Any]:
    """The largest contributions, and what all others add up to."""
    top = found.top(MAX_CONTRIBUTIONS)
    labels = [label_text(found.labels[k]) for k in top]
    rest = float(np.delete(found.share, top).sum()) if len(top) < len(found.labels) else None
    return {
        "over": found.over,
        "number": len(found.labels),
        "labels": labels,
        "share": _round_values(found.share[top]),
        "without": _round_values(found.without[top]),
        "rest": plain_value(rest),
    }
