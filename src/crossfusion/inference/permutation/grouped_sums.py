"""The statistics of many groups, one permutation at a time, from the moments of each group.

A product for each group reads all entries as often as there are groups. With many groups it is cheaper to reduce the
entries once per permutation, as groups are reduced everywhere else.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crossfusion._base import CodeArray, FloatArray, map_threads, thread_count
from crossfusion.inference.permutation.orders import STREAM_SIZE, Codes, LabelOrders
from crossfusion.inference.permutation.sums import MAX_BATCH, MAX_BYTES, Entries
from crossfusion.inference.permutation.welch import (
    Powers,
    StratumCells,
    combine_cells,
    describe_groups,
    raise_entries,
    square_rows,
)
from crossfusion.moments import kernel

MAX_PRODUCTS = 12  # groups per stratum, on average over entries, up to which products are cheaper
MIN_NUMBERS = 2**24  # entries × features × groups from which on the fixed cost of a permutation does not matter


@dataclass(frozen=True)
class GroupedSums:
    """Entries, the place of each one's item among the permuted labels, and the cells that strata and labels form."""

    entries: Entries
    place: Codes
    orders: LabelOrders
    center: FloatArray  # of each stratum
    cell: CodeArray  # of each stratum and label; -1 if there is none, or if nothing is compared in the stratum
    cells: StratumCells

    @classmethod
    def make(cls, entries: Entries, item: Codes, center: FloatArray, orders: LabelOrders) -> "GroupedSums":
        """Entries that belong to items, around the means of their strata."""
        place, width = orders.place[item], int(orders.label.max()) + 1
        sizes = np.bincount(
            entries.stratum.astype(np.int64) * width + orders.label[place], minlength=len(center) * width
        )
        sizes = sizes.reshape(len(center), width)
        present = (sizes > 0) & (np.count_nonzero(sizes, axis=1) > 1)[:, None]
        cell = np.where(present, np.cumsum(present).reshape(present.shape) - 1, -1).astype(np.int32)
        stratum, label = np.nonzero(present)
        rows = np.bincount(entries.stratum, weights=entries.count, minlength=len(center)).astype(np.float64)
        cells = StratumCells(stratum, label, sizes[present] - 1, rows[present.any(axis=1)])
        return cls(entries, place, orders, center, cell, cells)

    @staticmethod
    def pays(entries: Entries, groups: Codes) -> bool:
        """Return whether this is cheaper than a product for each group; `groups` holds their number by stratum."""
        if kernel.compiled is None:
            return False
        number = float(groups[entries.stratum].mean())
        return number > MAX_PRODUCTS and number * entries.mean.shape[0] * entries.mean.shape[1] >= MIN_NUMBERS

    def scatter(self, permute: Callable[[int, int], Codes], number: int) -> FloatArray:
        """Sums of squares between groups, and of entries around the means of strata, one row per permutation.

        The second column stays zero if it is the same under all permutations.
        """
        sum_entries = self._prepare_sums(_scale_entries)
        return self._map_permutations(permute, number, lambda labels: self._measure_scatter(*sum_entries(labels)))

    def measure_observed(self) -> float:
        """Sum of squares of entries around the means of strata under the observed labels; zero if it is constant."""
        if not self.entries.depends_on_label:
            return 0.0
        return float(self.scatter(lambda *_: self.orders.label[None], 1)[0, 1])

    def welch(self, permute: Callable[[int, int], Codes], number: int, scale: FloatArray) -> FloatArray:
        """Welch statistic under each permutation, in strata whose entries have a variance of about `scale`."""
        kept = np.flatnonzero(scale[self.cells.stratum] > 0)
        cells, sum_entries = self.cells.select(kept), self._prepare_sums(raise_entries)

        def work(labels: Codes) -> FloatArray:
            sums, powers = sum_entries(labels)
            groups = describe_groups(sums[kept], powers[kept], self.center.shape[1], cells.freedom)
            return np.array([combine_cells(groups, cells, scale)])

        return self._map_permutations(permute, number, work)[:, 0]

    def _map_permutations(
        self, permute: Callable[[int, int], Codes], number: int, work: Callable[[Codes], FloatArray]
    ) -> FloatArray:
        """Call `work` for each permutation; a batch of them is drawn at a time and divided among the threads."""
        label, found = self.orders.label, []
        step = STREAM_SIZE * max(1, min(MAX_BATCH, MAX_BYTES // label.nbytes) // STREAM_SIZE)
        with map_threads(number) as each:
            for start in range(0, number, step):
                labels = permute(start, min(start + step, number))
                shares = np.array_split(labels, min(thread_count(), len(labels)))
                found += list(each(lambda share: np.array([work(own) for own in share]), shares))
        return np.concatenate(found)

    def _measure_scatter(self, sums: FloatArray, powers: FloatArray) -> FloatArray:
        """Sums of squares between and around under one permutation."""
        rows, squares = powers.T
        if self.entries.shrink is not None:  # s x − center = s (x − center) + offset
            factor = self.entries.shrink[self.cells.stratum, self.cells.label]
            offset = (factor - 1)[:, None] * self.center[self.cells.stratum]
            along = np.einsum("ij,ij->i", sums, offset)
            squares = factor**2 * squares + 2 * factor * along + rows * square_rows(offset)
            sums = factor[:, None] * sums + rows[:, None] * offset
        between = float(np.sum(square_rows(sums) / rows))
        if not self.entries.depends_on_label:
            return np.array([between, 0.0])
        return np.array([between, squares.sum()]) - np.sum(square_rows(self.cells.add(sums)) / self.cells.rows)

    def _prepare_sums(self, raise_to: Callable[..., Powers]) -> Callable[[Codes], tuple[FloatArray, FloatArray]]:
        """Return a function that sums the vectors and powers of entries over the cells under one permutation."""
        entries, number, center = self.entries, len(self.cells.stratum), self.center[self.cells.stratum]
        if entries.count is None:

            def sum_rows(labels: Codes) -> tuple[FloatArray, FloatArray]:
                codes = self.cell[entries.stratum, labels[self.place]]
                count, mean, sumsq = kernel.reduce_rows(entries.mean, codes, number, threads=1)
                gap = mean - center
                return gap * count[:, None], np.stack([count, sumsq.sum(axis=1) + count * square_rows(gap)], axis=1)

            return sum_rows
        gap = entries.mean - self.center[entries.stratum]
        square = square_rows(gap)
        by_label = entries.count_by_label
        known = raise_to(gap, square, entries.count) if by_label is None else None

        def sum_weighted(labels: Codes) -> tuple[FloatArray, FloatArray]:
            label = labels[self.place]
            codes = self.cell[entries.stratum, label]
            rows = entries.count if by_label is None else by_label[np.arange(len(label)), label]
            vectors, powers = known or raise_to(gap, square, rows)
            count, mean, _ = kernel.reduce_rows(vectors, codes, number, threads=1)
            inside = codes >= 0
            totals = [np.bincount(codes[inside], weights=power[inside], minlength=number) for power in powers.T]
            return mean * count[:, None], np.stack(totals, axis=1)

        return sum_weighted


def _scale_entries(gap: FloatArray, square: FloatArray, rows: FloatArray) -> Powers:
    """Compute n x, and n and n ‖x‖², of each entry."""
    return gap * rows[:, None], np.stack([rows, rows * square], axis=1)
