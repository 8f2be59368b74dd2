"""Where rows come from. A source is one generator of blocks: rows, and the factor values that belong to them."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crossfusion.errors import FileError, InputError
from crossfusion.sources import arrays, csv, parquet, tables
from crossfusion.sources.block import Block, Source, in_memory
from crossfusion.validation import as_names, as_rows

READERS = {
    ".npy": arrays.from_npy,
    ".npz": arrays.from_npz,
    ".csv": csv.from_csv,
    ".tsv": csv.from_csv,
    ".parquet": parquet.from_parquet,
    ".pq": parquet.from_parquet,
}

__all__ = ["READERS", "Block", "Source", "open_file", "open_files", "open_rows", "open_source"]


def open_file(path: str | os.PathLike[str], by: Sequence[str], vectors: Any = None) -> Source:
    """Source of a file, by its ending."""
    file, names = Path(path), as_names(by, "by")
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        raise FileError(f"{file} has an ending that is not known: use one of {', '.join(READERS)}")
    if not file.is_file():
        raise FileError(f"{file} does not exist or is not a file: check the path")
    return reader(file, names, vectors)


def open_files(paths: Sequence[str | os.PathLike[str]], by: Sequence[str], vectors: Any = None) -> list[Source]:
    """Sources of files whose rows are put together: columns of the same name are the same feature."""
    sources = [open_file(path, by, vectors) for path in paths]
    first = next((source for source in sources if source.features), None)
    for position, source in enumerate(sources):
        if first is None or not source.features or source.features == first.features:
            continue
        if sorted(source.features) != sorted(first.features):
            raise InputError(f"{source.name} names its features otherwise than {first.name}: name columns alike")
        sources[position] = open_file(paths[position], by, list(first.features))
    return sources


def open_source(source: Any, by: Any, vectors: Any = None) -> list[Source]:
    """Sources of whatever a user passes: rows with `by` as arrays, or files and tables with `by` as column names."""
    if isinstance(by, Mapping):
        if vectors is not None:
            raise InputError("vectors names columns of a file or table: leave it out where by holds arrays")
        return [arrays.from_rows(source, by)]
    names = as_names(by, "by")
    if not names:
        raise InputError("by is empty: name at least one factor")
    return open_rows(source, names, vectors)


def open_rows(source: Any, names: Sequence[str], vectors: Any = None) -> list[Source]:
    """Sources with the columns of these names as factors; without any name, also rows that have no columns."""
    import pyarrow as pa

    if isinstance(source, str | os.PathLike):
        return [open_file(source, names, vectors)]
    if isinstance(source, list | tuple) and source and all(isinstance(entry, str | os.PathLike) for entry in source):
        return open_files(source, names, vectors)
    if tables.is_table(source):
        return [tables.from_table(source, names, vectors)]
    if not names:
        return [in_memory("x", as_rows(source, "x"), pa.table({}))]
    raise InputError(
        f"by={names!r} names columns, but {type(source).__name__} has none: pass by={{name: values}}, a file or a table"
    )
