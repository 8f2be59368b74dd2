"""HDF5 files: datasets of rows and of factor values."""

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FileError, InputError, optional
from crossfusion.io.sources import chunk, paths
from crossfusion.io.sources.array_stores import MAX_DECODED_BYTES, Store, from_group, translate_errors
from crossfusion.io.sources.chunk import Source
from crossfusion.io.sources.decoded_size import DEFLATE_RATIO, exceeds_by_inflating
from crossfusion.io.sources.factor_columns import read_encoding
from crossfusion.io.sources.h5ad import from_anndata
from crossfusion.io.sources.hdf5_mapping import is_mappable, map_rows


def load_h5py() -> Any:
    """The module h5py."""
    return optional.load("h5py", "h5py", "hdf5", "reading HDF5")


class Hdf5(Store):
    """HDF5 through h5py."""

    what = "an HDF5 file"

    def open(self, path: str) -> AbstractContextManager[Any]:
        """The root group, read-only; a file that is being written is refused where the file system can tell."""
        opened: AbstractContextManager[Any] = (
            load_h5py().File(paths.open_binary(path), "r")
            if paths.is_remote(path)
            else load_h5py().File(path, "r", locking="best-effort")
        )
        return opened

    def check(self, array: Any, holder: str) -> None:
        """Refuse values in other files, lists, huge compressed chunks, and what was never written."""
        if array.is_virtual or array.external or self._is_linked(array):
            raise InputError(problem=f"{holder} keeps its values in other files", remedy="read those files")
        if array.dtype.kind == "O" and load_h5py().check_string_dtype(array.dtype) is None:
            raise InputError(
                problem=f"{holder} holds lists or references", remedy="a factor needs one plain value per row"
            )
        compressed = array.chunks is not None and _is_filtered(array)
        if compressed and math.prod(array.chunks) * array.dtype.itemsize > MAX_DECODED_BYTES:
            raise FileError(
                holder, f"has chunks of more than {MAX_DECODED_BYTES // 2**30} GB", "write it in smaller ones"
            )
        self.check_written(array, holder)
        if compressed and _count_compressions(array) > 1:
            raise FileError(holder, f"is compressed {_count_compressions(array)} times", "compress it once")
        if compressed and array.compression == "gzip" and _has_bomb(array):
            raise FileError(holder, "has a chunk that decodes to more than was declared", "write it again")

    def _is_linked(self, array: Any) -> bool:
        """Whether an external link has led to another file, whose offsets mean nothing in this one."""
        file = array.file
        if paths.is_remote(self.path):
            return bool(file.driver != "fileobj")  # which only the file that was opened has
        return bool(self.path) and not os.path.samefile(file.filename, self.path)

    def check_written(self, array: Any, holder: str) -> None:
        """Refuse an array of which not everything is stored."""
        if array.size == 0:
            return
        if array.chunks is None:
            if array.id.get_storage_size() == 0:
                raise FileError(holder, f"has {array.shape[0]} rows that were never written", "write them")
            return
        expected = math.prod(-(-extent // size) for extent, size in zip(array.shape, array.chunks, strict=True))
        stored = array.id.get_num_chunks()
        if stored < expected:
            raise FileError(
                holder, f"was written in part, {stored} of {expected} chunks", "write the rest, or resize it"
            )

    def step(self, array: Any) -> int:
        """Rows of a chunk; plain chunks that are larger than a chunk are read in pieces instead."""
        if array.chunks is None:
            return 1
        rows = int(array.chunks[-2] if len(array.shape) > 1 else array.chunks[0])
        row_bytes = math.prod(array.shape[-1:] if len(array.shape) > 1 else ()) * array.dtype.itemsize
        return 1 if not _is_filtered(array) and rows * row_bytes > chunk.CHUNK_BYTES else rows

    def rows(self, array: Any, path: str, start: int, stop: int, size: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """Chunks of rows, mapped where the file holds them as memory does."""
        if paths.is_remote(path) or not is_mappable(array):
            return super().rows(array, path, start, stop, size)
        return map_rows(array, path, start, stop, size)

    def entries(self, array: Any, start: int, stop: int) -> NDArray[Any]:
        """Values of a chunk; the numbers of an enumeration become its names."""
        h5py = load_h5py()
        if h5py.check_string_dtype(array.dtype) is not None:
            return np.asarray(array.asstr("utf-8")[start:stop], object)
        values = np.asarray(array[start:stop])
        names = h5py.check_enum_dtype(array.dtype)
        return values if names is None or values.dtype.kind == "b" else _name_members(values, names)


def _has_bomb(array: Any) -> bool:
    """Whether a chunk that could decode to more than fits in memory decodes to more than was declared."""
    declared, large = math.prod(array.chunks) * array.dtype.itemsize, []
    most = max(declared, MAX_DECODED_BYTES) // DEFLATE_RATIO
    array.id.chunk_iter(lambda stored: large.append(stored.chunk_offset) if stored.size > most else None)
    return any(exceeds_by_inflating(array.id.read_direct_chunk(place)[1], declared) for place in large)


def _count_compressions(array: Any) -> int:
    """How often a chunk is compressed."""
    h5z, plist = load_h5py().h5z, array.id.get_create_plist()
    plain = (h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32, h5z.FILTER_NBIT, h5z.FILTER_SCALEOFFSET)
    return sum(plist.get_filter(k)[0] not in plain for k in range(plist.get_nfilters()))


def _is_filtered(array: Any) -> bool:
    """Whether a chunk is decoded as a whole."""
    return bool(array.id.get_create_plist().get_nfilters())


def _name_members(values: NDArray[Any], names: dict[str, int]) -> NDArray[Any]:
    found = {number: name for name, number in names.items()}
    present, where = np.unique(values, return_inverse=True)
    return np.array([found[int(number)] for number in present], object)[where]


def from_hdf5(path: str, by: Sequence[str], vectors: Any = None) -> Source:
    """A two-dimensional dataset of rows and one-dimensional ones of factor values; or AnnData, if it says so."""
    store = Hdf5(path)
    with translate_errors(path, store.what), store.open(path) as root:
        if read_encoding(root) == "anndata":
            return from_anndata(store, root, path, by, vectors)
        return from_group(store, root, path, by, vectors)


def from_h5ad(path: str, by: Sequence[str], vectors: Any = None) -> Source:
    """AnnData in HDF5: X, a layer, an entry of obsm or raw/X, under columns of obs."""
    store = Hdf5(path)
    with translate_errors(path, store.what), store.open(path) as root:
        return from_anndata(store, root, path, by, vectors)
