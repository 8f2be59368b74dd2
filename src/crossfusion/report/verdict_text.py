"""The verdict in one sentence: neutral, or turned towards what the user expects."""

import numpy as np

from crossfusion.fusion import Pairwise
from crossfusion.report.html.markup import format_number, isolate
from crossfusion.report.name_text import capitalize, format_count, format_factors, format_plural, join_names
from crossfusion.report.verdict import Findings, Verdict, agrees_within

MAX_NAMED_PAIRS = 3
SEPARATED = ("outlying", "farther", "split", "all", "many", "unclear")


def give_verdict(found: Findings) -> Verdict:
    """Decide what the findings mean, and say it."""
    asked, standing = found.question, found.standing
    whole = agrees_within(found.main, asked.fused_within, asked.level)
    rest = agrees_within(found.rest, asked.fused_within, asked.level)
    if asked.expect == "apart":
        status, sentence = _judge_classes(found)
    else:
        status = _judge_fusion(standing.kind, whole) if asked.expect == "fused" else "neutral"
        sentence = _describe_standing(found, whole, rest)
    return Verdict(
        standing.kind,
        status,
        capitalize(sentence),
        tuple(found.name(standing.outlying)),
        tuple(found.name(standing.rest)),
        tuple(found.name(standing.doubtful)),
        asked.fused_within,
        whole if standing.kind not in ("outlying", "farther") or whole else rest,
    )


def _judge_fusion(kind: str, agreed: bool | None) -> str:
    """Whether groups are fused as expected: agreement was shown, or a separation was."""
    if agreed:
        return "good"
    return "bad" if kind in SEPARATED else "open"


def _describe_standing(found: Findings, whole: bool | None, rest: bool | None) -> str:
    everyone, margin = _name_all(found), found.question.fused_within
    if found.main.unbiased is None:
        return _describe_unknown(found)
    said = _describe_differences(found, None if whole else rest)
    if whole:
        agreed = f"{everyone} agree within {margin:g}"
        return f"{agreed}." if found.standing.kind in ("none", "untested") else f"{agreed}, although {said}"
    if found.standing.kind == "none" and margin is not None:
        return f"{said.removesuffix('.')}, but they were not shown to agree within {margin:g}."
    return said


def _describe_unknown(found: Findings) -> str:
    """Why there is no estimate."""
    between, given = format_factors(found.question.between), format_factors(found.question.given)
    if found.main.distance is None:
        return (
            f"No {given} occurs in two {between} groups, so the effect of {between} (unadjusted CFD"
            f" {format_number(found.unadjusted.unbiased)}) cannot be separated from that of {given}."
        )
    return f"the separation of {_name_all(found)} cannot be determined: {found.main.reason}."


def _describe_differences(found: Findings, agreed: bool | None) -> str:
    """Which groups differ."""
    kind, standing = found.standing.kind, found.standing
    if kind in ("outlying", "farther"):
        return _describe_outlying(found, agreed)
    if kind == "split":
        sides = [join_names(found.name(places)) for places in (standing.outlying, standing.rest)]
        return f"{sides[0]} differ from {sides[1]}; within each of these two sets there is no significant separation."
    if kind == "all":
        return f"{join_names(found.labels)} differ."
    if kind in ("many", "unclear"):
        return _describe_many(found)
    if kind == "untested":
        estimate = format_number(found.main.unbiased)
        return f"the CFD between {_name_all(found)} is {estimate}; it was not tested whether this exceeds chance."
    return f"no significant separation between {_name_all(found)}."


def _describe_outlying(found: Findings, agreed: bool | None) -> str:
    standing, noun = found.standing, format_plural(found.question.between)
    several = len(standing.outlying) > 1
    others = len(found.labels) - len(standing.outlying)
    most = " most" if standing.kind == "farther" else ""
    said = f"{join_names(found.name(standing.outlying))} {'differ' if several else 'differs'}{most} from the other"
    said += f" {format_count(others)} {noun}"
    rest = found.name(standing.rest)
    named = join_names(rest) if len(rest) <= MAX_NAMED_PAIRS else f"the other {format_count(len(rest))}"
    if agreed:
        said += f"; {named} agree within {found.question.fused_within:g}"
    elif most:
        said += f"; {named} also differ from each other, but less"
    else:
        said += f"; between {named} there is no significant separation"
    return f"{said}{_describe_doubtful(found)}."


