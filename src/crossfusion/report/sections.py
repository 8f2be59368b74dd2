"""The sections of a page: title, what one sees there in a sentence or two, and when there is one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from crossfusion._base import count_text
from crossfusion.report.html.markup import escape_sentence
from crossfusion.report.name_text import format_factors
from crossfusion.report.question import Question

Found = Mapping[str, Any]


def _is_always_wanted(_found: Found) -> bool:
    return True


@dataclass(frozen=True)
class Section:
    """One section; `text` gives HTML."""

    id: str
    short: str
    title: str
    text: Callable[[Found, Question], str]
    wanted: Callable[[Found], bool] = _is_always_wanted
    folded: bool = False  # behind its title until it is opened


def _explain_warnings(found: Found, _question: Question) -> str:
    number = len(found["warnings"])
    if not number:
        return (
            "The data were checked for imbalance, small groups, unequal spread or shape, confounding, copies and"
            " features that hardly vary."
        )
    return "Look at these before trusting the numbers." if number > 1 else "Look at this before trusting the numbers."


def _explain_matrix(found: Found, _question: Question) -> str:
    shown, groups = found["groups"]["number"], found["groups"]["all"]
    more = f" The matrix shows the {shown} of {groups:,} groups farthest from the others." if shown < groups else ""
    return (
        "Each field is the unbiased CFD of two groups; a stronger color means farther apart. Point at a field, or move"
        f" to it with the arrow keys, to see its interval and p-value; select it for more on the pair.{more}"
    )


def _explain_forest(found: Found, _question: Question) -> str:
    level = found["pairs"]["plain"]["level"]
    if level is None:
        return "The pairs, farthest first. There are no intervals: see “what could mislead”."
    return f"The pairs, farthest first: each dot is a CFD, and its line the {100 * level:g}% interval."


def _explain_levels(_found: Found, question: Question) -> str:
    held = (
        f" In the second bar, {escape_sentence(format_factors(question.given))} comes first." if question.given else ""
    )
    return (
        "All variance is either within the finest groups or between groups of some level, given the levels above it."
        " The shares are those of the observed variance, so they add up exactly; they include sampling error, which"
        f" the estimates above do not.{held}"
    )


def _explain_plane(found: Found, question: Question) -> str:
    given = escape_sentence(format_factors(question.given))
    what = "version of the rows" if found["methods"] else "factor"
    if not _has_points(found):
        why = "one of its two CFDs is undefined" if given else "no factor to preserve is named"
        return f"Each line is a {what}. There is no picture because {why}."
    said = (
        f"Each point is a {what}. To the left, its groups are fused within one {given}; upwards, the {given} groups"
        " stay apart."
    )
    return f"{said} The upper left corner is best." if question.expect == "fused" else said


def _has_points(found: Found) -> bool:
    """Whether some version or factor has both distances."""
    if found["plane"] == "batches":
        points = [(entry["batch"], entry["biology"]) for entry in found["batches"]]
    else:
        points = list(zip(found["methods"]["batch"], found["methods"]["biology"] or (), strict=False))
    return any(all(isinstance(end["value"], float) for end in pair) for pair in points)  # infinity is a text


def explain_ranks(found: Found, question: Question) -> str:
    """What the ranked groups are compared with."""
    given = "" if "adjusted" not in found["pairs"] else f", adjusted for {format_factors(question.given)}"
    others = "all others together" if found["ranks"]["closest"] is None else "the closest other one"
    return escape_sentence(f"CFD of each {format_factors(question.between)} to {others}{given}")


def _explain_features(found: Found, question: Question) -> str:
    adjusted = (
        ", adjusted for " + escape_sentence(format_factors(question.given)) if "adjusted" in found["pairs"] else ""
    )
    return (
        f"Shares of the variance between the groups{adjusted}. “Without it” compares the plug-in CFD without that"
        " feature or unit with the plug-in CFD of all of them."
    )


def _explain_null(found: Found, question: Question) -> str:
    test = found["test"]
    start = f"The test statistic ({test['statistic_label']}) under {test['permutations']:,} permutations of the labels"
    if not test["by_units"]:
        drawn = "" if test["number"] == test["total"] else ", drawn at random"
        return f"{start} of {count_text(test['number'], 'row')}{drawn}."
    units = escape_sentence(format_factors(question.units))
    what = f"{escape_sentence(format_factors(question.between))} within {units}" if test["within"] else units
    of_all = "" if test["number"] == test["total"] else f" of {test['total']:,}"
    return f"{start}, exchanging {what} ({test['number']:,}{of_all} units)."


def _explain_drift(found: Found, question: Question) -> str:
    drift = found["drift"]
    fixed = f", adjusted for {escape_sentence(format_factors(question.given))}" if question.given else ""
    text = f"CFD of each period to the first {len(drift['reference'])} taken together{fixed}."
    if drift["lower"] is not None:
        text += f" Bars are {100 * drift['level']:.4g}% intervals."
    if drift["rate"] is None:
        return f"{text} An alarm needs more periods."
    rate = f"{100 * drift['rate']:g}%"
    return (
        f"{text} Periods above the dashed line raise an alarm (diamonds); if nothing drifts, at most {rate} of periods"
        " are meant to."
    )


def _return_text(text: str) -> Callable[[Found, Question], str]:
    return lambda _found, _question: text


SECTIONS = (
    Section("warnings", "Warnings", "What could mislead", _explain_warnings),
    Section("matrix", "Matrix", "Which groups lie apart", _explain_matrix),
    Section("forest", "Pairs", "Pairs with intervals", _explain_forest),
    Section("levels", "Levels", "Where the variance lies", _explain_levels),
    Section(
        "plane", "Batch or biology", "Batch versus biology", _explain_plane, lambda found: found["plane"] == "batches"
    ),
    Section("versions", "Versions", "Versions of the rows", _explain_plane, lambda found: found["plane"] == "methods"),
    Section("drift", "Drift", "Over time", _explain_drift, lambda found: found["drift"] is not None),
    Section("attribution", "Attribution", "What separates the groups", _explain_features, folded=True),
    Section(
        "null", "Chance", "Could it be chance?", _explain_null, lambda found: found["test"] is not None, folded=True
    ),
    Section(
        "methods",
        "Methods",
        "How this was computed",
        _return_text("The moments of the groups are computed in one pass over all rows."),
        folded=True,
    ),
    Section(
        "download",
        "Data",
        "Data of this page",
        _return_text("This file contains all numbers. Save them for further analysis."),
    ),
    Section("citation", "Citation", "Citation", _return_text("CFD was introduced in"), folded=True),
)
