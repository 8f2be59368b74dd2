"""From blocks of rows to a summary: the one way that every engine reduces, and the one way it adds up."""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import (
    FiniteCheck,
    arrow,
    as_rows,
    check_same_dim,
    check_some_rows,
    factors,
    warn_about_lost_groups,
)
from crossfusion.io.sources.chunk import Chunk, Partition
from crossfusion.io.sources.manifest_match import Match, merge_matches
from crossfusion.moments import kernel, reduce_groups
from crossfusion.summary import Summary, combine

if TYPE_CHECKING:
    import pyarrow as pa

MAX_PENDING_BYTES = 64 * 2**20  # bytes of moments that wait to be merged


@dataclass(frozen=True)
class Seen:
    """How many rows there were, how many of them not finite, and where the first of these is."""

    rows: int = 0
    bad: int = 0
    where: str = ""

    def __add__(self, other: "Seen") -> "Seen":
        return Seen(self.rows + other.rows, self.bad + other.bad, self.where or other.where)

    def settle(self, name: str, nan: str, so_far: bool = False) -> int:
        """Refuse rows that are not finite, or warn and return how many were left out."""
        check = FiniteCheck(name)
        check.rows, check.bad, check.where = self.rows, self.bad, self.where
        return check.settle(nan, so_far=so_far)


@dataclass(frozen=True)
class Reduced:
    """What rows have become: a summary of the finite ones, and what was seen of the others."""

    name: str  # of the file, for messages
    summary: Summary | None = None  # None: no finite row
    seen: Seen = Seen()
    lost: "tuple[pa.Table, ...]" = ()  # keys of which a block had no finite row
    match: Match | None = None  # what a manifest has of the keys

    @property
    def dim(self) -> int:
        """Number of features; 0 without a finite row."""
        return 0 if self.summary is None else self.summary.dim

    @property
    def size(self) -> int:
        """Bytes of the means, and of what is known of keys."""
        keys = 0 if self.match is None else self.match.size
        return keys + (0 if self.summary is None else self.summary.moments.mean.nbytes)


def reduce_chunk(block: Chunk, name: str, *, threads: int | None = 1, large: bool = False) -> Reduced:
    """Reduce a block; `large`: it is one of many, so the compiled kernel is worth its start."""
    holder = block.file or name
    rows = as_rows(block.rows, holder)
    codes, keys = factors.encode(block.keys)
    moments, finite = reduce_groups(rows, codes, keys.num_rows, name=holder, threads=threads, large=large)
    check = FiniteCheck(holder)
    check.see(rows, finite, block.first)
    where = f"{check.where} of {block.file}" if check.where and block.file else check.where
    kept, lost = np.flatnonzero(moments.count > 0), np.flatnonzero(moments.count == 0)
    summary = Summary(keys.take(arrow.from_numbers(kept)), moments[kept], _name_type(rows.dtype)) if len(kept) else None
    gone = (keys.take(arrow.from_numbers(lost)),) if len(lost) else ()
    return Reduced(holder, summary, Seen(check.rows, check.bad, where), gone, block.match)


def _name_type(dtype: Any) -> str:
    return "float32" if dtype.name == "bfloat16" else str(dtype.name)


def reduce_partition(part: Partition, name: str) -> Reduced:
    """Reduce all blocks of a part, one after the other, as a worker process does."""
    running, size = RunningSum(name), 0
    for number, block in enumerate(part()):
        size += block.rows.shape[0] * block.rows.shape[1] * block.rows.dtype.itemsize
        running.add(number, reduce_chunk(block, name, large=size >= kernel.NUMPY_MAX_BYTES))
    return running.total()


def merge_reduced(pieces: Sequence[Reduced]) -> Reduced:
    """Add up pieces, in their order."""
    if len(pieces) == 1:
        return pieces[0]
    filled = [piece for piece in pieces if piece.summary is not None]
    for piece in filled[1:]:
        check_same_dim({filled[0].name: filled[0].dim, piece.name: piece.dim})
    return Reduced(
        (filled or pieces)[0].name,
        combine([piece.summary for piece in filled if piece.summary is not None]) if filled else None,
        reduce(operator.add, (piece.seen for piece in pieces)),
        tuple(keys for piece in pieces for keys in piece.lost),
        merge_matches(piece.match for piece in pieces),
    )


class RunningSum:
    """The sum of numbered pieces, merged in the order of their numbers, whatever order they come in.

    So the result has the same bits every time. Pieces are merged when those that wait take more memory than the sum.

    Parameters
    ----------
    name : str
        What the pieces are of, for messages.
    """

    def __init__(self, name: str) -> None:
        self.number = 0  # of the next piece to be merged
        self.seen = Seen()
        self._early: dict[int, Reduced] = {}
        self._pending: list[Reduced] = []
        self._name = name

    def start(self, number: int, piece: Reduced) -> None:
        """Go on from the sum of all pieces before this number."""
        self.number, self.seen, self._pending = number, piece.seen, [piece]

    def add(self, number: int, piece: Reduced) -> None:
        """Take the piece of this number."""
        self._early[number] = piece
        while self.number in self._early:
            self._pending.append(self._early.pop(self.number))
            self.seen += self._pending[-1].seen
            self.number += 1
            done, *waiting = (entry.size for entry in self._pending)
            if sum(waiting) > max(MAX_PENDING_BYTES, done):
                self._pending = [merge_reduced(self._pending)]

    def total(self) -> Reduced:
        """The sum so far."""
        self._pending = [merge_reduced(self._pending)] if self._pending else [Reduced(self._name)]
        return self._pending[0]


def finish_summary(pieces: Iterable[tuple[str, Reduced]], nan: str) -> Summary:
    """Summary of all pieces, of which each has some finite row; says what was left out."""
    found: list[Reduced] = []
    dropped = 0
    for name, piece in pieces:
        dropped += piece.seen.settle(name, nan)
        check_some_rows(piece.seen.rows - piece.seen.bad, name)
        found.append(piece)
    whole = merge_reduced(found)
    assert whole.summary is not None  # each piece has a finite row
    _warn_about_lost(whole.lost, whole.summary)
    return Summary(whole.summary.keys, whole.summary.moments, whole.summary.dtype, dropped)


def _warn_about_lost(lost: "Sequence[pa.Table]", summary: Summary) -> None:
    """Name the groups of which no row was finite."""
    warn_about_lost_groups(
        {label for keys in lost for label in factors.list_labels(keys)} - set(factors.list_labels(summary.keys))
    )
