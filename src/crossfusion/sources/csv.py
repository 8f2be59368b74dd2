"""Comma- or tab-separated text, read a block at a time."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossfusion.errors import FileError, InputError, warn
from crossfusion.sources.block import Block, Source
from crossfusion.sources.frames import block_of, is_one_feature_each, numeric_columns, vector_columns
from crossfusion.validation import check_known, check_once

if TYPE_CHECKING:
    import pyarrow as pa


def from_csv(path: Path, by: Sequence[str], vectors: Any = None) -> Source:
    """A text table; vectors are its numeric columns that are not factors, or those that `vectors` names.

    The factors are read ahead as a whole, since their types show only at the end of the file.
    """
    import pyarrow as pa
    from pyarrow import csv

    delimiter = csv.ParseOptions(delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
    try:
        with csv.open_csv(path, parse_options=delimiter) as reader:
            schema = reader.schema
        if len(schema) == 1 and any(mark in schema.names[0] for mark in ";\t|"):
            raise FileError(
                f"{path} has one column, {schema.names[0]!r}: separate columns by commas, or tabs in a .tsv"
            )
        check_known(by, schema.names, "column", str(path))
        wanted = numeric_columns(schema, by) if vectors is None else vectors
        if not wanted:
            raise InputError(f"{path} has no numeric columns besides {', '.join(by)}: there are no vectors in it")
        if vectors is None:
            check_once(wanted, schema.names, str(path))
        columns = vector_columns(schema, by, wanted, str(path))
        ahead = csv.ConvertOptions(include_columns=[*by] or columns[:1], strings_can_be_null=True)
        keys = csv.read_csv(path, parse_options=delimiter, convert_options=ahead)
        kind = pa.float64() if is_one_feature_each(schema, columns) else pa.string()
        kinds = dict.fromkeys(columns, kind) | _factor_types(path, keys.select(list(by)), delimiter)
    except (pa.ArrowException, OSError) as problem:
        raise _damaged(path, problem) from problem
    options = csv.ConvertOptions(include_columns=[*by, *columns], column_types=kinds, strings_can_be_null=True)
    if vectors is None:
        _warn_of_text(path, [name for name in schema.names if name not in by and name not in columns])
        _warn_of_whole_numbers(path, schema, columns)
    note = "" if vectors is not None else f"{path}: vectors are its {len(columns)} numeric columns, {_listed(columns)}"
    read = partial(_blocks, path, by, columns, delimiter, options)
    features = tuple(columns) if is_one_feature_each(schema, columns) else ()
    return Source(str(path), [read], keys.num_rows, note, features)


def _warn_of_text(path: Path, left_out: Sequence[str]) -> None:
    if left_out:
        warn(f"{path}: {_listed(left_out)} left out of the vectors, not being numbers throughout; vectors names others")


def _warn_of_whole_numbers(path: Path, schema: Any, columns: Sequence[str]) -> None:
    """Name columns of whole numbers among others: patients and positions are easily taken for features."""
    import pyarrow as pa

    whole = [name for name in columns if pa.types.is_integer(schema.field(name).type)]
    if whole and len(whole) < len(columns) / 2:
        warn(f"{path}: {_listed(whole)} in the vectors although they hold whole numbers; vectors names others")


def _factor_types(path: Path, keys: "pa.Table", delimiter: Any) -> "dict[str, pa.DataType]":
    """Types of the factors; numbers that would not read back as they stand, such as 007, stay text."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    kinds = {name: keys.schema.field(name).type for name in keys.column_names}
    numbers = [name for name, kind in kinds.items() if pa.types.is_integer(kind)]
    if numbers:
        as_text = csv.ConvertOptions(
            include_columns=numbers, column_types=dict.fromkeys(numbers, pa.string()), strings_can_be_null=True
        )
        text = csv.read_csv(path, parse_options=delimiter, convert_options=as_text)
        for name in numbers:
            if not pc.all(pc.equal(keys.column(name).cast(pa.string()), text.column(name))).as_py():
                kinds[name] = pa.string()
    return kinds


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns) if len(columns) <= 4 else f"{', '.join(columns[:3])}, ..., {columns[-1]}"


def _blocks(path: Path, by: Sequence[str], columns: Sequence[str], delimiter: Any, options: Any) -> Iterator[Block]:
    import pyarrow as pa
    from pyarrow import csv

    first = 0
    try:
        reading = csv.ReadOptions(block_size=16 * 2**20)
        with csv.open_csv(path, reading, delimiter, options) as reader:
            for batch in reader:
                yield block_of(pa.Table.from_batches([batch]), by, columns, str(path), first)
                first += batch.num_rows
    except pa.ArrowException as problem:
        raise _damaged(path, problem) from problem


def _damaged(path: Path, problem: BaseException) -> FileError:
    return FileError(f"{path} cannot be read as a text table ({str(problem).splitlines()[0]})")
