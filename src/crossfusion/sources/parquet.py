"""Parquet files, of which each part is some row groups."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from crossfusion.errors import InputError
from crossfusion.sources import block, places
from crossfusion.sources.block import Block, Source, runs
from crossfusion.sources.frames import block_of, vector_columns
from crossfusion.storage import KEY

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

TROUBLE = "is not a readable Parquet file"
FOOTER = 2**13  # bytes of a footer that parts carry along; larger ones are read again, to keep memory small

PIECES = 4  # of a block of lists, since decoding these takes several times their memory
LARGEST = 2**24  # rows of a batch, whatever a file says of their size


def from_parquet(path: str, by: Sequence[str], vectors: Any = None) -> Source:
    """A Parquet file with one list column of vectors, or many numeric columns."""
    name = places.shown(path)
    with places.reaching(path, TROUBLE), _open(path) as file:
        schema, about = file.schema_arrow, file.metadata
        if KEY in (schema.metadata or {}):
            raise InputError(f"{name} is a summary already, without rows: ask it with matrix, hierarchy or attribution")
        columns = vector_columns(schema, by, vectors, name)
        footer = about if about.serialized_size <= FOOTER else None
        row_bytes = _row_bytes(about, [schema.field(column).type for column in columns], columns)
        parts = [
            partial(_blocks, path, by, columns, footer, groups, first, row_bytes)
            for groups, first in runs([about.row_group(k).num_rows for k in range(about.num_row_groups)], row_bytes)
        ]
    features = tuple(columns) if len(columns) > 1 else ()
    vector = columns[0] if vectors is None else ""
    return Source(name, parts, about.num_rows, features=features, vector=vector, columns=tuple(schema.names))


@contextmanager
def _open(path: str, footer: "pq.FileMetaData | None" = None) -> "Iterator[pq.ParquetFile]":
    import pyarrow.parquet as pq

    with places.open_arrow(path, mapped=True) as file:
        yield pq.ParquetFile(file, metadata=footer, pre_buffer=False)


def _row_bytes(about: "pq.FileMetaData", kinds: "Sequence[pa.DataType]", columns: Sequence[str]) -> int:
    """Bytes of a row once it is decoded: numbers × their width, whatever the encoding in the file."""
    wanted, widths = dict(zip(columns, kinds, strict=True)), 0.0
    for k in range(about.num_columns if about.num_row_groups else 0):
        name = about.schema.column(k).path.split(".")[0]
        if name in wanted:
            group = about.row_group(0)
            kind = getattr(wanted[name], "value_type", wanted[name])
            widths += kind.bit_width / 8 * group.column(k).num_values / max(1, group.num_rows)
    return max(1, int(widths))


def _blocks(
    path: str,
    by: Sequence[str],
    columns: Sequence[str],
    footer: "pq.FileMetaData | None",
    groups: Sequence[int],
    first: int,
    row_bytes: int,
) -> Iterator[Block]:
    import pyarrow as pa

    most = max(1, block.BLOCK // (1 if len(columns) > 1 else PIECES) // row_bytes)
    with ExitStack() as stack:
        stack.enter_context(places.reaching(path, "is damaged: write it again"))
        file = stack.enter_context(_open(path, footer))
        rows = _evenly(sum(file.metadata.row_group(group).num_rows for group in groups), min(most, LARGEST))
        for batch in file.iter_batches(rows, row_groups=list(groups), columns=[*by, *columns], use_threads=False):
            table = pa.Table.from_batches([batch])
            table.select(list(by)).validate(full=True)
            yield block_of(table, by, columns, places.shown(path), first)
            first += batch.num_rows


def _evenly(rows: int, most: int) -> int:
    """Rows of a batch, so that all are of about the same size and none has more than `most`."""
    batches = max(1, -(-rows // most))
    return max(1, -(-rows // batches))
