"""Datasets of HDF5 that lie in the file as they do in memory: mapped, so that h5py's one lock holds nobody up."""

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import optional
from crossfusion.io.sources.array_stores import as_native
from crossfusion.io.sources.heaps import check_collections

DEFLATE = 1  # the number of this filter
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
        waiting.append(as_native(np.require(view, requirements="A")))  # compiled code needs aligned values
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
    """Refuse texts that are longer than their file: HDF5 makes room for whatever length is written there.

    And those in collections that HDF5 would never be done with.
    """
    address, length = array.file.id.get_create_plist().get_sizes()
    width = 4 + address + 4  # the length of a text, the address of its collection, the place in it
    memory = np.memmap(path, np.uint8, "r").view(np.ndarray)
    collections: list[NDArray[Any]] = []
    for data in _references(array, memory, start, stop, width):
        found = np.frombuffer(data, np.uint8, len(data) // width * width).reshape(-1, width)
        lengths = found[:, :4].copy().view("<u4").ravel()
        if int(lengths.sum(dtype=np.int64)) > len(memory):
            raise ValueError("texts are longer than the file")
        collections.append(np.unique(found[lengths > 0, 4:-4].copy().view(f"<u{address}")))
    if collections:
        used = np.unique(np.concatenate(collections))
        places = used[used < len(memory)].astype(np.int64) + array.file.userblock_size
        check_collections(memory, places, length)


def _references(array: Any, memory: NDArray[np.uint8], start: int, stop: int, width: int) -> Iterator[bytes]:
    """Where texts are, as the file has it: chunk by chunk, unpacked where that is a matter of zlib alone."""
    plan = array.id.get_create_plist()
    if array.chunks is None or not plan.get_nfilters():
        for first, last, place in _runs(array, start, stop, width):
            yield memory[place : place + (last - first) * width].tobytes()
    elif plan.get_nfilters() == 1 and plan.get_filter(0)[0] == DEFLATE:
        step = int(array.chunks[0])
        for chunk in range(start // step * step, stop, step):
            yield zlib.decompress(array.id.read_direct_chunk((chunk,))[1])


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
