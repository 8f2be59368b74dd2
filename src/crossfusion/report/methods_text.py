"""How a report was made: formulas, choices, versions, the command, and whom to cite."""

import platform
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import numpy as np

from crossfusion._base import count_text
from crossfusion._version import __version__
from crossfusion.report.html.markup import escape_sentence, make_element
from crossfusion.report.name_text import format_factors
from crossfusion.report.question import Question

CITATION = (
    "X. Zhang, J. Zhang, X. Song. Cross-Fusion Distance: a novel metric for measuring fusion and separability between"
    " data groups in representation space. 2026."
)
BIBTEX = """@misc{zhang2026crossfusion,
  title  = {Cross-Fusion Distance: a novel metric for measuring fusion and separability between data groups in
            representation space},
  author = {Zhang, Xiaolong and Zhang, Jianwei and Song, Xubo},
  year   = {2026}
}"""


def describe_environment(command: str) -> dict[str, Any]:
    """What a report was made with."""
    return {
        "crossfusion": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "command": command,
        "citation": CITATION,
        "bibtex": BIBTEX,
    }


def render_methods(question: Question, found: Mapping[str, Any]) -> str:
    """HTML of formulas, choices and versions."""
    made_with = found["made"]
    formulas = files("crossfusion.report").joinpath("methods.html").read_text(encoding="utf-8")
    choices = "".join(make_element("li", escape_sentence(text)) for text in _describe_choices(question, found))
    programs = f"crossfusion {made_with['crossfusion']}, NumPy {made_with['numpy']}, Python {made_with['python']}"
    return (
        formulas
        + make_element("ul", choices)
        + make_element("p", f"Made with {escape_sentence(programs)}, seed {question.seed}, by")
        + make_element("pre", make_element("code", escape_sentence(made_with["command"])), tabindex=0)
    )


def _describe_choices(question: Question, found: Mapping[str, Any]) -> list[str]:
    """What was chosen for this report, in sentences."""
    level, about = f"{100 * question.level:g}%", found["about"]
    intervals = any("interval" in fusion for fusion in found["distances"].values())
    said = [f"{count_text(about['rows'], 'row')} × {count_text(about['features'], 'feature')} ({about['dtype']})."]
    if about["lens"] is not None:
        said.append(f"All numbers describe the rows as mapped by the lens {about['lens']}, not the rows themselves.")
    if question.units and intervals:
        said.append(
            f"Intervals are at {level} confidence; they and the unbiased CFDs count"
            f" {format_factors(question.units)} units. Each interval holds for a single CFD, not for all of them"
            " jointly, and inverts a test of every value that might be true."
        )
    elif question.units:
        said.append("Unbiased CFDs count rows, because no interval by units could be computed.")
    elif about["whole"]:
        said.append(f"Intervals are at {level} confidence and take rows to be independent.")
    strata = " within strata" if "adjusted" in found["pairs"] else ""
    said.append(
        f"Tests use up to {question.permutations:,} permutations of labels{strata}; p-values of pairs are also"
        " adjusted for their number (Holm)."
    )
    if about["sampled"] is not None and not about["whole"]:
        test = "" if question.units else "the test, "
        said.append(
            f"CFDs are computed from all rows. Pictures of single rows, {test}and the search for copies use"
            f" {about['sampled']:,} rows, drawn with equal probability (seed {question.seed})."
        )
    return said
