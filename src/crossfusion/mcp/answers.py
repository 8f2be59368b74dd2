"""Answers of bounded size: the text of a result, and its values."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from crossfusion._base import plain_value
from crossfusion.fusion import Pairwise, Result

MAX_ENTRIES = 50  # of a list or mapping
MAX_TEXT = 8_000  # characters of a text
MAX_ANSWER = 100_000  # characters of an answer


def answer(text: str, values: Any, warnings: list[str], shorten: Callable[[str], str]) -> dict[str, Any]:
    """Put together a text, values and warnings, all in the words of `shorten`; what is cut says how much there is."""
    found: dict[str, Any] = {
        "text": cut(shorten(text)),
        "values": bound(plain_value(values), shorten),
        "warnings": [cut(shorten(each)) for each in warnings],
    }
    size = len(json.dumps(found))
    if size > MAX_ANSWER:
        found["values"] = {"left_out": f"the values take {size:,} characters; ask about fewer groups"}
    return found


def list_values(result: Result) -> Any:
    """Values of a result; of all pairs of groups, the farthest first."""
    if not isinstance(result, Pairwise):
        return result.to_dict()
    first, second = np.triu_indices(len(result.labels), 1)
    order = np.argsort(-np.nan_to_num(result.unbiased[first, second], nan=-np.inf), kind="stable")
    pairs = [
        {"group_a": result.labels[first[k]], "group_b": result.labels[second[k]]}
        | {name: matrix[first[k], second[k]] for name, matrix in result.columns.items()}
        for k in order.tolist()
    ]
    facts = {name: value for name, value in result.to_dict().items() if name not in (*result.columns, "labels")}
    return facts | {"groups": result.labels, "pairs": pairs}


def bound(value: Any, shorten: Callable[[str], str]) -> Any:
    """Cut lists, mappings and texts, and say how much there is."""
    if isinstance(value, str):
        return cut(shorten(value))
    if isinstance(value, Mapping):
        kept = {name: bound(value[name], shorten) for name in list(value)[:MAX_ENTRIES]}
        return kept if len(value) <= MAX_ENTRIES else kept | {"left_out": len(value) - MAX_ENTRIES}
    if isinstance(value, list):
        kept_list = [bound(entry, shorten) for entry in value[:MAX_ENTRIES]]
        return kept_list if len(value) <= MAX_ENTRIES else {"first": kept_list, "of": len(value)}
    return value


def cut(text: str) -> str:
    """Cut a long text."""
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} … ({len(text) - MAX_TEXT:,} more characters)"
