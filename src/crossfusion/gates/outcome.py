"""Whether a rule holds, is broken, or cannot be answered."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crossfusion._base import CrossfusionError, count_text, interval_text, number_text
from crossfusion.fusion import Record, join_cautions
from crossfusion.gates.measure import Findings, Measurement
from crossfusion.gates.rule import Rule

HOLDS, BROKEN, UNANSWERED = "holds", "broken", "unanswered"
MAX_NAMED = 5  # groups or pairs


@dataclass(frozen=True)
class RuleOutcome(Record):
    """The outcome of one rule of a policy.

    Parameters
    ----------
    rule : str
        Name of the rule.
    status : {"holds", "broken", "unanswered"}
        Whether the rule holds; "unanswered" if the data cannot answer it.
    question, requirement : str
        What is compared, and what must hold.
    limit : float
        The limit of the rule.
    message : str
        What was found, in one sentence.
    where : str
        The groups, pair or window that decided; empty if there is none.
    estimate, lower, upper : float, optional
        The estimate there, and its confidence limits.
    caution : str, optional
        Warning that the numbers are easy to misread, and the groups that are left out.
    line : int, optional
        Line of the rule in the policy's file.

    Examples
    --------
    >>> import crossfusion as cf
    >>> summary = cf.summarize([[0.0], [2.0], [2.0], [4.0]], by={"site": ["A", "A", "B", "B"]})
    >>> result = cf.check({"rule": [{"between": "site", "max": 0.02}]}, summary)
    >>> result.outcomes[0].status, result.outcomes[0].where
    ('broken', 'A and B')
    """

    rule: str
    status: str
    question: str
    requirement: str
    limit: float
    message: str
    where: str = ""
    estimate: float | None = None
    lower: float | None = None
    upper: float | None = None
    caution: str | None = None
    line: int | None = None


def explain_refusal(rule: Rule, problem: CrossfusionError) -> RuleOutcome:
    """Make the outcome of a rule whose question was refused."""
    return make_outcome(rule, UNANSWERED, f"cannot be answered: {problem}")


def compare_with_limit(rule: Rule, findings: Findings) -> RuleOutcome:
    """Compare measurements with the limit of a rule; the worst one decides."""
    known = [entry for entry in findings.measurements if _get_decisive(rule, entry) is not None]
    worst = max(known, key=lambda entry: _excess(rule, entry), default=None)
    gap, notes = _describe_gap(rule, findings), findings.notes
    if worst is None:
        return make_outcome(rule, UNANSWERED, f"cannot be answered: {gap}", caution=notes)
    broken = sum(_breaks(rule, entry) for entry in known)
    if broken:
        more = f", as for {count_text(broken - 1, 'other pair')}" if broken > 1 else ""
        return make_outcome(rule, BROKEN, describe(rule, worst) + more, worst, join_cautions(notes, gap))
    if rule.kind != "min" and findings.equal_means:
        return make_outcome(rule, UNANSWERED, f"cannot be answered: {findings.equal_means}", worst, notes)
    if gap and rule.incomparable == "error":
        return make_outcome(rule, UNANSWERED, f"cannot be answered: {gap}", worst, notes)
    return make_outcome(rule, HOLDS, describe(rule, worst), worst, join_cautions(notes, gap))


def describe(rule: Rule, measured: Measurement) -> str:
    """What was measured, and how it compares with the limit."""
    what = "separability" if rule.kind == "max_separability" else "CFD"
    interval = None if measured.lower is None or measured.upper is None else (measured.lower, measured.upper)
    end = "upper" if rule.kind == "fused_within" else rule.on
    value = _get_decisive(rule, measured)
    side = "is below" if value is not None and value < rule.limit else "is above" if value != rule.limit else "equals"
    subject = f"{what} of {measured.where} is {interval_text(measured.estimate, interval)}"
    if end == "estimate":
        return f"{subject}, which {side} {rule.limit:g}"
    return f"{subject}; the {end} limit {number_text(value)} {side} {rule.limit:g}"


def _get_decisive(rule: Rule, measured: Measurement) -> float | None:
    """The end of an interval, or the estimate, that the limit of the rule is about."""
    if measured.estimate is None:
        return None
    value: float | None = getattr(measured, "upper" if rule.kind == "fused_within" else rule.on)
    return value


def _excess(rule: Rule, measured: Measurement) -> float:
    """How far a measurement is on the wrong side of the limit."""
    value = _get_decisive(rule, measured)
    assert value is not None
    return rule.limit - value if rule.kind == "min" else value - rule.limit


def _breaks(rule: Rule, measured: Measurement) -> bool:
    excess = _excess(rule, measured)
    return excess >= 0 if rule.kind == "fused_within" else excess > 0


def _describe_gap(rule: Rule, findings: Findings) -> str | None:
    """Which groups or pairs the question of a rule is not answered for."""
    unknown = [entry for entry in findings.measurements if _get_decisive(rule, entry) is None]
    if findings.missing:
        verb = "is" if len(findings.missing) == 1 else "are"
        return f"{list_some(findings.missing)} {verb} compared with no other group, for lack of common strata or units"
    if unknown:
        return f"{list_some([entry.where for entry in unknown])}: {unknown[0].reason or 'there is no interval'}"
    return None


def list_some(names: Sequence[str]) -> str:
    """List the first few names, and count the others."""
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def make_outcome(
    rule: Rule, status: str, message: str, measured: Measurement | None = None, caution: str | None = None
) -> RuleOutcome:
    """Make the outcome of a rule."""
    facts: dict[str, Any] = {"limit": rule.limit, "caution": caution, "line": rule.line}
    if measured is not None:
        facts |= {name: getattr(measured, name) for name in ("where", "estimate", "lower", "upper")}
    return RuleOutcome(rule.name, status, rule.question, rule.requirement, message=message, **facts)
