"""From rows and group codes to count, mean and centered sum of squares, in one pass.

Two routes to the same numbers: NumPy for inputs of up to some tens of megabytes, which never wait for a compiler, and
a compiled, threaded kernel beyond. The choice depends on the size of the input alone, so a result does not depend on
what ran before it.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, reduce
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import CodeArray, FloatArray, thread_count

Triple = tuple[FloatArray, FloatArray, FloatArray]  # count, mean, sumsq

NUMPY_MAX_BYTES = 32 * 2**20  # bytes of rows up to which NumPy is at work before a compiler would have started
CONVERTED_BYTES = 8 * 2**20  # bytes of rows converted to C-ordered floats at a time
SEGMENT_NUMBERS = 2**16  # numbers in a segment of the NumPy route, which stay in the cache as float64


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

    def reduce(self, codes: CodeArray | None, groups: int, dtype: np.dtype[Any]) -> Triple:
        """Moments of each group, summed in `dtype` over short runs."""


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
    """Merge moments that share a code; no count and no sumsq: plain rows, of count one and without spread.

    Works on segments of a group's own sequence, so that equal groups give equal bits, and relative to the group's first
    entry, so that equal entries have a spread of exactly zero and an offset common to all costs no digits.
    """
    total = empty(groups, mean.shape[1])
    order, codes = _sort_by_code(count, codes, len(mean))
    group_starts = np.flatnonzero(np.diff(codes, prepend=-1))
    origin = np.zeros_like(total[1])
    origin[codes[group_starts]] = mean[order[group_starts]]
    for batch in _split_segments(codes, max(16, min(4096, SEGMENT_NUMBERS // mean.shape[1]))):
        entries = order[batch]
        starts = np.flatnonzero(np.diff(codes[batch], prepend=-1))
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
    return total[0], np.add(total[1], origin, out=total[1]), total[2]


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


def _split_segments(codes: NDArray[Any], limit: int) -> Iterator[slice]:
    """Split sorted codes into batches in which no group occurs in two segments.

    A segment is a run of entries of one group, counted from the group's start. A long segment is its own batch, short
    segments share one; which it is depends on the segment alone.
    """
    group_starts = np.flatnonzero(np.diff(codes, prepend=-1))
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


def reduce_rows(
    rows: Any,
    codes: CodeArray | None,
    groups: int,
    *,
    threads: int | None = None,
    wide: bool = False,
    large: bool = False,
) -> Triple:
    """Moments of each group of rows; without codes all rows are one group, a negative code leaves a row out.

    Values that overflow or are not finite show up as non-finite moments; the caller decides what that means. `wide`
    sums in float64 whatever the rows are; `large` says that these rows are some of many.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(rows, ChunkedRows) and not large:
            rows = np.asarray(rows)
        if isinstance(rows, np.ndarray) and rows.nbytes < NUMPY_MAX_BYTES and not large:
            return merge(None, rows, None, codes, groups)
        if not isinstance(rows, (np.ndarray, ChunkedRows)):
            return _reduce_sparse(rows, codes, groups)
        return _reduce_compiled(rows, codes, groups, threads or thread_count(), wide)


def choose_float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Type in which rows are summed within a short run: the narrowest float that holds them exactly."""
    narrow = dtype.itemsize <= 2 or dtype == np.float32
    return np.dtype(np.float32 if narrow else np.float64)


@lru_cache(maxsize=2)
def _load_accumulate(dtype: np.dtype[Any]) -> Any:
    from crossfusion.moments import compiled

    return compiled.compile_accumulate(dtype)


def _reduce_compiled(
    rows: NDArray[Any] | ChunkedRows, codes: CodeArray | None, groups: int, threads: int, wide: bool = False
) -> Triple:
    """Give each thread its own range of rows and its own moments, and merge these in order."""
    dtype = np.dtype(np.float64) if wide else choose_float_type(rows.dtype)
    if isinstance(rows, ReducibleRows):
        return rows.reduce(codes, groups, dtype)
    number, dim = rows.shape

    def work(start: int, stop: int) -> tuple[FloatArray, Triple]:
        chunks = rows.chunks() if isinstance(rows, ChunkedRows) else _split_for_conversion(rows[start:stop], dtype)
        return _accumulate_chunks(chunks, None if codes is None else codes[start:stop], groups, dim, dtype)

    if threads == 1 or isinstance(rows, ChunkedRows):
        origin, total = work(0, number)
    else:
        edges = np.linspace(0, number, threads + 1).astype(int).tolist()
        with ThreadPoolExecutor(threads) as pool:
            origin, total = reduce(_add_relative, pool.map(work, edges[:-1], edges[1:]))
    return total[0], np.add(total[1], origin, out=total[1]), total[2]


def _split_for_conversion(rows: NDArray[Any], dtype: np.dtype[Any]) -> Iterator[NDArray[Any]]:
    """Yield the rows whole or, if they need conversion, a few megabytes at a time."""
    native = rows.dtype == dtype and rows.flags.c_contiguous
    step = max(1, len(rows)) if native else max(1, CONVERTED_BYTES // (rows.shape[1] * dtype.itemsize))
    return (rows[start : start + step] for start in range(0, len(rows), step))


def _accumulate_chunks(
    chunks: Iterator[NDArray[Any]], codes: CodeArray | None, groups: int, dim: int, dtype: np.dtype[Any]
) -> tuple[FloatArray, Triple]:
    """Origins, and moments whose means are relative to them, of rows that come in chunks."""
    kernel = _load_accumulate(dtype)
    ahead = int(np.clip(32768 // (dim * dtype.itemsize), 1, 16))
    size = choose_tile_rows(groups)
    origin, total = np.zeros((groups, dim), dtype), empty(groups, dim)
    scratch = np.empty((3, dim), dtype), np.empty(size + ahead, np.int32), np.empty(groups, np.int64)
    start, unlabeled = 0, np.empty(0, np.int32)
    for chunk in chunks:
        ready = np.ascontiguousarray(chunk, dtype).view(np.ndarray)
        labels = unlabeled if codes is None else codes[start : start + len(ready)]
        if codes is not None and len(labels) < len(ready):
            raise ValueError(f"{len(codes)} codes for more rows")  # the kernel would read what is not there
        kernel(ready, labels, size, ahead, origin, *total, *scratch)
        start += len(ready)
    return origin.astype(np.float64, copy=False), total


def choose_tile_rows(groups: int) -> int:
    """Rows that are put in the order of their groups together."""
    return max(4096, 48 * groups)


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


def squared_distances(points: FloatArray) -> FloatArray:
    """Squared Euclidean distances between all rows, by differences, so that close pairs keep their digits."""
    number, dim = points.shape
    out = np.zeros((number, number))
    if number * number * dim < 2**28:
        for i in range(1, number):
            gap = points[:i] - points[i]
            out[i, :i] = out[:i, i] = np.einsum("ij,ij->i", gap, gap)
        return out
    kernel = _load_distance_kernel()
    threads = thread_count()
    edges = (number * np.sqrt(np.linspace(0, 1, 8 * threads + 1))).astype(int).tolist()  # equal shares of a triangle
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda start, stop: kernel(points, start, stop, out), edges[:-1], edges[1:]))
    return out


@lru_cache(maxsize=1)
def _load_distance_kernel() -> Any:
    from crossfusion.moments import compiled

    return compiled.compile_squared_distances()
