"""Rows in memory."""

from collections.abc import Mapping
from typing import Any

from crossfusion import factors
from crossfusion.sources.block import Source, in_memory, joined
from crossfusion.validation import as_rows, check_length, check_some_rows


def from_rows(rows: Any, by: Mapping[str, Any], name: str = "x") -> Source:
    """Rows and arrays of factor values."""
    values = as_rows(rows, name)
    keys = factors.table(by)
    check_length(keys.num_rows, values.shape[0], next(iter(by)), name)
    return in_memory(name, values, keys)


def read_rows(source: Source) -> Any:
    """All rows of a source in one array."""
    blocks = list(source.blocks())
    check_some_rows(len(blocks), source.name)
    return joined(blocks)
