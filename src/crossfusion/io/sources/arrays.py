"""Rows in memory."""

from collections.abc import Mapping
from typing import Any

from crossfusion._base import align_index, as_rows, check_distinct, check_length, check_some_rows, column_names, factors
from crossfusion.io.sources.chunk import Source, concatenate_chunks, hold_in_memory


def from_rows(rows: Any, by: Mapping[str, Any], name: str = "x") -> Source:
    """Rows and arrays of factor values."""
    values = as_rows(rows, name)
    keys = factors.as_table(dict(zip(by, align_index(name, rows, **by), strict=True)))
    check_length(keys.num_rows, values.shape[0], next(iter(by)), name)
    features = column_names(rows)
    check_distinct(features, name, f"rename them, or pass the values alone, {name}.to_numpy()")
    return hold_in_memory(name, values, keys, features)


def read_rows(source: Source) -> Any:
    """All rows of a source in one array."""
    chunks = list(source.chunks())
    check_some_rows(len(chunks), source.name)
    return concatenate_chunks(chunks)
