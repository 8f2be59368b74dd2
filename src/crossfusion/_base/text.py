"""Values as text for tables, and as plain values for JSON."""

import json
import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from typing import Any

import numpy as np

MAX_CELL_WIDTH = 60  # characters
MAX_LISTED_GROUPS = 8  # in a repr or a message


def plain_number(value: float) -> float:
    """Convert whole numbers to int, so that counts print without a decimal point."""
    return int(value) if float(value).is_integer() else float(value)


def label_text(label: Any) -> str:
    """Format a group's label for display: values of several factors joined by slashes, control characters escaped."""
    if isinstance(label, tuple):
        return " / ".join(map(label_text, label))
    if label is None:
        return "(missing)"
    text = label.isoformat(sep=" ") if isinstance(label, datetime) else str(label)
    if not text.strip():
        return repr(text) if text else "(empty)"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shorten(text: str) -> str:
    """Shorten a text to fit into a column."""
    return text if len(text) <= MAX_CELL_WIDTH else f"{text[: MAX_CELL_WIDTH - 1]}…"


def plain_value(value: Any) -> Any:
    """Convert a value to plain Python for JSON: infinity as "inf", NaN as None, dates in ISO form, keys as strings."""
    if is_dataclass(value):
        return value.to_dict() if hasattr(value, "to_dict") else plain_value(field_values(value))
    if isinstance(value, float | np.floating):
        number = float(value)
        return None if math.isnan(number) else number if math.isfinite(number) else str(number)
    if isinstance(value, np.ndarray):
        return plain_value(value.tolist())
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(zip(_stringify_keys(value), map(plain_value, value.values()), strict=True))
    if isinstance(value, tuple | list):
        return [plain_value(entry) for entry in value]
    return value if value is None or isinstance(value, str | int) else str(value)


def field_values(entry: Any) -> dict[str, Any]:
    """The values of a dataclass's fields by name, as they are."""
    return {field.name: getattr(entry, field.name) for field in fields(entry)}


def _stringify_keys(mapping: Mapping[Hashable, Any]) -> list[str]:
    """Convert the keys of a mapping to distinct strings: plain if unambiguous, otherwise in JSON notation."""
    values = [plain_value(key) for key in mapping]
    plain = [value if isinstance(value, str) else json.dumps(value) for value in values]
    if len(set(plain)) == len(plain):
        return plain
    return [json.dumps(value) for value in values]


def count_text(number: float, noun: str) -> str:
    """Format a count with its noun: "1 row", "1,200 rows"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def number_text(value: float | None, digits: int = 4) -> str:
    """Format a number for a table; a dash if it is undefined."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{value:.{digits}f}" if value == 0 or 1e-3 <= abs(value) < 1e5 else f"{value:.{digits - 1}e}"


def interval_text(value: float | None, interval: tuple[float, float] | None, digits: int = 4) -> str:
    """Format a number for a table, with its interval if there is one."""
    text = number_text(value, digits)
    if interval is None:
        return text
    return f"{text} ({number_text(interval[0], digits)} to {number_text(interval[1], digits)})"


def percent(share: float | None) -> str:
    """Format a share as a percentage for a table; a dash if it is undefined."""
    return "–" if share is None or math.isnan(share) else f"{share:.1%}"


def text_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], more: int = 0, left: Collection[int] = (0,)
) -> str:
    """Format a table of aligned columns: those in `left` left-aligned, the others right-aligned."""
    cells = [[*map(shorten, row)] for row in (header, *rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    lines = [
        "  ".join(row[k].ljust(width) if k in left else row[k].rjust(width) for k, width in enumerate(widths))
        for row in cells
    ]
    return "\n".join([*(line.rstrip() for line in lines), *([f"... and {more:,} more"] if more else [])])
