"""Data frames as rows: columns that are named as labels, strata or units are taken out of the features."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import InputError, check_known, check_once

if TYPE_CHECKING:
    import pyarrow as pa

MAX_LISTED = 3  # columns in a message


@dataclass(frozen=True)
class _Frame:
    """A data frame of any library: the names of its columns, a column, some columns, and the kind of a column."""

    names: Sequence[str]
    column: Callable[[str], Any]
    select: Callable[[Sequence[str]], Any]
    kind: Callable[[str], str]  # "number", "vector" or "other"


def take_columns(x: Any, **columns: Any) -> tuple[Any, ...]:
    """Return the features of a frame, and its columns in place of their names.

    Arrays are returned as they are. If a frame's only other column holds vectors, they are the rows.
    """
    named = {argument: value for argument, value in columns.items() if isinstance(value, str)}
    frame = _open_frame(x)
    if frame is None:
        _check_no_names(named)
        return x, *columns.values()
    check_known(named.values(), frame.names, "column", "x")
    check_once(named.values(), frame.names, "x")
    taken = {argument: frame.column(name) for argument, name in named.items()}
    return _take_features(x, frame, {*named.values()}), *(columns | taken).values()


def _check_no_names(named: dict[str, str]) -> None:
    """Reject the name of a column where there are no columns."""
    for argument, name in named.items():
        raise InputError(
            argument,
            name,
            "names a column, but x is not a pandas, Polars or PyArrow table",
            f"pass such a table, or {argument} as an array with one entry per row",
        )


def _take_features(x: Any, frame: _Frame, taken: set[str]) -> Any:
    """Select the columns that are not taken; all of them must be numeric, or the only one a column of vectors."""
    rest = [name for name in frame.names if name not in taken]
    if not rest:
        raise InputError("x", problem="has no columns left that could be features", remedy="add columns of numbers")
    if len(rest) == 1 and frame.kind(rest[0]) == "vector":
        return _stack_vectors(frame.column(rest[0]), rest[0])
    other = [name for name in rest if frame.kind(name) != "number"]
    if other:
        listed = ", ".join(map(repr, other[:MAX_LISTED])) + (", ..." if len(other) > MAX_LISTED else "")
        raise InputError(
            "x",
            problem=f"has columns that do not hold numbers ({listed})",
            remedy="drop them, or name them as labels, given or units",
        )
    return frame.select(rest) if taken else x


def _stack_vectors(column: Any, name: str) -> Any:
    """Make an array of a column of vectors; pandas columns are stacked where rows are checked."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(column, pa.ChunkedArray):
        if not hasattr(column, "to_arrow"):
            return column
        column = pa.chunked_array([column.to_arrow()])
    array = column.combine_chunks()
    lengths = {value.as_py() for value in pc.list_value_length(array).unique()}
    if len(lengths) != 1 or None in lengths:
        raise InputError(
            "x", problem=f"has vectors of unequal length, or none, in column {name!r}", remedy="leave those rows out"
        )
    return array.flatten().to_numpy(zero_copy_only=False).reshape(len(array), -1)


def _open_frame(x: Any) -> _Frame | None:
    """Describe a frame; who passes one has imported its library."""
    pandas, polars, arrow = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(x, pandas.DataFrame):
        names = [str(name) for name in x.columns]

        def pick(name: str) -> Any:
            return x.iloc[:, names.index(name)]

        def select(kept: Sequence[str]) -> Any:
            return x.iloc[:, [k for k, name in enumerate(names) if name in kept]]

        return _Frame(names, pick, select, lambda name: _find_pandas_kind(pick(name)))
    if polars is not None and isinstance(x, polars.DataFrame):
        return _Frame(x.columns, x.get_column, x.select, lambda name: _find_arrow_kind(x.head(0).to_arrow(), name))
    if arrow is not None and isinstance(x, arrow.Table | arrow.RecordBatch):
        return _Frame(x.schema.names, x.column, x.select, lambda name: _find_arrow_kind(x, name))
    return None


def _find_pandas_kind(column: Any) -> str:
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column.dtype):
        return "number"
    first = column.iloc[0] if len(column) and column.dtype == object else None
    return "vector" if isinstance(first, list | tuple | np.ndarray) else "other"


def _find_arrow_kind(table: "pa.Table", name: str) -> str:
    import pyarrow as pa

    kind = table.schema.field(name).type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return "number"
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return "vector" if any(is_kind(kind) for is_kind in lists) else "other"
