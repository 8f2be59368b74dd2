"""NumPy's `.npz` archives: the arrays of rows and of factor values are unpacked side by side, a chunk at a time."""

import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import InputError, arg, as_names, check_known, check_length, factors
from crossfusion.io.sources import chunk, paths
from crossfusion.io.sources.chunk import Chunk, Source
from crossfusion.io.sources.npy import Header, check_rows, fill_array, make_empty_keys, read_header

UNREADABLE = "is not a readable .npz file of plain arrays"
MAX_ROW_BYTES = 256 * 2**20  # bytes of a row; more is damage, or an attempt to fill the memory


def from_npz(path: str, by: Sequence[str], vectors: Any = None) -> Source:
    """A `.npz` file: one two-dimensional array of rows, one-dimensional arrays of factor values."""
    name = paths.show_path(path)
    named = as_names(vectors, "vectors", "array")
    headers = _read_headers(path, [*by, *named], not named)
    check_known(by, list(headers), "array", name)
    if not named:
        flat = [array for array, header in headers.items() if len(header.shape) == 2]
        if len(flat) != 1:
            raise InputError(
                problem=f"{name} has {len(flat)} two-dimensional arrays",
                remedy=f"name the one with the rows in {arg('vectors')}",
            )
        named = (flat[0],)
    if len(named) > 1:
        raise InputError("vectors", vectors, f"must be the name of the array of {name} that holds the rows")
    check_known(named, list(headers), "array", name)
    vectors = named[0]
    chosen = {array: headers[array] for array in (vectors, *by)}
    _check_arrays(chosen, vectors, by, name)
    rows = chosen[vectors].shape[0]
    return Source(name, [partial(_read_chunks, path, chosen, vectors, by)], rows, columns=tuple(headers))


def _read_headers(path: str, needed: Sequence[str], searched: bool) -> dict[str, Header]:
    """Headers of the arrays; members that hold something else do not matter unless they are needed, or searched for."""
    found: dict[str, Header] = {}
    others: dict[str, Exception] = {}
    with paths.open_binary(path) as file, paths.translate_errors(path, UNREADABLE), zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            array = entry.filename.removesuffix(".npy")
            try:
                found[array] = _read_header(archive, entry)
            except Exception as problem:
                others[array] = problem
        missed = not any(len(header.shape) == 2 for header in found.values()) if searched else False
        for array, trouble in others.items():
            if array in needed or missed:
                raise ValueError(f"{array!r}: {trouble}") from trouble
    return found


def _read_header(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Header:
    with archive.open(entry) as member:
        header = read_header(member)
    if entry.file_size != header.offset + header.size:
        raise ValueError(f"its shape needs {header.offset + header.size} bytes, but it holds {entry.file_size}")
    return header


def _check_arrays(chosen: Mapping[str, Header], vectors: str, by: Sequence[str], name: str) -> None:
    """Refuse, before anything is read, arrays that cannot be rows or factor values."""
    check_rows(chosen[vectors], name)
    for factor in by:
        header = chosen[factor]
        factors.as_column(np.zeros((1,) * len(header.shape), header.dtype), factor)
        check_length(header.shape[0], chosen[vectors].shape[0], f"array {factor!r}", name)
    longest = sum(header.row_bytes for header in chosen.values())
    if longest > MAX_ROW_BYTES:
        raise InputError(
            problem=f"{name} has rows of {longest} bytes, more than the {MAX_ROW_BYTES} that are read",
            remedy="split the features",
        )


def _read_chunks(path: str, chosen: Mapping[str, Header], vectors: str, by: Sequence[str]) -> Iterator[Chunk]:
    """Chunks of all arrays at once; at the end of each, its checksum is compared."""
    rows = chosen[vectors].shape[0]
    step = max(1, chunk.CHUNK_BYTES // max(1, sum(header.row_bytes for header in chosen.values())))
    with ExitStack() as stack:
        stack.enter_context(paths.translate_errors(path, "is damaged: write it again"))
        archive = stack.enter_context(zipfile.ZipFile(stack.enter_context(paths.open_binary(path))))
        streams = {array: stack.enter_context(_open_member(archive, array, header)) for array, header in chosen.items()}
        for start in range(0, rows, step):
            stop = min(rows, start + step)
            arrays = {array: _read_rows(streams[array], header, start, stop) for array, header in chosen.items()}
            if stop == rows:
                _check_ends(streams)
            keys = factors.as_table({factor: arrays[factor] for factor in by}) if by else make_empty_keys()
            yield Chunk(arrays[vectors], keys, start)


def _open_member(archive: zipfile.ZipFile, array: str, header: Header) -> IO[bytes]:
    """An array of the archive at its first value; one that lies by columns goes to a temporary file, to be mapped."""
    member = f"{array}.npy" if f"{array}.npy" in archive.NameToInfo else array
    stream = archive.open(member)
    stream.seek(header.offset)
    if not header.columns:
        return stream
    with stream:
        spilt = tempfile.TemporaryFile()  # noqa: SIM115 (the caller closes it)
        while data := stream.read(2**20):
            spilt.write(data)
    return spilt


def _read_rows(stream: IO[bytes], header: Header, start: int, stop: int) -> NDArray[Any]:
    if header.columns:
        stream.flush()
        return np.memmap(stream, header.dtype, "r", shape=header.shape, order="F")[start:stop]
    values = np.empty((stop - start, *header.shape[1:]), header.dtype)
    fill_array(stream, values)
    return values


def _check_ends(streams: Mapping[str, IO[bytes]]) -> None:
    for array, stream in streams.items():
        if isinstance(stream, zipfile.ZipExtFile) and stream.read(1):
            raise ValueError(f"{array!r} is longer than it says")
