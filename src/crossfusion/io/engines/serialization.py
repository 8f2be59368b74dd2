"""What rows have become, as bytes in Arrow's format: how reductions travel between processes.

Arrow keeps the types of the factors as they are, whatever types the engine itself knows, and runs no code when read.
"""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import factors
from crossfusion.io.reduction import Reduction, RowCounts
from crossfusion.io.sources.manifest_match import Match
from crossfusion.moments import Moments
from crossfusion.summary import Summary, storage

if TYPE_CHECKING:
    import pyarrow as pa

MESSAGE_BYTES = 16 * 2**20  # bytes of moments in a message
KEY = b"piece"


def pack(reduction: Reduction) -> Iterator[bytes]:
    """Messages that hold a reduction: some of its groups each; at least one."""
    import pyarrow as pa

    facts = {
        "name": reduction.name,
        "rows": reduction.seen.rows,
        "bad": reduction.seen.bad,
        "where": reduction.seen.where,
    }
    tables = [(facts | {"lost": True}, table) for table in _drop_repeats(reduction.lost)]
    if reduction.summary is not None:
        facts |= {"dtype": reduction.summary.dtype, "dropped": reduction.summary.dropped}
        table = storage.make_table(reduction.summary.keys, reduction.summary.moments)
        step = max(1, MESSAGE_BYTES // (16 * reduction.dim))
        tables = [*((facts, table.slice(k, step)) for k in range(0, table.num_rows, step)), *tables]
    if reduction.match is not None:
        tables = [*(tables or [(facts, pa.table({}))]), _pack_match(reduction.match, facts)]
    for about, table in tables or [(facts, pa.table({}))]:
        yield _make_message(about, table)


def _pack_match(match: Match, facts: dict[str, Any]) -> "tuple[dict[str, Any], pa.Table]":
    import pyarrow as pa

    about = {"match": {"files": sorted(match.files), "more": match.more}}
    return facts | about, pa.table({"used": [match.used], "missing": pa.array([list(match.missing)])})


def _unpack_match(facts: dict[str, Any], table: "pa.Table") -> Match:
    about = facts["match"]
    files = frozenset((row, file) for row, file in about["files"])
    used = np.array(table.column("used")[0].as_py(), np.int64)
    return Match(used, files, frozenset(table.column("missing")[0].as_py()), about["more"])


def _make_message(facts: dict[str, Any], table: "pa.Table") -> bytes:
    import pyarrow as pa

    table = table.replace_schema_metadata({KEY: json.dumps(facts).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _drop_repeats(tables: "Sequence[pa.Table]") -> "list[pa.Table]":
    """The same keys, each once, in one table for each set of types."""
    import pyarrow as pa

    alike: dict[str, list[pa.Table]] = {}
    for table in tables:
        alike.setdefault(str(table.schema), []).append(table)
    return [factors.encode(pa.concat_tables(some))[1] for some in alike.values()]


def unpack(messages: Sequence[bytes]) -> Reduction:
    """The reduction that `pack` made these messages of."""
    tables = [_read_message(message) for message in messages]
    facts = tables[0][0]
    kept = [table for about, table in tables if not {"lost", "match"} & {*about} and table.num_columns]
    match = next((_unpack_match(about, table) for about, table in tables if "match" in about), None)
    lost = tuple(table for about, table in tables if "lost" in about)
    summary = _make_summary(kept, facts) if kept else None
    return Reduction(facts["name"], summary, RowCounts(facts["rows"], facts["bad"], facts["where"]), lost, match)


def _read_message(message: bytes) -> tuple[dict[str, Any], "pa.Table"]:
    import pyarrow as pa

    with pa.ipc.open_stream(message) as reader:
        table = reader.read_all()
    return json.loads(table.schema.metadata[KEY]), table.replace_schema_metadata(None)


def _make_summary(tables: "Sequence[pa.Table]", facts: dict[str, Any]) -> Summary:
    import pyarrow as pa

    table = pa.concat_tables(tables)
    count, mean, sumsq = (table.column(name).combine_chunks() for name in storage.MOMENT_COLUMNS)
    shape = len(count), mean.type.list_size
    values = (np.asarray(column.flatten().to_numpy()).reshape(shape) for column in (mean, sumsq))
    keys = table.drop_columns(list(storage.MOMENT_COLUMNS)).combine_chunks()
    return Summary(keys, Moments(count.to_numpy(), *values), facts["dtype"], facts["dropped"])
