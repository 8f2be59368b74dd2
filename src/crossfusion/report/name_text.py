"""Names inside of sentences: short, and kept apart from the words around them whatever their direction of writing."""

from collections.abc import Sequence
from typing import Any

from crossfusion.report.html.markup import ISOLATED, isolated

LISTED = 6
PLAIN = str.maketrans({ISOLATED[0]: "", ISOLATED[-1]: "", "\u202f": "", "−": "-"})


def crossed(names: Sequence[str]) -> str:
    """The name of a factor in a sentence, or of the combinations of several."""
    return " × ".join(map(isolated, names))


def listed(names: Sequence[Any]) -> str:
    """The first of some names, and how many more there are."""
    shown = ", ".join(map(str, names[:LISTED]))
    return shown if len(names) <= LISTED else f"{shown} and {len(names) - LISTED:,} more"


def plain_text(sentence: str) -> str:
    """A sentence for a terminal: without the marks that keep names apart, numbers as everywhere else there."""
    return sentence.translate(PLAIN)
