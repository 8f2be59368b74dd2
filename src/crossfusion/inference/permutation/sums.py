"""Sums of squares of groups under many permutations of their labels, tile by tile.

An entry is a row, or the mean of the rows that a unit has in a stratum. Sums are taken around the mean of the stratum,
so that Σ ‖S_k‖² / n_k over the groups k is the sum of squares between them, and the sums of a stratum's groups add up
to zero. The sums of a group under all permutations are one product: (permutations × entries, 1 where an entry has the
label) times (entries × features). The kernel computes it with a quarter of the additions, from the sums of all subsets
of four entries. No distances between rows are needed.

The contribution of an entry may depend on its permuted label. An entry that takes another label of the same unit also
takes the number of rows of that label; otherwise a unit with more rows under one label would bring its own effect into
the comparison. In a test of dispersion, an entry is rescaled by the shrinkage of the group it moves to.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from crossfusion._base import FloatArray, map_threads, thread_count
from crossfusion.inference.permutation.orders import STREAM_SIZE, Codes, LabelOrders
from crossfusion.inference.permutation.welch import square_rows
from crossfusion.moments import kernel

MAX_BYTES = 64 * 2**20  # bytes in use beside the data, on all threads together
TILE_BYTES = 2**20  # bytes of entries converted and centered at a time
MAX_BATCH = 256  # permutations in one product

Index = slice | Codes


@dataclass(frozen=True)
class Entries:
    """Means of entries (or single rows), the stratum of each, and the number of rows of each (None: one).

    If an entry depends on its label, `count_by_label` holds its number of rows under each label, and `shrink` a factor
    per stratum and label that multiplies the entries with that label.
    """

    mean: Any
    stratum: Codes
    count: FloatArray | None = None
    count_by_label: FloatArray | None = None
    shrink: FloatArray | None = None

    @property
    def depends_on_label(self) -> bool:
        """Whether the contribution of an entry depends on its label."""
        return self.count_by_label is not None or self.shrink is not None

    def rows(self, tile: Index, label: int) -> FloatArray | None:
        """Number of rows of the entries of a tile under a label."""
        if self.count_by_label is not None:
            return self.count_by_label[tile, label]
        return None if self.count is None else self.count[tile]

    def drop_equal_counts(self) -> "Entries":
        """Leave the numbers of rows out if all are equal, which leaves the shares of entries as they are."""
        if self.count is None or not (self.count == self.count[0]).all():
            return self
        return replace(self, count=None, count_by_label=None)


@dataclass(frozen=True)
class Stratum:
    """Entries of one stratum, cut into tiles, and the labels that occur in it, those of a single entry last."""

    code: int
    tiles: tuple[tuple[Index, Index], ...]  # indices of entries, and of the places of their items
    labels: tuple[int, ...]
    sizes: tuple[int, ...]  # number of entries of each label
    rows: float
    center: FloatArray
    shrink: FloatArray | None


@dataclass(frozen=True)
class PermutationSums:
    """Entries in strata with several groups, and the permutations of their labels."""

    entries: Entries
    strata: tuple[Stratum, ...]
    orders: LabelOrders

    @classmethod
    def make(cls, entries: Entries, item: Codes, center: FloatArray, orders: LabelOrders) -> Self:
        """Entries that belong to items, around the means of their strata."""
        place, stratum = orders.place[item], entries.stratum
        step = _choose_tile_rows(entries.mean.shape[1])
        order = np.argsort(stratum, kind="stable")
        strata = []
        for members in np.split(order, np.flatnonzero(np.diff(stratum[order])) + 1):
            labels, sizes = np.unique(orders.label[place[members]], return_counts=True)
            if len(labels) > 1:
                sort = np.argsort(sizes == 1, kind="stable")
                labels, sizes = labels[sort], sizes[sort]
                cut = [members[start : start + step] for start in range(0, len(members), step)]
                tiles = tuple((_simplify_index(tile), _simplify_index(place[tile])) for tile in cut)
                rows = len(members) if entries.count is None else float(entries.count[members].sum())
                here = int(stratum[members[0]])
                shrink = None if entries.shrink is None else entries.shrink[here]
                known = tuple(labels.tolist()), tuple(sizes.tolist())
                strata.append(Stratum(here, tiles, *known, rows, center[here], shrink))
        return cls(entries, tuple(strata), orders)

    def scatter(self, permute: Callable[[int, int], Codes], number: int) -> FloatArray:
        """Sums of squares between groups, and of entries around the means of strata, one row per permutation.

        The second column stays zero if it is the same under all permutations.
        """
        add = self._add_relabeled if self.entries.depends_on_label else self._add_stratum

        def work(labels: Codes) -> FloatArray:
            found = np.zeros((len(labels), 2))
            for stratum in self.strata:
                add(stratum, labels, found)
            return found

        return self.map_batches(permute, number, work, vectors=5)

    def map_batches(
        self, permute: Callable[[int, int], Codes], number: int, work: Callable[[Codes], FloatArray], *, vectors: int
    ) -> FloatArray:
        """Call `work`, which holds some vectors per permutation, for batches of permutations."""
        dim, label = self.entries.mean.shape[1], self.orders.label
        step = _choose_batch_size(len(label), label.itemsize, dim, number, vectors)
        starts = range(0, number, step)
        with map_threads(len(starts)) as each:
            return np.concatenate(list(each(lambda start: work(permute(start, min(start + step, number))), starts)))

    def measure_observed(self) -> float:
        """Sum of squares of entries around the means of strata under the observed labels; zero if it is constant."""
        if not self.entries.depends_on_label:
            return 0.0
        return float(self.scatter(lambda *_: self.orders.label[None], 1)[0, 1])

    def _add_stratum(self, stratum: Stratum, labels: Codes, found: FloatArray) -> None:
        """Add the sum of squares between the groups of a stratum; the last group's sum is minus that of the others."""
        others, rows_of_others = np.zeros((len(labels), self.entries.mean.shape[1])), np.zeros(len(labels))
        for label in stratum.labels[:-1]:
            sums, rows = self._sum_group(stratum, labels, label)
            found[:, 0] += square_rows(sums) / rows
            others += sums
            rows_of_others += rows
        found[:, 0] += square_rows(others) / (stratum.rows - rows_of_others)

    def _add_relabeled(self, stratum: Stratum, labels: Codes, found: FloatArray) -> None:
        """Do the same for entries that depend on their label, whose sums and sums of squares are not constant."""
        whole = np.zeros((len(labels), self.entries.mean.shape[1]))
        for label in stratum.labels:
            of_squares = np.zeros((len(labels), 1))
            sums, rows = self._sum_group(stratum, labels, label, of_squares)
            squares = of_squares[:, 0]
            if stratum.shrink is not None:  # s x − center = s (x − center) + offset
                factor = stratum.shrink[label]
                offset = (factor - 1) * stratum.center
                squares = factor**2 * squares + 2 * factor * (sums @ offset) + rows * (offset @ offset)
                sums = factor * sums + rows[:, None] * offset
            found[:, 0] += square_rows(sums) / rows
            found[:, 1] += squares
            whole += sums
        found -= square_rows(whole)[:, None] / stratum.rows

    def _sum_group(
        self, stratum: Stratum, labels: Codes, label: int, squares: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Sum the centered entries and the rows of a group under each permutation; add squares to `squares`."""
        sums, total = np.zeros((len(labels), self.entries.mean.shape[1])), np.zeros((len(labels), 1))
        for tile, places in stratum.tiles:
            belongs = labels[:, places] == label
            gap, rows = self.center(tile, stratum.center), self.entries.rows(tile, label)
            square = None if squares is None else square_rows(gap)[:, None]
            if rows is None:
                total += np.count_nonzero(belongs, axis=1)[:, None]
            else:
                gap, square = gap * rows[:, None], None if square is None else square * rows[:, None]
                kernel.add_members(belongs, rows[:, None], total)
            if squares is not None and square is not None:
                kernel.add_members(belongs, square, squares)
            kernel.add_members(belongs, gap, sums)
        return sums, total[:, 0]

    def center(self, tile: Index, center: FloatArray) -> FloatArray:
        """Entries of a tile around a center."""
        chosen = self.entries.mean[tile]
        dense = chosen if isinstance(chosen, np.ndarray) else chosen.toarray()
        return np.asarray(np.subtract(dense, center, dtype=np.float64))


def _choose_tile_rows(dim: int) -> int:
    return int(np.clip(TILE_BYTES // (8 * dim), 16, 4096))


def _choose_batch_size(items: int, width: int, dim: int, number: int, vectors: int = 5) -> int:
    """Choose how many permutations share a product: whole streams, within the memory, and work for every thread."""
    threads = thread_count()
    each = items * width + 9 * _choose_tile_rows(dim) + vectors * 8 * dim
    room = MAX_BYTES / threads - 3 * 8 * _choose_tile_rows(dim) * dim
    share = STREAM_SIZE * math.ceil(number / (2 * threads) / STREAM_SIZE)  # two for each thread, and no rest
    return STREAM_SIZE * max(1, int(min(room / each, max(share, 4 * STREAM_SIZE), MAX_BATCH) / STREAM_SIZE))


def _simplify_index(places: Codes) -> Index:
    """Replace consecutive indices by a slice, which needs no copy."""
    first, last = int(places[0]), int(places[-1])
    if last - first == len(places) - 1 and bool((np.diff(places) == 1).all()):
        return slice(first, last + 1)
    return places
