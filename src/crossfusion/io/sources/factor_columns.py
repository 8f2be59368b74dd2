"""Columns of factor values in a store of arrays, read a chunk at a time.

A column is a one-dimensional array, or a group in AnnData's notation: codes and categories, or values and a mask.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FileError, InputError, factors

if TYPE_CHECKING:
    import pyarrow as pa

    from crossfusion.io.sources.array_stores import Store


@dataclass(frozen=True)
class Column:
    """How many values there are, and how those of a chunk of rows are read."""

    length: int
    read: "Callable[[int, int], pa.Array]"


class Slices:
    """Chunks of a one-dimensional array; what was read last is kept, so no chunk is decoded twice in a row.

    Parameters
    ----------
    store : Store
        The library that the array comes from.
    array : array
        One-dimensional.
    """

    def __init__(self, store: "Store", array: Any) -> None:
        self.length = int(array.shape[0])
        self._store, self._array, self._step = store, array, store.step(array)
        self._start = self._stop = 0
        self._kept: Any = None

    def __call__(self, start: int, stop: int) -> NDArray[Any]:
        """Values from `start` up to `stop`."""
        if self._kept is None or start < self._start or stop > self._stop:
            self._start = start // self._step * self._step
            self._stop = min(-(-stop // self._step) * self._step, self.length)
            self._kept = self._store.entries(self._array, self._start, self._stop)
        return np.asarray(self._kept[start - self._start : stop - self._start])


def is_group(entry: Any) -> bool:
    """Whether this holds arrays, rather than being one."""
    return not hasattr(entry, "shape")


def read_encoding(entry: Any) -> str:
    """What AnnData says that an array or a group is; empty where it says nothing."""
    return as_text(entry.attrs.get("encoding-type", ""))


def as_text(value: Any) -> str:
    """A name or an attribute as text."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def open_column(store: "Store", entry: Any, holder: str) -> Column:
    """The column that an array or a group is."""
    kind = read_encoding(entry)
    if not is_group(entry):
        values = open_slices(store, entry, holder)
        return Column(values.length, partial(_read_plain, values, holder))
    if kind == "categorical":
        levels = open_column(store, entry["categories"], holder)
        return decode_categories(store, entry["codes"], levels, holder)
    if kind.startswith("nullable-"):
        values, mask = open_slices(store, entry["values"], holder), open_slices(store, entry["mask"], holder)
        if values.length != mask.length:
            raise FileError(holder, f"has {values.length} values and a mask of {mask.length}", "write it again")
        return Column(values.length, partial(_apply_mask, values, mask, holder))
    raise InputError(
        problem=f"{holder} is {kind or 'a group'}", remedy="a factor needs an array with one plain value per row"
    )


def open_slices(store: "Store", array: Any, holder: str) -> Slices:
    """A one-dimensional array of plain values."""
    shape = () if is_group(array) else array.shape or ()
    if len(shape) != 1:
        raise InputError(problem=f"{holder} has shape {shape}", remedy="a factor needs an array with one value per row")
    if array.dtype.kind not in "fiubmMSUTO" or array.dtype.itemsize > 2**20:
        raise InputError(
            problem=f"{holder} holds {array.dtype} values", remedy="a factor needs text, numbers, booleans or dates"
        )
    store.check(array, holder)
    return Slices(store, array)


def decode_categories(store: "Store", codes: Any, levels: Column, holder: str) -> Column:
    """Categories: each row has the number of its category, or -1."""
    numbers = open_slices(store, codes, holder)
    return Column(numbers.length, partial(_take_levels, numbers, levels.read(0, levels.length)))


def as_arrow(entries: NDArray[Any], holder: str) -> "pa.Array":
    """Entries as an Arrow array; text stays text where all of a chunk is missing."""
    import pyarrow as pa

    if entries.dtype.kind in "OTU":
        return pa.array(entries.astype(object), pa.string(), from_pandas=True)
    if entries.dtype.kind == "S":
        return pa.array(np.char.decode(entries, "utf-8").astype(object), pa.string())
    return factors.as_column(entries, holder)


def _read_plain(entries: Slices, holder: str, start: int, stop: int) -> "pa.Array":
    return as_arrow(entries(start, stop), holder)


def _apply_mask(entries: Slices, mask: Slices, holder: str, start: int, stop: int) -> "pa.Array":
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = pa.array(mask(start, stop).astype(bool))
    found = as_arrow(entries(start, stop), holder)
    return pc.if_else(missing, pa.scalar(None, found.type), found)


def _take_levels(codes: Slices, levels: "pa.Array", start: int, stop: int) -> "pa.Array":
    import pyarrow as pa

    numbers = codes(start, stop).astype(np.int64)
    if len(numbers) and not -1 <= numbers.min() <= numbers.max() < len(levels):
        raise ValueError(f"codes from {numbers.min()} to {numbers.max()} for {len(levels)} categories")
    return levels.take(pa.array(numbers, mask=numbers < 0))
