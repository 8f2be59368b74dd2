"""Datasets of HDF5 that lie in the file as they do in memory: mapped, so that h5py's one lock holds nobody up."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion import optional
from crossfusion.sources.stores import native

WORTH = 2**16  # bytes of a chunk from which looking up its place is cheaper than h5py's copy


def is_mappable(array: Any) -> bool:
    """Whether rows are stored one after the other, without gaps, filters or conversion."""
    h5py = optional.load("h5py", "h5py", "hdf5", "reading HDF5")
    if array.file.userblock_size or not array.id.get_type().equal(h5py.h5t.py_create(array.dtype)):
        return False
    if array.chunks is None:
        return array.id.get_offset() is not None
    wide = array.chunks[-1] == array.shape[-1]
    row_bytes = array.shape[-1] * array.dtype.itemsize
    return bool(wide and array.chunks[-2] * row_bytes >= WORTH and not array.id.get_create_plist().get_nfilters())


def mapped(array: Any, path: str, start: int, stop: int, size: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """Stretches of at most `size` rows, views of the file; short ones are put together."""
    memory = np.memmap(path, np.uint8, "r")
    dim, dtype = int(array.shape[-1]), array.dtype
    waiting: list[NDArray[Any]] = []
    count = 0
    for first, last, place in _pieces(array, start, stop, size):
        length = (last - first) * dim * dtype.itemsize
        if place + length > len(memory):
            raise ValueError("rows lie beyond the end of the file")
        view = memory[place : place + length].view(np.ndarray).view(dtype).reshape(-1, dim)
        waiting.append(native(np.require(view, requirements="A")))  # compiled code needs aligned values
        count += last - first
        if count > size // 4 or last == stop:
            yield last - count, waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
            waiting, count = [], 0


def _pieces(array: Any, start: int, stop: int, size: int) -> Iterator[tuple[int, int, int]]:
    """First row, last row and place in the file of stretches of at most `size` rows."""
    row_bytes = array.shape[-1] * array.dtype.itemsize
    for first, last, place in _runs(array, start, stop, row_bytes):
        for low in range(first, last, size):
            yield low, min(low + size, last), place + (low - first) * row_bytes


def check_lengths(array: Any, path: str, start: int, stop: int) -> None:
    """Refuse texts that are longer than their file: HDF5 makes room for whatever length is written there."""
    if array.chunks is not None and array.id.get_create_plist().get_nfilters():
        return  # damage shows when they are decompressed
    width = array.id.get_type().get_size()  # a length of four bytes, and the place of the text
    memory = np.memmap(path, np.uint8, "r")
    for first, last, place in _runs(array, start, stop, width):
        found = memory[place : place + (last - first) * width].reshape(-1, width)[:, :4].copy().view("<u4")
        if int(found.sum(dtype=np.int64)) > len(memory):
            raise ValueError("texts are longer than the file")


def _runs(array: Any, start: int, stop: int, row_bytes: int) -> list[tuple[int, int, int]]:
    """Stretches of rows whose chunks follow one another in the file: first row, last row and place."""
    if array.chunks is None:
        place = array.id.get_offset()
        return [] if place is None else [(start, stop, place + start * row_bytes)]
    axis = max(0, len(array.shape) - 2)
    step = int(array.chunks[axis])
    runs: list[tuple[int, int, int]] = []
    for chunk in range(start // step * step, stop, step):
        low, high = max(chunk, start), min(chunk + step, stop)
        origin = tuple(chunk if k == axis else 0 for k in range(len(array.shape)))
        place = array.id.get_chunk_info_by_coord(origin).byte_offset + (low - chunk) * row_bytes
        first, last, before = runs[-1] if runs else (low, low, place)
        if runs and place == before + (last - first) * row_bytes:
            runs[-1] = first, high, before
        else:
            runs.append((low, high, place))
    return runs
