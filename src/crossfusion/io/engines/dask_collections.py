"""Dask arrays and data frames as tasks, each of which reduces a chunk or a partition where it lies."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any
from uuid import uuid4

import numpy as np

from crossfusion._base import (
    InputError,
    arg,
    as_names,
    as_rows,
    check_known,
    check_length,
    column_names,
    factors,
)
from crossfusion.io.engines.recognition import is_collection
from crossfusion.io.sources.chunk import Chunk
from crossfusion.io.sources.vector_columns import choose_columns, find_vectors, make_chunk

Work = Callable[[Chunk | None, str], Any]


@dataclass(frozen=True)
class DaskTasks:
    """Rows that Dask will make: a name for messages, and tasks.

    The tasks are a graph as Dask understands it: a mapping of keys to tuples of a function and its arguments, of which
    those that are keys stand for results. The tasks called `leaves` make a chunk each, in their order; what is to be
    done with it is a further argument: a function of the chunk (None without rows) and a name.
    """

    name: str
    graph: Mapping[Any, Any]
    leaves: Sequence[Any]
    rows: int | None = None  # None: known only after they are made
    features: tuple[str, ...] = ()  # names of the columns, where each feature has one


def open_collection(source: Any, by: Any, vectors: Any = None) -> DaskTasks:
    """Tasks of a Dask array with `by` as arrays, or of a Dask data frame with `by` as column names."""
    frame = _is_frame(source)
    if not frame and not _is_array(source):
        kind = type(source).__name__
        raise InputError(
            problem=f"a Dask {kind} has no rows to summarize", remedy="pass a Dask array or a Dask data frame"
        )
    if isinstance(by, Mapping):
        if vectors is not None:
            raise InputError(
                "vectors",
                problem="names columns of a file or table",
                remedy=f"leave it out where {arg('by')} holds arrays",
            )
        return replace(_plan_array(source.values if frame else source, by), features=column_names(source))
    names = as_names(by, "by", needed=True)
    if not frame:
        raise InputError(
            problem=f"a Dask array has no columns to find {names[0]!r} in", remedy="pass by={name: values}"
        )
    return _plan_frame(source, names, vectors)


def _is_array(value: Any) -> bool:
    return is_collection(value) and hasattr(type(value), "rechunk")  # a Delayed has every attribute itself


def _is_frame(value: Any) -> bool:
    return is_collection(value) and hasattr(type(value), "columns") and value.ndim == 2


def _list_tasks(collections: Sequence[Any]) -> tuple[dict[Any, Any], list[list[Any]]]:
    """Tasks that make the chunks of some collections, as Dask optimizes them, and the keys of those chunks."""
    graph: dict[Any, Any] = {}
    keys = []
    for collection in collections:
        chunks = list(np.ravel(collection.to_delayed()))
        graph |= dict(chunks[0].dask) if chunks else {}  # all have the same graph
        keys.append([chunk.key for chunk in chunks])
    return graph, keys


def make_keys(name: str, number: int) -> list[tuple[str, int]]:
    """Keys of so many new tasks."""
    unique = f"{name}-{uuid4().hex}"
    return [(unique, k) for k in range(number)]


def _plan_array(array: Any, by: Mapping[str, Any]) -> DaskTasks:
    if array.ndim != 2:
        raise InputError(
            "x",
            problem=f"must be two-dimensional, rows × features, but has {array.ndim} dimensions",
            remedy="reshape it",
        )
    as_names([*by], "by", needed=True)
    if array.numblocks[1] > 1:
        if np.isnan(array.shape[1]):
            raise InputError(
                "x", problem="has an unknown number of features", remedy="call compute_chunk_sizes() on it first"
            )
        array = array.rechunk({1: -1})
    sizes = array.chunks[0]
    known = not np.isnan(sum(sizes))
    lazy, here = _align_factors(by, sizes, known)
    graph, (chunks, *labels) = _list_tasks([array, *lazy.values()])
    for name, tasks in zip(lazy, labels, strict=True):
        _check_chunks(len(tasks), len(chunks), name)
    starts = [0, *accumulate(map(int, sizes))] if known else [0] * len(sizes)
    leaves = make_keys("crossfusion-chunk", len(chunks))
    for k, leaf in enumerate(leaves):
        place = "" if known else f"chunk {k} of x"
        fixed = {name: here[name][k] if name in here else None for name in by}
        use = partial(_use_chunk, tuple(lazy), fixed, starts[k], place)
        graph[leaf] = (use, chunks[k], [tasks[k] for tasks in labels])
    return DaskTasks("x", graph, leaves, int(sum(sizes)) if known else None)


def _use_chunk(
    names: Sequence[str],
    by: Mapping[str, Any],
    first: int,
    place: str,
    rows: Any,
    labels: Sequence[Any],
    work: Work,
) -> Any:
    """Work on the rows of a chunk, where they lie; `labels` are the values of the factors called `names`."""
    by = {**by, **dict(zip(names, labels, strict=True))}
    values, keys = as_rows(rows, place or "x"), factors.as_table(by)
    where = place or f"the chunk of x from row {first} on"
    check_length(keys.num_rows, values.shape[0], next(iter(by)), where)
    return work(Chunk(values, keys, first, place) if keys.num_rows else None, "x")


def _align_factors(
    by: Mapping[str, Any], sizes: Sequence[Any], known: bool
) -> tuple[dict[str, Any], dict[str, Sequence[Any]]]:
    """Factors that Dask will make, in chunks like those of the rows, and for each other factor its values in each."""
    here = {name: values for name, values in by.items() if not is_collection(values)}
    lazy = {name: _rechunk(values, name, sizes) for name, values in by.items() if name not in here}
    if not here:
        return lazy, {}
    if not known:
        raise InputError(
            "x",
            problem=f"has chunks of unknown size, and {next(iter(here))} is not in such chunks",
            remedy="pass it as a Dask array or series in the same chunks, or call compute_chunk_sizes() on x first",
        )
    keys = factors.as_table(here)
    check_length(keys.num_rows, int(sum(sizes)), next(iter(here)), "x")
    return lazy, {name: _cut_column(keys.column(name), sizes) for name in here}


def _cut_column(column: Any, sizes: Sequence[int]) -> list[Any]:
    """Chunks of a column, each with the few values that occur in it, since an Arrow slice travels as a whole."""
    starts = [0, *accumulate(sizes)]
    whole = column.combine_chunks()
    chunks = (whole.slice(start, size) for start, size in zip(starts, sizes, strict=False))
    return [factors.as_plain(chunk, "").dictionary_encode() for chunk in chunks]


def _rechunk(values: Any, name: str, sizes: Sequence[Any]) -> Any:
    """A Dask array or series in chunks of these sizes, as far as sizes are known."""
    if not hasattr(type(values), "ndim") or values.ndim != 1:
        raise InputError(
            problem=f"{name} must hold one value per row",
            remedy="pass one array, or one Dask array or series, per factor",
        )
    if _is_array(values) and not np.isnan(sum(values.chunks[0])) and not np.isnan(sum(sizes)):
        check_length(values.shape[0], int(sum(sizes)), name, "x")
        return values.rechunk((tuple(sizes),))
    return values


def _check_chunks(number: int, expected: int, name: str) -> None:
    if number != expected:
        raise InputError(
            problem=f"{name} has {number} chunks for {expected} of x, and their sizes are not known",
            remedy="take both from the same frame, or call compute_chunk_sizes() on both arrays first",
        )


def _plan_frame(frame: Any, by: tuple[str, ...], vectors: Any) -> DaskTasks:
    names = [str(name) for name in frame.columns]
    check_known(by, names, "column", "the table")
    columns = (
        _find_list_column(frame, by)
        if vectors is None
        else choose_columns(names, by, as_names(vectors, "vectors", "column"), "the table")
    )
    needed = frame[[*by, *columns]] if len(names) == len(set(names)) else frame
    graph, (partitions,) = _list_tasks([needed])
    leaves = make_keys("crossfusion-partition", len(partitions))
    for k, (leaf, partition) in enumerate(zip(leaves, partitions, strict=True)):
        graph[leaf] = (partial(_use_partition, by, columns, k), partition)
    each = len(columns) > 1 or getattr(frame.dtypes[columns[0]], "kind", "O") in "biuf"
    return DaskTasks("the table", graph, leaves, features=tuple(columns) if each else ())


def _find_list_column(frame: Any, by: Sequence[str]) -> list[str]:
    """The one column that can hold vectors, by its type, so that all partitions take the same."""
    kinds = {name: str(kind) for name, kind in frame.dtypes.items() if name not in by}
    found = [name for name, kind in kinds.items() if kind == "object" or "list<" in kind]
    if len(found) != 1:
        said = f"{len(found)} columns that may hold vectors ({', '.join(found)})" if found else "no vector column"
        raise InputError(
            problem=f"the table has {said}", remedy=f"name one in {arg('vectors')}, or a pattern such as 'dim_*'"
        )
    return found


def _use_partition(by: Sequence[str], columns: Sequence[str], number: int, frame: Any, work: Work) -> Any:
    """Work on the rows of a partition, where they lie."""
    import pyarrow as pa

    place = f"partition {number} of the table"
    if not len(frame):
        return work(None, "the table")
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as problem:
        said = " ".join(str(problem).split())
        raise InputError(
            problem=f"{place} has a column that cannot be read ({said})", remedy="pass only the columns needed"
        ) from problem
    kind = table.schema.field(columns[0]).type if len(columns) == 1 else None
    if kind is not None and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise InputError(
            problem=f"column {columns[0]!r} of {place} holds text",
            remedy="Dask makes text of lists unless dask.config.set({'dataframe.convert-string': False})"
            " comes before the frame",
        )
    chunk = make_chunk(table, by, find_vectors(table.schema, by, list(columns), place), place)
    return work(replace(chunk, file=place), "the table")
