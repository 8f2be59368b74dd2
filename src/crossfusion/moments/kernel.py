"""From rows and group codes to count, mean and centered sum of squares, in one pass.

The loops are C (`_kernel.c`). Where the extension could not be built or loaded, NumPy computes the same numbers: both
sum in float64 over short runs around a center close to the group's mean, and fold the runs into the group's moments.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import CodeArray, FloatArray, multiply_matrices, thread_count

Triple = tuple[FloatArray, FloatArray, FloatArray]  # count, mean, sumsq

CONVERTED_BYTES = 8 * 2**20  # bytes of rows converted to C-ordered floats at a time
CALL_BYTES = 64 * 2**20  # bytes of rows reduced by one call, after which an interrupt is noticed
THREAD_BYTES = 16 * 2**20  # bytes of rows that are worth a thread, whose start costs as much as reading some of them
SEGMENT_NUMBERS = 2**16  # numbers in a segment of the NumPy route, which stay in the cache as float64
MAX_TILE_ROWS = 2**26  # rows that are put in the order of their groups together


def _load() -> Any:
    try:
        from crossfusion.moments import _kernel
    except ImportError:
        return None
    return _kernel


compiled = _load()  # the C extension; None: NumPy stands in


def describe_kernel() -> str:
    """Name the kernel in use."""
    return "NumPy" if compiled is None else f"C ({compiled.instructions()})"


@runtime_checkable
class ChunkedRows(Protocol):
    """Rows × features that are decoded chunk by chunk while they are reduced."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def chunks(self) -> Iterator[NDArray[Any]]:
        """Arrays of some rows each, in order."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """All rows in one array."""


@runtime_checkable
class ReducibleRows(Protocol):
    """Rows that know a faster way to reduce themselves than chunk by chunk, such as column by column."""

    def reduce(self, codes: CodeArray | None, groups: int) -> Triple:
        """Moments of each group."""


def add(a: Triple, b: Triple) -> Triple:
    """Merge moments element by element (Chan, Golub, LeVeque 1983); an empty side changes no bit of the other."""
    count = a[0] + b[0]
    share = np.divide(b[0], count, out=np.zeros_like(count), where=count > 0)
    gap = b[1] - a[1]
    mean = a[1] + gap * share[..., None]
    sumsq = a[2] + b[2] + gap * (gap * (a[0] * share)[..., None])
    return count, mean, sumsq


def empty(groups: int, dim: int) -> Triple:
    """Moments of no rows."""
    return np.zeros(groups), np.zeros((groups, dim)), np.zeros((groups, dim))


def merge(
    count: NDArray[Any] | None, mean: NDArray[Any], sumsq: FloatArray | None, codes: NDArray[Any] | None, groups: int
) -> Triple:
    """Merge moments that share a code; no count and no sumsq: plain rows, of count one and without spread."""
    origin, total = _merge_relative(count, mean, sumsq, codes, groups)
    return total[0], np.add(total[1], origin, out=total[1]), total[2]


def _merge_relative(
    count: NDArray[Any] | None, mean: NDArray[Any], sumsq: FloatArray | None, codes: NDArray[Any] | None, groups: int
) -> tuple[FloatArray, Triple]:
    """Origins, and merged moments whose means are relative to them.

    Works on segments of a group's own sequence, so that equal groups give equal bits, and relative to the group's first
    entry, so that equal entries have a spread of exactly zero and an offset common to all costs no digits.
    """
    total = empty(groups, mean.shape[1])
    order, codes = _sort_by_code(count, codes, len(mean))
    group_starts = _find_starts(codes)
    origin = np.zeros_like(total[1])
    origin[codes[group_starts]] = mean[order[group_starts]]
    for batch in _split_segments(codes, max(16, min(4096, SEGMENT_NUMBERS // mean.shape[1]))):
        entries = order[batch]
        starts = _find_starts(codes[batch])
        here = codes[batch][starts]
        added = _merge_segments(
            None if count is None else count[entries].astype(np.float64)[:, None],
            mean[entries].astype(np.float64),
            None if sumsq is None else sumsq[entries],
            starts,
            origin[here],
        )
        for whole, updated in zip(total, add((total[0][here], total[1][here], total[2][here]), added), strict=True):
            whole[here] = updated
    return origin, total


def _merge_segments(
    weight: FloatArray | None,
    values: FloatArray,
    sumsq: FloatArray | None,
    starts: NDArray[np.intp],
    origin: FloatArray,
) -> Triple:
    """Merge the entries of each segment, relative to its origin; `values` is used up."""
    sizes = np.diff(starts, append=len(values))

    def spread(segments: FloatArray) -> FloatArray:
        return segments if len(starts) == 1 else np.repeat(segments, sizes, axis=0)

    def fold(entries: FloatArray) -> FloatArray:
        return entries.sum(axis=0, keepdims=True) if len(starts) == 1 else np.add.reduceat(entries, starts, axis=0)

    number = sizes[:, None].astype(np.float64) if weight is None else fold(weight)
    values -= spread(origin)
    shift = fold(values if weight is None else values * weight) / number
    values -= spread(shift)
    np.multiply(values, values, out=values)
    if weight is not None:
        values *= weight
    if sumsq is not None:
        values += sumsq
    return number[:, 0], shift, fold(values)


def _sort_by_code(
    count: NDArray[Any] | None, codes: NDArray[Any] | None, number: int
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Indices of the entries that count, in the order of their codes, and those codes."""
    if codes is None:
        codes = np.zeros(number, np.int32)
    kept = np.flatnonzero(codes >= 0 if count is None else (codes >= 0) & (count > 0))
    order = kept[np.argsort(codes[kept], kind="stable")]
    return order, codes[order]


