"""Names inside of sentences: short, and kept apart from the words around them whatever their direction of writing."""

from collections.abc import Sequence
from typing import Any

from crossfusion.report.html.markup import ISOLATES, isolate

MAX_LISTED = 6
PLAIN_CHARACTERS = str.maketrans({ISOLATES[0]: "", ISOLATES[-1]: "", "\u202f": "", "−": "-"})


def format_factors(names: Sequence[str]) -> str:
    """The name of a factor in a sentence, or of the combinations of several."""
    return " × ".join(map(isolate, names))


def format_list(names: Sequence[Any]) -> str:
    """The first of some names, and how many more there are."""
    shown = ", ".join(map(str, names[:MAX_LISTED]))
    return shown if len(names) <= MAX_LISTED else f"{shown} and {len(names) - MAX_LISTED:,} more"


def strip_marks(sentence: str) -> str:
    """A sentence for a terminal: without the marks that keep names apart, numbers as everywhere else there."""
    return sentence.translate(PLAIN_CHARACTERS)
