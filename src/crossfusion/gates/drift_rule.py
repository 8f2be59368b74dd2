"""Rules on drift: no window may raise an alarm."""

from typing import Any

import numpy as np

from crossfusion._base import count_text, number_text, p_text
from crossfusion.gates.measure import Measurement
from crossfusion.gates.outcome import BROKEN, HOLDS, UNANSWERED, RuleOutcome, make_outcome
from crossfusion.gates.rule import Rule
from crossfusion.summary import Drift, Summary, list_periods, parse_reference


def judge_drift(rule: Rule, summary: Summary) -> RuleOutcome:
    """Compare the periods of a rule with its reference."""
    found = _compare_periods(rule, summary)
    assert found.pvalue is not None
    watched = np.arange(len(found.periods))[-1 if rule.latest else 0 :]
    alarms = watched[found.alarm[watched]]
    apart = watched[found.incomparable[watched]]
    tested = watched[~np.isnan(found.pvalue[watched])]
    gap = _describe_gap(found, apart)
    caution = "; ".join(filter(None, [found.caution, gap])) or None
    if len(alarms):
        more = f", first of {len(alarms)} alarms" if len(alarms) > 1 else ""
        first = int(alarms[0])
        return make_outcome(rule, BROKEN, f"alarm at {_describe(found, first)}{more}", _measure(found, first), caution)
    if len(apart) and rule.incomparable == "error":
        return make_outcome(rule, UNANSWERED, f"cannot be answered: {gap}", caution=found.caution)
    if not len(tested):
        return make_outcome(
            rule, UNANSWERED, "cannot be answered: too few earlier periods for an alarm", caution=caution
        )
    least = int(tested[np.argmin(found.pvalue[tested])])
    message = f"no alarm in {count_text(len(tested), 'window')}; the most unusual is {_describe(found, least)}"
    return make_outcome(rule, HOLDS, message, _measure(found, least), caution)


def _compare_periods(rule: Rule, summary: Summary) -> Drift:
    (time,) = rule.between
    reference = rule.reference
    if isinstance(reference, str):
        reference = parse_reference(reference, list_periods(summary, time)[1], time)
    settings: dict[str, Any] = {"adjust": rule.adjust, "window": rule.window, "step": rule.step, "seed": rule.seed}
    return summary.drift(
        time, reference=reference, given=rule.given, alarm=rule.limit, weights=rule.weights, **settings
    )


def _describe(found: Drift, window: int) -> str:
    assert found.pvalue is not None
    return f"{found.window(window)} (CFD {number_text(found.unbiased[window])}, {p_text(found.pvalue[window])})"


def _describe_gap(found: Drift, apart: Any) -> str | None:
    if not len(apart):
        return None
    chosen = np.isin(np.arange(len(found.periods)), apart)
    return f"windows without common strata: {found.name_windows(chosen)}"


def _measure(found: Drift, window: int) -> Measurement:
    estimate = found.unbiased[window]
    return Measurement(found.window(window), None if np.isnan(estimate) else float(estimate))
