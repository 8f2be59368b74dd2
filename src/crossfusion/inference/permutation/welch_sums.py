"""The Welch statistic under many permutations of labels.

Beyond the sums of groups, it needs the variance of each group's entries: the sums of their squared lengths and, if
entries have different numbers of rows, of their products with these numbers.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.inference.permutation.orders import Codes
from crossfusion.inference.permutation.sums import Index, PermutationSums, Stratum
from crossfusion.inference.permutation.welch import (
    Group,
    Powers,
    Welch,
    describe_groups,
    raise_entries,
    square_rows,
)
from crossfusion.moments import kernel


class WelchSums(PermutationSums):
    """Entries in strata with several groups, and the permutations of their labels."""

    def welch(self, permute: Callable[[int, int], Codes], number: int, scale: FloatArray) -> FloatArray:
        """Welch statistic under each permutation, in strata whose entries have a variance of about `scale`."""
        strata = [stratum for stratum in self.strata if scale[stratum.code] > 0]
        strata.sort(key=lambda stratum: max(stratum.sizes) == 1)
        totals = [self._sum_all(stratum) for stratum in strata]

        def work(labels: Codes) -> FloatArray:
            found = Welch()
            for stratum, total in zip(strata, totals, strict=True):
                groups = self._describe_groups(stratum, labels, total)
                found.add_stratum(groups, stratum.rows, float(scale[stratum.code]))
            return found.finish(len(labels))

        return self.map_batches(permute, number, work, vectors=6 if self.entries.count is None else 9)

    def _describe_groups(
        self, stratum: Stratum, labels: Codes, total: tuple[FloatArray, FloatArray] | None
    ) -> Iterator[Group]:
        """Describe each group of a stratum under each permutation; the last is what the others leave of the total."""
        others: list[Any] = [0.0, 0.0]
        for label, size in zip(stratum.labels, stratum.sizes, strict=True):
            if total is not None and label == stratum.labels[-1]:
                sums, powers = (whole - part for whole, part in zip(total, others, strict=True))
            else:
                sums, powers = self._sum_powers(stratum, labels, label)
                others = [others[0] + sums, others[1] + powers] if total is not None else others
            yield describe_groups(sums, powers, self.entries.mean.shape[1], size - 1)

    def _sum_all(self, stratum: Stratum) -> tuple[FloatArray, FloatArray] | None:
        """Sum what `_sum_powers` does over all groups of a stratum; None if that depends on the permutation."""
        if self.entries.depends_on_label:
            return None
        total: list[Any] = [0.0, 0.0]
        for tile, _ in stratum.tiles:
            raised = self._raise_entries(tile, stratum.center, stratum.labels[0])
            total = [before + own.sum(axis=0)[None] for before, own in zip(total, raised, strict=True)]
        return total[0], total[1]

    def _sum_powers(self, stratum: Stratum, labels: Codes, label: int) -> Powers:
        """Sum the vectors and powers of a group's entries under each permutation."""
        found: list[FloatArray] = []
        for tile, places in stratum.tiles:
            belongs, raised = labels[:, places] == label, self._raise_entries(tile, stratum.center, label)
            found = found or [np.zeros((len(labels), columns.shape[1])) for columns in raised]
            for columns, sums in zip(raised, found, strict=True):
                kernel.add_members(belongs, columns, sums)
        return found[0], found[1]

    def _raise_entries(self, tile: Index, center: FloatArray, label: int) -> Powers:
        """Raise the entries of a tile, which have one row each if their numbers are left out."""
        gap, rows = self.center(tile, center), self.entries.rows(tile, label)
        square = square_rows(gap)
        return (
            raise_entries(gap, square, rows)
            if rows is not None
            else (gap, np.stack([np.ones_like(square), square], axis=1))
        )
