"""Tables: which columns hold the vectors.

Serves every source that arrives as Arrow: Parquet and CSV files, tables in memory, streams of record batches.
"""

from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any

from crossfusion._base import InputError, arg, as_names, check_known, check_once
from crossfusion.io.sources import chunk
from crossfusion.io.sources.chunk import Chunk, Source, cut_evenly, hold_in_memory
from crossfusion.io.sources.columns_to_rows import (
    from_lists,
    from_numbers,
    is_number,
    is_text,
    is_vector,
    list_entry_type,
)

if TYPE_CHECKING:
    import pyarrow as pa

Cut = Callable[[int, int], Callable[[], "pa.Table"]]  # from a chunk of rows to what makes an Arrow table of it


def find_vectors(schema: "pa.Schema", by: Sequence[str], vectors: Any, holder: str) -> list[str]:
    """Names of the columns that hold the vectors: one list column, or several numeric ones."""
    check_known(by, schema.names, "column", holder)
    check_once(by, schema.names, holder)
    if vectors is None:
        lists = [field for field in schema if list_entry_type(field.type) is not None and field.name not in by]
        found = [field.name for field in lists if is_vector(field.type)]
        if len(lists) == 1 and not found:
            raise _make_type_error(lists[0].name, lists[0].type, holder)
        if len(found) != 1:
            said = f"{len(found)} vector columns ({', '.join(found)})" if found else "no vector column"
            raise InputError(
                problem=f"{holder} has {said}", remedy=f"name one in {arg('vectors')}, or a pattern such as 'dim_*'"
            )
        return found
    names = choose_columns(schema.names, by, as_names(vectors, "vectors", "column"), holder)
    check_once(names, schema.names, holder)
    types = {field.name: field.type for field in schema}
    kinds = {name: types[name] for name in names}
    if len(names) > 1 or not _is_whole(kinds[names[0]]):
        for name, kind in kinds.items():
            if not is_number(kind):
                raise _make_type_error(name, kind, holder)
    return names


def _is_whole(kind: "pa.DataType") -> bool:
    """Whether values of this type are whole vectors: lists of numbers, their text, or nothing but missing ones."""
    import pyarrow as pa

    return is_vector(kind) or is_text(kind) or bool(pa.types.is_null(kind))


def _make_type_error(name: str, kind: "pa.DataType", holder: str) -> InputError:
    import pyarrow as pa

    if pa.types.is_decimal(list_entry_type(kind) or kind):
        return InputError(
            problem=f"column {name!r} of {holder} holds decimals ({kind})", remedy="cast it to float or double first"
        )
    return InputError(
        problem=f"column {name!r} of {holder} holds {kind}, not numbers", remedy=f"leave it out of {arg('vectors')}"
    )


def choose_columns(names: Sequence[str], by: Sequence[str], wanted: Sequence[str], holder: str) -> list[str]:
    """Columns that the entries name, or match as patterns where no column has that very name, in that order."""
    found: dict[str, None] = {}
    known, factors = set(names), set(by)
    for entry in wanted:
        if entry in factors:
            raise InputError(
                problem=f"{entry!r} is in {arg('vectors')} and is a factor too",
                remedy=f"leave it out of {arg('vectors')}",
            )
        matching = (
            [entry] if entry in known else [name for name in names if fnmatchcase(name, entry) and name not in factors]
        )
        if not matching and "*" not in entry:
            check_known([entry], names, "column", holder)
        if not matching:
            raise InputError(
                problem=f"{holder} has no column for {arg('vectors', entry)}", remedy=f"there are {', '.join(names)}"
            )
        found |= dict.fromkeys(matching)
    return list(found)


def list_numeric_columns(schema: "pa.Schema", by: Sequence[str]) -> list[str]:
    """Names of all numeric columns that are not factors; true and false are no numbers in a text."""
    import pyarrow as pa

    return [
        field.name
        for field in schema
        if is_number(field.type) and not pa.types.is_boolean(field.type) and field.name not in by
    ]


def make_chunk(table: "pa.Table", by: Sequence[str], columns: Sequence[str], holder: str, first: int = 0) -> Chunk:
    """Rows and keys of a table, or of the partition of one that starts at row `first`."""
    keys = table.select(list(by))
    if has_feature_columns(table.schema, columns):
        return Chunk(from_numbers([table.column(name) for name in columns]), keys, first)
    return Chunk(from_lists(table.column(columns[0]), columns[0], holder, first), keys, first)


def has_feature_columns(schema: "pa.Schema", columns: Sequence[str]) -> bool:
    """Whether these columns hold a feature each, rather than one of them whole vectors."""
    return len(columns) > 1 or is_number(schema.field(columns[0]).type)


def split_table(
    cut: Cut, rows: int, size: int, schema: "pa.Schema", by: Sequence[str], columns: Sequence[str], name: str
) -> Source:
    """One chunk of a small table, which shares its memory where it can; chunks of a large one."""
    features = tuple(columns) if has_feature_columns(schema, columns) else ()
    if size <= chunk.CHUNK_BYTES:
        whole = make_chunk(cut(0, rows)(), by, columns, name)
        return hold_in_memory(name, whole.rows, whole.keys, features)
    cuts = cut_evenly(rows, size // rows)
    partitions = [partial(_read_chunk, cut(start, stop), by, columns, name, start) for start, stop in cuts]
    return Source(name, partitions, rows, features=features, here=True)


def _read_chunk(
    table: "Callable[[], pa.Table]", by: Sequence[str], columns: Sequence[str], name: str, first: int
) -> Iterator[Chunk]:
    yield make_chunk(table(), by, columns, name, first)
