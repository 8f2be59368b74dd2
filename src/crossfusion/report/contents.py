"""All that a report says, computed once and ready for JSON."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crossfusion._base import CrossfusionWarning, FloatArray, InputError, check_known, factors, label_text, plain_value
from crossfusion.fusion import FEATURES, STATISTIC_NAMES, Attribution, Fusion, Pairwise
from crossfusion.report import batch_biology, headline
from crossfusion.report.cautions import HEADLINE_KINDS, find_concerns
from crossfusion.report.data import ReportData
from crossfusion.report.drift import convert_drift, describe_drift, measure_drift
from crossfusion.report.evidence import Evidence, TestOutcome, list_groups
from crossfusion.report.group_order import order_by_clusters
from crossfusion.report.name_text import format_factors
from crossfusion.report.projection import project_groups
from crossfusion.report.question import Question
from crossfusion.summary import Summary

FORMAT = 1
MAX_GROUPS = 120  # that a page shows pair by pair; of more, those with the most rows
MAX_CONTRIBUTIONS = 40  # features or units that are listed
PAIR_COLUMNS = ("distance", "unbiased", "overlap", "lower", "upper", "pvalue", "adjusted")
PAIR_DIGITS = 6  # of distances of pairs


def build_contents(data: ReportData) -> dict[str, Any]:
    """Every number and sentence of a report; it says itself what warnings would say."""
    check_known(data.question.factors, data.summary.factors, "factor", "the summary")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrossfusionWarning)
        return _build_contents(data)


def _build_contents(data: ReportData) -> dict[str, Any]:
    reference, whole = batch_biology.choose_reference(data)
    evidence = whole.leave_out_small_groups()
    asked, summary = evidence.question, evidence.summary
    distances = _measure_distances(evidence)
    main = distances.get("adjusted", distances["plain"])
    strata = () if main.overlap == 0 else asked.given
    chosen, few = _select_largest(summary, asked)
    pairs = {"plain": evidence.pairs(few, ())} | ({"adjusted": evidence.pairs(few, strata)} if strata else {})
    leading = pairs.get("adjusted", pairs["plain"])
    tested = evidence.test(strata)
    by_feature, by_unit = _attribute(summary, asked, strata)
    batches, methods = (
        batch_biology.compare_batches(evidence),
        batch_biology.compare_versions(data, evidence, reference),
    )
    drift = measure_drift(evidence)
    said = headline.write_headline(
        asked, distances["plain"], distances.get("adjusted"), leading, tested, evidence.total
    )
    excluded = (*evidence.excluded, *main.excluded)
    said += headline.describe_excluded(excluded)
    concerns = find_concerns(evidence, main, tested, leading, by_unit, data.lost, excluded)
    said[1:1] = [
        f"Caution: {each.title[0].lower()}{each.title[1:]}." for each in concerns if each.kind in HEADLINE_KINDS
    ]
    return {
        "format": FORMAT,
        "question": asked.to_dict(),
        "about": _describe_data(data, evidence),
        "verdict": headline.choose_verdict(main, tested, asked.level),
        "headline": [*said, *describe_drift(drift), *headline.describe_corrections(methods)],
        "tiles": headline.make_tiles(asked, list(distances.items())),
        "distances": {name: _convert_fusion(fusion) for name, fusion in distances.items()},
        "excluded": [entry.to_dict() for entry in excluded],
        "groups": _describe_groups(chosen, few, asked, leading, len(summary.rollup(asked.between))),
        "pairs": {name: _convert_pairs(result) for name, result in pairs.items()},
        "levels": _split_levels(summary, asked),
        "batches": batches,
        "methods": methods,
        "plane": "methods" if methods else "batches" if batches else None,
        "projection": project_groups(summary, asked, evidence.rows),
        "features": _convert_attribution(by_feature),
        "units": None if by_unit is None else _convert_attribution(by_unit),
        "test": None if tested is None else _convert_test(tested),
        "warnings": [concern.to_dict() for concern in concerns],
        "missing": dict(evidence.missing),
        "drift": convert_drift(drift),
    }


def _measure_distances(evidence: Evidence) -> dict[str, Fusion]:
    """The unadjusted distance and, given a label, the adjusted one and that of the label within groups."""
    asked = evidence.question
    found = {"plain": evidence.distance(asked.between, (), "interval")}
    if asked.given:
        fixed = f"interval within one {format_factors(asked.given)}"
        found["adjusted"] = evidence.distance(asked.between, asked.given, fixed)
        if len(evidence.summary.rollup(asked.given)) > 1:
            found["biology"] = evidence.distance(asked.given, asked.between)
    return found


def _describe_data(data: ReportData, evidence: Evidence) -> dict[str, Any]:
    summary = evidence.summary
    return {
        "rows": evidence.total,
        "features": summary.dim,
        "cells": len(summary),
        "dtype": summary.dtype,
        "dropped": summary.dropped,
        "lens": summary.lens,
        "tags": dict(summary.tags),
        "sampled": None if evidence.rows is None else len(evidence.rows.x),
        "whole": evidence.whole,
        "reference": evidence.question.reference,
        "all": data.seen or None,
    }


def _convert_fusion(fusion: Fusion) -> dict[str, Any]:
    """A distance; rows and weights of the groups are told once, with the groups."""
    return {name: entry for name, entry in fusion.to_dict().items() if name not in ("counts", "weights")}


def _select_largest(summary: Summary, question: Question) -> tuple[list[int], Summary]:
    """The groups that are shown, those with the most rows, and a summary of these."""
    code, groups = factors.encode(summary.keys.select(list(question.between)))
    count = np.bincount(code, weights=summary.moments.count)
    if len(count) < 2:
        raise InputError(
            "between", problem=f"has one group only, {factors.list_labels(groups)[0]!r}", remedy="compare at least two"
        )
    chosen = sorted(np.argsort(-count, kind="stable")[:MAX_GROUPS].tolist())
    if len(chosen) == len(count):
        return chosen, summary
    kept = np.flatnonzero(np.isin(code, chosen))
    return chosen, replace(summary, keys=summary.keys.take(kept), moments=summary.moments[kept], batches=())


def _describe_groups(
    chosen: Sequence[int], few: Summary, question: Question, pairs: Pairwise, total: int
) -> dict[str, Any]:
    """Name, rows, units, variance and mean distance of each group, and an order that puts close ones together."""
    moments = few.rollup(question.between).moments
    found = headline.select_estimates(pairs)
    np.fill_diagonal(found, np.nan)
    defined = np.isfinite(found)
    mean = np.divide(
        np.where(defined, found, 0).sum(axis=0),
        defined.sum(axis=0),
        where=defined.any(axis=0),
        out=np.full(len(found), np.nan),
    )
    units = None
    if question.units:
        both = few.rollup(list(dict.fromkeys([*question.between, *question.units])))
        units = np.bincount(factors.encode(both.keys.select(list(question.between)))[0]).tolist()
    return {
        "number": len(chosen),
        "all": total,
        "names": [label_text(label) for label in list_groups(few, question.between)],
        "rows": plain_value(moments.count),
        "units": units,
        "dispersion": _round_values(moments.dispersion),
        "distance": _round_values(mean),
        "cluster": order_by_clusters(found),
    }


def _convert_pairs(pairs: Pairwise) -> dict[str, Any]:
    """The upper triangle of each matrix, row by row."""
    upper = np.triu_indices(len(pairs.labels), 1)
    columns = {name: _round_values(values[upper]) for name, values in pairs.columns.items() if name in PAIR_COLUMNS}
    return columns | {"level": pairs.level, "permutations": pairs.permutations, "adjust": pairs.adjust}


def _round_values(values: FloatArray) -> list[Any]:
    return [plain_value(float(f"{value:.{PAIR_DIGITS}g}")) for value in np.asarray(values, float)]


def _convert_test(tested: TestOutcome) -> dict[str, Any]:
    """The outcome of a test, without its distance, which has other weights than the page may have."""
    test = tested.result
    told = {name: getattr(tested, name) for name in ("exchanged", "number", "total", "by_units", "within")}
    found = test.to_dict() | told | {"statistic_label": STATISTIC_NAMES[test.statistic_name]}
    del found["distance"]
    drawn = test.statistic > 0 and np.isfinite([test.statistic, *test.null]).all()
    return found | {"null": _round_values(test.null) if drawn else []}


def _split_levels(summary: Summary, question: Question) -> list[dict[str, Any]]:
    """Hierarchies that add up: the levels, and the levels below the factors that are adjusted for."""
    orders = [question.levels, *([(*question.given, *question.levels)] if question.given else [])]
    balance = question.between if {*question.between} <= {*question.levels} else None
    return [summary.hierarchy(order, weights=question.weights, balance=balance).to_dict() for order in orders]


def _attribute(summary: Summary, question: Question, given: tuple[str, ...]) -> tuple[Attribution, Attribution | None]:
    options: dict[str, Any] = {"given": given, "weights": question.weights}
    by_unit = None
    if question.units:
        name, fine = " × ".join(question.units), summary
        if len(question.units) > 1:  # a patient may have the number of another one in another hospital
            units = [label_text(label) for label in factors.list_labels(summary.keys.select(list(question.units)))]
            fine = replace(summary, keys=summary.keys.append_column(name, factors.as_column(units, name)), batches=())
        by_unit = fine.attribution(question.between, over=name, **options)
    return summary.attribution(question.between, over=FEATURES, **options), by_unit


def _convert_attribution(found: Attribution) -> dict[str, Any]:
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
