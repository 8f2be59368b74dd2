"""Tables in memory: PyArrow, pandas and Polars by themselves, streams by `streams`, others through narwhals.

Who passes a frame has imported its library, so libraries are looked up among the loaded modules.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import InputError, factors, first_line
from crossfusion.io.sources import arrow_streams, huggingface
from crossfusion.io.sources.chunk import Source, measure_bytes
from crossfusion.io.sources.vector_columns import find_vectors, split_table

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "the table"


def is_table(source: Any) -> bool:
    """Whether this is a table, or a stream of the rows of one."""
    known = arrow_streams.is_stream(source) or huggingface.is_dataset(source)
    return known or hasattr(source, "columns") or hasattr(source, "column_names")


def from_table(source: Any, by: Sequence[str], vectors: Any = None) -> Source:
    """A table in memory, a data set of Hugging Face, or a stream of record batches."""
    if huggingface.is_dataset(source):
        return huggingface.from_dataset(source, by, vectors)
    if hasattr(source, "to_native") and hasattr(source, "implementation"):
        source = source.to_native()  # a frame that narwhals has wrapped
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(source, pandas.DataFrame):
        return _from_pandas(source, by, vectors)
    table = _as_arrow(source)
    if table is not None:
        return _from_arrow(table, by, vectors)
    stream = arrow_streams.open_stream(source) or arrow_streams.open_narwhals(source)
    return arrow_streams.from_stream(stream, by, vectors, NAME)


def _as_arrow(source: Any) -> "pa.Table | None":
    """An Arrow table of what is one already, but for its name."""
    import pyarrow as pa

    polars = sys.modules.get("polars")
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if polars is not None and isinstance(source, polars.DataFrame):
        return pa.table(source.select([name for name, kind in source.schema.items() if kind != polars.Object]))
    return None


def _from_arrow(table: "pa.Table", by: Sequence[str], vectors: Any) -> Source:
    columns = find_vectors(table.schema, by, vectors, NAME)
    needed = table.select([*by, *columns])

    def cut(start: int, stop: int) -> Callable[[], "pa.Table"]:
        return partial(_return_table, needed.slice(start, stop - start))

    return split_table(cut, needed.num_rows, measure_bytes(needed), needed.schema, by, columns, NAME)


def _return_table(table: "pa.Table") -> "pa.Table":
    return table


def _from_pandas(frame: Any, by: Sequence[str], vectors: Any) -> Source:
    """A DataFrame, of which only what is needed is converted; levels of its index can be factors too."""
    import pyarrow as pa

    levels = {name: frame.index.get_level_values(name) for name in frame.index.names if isinstance(name, str)}
    levels = {name: values for name, values in levels.items() if name not in frame.columns}
    names = [str(name) for name in frame.columns]
    kinds = [_infer_type(frame.iloc[:, position]) for position in range(len(names))]
    fields = [*zip(names, kinds, strict=True), *((name, pa.string()) for name in levels)]
    schema = pa.schema(fields)
    columns = find_vectors(schema, by, vectors, NAME)
    keys = pa.table(
        {key: _as_array(levels[key] if key in levels else _pick_column(frame, names, key), key) for key in by}
    )
    picked = frame.iloc[:, [names.index(name) for name in columns]]
    width = sum(
        _measure_width(kind, picked.iloc[:, k]) for k, kind in enumerate(schema.field(name).type for name in columns)
    )

    def cut(start: int, stop: int) -> Callable[[], "pa.Table"]:
        return partial(_convert, picked.iloc[start:stop], columns, keys.slice(start, stop - start))

    return split_table(cut, len(frame), len(frame) * width, schema, by, columns, NAME)


def _pick_column(frame: Any, names: Sequence[str], name: str) -> Any:
    return frame.iloc[:, names.index(name)]


def _convert(frame: Any, columns: Sequence[str], keys: "pa.Table") -> "pa.Table":
    for position, name in enumerate(columns):
        keys = _add_column(keys, name, _as_array(frame.iloc[:, position], name))
    return keys


def _add_column(table: "pa.Table", name: str, values: "pa.Array") -> "pa.Table":
    import pyarrow as pa

    return table.append_column(name, values) if table.num_columns else pa.table({name: values})


def _as_array(values: Any, name: str) -> Any:
    import pyarrow as pa

    try:
        return factors.to_arrow(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        said = first_line(problem)
        raise InputError(
            problem=f"column {name!r} of {NAME} cannot be read ({said})", remedy="give all of it one type"
        ) from problem


def _infer_type(column: Any) -> "pa.DataType":
    """Arrow type of a pandas column; of objects, that of the first which is not missing."""
    import pyarrow as pa

    sample = column.iloc[:0]
    if column.dtype == object and len(column):
        first = int(np.argmax(column.notna().to_numpy()))
        sample = column.iloc[first : first + 1]
    try:
        return pa.array(sample, from_pandas=True).type
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.binary()  # neither factor nor feature


def _measure_width(kind: "pa.DataType", column: Any) -> int:
    """Bytes of a row, about."""
    import pyarrow as pa

    if column.dtype != object or not len(column):
        return int(getattr(column.dtype, "itemsize", 8))
    first = column.iloc[int(np.argmax(column.notna().to_numpy()))]
    entry = kind.value_type.bit_width // 8 if pa.types.is_list(kind) else 1
    return max(1, len(first) * max(1, entry)) if hasattr(first, "__len__") else 8


def list_columns(source: Any) -> "tuple[list[str], Callable[[list[str]], pa.Table]]":
    """Names of the columns of a table, and a function that gives some of them in memory."""
    import pyarrow as pa

    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(source, pandas.DataFrame):
        names = [str(name) for name in source.columns]
        return names, lambda wanted: pa.table(
            {name: _as_array(_pick_column(source, names, name), name) for name in wanted}
        )
    table = _as_arrow(source)
    if table is not None:
        return table.column_names, table.select
    stream = arrow_streams.open_stream(source) or arrow_streams.open_narwhals(source)
    return stream.schema.names, lambda wanted: pa.Table.from_batches(
        [batch.select(wanted) for batch in stream.batches(wanted)], pa.schema([stream.schema.field(n) for n in wanted])
    )