def _find_starts(codes: NDArray[Any]) -> NDArray[np.intp]:
    """Indices at which a new code begins."""
    changes = np.ones(len(codes), bool)
    np.not_equal(codes[1:], codes[:-1], out=changes[1:])
    return np.flatnonzero(changes)


def _split_segments(codes: NDArray[Any], limit: int) -> Iterator[slice]:
    """Split sorted codes into batches in which no group occurs in two segments.

    A segment is a run of entries of one group, counted from the group's start. A long segment is its own batch, short
    segments share one; which it is depends on the segment alone.
    """
    group_starts = _find_starts(codes)
    position = np.arange(len(codes)) - np.repeat(group_starts, np.diff(group_starts, append=len(codes)))
    starts = np.flatnonzero(position % limit == 0)
    edges = np.append(starts, len(codes))
    long = np.flatnonzero(np.diff(edges) >= 16)
    segment = 0
    while segment < len(starts):
        if edges[segment + 1] - edges[segment] >= 16:
            following = segment + 1
        else:
            within_limit = int(np.searchsorted(starts, starts[segment] + limit))
            next_long = int(np.searchsorted(long, segment))
            following = min(within_limit, int(long[next_long])) if next_long < len(long) else within_limit
        yield slice(int(starts[segment]), int(edges[following]))
        segment = following


