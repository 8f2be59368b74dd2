"""What the data say on a rule: one measurement for all groups, or one for each pair of groups."""

import math
import warnings
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from crossfusion._base import CrossfusionWarning, InputError, factors, label_text
from crossfusion.arrays import cfd, infer_pairs, leave_out_small_groups
from crossfusion.fusion import (
    Exclusion,
    Fusion,
    Pairwise,
    count_shared_rows,
    describe_excluded,
    has_equal_means,
    join_cautions,
    split_cautions,
)
from crossfusion.gates.rule import Rule
from crossfusion.io import Rows, hold_in_memory, reduce_sources
from crossfusion.summary import Summary

UNITS_REMEDY = "name the independent units, such as the patient, in units, or check the rows"


@dataclass(frozen=True)
class Measurement:
    """One estimate with its limits; an estimate of None has a reason."""

    where: str
    estimate: float | None
    lower: float | None = None
    upper: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Findings:
    """The measurements for one rule, groups that none of them is about, and what else is to be told."""

    measurements: tuple[Measurement, ...]
    missing: tuple[str, ...] = ()
    notes: str | None = None

    @property
    def equal_means(self) -> str | None:
        """The caution that means agree by construction, if there is one."""
        return next(filter(has_equal_means, split_cautions(self.notes)), None)


@dataclass(frozen=True)
class Data:
    """A summary by the columns that rules name or, if some rule needs them, rows."""

    source: Summary | Rows

    @cached_property
    def summary(self) -> Summary:
        """The moments."""
        if isinstance(self.source, Summary):
            return self.source
        rows = self.source
        return reduce_sources([hold_in_memory("the data", rows.x, rows.keys, rows.features)])

    def find_rows(self, remedy: str) -> Rows:
        """The rows, where moments are not enough."""
        if isinstance(self.source, Rows):
            return self.source
        raise InputError(problem="the rule needs rows, and a summary has none", remedy=remedy)


def measure_groups(rule: Rule, data: Data) -> Findings:
    """All groups taken together."""
    level = rule.confidence
    if rule.units or level is None:
        fusion = data.summary.cfd(rule.between, **_list_settings(rule))
    else:
        rows = data.find_rows(UNITS_REMEDY)
        labels, given = rows.values(rule.between), rows.values(rule.given)
        fusion = cfd(rows.x, labels=labels, given=given, weights=rule.weights, level=level)
    lower, upper = fusion.interval or (None, None)
    measured = Measurement(_name_groups(fusion), drop_nan(fusion.unbiased), lower, upper, fusion.reason or "")
    missing = () if fusion.distance is None else find_missing(rule, data.summary, fusion.counts)
    return Findings((measured,), missing, join_notes(fusion.excluded, fusion.caution))


def _list_settings(rule: Rule) -> dict[str, Any]:
    """Arguments of a query."""
    settings: dict[str, Any] = {"given": rule.given, "weights": rule.weights}
    if rule.units:
        settings |= {"units": rule.units, "min_units": rule.min_units, "level": rule.confidence}
    return settings


def _name_groups(fusion: Fusion) -> str:
    names = [label_text(label) for label in fusion.counts]
    return " and ".join(names) if len(names) == 2 else f"{len(names)} groups"


def find_missing(rule: Rule, summary: Summary, compared: Collection[Hashable]) -> tuple[str, ...]:
    """Name the groups that are compared with no other: left out, or alone in all of their strata."""
    design = every = summary._make_design(rule.between, rule.given)
    if rule.units:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrossfusionWarning)  # said once already
            design = summary._make_unit_design(rule.between, rule.given, rule.units, "a rule", rule.min_units)[0]
    shared = dict(zip(design.labels, count_shared_rows(design)[0].tolist(), strict=True))
    return tuple(label_text(label) for label in every.labels if not (label in compared and shared.get(label)))


def measure_pairs(rule: Rule, data: Data) -> Findings:
    """Each pair of groups."""
    result = _compare_pairs(rule, data)
    found = []
    for i, j in zip(*(index.tolist() for index in np.triu_indices(len(result.labels), 1)), strict=True):
        estimate, lower, upper = (
            None if matrix is None else drop_nan(matrix[i, j])
            for matrix in (result.unbiased, result.lower, result.upper)
        )
        reason = "no stratum contains both groups with enough units" if estimate is None else ""
        where = f"{label_text(result.labels[i])} and {label_text(result.labels[j])}"
        found.append(Measurement(where, estimate, lower, upper, reason))
    return Findings(tuple(found), notes=join_notes(result.excluded, result.caution))


def _compare_pairs(rule: Rule, data: Data) -> Pairwise:
    level = rule.confidence
    if rule.units or level is None:
        return data.summary.pairwise(rule.between, **_list_settings(rule))
    rows = data.find_rows(UNITS_REMEDY)
    group, stratum = (
        factors.encode(rows.keys.select(list(names)))[0] if names else None for names in (rule.between, rule.given)
    )
    assert group is not None
    result, group, _ = leave_out_small_groups(data.summary, rule.between, rule.given, group, stratum, rule.weights)
    tests: dict[str, Any] = {"permutations": None, "seed": rule.seed, "statistic": "welch", "adjust": "holm"}
    return infer_pairs(result, rows.x, group, stratum, weights=rule.weights, level=level, **tests)


def join_notes(excluded: Sequence[Exclusion], caution: str | None) -> str | None:
    """What is left out, and a caution."""
    return join_cautions(f"excluded: {describe_excluded(excluded)}" if excluded else None, caution)


def drop_nan(value: float | None) -> float | None:
    """A number, which may be infinite; None for NaN."""
    return None if value is None or math.isnan(value) else float(value)
