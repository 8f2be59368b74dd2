"""Levels of a factor as they occur in practice: a function of a generator to distinct values, missing ones as None."""

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

NOON = dt.datetime(2026, 3, 29, 12, tzinfo=dt.UTC)  # the day on which clocks in Europe change
NOT_IN_TEXT_FILES = ("", "NA", "NaN", "null")  # documented: cells of a text table that are missing values

KINDS: dict[str, Sequence[Any]] = {
    "text": ["A", "B", "C", "D", "E", "F"],
    "missing": [None, "B", "A"],
    "missing and empty": ["A", None, "", "B"],
    "missing as text": ["NA", "null", "None", "missing", None],
    "case and spaces": ["A", "a", " A", "A ", "Á"],
    "unicode": ["Zürich", "東京", "caf\u00e9", "cafe\u0301", "🔬", "مختبر", "\u200bA"],
    "long": ["x" * 5000 + end for end in "abcd"],
    "punctuation": ["a,b", 'say "b"', "c;d", "=1+1", "-e", "@f", "g|h", "i\tj"],
    "digits": ["007", "7", "07", "8"],
    "versions": ["1.1", "1.10", "2.0", "2"],
    "exponents": ["1E5", "100000", "12", "3"],
    "integers": [3, -1, 0, 10**12],
    "integers and missing": [1, 2, None],
    "large integers": [2**53, 2**53 + 1, 2**62],
    "floats": [0.5, -0.25, 1e15, 0.1],
    "whole and broken": [1, 2.5, 3, None],
    "booleans": [True, False],
    "dates": [dt.date(2026, 1, 31), dt.date(1999, 12, 31), dt.date(2026, 2, 1)],
    "times": [dt.datetime(2026, 1, 1, 12, 30, 15), dt.datetime(2026, 1, 1, 12, 30, 15, 250000)],
    "zoned times": [NOON, NOON + dt.timedelta(hours=1), NOON - dt.timedelta(days=1)],
}
ZONES = [ZoneInfo(name) for name in ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu")]


def draw_levels(kind: str, number: int, draw: np.random.Generator) -> list[Any]:
    """Some of the levels of a kind, at least two if there are as many."""
    levels = KINDS[kind]
    order = draw.permutation(len(levels))[: max(2, number)]
    return [levels[k] for k in order]


def write_otherwise(value: Any, draw: np.random.Generator) -> Any:
    """The same value as someone else would have written it: another zone, another kind of missing value."""
    if value is None:
        return (None, float("nan"))[int(draw.integers(2))]
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(ZONES[int(draw.integers(len(ZONES)))])
    return value


def as_key(value: Any) -> Any:
    """What makes two labels the same, however a format returns them: midnight of a date, an instant, a number."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value != value:
        return None
    if isinstance(value, dt.datetime):
        return value if value.tzinfo is None else value.astimezone(dt.UTC)
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day)
    return value


def read_as_text(value: Any) -> Any:
    """What a text table makes of a label."""
    return None if value in NOT_IN_TEXT_FILES else value


Change = Callable[[Any], Any]
