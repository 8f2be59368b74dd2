"""Which keys of a manifest were used, and which it does not have: small, and adds up like moments do."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import label_text

MAX_MISSING_KEYS = 100_000  # keys that are kept apart; of more, only that there are more
MAX_LISTED_KEYS = 5  # keys that a message names


def _make_empty() -> NDArray[np.int64]:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Match:
    """Rows of a manifest that were used, the files they were used for, and keys that the manifest does not have."""

    used: NDArray[np.int64] = field(default_factory=_make_empty)
    files: frozenset[tuple[int, str]] = frozenset()
    missing: frozenset[Hashable] = frozenset()
    more: bool = False  # there are further keys that are missing

    @property
    def size(self) -> int:
        """Bytes, about."""
        return self.used.nbytes + 100 * (len(self.files) + len(self.missing))


def merge_matches(matches: Iterable[Match | None]) -> Match | None:
    """What is known of several; None where nothing is."""
    found = [match for match in matches if match is not None]
    if len(found) < 2:
        return found[0] if found else None
    missing = frozenset().union(*(match.missing for match in found))
    return Match(
        np.unique(np.concatenate([match.used for match in found])),
        frozenset().union(*(match.files for match in found)),
        missing if len(missing) <= MAX_MISSING_KEYS else frozenset(list(missing)[:MAX_MISSING_KEYS]),
        len(missing) > MAX_MISSING_KEYS or any(match.more for match in found),
    )


def list_some(keys: Iterable[Hashable], more: bool = False) -> str:
    """Keys by name, in order; of many, the first and how many others."""
    names = sorted(label_text(key) for key in keys)
    rest = len(names) - MAX_LISTED_KEYS
    shown = ", ".join(names[:MAX_LISTED_KEYS])
    return f"{shown} and {'at least ' if more else ''}{rest:,} more" if rest > 0 else shown
