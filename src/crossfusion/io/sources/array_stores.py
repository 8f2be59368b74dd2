"""Stores of named arrays, HDF5 and Zarr: which array holds the rows, which ones the factors, and how both are read.

The two libraries give the same objects, groups and arrays with ``[...]``, ``attrs``, ``shape`` and ``dtype``. What
differs between them is a `Store`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FileError, InputError, arg, as_names, check_known, check_length
from crossfusion.io.sources import chunk, paths
from crossfusion.io.sources.chunk import Chunk, Source
from crossfusion.io.sources.factor_columns import Column, is_group, open_column

MAX_DECODED_BYTES = 2**30  # bytes that may have to be decoded at once
MAX_ENTRIES = 10_000  # entries of a store that are looked at to find the rows
MIN_PARTITIONS = 8  # partitions that a store has at the least, if it has as many chunks
MAX_CHUNKS_PER_PARTITION = 16  # chunks that a partition has at the most


class Store(ABC):
    """A library that stores arrays in files. Instances hold a path alone, so partitions can be sent elsewhere.

    Parameters
    ----------
    path : str
        The file or folder; empty where another library has opened it.
    """

    what = ""  # the kind of file, for messages

    def __init__(self, path: str = "") -> None:
        self.path = path

    @abstractmethod
    def open(self, path: str) -> AbstractContextManager[Any]:
        """The group, or array, at the root."""

    def names(self, group: Any) -> Iterable[Any]:
        """Names of what is in a group, of which some may turn out to be nothing."""
        names: Iterable[Any] = iter(group)
        return names

    @abstractmethod
    def check(self, array: Any, holder: str) -> None:
        """Refuse an array that cannot be decoded, or not without too much memory."""

    @abstractmethod
    def check_written(self, array: Any, holder: str) -> None:
        """Refuse an array that was declared but never written, which would read as zeros without end."""

    @abstractmethod
    def step(self, array: Any) -> int:
        """Rows that are read together, since they share chunks."""

    def rows(self, array: Any, _path: str, start: int, stop: int, size: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """Chunks of about `size` rows of a two-dimensional array, each with the index of its first row."""
        for first in range(start, stop, size):
            yield first, read_dense(array, first, min(first + size, stop))

    @abstractmethod
    def entries(self, array: Any, start: int, stop: int) -> NDArray[Any]:
        """Values of a one-dimensional array, text as `str`."""


def translate_errors(path: str, what: str) -> AbstractContextManager[None]:
    """Whatever a library raises about a file, said in one sentence of ours."""
    return paths.translate_errors(path, f"cannot be read as {what}, so write it again")


def is_number(dtype: Any) -> bool:
    """Whether vectors can be made of this type."""
    return bool((dtype.kind in "fiub" and dtype.itemsize <= 8) or dtype.name == "bfloat16")


def walk_arrays(store: Store, group: Any) -> Iterator[tuple[str, Any]]:
    """Path and array of all arrays below a group, nearest first; of many, some."""
    waiting, seen = [("", group)], 0
    while waiting:
        prefix, parent = waiting.pop(0)
        for key in store.names(parent):
            entry = parent.get(key)
            name = key.decode("utf-8", "backslashreplace") if isinstance(key, bytes) else key
            seen += 1
            if seen > MAX_ENTRIES:
                return
            if entry is None:
                continue  # a link to nowhere
            if is_group(entry):
                waiting.append((f"{prefix}{name}/", entry))
            else:
                yield prefix + name, entry


def from_group(store: Store, root: Any, path: str, by: Sequence[str], vectors: Any) -> Source:
    """Rows of a two-dimensional array, under factors of one-dimensional ones."""
    called = paths.show_path(path)
    name = _find_rows(store, root, called, by, vectors)
    array = root[name] if name else root
    holder = f"{called}: {name}" if name else called
    check_matrix(store, array, holder)
    rows, dim = array.shape[-2:]
    found = {factor: _find_factor(root, factor, name) for factor in by}
    for factor, place in found.items():
        _check_exists(store, root, place, called)
        length = open_column(store, root[place], f"{called}: {place}").length
        check_length(length, rows, f"{factor} of {called}", name)
    read = partial(_read_chunks, store, path, name, found)
    cuts = cut_by_step(rows, dim * array.dtype.itemsize, store.step(array))
    return Source(called, [partial(read, *cut) for cut in cuts], rows)


def _find_rows(store: Store, root: Any, path: str, by: Sequence[str], vectors: Any) -> str:
    """Path of the array that holds the rows; empty where the store is that array itself."""
    if not is_group(root):
        if by or vectors is not None:
            name = by[0] if by else vectors
            raise InputError(
                problem=f"{path} is one array without names, so {name!r} is not in it", remedy="use a group of arrays"
            )
        return ""
    if vectors is not None:
        names = as_names(vectors, "vectors", "array")
        if len(names) != 1:
            raise InputError("vectors", vectors, f"must be the name of one array of {path}, rows × features")
        _check_exists(store, root, names[0], path)
        return names[0].strip("/")
    flat = [name for name, array in walk_arrays(store, root) if _is_matrix(array) and name not in by]
    if len(flat) != 1:
        found = f"{len(flat)} two-dimensional arrays of numbers" if flat else "no two-dimensional array of numbers"
        listed = f" ({', '.join(flat[:6])}{', ...' if len(flat) > 6 else ''})" if flat else ""
        raise InputError(
            problem=f"{path} has {found}{listed}", remedy=f"name the one with the rows in {arg('vectors')}"
        )
    return flat[0]


def _is_matrix(array: Any) -> bool:
    shape = tuple(array.shape or ())
    return is_number(array.dtype) and (len(shape) == 2 or (len(shape) == 3 and shape[0] == 1))


def _check_exists(store: Store, root: Any, name: str, path: str) -> None:
    if name.strip("/") == "" or root.get(name) is None:
        check_known([name], [known for known, _ in walk_arrays(store, root)], "array", path)


def _find_factor(root: Any, name: str, vectors: str) -> str:
    """Path of a factor: from the root or, if there is none, from the group of the rows."""
    folder = vectors.rpartition("/")[0]
    return name if root.get(name) is not None or not folder else f"{folder}/{name}"


def check_matrix(store: Store, array: Any, holder: str) -> None:
    """Refuse what is not an array of numbers, rows × features, or 1 × rows × features."""
    if is_group(array):
        raise InputError(
            problem=f"{holder} is a group, not an array", remedy=f"name an array in it, {holder.rpartition(' ')[2]}/..."
        )
    if not is_number(array.dtype):
        raise InputError(
            problem=f"{holder} holds {array.dtype} values", remedy="vectors need real numbers of up to 64 bits"
        )
    if not _is_matrix(array):
        raise InputError(problem=f"{holder} has shape {array.shape}", remedy="vectors need an array of rows × features")
    store.check(array, holder)
    store.check_written(array, holder)
    rows, dim = array.shape[-2:]
    size = min(store.step(array), rows) * dim * array.dtype.itemsize
    if size > MAX_DECODED_BYTES:
        raise FileError(
            holder,
            f"shares chunks among so many rows that {size / 2**30:.1f} GB are read at once",
            "write it in chunks of fewer rows",
        )


def cut_by_step(rows: int, row_bytes: int, step: int) -> list[tuple[int, int, int]]:
    """Start, stop and rows per chunk of each partition; chunks are whole steps of about `CHUNK_BYTES`."""
    step = max(1, min(step, rows))
    size = max(1, chunk.CHUNK_BYTES // max(1, row_bytes) // step) * step
    partition_rows = size * max(1, min(MAX_CHUNKS_PER_PARTITION, rows // size // MIN_PARTITIONS))
    return [(start, min(start + partition_rows, rows), size) for start in range(0, max(rows, 1), partition_rows)]


def _read_chunks(
    store: Store, path: str, name: str, by: dict[str, str], start: int, stop: int, size: int
) -> Iterator[Chunk]:
    with translate_errors(path, store.what), store.open(path) as root:
        array = root[name] if name else root
        columns = {
            factor: open_column(store, root[place], f"{paths.show_path(path)}: {factor}")
            for factor, place in by.items()
        }
        for first, rows in store.rows(array, path, start, stop, size):
            yield Chunk(rows, read_keys(columns, first, first + rows.shape[0]), first)


def read_dense(array: Any, start: int, stop: int) -> NDArray[Any]:
    """Rows of an array, in the byte order of this machine."""
    return as_native(np.asarray(array[0, start:stop] if len(array.shape) == 3 else array[start:stop]))


def as_native(rows: NDArray[Any]) -> NDArray[Any]:
    """The same values in the byte order of this machine."""
    return rows if rows.dtype.isnative else rows.astype(rows.dtype.newbyteorder("="))


def read_keys(columns: dict[str, Column], start: int, stop: int) -> Any:
    """Factor values of a chunk of rows, as an Arrow table."""
    import pyarrow as pa

    return pa.table({name: found.read(start, stop) for name, found in columns.items()})
