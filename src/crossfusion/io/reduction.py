"""From chunks of rows to a summary: the one way that every engine reduces, and the one way it adds up."""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import (
    FiniteCheck,
    InputError,
    RowLens,
    arrow,
    as_rows,
    check_same_dim,
    check_some_rows,
    factors,
    find_finite_rows,
    label_rows,
    limit_blas,
    map_lazily,
    warn_about_lost_groups,
)
from crossfusion.io.sources.chunk import Chunk, Partition
from crossfusion.io.sources.manifest_match import Match, merge_matches
from crossfusion.moments import reduce_groups
from crossfusion.summary import Summary, arrange_rows, combine

if TYPE_CHECKING:
    import pyarrow as pa

MAX_PENDING_BYTES = 64 * 2**20  # bytes of moments that wait to be merged


@dataclass(frozen=True)
class RowCounts:
    """How many rows there were, how many of them not finite, and where the first of these is."""

    rows: int = 0
    bad: int = 0
    where: str = ""

    def __add__(self, other: "RowCounts") -> "RowCounts":
        return RowCounts(self.rows + other.rows, self.bad + other.bad, self.where or other.where)

    def settle(self, name: str, nan: str, so_far: bool = False) -> int:
        """Refuse rows that are not finite, or warn and return how many were left out."""
        check = FiniteCheck(name)
        check.rows, check.bad, check.where = self.rows, self.bad, self.where
        return check.settle(nan, so_far=so_far)


@dataclass(frozen=True)
class Reduction:
    """What rows have become: a summary of the finite ones, and what was seen of the others."""

    name: str  # of the file, for messages
    summary: Summary | None = None  # None: no finite row
    seen: RowCounts = RowCounts()
    lost: "tuple[pa.Table, ...]" = ()  # keys of which a chunk had no finite row
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


def reduce_chunk(chunk: Chunk, name: str, *, threads: int | None = 1, lens: RowLens | None = None) -> Reduction:
    """Reduce a chunk, whose rows are seen through a lens if there is one."""
    if lens is not None:
        with limit_blas():
            seen, mapped = _look_through(lens, chunk, name)
            return _reduce_rows(seen, mapped, chunk.keys.column_names, name, threads)
    return _reduce_rows(chunk, chunk.rows, chunk.keys.column_names, name, threads)


def _look_through(lens: RowLens, chunk: Chunk, name: str) -> tuple[Chunk, Any]:
    """The chunk with the factors that a lens adds, and its rows as the lens maps them."""
    holder = chunk.file or name
    rows, keys = as_rows(chunk.rows, holder), chunk.keys
    for factor in lens.factors:
        if factor in keys.column_names:
            raise InputError(
                problem=f"the lens adds the factor {factor!r}, which the rows have already", remedy="rename theirs"
            )
    if lens.factors:
        for factor, values in label_rows(lens, rows, holder).items():
            keys = keys.append_column(factor, factors.from_codes(values))
    return replace(chunk, rows=rows, keys=keys), map_lazily(lens, rows, holder)


def _reduce_rows(chunk: Chunk, mapped: Any, own: Sequence[str], name: str, threads: int | None) -> Reduction:
    """Reduce the mapped rows of a chunk; messages tell where its own rows, with their own factors, are not finite."""
    holder = chunk.file or name
    rows, mapped = as_rows(chunk.rows, holder), as_rows(mapped, holder)
    codes, keys = factors.encode(chunk.keys)
    if keys.num_rows == rows.shape[0] and isinstance(mapped, np.ndarray) and find_finite_rows(mapped).all():
        moments, finite = arrange_rows(mapped, codes), None
    else:
        moments, finite = reduce_groups(mapped, codes, keys.num_rows, name=holder, threads=threads)
    if finite is not None and mapped is not rows and not np.array_equal(finite, find_finite_rows(rows)):
        raise InputError(
            holder, problem="has a row that the lens maps beyond the range of float64", remedy="leave it out"
        )
    check = FiniteCheck(holder)
    check.see(rows, finite, chunk.first)
    where = f"{check.where} of {chunk.file}" if check.where and chunk.file else check.where
    seen, dtype = RowCounts(check.rows, check.bad, where), _name_type(rows.dtype)
    if keys.num_rows and moments.count.all():
        return Reduction(holder, Summary(keys, moments, dtype), seen, match=chunk.match)
    kept, lost = np.flatnonzero(moments.count > 0), np.flatnonzero(moments.count == 0)
    summary = Summary(keys.take(arrow.from_numbers(kept)), moments[kept], dtype) if len(kept) else None
    gone = (keys.take(arrow.from_numbers(lost)).select(list(own)),) if len(lost) else ()
    return Reduction(holder, summary, seen, gone, chunk.match)


