"""Plain pages of a Parquet file: floats that are neither packed nor missing are arrays in the file, and used as such.

Whatever else a file holds is left to PyArrow: every function here returns None then.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import CHUNK_BYTES

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAGIC = b"PAR1"
KINDS = {np.dtype("<f4"): 4, np.dtype("<f8"): 5}  # Parquet's FLOAT and DOUBLE

Bytes = NDArray[np.uint8]


class Leaf(NamedTuple):
    """A column of numbers in the file: its place among all, and the highest levels of its values."""

    place: int
    definition: int
    repetition: int


class Pages:
    """Where the pages of a file are.

    Parameters
    ----------
    data : array of bytes
        The whole file.
    chunks : array, row groups × columns × fields
        What the footer says, as `_pages` has it.
    leaves : dict
        Columns of numbers by the name of the column that they belong to.
    rows : sequence of int
        Of each row group.
    """

    def __init__(self, data: Bytes, chunks: NDArray[np.int64], leaves: dict[str, Leaf], rows: Sequence[int]) -> None:
        self._data, self._chunks, self._leaves, self._rows = data, chunks, leaves, rows

    @classmethod
    def of(cls, data: Bytes, file: "pq.ParquetFile") -> "Pages | None":
        """Those of a file with these bytes."""
        about = file.metadata
        size = int.from_bytes(data[-8:-4].tobytes(), "little")
        if len(data) < size + 12 or data[-4:].tobytes() != MAGIC:
            return None
        table = np.empty((about.num_row_groups, about.num_columns, _fields()), np.int64)
        if not _compiled("chunks")(data, len(data) - 8 - size, len(data) - 8, table):
            return None
        rows = [about.row_group(group).num_rows for group in range(about.num_row_groups)]
        return cls(data, table, _leaves(file), rows)

    def columns(self, group: int, names: Sequence[str], space: NDArray[Any]) -> bool:
        """Fill the lines of an array with columns of one number a row; whether that could be done."""
        leaves = [self._leaves.get(name) for name in names]
        flat = [leaf for leaf in leaves if leaf is not None and not leaf.repetition]
        if len(flat) < len(names) or space.dtype not in KINDS:
            return False
        chunks = self._chunks[group, [leaf.place for leaf in flat]]
        definition = np.array([leaf.definition for leaf in flat])
        return bool(_compiled("columns")(self._data, chunks, KINDS[space.dtype], definition, space.view(np.uint8)))

    def lists(self, groups: Sequence[int], name: str, dim: int, dtype: np.dtype[Any]) -> Iterator[NDArray[Any]] | None:
        """Rows of a column of lists of `dim` numbers, some at a time."""
        leaf = self._leaves.get(name)
        if leaf is None or leaf.repetition != 1 or dtype not in KINDS:
            return None
        found: list[tuple[int, int]] = []
        for group in groups:
            number, chunk = self._rows[group] * dim, self._chunks[group, leaf.place]
            if number * dtype.itemsize > len(self._data):
                return None
            pages = _compiled("lists")(self._data, chunk, KINDS[dtype], number, leaf.definition, leaf.repetition, dim)
            if number and not len(pages):
                return None
            found += pages.tolist()
        return _rows(self._data, found, dim, dtype)


def _leaves(file: "pq.ParquetFile") -> dict[str, Leaf]:
    """Columns of the table that are a single column of numbers in the file."""
    schema, found, place = file.schema_arrow, {}, 0
    for field in schema:
        width = _width(field.type)
        column = file.schema.column(place) if place < len(file.schema) else None
        if width == 1 and column is not None and f"{column.path}.".startswith(f"{field.name}."):
            found[field.name] = Leaf(place, int(column.max_definition_level), int(column.max_repetition_level))
        place += width
    return found if place == len(file.schema) and len(set(schema.names)) == len(schema) else {}


def _width(kind: "pa.DataType") -> int:
    """Columns in the file of one in the table."""
    import pyarrow as pa

    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    inner = [] if pa.types.is_dictionary(kind) else [kind.field(k).type for k in range(kind.num_fields)]
    return sum(map(_width, inner)) if inner else 1


def _rows(data: Bytes, pages: Sequence[tuple[int, int]], dim: int, dtype: np.dtype[Any]) -> Iterator[NDArray[Any]]:
    """Rows of values that follow each other from page to page."""
    row = dim * dtype.itemsize
    rest = np.empty(0, np.uint8)  # the begin of a row that ends in the next page
    for start, number in pages:
        stop = start + number * dtype.itemsize
        for begin in range(start, stop, max(row, CHUNK_BYTES)):
            piece = data[begin : min(begin + max(row, CHUNK_BYTES), stop)]
            space = np.concatenate([rest, piece])
            whole = len(space) // row * row
            rest = space[whole:].copy()
            if whole:
                yield space[:whole].view(dtype).reshape(-1, dim)


def _fields() -> int:
    from crossfusion.io.sources import _pages

    return _pages.FIELDS


@lru_cache(maxsize=3)
def _compiled(name: str) -> Any:
    from crossfusion.io.sources import _pages

    return getattr(_pages, name)()
