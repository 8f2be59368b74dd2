"""Small items of rows put together to chunks, copied as they come so that no item is kept."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import InputError, factors
from crossfusion.io.sources import chunk
from crossfusion.io.sources.chunk import Chunk

if TYPE_CHECKING:
    import pyarrow as pa


def rechunk(items: Iterable[Chunk], name: str) -> Iterator[Chunk]:
    """Chunks of about `CHUNK_BYTES`; an item of at least half that passes unchanged."""
    waiting = _Buffer()
    dim = None
    for item in items:
        rows = item.rows
        if dim not in (None, rows.shape[1]) and not _is_all_missing(rows):
            raise InputError(
                problem=f"{name} holds vectors of unequal length, {dim} entries up to row {item.first - 1} and"
                f" {rows.shape[1]} from row {item.first}",
                remedy="pad or drop them",
            )
        if rows.nbytes >= chunk.CHUNK_BYTES // 2:
            yield from waiting.flush()
            yield item
        else:
            if not waiting.has_place_for(rows):
                yield from waiting.flush()
            waiting.add(item)
        dim = rows.shape[1] if dim is None and not _is_all_missing(rows) else dim
    yield from waiting.flush()


def _is_all_missing(rows: Any) -> bool:
    """Whether there is no vector from which the number of features could be known."""
    return bool(rows.shape[1] == 1 and np.isnan(rows[:1]).any() and np.isnan(rows).all())


def _copy_keys(keys: "pa.Table") -> "pa.Table":
    """Keys in memory of their own, since those of a batch that another library made keep all of the batch alive."""
    if not keys.num_columns:
        return keys
    columns = {name: factors.as_plain(keys.column(name), name) for name in keys.column_names}
    return type(keys).from_pydict(columns).take(np.arange(keys.num_rows))


class _Buffer:
    """Rows that wait until there are enough of them."""

    _space: Any = None  # as many rows as a chunk takes
    _first = _filled = 0

    def __init__(self) -> None:
        self._keys: list[pa.Table] = []

    def has_place_for(self, rows: Any) -> bool:
        """Whether these rows are of the same kind and fit in."""
        if self._space is None:
            return True
        same = self._space.dtype == rows.dtype and self._space.shape[1] == rows.shape[1]
        return same and self._filled + len(rows) <= len(self._space)

    def add(self, item: Chunk) -> None:
        """Copy a item."""
        rows = item.rows
        if self._space is None:
            number = max(len(rows), chunk.CHUNK_BYTES // max(1, rows.shape[1] * rows.itemsize))
            self._space, self._first = np.empty((number, rows.shape[1]), rows.dtype), item.first
        self._space[self._filled : self._filled + len(rows)] = rows
        self._filled += len(rows)
        self._keys.append(_copy_keys(item.keys))

    def flush(self) -> Iterator[Chunk]:
        """The chunk, if there is any row, and start anew."""
        if self._space is not None:
            full = Chunk(
                self._space[: self._filled], factors.concat_tables(self._keys, "one batch and another"), self._first
            )
            self._space, self._keys, self._filled = None, [], 0
            yield full
