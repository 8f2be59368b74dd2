"""Batch versus biology: of several versions of the same rows, or of the factors of one."""

from dataclasses import replace
from typing import Any

import numpy as np

from crossfusion._base import InputError, check_known, factors, label_text, plain_value
from crossfusion.fusion import Fusion, has_equal_means
from crossfusion.io import Rows
from crossfusion.report.cautions import choose_estimate
from crossfusion.report.data import ReportData
from crossfusion.report.evidence import Evidence
from crossfusion.report.name_text import format_list
from crossfusion.summary import CorrectionComparison, Summary, compare_corrections

UNCORRECTED = ("none", "raw")  # names of the version that is the reference unless another one is named


def choose_reference(data: ReportData) -> tuple[str | None, Evidence]:
    """Choose the version that all sections but one describe, and return it with the evidence on it."""
    asked, summary, rows = data.question, data.summary, data.rows
    if asked.method is None:
        kept = summary.rollup(asked.factors)
        return None, Evidence(kept, asked, rows, data.whole)
    names = list(_split_versions(data))
    chosen = _find_uncorrected(names) if asked.reference is None else asked.reference
    check_known([chosen], names, "reference", asked.method)
    own = _split_versions(data)[chosen]
    single = replace(asked, method=None, reference=chosen)
    if rows is None:
        return chosen, Evidence(own, single)
    mine = _select_rows(rows, asked.method, chosen)
    return chosen, Evidence(own, single, mine, data.whole)


def _find_uncorrected(names: list[str]) -> str:
    """Find the version that says by its name that nothing was corrected; the order of names says nothing."""
    known = {name.strip().lower(): name for name in names}
    found = next((known[name] for name in UNCORRECTED if name in known), None)
    if found is None:
        raise InputError(
            "reference",
            problem=f"is needed, since no version is called {' or '.join(map(repr, UNCORRECTED))}",
            remedy=f"name the version that the others are compared with: {format_list(list(map(repr, names)))}",
        )
    return found


def _split_versions(data: ReportData) -> dict[str, Summary]:
    """A summary of each version of the rows."""
    asked, summary = data.question, data.summary.rollup(data.question.factors)
    assert asked.method is not None
    others = [name for name in summary.factors if name != asked.method]
    values = factors.list_labels(summary.rollup([asked.method]).keys.select([asked.method]))
    if len(values) < 2:
        raise InputError(
            "method", asked.method, f"has one value only, {values[0]!r}", "a comparison needs two versions"
        )
    return {label_text(version): summary.select(**{asked.method: [version]}).rollup(others) for version in values}


def _select_rows(rows: Rows, method: str, chosen: str) -> Rows | None:
    """The rows of one version."""
    own = np.flatnonzero([label_text(entry) == chosen for entry in rows.keys.column(method).to_pylist()])
    others = [name for name in rows.keys.column_names if name != method]
    return Rows(rows.x[own], rows.keys.select(others).take(own)) if len(own) else None


def compare_versions(data: ReportData, evidence: Evidence, chosen: str | None) -> dict[str, Any] | None:
    """Distances of all versions, beside those of the reference."""
    asked = data.question
    if chosen is None:
        return None
    options: dict[str, Any] = {"weights": asked.weights, "level": asked.level, "reference": chosen}
    try:
        found = compare_corrections(
            _split_versions(data), between=asked.between, given=asked.given, units=asked.units, **options
        )
    except InputError as problem:
        if not asked.units:
            raise
        found = compare_corrections(_split_versions(data), between=asked.between, given=asked.given, **options)
        evidence.missing["intervals of versions"] = str(problem)
    return _convert_versions(found)


def _convert_versions(found: CorrectionComparison) -> dict[str, Any]:
    """Names, differences and standing, with the distances alone of each fusion; labels in remarks only."""
    plain = {name: value for name, value in found.to_dict().items() if name not in ("labels", "pairs")}
    biology = None if found.biology is None else [_convert_point(fusion) for fusion in found.biology]
    return plain | {
        "batch": [_convert_point(fusion) for fusion in found.batch],
        "biology": biology,
        "standing": [entry.text for entry in found.standing],
        "front": plain_value(found.front),
        "equal_means": [
            name for name, entry in zip(found.names, found.standing, strict=True) if has_equal_means(entry.caution)
        ],
        "remarks": found.remarks(),
    }


def _convert_point(fusion: Fusion) -> dict[str, Any]:
    return {"value": plain_value(choose_estimate(fusion)), "interval": plain_value(fusion.interval)}


def compare_batches(evidence: Evidence) -> list[dict[str, Any]] | None:
    """Each batch factor against the labels: alone, adjusted for them, and the other way round."""
    asked, summary = evidence.question, evidence.summary
    if not asked.given or len(summary.rollup(asked.given)) < 2:
        return None
    names = [name for name in asked.levels if name not in asked.units] or list(asked.between)
    labels = evidence.distance(asked.given, ())
    found = []
    for name in names:
        if len(summary.rollup([name])) < 2:
            continue
        fusions = (
            evidence.distance((name,), ()),
            evidence.distance((name,), asked.given),
            evidence.distance(asked.given, (name,)),
        )
        plain, batch, biology = map(_convert_point, fusions)
        found.append(
            {"name": name, "plain": plain, "labels": _convert_point(labels), "batch": batch, "biology": biology}
        )
    return found
