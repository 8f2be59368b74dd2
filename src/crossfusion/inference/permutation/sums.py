"""The scatter of groups under many rearrangements of their labels, by blocked matrix products.

A piece is a row, or the rows that a unit has in a stratum, taken at their mean. Sums are taken around the stratum's
mean, so that Σ ‖S_k‖² / n_k over the groups k is what lies between them, and the groups of a stratum add up to zero.
The sums of a group under all rearrangements are one product: (rearrangements × pieces, ones where a piece has the
label) times (pieces × features). No distances between rows are needed.

What a piece adds may depend on where it lands. The share of a unit that takes another label of the same unit takes the
number of rows there too: were it to keep its own, a unit with more rows under one label would bring its own effect into
the comparison. And a row's distance from the centroid shrinks as the centroids of its new group do.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossfusion._base import FloatArray, map_threads, multiply_matrices
from crossfusion._base import threads as kernels
from crossfusion.inference.permutation.orders import STREAM, Codes, LabelOrders

MEMORY = 64 * 2**20  # bytes in use beside the data, on all threads together
ROWS = 2**20  # bytes of pieces converted and centred at a time
MOST = 256  # rearrangements in one product

Index = slice | Codes


@dataclass(frozen=True)
class Values:
    """Means of pieces (or single rows), the part of each, and how many rows each stands for (None: one).

    Where that depends on the label: `landing` has the rows of each piece under each label, and `shrink` a factor for
    each part and label that multiplies what lands there.
    """

    mean: Any
    part: Codes
    count: FloatArray | None = None
    landing: FloatArray | None = None
    shrink: FloatArray | None = None

    @property
    def change(self) -> bool:
        """Whether pieces change as they land."""
        return self.landing is not None or self.shrink is not None

    def rows(self, block: Index, label: int) -> FloatArray | None:
        """Rows that pieces of a block stand for under a label."""
        if self.landing is not None:
            return self.landing[block, label]
        return None if self.count is None else self.count[block]


@dataclass(frozen=True)
class Stratum:
    """Pieces of one part, cut into blocks, and the labels that occur in it."""

    blocks: tuple[tuple[Index, Index], ...]  # of pieces, and of the places of their items
    labels: tuple[int, ...]
    rows: float
    centre: FloatArray
    shrink: FloatArray | None


@dataclass(frozen=True)
class PermutationSums:
    """Values in strata of which several groups have a share, and the exchange of their labels."""

    values: Values
    strata: tuple[Stratum, ...]
    exchange: LabelOrders

    @classmethod
    def of(cls, values: Values, item: Codes, centre: FloatArray, exchange: LabelOrders) -> "PermutationSums":
        """Pieces that belong to items, around the centres of their parts."""
        place, part = exchange.place[item], values.part
        step = _block_rows(values.mean.shape[1])
        order = np.argsort(part, kind="stable")
        strata = []
        for members in np.split(order, np.flatnonzero(np.diff(part[order])) + 1):
            labels = np.unique(exchange.label[place[members]]).tolist()
            if len(labels) > 1:
                cut = [members[start : start + step] for start in range(0, len(members), step)]
                blocks = tuple((_index(block), _index(place[block])) for block in cut)
                rows = len(members) if values.count is None else float(values.count[members].sum())
                here = part[members[0]]
                shrink = None if values.shrink is None else values.shrink[here]
                strata.append(Stratum(blocks, tuple(labels), rows, centre[here], shrink))
        return cls(values, tuple(strata), exchange)

    def scatter(self, rearranged: Callable[[int, int], Codes], number: int) -> FloatArray:
        """Sums of squares between the groups, and of the pieces around the strata's means, a row a rearrangement.

        The latter are left at zero where they are the same under each.
        """
        dim, label = self.values.mean.shape[1], self.exchange.label
        step = _permutations_per_block(len(label), label.itemsize, dim, number)
        starts = range(0, number, step)
        add = self._add_landed if self.values.change else self._add

        def work(start: int) -> FloatArray:
            labels = rearranged(start, min(start + step, number))
            found = np.zeros((len(labels), 2))
            for stratum in self.strata:
                add(stratum, labels, found)
            return found

        with map_threads(len(starts)) as each:
            return np.concatenate(list(each(work, starts)))

    def present(self) -> float:
        """Sum of squares of the pieces around the strata's means as they are; zero where it does not change."""
        if not self.values.change:
            return 0.0
        return float(self.scatter(lambda *_: self.exchange.label[None], 1)[0, 1])

    def _add(self, stratum: Stratum, labels: Codes, found: FloatArray) -> None:
        """Add what a stratum has between its groups; the last group's sums are those of the others, reversed."""
        others, rows_of_others = np.zeros((len(labels), self.values.mean.shape[1])), np.zeros(len(labels))
        for label in stratum.labels[:-1]:
            sums, rows = self._sums(stratum, labels, label)
            found[:, 0] += _square(sums) / rows
            others += sums
            rows_of_others += rows
        found[:, 0] += _square(others) / (stratum.rows - rows_of_others)

    def _add_landed(self, stratum: Stratum, labels: Codes, found: FloatArray) -> None:
        """The same where pieces change as they land, so that neither their sum nor their scatter stays what it is."""
        whole = np.zeros((len(labels), self.values.mean.shape[1]))
        for label in stratum.labels:
            squares = np.zeros(len(labels))
            sums, rows = self._sums(stratum, labels, label, squares)
            if stratum.shrink is not None:  # s x − centre = s (x − centre) + offset
                factor = stratum.shrink[label]
                offset = (factor - 1) * stratum.centre
                squares = factor**2 * squares + 2 * factor * (sums @ offset) + rows * (offset @ offset)
                sums = factor * sums + rows[:, None] * offset
            found[:, 0] += _square(sums) / rows
            found[:, 1] += squares
            whole += sums
        found -= _square(whole)[:, None] / stratum.rows

    def _sums(
        self, stratum: Stratum, labels: Codes, label: int, squares: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Centred sums of a group and its rows under each rearrangement; sums of squares are added to `squares`."""
        sums, total = np.zeros((len(labels), self.values.mean.shape[1])), np.zeros(len(labels))
        product = np.empty_like(sums)
        for block, places in stratum.blocks:
            belongs = (labels[:, places] == label).astype(np.float64)
            gap, rows = self._gap(block, stratum.centre), self.values.rows(block, label)
            if squares is not None:
                squares += belongs @ (_square(gap) if rows is None else _square(gap) * rows)
            sums += multiply_matrices(belongs, gap if rows is None else gap * rows[:, None], out=product)
            total += belongs.sum(axis=1) if rows is None else belongs @ rows
        return sums, total

    def _gap(self, block: Index, centre: FloatArray) -> FloatArray:
        chosen = self.values.mean[block]
        dense = chosen if isinstance(chosen, np.ndarray) else chosen.toarray()
        return np.asarray(np.subtract(dense, centre, dtype=np.float64))


def _block_rows(dim: int) -> int:
    return int(np.clip(ROWS // (8 * dim), 16, 4096))


def _permutations_per_block(items: int, width: int, dim: int, number: int) -> int:
    """How many rearrangements share a product: whole streams, within the memory, and work for every thread."""
    threads = kernels.thread_count()
    each = items * width + 9 * _block_rows(dim) + 5 * 8 * dim
    room = MEMORY / threads - 3 * 8 * _block_rows(dim) * dim
    share = number / (2 * threads)
    return STREAM * max(1, int(min(room / each, max(share, 4 * STREAM), MOST) / STREAM))


def _square(sums: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", sums, sums))


def _index(places: Codes) -> Index:
    """A slice where that is the same, which needs no copy."""
    first, last = int(places[0]), int(places[-1])
    if last - first == len(places) - 1 and bool((np.diff(places) == 1).all()):
        return slice(first, last + 1)
    return places
