"""How recognizable the groups are: the accuracy of a linear classifier on units that it was not fitted to."""

from collections.abc import Sequence
from typing import Any

from crossfusion._base import InputError, MissingDependencyError
from crossfusion.arrays import Separability, separability
from crossfusion.io import Rows
from crossfusion.report.evidence import Evidence
from crossfusion.report.html.markup import format_percent
from crossfusion.report.name_text import format_factors, format_stratum, join_names
from crossfusion.report.outlying import Standing

MAX_CLASSIFIED = 12  # groups; of more, those that stand out are told from the others
MAX_NUMBERS = 2**20  # in the rows that are classified
NAME = "Separability"


def recognize_groups(
    evidence: Evidence, strata: tuple[str, ...], standing: Standing, labels: Sequence[Any]
) -> dict[str, Any]:
    """The card: accuracy, interval and chance, or why there is none."""
    if evidence.rows is None:
        return _explain_absence("needs rows, and a summary has none")
    asked, what = evidence.question, format_factors(evidence.question.between)
    chosen = [labels[k] for k in standing.outlying]
    classified = evidence
    if len(labels) > MAX_CLASSIFIED:
        if not chosen:
            return _explain_absence(f"is computed for at most {MAX_CLASSIFIED} groups, or for those that stand out")
        classified = evidence.oppose(chosen, [label for label in labels if label not in set(chosen)], drawn=True)
        what = f"{join_names(chosen)} among all {format_factors(asked.between)} groups"
    try:
        found = _classify(classified, strata)
    except (InputError, MissingDependencyError) as problem:
        return _explain_absence(f"was not computed: {problem}")
    if found.accuracy is None:
        return _explain_absence(f"was not computed: {found.reason}")
    unit = format_factors(asked.units) if asked.units else "row"
    held = (
        f"the {what} of a row of an unseen {unit}" if classified is evidence else f"{what} by a row of an unseen {unit}"
    )
    within = f", within {format_stratum(strata)}" if strata else ""
    best = _describe_outlying(found, chosen) if classified is evidence and len(chosen) == 1 else ""
    return _make_card(found, f"a linear classifier recognizes {held}{within}{best}")


def _describe_outlying(found: Separability, chosen: Sequence[Any]) -> str:
    """How recognizable the group that stands out is."""
    own = next((each for each in found.one_vs_rest if each.group_a == chosen[0]), None)
    if own is None or own.accuracy is None or len(found.groups) == 2:
        return ""
    return f"; {join_names(chosen)} against all others: {format_percent(own.accuracy)}"


def _classify(evidence: Evidence, strata: tuple[str, ...]) -> Separability:
    rows, asked = evidence.rows, evidence.question
    assert rows is not None
    number = max(MAX_NUMBERS // rows.x.shape[1], 100)
    rows = Rows(rows.x[:number], rows.keys.slice(0, number))  # they are in random order
    options: dict[str, Any] = {"level": asked.level, "seed": asked.seed, "min_units": asked.min_units}
    labels, given, units = rows.values(asked.between), rows.values(strata), rows.values(asked.units)
    return separability(rows.x, labels, given=given, units=units, **options)


def _make_card(found: Separability, text: str) -> dict[str, Any]:
    said = found.describe().rpartition(" in ")[2]  # "88% (84–92%); chance 50%"
    value, _, rest = said.partition(" ")
    interval, _, chance = rest.partition("; ")
    limits = f"{100 * found.level:.4g}% interval {interval.strip('()')}"
    return {"name": NAME, "value": value, "interval": f"{limits}, {chance}", "text": text, "result": found.to_dict()}


def _explain_absence(why: str) -> dict[str, Any]:
    return {"name": NAME, "value": "–", "interval": None, "text": f"{NAME.lower()} {why}", "result": None}
