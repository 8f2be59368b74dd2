"""Permutations of labels within exchangeability blocks: all of them, or a random sample.

Items carry labels: rows, whole units, or the rows of a unit with one label. A block is a set of items whose labels are
exchangeable: under the null hypothesis, every order of their labels is equally likely.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FloatArray

Codes = NDArray[np.integer]
STREAM_SIZE = 16  # permutations drawn from one random stream, so that results do not depend on how work is split
MAX_KEYS = 2**18  # random keys drawn at a time
MAX_RANKED_LABELS = 8  # labels up to which ranks are found without sorting


@dataclass(frozen=True)
class Run:
    """Blocks of the same size, one after the other."""

    start: int
    blocks: int
    size: int

    @property
    def stop(self) -> int:
        """Where the next run starts."""
        return self.start + self.blocks * self.size


@dataclass(frozen=True)
class LabelOrders:
    """Labels sorted by block, small blocks first, and the place of each item in this order."""

    label: Codes
    place: Codes
    runs: tuple[Run, ...]

    @classmethod
    def make(cls, label: Codes, block: Codes) -> "LabelOrders":
        """Sort the labels of items by block."""
        size = np.bincount(block)[block]
        order = np.lexsort((block, size))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        narrow = np.min_scalar_type(int(label.max()))
        sizes, starts, items = np.unique(size[order], return_index=True, return_counts=True)
        runs = zip(starts.tolist(), (items // sizes).tolist(), sizes.tolist(), strict=True)
        return cls(label[order].astype(narrow), place, tuple(Run(*run) for run in runs))

    @cached_property
    def _mixed_blocks(self) -> list[slice]:
        """Blocks with different labels."""
        found = []
        for run in self.runs:
            labels = self.label[run.start : run.stop].reshape(run.blocks, run.size)
            for block in np.flatnonzero((labels != labels[:, :1]).any(axis=1)).tolist():
                start = run.start + block * run.size
                found.append(slice(start, start + run.size))
        return found

    def count(self, limit: int) -> int:
        """Number of distinct permutations, including the observed one; `limit` + 1 if there are more."""
        if len(self._mixed_blocks) > math.log2(limit) + 1:  # each has two at least
            return limit + 1
        total = 1
        for block in self._mixed_blocks:
            sizes = np.unique(self.label[block], return_counts=True)[1]
            factorials = _log_factorials(int(sizes.sum()))
            if factorials[-1] - factorials[sizes].sum() > math.log(limit) + 1:
                return limit + 1
            total *= _count_orders(sizes.tolist())
        return min(total, limit + 1)

    def enumerate_all(self) -> Callable[[int, int], Codes]:
        """Return a function of a range of numbers that gives the permutations with these numbers, one per row."""
        tables = [(block, _list_orders(self.label[block])) for block in self._mixed_blocks]

        def permute(start: int, stop: int) -> Codes:
            labels = np.tile(self.label, (stop - start, 1))
            number = np.arange(start, stop)
            for block, table in tables:
                labels[:, block] = table[number % len(table)]
                number //= len(table)
            return labels

        return permute

    def draw_random(self, seed: int) -> Callable[[int, int], Codes]:
        """Return a function of a range of numbers that gives random permutations, one per row.

        Ranges start at multiples of `STREAM_SIZE`.
        """

        def permute(start: int, stop: int) -> Codes:
            labels = np.tile(self.label, (stop - start, 1))
            for first in range(start, stop, STREAM_SIZE):
                draw = np.random.default_rng([seed, first])
                here = labels[first - start : first - start + STREAM_SIZE]
                for run, present in zip(self.runs, labels_of_runs, strict=True):
                    view = here[:, run.start : run.stop].reshape(len(here), run.blocks, run.size)
                    _shuffle(draw, view, present)
            return labels

        labels_of_runs = [np.unique(self.label[run.start : run.stop]) for run in self.runs]
        return permute


def _shuffle(draw: np.random.Generator, labels: Codes, present: Codes) -> None:
    """Shuffle the labels of each block (last axis) independently, in place; `present` lists those that occur."""
    number, blocks, size = labels.shape
    if len(present) == 1:
        return
    step = max(1, MAX_KEYS // (blocks * size))
    for start in range(0, number, step):
        here = labels[start : start + step]
        keys = draw.integers(2**64, size=here.shape, dtype=np.uint64)
        if blocks == 1 and len(present) <= MAX_RANKED_LABELS:
            here[:, 0] = _unrank(keys[:, 0], here[0, 0], present)
        else:
            bits = int(present[-1]).bit_length()  # of a key that make room for the label which is sorted with it
            here[...] = np.sort(keys >> bits << bits | here, axis=2) & (2**bits - 1)


def _unrank(keys: NDArray[np.uint64], labels: Codes, present: Codes) -> Codes:
    """Assign labels to keys by rank, each label as often as it occurs; cheaper than sorting all keys."""
    last = np.cumsum([np.count_nonzero(labels == label) for label in present[:-1]]) - 1
    edges = np.partition(keys, last, axis=1)[:, last]
    rank = (keys > edges[:, :1]).view(np.uint8)
    for edge in edges.T[1:]:
        rank += keys > edge[:, None]
    return rank if present[-1] == len(last) else np.asarray(present[rank])


def _log_factorials(largest: int) -> FloatArray:
    """Compute the logarithms of 0!, 1!, 2!, ..."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, largest + 1)))])


def _count_orders(sizes: list[int]) -> int:
    """Count the distinct orders of labels that occur `sizes` times each."""
    total, left = 1, sum(sizes)
    for size in sorted(sizes):
        total *= math.comb(left, size)
        left -= size
    return total


def _list_orders(labels: Codes) -> Codes:
    """List every distinct order of some labels, one per row, in lexicographic order."""
    return np.array(list(_iterate_orders(sorted(labels.tolist()))), labels.dtype)


def _iterate_orders(order: list[int]) -> Iterator[list[int]]:
    """Iterate over the orders of labels from a given one on, in lexicographic order."""
    while True:
        yield order.copy()
        turn = next((i for i in range(len(order) - 2, -1, -1) if order[i] < order[i + 1]), None)
        if turn is None:
            return
        partner = next(i for i in range(len(order) - 1, turn, -1) if order[i] > order[turn])
        order[turn], order[partner] = order[partner], order[turn]
        order[turn + 1 :] = reversed(order[turn + 1 :])
