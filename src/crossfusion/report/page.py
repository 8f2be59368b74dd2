"""The page: what can be said in words stands in it, and scripts draw the rest from the JSON inside."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from crossfusion.report.html.document import document
from crossfusion.report.html.markup import element, escaped, written
from crossfusion.report.methods_text import methods_section
from crossfusion.report.question import Question
from crossfusion.report.sections import SECTIONS, Section

SCRIPTS = ("base", "table", "axes", "theme", "matrix", "forest", "levels", "plane", "cloud", "bars", "null", "drift",
           "download", "main")  # fmt: skip
NO_SCRIPT = "Pictures and tables are drawn by a script inside this file, which this browser does not run."


def page(found: Mapping[str, Any], title: str, question: Question) -> str:
    """HTML of a report."""
    shown = [section for section in SECTIONS if section.wanted(found)]
    parts = [
        _header(found, title),
        _contents(shown),
        element("noscript", element("p", NO_SCRIPT, class_="note")),
        *(_section(section, found, question) for section in shown),
    ]
    return document(title, parts, _footer(found), style=_file("report.css"), script=_script(), data=found)


def _file(name: str) -> str:
    return files("crossfusion.report").joinpath(name).read_text(encoding="utf-8")


def _script() -> str:
    """All scripts in one scope."""
    return "\n".join(["'use strict';(() => {", *(_file(f"scripts/{name}.js") for name in SCRIPTS), "})();"])


def _header(found: Mapping[str, Any], title: str) -> str:
    first, *others = found["headline"]
    tiles = "".join(element("div", _tile(tile)) for tile in found["tiles"])
    meaning = (
        "Cross-Fusion Distance (CFD) compares the variance of the whole cloud with that inside its groups: 0 where the"
        " groups’ means agree, 0.69 where half of the variance lies between them."
    )
    switch = element("button", "Dark", type="button", id="theme", class_="switch", aria_pressed="false", hidden="")
    return element(
        "header",
        element("div", element("p", written("Cross-Fusion report"), class_="kicker") + switch, class_="top")
        + element("h1", escaped(title), dir="auto")
        + element("p", written(first), class_="lead")
        + element("ul", "".join(element("li", written(text)) for text in others), class_="findings")
        + element("dl", tiles, class_="tiles")
        + element("p", meaning, class_="note"),
    )


def _tile(tile: Mapping[str, Any]) -> str:
    interval = "" if tile["interval"] is None else element("small", written(tile["interval"]))
    value = element("b", written(tile["value"])) + interval + element("span", written(tile["text"]))
    return element("dt", written(tile["name"])) + element("dd", value)


def _contents(shown: list[Section]) -> str:
    links = "".join(element("li", element("a", section.short, href=f"#{section.id}")) for section in shown)
    return element("nav", element("ul", links), aria_label="Sections")


def _section(section: Section, found: Mapping[str, Any], question: Question) -> str:
    inner = element("h2", section.title, id=f"{section.id}-title") + element("p", section.text(found, question))
    if section.id == "warnings":
        inner += _warnings(found)
    elif section.id == "methods":
        inner += methods_section(question, found)
    elif section.id == "citation":
        inner += element("p", written(found["made"]["citation"]))
        inner += element("pre", element("code", written(found["made"]["bibtex"])), tabindex=0)
    else:
        inner += element("div", id=f"{section.id}-body", class_="body")
    return element("section", inner, id=section.id, aria_labelledby=f"{section.id}-title")


def _warnings(found: Mapping[str, Any]) -> str:
    """Each with its mark, and what to do."""
    entries = ""
    for concern in found["warnings"]:
        mark = element("span", "Look first" if concern["serious"] else "Keep in mind", class_="mark")
        entries += element(
            "li",
            element("h3", mark + written(concern["title"]))
            + element("p", written(concern["text"]))
            + element("p", element("b", "What to do. ") + written(concern["advice"])),
            class_="serious" if concern["serious"] else "mild",
        )
    for what, why in found["missing"].items():
        entries += element(
            "li",
            element("h3", element("span", "Left out", class_="mark") + written(f"No {what}"))
            + element("p", written(f"The reason: {why}.")),
            class_="mild",
        )
    return element("ul", entries, class_="warnings") if entries else element("p", "Nothing was found.", class_="note")


def _footer(found: Mapping[str, Any]) -> str:
    about = found["about"]
    size = f"{about['rows']:,} rows × {about['features']:,} features"
    return element("footer", f"{size}. crossfusion {written(found['made']['crossfusion'])}.")