def _describe_doubtful(found: Findings) -> str:
    doubtful = found.name(found.standing.doubtful)
    return f"; whether {join_names(doubtful)} differ{'' if len(doubtful) > 1 else 's'} is unclear" if doubtful else ""


def _describe_many(found: Findings) -> str:
    """Groups differ, and none is named: how many of the pairs are separated, if they were tested."""
    everyone, separated = _name_all(found), find_separated_pairs(found.pairs, found.question.level)
    if separated is None or len(found.pairs.labels) < len(found.labels):
        if found.standing.kind == "many":
            return f"{everyone} differ, and no majority of them agrees."
        return f"{everyone} differ, but the data do not show which of them."
    if not separated.any():
        return f"{everyone} differ, but the data do not show which of them."
    if separated.all():
        return f"all {everyone.removeprefix('the ')} differ from each other."
    verb = "is" if separated.sum() == 1 else "are"
    return f"{everyone} differ: {int(separated.sum()):,} of {len(separated):,} pairs {verb} significantly separated."


def find_separated_pairs(pairs: Pairwise, level: float) -> "np.ndarray | None":
    """Whether each pair is significantly separated, for the upper triangle; None if pairs were not tested."""
    if pairs.adjusted is None:
        return None
    return pairs.adjusted[np.triu_indices(len(pairs.labels), 1)] <= 1 - level


def _judge_classes(found: Findings) -> tuple[str, str]:
    """Status and sentence where groups should be apart: which pairs are not."""
    everyone, noun = _name_all(found), format_plural(found.question.between)
    if found.main.unbiased is None:
        return "open", _describe_unknown(found)
    if found.standing.kind in ("none", "untested"):
        return ("bad" if found.standing.kind == "none" else "open"), _describe_differences(found, None)
    separated, closest = find_separated_pairs(found.pairs, found.question.level), _describe_closest(found.pairs)
    if separated is None or len(found.pairs.labels) < len(found.labels):
        said = f"{everyone} are significantly separated overall, but not all pairs were tested"
        return "open", f"{said}; the closest are {closest}."
    if separated.all():
        if len(separated) == 1:
            return "good", f"{join_names(found.labels)} are separated."
        return "good", f"all {everyone.removeprefix('the ')} are separated; the closest are {closest}."
    return "bad", _describe_fused_pairs(found.pairs, separated, noun)


def _describe_fused_pairs(pairs: Pairwise, separated: "np.ndarray", noun: str) -> str:
    first, second = np.triu_indices(len(pairs.labels), 1)
    fused, total = np.flatnonzero(~separated), len(separated)
    fused = fused[np.argsort(pairs.unbiased[first[fused], second[fused]], kind="stable")]
    named = [f"{isolate(pairs.labels[first[k]])} and {isolate(pairs.labels[second[k]])}" for k in fused.tolist()]
    if len(named) <= MAX_NAMED_PAIRS:
        left = total - len(named)
        verb = "pair is" if left == 1 else "pairs are"
        others = f"; the other {format_count(left)} {verb}" if left else ""
        return f"{'; '.join(named)} are not significantly separated{others}."
    return f"{len(named):,} of {total:,} pairs of {noun} are not significantly separated; the closest are {named[0]}."


def _describe_closest(pairs: Pairwise) -> str:
    first, second = np.triu_indices(len(pairs.labels), 1)
    near = int(np.nanargmin(pairs.unbiased[first, second]))
    estimate = format_number(float(pairs.unbiased[first[near], second[near]]))
    return f"{isolate(pairs.labels[first[near]])} and {isolate(pairs.labels[second[near]])} (CFD {estimate})"


def _name_all(found: Findings) -> str:
    """All groups, by name where there are two."""
    if len(found.labels) == 2:
        return join_names(found.labels)
    return f"the {format_count(len(found.labels))} {format_plural(found.question.between)}"
