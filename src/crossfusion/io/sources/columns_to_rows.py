"""How columns of a table become rows × features."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import InputError, LazyRows, arg, arrow
from crossfusion.moments import transpose, transpose_lazily

if TYPE_CHECKING:
    import pyarrow as pa


def is_number(kind: "pa.DataType") -> bool:
    """Whether values of this type are numbers that NumPy knows."""
    import pyarrow as pa

    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def is_float(kind: "pa.DataType") -> bool:
    """Whether values of this type are floats, whose memory NumPy can share."""
    import pyarrow as pa

    return bool(pa.types.is_floating(kind))


def is_text(kind: "pa.DataType") -> bool:
    """Whether values of this type are text."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def list_entry_type(kind: "pa.DataType") -> "pa.DataType | None":
    """Type of the entries of lists, of whatever kind these are; None of what is no list."""
    import pyarrow as pa

    if isinstance(kind, pa.FixedShapeTensorType) and len(kind.shape) == 1:
        kind = kind.storage_type
    lists = pa.types.is_list(kind), pa.types.is_large_list(kind), pa.types.is_fixed_size_list(kind)
    views = pa.types.is_list_view(kind), pa.types.is_large_list_view(kind)
    return kind.value_type if any(lists) or any(views) else None


def list_length(kind: "pa.DataType") -> int | None:
    """Length of lists whose type says it."""
    import pyarrow as pa

    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return int(kind.list_size) if pa.types.is_fixed_size_list(kind) else None


def is_vector(kind: "pa.DataType") -> bool:
    """Whether values of this type are vectors."""
    entries = list_entry_type(kind)
    return entries is not None and is_number(entries)


def from_numbers(columns: "Sequence[pa.ChunkedArray]") -> NDArray[Any]:
    """Rows of columns that hold one feature each."""
    return transpose([read_numbers(column) for column in columns])


def transpose_columns(columns: "Sequence[pa.ChunkedArray]") -> LazyRows:
    """Rows of columns that hold one feature each, made while they are reduced."""
    return transpose_lazily([read_numbers(column) for column in columns])


def read_numbers(column: "pa.ChunkedArray") -> NDArray[Any]:
    """The values of a column, of which missing ones are NaN."""
    import pyarrow as pa

    column = column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column
    return arrow.to_numpy(column)


def from_lists(column: "pa.ChunkedArray", name: str, holder: str, first: int) -> NDArray[Any]:
    """Rows of a list column, or of one of text such as "[0.1, 0.2]"; a missing vector becomes a row of NaN.

    Lists in one piece of memory, none of them missing, are not copied.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    lists = _make_plain(column, name, holder, first)
    gone = lists.null_count
    if not gone and pa.types.is_fixed_size_list(lists.type) and is_float(lists.type.value_type):
        dim = lists.type.list_size
        entries = lists.values.slice(lists.offset * dim, len(lists) * dim)
        if not entries.null_count:
            return arrow.to_numpy(entries).reshape(len(lists), dim)
    present = pc.is_valid(lists).to_numpy(zero_copy_only=False) if gone else np.ones(0, bool)
    filled = lists.drop_null() if gone else lists
    dim = _find_dim(filled)
    if dim is None:
        lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
        usual = lengths[present][0] if gone else lengths[0]
        odd = (lengths != usual) & (present if gone else True)
        raise InputError(
            problem=f"column {name!r} of {holder} holds vectors of unequal length, first in row"
            f" {int(np.flatnonzero(odd)[0]) + first}",
            remedy="pad or drop them",
        )
    entries = filled.flatten()
    if pa.types.is_boolean(entries.type) and entries.null_count:
        entries = entries.cast(pa.int8())
    values = arrow.to_numpy(entries)
    if not gone:
        return values.reshape(len(lists), dim)
    rows = np.full((len(lists), dim), np.nan, np.float32 if pa.types.is_float32(lists.type.value_type) else np.float64)
    rows[present] = values.reshape(-1, dim)
    return rows


def _find_dim(lists: "pa.Array") -> int | None:
    """Length of lists, none of them missing; None where it differs."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(lists.type):
        return int(lists.type.list_size)
    if not len(lists):
        return 1  # nothing tells, and nothing hangs on it
    offsets = arrow.to_numpy(lists.offsets)
    lengths = np.diff(offsets)
    dim = int(lengths[0])
    return dim if np.all(lengths == dim) else None


def _make_plain(column: "pa.ChunkedArray", name: str, holder: str, first: int) -> "pa.Array":
    """The same vectors as one array of lists that begin where the one before ends."""
    import pyarrow as pa

    chunks = [chunk for chunk in column.chunks if len(chunk)]
    array = chunks[0] if len(chunks) == 1 else column.combine_chunks()
    if pa.types.is_fixed_size_list(array.type) or pa.types.is_list(array.type):
        return array
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    kind = array.type
    if pa.types.is_null(kind):
        return array.cast(pa.list_(pa.float64()))
    if is_text(kind):
        return _parse_lists(array.cast(pa.large_string()), name, holder, first)
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return _copy_views(array)
    return array


def _copy_views(views: "pa.Array") -> "pa.Array":
    """Lists of the same entries as views, which may lie anywhere."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(views), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    mask = pc.is_null(views) if views.null_count else None
    return pa.LargeListArray.from_arrays(pa.array(offsets), views.flatten(), mask=mask)


def _parse_lists(texts: "pa.Array", name: str, holder: str, first: int) -> "pa.Array":
    """Lists of the numbers in texts such as "[0.1, 0.2]"."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bare = pc.ascii_trim_whitespace(texts)
    framed = pc.and_(pc.starts_with(bare, "["), pc.ends_with(bare, "]"))
    if not pc.all(framed, min_count=0).as_py():
        raise _make_text_error(texts, pc.index(framed, False).as_py(), name, holder, first)
    words = pc.split_pattern(pc.utf8_slice_codeunits(bare, 1, -1), ",")
    entries = pc.ascii_trim_whitespace(words.flatten())
    try:
        numbers = entries.cast(pa.float64())
    except pa.ArrowInvalid:
        ends = np.cumsum(pc.fill_null(pc.list_value_length(words), 0).to_numpy(zero_copy_only=False))
        row = int(np.searchsorted(ends, _find_unreadable(entries), side="right"))
        raise _make_text_error(texts, row, name, holder, first) from None
    lists = type(words).from_arrays(words.offsets, numbers)
    return pc.if_else(pc.is_valid(texts), lists, None) if texts.null_count else lists


def _find_unreadable(entries: "pa.Array") -> int:
    """Index of the first text that is no number, found by halving."""
    import pyarrow as pa

    low, high = 0, len(entries) - 1
    while low < high:
        middle = (low + high) // 2
        try:
            entries[low : middle + 1].cast(pa.float64())
            low = middle + 1
        except pa.ArrowInvalid:
            high = middle
    return low


def _make_text_error(texts: "pa.Array", row: int, name: str, holder: str, first: int) -> InputError:
    text = str(texts[row].as_py())
    shown = text if len(text) <= 40 else f"{text[:40]}…"
    return InputError(
        problem=f"column {name!r} of {holder} holds text that is not a vector such as '[0.1, 0.2]', first"
        f" in row {row + first} ({shown!r})",
        remedy=f"fix it, or name other columns in {arg('vectors')}",
    )
