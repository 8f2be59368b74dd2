"""NumPy's `.npy` files: memory-mapped where they are local, read by ranges where they are not."""

import errno
import io
import math
import mmap
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import InputError, as_rows
from crossfusion.io.sources import chunk, paths
from crossfusion.io.sources.chunk import Chunk, Source, cut_evenly

UNREADABLE = "is not a readable .npy file of numbers"
MADV_POPULATE_READ = 22  # MADV_POPULATE_READ of Linux 5.14 and later

PARSER_LOCK = Lock()  # parsers of Python 3.11 count how deep they are for all threads together
MAX_HEADER_BYTES = 10_000  # bytes; what NumPy takes
READERS = {  # by version: bytes of the header's length, and what reads from there
    (1, 0): (2, np.lib.format.read_array_header_1_0),
    (2, 0): (4, np.lib.format.read_array_header_2_0),
}


@dataclass(frozen=True)
class Header:
    """What an array file says of itself."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    columns: bool  # the values of a column, not of a row, lie side by side
    offset: int  # where the values begin

    @property
    def size(self) -> int:
        """Bytes of the values."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def row_bytes(self) -> int:
        """Bytes of an entry along the first axis."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize


def read_header(file: IO[bytes]) -> Header:
    """Header of an array, from a file at its start; raises ValueError for what is none, or for pickled objects."""
    version = np.lib.format.read_magic(file)
    if version not in READERS:
        raise ValueError(f"format {version[0]}.{version[1]} is not one of plain numbers")
    width, read = READERS[version]
    length = file.read(width)
    if int.from_bytes(length, "little") > MAX_HEADER_BYTES:  # before it is read, since it may be anything
        raise ValueError("its header is too long")
    written = io.BytesIO(length + file.read(int.from_bytes(length, "little")))
    with PARSER_LOCK:
        shape, columns, dtype = read(written)
    if dtype.hasobject or dtype.names is not None or not dtype.itemsize:
        raise ValueError(f"it holds {'pickled objects' if dtype.hasobject else dtype}, not plain values")
    if any(length < 0 for length in shape):
        raise ValueError(f"its shape is {shape}")
    return Header(dtype, shape, bool(columns) and len(shape) > 1, file.tell())


def check_rows(header: Header, name: str) -> None:
    """Refuse an array that is not rows × features of numbers, before any of it is read."""
    shape = tuple(min(length, 2) for length in header.shape)  # what it is shows from a corner of it
    try:
        as_rows(np.broadcast_to(np.zeros((), header.dtype), shape), name)
    except InputError as problem:
        seen = problem.problem.replace(str(shape), str(header.shape))
        raise InputError(problem.argument, problem=seen, remedy=problem.remedy) from problem


def from_npy(path: str, by: Sequence[str], _vectors: Any = None) -> Source:
    """A `.npy` file, which has rows but no columns to name."""
    name = paths.show_path(path)
    if by:
        raise InputError(
            problem=f"{name} holds rows without columns, so {by[0]!r} is not in it", remedy="use .npz, .csv or .parquet"
        )
    with paths.open_binary(path) as file, paths.translate_errors(path, UNREADABLE):
        header = read_header(file)
        size = file.seek(0, os.SEEK_END) - header.offset
        if header.size > size:
            raise ValueError(f"its shape {header.shape} needs {header.size} bytes, but it holds {size}")
    check_rows(header, name)
    read, size = (
        (_read_ranges, chunk.CHUNK_BYTES) if paths.is_remote(path) else (_map_rows, 2 * chunk.CHUNK_BYTES)
    )  # maps cost no memory
    cuts = cut_evenly(header.shape[0], header.row_bytes, size)
    return Source(name, [partial(read, path, header, *cut) for cut in cuts], header.shape[0])


def _map_rows(path: str, header: Header, start: int, stop: int) -> Iterator[Chunk]:
    """Rows of a local file, without a copy."""
    if stop > start:
        low, high = (0, header.size) if header.columns else (start * header.row_bytes, stop * header.row_bytes)
        values = _map_bytes(path, header.offset + low, header.offset + high, whole=not header.columns)
        yield Chunk(_reshape_rows(values.view(header.dtype), header, start, stop), make_empty_keys(), start)


def _reshape_rows(values: NDArray[Any], header: Header, start: int, stop: int) -> NDArray[Any]:
    if header.columns:
        return values.reshape(header.shape, order="F")[start:stop]
    return values.reshape(stop - start, *header.shape[1:])


def _map_bytes(path: str, low: int, high: int, whole: bool) -> NDArray[np.uint8]:
    """Bytes of a file, mapped; `whole`: all at once, which takes half as long as a fault for every few pages."""
    begin = low // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
    with paths.translate_errors(path, "has changed while it was read"), open(path, "rb") as file:
        area = mmap.mmap(file.fileno(), high - begin, access=mmap.ACCESS_READ, offset=begin)
        if whole and sys.platform == "linux":
            _populate(area)
    return np.frombuffer(area, np.uint8, high - low, low - begin)


def _populate(area: mmap.mmap) -> None:
    try:
        area.madvise(MADV_POPULATE_READ)
    except OSError as problem:
        if problem.errno != errno.EINVAL:  # which an older kernel says
            raise


def _read_ranges(path: str, header: Header, start: int, stop: int) -> Iterator[Chunk]:
    """Rows of a remote file; of one that lies by columns, a range of each."""
    if stop == start:
        return
    with paths.open_binary(path) as file, paths.translate_errors(path, paths.DAMAGED):
        if header.columns:
            rows = np.empty((*header.shape[:0:-1], stop - start), header.dtype)
            for k, column in enumerate(rows):
                file.seek(header.offset + (k * header.shape[0] + start) * header.dtype.itemsize)
                fill_array(file, column)
            rows = rows.T
        else:
            rows = np.empty((stop - start, *header.shape[1:]), header.dtype)
            file.seek(header.offset + start * header.row_bytes)
            fill_array(file, rows)
    yield Chunk(rows, make_empty_keys(), start)


def fill_array(file: IO[bytes], values: NDArray[Any]) -> None:
    """Read as many bytes as an array takes."""
    view, done = values.reshape(-1).view(np.uint8), 0
    while done < len(view):
        data = file.read(min(len(view) - done, 2**20))
        if not data:
            raise EOFError(f"it ends after {done} of {len(view)} bytes")
        view[done : done + len(data)] = np.frombuffer(data, np.uint8)
        done += len(data)


def make_empty_keys() -> Any:
    """Factors of rows that have none."""
    import pyarrow as pa

    return pa.table({})
