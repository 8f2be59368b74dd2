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
    gaps = _describe_gaps(found)
    return Verdict(
        standing.kind,
        "open" if gaps and status == "good" else status,
        capitalize(f"{sentence.removesuffix('.')}{gaps}."),
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


def _describe_gaps(found: Findings) -> str:
    """Which groups, or how many pairs of the others, are not compared for lack of common strata."""
    if found.main is found.unadjusted or found.main.distance is None:
        return ""
    between, given = format_factors(found.question.between), format_factors(found.question.given)
    said = ""
    if found.alone:
        named = found.alone if len(found.alone) <= MAX_NAMED_PAIRS else ()
        who = (
            join_names(named) if named else f"{format_count(len(found.alone))} {format_plural(found.question.between)}"
        )
        said = f"; {who} {'shares' if len(found.alone) == 1 else 'share'} no {given} with another {between} group"
    first, second = np.triu_indices(len(found.pairs.labels), 1)
    mutual = np.array([label not in found.alone for label in found.pairs.labels])
    total, known = int(np.sum(mutual[first] & mutual[second])), len(list_compared_pairs(found.pairs)[0])
    if known < total:
        verb = "shares" if total - known == 1 else "share"
        said += f"; {total - known:,} of {total:,} pairs {verb} no {given}, so they are not compared"
    return said


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
        return f"{join_names(found.compared)} differ."
    if kind in ("many", "unclear"):
        return _describe_many(found)
    if kind == "untested":
        estimate = format_number(found.main.unbiased)
        return f"the CFD between {_name_all(found)} is {estimate}; it was not tested whether this exceeds chance."
    return f"no significant separation between {_name_all(found)}."


def _describe_outlying(found: Findings, agreed: bool | None) -> str:
    standing, noun = found.standing, _name_kind(found)
    several = len(standing.outlying) > 1
    others = len(found.compared) - len(standing.outlying)
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
    gaps = _describe_gaps(found)
    if separated.all() and not gaps:
        return f"all {everyone.removeprefix('the ')} differ from each other."
    verb, pairs = "is" if separated.sum() == 1 else "are", "pairs that are compared" if gaps else "pairs"
    return f"{everyone} differ: {int(separated.sum()):,} of {len(separated):,} {pairs} {verb} significantly separated."


def find_separated_pairs(pairs: Pairwise, level: float) -> "np.ndarray | None":
    """Whether each pair that is compared is significantly separated; None if pairs were not tested."""
    return None if pairs.adjusted is None else pairs.adjusted[list_compared_pairs(pairs)] <= 1 - level


def list_compared_pairs(pairs: Pairwise) -> "tuple[np.ndarray, np.ndarray]":
    """The places of both groups of each pair that shares a stratum."""
    first, second = np.triu_indices(len(pairs.labels), 1)
    shared = pairs.overlap[first, second] > 0
    return first[shared], second[shared]


def _judge_classes(found: Findings) -> tuple[str, str]:
    """Status and sentence where groups should be apart: which pairs are not."""
    everyone, noun = _name_all(found), format_plural(found.question.between)
    if found.main.unbiased is None:
        return "open", _describe_unknown(found)
    if found.standing.kind in ("none", "untested"):
        return ("bad" if found.standing.kind == "none" else "open"), _describe_differences(found, None)
    if found.standing.kind == "all":
        return "good", f"{join_names(found.compared)} are separated."
    separated, closest = find_separated_pairs(found.pairs, found.question.level), _describe_closest(found.pairs)
    if separated is None or len(found.pairs.labels) < len(found.labels):
        said = f"{everyone} are significantly separated overall, but not all pairs were tested"
        return "open", f"{said}; the closest are {closest}."
    if separated.all():
        every = "all pairs that are compared" if _describe_gaps(found) else f"all {everyone.removeprefix('the ')}"
        return "good", f"{every} are separated; the closest are {closest}."
    return "bad", _describe_fused_pairs(found.pairs, separated, noun)


def _describe_fused_pairs(pairs: Pairwise, separated: "np.ndarray", noun: str) -> str:
    first, second = list_compared_pairs(pairs)
    fused, total = np.flatnonzero(~separated), len(separated)
    fused = fused[np.argsort(pairs.unbiased[first[fused], second[fused]], kind="stable")]
    named = [f"{isolate(pairs.labels[first[k]])} and {isolate(pairs.labels[second[k]])}" for k in fused.tolist()]
    if len(named) <= MAX_NAMED_PAIRS:
        left = total - len(named)
        rest = "pair is" if left == 1 else f"{format_count(left)} pairs are"
        others = f"; the other {rest}" if left else ""
        return f"{'; '.join(named)} are not significantly separated{others}."
    return f"{len(named):,} of {total:,} pairs of {noun} are not significantly separated; the closest are {named[0]}."


def _describe_closest(pairs: Pairwise) -> str:
    first, second = list_compared_pairs(pairs)
    near = int(np.nanargmin(pairs.unbiased[first, second]))
    estimate = format_number(float(pairs.unbiased[first[near], second[near]]))
    return f"{isolate(pairs.labels[first[near]])} and {isolate(pairs.labels[second[near]])} (CFD {estimate})"


def _name_all(found: Findings) -> str:
    """All groups that are compared, by name where there are two."""
    if len(found.compared) == 2:
        return join_names(found.compared)
    return f"the {format_count(len(found.compared))} {_name_kind(found)}"


def _name_kind(found: Findings) -> str:
    """What the groups that are compared are called."""
    noun = format_plural(found.question.between)
    return f"comparable {noun}" if found.alone else noun
