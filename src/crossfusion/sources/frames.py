"""Tables: which columns hold the vectors, and how these become an array.

Serves every source that arrives as Arrow: Parquet and CSV files, and pandas, Polars or PyArrow tables in memory.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossfusion.errors import InputError
from crossfusion.sources.block import Block, Source, in_memory
from crossfusion.validation import as_names, check_known, check_once

if TYPE_CHECKING:
    import pyarrow as pa


def is_table(source: Any) -> bool:
    """Whether this is a table that Arrow can take over (PyArrow, pandas, Polars, DuckDB, ...)."""
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "column_names")


def from_table(source: Any, by: Sequence[str], vectors: Any = None) -> Source:
    """A table in memory."""
    import pyarrow as pa

    try:
        table = source if isinstance(source, pa.Table) else pa.table(source)
    except (pa.ArrowException, TypeError, ValueError) as problem:
        said = " ".join(str(problem).split())
        raise InputError(
            f"the table has a column that cannot be read ({said}): pass only the columns needed"
        ) from problem
    columns = vector_columns(table.schema, by, vectors, "the table")
    block = block_of(table, by, columns, "the table")
    return in_memory("the table", block.rows, block.keys, tuple(columns) if len(columns) > 1 else ())


def vector_columns(schema: "pa.Schema", by: Sequence[str], vectors: Any, holder: str) -> list[str]:
    """Names of the columns that hold the vectors: one list column, or several numeric ones."""
    check_known(by, schema.names, "column", holder)
    check_once(by, schema.names, holder)
    if vectors is None:
        lists = [field.name for field in schema if _is_vector(field.type) and field.name not in by]
        if len(lists) != 1:
            found = f"{len(lists)} columns of vectors ({', '.join(lists)})" if lists else "no column of vectors"
            raise InputError(f"{holder} has {found}: name one in vectors, or a pattern such as 'dim_*'")
        return lists
    names = _chosen(schema.names, by, as_names(vectors, "vectors"), holder)
    check_once(names, schema.names, holder)
    types = {field.name: field.type for field in schema}
    kinds = {name: types[name] for name in names}
    if len(names) > 1 or not _is_vector(kinds[names[0]]):
        for name, kind in kinds.items():
            if not _is_number(kind):
                raise InputError(f"column {name!r} of {holder} holds {kind}, not numbers: leave it out of vectors")
    return names


def _chosen(names: Sequence[str], by: Sequence[str], wanted: Sequence[str], holder: str) -> list[str]:
    """Columns that the entries name, or match as patterns where no column has that very name, in that order."""
    found: dict[str, None] = {}
    known, factors = set(names), set(by)
    for entry in wanted:
        if entry in factors:
            raise InputError(f"{entry!r} is in vectors and in by: a column holds numbers or a factor")
        matching = (
            [entry] if entry in known else [name for name in names if fnmatchcase(name, entry) and name not in factors]
        )
        if not matching and "*" not in entry:
            check_known([entry], names, "column", holder)
        if not matching:
            raise InputError(f"{holder} has no column for vectors={entry!r}: there are {', '.join(names)}")
        found |= dict.fromkeys(matching)
    return list(found)


def _is_number(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def _is_vector(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    lists = pa.types.is_list(kind), pa.types.is_large_list(kind), pa.types.is_fixed_size_list(kind)
    return any(lists) and _is_number(kind.value_type)


def numeric_columns(schema: "pa.Schema", by: Sequence[str]) -> list[str]:
    """Names of all numeric columns that are not factors; true and false are no numbers in a text."""
    import pyarrow as pa

    return [
        field.name
        for field in schema
        if _is_number(field.type) and not pa.types.is_boolean(field.type) and field.name not in by
    ]


def block_of(table: "pa.Table", by: Sequence[str], columns: Sequence[str], holder: str, first: int = 0) -> Block:
    """Rows and keys of a table, or of the part of one that starts at row `first`."""
    keys = table.select(list(by))
    if len(columns) > 1 or not _is_vector(table.schema.field(columns[0]).type):
        return Block(np.column_stack([_numbers(table.column(name)) for name in columns]), keys, first)
    return Block(_vectors(table.column(columns[0]), columns[0], holder, first), keys, first)


def _numbers(column: "pa.ChunkedArray") -> NDArray[Any]:
    import pyarrow as pa

    return np.asarray((column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column).to_numpy())


def _vectors(column: "pa.ChunkedArray", name: str, holder: str, first: int) -> NDArray[Any]:
    """Two-dimensional array of a list column; a missing vector becomes a row of NaN, for the caller to judge."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lists = column.combine_chunks()
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    present = pc.is_valid(lists).to_numpy(zero_copy_only=False)
    dims = np.unique(lengths[present])
    if len(dims) > 1:
        odd = int(np.flatnonzero(present & (lengths != lengths[present][0]))[0]) + first
        raise InputError(
            f"column {name!r} of {holder} holds vectors of unequal length, first in row {odd}: pad or drop them"
        )
    values = np.asarray(lists.drop_null().flatten().to_numpy(zero_copy_only=False))
    if present.all() and len(dims):
        return values.reshape(len(lists), int(dims[0]))
    dim = int(dims[0]) if len(dims) else lists.type.list_size if pa.types.is_fixed_size_list(lists.type) else 1
    rows = np.full((len(lists), dim), np.nan)
    rows[present] = values.reshape(-1, dim)
    return rows
