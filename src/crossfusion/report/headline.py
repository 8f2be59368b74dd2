"""The headline: what was found, in sentences with numbers."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from crossfusion.fusion import Fusion, Pairwise
from crossfusion.report.cautions import choose_estimate
from crossfusion.report.evidence import TestOutcome
from crossfusion.report.html.markup import format_number, format_percent, isolate
from crossfusion.report.name_text import format_factors, format_list
from crossfusion.report.question import Question

UNKNOWN = "cannot be determined"


def format_share(distance: float | None) -> str:
    """A distance as a share of the variance, 1 − exp(−CFD)."""
    share = 0.0 if distance is None else max(0.0, -math.expm1(-distance))
    return f"{format_percent(share)} of the variance"


def format_estimate(fusion: Fusion) -> str:
    """A distance for people, with its interval."""
    return ", ".join(filter(None, [format_number(choose_estimate(fusion)), format_interval(fusion)]))


def format_interval(fusion: Fusion) -> str | None:
    """An interval for people."""
    if fusion.interval is None or fusion.level is None:
        return None
    low, high = map(format_number, fusion.interval)
    return f"{100 * fusion.level:.4g}\u202f% interval {low} to {high}"


def could_be_chance(main: Fusion, tested: TestOutcome | None, level: float) -> bool | None:
    """Whether chance would separate the groups as far, by a test or else by the interval; None without either."""
    if tested is not None and not tested.partial:
        return tested.result.pvalue > 1 - level
    return None if main.interval is None else main.interval[0] <= 0


def choose_verdict(main: Fusion, tested: TestOutcome | None, level: float) -> str:
    """Two or three words: whether a separation was shown, never whether it is large."""
    found = choose_estimate(main)
    if found is None:
        return UNKNOWN
    chance = could_be_chance(main, tested, level)
    if chance is None:
        return "separation not tested"
    return "no significant separation" if chance or found <= 0 else "significant separation"


def write_headline(
    question: Question, plain: Fusion, adjusted: Fusion | None, pairs: Pairwise, tested: TestOutcome | None, rows: int
) -> list[str]:
    """Which groups are apart and by how much, given the label, beyond chance, by which units."""
    return [
        _describe_separation(question, plain, adjusted, tested),
        *_describe_adjustment(question, plain, adjusted),
        *_describe_extremes(pairs, len(plain.counts)),
        *_describe_test(tested, question, adjusted),
        _describe_counting(question, tested, plain if adjusted is None else adjusted, rows),
    ]


def _describe_separation(question: Question, plain: Fusion, adjusted: Fusion | None, tested: TestOutcome | None) -> str:
    between, main = format_factors(question.between), plain if adjusted is None else adjusted
    if main.distance is None:
        given, distance = format_factors(question.given), format_number(choose_estimate(plain))
        return (
            f"No {given} occurs in two {between} groups, so the effect of {between} (unadjusted CFD {distance}) cannot"
            f" be separated from that of {given}."
        )
    estimate = choose_estimate(main)
    if estimate is None:
        return f"The separation of the {between} groups {UNKNOWN}: {main.reason}."
    said = choose_verdict(main, tested, question.level)
    for_given = f", adjusted for {format_factors(question.given)}" if adjusted is not None else ""
    return (
        f"{said[0].upper()}{said[1:]} between the {len(plain.counts):,} {between} groups{for_given}: {between} explains"
        f" {_format_explained(question, estimate, adjusted is not None)} (CFD {format_estimate(main)})."
    )


def _format_explained(question: Question, distance: float, adjusted: bool) -> str:
    """A share of the variance, and of which."""
    within = f" within each {format_factors(question.given)}" if adjusted else ""
    return f"{format_share(distance)}{within}"


def _describe_adjustment(question: Question, plain: Fusion, adjusted: Fusion | None) -> list[str]:
    """Whether the distance survives adjustment."""
    if adjusted is None:
        return []
    before, after = choose_estimate(plain), choose_estimate(adjusted)
    between, given = format_factors(question.between), format_factors(question.given)
    if before is None or after is None:
        return []
    looks = f"Unadjusted, {between} explains {format_share(before)} (CFD {format_estimate(plain)})"
    if not 0 < before < math.inf or after >= before:
        return [f"{looks}; adjusting for {given} does not reduce it."]
    return [f"{looks}; adjusting for {given} reduces the CFD by {format_percent(min(1.0, 1 - after / before))}."]


def _describe_extremes(pairs: Pairwise, groups: int) -> list[str]:
    """The farthest and the closest pair, of those that are shown."""
    first, second = np.triu_indices(len(pairs.labels), 1)
    found = select_estimates(pairs)[first, second]
    defined = np.flatnonzero(np.isfinite(found))
    if len(defined) < 2 or np.ptp(found[defined]) == 0:
        return []

    def pair(k: int) -> str:
        return f"{isolate(pairs.labels[first[k]])} and {isolate(pairs.labels[second[k]])} ({format_number(found[k])})"

    most, least = defined[np.argmax(found[defined])], defined[np.argmin(found[defined])]
    few = len(pairs.labels)
    among = "" if few == groups else f"Among the {few} groups with the most rows, "
    sentence = f"{among}the farthest pair is {pair(int(most))}, the closest {pair(int(least))}."
    return [sentence[0].upper() + sentence[1:]]


def select_estimates(pairs: Pairwise) -> Any:
    """What is shown of pairs: the unbiased distance, NaN where nothing is compared."""
    return pairs.unbiased


def describe_corrections(found: dict[str, Any] | None) -> list[str]:
    """Which versions of the rows are on the front, and which one all else is about."""
    if found is None:
        return []
    about = f"All sections except “batch versus biology” describe the version {isolate(found['reference'])}"
    if found["front"] is None:
        return [f"{about}; versions are not ranked, as no labels are named that they should keep apart."]
    others = [isolate(name) for name in found["front"] if name != found["reference"]]
    listed = format_list(others) if others else "no other version"
    verb = "are" if len(others) > 1 else "is"
    sentences = [f"{about}; {listed} {verb} on the Pareto front of fused groups and kept labels."]
    equal = [isolate(name) for name in found["equal_means"]]
    if equal:
        sentences.append(f"By construction, groups have equal means in {format_list(equal)}.")
    return sentences


def describe_exchanged(tested: TestOutcome, question: Question) -> str:
    """What a test exchanged, for people."""
    if not tested.by_units:
        return "single rows" if tested.number == tested.total else f"{tested.number:,} rows drawn at random"
    units = format_factors(question.units)
    return f"{format_factors(question.between)} within {units}" if tested.within else units


def _describe_test(tested: TestOutcome | None, question: Question, adjusted: Fusion | None) -> list[str]:
    if tested is None:
        return []
    test = tested.result
    number_of = f"all {test.permutations:,}" if test.exact else f"{test.permutations:,} random"
    found = f"p = {format_pvalue(test.pvalue)}"
    source = f"{number_of} permutations of {describe_exchanged(tested, question)}"
    if tested.partial:
        several = f"{tested.number:,} of {tested.total:,} {format_factors(question.units)} units"
        return [f"The test sees only the {several} that occur in several groups: {found}, {source}."]
    start = "" if adjusted is None or choose_estimate(adjusted) is not None else "Unadjusted: "
    if test.pvalue <= 1 - question.level:
        return [f"{start}Unlikely by chance ({found}, {source})."]
    if test.null.min() < test.statistic and test.null.max() <= test.statistic:
        return [f"{start}Chance cannot be ruled out: {found} is the smallest p-value that {source} can give."]
    return [f"{start}Compatible with chance ({found}, {source})."]


def format_pvalue(probability: float) -> str:
    """A p-value for people."""
    return f"{probability:.3g}"


def _describe_counting(question: Question, tested: TestOutcome | None, main: Fusion, rows: int) -> str:
    """By what the evidence is counted, if anything is."""
    if tested is None and main.interval is None:
        return "Neither an interval nor a test could be computed, so chance is not ruled out: see the warnings."
    if question.units:
        number_of = f"{tested.total:,} " if tested else ""
        some = tested is not None and tested.number < tested.total and not tested.within
        fewer = f" ({tested.number:,} of them in strata with several groups)" if tested and some else ""
        units = format_factors(question.units)
        return f"Intervals and tests count {number_of}{units} units{fewer}, not {rows:,} rows."
    return f"No units are named: the {rows:,} rows count as independent, which they seldom are."


def make_tiles(question: Question, found: Sequence[tuple[str, Fusion]]) -> list[dict[str, Any]]:
    """Distances that are shown large: name, value, and what each is about."""
    between, given = format_factors(question.between), format_factors(question.given)
    names = {
        "plain": (f"CFD({between})", f"between {between} groups, unadjusted"),
        "adjusted": (f"CFD({between} | {given})", f"between {between} groups, adjusted for {given}"),
        "biology": (f"CFD({given} | {between})", f"between {given} groups, adjusted for {between}"),
    }
    return [
        {
            "name": names[kind][0],
            "value": format_number(choose_estimate(fusion)),
            "interval": format_interval(fusion),
            "text": f"{_format_tile_share(fusion)} {names[kind][1]}",
        }
        for kind, fusion in found
    ]


def _format_tile_share(fusion: Fusion) -> str:
    distance = choose_estimate(fusion)
    return "nothing to compare" if distance is None else format_share(distance)
