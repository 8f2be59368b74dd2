"""The headline: what was found, in sentences with numbers."""

import math
from collections.abc import Sequence
from typing import Any

from crossfusion.fusion import Exclusion, Fusion
from crossfusion.report.cautions import choose_estimate, format_excluded
from crossfusion.report.evidence import TestOutcome
from crossfusion.report.html.markup import format_interval, format_number, format_percent, format_pvalue, isolate
from crossfusion.report.name_text import (
    capitalize,
    format_factors,
    format_list,
    format_plural,
    format_stratum,
    join_names,
)
from crossfusion.report.question import Question
from crossfusion.report.verdict import Findings


def format_share(distance: float | None) -> str:
    """A distance as a share of the variance, 1 − exp(−CFD)."""
    return format_percent(0.0 if distance is None else max(0.0, -math.expm1(-distance)))


def format_estimate(fusion: Fusion) -> str:
    """A distance for people, with its interval."""
    return ", ".join(filter(None, [format_number(choose_estimate(fusion)), describe_interval(fusion)]))


def describe_interval(fusion: Fusion) -> str | None:
    """An interval for people."""
    if fusion.interval is None or fusion.level is None:
        return None
    return f"{100 * fusion.level:.4g}% interval {format_interval(*fusion.interval)}"


def _includes_zero(fusion: Fusion) -> bool:
    """Whether an interval does not exclude a distance of 0."""
    return fusion.interval is not None and fusion.interval[0] <= 0


def write_headline(found: Findings, rows: int) -> list[str]:
    """State the unadjusted comparison, whether it is compatible with chance, and which units are counted."""
    return [
        *_describe_adjustment(found),
        *_describe_test(found),
        _describe_counting(found, rows),
    ]


def describe_share(found: Findings) -> list[str]:
    """How much of which variance the groups explain."""
    main, asked = found.main, found.question
    if main.distance is None or main.unbiased is None:
        return []
    between = format_plural(asked.between)
    if main is found.unadjusted:
        return [
            f"{capitalize(between)} explain {format_share(main.unbiased)} of the variance (CFD {format_estimate(main)}"
            f"{_format_test(found)})."
        ]
    given, stratum = format_factors(asked.given), format_stratum(asked.given)
    return [
        f"Adjusted for {given}, {between} explain {format_share(main.unbiased)} of the variance within {stratum} (CFD"
        f" {format_estimate(main)}{_format_test(found)})."
    ]


def _format_test(found: Findings) -> str:
    """The p-value beside the interval, where the test is about all that was sampled."""
    tested = found.tested
    return "" if tested is None or tested.partial else f"; {format_pvalue(tested.result.pvalue)}"


def describe_rest(found: Findings) -> list[str]:
    """How much of the variance lies between the groups that do not stand out."""
    if found.rest is None or found.rest.unbiased is None:
        return []
    who = join_names(found.name(found.standing.outlying))
    return [f"Without {who}, they explain {format_share(found.rest.unbiased)} (CFD {format_estimate(found.rest)})."]


def _describe_adjustment(found: Findings) -> list[str]:
    """What the comparison would be without adjusting."""
    if found.main is found.unadjusted:
        return []
    before, after = choose_estimate(found.unadjusted), choose_estimate(found.main)
    given = format_factors(found.question.given)
    if before is None or after is None:
        return []
    looks = (
        f"Unadjusted, {format_plural(found.question.between)} explain {format_share(before)} of the variance (CFD"
        f" {format_estimate(found.unadjusted)})"
    )
    if found.main.overlap < 1:
        shared = f"{format_percent(found.main.overlap)} of the weight"
        return [f"{looks}; this covers all rows, the adjusted CFD only strata with several groups ({shared})."]
    if _includes_zero(found.unadjusted) and _includes_zero(found.main):
        return [f"{looks}."]
    if not 0 < before < math.inf or after >= before:
        return [f"{looks}; adjusting for {given} does not reduce it."]
    return [f"{looks}; adjusting for {given} reduces the CFD by {format_percent(min(1.0, 1 - after / before))}."]


def describe_corrections(found: dict[str, Any] | None) -> list[str]:
    """Which versions of the rows are on the front, and which one all else is about."""
    if found is None:
        return []
    about = f"All sections except the comparison of versions describe the version {isolate(found['reference'])}"
    if found["front"] is None:
        return [f"{about}; versions are not ranked, because no labels to keep apart are named."]
    others = [isolate(name) for name in found["front"] if name != found["reference"]]
    listed = format_list(others) if others else "no other version"
    verb = "are" if len(others) > 1 else "is"
    sentences = [f"{about}; {listed} {verb} on the Pareto front of fused groups and kept labels."]
    equal = [isolate(name) for name in found["equal_means"]]
    if equal:
        sentences.append(f"By construction, groups have equal means in {format_list(equal)}.")
    return sentences


def describe_excluded(excluded: Sequence[Exclusion]) -> list[str]:
    """What is left out, by reason."""
    named = {entry.reason: [each for each in excluded if each.reason == entry.reason] for entry in excluded}
    return [f"Left out ({reason}): {format_excluded(entries)}." for reason, entries in named.items()]


def describe_exchanged(tested: TestOutcome, question: Question) -> str:
    """What a test exchanged, for people."""
    if not tested.by_units:
        return "single rows" if tested.number == tested.total else f"{tested.number:,} rows drawn at random"
    units = format_factors(question.units)
    return f"{format_factors(question.between)} within {units}" if tested.within else units


def _describe_test(found: Findings) -> list[str]:
    tested, question = found.tested, found.question
    if tested is None:
        return []
    test = tested.result
    number_of = f"all {test.permutations:,}" if test.exact else f"{test.permutations:,} random"
    said = format_pvalue(test.pvalue)
    source = f"{number_of} permutations of {describe_exchanged(tested, question)}"
    if tested.partial:
        several = f"{tested.number:,} of {tested.total:,} {format_factors(question.units)} units"
        return [f"The test uses only the {several} that occur in several groups: {said}, {source}."]
    start = "Unadjusted: " if question.given and choose_estimate(found.main) is None else ""
    if test.pvalue <= 1 - question.level:
        return [f"{start}Unlikely by chance ({said}, {source})."]
    if test.null.min() < test.statistic and test.null.max() <= test.statistic:
        return [f"{start}Chance cannot be ruled out: {said} is the smallest p-value that {source} can give."]
    return [f"{start}Compatible with chance ({said}, {source})."]


def _describe_counting(found: Findings, rows: int) -> str:
    """By what the evidence is counted, if anything is."""
    tested, question = found.tested, found.question
    if tested is None and found.main.interval is None and found.unadjusted.interval is None:
        return "Neither an interval nor a test could be computed, so chance cannot be ruled out: see the warnings."
    if question.units:
        number_of = f"{tested.total:,} " if tested else ""
        some = tested is not None and tested.number < tested.total and not tested.within
        fewer = f" ({tested.number:,} of them in strata with several groups)" if tested and some else ""
        units = format_factors(question.units)
        return f"Intervals and tests count {number_of}{units} units{fewer}, not {rows:,} rows."
    return f"No units are named: the {rows:,} rows are treated as independent, which they seldom are."