def _name_type(dtype: Any) -> str:
    return "float32" if dtype.name == "bfloat16" else str(dtype.name)


def reduce_partition(partition: Partition, name: str, lens: RowLens | None = None) -> Reduction:
    """Reduce all chunks of a partition, one after the other, as a worker process does."""
    running = RunningSum(name)
    for number, chunk in enumerate(partition()):
        running.add(number, reduce_chunk(chunk, name, lens=lens))
    return running.total()


def merge_reductions(reductions: Sequence[Reduction]) -> Reduction:
    """Add up reductions, in their order."""
    if len(reductions) == 1:
        return reductions[0]
    filled = [reduction for reduction in reductions if reduction.summary is not None]
    for reduction in filled[1:]:
        check_same_dim({filled[0].name: filled[0].dim, reduction.name: reduction.dim})
    return Reduction(
        (filled or reductions)[0].name,
        combine([reduction.summary for reduction in filled if reduction.summary is not None]) if filled else None,
        reduce(operator.add, (reduction.seen for reduction in reductions)),
        tuple(keys for reduction in reductions for keys in reduction.lost),
        merge_matches(reduction.match for reduction in reductions),
    )


class RunningSum:
    """The sum of numbered reductions, merged in the order of their numbers, whatever order they come in.

    So the result has the same bits every time. Reductions are merged once those that wait exceed the sum in memory.

    Parameters
    ----------
    name : str
        What the reductions are of, for messages.
    """

    def __init__(self, name: str) -> None:
        self.number = 0  # of the next reduction to be merged
        self.seen = RowCounts()
        self._early: dict[int, Reduction] = {}
        self._pending: list[Reduction] = []
        self._waiting = 0  # bytes of those that are pending, without the first
        self._name = name

    def start(self, number: int, reduction: Reduction) -> None:
        """Go on from the sum of all reductions before this number."""
        self.number, self.seen, self._pending, self._waiting = number, reduction.seen, [reduction], 0

    def add(self, number: int, reduction: Reduction) -> None:
        """Take the reduction of this number."""
        self._early[number] = reduction
        while self.number in self._early:
            following = self._early.pop(self.number)
            self._waiting += following.size if self._pending else 0
            self._pending.append(following)
            self.seen += following.seen
            self.number += 1
            if self._waiting > max(MAX_PENDING_BYTES, self._pending[0].size):
                self.total()

    def total(self) -> Reduction:
        """The sum so far."""
        self._pending = [merge_reductions(self._pending)] if self._pending else [Reduction(self._name)]
        self._waiting = 0
        return self._pending[0]


def finish_summary(reductions: Iterable[tuple[str, Reduction]], nan: str) -> Summary:
    """Summary of all reductions, of which each has some finite row; says what was left out."""
    found: list[Reduction] = []
    dropped = 0
    for name, reduction in reductions:
        dropped += reduction.seen.settle(name, nan)
        check_some_rows(reduction.seen.rows - reduction.seen.bad, name)
        found.append(reduction)
    whole = merge_reductions(found)
    assert whole.summary is not None  # each reduction has a finite row
    _warn_about_lost(whole.lost, whole.summary)
    return Summary(whole.summary.keys, whole.summary.moments, whole.summary.dtype, dropped)


def _warn_about_lost(lost: "Sequence[pa.Table]", summary: Summary) -> None:
    """Name the groups of which no row was finite."""
    own = [name for keys in lost[:1] for name in keys.column_names]
    warn_about_lost_groups(
        {label for keys in lost for label in factors.list_labels(keys)}
        - set(factors.list_labels(summary.keys.select(own)))
    )
