"""What runs on Spark's executors: a partition becomes messages, and messages become fewer.

An error of ours is an answer too. It is not raised there, where Spark would try again what fails each time, but passed
on to the driver, which raises it: of several always the first one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from crossfusion._base import CrossfusionError, RowLens, dump_error, load_error
from crossfusion.io.engines.serialization import pack, unpack
from crossfusion.io.reduction import Reduction, RunningSum, reduce_partition
from crossfusion.io.sources.chunk import Chunk, Partition
from crossfusion.io.sources.vector_columns import make_chunk

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "source long, number long, position long, partitions long, rows long, error string, payload binary"


class Message(NamedTuple):
    """A row between the tasks: some groups of a reduction, or an error."""

    source: int
    number: int  # of the reduction: reductions add up in this order
    position: int = 0  # of the message within the reduction
    partitions: int = 0  # of the reduction; 0 in its further messages
    rows: int = 0  # rows that these had
    error: str | None = None
    payload: bytes | None = None


def reduce_spark_partition(
    batches: "Iterator[pa.RecordBatch]",
    *,
    by: Sequence[str],
    columns: Sequence[str],
    name: str,
    size: int,
    lens: RowLens | None = None,
) -> "Iterator[pa.RecordBatch]":
    """Reduce one partition of a table, in chunks of about `size` bytes."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None  # this is a task
    number = context.partitionId()
    chunks = partial(_read_chunks, batches, by, columns, f"partition {number} of {name}", size)
    yield from map(make_batch, reply(0, number, lambda: (reduce_partition(chunks, name, lens), 1)))


def _read_chunks(
    batches: "Iterator[pa.RecordBatch]", by: Sequence[str], columns: Sequence[str], holder: str, size: int
) -> Iterator[Chunk]:
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    first = 0

    def merge_waiting() -> Chunk:
        table = _convert_to_utc(pa.Table.from_batches(waiting).rename_columns([*by, *columns]), by)
        found = make_chunk(table, by, columns, holder, first)
        return Chunk(found.rows, found.keys, first, holder)

    for batch in batches:
        waiting.append(batch)
        if sum(entry.nbytes for entry in waiting) >= size:
            yield merge_waiting()
            first, waiting = first + sum(entry.num_rows for entry in waiting), []
    if sum(entry.num_rows for entry in waiting):
        yield merge_waiting()


def _convert_to_utc(table: "pa.Table", by: Sequence[str]) -> "pa.Table":
    """The same times, in UTC whatever the time zone of the session."""
    import pyarrow as pa

    for name in by:
        kind = table.schema.field(name).type
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, table.column(name).cast(pa.timestamp(kind.unit, "UTC")))
    return table


def reduce_source_partitions(
    batches: "Iterator[pa.RecordBatch]",
    *,
    partitions: Sequence[tuple[int, int, str, bytes]],
    lens: RowLens | None = None,
) -> "Iterator[pa.RecordBatch]":
    """Reduce the partitions whose positions are in the batches; each has a source, a number, a name, and is pickled."""
    for batch in batches:
        for position in batch.column(0).to_pylist():
            source, number, name, partition = partitions[position]
            yield from map(make_batch, reply(source, number, partial(_reduce_pickled, partition, name, lens)))


def _reduce_pickled(pickled: bytes, name: str, lens: RowLens | None) -> tuple[Reduction, int]:
    import pickle

    partition: Partition = pickle.loads(pickled)  # made by the driver, as is this function itself
    return reduce_partition(partition, name, lens), 1


def merge_messages(batches: "Iterator[pa.RecordBatch]", *, fan: int) -> "Iterator[pa.RecordBatch]":
    """Add up the reductions of each `fan` numbers in a row; messages come in their order."""
    messages = (Message(*row.values()) for batch in batches for row in batch.to_pylist())
    for (source, number), some in groupby(messages, key=lambda message: (message.source, message.number // fan)):
        yield from map(make_batch, reply(source, number, partial(add_messages, some)))


def reply(source: int, number: int, work: Callable[[], tuple[Reduction, int]]) -> Iterator[Message]:
    """Messages that hold what `work` finds and how many partitions that is of, or the error it ends with."""
    try:
        reduction, partitions = work()
    except CrossfusionError as problem:
        yield Message(source, number, partitions=1, error=dump_error(problem))
        return
    for position, payload in enumerate(pack(reduction)):
        first = (partitions, reduction.seen.rows) if position == 0 else (0, 0)
        yield Message(source, number, position, *first, None, payload)


def make_batch(message: Message) -> "pa.RecordBatch":
    """One row, in a batch of its own, since a message may be large."""
    import pyarrow as pa

    kinds = dict.fromkeys(Message._fields, pa.int64()) | {"error": pa.string(), "payload": pa.binary()}
    return pa.RecordBatch.from_pylist([message._asdict()], schema=pa.schema(list(kinds.items())))


def add_messages(messages: Iterable[Message]) -> tuple[Reduction, int]:
    """The sum of all reductions of a source, and how many partitions they are of; an error among them is raised."""
    running, partitions = RunningSum(""), 0
    for position, (_, some) in enumerate(groupby(messages, key=lambda message: message.number)):
        parts = list(some)
        raise_error(parts)
        partitions += sum(message.partitions for message in parts)
        running.add(position, unpack([message.payload or b"" for message in parts]))
    return running.total(), partitions


def raise_error(messages: Iterable[Message]) -> None:
    """Raise the first error that a message carries."""
    for message in messages:
        if message.error is not None:
            raise load_error(message.error)
