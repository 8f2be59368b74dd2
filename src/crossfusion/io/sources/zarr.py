"""Zarr stores of format 2 and 3: folders, zip files, or whatever fsspec opens."""

import math
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FileError, InputError, optional
from crossfusion.io.sources import chunk, paths
from crossfusion.io.sources.array_stores import MAX_DECODED_BYTES, Store, from_group, translate_errors
from crossfusion.io.sources.chunk import Source
from crossfusion.io.sources.decoded_size import (
    DEFLATE_RATIO,
    HEADER_BYTES,
    UNBOUNDED,
    exceeds_by_decoding,
    exceeds_by_header,
    exceeds_by_inflating,
    states_size,
)
from crossfusion.io.sources.factor_columns import read_encoding
from crossfusion.io.sources.h5ad import from_anndata

METADATA_FILES = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")  # files that say what a folder is
CODECS = ("zstd", "blosc", "lz4", "zlib", "gzip", *UNBOUNDED)
ENTRY_BYTES, CHECKSUM_BYTES = 16, 4  # of the index of a shard: offset and length of each chunk, then a checksum
SPARE_BYTES = 2**20  # that a stored chunk may be larger, besides twice its size
NOT_STORED = 2**64 - 1  # in this index
MIN_STORED_SHARE = 100  # an array of which less than 1 in 100 chunks is stored was declared, not written

Read = Callable[[int, int], bytes]  # from a position, so many bytes


