"""The page: what can be said in words stands in it, and scripts draw the rest from the JSON inside."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from crossfusion._base import count_text
from crossfusion.report.html.document import make_document
from crossfusion.report.html.markup import escape, escape_sentence, make_element
from crossfusion.report.methods_text import render_methods
from crossfusion.report.question import Question
from crossfusion.report.sections import SECTIONS, Section

SCRIPTS = ("base", "table", "axes", "theme", "matrix", "forest", "levels", "plane", "cloud", "bars", "null", "drift",
           "download", "main")  # fmt: skip
WEIGHTS = {
    "balanced": "On this page, all compared groups have equal weights (balanced).",
    "pooled": "On this page, groups are weighted by their number of rows (pooled).",
}
NO_SCRIPT = "Pictures and tables are drawn by a script inside this file, which this browser does not run."


def render_page(found: Mapping[str, Any], title: str, question: Question) -> str:
    """HTML of a report."""
    shown = [section for section in SECTIONS if section.wanted(found)]
    parts = [
        _render_header(found, title, question),
        _render_contents(shown),
        make_element("noscript", make_element("p", NO_SCRIPT, class_="note")),
        *(_render_section(section, found, question) for section in shown),
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
    first, *others = found["headline"]
    tiles = "".join(make_element("div", _render_tile(tile)) for tile in found["tiles"])
    meaning = (
        "Cross-Fusion Distance (CFD) compares the variance of the whole cloud with that inside its groups: 0 where the"
        f" groups’ means agree, 0.69 where half of the variance lies between them. {WEIGHTS[question.weights]}"
    )
    switch = make_element("button", "Dark", type="button", id="theme", class_="switch", aria_pressed="false", hidden="")
    return make_element(
        "header",
        make_element(
            "div", make_element("p", escape_sentence("Cross-Fusion report"), class_="kicker") + switch, class_="top"
        )
        + make_element("h1", escape(title), dir="auto")
        + make_element("p", escape_sentence(first), class_="lead")
        + make_element("ul", "".join(make_element("li", escape_sentence(text)) for text in others), class_="findings")
        + make_element("dl", tiles, class_="tiles")
        + make_element("p", meaning, class_="note"),
    )


def _render_tile(tile: Mapping[str, Any]) -> str:
    interval = "" if tile["interval"] is None else make_element("small", escape_sentence(tile["interval"]))
    value = (
        make_element("b", escape_sentence(tile["value"]))
        + interval
        + make_element("span", escape_sentence(tile["text"]))
    )
    return make_element("dt", escape_sentence(tile["name"])) + make_element("dd", value)


def _render_contents(shown: list[Section]) -> str:
    links = "".join(make_element("li", make_element("a", section.short, href=f"#{section.id}")) for section in shown)
    return make_element("nav", make_element("ul", links), aria_label="Sections")


def _render_section(section: Section, found: Mapping[str, Any], question: Question) -> str:
    inner = make_element("h2", section.title, id=f"{section.id}-title") + make_element(
        "p", section.text(found, question)
    )
    if section.id == "warnings":
        inner += _render_warnings(found)
    elif section.id == "methods":
        inner += render_methods(question, found)
    elif section.id == "citation":
        inner += make_element("p", escape_sentence(found["made"]["citation"]))
        inner += make_element("pre", make_element("code", escape_sentence(found["made"]["bibtex"])), tabindex=0)
    else:
        inner += make_element("div", id=f"{section.id}-body", class_="body")
    return make_element("section", inner, id=section.id, aria_labelledby=f"{section.id}-title")


def _render_warnings(found: Mapping[str, Any]) -> str:
    """Each with its mark, and what to do."""
    entries = ""
    for concern in found["warnings"]:
        mark = make_element("span", "Look first" if concern["serious"] else "Keep in mind", class_="mark")
        entries += make_element(
            "li",
            make_element("h3", mark + escape_sentence(concern["title"]))
            + make_element("p", escape_sentence(concern["text"]))
            + make_element("p", make_element("b", "What to do. ") + escape_sentence(concern["advice"])),
            class_="serious" if concern["serious"] else "mild",
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
