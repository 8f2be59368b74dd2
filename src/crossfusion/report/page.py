"""The page: what can be said in words stands in it, and scripts draw the rest from the JSON inside."""

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from crossfusion._base import count_text
from crossfusion.report.html.document import make_document
from crossfusion.report.html.markup import escape, escape_sentence, make_element
from crossfusion.report.methods_text import render_methods
from crossfusion.report.question import Question
from crossfusion.report.sections import SECTIONS, Section, explain_ranks

SCRIPTS = ("base", "table", "axes", "theme", "copy", "ranks", "matrix", "forest", "panel", "levels", "plane", "cloud",
           "bars", "null", "drift", "download", "main")  # fmt: skip
WEIGHTS = {
    "balanced": "On this page, all compared groups have equal weights (balanced).",
    "pooled": "On this page, groups are weighted by their number of rows (pooled).",
}
MEANING = (
    "Cross-Fusion Distance (CFD) compares the total variance with the variance within the groups: it is 0 if the"
    " group means agree, and 0.69 if half of the variance lies between the groups."
)
STATUSES = {"good": "As expected", "bad": "Not as expected", "open": "Not decided"}
PANEL = make_element(
    "aside",
    make_element("button", "Close", type="button", class_="switch", id="pair-close")
    + make_element("div", id="pair-body"),
    id="pair",
    aria_label="The chosen pair",
    hidden="",
)
OPTION = re.compile(r"(--[a-z-]+)")
NO_SCRIPT = "Pictures and tables are drawn by a script inside this file, which this browser does not run."


def render_page(found: Mapping[str, Any], title: str, question: Question) -> str:
    """HTML of a report."""
    shown = [section for section in SECTIONS if section.wanted(found)]
    parts = [
        _render_header(found, title, question),
        _render_contents(shown),
        make_element("noscript", make_element("p", NO_SCRIPT, class_="note")),
        *(_render_section(section, found, question) for section in shown),
        PANEL,
    ]
    return make_document(
        title, parts, _render_footer(found), style=_read_file("report.css"), script=_join_scripts(), data=found
    )


def _read_file(name: str) -> str:
    return files("crossfusion.report").joinpath(name).read_text(encoding="utf-8")


def _join_scripts() -> str:
    """All scripts in one scope."""
    return "\n".join(["'use strict';(() => {", *(_read_file(f"scripts/{name}.js") for name in SCRIPTS), "})();"])


def _render_header(found: Mapping[str, Any], title: str, question: Question) -> str:
    """The first screen: verdict, warnings, cards, ranked groups, projection, and what to do next."""
    return make_element(
        "header",
        _render_top(title)
        + _render_verdict(found)
        + _render_strip(found)
        + make_element(
            "dl", "".join(make_element("div", _render_card(card)) for card in found["cards"]), class_="cards"
        )
        + _render_panels(found, question)
        + make_element("p", f"{MEANING} {WEIGHTS[question.weights]}", class_="note"),
    )


def _render_top(title: str) -> str:
    buttons = make_element("button", "Copy as text", type="button", id="copy", class_="switch", hidden="")
    buttons += make_element(
        "button", "Dark", type="button", id="theme", class_="switch", aria_pressed="false", hidden=""
    )
    return make_element(
        "div",
        make_element("h1", escape(title), dir="auto") + make_element("div", buttons, class_="buttons"),
        class_="top",
    )


def _render_verdict(found: Mapping[str, Any]) -> str:
    """The verdict, with a mark where the user said what to expect, and the numbers behind it."""
    verdict, (first, *others) = found["verdict"], found["headline"]
    mark = STATUSES.get(verdict["status"])
    said = make_element("p", escape_sentence(first), class_="lead")
    if mark:
        said = make_element("p", mark, class_="mark") + said
    said += make_element("p", " ".join(escape_sentence(text) for text in others[: found["led"]]), class_="detail")
    return make_element("div", said, class_=f"verdict {verdict['status']}")


