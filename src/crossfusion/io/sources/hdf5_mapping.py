"""Uncompressed HDF5 datasets, mapped into memory: three times as fast as h5py, whose lock lets one thread read."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import optional
from crossfusion.io.sources.array_stores import as_native

MIN_MAPPED_BYTES = 2**16  # of an HDF5 chunk, below which looking up its offset takes longer than h5py's copy


def is_mappable(array: Any) -> bool:
    """Whether the file holds the rows exactly as memory does, contiguous or in chunks of whole rows."""
    h5py = optional.load("h5py", "h5py", "hdf5", "reading HDF5")
    if array.file.userblock_size or not array.id.get_type().equal(h5py.h5t.py_create(array.dtype)):
        return False
    if array.chunks is None:
        return array.id.get_offset() is not None
    chunk_bytes = array.chunks[-2] * array.shape[-1] * array.dtype.itemsize
    is_whole = array.chunks[-1] == array.shape[-1] and chunk_bytes >= MIN_MAPPED_BYTES
    return bool(is_whole and not array.id.get_create_plist().get_nfilters())


def map_rows(array: Any, path: str, start: int, stop: int, size: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """Chunks of at most `size` rows, as views of the file; runs that are much shorter are put together."""
    memory = np.memmap(path, np.uint8, "r")
    row_bytes = array.shape[-1] * array.dtype.itemsize
    views: list[NDArray[Any]] = []
    count = 0
    for first, last, offset in _split_runs(_find_runs(array, start, stop, row_bytes), size, row_bytes):
        end = offset + (last - first) * row_bytes
        if end > len(memory):
            raise ValueError("rows lie beyond the end of the file")
        view = np.require(memory[offset:end].view(np.ndarray).view(array.dtype), requirements="A")
        views.append(as_native(view.reshape(last - first, -1)))  # aligned, as compiled code needs it
        count += last - first
        if count > size // 4 or last == stop:
            yield last - count, views[0] if len(views) == 1 else np.concatenate(views)
            views, count = [], 0


def _find_runs(array: Any, start: int, stop: int, row_bytes: int) -> list[tuple[int, int, int]]:
    """Runs of rows that are contiguous in the file: first row, row after the last, and offset in bytes."""
    if array.chunks is None:
        return [(start, stop, array.id.get_offset() + start * row_bytes)]
    axis = len(array.shape) - 2
    step = int(array.chunks[axis])
    runs: list[tuple[int, int, int]] = []
    for chunk in range(start // step * step, stop, step):
        low, high = max(chunk, start), min(chunk + step, stop)
        origin = tuple(chunk if k == axis else 0 for k in range(len(array.shape)))
        offset = array.id.get_chunk_info_by_coord(origin).byte_offset + (low - chunk) * row_bytes
        if runs and offset == runs[-1][2] + (low - runs[-1][0]) * row_bytes:
            runs[-1] = runs[-1][0], high, runs[-1][2]
        else:
            runs.append((low, high, offset))
    return runs


def _split_runs(runs: list[tuple[int, int, int]], size: int, row_bytes: int) -> Iterator[tuple[int, int, int]]:
    """The same runs, none of more than `size` rows."""
    for first, last, offset in runs:
        for low in range(first, last, size):
            yield low, min(low + size, last), offset + (low - first) * row_bytes
