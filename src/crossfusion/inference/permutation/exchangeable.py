"""Which items may exchange labels: rows, whole units, or the rows of a unit that have different labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FloatArray, InputError

Codes = NDArray[Any]


@dataclass(frozen=True)
class ExchangeableItems:
    """The item of each entry, the label of each item, and the block within which items may exchange labels."""

    item: Codes
    label: Codes
    block: Codes


def find_exchangeable(label: Codes, stratum: Codes, unit: Codes | None, *, crossed: bool | None) -> ExchangeableItems:
    """Find the exchangeable items of entries with a label, a stratum and a unit.

    In a crossed design a unit has several labels. Items exchange labels only with items of the same strata, so every
    group keeps its number of items in each stratum.
    """
    if unit is None:
        return ExchangeableItems(np.arange(len(label)), label, stratum)
    first = np.unique(unit, return_index=True)[1]
    if not crossed:
        _check_nested(label, unit, first)
        return ExchangeableItems(unit, label[first], encode_strata_sets(unit, stratum))
    item, owner, own = _combine_codes(unit, label)
    block, _, _ = _combine_codes(owner, encode_strata_sets(item, stratum))
    if len(np.unique(block)) == len(block):
        raise InputError(
            problem="no pair has two labels (in the same strata)", remedy="pass what was measured under several labels"
        )
    return ExchangeableItems(item, own, block)


def count_rows_by_label(count: FloatArray, label: Codes, stratum: Codes, unit: Codes) -> FloatArray:
    """Count the rows that the unit of each entry has in its stratum under each label."""
    group, _, _ = _combine_codes(unit, stratum)
    table = np.zeros((int(group.max()) + 1, int(label.max()) + 1))
    table[group, label] = count
    return np.asarray(table[group])


def is_crossed(label: Codes, unit: Codes) -> bool:
    """Return whether some unit has several labels."""
    return len(_combine_codes(unit, label)[1]) > int(unit.max()) + 1


def has_one_entry_each(item: Codes, stratum: Codes) -> bool:
    """Return whether no item has two entries in a stratum."""
    return len(item) == int(item.max()) + 1 or len(item) == len(_combine_codes(item, stratum)[1])


def _check_nested(label: Codes, unit: Codes, first: Codes) -> None:
    if (label != label[first][unit]).any():
        raise InputError(
            problem="some units have rows of several labels, so whole units cannot be relabeled",
            remedy="pass them as pairs of permutation_test; there is no such test of spread",
        )
    if np.bincount(label[first]).min() < 2:
        raise InputError(
            problem="a label has one unit only, whose effect cannot be separated from the label's",
            remedy="pass more units",
        )


def _combine_codes(first: Codes, second: Codes) -> tuple[Codes, Codes, Codes]:
    """Encode the observed combinations of two codes, and list the two codes of each combination."""
    width = int(second.max()) + 1
    present, code = np.unique(first.astype(np.int64) * width + second, return_inverse=True)
    return code, present // width, present % width


def encode_strata_sets(item: Codes, stratum: Codes) -> Codes:
    """Encode the set of strata in which each item lies."""
    _, owner, lies_in = _combine_codes(item, stratum)
    if len(owner) == int(item.max()) + 1:
        return lies_in  # one stratum each
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    sizes, code, width = np.diff(starts, append=len(owner)), np.zeros(len(starts), np.int64), int(lies_in.max()) + 2
    for position in range(int(sizes.max())):  # the strata of an item are sorted, so that equal sets agree one by one
        inside = position < sizes
        following = np.where(inside, lies_in[np.where(inside, starts + position, 0)], width - 1)
        code = np.unique(code * width + following, return_inverse=True)[1]
    first, back = np.unique(code, return_index=True, return_inverse=True)[1:]
    return np.argsort(np.argsort(first))[back]  # numbered as they first occur
