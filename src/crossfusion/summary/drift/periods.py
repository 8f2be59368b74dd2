"""Sorted periods, reference periods, and windows."""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from crossfusion._base import MAX_LISTED_GROUPS, CodeArray, InputError, Spelling, arg, check_whole, factors, label_text
from crossfusion.summary.moment_table import MomentTable

MONTHS = ("january", "february", "march", "april", "may", "june",
          "july", "august", "september", "october", "november", "december")  # fmt: skip
WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
CALENDAR = {
    name: f"{place:02d}"
    for names in (MONTHS, WEEKDAYS)
    for place, whole in enumerate(names, 1)
    for name in (whole, whole[:3])
}
PREVIOUS = "previous"
FIRST_PATTERN = re.compile(r"first:(\d+)")
REFERENCE_FORMS = Spelling(
    '"first:4", "previous", a list of periods, or the first and the last as a pair',
    "first:N, previous, A,B,... or A..B",
)


@dataclass(frozen=True)
class Window:
    """Indices of the periods of a window, and of the reference periods it is compared with."""

    periods: tuple[int, ...]
    reference: tuple[int, ...]


def list_periods(table: MomentTable, time: str) -> tuple[CodeArray, list[Hashable]]:
    """Encode the period of each group of a table, and list the periods in order; numbers in text sort as numbers."""
    if not isinstance(time, str):
        raise InputError("time", time, "must be the name of one factor, such as 'week'")
    table._check_factors([time])
    keys = table.keys.select([time])
    if keys.column(time).null_count:
        raise InputError(problem=f"{time} has missing values, which are not a period", remedy="leave those rows out")
    codes, distinct = factors.encode(keys)
    labels = factors.list_labels(distinct)
    order = sorted(range(len(labels)), key=lambda code: make_sort_key(labels[code]))
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    if len(labels) < 2:
        raise InputError(problem=f"{time} has one period only ({labels[0]!r})", remedy="drift needs two or more")
    return place[codes], [labels[code] for code in order]


def make_sort_key(label: Any) -> Any:
    """Make the sort key of a period: 'week 9' comes before 'week 10', and 'January' before 'April'."""
    if not isinstance(label, str):
        return label
    texts = re.split(r"(\d+)", CALENDAR.get(label.strip().casefold(), label))
    digits = ["".join(str(int(digit)) for digit in text).lstrip("0") if k % 2 else "" for k, text in enumerate(texts)]
    return [(len(number), number, text) for number, text in zip(digits, texts, strict=True)]


def choose_reference(reference: Any, periods: Sequence[Hashable], time: str) -> tuple[int, ...] | None:
    """Find the indices of the reference periods; None for "previous"."""
    if isinstance(reference, str):
        if reference == PREVIOUS:
            return None
        number = FIRST_PATTERN.fullmatch(reference.strip())
        if number is None or int(number[1]) < 1:
            raise InputError("reference", reference, "is not known", f"pass {REFERENCE_FORMS}")
        found = tuple(range(min(int(number[1]), len(periods))))
    elif isinstance(reference, tuple) and len(reference) == 2:
        found = _find_between(reference, periods, time)
    elif isinstance(reference, Sequence | np.ndarray) and not isinstance(reference, bytes):
        found = tuple(sorted({_find_period(factors.python_value(entry), periods, time) for entry in reference}))
    else:
        raise InputError("reference", reference, "is not known", f"pass {REFERENCE_FORMS}")
    if not found:
        raise InputError("reference", reference, f"holds no period of {time}", f"pass {REFERENCE_FORMS}")
    if len(found) == len(periods):
        raise InputError(
            "reference",
            reference,
            f"holds all {len(periods)} periods of {time}, so none is left to compare",
            "name fewer",
        )
    return found


def _find_between(pair: tuple[Any, Any], periods: Sequence[Hashable], time: str) -> tuple[int, ...]:
    """Find the periods between two values, inclusive; the values themselves need not occur."""
    try:
        low, high = (make_sort_key(factors.python_value(end)) for end in pair)
        return tuple(number for number, label in enumerate(periods) if low <= make_sort_key(label) <= high)
    except TypeError as problem:
        raise InputError(
            "reference",
            pair,
            f"cannot be compared with the periods of {time}, such as {periods[0]!r}",
            "pass two values of its type",
        ) from problem


def _find_period(label: Any, periods: Sequence[Hashable], time: str) -> int:
    try:
        return periods.index(label)
    except ValueError as problem:
        shown = ", ".join(
            repr(entry) if isinstance(entry, str) else label_text(entry) for entry in periods[:MAX_LISTED_GROUPS]
        )
        raise InputError(
            problem=f"no period of {time} is {label!r}",
            remedy=f"there are {len(periods)}, such as {shown}; {arg('reference')} takes {REFERENCE_FORMS}",
        ) from problem


def make_windows(periods: int, reference: tuple[int, ...] | None, window: int, step: int) -> list[Window]:
    """Make windows of `window` consecutive periods outside the reference, each `step` after the one before."""
    check_whole(window, "window")
    check_whole(step, "step")
    if reference is None:
        ends = range(2 * window, periods + 1, step)
        found = [Window(tuple(range(e - window, e)), tuple(range(e - 2 * window, e - window))) for e in ends]
    else:
        found = []
        for run in _split_runs(sorted({*range(periods)} - {*reference})):
            starts = range(0, len(run) - window + 1, step)
            found += [Window(tuple(run[start : start + window]), reference) for start in starts]
    if not found:
        raise InputError("window", window, "is longer than the periods that can be judged", "pass a smaller one")
    return found


def _split_runs(numbers: list[int]) -> list[list[int]]:
    """Split numbers into runs of consecutive ones."""
    cuts = [k + 1 for k in range(len(numbers) - 1) if numbers[k + 1] > numbers[k] + 1]
    return [numbers[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(numbers)], strict=True)]


def parse_reference(text: str, periods: Sequence[Hashable], time: str) -> Any:
    """Parse a reference from the command line: `first:4`, `previous`, `a,b,c` or `start..end`."""
    if text == PREVIOUS or FIRST_PATTERN.fullmatch(text.strip()):
        return text
    known = {label_text(label): label for label in periods}
    names = [text] if text in known else [name.strip() for name in text.split(",")]
    if ".." in text and not all(name in known for name in names):
        low, high = (end.strip() for end in text.split("..", 1))
        return _parse_value(low, periods[0], time), _parse_end(high, periods[0], time)
    return [known[name] if name in known else _parse_value(name, periods[0], time) for name in names]


def _parse_end(text: str, example: Any, time: str) -> Any:
    """Parse the end of a range; a date among times means the end of that day."""
    value = _parse_value(text, example, time)
    whole_day = isinstance(value, datetime) and len(text) <= len("2024-01-31")
    return value + timedelta(days=1, microseconds=-1) if whole_day else value


def _parse_value(text: str, example: Any, time: str) -> Any:
    """Parse text as a value of the type and time zone of an example."""
    if isinstance(example, str | bool):
        return text
    try:
        if not hasattr(example, "isoformat"):
            return type(example)(text)
        value = type(example).fromisoformat(text)
    except (TypeError, ValueError, ArithmeticError) as problem:
        raise InputError(
            "reference", text, f"is not a value of {time}, such as {label_text(example)}", f"pass {REFERENCE_FORMS}"
        ) from problem
    zone = getattr(example, "tzinfo", None)
    return value if zone is None or value.tzinfo is not None else value.replace(tzinfo=zone)