def _render_strip(found: Mapping[str, Any]) -> str:
    """Warnings in a line each, which lead to what to do about them."""
    chips = "".join(
        make_element(
            "li",
            make_element(
                "a",
                make_element("b", "Serious: " if each["serious"] else "Note: ") + escape_sentence(each["title"]),
                href=f"#warning-{k}",
            ),
            class_="serious" if each["serious"] else "mild",
        )
        for k, each in enumerate(found["warnings"])
    )
    return make_element("ul", chips, class_="strip", aria_label="Warnings") if chips else ""


def _render_card(card: Mapping[str, Any]) -> str:
    interval = "" if card["interval"] is None else make_element("small", escape_sentence(card["interval"]))
    value = (
        make_element("b", escape_sentence(card["value"]))
        + interval
        + make_element("span", escape_sentence(card["text"]))
    )
    return make_element("dt", escape_sentence(card["name"])) + make_element("dd", value)


def _render_panels(found: Mapping[str, Any], question: Question) -> str:
    """Left the ranked groups and what to do next, right the projection."""
    ranks = make_element("h2", explain_ranks(found, question), id="ranks-title") + make_element("div", id="ranks-body")
    steps = "".join(make_element("li", OPTION.sub(r"<code>\1</code>", escape_sentence(step))) for step in found["next"])
    following = make_element("h2", "What to do next", id="next-title") + make_element("ol", steps, class_="next")
    left = make_element("section", ranks, id="ranks", aria_labelledby="ranks-title")
    left += make_element("section", following, id="next", aria_labelledby="next-title")
    cloud = make_element("h2", "The plane that separates the groups most", id="cloud-title")
    cloud += make_element("div", id="cloud-body", class_="body")
    right = make_element("section", cloud, id="cloud", aria_labelledby="cloud-title")
    return make_element("div", make_element("div", left) + right, class_="panels")


def _render_contents(shown: list[Section]) -> str:
    links = "".join(make_element("li", make_element("a", section.short, href=f"#{section.id}")) for section in shown)
    return make_element("nav", make_element("ul", links), aria_label="Sections")


def _render_section(section: Section, found: Mapping[str, Any], question: Question) -> str:
    inner = make_element("p", section.text(found, question))
    if section.id == "warnings":
        inner += _render_warnings(found)
    elif section.id == "methods":
        inner += render_methods(question, found)
    elif section.id == "citation":
        inner += make_element("p", escape_sentence(found["made"]["citation"]))
        inner += make_element("pre", make_element("code", escape_sentence(found["made"]["bibtex"])), tabindex=0)
    else:
        inner += make_element("div", id=f"{section.id}-body", class_="body")
    title = make_element("h2", section.title, id=f"{section.id}-title")
    if section.folded:
        inner = make_element("details", make_element("summary", title) + inner, class_="fold")
    else:
        inner = title + inner
    return make_element("section", inner, id=section.id, aria_labelledby=f"{section.id}-title")


def _render_warnings(found: Mapping[str, Any]) -> str:
    """Each with its mark, and what to do."""
    entries = ""
    for k, concern in enumerate(found["warnings"]):
        mark = make_element("span", "Look first" if concern["serious"] else "Keep in mind", class_="mark")
        entries += make_element(
            "li",
            make_element("h3", mark + escape_sentence(concern["title"]))
            + make_element("p", escape_sentence(concern["text"]))
            + make_element("p", make_element("b", "What to do. ") + escape_sentence(concern["advice"])),
            class_="serious" if concern["serious"] else "mild",
            id=f"warning-{k}",
        )
    for what, why in found["missing"].items():
        entries += make_element(
            "li",
            make_element("h3", make_element("span", "Left out", class_="mark") + escape_sentence(f"No {what}"))
            + make_element("p", escape_sentence(f"The reason: {why}.")),
            class_="mild",
        )
    return (
        make_element("ul", entries, class_="warnings")
        if entries
        else make_element("p", "Nothing was found.", class_="note")
    )


def _render_footer(found: Mapping[str, Any]) -> str:
    about = found["about"]
    size = f"{count_text(about['rows'], 'row')} × {count_text(about['features'], 'feature')}"
    return make_element("footer", f"{size}. crossfusion {escape_sentence(found['made']['crossfusion'])}.")