def reduce_rows(rows: Any, codes: CodeArray | None, groups: int, *, threads: int | None = None) -> Triple:
    """Moments of each group of rows; without codes all rows are one group, a negative code leaves a row out.

    Values that overflow or are not finite show up as non-finite moments; the caller decides what that means.
    """
    if codes is not None:
        codes = check_codes(codes, rows, groups)
    elif groups < 1 or rows.shape[1] < 1:
        raise ValueError(f"{groups} groups of rows of shape {rows.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(rows, ReducibleRows):
            return rows.reduce(codes, groups)
        if isinstance(rows, ChunkedRows):
            return reduce_chunks(rows.chunks(), rows.shape, codes, groups).result()
        if not isinstance(rows, np.ndarray):
            return _reduce_sparse(rows, codes, groups)
        return _reduce_on_threads(rows, codes, groups, threads or thread_count())


def check_codes(codes: NDArray[Any], rows: Any, groups: int) -> CodeArray:
    """Return codes as the loops take them; refuse codes and rows that no loop can take."""
    if codes.dtype.kind not in "iu" or codes.shape != (rows.shape[0],) or rows.shape[1] < 1:
        raise ValueError(f"codes of type {codes.dtype} and shape {codes.shape} for rows of shape {rows.shape}")
    if codes.size and codes.max() >= groups:
        raise ValueError(f"code {codes.max()} for {groups} groups")
    return codes if codes.dtype == np.int32 else np.maximum(codes.astype(np.int64), -1).astype(np.int32)


def _reduce_on_threads(rows: NDArray[Any], codes: CodeArray | None, groups: int, threads: int) -> Triple:
    """Give each thread its own range of rows and its own moments, and merge these in order."""

    def work(start: int, stop: int) -> "Accumulator":
        own = rows[start:stop]
        return reduce_chunks(split_for_conversion(own), own.shape, None if codes is None else codes[start:stop], groups)

    most = len(rows) // (4 * max(1, groups))  # moments of many groups cost memory on each thread
    threads = min(threads, rows.nbytes // THREAD_BYTES, most)
    if threads <= 1:
        return work(0, len(rows)).result()
    edges = np.linspace(0, len(rows), threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        return reduce(Accumulator.merge, pool.map(work, edges[:-1], edges[1:])).result()


def split_for_conversion(rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield rows that the kernel can read: as they are or, if they need conversion, a few megabytes at a time."""
    dtype = choose_float_type(rows.dtype)
    native = rows.dtype == dtype and rows.flags.c_contiguous and rows.flags.aligned
    step = max(1, (CALL_BYTES if native else CONVERTED_BYTES) // max(1, rows.shape[1] * dtype.itemsize))
    for start in range(0, len(rows), step):
        yield as_kernel_rows(rows[start : start + step])


def as_kernel_rows(rows: NDArray[Any]) -> NDArray[Any]:
    """C-ordered float32 or float64 rows of a plain array."""
    dtype = choose_float_type(rows.dtype)
    if type(rows) is np.ndarray and rows.dtype == dtype and rows.flags.c_contiguous and rows.flags.aligned:
        return rows
    return np.require(rows, dtype, ["C", "A"]).view(np.ndarray)


def choose_float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Type in which rows are read: the narrowest float that holds them exactly."""
    narrow = dtype.itemsize <= 2 or dtype == np.float32
    return np.dtype(np.float32 if narrow else np.float64)


def reduce_chunks(
    chunks: Iterator[NDArray[Any]], shape: tuple[int, ...], codes: CodeArray | None, groups: int
) -> "Accumulator":
    """Accumulate rows of a shape that come in chunks."""
    total, start = Accumulator(groups, shape[1]), 0
    for chunk in chunks:
        total.add(as_kernel_rows(chunk), None if codes is None else codes[start : start + len(chunk)])
        start += len(chunk)
    return total


class Accumulator:
    """Moments of groups, to which rows are added; means are relative to the first row of each group.

    Parameters
    ----------
    groups : int
        Number of groups.
    dim : int
        Number of features.
    """

    def __init__(self, groups: int, dim: int) -> None:
        self.origin, self.total = np.zeros((groups, dim)), empty(groups, dim)

    def add(self, rows: NDArray[Any], codes: CodeArray | None) -> None:
        """Add rows as `as_kernel_rows` returns them."""
        groups = len(self.origin)
        if codes is not None and len(codes) != len(rows):
            raise ValueError(f"{len(codes)} codes for {len(rows)} rows")
        if compiled is not None:
            codes = None if codes is None else np.ascontiguousarray(codes, np.int32)
            compiled.accumulate(rows, codes, min(max(4096, 48 * groups), MAX_TILE_ROWS), self.origin, *self.total)
        elif len(rows):
            self.origin, self.total = _add_relative(
                (self.origin, self.total), _merge_relative(None, rows, None, codes, groups)
            )

    def merge(self, other: "Accumulator") -> "Accumulator":
        """Add the rows of another one."""
        self.origin, self.total = _add_relative((self.origin, self.total), (other.origin, other.total))
        return self

    def result(self) -> Triple:
        """Count, mean and sum of squares; the accumulator is used up."""
        count, mean, sumsq = self.total
        tiny = np.finfo(np.float64).smallest_subnormal
        np.copyto(sumsq, tiny, where=(sumsq == 0) & (mean != 0))  # these differ, though their squares are no numbers
        return count, np.add(mean, self.origin, out=mean), sumsq


def _add_relative(a: tuple[FloatArray, Triple], b: tuple[FloatArray, Triple]) -> tuple[FloatArray, Triple]:
    """Merge moments whose means are relative to origins of their own, without leaving these."""
    (origin_a, left), (origin_b, (count, mean, sumsq)) = a, b
    origin = np.where(left[0][:, None] > 0, origin_a, origin_b)
    return origin, add(left, (count, mean + (origin_b - origin), sumsq))


def _reduce_sparse(rows: Any, codes: CodeArray | None, groups: int) -> Triple:
    """Moments of CSR rows from their stored values: what is not stored adds (0 - mean)² each."""
    from scipy import sparse

    total = empty(groups, rows.shape[1])
    order, codes = _sort_by_code(None, codes, rows.shape[0])
    for where in _split_segments(codes, 4096):
        chunk = rows[order[where]].astype(np.float64)
        chunk.sum_duplicates()
        present, local = np.unique(codes[where], return_inverse=True)
        member = sparse.csr_array((np.ones(len(local)), (local, np.arange(len(local)))), (len(present), len(local)))
        count = np.bincount(local, minlength=len(present)).astype(np.float64)
        absent = count[:, None] - (member @ _replace_data(chunk, np.ones(chunk.nnz))).toarray()
        owner = np.repeat(local, np.diff(chunk.indptr))

        mean = (member @ chunk).toarray() / count[:, None]
        rest = (member @ _replace_data(chunk, chunk.data - mean[owner, chunk.indices])).toarray() - absent * mean
        mean += rest / count[:, None]  # equal values have exactly their own value as mean
        squares = (chunk.data - mean[owner, chunk.indices]) ** 2
        sumsq = (member @ _replace_data(chunk, squares)).toarray() + absent * mean**2
        merged = add((total[0][present], total[1][present], total[2][present]), (count, mean, sumsq))
        for whole, updated in zip(total, merged, strict=True):
            whole[present] = updated
    return total


def _replace_data(matrix: Any, data: FloatArray) -> Any:
    """Sparse matrix of the same structure with other values."""
    return type(matrix)((data, matrix.indices, matrix.indptr), matrix.shape)


def add_members(belongs: NDArray[np.bool_], rows: FloatArray, sums: FloatArray) -> None:
    """Add the sum of the rows that belong to each set to its sums, in place, inside `map_threads`."""
    if compiled is None:
        sums += multiply_matrices(belongs.astype(np.float64), rows)
    else:
        compiled.add_members(np.ascontiguousarray(belongs), np.require(rows, np.float64, ["C", "A"]), sums)


def squared_distances(points: FloatArray) -> FloatArray:
    """Squared Euclidean distances between all rows, by differences, so that close pairs keep their digits."""
    number = len(points)
    out = np.zeros((number, number))
    if compiled is None:
        for i in range(1, number):
            gap = points[:i] - points[i]
            out[i, :i] = out[:i, i] = np.einsum("ij,ij->i", gap, gap)
        return out
    threads = thread_count() if points.nbytes * number > 2**28 else 1
    edges = (number * np.sqrt(np.linspace(0, 1, 8 * threads + 1))).astype(int).tolist()  # equal shares of a triangle
    kernel, points = compiled.squared_distances, np.require(points, np.float64, ["C", "A"]).view(np.ndarray)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda start, stop: kernel(points, start, stop, out), edges[:-1], edges[1:]))
    return out
