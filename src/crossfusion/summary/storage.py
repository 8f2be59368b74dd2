"""Storage of a table of moments in one Parquet file: a column per factor, then count, mean, sumsq and a checksum."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import (
    RAN_SHORT,
    FileError,
    arrow,
    as_features,
    check_folder,
    factors,
    first_line,
    label_text,
    ran_short,
    warn,
    write_whole,
)
from crossfusion.moments import Moments
from crossfusion.summary import checksums

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 3  # format 2 has no names of features, format 1 no checksums, tags and batches
METADATA_KEY = b"crossfusion"
FILE_ENDINGS = (".parquet", ".pq")
MOMENT_COLUMNS = ("count", "mean", "sumsq")
CHECKSUM = "checksum"
NEW_FACTS = {"features": None, "lens": None}  # what a file of format 1 or 2 does not say
RESUME_FACT = "resume"  # metadata key that marks the state of an unfinished run
RESERVED_COLUMNS = (*MOMENT_COLUMNS, CHECKSUM)
MAX_COUNT = 2.0**53  # rows that float64 can count
ROUNDING = 1e-12  # share of the squared mean below which a squared deviation is rounding


def check_target(path: Path, inputs: Sequence[Path]) -> None:
    """Reject, before any work, an output that would replace something other than a summary."""
    check_ending(path)
    check_folder(path)
    if path.exists() and any(file.exists() and path.samefile(file) for file in inputs):
        raise FileError(path, "is one of the inputs", "choose another name for the output")
    if path.exists() and (not path.is_file() or (path.stat().st_size and _is_foreign(path))):
        raise FileError(path, "exists and is not a summary", "choose another name, or delete it first")


def check_ending(path: str | os.PathLike[str]) -> None:
    """Reject a file whose name says that it is something else than a summary."""
    if Path(path).suffix.lower() not in FILE_ENDINGS:
        raise FileError(path, "has an ending that does not fit a summary", f"use {' or '.join(FILE_ENDINGS)}")


def _is_foreign(path: Path) -> bool:
    try:
        return read_facts(path) is None
    except FileError:
        return True


def make_table(keys: "pa.Table", moments: Moments) -> "pa.Table":
    """Make a table of factor columns and moments."""
    import pyarrow as pa

    def vectors(values: Any) -> "pa.Array":
        return pa.FixedSizeListArray.from_arrays(arrow.from_numbers(values.reshape(-1)), moments.dim)

    table = keys.append_column("count", arrow.from_numbers(moments.count))
    return table.append_column("mean", vectors(moments.mean)).append_column("sumsq", vectors(moments.sumsq))


def write(
    path: str | os.PathLike[str], keys: "pa.Table", moments: Moments, facts: Mapping[str, Any], mark: str = ""
) -> None:
    """Write keys, moments and facts about them, with checksums."""
    import pyarrow.parquet as pq

    impossible = _find_impossible(moments)
    if impossible:
        raise FileError(path, f"cannot hold these moments: {impossible}", "write moments of rows")
    cells = checksums.hash_cells(keys, moments)
    about = {"format": FORMAT, "dim": moments.dim, "cells": len(cells), **NEW_FACTS, **facts}
    about[CHECKSUM] = checksums.hash_file(about, keys.column_names, cells)
    table = make_table(keys, moments).append_column(CHECKSUM, arrow.from_texts(cells))
    table = table.replace_schema_metadata({METADATA_KEY: json.dumps(about).encode()})
    options = {"use_dictionary": keys.column_names, "write_page_checksum": True}

    def write_table(temporary: str) -> None:
        with open(temporary, "wb") as file:  # under any name, which Arrow by itself cannot
            pq.write_table(table, file, **options)

    write_whole(path, write_table, mark)


def read_facts(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Read the metadata of a summary file; None for a Parquet file that is not a summary."""
    metadata = _read_schema(path).metadata or {}
    try:
        facts = json.loads(metadata[METADATA_KEY]) if METADATA_KEY in metadata else None
    except (ValueError, RecursionError) as problem:
        raise FileError(path, "is a damaged summary (its metadata is not JSON)", "write it again") from problem
    return facts if facts is None or isinstance(facts, dict) else {}


