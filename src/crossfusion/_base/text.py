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
SIGNIFICANT = 4  # digits of a number that people read
SMALLEST = 0.0001  # below which only the bound is shown
LARGEST = 1e6  # from which on numbers are in scientific notation


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


def number_text(value: float | None) -> str:
    """Format a number as every table, repr, message and page shows it.

    Four significant digits in plain notation; below 0.0001 in size only the bound, and from a million on in scientific
    notation. A dash stands for an undefined number. `quantity_text`, `pvalue_text` and `percent` are the variants for
    quantities in units of the data, for p-values and for shares.

    >>> [number_text(value) for value in (0.0143, 1.60944, 0.00044392, -0.00003, 0, 12345.6)]
    ['0.01430', '1.609', '0.0004439', '> -0.0001', '0', '12,346']
    """
    if value is not None and 0 < abs(value) < SMALLEST:
        return f"< {SMALLEST}" if value > 0 else f"> -{SMALLEST}"
    return quantity_text(value)


def quantity_text(value: float | None) -> str:
    """Format a number whose unit is that of the data, such as a variance: as `number_text`, but never only a bound.

    >>> quantity_text(0.0143), quantity_text(4.4392e-7)
    ('0.01430', '4.439e-07')
    """
    if value is None or math.isnan(value):
        return "–"
    size = abs(value)
    if math.isinf(value) or size == 0:
        return f"{value:g}" if size else "0"
    if size >= LARGEST or size < SMALLEST:
        return f"{value:.{SIGNIFICANT - 1}e}"
    if size >= 999.95:  # of which four significant digits are all whole
        return f"{value:,.0f}"
    return f"{value:#.{SIGNIFICANT}g}".rstrip(".")


def pvalue_text(value: float | None) -> str:
    """Format a p-value: as `number_text`, without trailing zeros.

    >>> pvalue_text(0.001), pvalue_text(1), pvalue_text(0.00002)
    ('0.001', '1', '< 0.0001')
    """
    text = number_text(value)
    return text.rstrip("0").rstrip(".") if "." in text and not text.startswith("<") else text


def p_text(value: float) -> str:
    """Format a p-value within a sentence.

    >>> p_text(0.0314159), p_text(0.00002)
    ('p = 0.03142', 'p < 0.0001')
    """
    text = pvalue_text(value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def interval_text(value: float | None, interval: tuple[float, float] | None) -> str:
    """Format a number for a table, with its interval if there is one."""
    text = number_text(value)
    return text if interval is None else f"{text} ({limits_text(*interval)})"


def limits_text(lower: float, upper: float) -> str:
    """Format the limits of an interval; a dash if they are undefined."""
    return "–" if math.isnan(lower) else f"{number_text(lower)} to {number_text(upper)}"


def percent(share: float | None) -> str:
    """Format a share as a percentage with one decimal; 0% and 100% are exact.

    >>> [percent(share) for share in (0.01443, 1, 0.9999, 0.0001, -0.0001)]
    ['1.4%', '100%', '> 99.9%', '< 0.1%', '> -0.1%']
    """
    if share is None or math.isnan(share):
        return "–"
    if share in (0, 1) or math.isinf(share):
        return f"{share:.0%}"
    if 0 < abs(share) < 0.001:
        return "< 0.1%" if share > 0 else "> -0.1%"
    return "> 99.9%" if 0.9995 <= share < 1 else f"{share:.1%}"


def level_text(level: float) -> str:
    """Format a confidence level: 0.95 as "95%"."""
    return f"{100 * level:.4g}%"


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
