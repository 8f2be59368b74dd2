"""HTML from text: everything that comes from data is escaped here."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crossfusion._base import label_text, limits_text, number_text, p_text, percent

ISOLATES = "\u2068{}\u2069"  # what is between these two keeps its direction to itself
NAME_LENGTH = 32  # characters after which a name is cut in the middle, and carries its whole text as a title


@dataclass(frozen=True)
class PageTable:
    """A table of text to put on a page; the first column names the rows."""

    title: str
    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def escape(value: Any) -> str:
    """A value as text that is safe in HTML, SVG and their attributes."""
    return html.escape(label_text(value), quote=True)


def escape_sentence(text: str) -> str:
    """A text of our own as HTML; names in it, between isolates, keep their direction of writing to themselves."""
    return html.escape(text, quote=True).replace(ISOLATES[0], "<bdi>").replace(ISOLATES[-1], "</bdi>")


def isolate(label: Any) -> str:
    """A name, short and between isolates, to put into a text."""
    return ISOLATES.format(shorten(label))


def format_attributes(**values: Any) -> str:
    """Attributes with a leading space; a trailing underscore is dropped, others become hyphens, None is left out."""
    found = {name.rstrip("_").replace("_", "-"): value for name, value in values.items() if value is not None}
    return "".join(f' {name}="{escape(value)}"' for name, value in found.items())


def make_element(tag: str, inner: str = "", **values: Any) -> str:
    """An element around HTML."""
    return f"<{tag}{format_attributes(**values)}>{inner}</{tag}>"


def shorten(label: Any, length: int = NAME_LENGTH) -> str:
    """A name on one line, of which the start and the end are kept if it is long."""
    text = " ".join(label_text(label).split())
    tail = length // 3
    return text if len(text) <= length else f"{text[: length - tail - 1]}…{text[-tail:]}"


def format_number(value: float | None) -> str:
    """A distance for people."""
    return number_text(value).replace("inf", "∞").replace("-", "−")


def format_interval(lower: float, upper: float) -> str:
    """The limits of an interval for people."""
    return limits_text(lower, upper).replace("inf", "∞").replace("-", "−")


def format_pvalue(probability: float) -> str:
    """A p-value in a sentence."""
    return p_text(probability)


def format_percent(share: float | None) -> str:
    """A share for people."""
    return percent(share).replace("-", "−")


def make_table(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]], class_: str | None = None) -> str:
    """A table whose first column names the rows; caption and cells are HTML; it scrolls where it is too wide."""
    head = "".join(make_element("th", cell, scope="col") for cell in header)
    body = "".join(
        make_element(
            "tr", make_element("th", row[0], scope="row") + "".join(make_element("td", cell) for cell in row[1:])
        )
        for row in rows
    )
    inner = (
        make_element("caption", caption) + make_element("thead", make_element("tr", head)) + make_element("tbody", body)
    )
    return make_scrollable(make_element("table", inner, class_=class_))


def make_scrollable(inner: str) -> str:
    """A box that scrolls sideways by itself, also with the keyboard."""
    return make_element("div", inner, class_="scroll", tabindex=0, role="group", aria_label="table")
