"""Random halves of two domains that have no unit in common."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import CodeArray, InputError, count_text, label_text

Rows = NDArray[np.intp]
MIN_HALF_ROWS = 2  # rows of a half: one has no spread


@dataclass(frozen=True)
class Halves:
    """Rows of the two halves of each of two domains, all of the same number of rows."""

    a: tuple[Rows, Rows]
    b: tuple[Rows, Rows]


def split_halves(rows: Sequence[Rows], unit: CodeArray | None, most: int | None, draw: np.random.Generator) -> Halves:
    """Draw halves of two domains.

    Where rows have units, whole units are dealt to the halves, and the units of both domains together: one that both
    domains have is in the same half of each, so the first half of one shares none with the second half of the other.
    """
    parts = [_halve_rows(own, draw) for own in rows] if unit is None else _halve_units(rows, unit, draw)
    size = min(len(half) for halves in parts for half in halves)
    size = size if most is None else min(size, most)
    (a, b) = ((draw.permutation(first)[:size], draw.permutation(second)[:size]) for first, second in parts)
    return Halves(a, b)


def _halve_rows(rows: Rows, draw: np.random.Generator) -> tuple[Rows, Rows]:
    order = draw.permutation(rows)
    middle = len(order) // 2
    return order[:middle], order[middle:]


def _halve_units(rows: Sequence[Rows], unit: CodeArray, draw: np.random.Generator) -> list[tuple[Rows, Rows]]:
    """Deal units in random order, each to the half in which its domains have fewer rows so far."""
    kinds = int(unit.max()) + 1
    counts = np.array([np.bincount(unit[own], minlength=kinds) for own in rows])
    filled = np.zeros((2, len(rows)))
    side = np.zeros(kinds, int)
    for u in draw.permutation(np.flatnonzero(counts.any(axis=0))):
        level = filled @ (counts[:, u] > 0)
        side[u] = draw.integers(2) if level[0] == level[1] else int(level[1] < level[0])
        filled[side[u]] += counts[:, u]
    return [(own[side[unit[own]] == 0], own[side[unit[own]] == 1]) for own in rows]


def check_splittable(name: Any, rows: Rows, unit: CodeArray | None) -> None:
    """Refuse a domain that has no two halves."""
    label = label_text(name)
    if len(rows) < 2 * MIN_HALF_ROWS:
        raise InputError(
            problem=f"domain {label!r} has {count_text(len(rows), 'row')} for two halves of {MIN_HALF_ROWS} or more",
            remedy="leave it out",
        )
    if unit is not None and len(np.unique(unit[rows])) < 2:
        raise InputError(
            problem=f"domain {label!r} has one unit, which cannot be in two halves", remedy="leave the domain out"
        )
