"""What to do next, from what was found."""

from collections.abc import Sequence

from crossfusion.report.cautions import Concern
from crossfusion.report.name_text import format_factors, format_plural, join_names
from crossfusion.report.verdict import Findings, Verdict
from crossfusion.report.verdict_text import SEPARATED

MAX_ADVICE = 3
COMPARE = (
    "Choose among the versions on the front, unless their groups have equal means by construction: see “Versions of the"
    " rows”."
)


def advise(found: Findings, verdict: Verdict, concerns: Sequence[Concern], versions: bool) -> list[str]:
    """Up to three steps, the most pressing first."""
    serious = [f"{each.title}: {each.advice[0].lower()}{each.advice[1:]}" for each in concerns if each.serious]
    compare = [COMPARE] if versions else []
    return [*serious[:1], *compare, *_follow_verdict(found, verdict, versions), *serious[1:]][:MAX_ADVICE]


def _follow_verdict(found: Findings, verdict: Verdict, versions: bool) -> list[str]:
    asked = found.question
    if verdict.kind == "untested":
        return [
            "Name what was sampled independently, such as the patient, to get intervals and tests (units, --units)."
        ]
    if asked.expect == "apart":
        return _separate(found, verdict)
    if verdict.kind in SEPARATED and not verdict.agreed:
        return [*_find_cause(found, verdict), *([] if versions else _act_on_separation(found))]
    if verdict.agreed:
        return [f"Keep the margin of {verdict.margin:g} and repeat this comparison when new data arrive."]
    if asked.fused_within is not None:
        return ["Collect more units: no difference was found, but the interval is too wide to show agreement."]
    return [
        "No difference was found, which does not show that there is none: choose the largest CFD that would not matter"
        " and pass it as fused_within (--fused-within)."
    ]


def _find_cause(found: Findings, verdict: Verdict) -> list[str]:
    """Where to look first."""
    asked = found.question
    who = join_names(verdict.outlying) if verdict.outlying else f"the {format_plural(asked.between)}"
    units = f" and the {format_factors(asked.units)} units" if asked.units else ""
    said = [
        f"Find out what sets {who} apart: “What separates the groups” lists the features{units} with the largest"
        " shares."
    ]
    others = [name for name in asked.levels if name not in (*asked.between, *asked.units, *asked.given)]
    if others:
        said.append(
            f"Adjust for {join_names(others)} too, to see whether that explains the difference (given, --given)."
        )
    elif not asked.given:
        said.append("Adjust for what differs between the groups by design, such as tissue or class (given, --given).")
    return said


def _act_on_separation(found: Findings) -> list[str]:
    between = format_factors(found.question.between)
    if found.question.expect == "fused":
        return [f"Correct for {between}, and compare the versions with each other (method, --method)."]
    return [
        f"State what you expect of {between}: “fused” if the groups should agree, as batches should, or “apart” if they"
        " should separate, as classes should (expect, --expect)."
    ]


def _separate(found: Findings, verdict: Verdict) -> list[str]:
    """Where classes should be apart."""
    if verdict.status == "good":
        return ["Repeat this comparison on data that were not used for training."]
    return [
        "Look at rows of the pairs that are not separated: are their labels correct, and does the encoder capture the"
        f" differences between these {format_plural(found.question.between)}?"
    ]
