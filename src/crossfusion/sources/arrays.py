"""Rows in memory or in NumPy's own files."""

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion import factors
from crossfusion.errors import FileError, InputError
from crossfusion.sources.block import Block, Source, even_cuts, in_memory
from crossfusion.validation import as_rows, check_known, check_length, check_some_rows


def from_rows(rows: Any, by: Mapping[str, Any], name: str = "x") -> Source:
    """Rows and arrays of factor values."""
    values = as_rows(rows, name)
    if not by:
        raise InputError("by is empty: name at least one factor")
    keys = factors.table(by)
    check_length(keys.num_rows, values.shape[0], next(iter(by)), name)
    return in_memory(name, values, keys)


def load_npy(path: Path) -> NDArray[Any]:
    """Array of a `.npy` file, memory-mapped; pickled objects are refused."""
    try:
        return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (ValueError, EOFError, OSError) as problem:
        raise FileError(f"{path} is not a readable .npy file of numbers ({problem})") from problem


def from_npy(path: Path, by: Sequence[str], _vectors: Any = None) -> Source:
    """A `.npy` file, which has rows but no columns to name."""
    if by:
        raise InputError(f"{path} holds rows without columns, so {by[0]!r} is not in it: use .npz, .csv or .parquet")
    return _without_keys(load_npy(path), path)


def from_npz(path: Path, by: Sequence[str], vectors: Any = None) -> Source:
    """A `.npz` file: one two-dimensional array of rows, one-dimensional arrays of factor values."""
    arrays = _load_npz(path)
    check_known(by, list(arrays), "array", str(path))
    if vectors is None:
        flat = [name for name, array in arrays.items() if array.ndim == 2]
        if len(flat) != 1:
            raise InputError(f"{path} has {len(flat)} two-dimensional arrays: name the one with the rows in vectors")
        vectors = flat[0]
    check_known([vectors], list(arrays), "array", str(path))
    if not by:
        return _without_keys(arrays[vectors], path)
    return from_rows(arrays[vectors], {name: arrays[name] for name in by}, str(path))


def _without_keys(array: NDArray[Any], path: Path) -> Source:
    """Stretches of an array, so that reading it from disk can show progress."""
    rows = as_rows(array, str(path))
    cuts = even_cuts(rows.shape[0], rows.shape[1] * rows.itemsize)
    return Source(str(path), [partial(_stretch, rows, *cut) for cut in cuts], rows.shape[0])


def _stretch(rows: NDArray[Any], start: int, stop: int) -> Iterator[Block]:
    import pyarrow as pa

    yield Block(rows[start:stop], pa.table({}), start)


def read_rows(source: Source) -> NDArray[Any]:
    """All rows of a source in one array."""
    blocks = [block.rows for block in source.blocks()]
    check_some_rows(len(blocks), source.name)
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def _load_npz(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, OSError, KeyError, zipfile.BadZipFile, AttributeError, TypeError) as problem:
        raise FileError(f"{path} is not a readable .npz file of plain arrays ({problem})") from problem
