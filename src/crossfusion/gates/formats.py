"""Outcomes for other programs: JUnit XML, annotations of GitHub Actions, a section of MultiQC."""

import html
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from crossfusion._base import escape_unprintable, plain_value
from crossfusion.gates.outcome import BROKEN, HOLDS, UNANSWERED, RuleOutcome

ELEMENTS = {BROKEN: "failure", UNANSWERED: "error"}
SUITE = "crossfusion check"
COLUMNS = {"rule": "Rule", "status": "Status", "requirement": "Requirement", "where": "Where", "message": "Message"}
NUMBERS = {"estimate": "Estimate", "lower": "Lower limit", "upper": "Upper limit"}
COLORS = {HOLDS: "pass", BROKEN: "fail", UNANSWERED: "warn"}  # as MultiQC calls them


def make_junit(policy: str, outcomes: Sequence[RuleOutcome]) -> str:
    """JUnit XML with a test case per rule."""
    counts = {kind: sum(ELEMENTS.get(each.status) == kind for each in outcomes) for kind in ELEMENTS.values()}
    totals = {"tests": str(len(outcomes)), "failures": str(counts["failure"]), "errors": str(counts["error"])}
    root = ElementTree.Element("testsuites", {"name": SUITE, **totals})
    suite = ElementTree.SubElement(root, "testsuite", {"name": SUITE, **totals, "skipped": "0", "time": "0"})
    for each in outcomes:
        names = {"classname": escape_unprintable(policy), "name": escape_unprintable(each.rule), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", names)
        message = escape_unprintable(each.message)
        if each.status != HOLDS:
            found = ElementTree.SubElement(case, ELEMENTS[each.status], {"message": message, "type": each.status})
            found.text = escape_unprintable(f"{each.requirement}: {each.message}")
        said = [message, *([f"caution: {escape_unprintable(each.caution)}"] if each.caution else [])]
        ElementTree.SubElement(case, "system-out").text = "\n".join(said)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def make_annotations(policy: str, outcomes: Sequence[RuleOutcome]) -> str:
    """One workflow command per rule, and one per caution of a rule that holds."""
    lines = []
    for each in outcomes:
        place = {"file": policy, "line": each.line, "title": f"{each.rule} ({each.status})"}
        kind = "error" if each.status != HOLDS else "warning" if each.caution else "notice"
        caution = f"; caution: {each.caution}" if each.caution else ""
        shown = ",".join(f"{key}={_escape_property(str(value))}" for key, value in place.items() if value is not None)
        lines.append(f"::{kind} {shown}::{_escape_data(f'{each.requirement}: {each.message}{caution}')}")
    return "\n".join(lines) + "\n"


def _escape_data(text: str) -> str:
    """Text of a workflow command, in one line."""
    return escape_unprintable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")


def make_multiqc(policy: str, outcomes: Sequence[RuleOutcome]) -> dict[str, Any]:
    """A table as MultiQC reads it.

    Text is escaped, because MultiQC puts it into its page as it is. Rules are numbered, because MultiQC takes the names
    of rows for names of samples, and cuts them at slashes and known endings.
    """
    headers: dict[str, dict[str, Any]] = {name: {"title": title, "scale": False} for name, title in COLUMNS.items()}
    headers |= {name: {"title": title, "format": "{:,.4g}", "scale": False} for name, title in NUMBERS.items()}
    rules = {status: [{"s_eq": status}] for status in COLORS}
    headers["status"] |= {"cond_formatting_rules": {COLORS[status]: rules[status] for status in COLORS}}
    data = {}
    for number, each in enumerate(outcomes, 1):
        texts = {name: _escape(getattr(each, name)) for name in COLUMNS}
        numbers = {name: plain_value(getattr(each, name)) for name in NUMBERS if getattr(each, name) is not None}
        data[f"{number:0{len(str(len(outcomes)))}d}"] = texts | numbers
    return {
        "id": "crossfusion_check",
        "section_name": "Cross-Fusion check",
        "description": f"Rules of {_escape(policy)} on how far groups of embeddings are fused or separated.",
        "plot_type": "table",
        "pconfig": {"id": "crossfusion_check_table", "title": "Cross-Fusion check", "col1_header": "Number"},
        "headers": headers,
        "data": data,
    }


def _escape(text: str) -> str:
    return html.escape(escape_unprintable(text))
