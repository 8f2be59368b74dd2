"""How far each period lies from the first ones."""

from typing import Any

import numpy as np

from crossfusion._base import FloatArray, InputError, label_text, plain_value
from crossfusion.report.evidence import Evidence
from crossfusion.report.html.markup import format_number, isolate
from crossfusion.summary import MIN_PERIODS, Drift, list_periods

FALSE_ALARM_RATE = 0.01  # of false alarms of a period
DRIFT_FIELDS = ("count", "distance", "unbiased", "lower", "upper", "pvalue", "threshold", "alarm",
                "incomparable", "overlap", "compared", "caution", "level", "rate")  # fmt: skip


def measure_drift(evidence: Evidence) -> Drift | None:
    """Drift from the first third of the periods, or None, and then what is missing and why."""
    asked, summary = evidence.question, evidence.summary
    if asked.time is None:
        return None
    try:
        number_of_periods = len(list_periods(summary, asked.time)[1])
        first = min(max(MIN_PERIODS, number_of_periods // 3), number_of_periods - 1)
        options: dict[str, Any] = {
            "reference": f"first:{first}",
            "given": asked.given,
            "alarm": FALSE_ALARM_RATE if first >= MIN_PERIODS else None,
            "weights": asked.weights,
            "seed": asked.seed,
        }
        try:
            return summary.drift(asked.time, units=asked.units, level=asked.level, min_units=asked.min_units, **options)
        except InputError as problem:
            evidence.missing["intervals over time"] = str(problem)
            return summary.drift(asked.time, **options)
    except InputError as problem:
        evidence.missing["drift"] = str(problem)
        return None


def convert_drift(drift: Drift | None) -> dict[str, Any] | None:
    """What the page draws."""
    if drift is None:
        return None
    plain = drift.to_dict()
    return {name: plain[name] for name in DRIFT_FIELDS} | {
        "limit": plain_value(_shift_limits(drift)),
        "time": drift.time,
        "periods": [drift.window(k) for k in range(len(drift.periods))],
        "reference": [label_text(period) for period in drift.reference],
        "change": plain["change"],
        "told": drift.describe(),
    }


def _shift_limits(drift: Drift) -> FloatArray | None:
    """The estimate above which a period is an alarm: the threshold of its plug-in distance, less the plug-in's bias."""
    return None if drift.threshold is None else drift.threshold - (drift.distance - drift.unbiased)


def describe_drift(drift: Drift | None) -> list[str]:
    """Whether and when there is an alarm."""
    if drift is None:
        return []
    time, judged = isolate(drift.time), len(drift.periods)
    compared = f"first {len(drift.reference)}"
    apart = int(drift.incomparable.sum())
    named = isolate(drift.name_windows(drift.incomparable))
    lost = [f"Over {time}, {apart:,} of {judged:,} periods cannot be compared with the {compared}, for lack of common"
            f" strata: {named}."] if apart else []  # fmt: skip
    if np.isnan(drift.distance).all():
        return lost
    if drift.rate is None:
        far = int(np.nanargmax(np.where(np.isnan(drift.unbiased), -np.inf, drift.unbiased)))
        distance = format_number(float(drift.unbiased[far]))
        most = f"{isolate(drift.window(far))} lies farthest from the {compared} ({distance})"
        return [f"Over {time}, {most}; there are too few periods for an alarm.", *lost]
    alarms = [k for k in range(judged) if drift.alarm[k]]
    if not alarms:
        return [f"Over {time}, none of {judged - apart:,} periods raises an alarm against the {compared}.", *lost]
    when = isolate(drift.window(alarms[0]))
    verb = "raises an alarm" if len(alarms) == 1 else "raise alarms"
    found = f"Over {time}, {len(alarms):,} of {judged:,} periods {verb} against the {compared}, from {when} on."
    return [found, *lost]
