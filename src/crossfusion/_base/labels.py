"""From labels to codes: equal labels get equal codes, so that only the first label of each kind is looked at.

The loops are C (`_labels.c`), on threads. Where the extension could not be built or loaded, `find_distinct` finds
nothing, so that all labels are looked at, and NumPy does the rest.
"""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base.threads import thread_count
from crossfusion._base.typing import CodeArray

if TYPE_CHECKING:
    import pyarrow as pa

LIMIT = 2**16  # distinct labels, beyond which looking at all of them is as fast
THREAD_ROWS = 2**18  # labels that are worth a thread

Rows = tuple[int, int]  # start and stop


def _load() -> Any:
    try:
        from crossfusion._base import _labels
    except ImportError:
        return None
    return _labels


compiled = _load()  # the C extension; None: NumPy stands in


@dataclass(frozen=True)
class Distinct:
    """The code of each label within its range of rows, and where the first label of each code is."""

    codes: CodeArray
    first: list[list[int]]  # of each range

    @property
    def positions(self) -> NDArray[np.int64]:
        """Positions of the first labels of all ranges, in their order."""
        return np.array([position for some in self.first for position in some], np.int64)

    def rank(self, ranks: CodeArray) -> CodeArray:
        """The rank of each label, from the ranks of the labels at `positions`; the codes are used up."""
        ends = np.cumsum([len(some) for some in self.first])
        own = iter(np.split(ranks, ends[:-1]))
        _map_rows(lambda rows, table: _relabel(self.codes, table, self.codes, rows), len(self.codes), own)
        return self.codes


def find_distinct(values: Any) -> Distinct | None:
    """Number the distinct labels of an array or a list; None for other holders, and for too many labels."""
    records = None if compiled is None else _as_records(values)
    return None if records is None else _find_records(records)


def _find_records(records: NDArray[Any]) -> Distinct | None:
    return _find(len(records), lambda start, stop, codes: compiled.find_distinct(records[start:stop], codes, LIMIT))


def find_distinct_values(array: "pa.Array") -> Distinct | None:
    """Number the distinct values of an Arrow array of text, numbers or times without missing values."""
    import pyarrow as pa

    if compiled is None or not len(array):
        return None
    if pa.types.is_string(array.type):
        _, edges, text = array.buffers()
        offsets = _align(np.frombuffer(edges, np.int32)[array.offset : array.offset + len(array) + 1])
        content = np.frombuffer(text or b"", np.uint8)
        return _find(
            len(array),
            lambda start, stop, codes: compiled.find_distinct_text(content, offsets[start : stop + 1], codes, LIMIT),
        )
    if not pa.types.is_primitive(array.type) or pa.types.is_boolean(array.type):
        return None
    width = array.type.bit_width // 8
    content = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * width : (array.offset + len(array)) * width]
    return _find_records(content.reshape(-1, width))


def _as_records(values: Any) -> Any:
    """Labels as the extension takes them: bytes of shape (labels, width) or objects; None if they cannot be."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(values, pandas.Series | pandas.Index):
        kind = values.dtype
        if not (isinstance(kind, np.dtype) or (kind == "string" and getattr(kind, "storage", "") == "python")):
            return None
        values = values.to_numpy()
    if type(values) in (list, tuple) and values:
        return np.fromiter(values, object, len(values))
    if type(values) is not np.ndarray or values.ndim != 1 or not values.nbytes:
        return None
    values = np.ascontiguousarray(values)
    if values.dtype.kind == "O":
        return values
    return values.view(np.uint8).reshape(len(values), -1) if values.dtype.kind in "biufUSMm" else None


def take(values: Any, positions: NDArray[np.int64]) -> Any:
    """The values at some positions, in a holder of the same type."""
    return type(values)(values[k] for k in positions) if isinstance(values, list | tuple) else values.take(positions)


def _find(number: int, find: Callable[[int, int, CodeArray], list[int] | None]) -> Distinct | None:
    codes = np.empty(number, np.int32)

    def work(rows: Rows, _: None) -> list[int] | None:
        first = find(*rows, codes[slice(*rows)])
        return None if first is None else [rows[0] + position for position in first]

    found = _map_rows(work, number)
    first = [some for some in found if some is not None]
    return Distinct(codes, first) if len(first) == len(found) else None


def _align(codes: CodeArray) -> CodeArray:
    """The same integers where C may read them: Arrow's may lie anywhere in a file."""
    return np.require(codes, np.int32, ["C", "A"])


def relabel(codes: CodeArray, table: CodeArray) -> CodeArray:
    """The entry of a table for each code."""
    if compiled is None:
        return table[codes]
    codes, out = _align(codes), np.empty(len(codes), np.int32)
    _map_rows(lambda rows, _: _relabel(codes, table, out, rows), len(codes))
    return out


def _relabel(codes: CodeArray, table: CodeArray, out: CodeArray, rows: Rows) -> None:
    compiled.relabel(codes[slice(*rows)], np.ascontiguousarray(table), out[slice(*rows)])


def find_occurring(codes: CodeArray, size: int) -> NDArray[np.bool_]:
    """Whether each code below `size` occurs."""
    if compiled is None:
        return np.bincount(codes, minlength=size) > 0

    codes = _align(codes)

    def work(rows: Rows, _: None) -> NDArray[np.uint8]:
        seen = np.zeros(size, np.uint8)
        compiled.mark(codes[slice(*rows)], seen)
        return seen

    occurs: NDArray[np.bool_] = np.any(_map_rows(work, len(codes)), axis=0)
    return occurs


def _map_rows(work: Callable[[Rows, Any], Any], number: int, extra: Iterator[Any] | None = None) -> list[Any]:
    """Call a function for ranges of rows, on threads, each with the next of some extra values."""
    threads = max(1, min(thread_count(), number // THREAD_ROWS))
    edges = np.linspace(0, number, threads + 1).astype(int).tolist()
    ranges = pairwise(edges)
    each = [None] * threads if extra is None else list(extra)
    if threads == 1:
        return list(map(work, ranges, each))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, ranges, each))
