"""All that a report says, computed once and ready for JSON."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crossfusion._base import CrossfusionWarning, FloatArray, InputError, check_known, factors, label_text, plain_value
from crossfusion.fusion import FEATURES, Attribution, Fusion, Pairwise
from crossfusion.report import batch_biology, headline
from crossfusion.report.cautions import concerns
from crossfusion.report.data import Data
from crossfusion.report.drift import as_data, in_words, over_time
from crossfusion.report.evidence import Evidence, Tested, group_labels
from crossfusion.report.group_order import clustered
from crossfusion.report.name_text import crossed
from crossfusion.report.projection import projection
from crossfusion.report.question import Question
from crossfusion.summary import Summary

FORMAT = 1
GROUPS = 120  # that a page shows pair by pair; of more, those with the most rows
TOP = 40  # features or units that are listed
COLUMNS = ("distance", "unbiased", "overlap", "lower", "upper", "pvalue", "adjusted")
DIGITS = 6  # of distances of pairs


def contents(data: Data) -> dict[str, Any]:
    """Every number and sentence of a report; it says itself what warnings would say."""
    check_known(data.question.factors, data.summary.factors, "factor", "the summary")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrossfusionWarning)
        return _contents(data)


def _contents(data: Data) -> dict[str, Any]:
    reference, evidence = batch_biology.reference(data)
    asked, summary = evidence.question, evidence.summary
    distances = _distances(evidence)
    main = distances.get("adjusted", distances["plain"])
    strata = () if main.overlap == 0 else asked.given
    chosen, few = _largest(summary, asked)
    pairs = {"plain": evidence.pairs(few, ())} | ({"adjusted": evidence.pairs(few, strata)} if strata else {})
    leading = pairs.get("adjusted", pairs["plain"])
    tested = evidence.test(strata)
    by_feature, by_unit = _attributions(summary, asked, strata)
    same_weight = replace(evidence, question=replace(asked, weights="balanced"), missing={})
    balanced = same_weight.distance(asked.between, asked.given)
    batches, methods = batch_biology.batches(evidence), batch_biology.methods(data, evidence, reference)
    drift = over_time(evidence)
    said = headline.headline(asked, distances["plain"], distances.get("adjusted"), leading, tested, evidence.total)
    return {
        "format": FORMAT,
        "question": asked.to_dict(),
        "about": _about(data, evidence),
        "verdict": headline.verdict(main, tested, asked.level),
        "headline": [*said, *in_words(drift), *headline.of_methods(methods)],
        "tiles": headline.tiles(asked, list(distances.items())),
        "distances": {name: _fusion(fusion) for name, fusion in distances.items()},
        "groups": _groups(chosen, few, asked, leading, len(main.counts)),
        "pairs": {name: _pairs(result) for name, result in pairs.items()},
        "levels": _levels(summary, asked),
        "batches": batches,
        "methods": methods,
        "plane": "methods" if methods else "batches" if batches else None,
        "projection": projection(summary, asked, evidence.rows),
        "features": _attribution(by_feature, data.features),
        "units": None if by_unit is None else _attribution(by_unit),
        "test": None if tested is None else _test(tested),
        "warnings": [entry.to_dict() for entry in concerns(evidence, main, balanced, tested, by_unit, data.lost)],
        "missing": dict(evidence.missing),
        "drift": as_data(drift, data.features),
    }


def _distances(evidence: Evidence) -> dict[str, Fusion]:
    """The distance as the rows come, and where something is held fixed: within it, and of it within groups."""
    asked = evidence.question
    found = {"plain": evidence.distance(asked.between, (), "interval")}
    if asked.given:
        fixed = f"interval within one {crossed(asked.given)}"
        found["adjusted"] = evidence.distance(asked.between, asked.given, fixed)
        if len(evidence.summary.rollup(asked.given)) > 1:
            found["biology"] = evidence.distance(asked.given, asked.between)
    return found


def _about(data: Data, evidence: Evidence) -> dict[str, Any]:
    summary = evidence.summary
    return {
        "rows": evidence.total,
        "features": summary.dim,
        "cells": len(summary),
        "dtype": summary.dtype,
        "dropped": summary.dropped,
        "tags": dict(summary.tags),
        "sampled": None if evidence.rows is None else len(evidence.rows.x),
        "whole": evidence.whole,
        "reference": evidence.question.reference,
        "all": data.seen or None,
    }


def _fusion(fusion: Fusion) -> dict[str, Any]:
    """A distance; rows and weights of the groups are told once, with the groups."""
    return {name: entry for name, entry in fusion.to_dict().items() if name not in ("counts", "weights")}


def _largest(summary: Summary, question: Question) -> tuple[list[int], Summary]:
    """The groups that are shown, those with the most rows, and a summary of these."""
    code, groups = factors.encode(summary.keys.select(list(question.between)))
    count = np.bincount(code, weights=summary.moments.count)
    if len(count) < 2:
        raise InputError(
            "between", problem=f"has one group only, {factors.list_labels(groups)[0]!r}", remedy="compare at least two"
        )
    chosen = sorted(np.argsort(-count, kind="stable")[:GROUPS].tolist())
    if len(chosen) == len(count):
        return chosen, summary
    kept = np.flatnonzero(np.isin(code, chosen))
    return chosen, replace(summary, keys=summary.keys.take(kept), moments=summary.moments[kept], batches=())


def _groups(chosen: Sequence[int], few: Summary, question: Question, pairs: Pairwise, total: int) -> dict[str, Any]:
    """Name, rows, units, variance and mean distance of each group, and an order that puts close ones together."""
    moments = few.rollup(question.between).moments
    found = headline.shown(pairs)
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
        "names": [label_text(label) for label in group_labels(few, question.between)],
        "rows": plain_value(moments.count),
        "units": units,
        "dispersion": _rounded(moments.dispersion),
        "distance": _rounded(mean),
        "cluster": clustered(found),
    }


def _pairs(pairs: Pairwise) -> dict[str, Any]:
    """The upper triangle of each matrix, row by row."""
    upper = np.triu_indices(len(pairs.labels), 1)
    columns = {name: _rounded(values[upper]) for name, values in pairs.columns.items() if name in COLUMNS}
    return columns | {"level": pairs.level, "permutations": pairs.permutations, "adjust": pairs.adjust}


def _rounded(values: FloatArray) -> list[Any]:
    return [plain_value(float(f"{value:.{DIGITS}g}")) for value in np.asarray(values, float)]


def _test(tested: Tested) -> dict[str, Any]:
    """The outcome of a test; the rearrangements in the units of the distance, plug-in, which grows with F."""
    test = tested.result
    finite = 0 < test.distance < np.inf
    freedom = test.statistic / np.expm1(test.distance) if finite else np.nan
    told = {name: getattr(tested, name) for name in ("exchanged", "number", "total", "by_units", "within")}
    found = test.to_dict() | told
    return found | {"null": _rounded(np.log1p(test.null / freedom)) if finite else []}


def _levels(summary: Summary, question: Question) -> list[dict[str, Any]]:
    """Hierarchies that add up: the levels as the rows come, and below what is held fixed."""
    orders = [question.levels, *([(*question.given, *question.levels)] if question.given else [])]
    return [summary.hierarchy(order, weights=question.weights).to_dict() for order in orders]


def _attributions(
    summary: Summary, question: Question, given: tuple[str, ...]
) -> tuple[Attribution, Attribution | None]:
    options: dict[str, Any] = {"given": given, "weights": question.weights}
    by_unit = None
    if question.units:
        name, fine = " × ".join(question.units), summary
        if len(question.units) > 1:  # a patient may have the number of another one in another hospital
            units = [label_text(label) for label in factors.list_labels(summary.keys.select(list(question.units)))]
            fine = replace(summary, keys=summary.keys.append_column(name, factors.as_column(units, name)), batches=())
        by_unit = fine.attribution(question.between, over=name, **options)
    return summary.attribution(question.between, over=FEATURES, **options), by_unit


def _attribution(found: Attribution, names: Sequence[str] = ()) -> dict[str, Any]:
    """The largest contributions, and what all others add up to."""
    top = found.top(TOP)
    labels = [names[k] if names else label_text(found.labels[k]) for k in top]
    rest = float(np.delete(found.share, top).sum()) if len(top) < len(found.labels) else None
    return {
        "over": found.over,
        "number": len(found.labels),
        "labels": labels,
        "share": _rounded(found.share[top]),
        "without": _rounded(found.without[top]),
        "rest": plain_value(rest),
    }