def is_summary(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a summary."""
    file = Path(path)
    return file.suffix.lower() in FILE_ENDINGS and file.is_file() and read_facts(file) is not None


def _read_schema(path: str | os.PathLike[str]) -> "pa.Schema":
    import pyarrow.parquet as pq

    if os.path.exists(path) and not os.path.isfile(path):  # to open a pipe would wait for ever
        raise FileError(path, "is not a plain file, as a summary is", "check the path")
    with (
        _explain_errors(path, "is not a readable Parquet file", "check the file, or write it again"),
        open(path, "rb") as file,
    ):
        return pq.read_schema(file)


@contextmanager
def _explain_errors(path: str | os.PathLike[str], trouble: str, remedy: str = "") -> Iterator[None]:
    """Convert any exception to a FileError, since damage causes errors of many kinds."""
    try:
        yield
    except FileError:
        raise
    except FileNotFoundError as problem:
        raise FileError(path, "does not exist", "check the path") from problem
    except Exception as problem:
        if ran_short(problem):
            raise FileError(path, f"{RAN_SHORT} ({first_line(problem)})", "free some, or check the file") from problem
        raise FileError(path, f"{trouble} ({first_line(problem)})", remedy) from problem


def read(path: str | os.PathLike[str], unfinished: bool = False) -> tuple["pa.Table", Moments, dict[str, Any]]:
    """Read a file written by `write`; reject the state of an unfinished run unless `unfinished`."""
    import pyarrow.parquet as pq

    facts = read_header(path)
    if RESUME_FACT in facts and not unfinished:
        raise FileError(path, "is the state of an unfinished run, not a summary", "give the same command again")
    with _explain_errors(path, "is a damaged summary", "write it again"), open(path, "rb") as file:
        reader = pq.ParquetFile(file, page_checksum_verification=True, pre_buffer=False)
        table = reader.read(use_threads=False).combine_chunks()  # a thread of Arrow aborts an exit
        columns = RESERVED_COLUMNS if facts["format"] > 1 else MOMENT_COLUMNS
        moments, keys = _extract_moments(table, facts), table.drop_columns(list(columns)).replace_schema_metadata(None)
        if not keys.num_columns:
            raise ValueError("there are no factors")
        if facts["format"] > 1:
            _check_cells(keys, moments, table.column(CHECKSUM).to_pylist(), facts)
        if impossible := _find_impossible(moments):
            raise ValueError(impossible)
        _check_keys(keys)
        np.dtype(facts["dtype"])
        if int(facts["dropped"]) < 0:
            raise ValueError("fewer than no rows were dropped")
        as_features(facts["features"], facts["dim"])
    return _rename_reserved(keys, path), moments, facts


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the complete metadata of a summary; reject other files and unknown formats."""
    facts = read_facts(path)
    if facts is None:
        raise FileError(path, "is not a crossfusion summary", "make one from it with 'crossfusion summarize'")
    version = facts.get("format")
    if not isinstance(version, int) or version > FORMAT:
        raise FileError(path, f"has format {version}, newer than the {FORMAT} known here", "upgrade crossfusion")
    if version < 1 or (version == 1 and CHECKSUM in facts):
        raise FileError(path, f"is a damaged summary (there is no format {version} with these facts)", "write it again")
    complete = {"tags": {}, "batches": [], **NEW_FACTS, **facts}
    kinds = {"tags": dict, "batches": list, "features": list | None, "lens": str | None}
    wrong = [name for name, kind in kinds.items() if not isinstance(complete[name], kind)]
    if wrong:
        raise FileError(path, f"is a damaged summary (its {wrong[0]} cannot be read)", "write it again")
    return complete


def read_factors(path: str | os.PathLike[str]) -> list[str]:
    """Read the names of the factors of a summary, without its cells."""
    reserved = RESERVED_COLUMNS if read_header(path)["format"] > 1 else MOMENT_COLUMNS
    return [name for name in _read_schema(path).names if name not in reserved]


def _check_cells(keys: "pa.Table", moments: Moments, written: Sequence[str], facts: Mapping[str, Any]) -> None:
    """Compare checksums, and say which cell or fact has changed."""

    def cell(position: int) -> str:
        key = keys.slice(position, 1).to_pylist()[0]
        return "the cell " + ", ".join(f"{name}={label_text(value)}" for name, value in key.items())

    found = checksums.hash_cells(keys, moments)
    for position, (is_now, was) in enumerate(zip(found, written, strict=True)):
        if is_now != was:
            raise ValueError(f"{cell(position)} is not what was written, by its checksum")
    checksum, times = Counter(found).most_common(1)[0] if found else ("", 0)
    if times > 1:
        raise ValueError(f"{cell(found.index(checksum))} is there {times} times")
    if len(found) != facts["cells"]:
        raise ValueError(f"{len(found)} cells are there of the {facts['cells']} that were written")
    hashed = {name: fact for name, fact in facts.items() if facts["format"] > 2 or name not in NEW_FACTS}
    if checksums.hash_file(hashed, keys.column_names, found) != facts[CHECKSUM]:
        raise ValueError("its tags, factors' names or other facts are not what was written, by the file's checksum")


def _rename_reserved(keys: "pa.Table", path: str | os.PathLike[str]) -> "pa.Table":
    """Rename a factor called checksum in an old file, which is now a reserved column."""
    names = list(keys.column_names)
    if CHECKSUM not in names:
        return keys
    other = f"{CHECKSUM}_"
    while other in names:
        other += "_"
    warn(f"the factor {CHECKSUM!r} of {path} is called {other!r} here", f"{CHECKSUM} is a column of every summary now")
    return keys.rename_columns([other if name == CHECKSUM else name for name in names])


def _extract_moments(table: "pa.Table", facts: Mapping[str, Any]) -> Moments:
    """Extract the moments from a table."""
    count, mean, sumsq = (table.column(name) for name in MOMENT_COLUMNS)
    shape = table.num_rows, facts["dim"]

    def vectors(column: Any) -> Any:
        values = column.combine_chunks()
        if values.null_count or values.type.list_size != facts["dim"]:
            raise ValueError("a vector is missing or of another length")
        return arrow.to_numpy(values.flatten()).reshape(shape)

    if str(count.type) != "double":
        raise ValueError(f"count holds {count.type}")
    return Moments(arrow.to_numpy(count), vectors(mean), vectors(sumsq))


def _check_keys(keys: "pa.Table") -> None:
    """Reject a group that has several rows."""
    codes, distinct = factors.encode(keys)
    if distinct.num_rows < keys.num_rows:
        code, times = Counter(codes.tolist()).most_common(1)[0]
        group = label_text(factors.list_labels(distinct.slice(code, 1))[0])
        raise ValueError(f"the group {group} is there {times} times")


def _find_impossible(moments: Moments) -> str:
    """Say why no rows could have these moments; empty if some could."""
    count, mean, sumsq = moments.count, moments.mean, moments.sumsq
    if not (np.all(count > 0) and np.isfinite(count).all() and moments.is_finite()):
        return "a count is not positive or a moment is not finite"
    if np.any(sumsq < 0):
        return "a sum of squares is negative"
    if np.any(count != np.floor(count)) or np.any(count > MAX_COUNT):
        return "a count is not a number of rows"
    with np.errstate(over="ignore"):
        squares = mean * mean
    if not np.isfinite(squares.sum()):
        return "the square of a mean exceeds the range of float64"
    if np.any(sumsq > ROUNDING * squares, where=(count == 1)[:, None]):
        return "a group of one row has spread"
    return ""
