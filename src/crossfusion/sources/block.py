"""What a source yields."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Block:
    """Some rows and, for each of them, the values of the factors, if there are any."""

    rows: Any
    keys: "pa.Table"


@dataclass(frozen=True)
class Source:
    """A name for messages, the number of rows, blocks to be read once, and what was decided without being asked."""

    name: str
    rows: int
    blocks: Iterator[Block]
    note: str = ""
    features: tuple[str, ...] = ()  # names of the columns, where each feature has one


def with_key(source: Source, name: str, value: str) -> Source:
    """The same rows under one factor, with the same value for all of them."""
    import pyarrow as pa

    def keys(rows: int) -> "pa.Table":
        same = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), [value])
        return pa.table({name: same})

    blocks = (Block(block.rows, keys(block.rows.shape[0])) for block in source.blocks)
    return Source(source.name, source.rows, blocks, source.note, source.features)
