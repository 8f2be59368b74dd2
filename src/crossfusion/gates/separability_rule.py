"""Rules on separability: how well a classifier may recognize groups."""

from typing import Any

from crossfusion._base import factors, label_text
from crossfusion.arrays import Recognition, Separability, separability
from crossfusion.gates.measure import Data, Findings, Measurement, find_missing, join_notes
from crossfusion.gates.rule import Rule

TOO_MANY = "there are too many groups for pairs"
NO_PAIR = "no stratum contains both groups with enough units"


def measure_separability(rule: Rule, data: Data) -> Findings:
    """Balanced accuracy on units that the classifier was not fitted to, of all groups or of each pair."""
    rows = data.find_rows("check the rows")
    units: Any = None
    if rule.units:
        factors.check_units(rows.keys, list(rule.units))
        units = factors.encode(rows.keys.select(list(rule.units)))[0]
    labels, given = rows.values(rule.between), rows.values(rule.given)
    settings: dict[str, Any] = {"level": rule.level, "seed": rule.seed, "min_units": rule.min_units}
    found = separability(rows.x, labels, given=given, units=units, **settings)
    notes = join_notes(found.excluded, found.caution)
    missing = () if found.accuracy is None else find_missing(rule, data.summary, found.groups)
    measured: tuple[Measurement, ...] = (_measure_groups(found),)
    if rule.each_pair and found.accuracy is not None:
        measured = tuple(map(_measure_pair, found.pairs)) or (Measurement("pairs", None, reason=TOO_MANY),)
    return Findings(measured, missing, notes)


def _measure_groups(found: Separability) -> Measurement:
    names = [label_text(label) for label in found.groups]
    where = " and ".join(names) if len(names) == 2 else f"{len(names)} groups"
    if found.chance is not None:
        where += f" (chance {found.chance:.2g})"
    lower, upper = found.interval or (None, None)
    return Measurement(where, found.accuracy, lower, upper, found.reason or "")


def _measure_pair(pair: Recognition) -> Measurement:
    where = f"{label_text(pair.group_a)} and {label_text(pair.group_b)}"
    return Measurement(where, pair.accuracy, pair.lower, pair.upper, "" if pair.accuracy is not None else NO_PAIR)
