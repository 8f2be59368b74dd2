"""Names inside of sentences: short, and kept apart from the words around them whatever their direction of writing."""

import re
from collections.abc import Sequence
from typing import Any

from crossfusion.report.html.markup import ISOLATES, isolate

MAX_LISTED = 6
PLAIN_CHARACTERS = str.maketrans({ISOLATES[0]: "", ISOLATES[-1]: "", "−": "-"})
NUMERALS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
REGULAR = re.compile(r"[A-Za-z]{2,20}(?<!s)|[A-Za-z]{2,18}ss")  # names of factors that have a regular plural
HISSING = ("s", "x", "z", "ch", "sh")
PREFIX = re.compile(r".*[\W_]")  # the start of a name, up to a character that is not part of a word
MIN_PREFIX = 3  # characters; shorter common starts of names are left


def format_factors(names: Sequence[str]) -> str:
    """The name of a factor in a sentence, or of the combinations of several."""
    return " × ".join(map(isolate, names))


def format_plural(names: Sequence[str]) -> str:
    """What the groups of a factor are called: "sites", or "slide_id groups" where a plural would be a guess."""
    if len(names) != 1 or not REGULAR.fullmatch(names[0]):
        return f"{format_factors(names)} groups"
    name = names[0]
    if name[-1] == "y" and name[-2] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith(HISSING) else f"{name}s"


def format_stratum(names: Sequence[str]) -> str:
    """One stratum, such as "a tissue"."""
    article = "an" if names[0][:1].lower() in tuple("aeiou") else "a"
    return f"{article} {format_factors(names)}"


def format_count(number: int) -> str:
    """A whole number in a sentence: a word up to ten."""
    return NUMERALS[number] if 0 <= number < len(NUMERALS) else f"{number:,}"


def format_list(names: Sequence[Any]) -> str:
    """The first of some names, and how many more there are."""
    shown = ", ".join(map(str, names[:MAX_LISTED]))
    return shown if len(names) <= MAX_LISTED else f"{shown} and {len(names) - MAX_LISTED:,} more"


def join_names(names: Sequence[Any]) -> str:
    """Names in a sentence: "A, B and C", of many the first few and the number of the others."""
    shown = [isolate(name) for name in names]
    if len(shown) > MAX_LISTED:
        shown = [*shown[: MAX_LISTED - 1], f"{len(shown) - MAX_LISTED + 1:,} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def find_prefix(names: Sequence[str]) -> str:
    """The start that all names share, up to the end of a word; "" unless every name goes on after it."""
    if len(names) < 2:
        return ""
    low, high = min(names), max(names)
    same = next((k for k, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    start = PREFIX.match(low[:same])
    found = start[0] if start else ""
    return found if len(found) >= MIN_PREFIX and all(name[len(found) :].strip() for name in names) else ""


def capitalize(sentence: str) -> str:
    """A sentence with a capital letter, unless it starts with a name."""
    return sentence[:1].upper() + sentence[1:]


def strip_marks(sentence: str) -> str:
    """A sentence for a terminal: without the marks that keep names apart, numbers as everywhere else there."""
    return sentence.translate(PLAIN_CHARACTERS)
