"""The contents of a report, computed once and ready for JSON."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from crossfusion._base import CrossfusionWarning, check_known, factors, label_text
from crossfusion.fusion import FEATURES, Attribution, Fusion
from crossfusion.report import advice, batch_biology, conversion, headline
from crossfusion.report.cards import make_cards
from crossfusion.report.cautions import HEADLINE_KINDS, find_concerns
from crossfusion.report.data import ReportData
from crossfusion.report.drift import convert_drift, describe_drift, measure_drift
from crossfusion.report.evidence import Evidence, list_groups
from crossfusion.report.name_text import format_factors
from crossfusion.report.projection import project_groups
from crossfusion.report.question import Question
from crossfusion.report.ranking import rank_groups
from crossfusion.report.recognition import recognize_groups
from crossfusion.report.verdict import Findings, judge_groups, measure_rest
from crossfusion.report.verdict_text import give_verdict
from crossfusion.summary import Summary

FORMAT = 2
MAX_GROUPS = 120  # that a page shows pair by pair; of more, those that are farthest from the others


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
    tested = evidence.test(strata)
    ranked = evidence.one_vs_rest(strata)
    kept = _select_groups(ranked)
    few = evidence.select(kept).summary if len(kept) < len(ranked) else summary
    pairs = {"plain": evidence.pairs(few, (), tested=not strata)}
    if strata:
        pairs["adjusted"] = evidence.pairs(few, strata)
    leading = pairs.get("adjusted", pairs["plain"])
    labels = tuple(list_groups(summary, asked.between))
    alone = tuple(label for label, fusion in ranked.items() if strata and fusion.overlap == 0)
    standing = judge_groups(evidence, strata, main, leading, tested, alone)
    found = Findings(
        asked, labels, main, distances["plain"], leading, tested, standing,
        measure_rest(evidence, strata, standing, labels), alone,
    )  # fmt: skip
    verdict = give_verdict(found)
    by_feature, by_unit = _attribute(summary, asked, strata)
    versions = batch_biology.compare_versions(data, evidence, reference)
    batches = batch_biology.compare_batches(evidence) if asked.expect == "fused" else None
    drift = measure_drift(evidence)
    excluded = (*evidence.excluded, *main.excluded)
    concerns = find_concerns(evidence, main, tested, leading, by_unit, data.lost, excluded)
    details = [
        *headline.describe_share(found),
        *headline.describe_rest(found),
        *describe_drift(drift),
        *headline.describe_corrections(versions),
    ]
    said = [
        verdict.sentence,
        *details,
        *(f"Caution: {each.title[0].lower()}{each.title[1:]}." for each in concerns if each.kind in HEADLINE_KINDS),
        *headline.write_headline(found, evidence.total),
        *headline.describe_excluded(excluded),
    ]
    return {
        "format": FORMAT,
        "question": asked.to_dict(),
        "about": _describe_data(data, evidence),
        "verdict": verdict.to_dict()
        | {"rest_cfd": None if found.rest is None else conversion.convert_fusion(found.rest)},
        "headline": said,
        "led": len(details),
        "next": advice.advise(found, verdict, concerns, versions is not None),
        "cards": [*make_cards(found), recognize_groups(evidence, strata, standing, labels)],
        "distances": {name: conversion.convert_fusion(fusion) for name, fusion in distances.items()},
        "excluded": [entry.to_dict() for entry in excluded],
        "ranks": rank_groups(evidence, ranked, standing, leading),
        "groups": conversion.describe_groups(few, asked, leading, len(labels)),
        "pairs": {name: conversion.convert_pairs(result) for name, result in pairs.items()},
        "levels": _split_levels(summary, asked),
        "batches": batches,
        "methods": versions,
        "plane": "methods" if versions else "batches" if batches else None,
        "projection": project_groups(summary, asked, strata, evidence.rows),
        "features": conversion.convert_attribution(by_feature),
        "units": None if by_unit is None else conversion.convert_attribution(by_unit),
        "test": None if tested is None else conversion.convert_test(tested),
        "warnings": [concern.to_dict() for concern in concerns],
        "missing": dict(evidence.missing),
        "drift": convert_drift(drift),
    }


def _measure_distances(evidence: Evidence) -> dict[str, Fusion]:
    """The unadjusted distance and, given a label, the adjusted one."""
    asked = evidence.question
    found = {"plain": evidence.distance(asked.between, (), "interval")}
    if asked.given:
        fixed = f"interval adjusted for {format_factors(asked.given)}"
        found["adjusted"] = evidence.distance(asked.between, asked.given, fixed)
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


def _select_groups(ranked: Mapping[Any, Fusion]) -> list[Any]:
    """The groups that are shown pair by pair: all, or those farthest from the others."""
    if len(ranked) <= MAX_GROUPS:
        return list(ranked)
    return sorted(ranked, key=lambda label: -(ranked[label].unbiased or 0.0))[:MAX_GROUPS]


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
