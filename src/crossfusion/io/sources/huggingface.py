"""Data sets of Hugging Face: a `Dataset` in chunks of its Arrow table, an `IterableDataset` as a stream.

Who passes one has imported the library, so it is looked up among the loaded modules. Rows are read as Arrow, whatever
format is set, in the order that `select` and `shuffle` gave them.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from crossfusion._base import InputError, check_some_rows
from crossfusion.io.sources.arrow_streams import Stream, choose_batch_rows, from_stream
from crossfusion.io.sources.chunk import Source, measure_bytes
from crossfusion.io.sources.vector_columns import find_vectors, split_table

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "the Dataset"
SAMPLE_ROWS = 16  # rows from which is known how wide they are


def _is_instance(source: Any, module: str, *names: str) -> bool:
    """Whether this is an instance of a class of the library."""
    loaded = sys.modules.get(f"datasets.{module}")
    return any(isinstance(source, getattr(loaded, name, ())) for name in names)


def is_dataset(source: Any) -> bool:
    """Whether this is a data set of Hugging Face, or a dictionary of some."""
    known = (("arrow_dataset", "Dataset"), ("iterable_dataset", "IterableDataset"))
    return any(_is_instance(source, *kind) for kind in known) or _is_dictionary(source)


def _is_dictionary(source: Any) -> bool:
    return _is_instance(source, "dataset_dict", "DatasetDict", "IterableDatasetDict")


def from_dataset(source: Any, by: Sequence[str], vectors: Any = None) -> Source:
    """Rows of a data set."""
    if _is_dictionary(source):
        splits = ", ".join(map(repr, source))
        raise InputError(
            problem=f"a {type(source).__name__} holds several data sets ({splits})",
            remedy="pass one, such as data['train']",
        )
    if _is_instance(source, "iterable_dataset", "IterableDataset"):
        return from_stream(_open_stream(source), by, vectors, NAME)
    if source.format["type"] == "custom":
        raise InputError(
            problem="the Dataset makes its rows when they are asked for (set_transform), but its table is what is read",
            remedy="keep them with Dataset.map, or pass a DataLoader",
        )
    schema = source.features.arrow_schema
    columns = find_vectors(schema, by, vectors, NAME)
    check_some_rows(len(source), NAME)
    needed = source.select_columns([*by, *columns]).with_format("arrow")
    sample = needed[: min(SAMPLE_ROWS, len(source))]
    size = len(source) * max(1, measure_bytes(sample) // sample.num_rows)

    def cut(start: int, stop: int) -> "Callable[[], pa.Table]":
        return partial(_read_rows, needed, start, stop)

    return split_table(cut, len(source), size, schema, by, columns, NAME)


def _read_rows(dataset: Any, start: int, stop: int) -> "pa.Table":
    table: pa.Table = dataset[start:stop]
    return table


def _open_stream(dataset: Any) -> Stream:
    """Stream of a data set whose rows show as they are read; where its columns are not known, a first row tells."""
    if dataset.features is not None:
        schema = dataset.features.arrow_schema
    else:
        first = next(iter(dataset.with_format("arrow").iter(batch_size=1)), None)
        if first is None:
            raise InputError(
                problem=f"{NAME} has no rows, so nothing tells its columns", remedy="pass a data set with rows"
            )
        schema = first.schema
    return Stream(schema, partial(_read_batches, dataset, schema))


def _read_batches(dataset: Any, schema: "pa.Schema", columns: list[str]) -> "Iterator[pa.RecordBatch]":
    rows = choose_batch_rows(schema, columns)
    for table in dataset.select_columns(columns).with_format("arrow").iter(batch_size=rows):
        yield from table.to_batches()