class Zarr(Store):
    """Zarr through zarr-python."""

    what = "a Zarr store"

    @contextmanager
    def open(self, path: str) -> Iterator[Any]:
        """The root group or array."""
        zarr = optional.load("zarr", "zarr", "zarr", "reading Zarr")
        if path.endswith(".zip"):
            if paths.is_remote(path):
                raise InputError(
                    problem=f"{paths.show_path(path)} is a zip file elsewhere",
                    remedy="copy it to this machine, or unpack it",
                )
            zipfile.ZipFile(path).close()  # what is none cannot be closed as a store
            store = zarr.storage.ZipStore(path, mode="r")
            try:
                yield zarr.open(store, mode="r")
            finally:
                store.close()
        else:
            yield zarr.open(path, mode="r")

    def names(self, group: Any) -> Iterable[str]:
        """Names below a group; the library's own list opens everything at once, and prints what goes wrong."""
        listed = getattr(group.store, "list_dir", None)
        if listed is None or getattr(group.metadata, "consolidated_metadata", None) is not None:
            return list(group)
        sync = optional.load("zarr.core.sync", "zarr", "zarr", "reading Zarr").sync

        async def collect_names() -> list[str]:
            return [name async for name in listed(group.path)]

        return sorted(set(sync(collect_names())).difference(["", *METADATA_FILES]))

    def check(self, array: Any, holder: str) -> None:
        """Refuse pickled objects, and chunks that do not fit in memory."""
        if any("pickle" in str(getattr(codec, "codec_id", codec)).lower() for codec in _list_filters(array)):
            raise InputError(problem=f"{holder} holds pickled objects, which are not read", remedy="store plain values")
        if math.prod(array.chunks) * array.dtype.itemsize > MAX_DECODED_BYTES:
            raise FileError(
                holder, f"has chunks of more than {MAX_DECODED_BYTES // 2**30} GB", "write it in smaller ones"
            )
        _check_decoded_size(array, holder)

    def check_written(self, array: Any, holder: str) -> None:
        """Refuse an array of which almost nothing is stored; some chunks may be missing, being zero throughout."""
        sizes = zip(array.shape, getattr(array, "shards", None) or array.chunks, strict=True)
        expected = math.prod(-(-extent // size) for extent, size in sizes)
        needed = expected // MIN_STORED_SHARE
        if sum(1 for _ in islice(_list_stored(array), needed)) < needed:
            raise FileError(holder, f"has {array.shape[0]} rows, almost all of which were never written", "write them")

    def step(self, array: Any) -> int:
        """Rows of a shard if these fit in a chunk, or of a chunk."""
        axis = -2 if len(array.shape) > 1 else 0
        row_bytes = math.prod(array.shape[-1:] if len(array.shape) > 1 else ()) * array.dtype.itemsize
        shard = getattr(array, "shards", None)
        if shard is not None and shard[axis] * row_bytes <= chunk.CHUNK_BYTES:
            return int(shard[axis])
        return int(array.chunks[axis])

    def entries(self, array: Any, start: int, stop: int) -> NDArray[Any]:
        """Values of a chunk."""
        return np.asarray(array[start:stop])


def _check_decoded_size(array: Any, holder: str) -> None:
    """Refuse chunks on this machine that decode to more than was declared."""
    names = [str(getattr(codec, "codec_id", type(codec).__name__)).lower() for codec in _list_codecs(array)]
    found = [codec for name in names for codec in CODECS if codec in name]
    if len(found) > 1:
        raise FileError(holder, f"is compressed {len(found)} times, by {', '.join(found)}", "compress it once")
    declared = math.prod(array.chunks) * array.dtype.itemsize
    limit = MAX_DECODED_BYTES if array.dtype.kind in "OT" else declared  # of text, the length is not declared
    for size, read in _open_chunks(array, holder):
        if size > 2 * limit + SPARE_BYTES or (found and _is_bomb(found[0], size, read, limit)):
            raise FileError(holder, "has a chunk that decodes to more than was declared", "write it again")


def _is_bomb(codec: str, size: int, read: Read, limit: int) -> bool:
    """Whether a stored chunk decodes to more than a number of bytes."""
    if codec in ("zlib", "gzip"):
        return size * DEFLATE_RATIO > max(limit, MAX_DECODED_BYTES) and exceeds_by_inflating(read(0, size), limit)
    header = read(0, HEADER_BYTES)
    if states_size(codec, header):
        return exceeds_by_header(codec, header, limit)
    return exceeds_by_decoding(codec, read(0, size), limit)


def _list_codecs(array: Any) -> list[Any]:
    """Everything that bytes of a chunk, also of one in a shard, may pass through when they are read."""
    return [*array.compressors, *(getattr(array, "filters", None) or ())]


def _open_chunks(array: Any, holder: str) -> Iterator[tuple[int, Read]]:
    """Size of each stored chunk on this machine, and a function that reads some of its bytes."""
    shards = getattr(array, "shards", None)
    if shards is None:
        yield from _open_stored(array)
        return
    codec = array.metadata.codecs[0]
    if [type(each).__name__ for each in codec.index_codecs] != ["BytesCodec", "Crc32cCodec"]:
        raise FileError(holder, "has shards whose index is compressed", "write it again")
    number = math.prod(shard // inner for shard, inner in zip(shards, array.chunks, strict=True))
    index = ENTRY_BYTES * number
    for size, read in _open_stored(array):
        start = 0 if codec.index_location.value == "start" else size - index - CHECKSUM_BYTES
        entries = np.frombuffer(read(start, index), "<u8").reshape(-1, 2) if start >= 0 else np.empty((0, 2), int)
        for offset, length in entries[entries[:, 0] != NOT_STORED].tolist():
            yield length, partial(_read_from, read, offset)


def _read_from(read: Read, offset: int, start: int, size: int) -> bytes:
    """Some bytes of a chunk, given where it begins."""
    return read(offset + start, size)


def _open_stored(array: Any) -> Iterator[tuple[int, Read]]:
    """Size of each file of chunks on this machine, and a function that reads some of its bytes."""
    kind, inside = type(array.store).__name__, array.path.strip("/")
    if kind == "LocalStore":
        for folder, _, files in os.walk(os.path.join(str(array.store.root), inside)):
            for name in set(files).difference(METADATA_FILES):
                path = os.path.join(folder, name)
                yield os.path.getsize(path), partial(_read_some, open, path)
    elif kind == "ZipStore":
        with zipfile.ZipFile(array.store.path) as archive:
            for entry in archive.infolist():
                if entry.filename.startswith(inside) and not entry.filename.endswith(METADATA_FILES):
                    yield entry.file_size, partial(_read_some, lambda name, _: archive.open(name), entry.filename)


def _read_some(opener: Callable[..., Any], path: str, start: int, size: int) -> bytes:
    with opener(path, "rb") as file:
        file.seek(start)
        return bytes(file.read(size))


def _list_filters(array: Any) -> list[Any]:
    """What chunks pass through when they are read, besides compression."""
    return [*(getattr(array, "filters", None) or ()), *getattr(getattr(array, "metadata", None), "codecs", ())]


def _list_stored(array: Any) -> Iterator[str]:
    """Names of the files that hold chunks of an array; without end where they cannot be listed cheaply."""
    store, inside = array.store, array.path.strip("/")
    kind = type(store).__name__
    names: Iterable[str]
    if kind == "ZipStore":
        with zipfile.ZipFile(store.path) as archive:
            names = [name for name in archive.namelist() if name.startswith(inside)]
    elif kind in ("LocalStore", "DirectoryStore", "NestedDirectoryStore"):
        folder = os.path.join(str(getattr(store, "root", None) or store.path), inside)
        names = (name for _, _, files in os.walk(folder) for name in files)
    else:
        names = repeat("0")
    return (name for name in names if not name.endswith(("/", *METADATA_FILES)))


def from_zarr(path: str, by: Sequence[str], vectors: Any = None) -> Source:
    """A two-dimensional array of rows and one-dimensional ones of factor values; or AnnData, if it says so."""
    store = Zarr(path)
    with translate_errors(path, store.what), store.open(path) as root:
        if read_encoding(root) == "anndata":
            return from_anndata(store, root, path, by, vectors)
        return from_group(store, root, path, by, vectors)
