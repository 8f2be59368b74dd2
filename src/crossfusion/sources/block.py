"""What a source yields."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Block:
    """Some rows and, for each of them, the values of the factors."""

    rows: Any
    keys: "pa.Table"


@dataclass(frozen=True)
class Source:
    """A name for messages, the number of rows, and the blocks, to be read once."""

    name: str
    rows: int
    blocks: Iterator[Block]
