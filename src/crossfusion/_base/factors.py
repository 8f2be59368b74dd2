"""Factors: named columns of typed values, and the groups that their observed combinations form.

Values live in Arrow columns, which keep strings, integers, booleans, dates and missing values apart. Groups are
numbered in the order of their values, missing last, so a table of groups does not depend on the order of the rows.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import labels
from crossfusion._base.arrow import from_numbers, to_numpy
from crossfusion._base.errors import InputError, first_line
from crossfusion._base.typing import CodeArray
from crossfusion._base.validation import as_names

if TYPE_CHECKING:
    import pyarrow as pa

Codes = NDArray[np.int64]
PRECISION_BITS = {16: 11, 32: 24, 64: 53}  # of a float of so many bits; from 2**bits on, it is several whole numbers


def as_factor(values: Any, name: str) -> "pa.Array":
    """Convert the values of a factor to a dictionary array if few are distinct, and to a plain array otherwise."""
    found = labels.find_distinct(values)
    if found is None:
        array = _as_arrow(values, name)
        return array if _is_simple_dictionary(array.type) else as_plain(array, name)
    rank, levels = _rank_values(as_column(labels.take(values, found.positions), name))
    return _make_dictionary(found.rank(rank), levels)


def _is_simple_dictionary(kind: "pa.DataType") -> bool:
    """Whether a dictionary holds text, integers or booleans, of which every level is a value of a factor."""
    import pyarrow as pa

    simple = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_boolean)
    return pa.types.is_dictionary(kind) and any(is_kind(kind.value_type) for is_kind in simple)


def _make_dictionary(codes: CodeArray, levels: "pa.Array") -> "pa.Array":
    """A dictionary array of levels in ascending order; a missing one, which is last, is missing in the array too."""
    import pyarrow as pa

    if pa.types.is_null(levels.type):
        return pa.nulls(len(codes))
    size = len(levels) - levels.null_count
    valid = pa.py_buffer(np.packbits(codes < size, bitorder="little")) if levels.null_count else None
    places = pa.Array.from_buffers(pa.int32(), len(codes), [valid, pa.py_buffer(codes)])
    return pa.DictionaryArray.from_arrays(places, levels[:size], safe=False)


def as_column(values: Any, name: str) -> "pa.Array":
    """Convert the values of a factor to an Arrow array of a plain type; NaN is a missing value."""
    return as_plain(_as_arrow(values, name), name)


def _as_arrow(values: Any, name: str) -> "pa.Array | pa.ChunkedArray":
    """Convert the values of a factor to Arrow as they are."""
    import pyarrow as pa

    if isinstance(values, str | bytes | Set) or not hasattr(values, "__len__"):
        raise InputError(
            problem=f"{name} must hold one value per row, not {values!r}", remedy="pass a list or an array"
        )
    if len(getattr(values, "shape", ())) > 1:
        raise InputError(
            problem=f"{name} must hold one value per row, but has shape {tuple(values.shape)}", remedy="pass one column"
        )
    try:
        if hasattr(values, "__dlpack__") and not hasattr(values, "__arrow_c_array__"):
            values = np.asanyarray(values.detach() if hasattr(values, "detach") else values)  # a tensor, or an array
        if isinstance(values, np.ndarray) and not values.dtype.isnative:
            values = values.astype(values.dtype.newbyteorder("="))
        if isinstance(values, np.ndarray) and values.dtype.kind in "Mm":
            values = _to_known_unit(values)
        if isinstance(values, np.ndarray) and values.dtype.kind == "T":
            values = values.astype(object)  # text of NumPy 2, of which not all PyArrows know
        return to_arrow(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        raise InputError(
            problem=f"{name} must hold one plain value per row, all strings, all numbers, all booleans or all"
            f" dates ({problem})"
        ) from problem


def _to_known_unit(times: NDArray[Any]) -> NDArray[Any]:
    """Convert times in a unit that Arrow lacks, such as weeks, to the next finer unit that it has."""
    unit, kind = np.datetime_data(times.dtype)[0], times.dtype.kind
    day = "D" if kind == "M" else "s"
    finer = {"Y": day, "M": day, "W": day, "D": day, "h": "s", "m": "s"}.get(unit)
    if finer is None or finer == unit:
        return times
    known = times.astype(f"{kind}8[{finer}]")
    there = ~np.isnat(known)
    if kind == "M" and np.any(np.abs(known[there].astype("M8[Y]").astype(int) + 1970 - 5000) > 4999):
        raise ValueError("there is a time beyond the years 1 to 9999")
    if np.any(known.astype(times.dtype)[there] != times[there]):
        raise ValueError("there is a time beyond what can be kept")
    return known


def to_arrow(values: Any) -> Any:
    """Convert values to Arrow; raise a TypeError if Arrow would turn values of different kinds into one value."""
    import pyarrow as pa

    array = pa.array(decode_zoned(values), from_pandas=True)
    if isinstance(values, list | tuple) or getattr(values, "dtype", None) == np.dtype(object):
        _check_one_kind(values, array.type)
    return array


def _check_one_kind(values: Iterable[Any], kind: "pa.DataType") -> None:
    """Reject dates among times, times with and without a zone, and booleans among numbers."""
    import pyarrow as pa

    if pa.types.is_temporal(kind):
        times = (value for value in values if isinstance(value, date) and value == value)  # NaT is not itself
        found = {_describe_time(value) for value in times}
    elif pa.types.is_floating(kind):
        found = {"booleans" if isinstance(value, bool | np.bool_) else "numbers" for value in values}
    else:
        return
    if len(found) > 1:
        raise TypeError(f"there are {' and '.join(sorted(found))}")


def _describe_time(value: date) -> str:
    if not isinstance(value, datetime):
        return "dates"
    return "times without a zone" if value.tzinfo is None else "times with a zone"


def decode_zoned(values: Any) -> Any:
    """Decode pandas categories with a time zone, which some PyArrow versions lose."""
    categories = getattr(getattr(values, "cat", values), "categories", None)
    kind = getattr(categories, "dtype", None)
    return values if getattr(kind, "tz", None) is None else values.astype(kind)


def as_plain(array: Any, name: str) -> "pa.Array":
    """Convert an array to one chunk of a type that can be sorted, compared and written: no dictionaries, no NaN."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        levels = array.dictionary
        view = pa.types.is_string_view(levels.type)  # decoding does not know views
        array = pa.DictionaryArray.from_arrays(array.indices, levels.cast(pa.string()) if view else levels)
        array = array.dictionary_decode()
    if pa.types.is_floating(array.type):
        _check_whole_floats(array, name)
    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    kind = array.type
    if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
        raise InputError(problem=f"{name} holds {kind} values", remedy="a factor needs one plain value per row")
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or _is_bytes(kind):
        return _cast(array, pa.string(), f"{name} holds bytes that are not UTF-8 text", "decode them to strings")
    if pa.types.is_floating(kind):
        import pyarrow.compute as pc

        return pc.add(pc.if_else(pc.is_nan(array), None, array), pa.scalar(0, kind))  # of two zeros, the plain one
    if (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "ns":
        coarser = pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else pa.duration("us")
        return _cast(array, coarser, f"{name} holds times finer than a microsecond", "round them")
    return array


def _check_whole_floats(array: "pa.Array", name: str) -> None:
    """Reject whole numbers that floats cannot tell apart, as of integers that pandas made floats for a missing one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bits = array.type.bit_width
    limit = 2 ** PRECISION_BITS[bits]
    sizes = pc.abs(array.cast(pa.float64()))
    if pc.any(pc.and_(pc.greater_equal(sizes, float(limit)), pc.is_finite(sizes))).as_py():
        raise InputError(
            problem=f"{name} holds float{bits} numbers of {limit:,} or more, where different integers share a float",
            remedy="pass them as integers or text instead of floats",
        )


def _is_bytes(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return any(
        is_kind(kind) for is_kind in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    ) or pa.types.is_fixed_size_binary(kind)


def _cast(array: "pa.Array", kind: "pa.DataType", trouble: str, remedy: str) -> "pa.Array":
    """Cast values to another type; raise an error if that would change them."""
    import pyarrow as pa

    try:
        return array.cast(kind)
    except pa.ArrowInvalid as problem:
        raise InputError(problem=trouble, remedy=remedy) from problem


def as_table(by: Mapping[str, Any]) -> "pa.Table":
    """Make a table of factor columns."""
    import pyarrow as pa

    as_names([*by], "by", needed=True)
    columns = {name: as_factor(values, name) for name, values in by.items()}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(problem=f"the factors differ in length ({lengths})", remedy="pass one value per row for each")
    return pa.table(columns)


def concat_tables(tables: "Sequence[pa.Table]", holder: str) -> "pa.Table":
    """Concatenate tables of the same factors."""
    import pyarrow as pa

    if any(table.schema != tables[0].schema for table in tables):  # dictionaries of different types do not mix
        tables = [_decode(table) for table in tables]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as problem:
        said = first_line(problem)
        raise InputError(
            problem=f"a factor has values of different types in {holder} ({said})", remedy="convert it"
        ) from problem


def _decode(table: "pa.Table") -> "pa.Table":
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, as_plain(table.column(place), field.name))
    return table


def check_units(keys: "pa.Table", names: Sequence[str]) -> None:
    """Reject missing units."""
    for name in names:
        if keys.column(name).null_count:  # of cells, or of rows: their number says little
            raise InputError(
                problem=f"{name} has missing values, which would count as one unit",
                remedy="leave those rows out, or give each of them a unit",
            )


def encode(keys: "pa.Table") -> tuple[CodeArray, "pa.Table"]:
    """Encode the observed combinations of values: return the code of each row, and the table of combinations."""
    import pyarrow as pa

    try:
        ranked = [_encode_column(keys.column(name), name) for name in keys.column_names]
    except pa.ArrowNotImplementedError as problem:
        said = first_line(problem)
        raise InputError(
            problem=f"a factor of {', '.join(keys.column_names)} cannot be sorted ({said})", remedy="make it text"
        ) from problem
    codes, members = _combine([rank for rank, _ in ranked], [len(levels) for _, levels in ranked])
    columns = [levels.take(from_numbers(member)) for (_, levels), member in zip(ranked, members, strict=True)]
    return codes, pa.table(dict(zip(keys.column_names, columns, strict=True)))


def _encode_column(column: Any, name: str) -> "tuple[CodeArray, pa.Array]":
    """Rank the values of a column, for a dictionary column by its distinct values."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type) or not len(column):
        return _rank_values(as_plain(column, name))
    array = column.unify_dictionaries().combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    known, places = as_plain(array.dictionary, name), array.indices
    if len(known) == 1 and not array.null_count:
        return np.zeros(len(array), np.int32), known
    if places.null_count:
        known, places = _append_missing(known), places.cast(pa.int64()).fill_null(len(known))
    rank, levels = _rank_values(known)
    codes = _narrow(to_numpy(places))
    if not np.array_equal(rank, np.arange(len(rank))):
        codes = labels.relabel(codes, rank)
    return _drop_absent(codes, levels)


def from_codes(codes: CodeArray) -> "pa.Array":
    """Convert whole numbers from 0 to a factor; negative ones are missing values."""
    import pyarrow as pa

    levels = from_numbers(np.arange(int(codes.max(initial=-1)) + 1, dtype=np.int64))
    return pa.DictionaryArray.from_arrays(pa.array(np.maximum(codes, 0), mask=codes < 0), levels, safe=False)


def _append_missing(values: "pa.Array") -> "pa.Array":
    import pyarrow as pa

    return pa.concat_arrays([values, pa.nulls(1, values.type)])


def _narrow(codes: NDArray[Any]) -> CodeArray:
    """Codes as aligned 32-bit integers."""
    return np.require(codes, np.int32, "A")


def _drop_absent(codes: CodeArray, levels: "pa.Array") -> "tuple[CodeArray, pa.Array]":
    """Leave out the levels that do not occur."""
    codes, present = renumber(codes, len(levels))
    return codes, levels if len(present) == len(levels) else levels.take(from_numbers(present))


def _combine(rank: list[CodeArray], sizes: list[int]) -> tuple[CodeArray, list[Codes]]:
    """Encode observed combinations in lexicographic order, and list the rank of each combination in every column."""
    combined = rank[0]
    members: list[Codes] = [np.arange(sizes[0])]
    for codes, size in zip(rank[1:], sizes[1:], strict=True):
        number = len(members[0]) * size
        mixed = np.multiply(combined, size, dtype=np.int32 if number < 2**31 else np.int64)
        mixed += codes
        combined, present = renumber(mixed, number)
        members = [member[present // size] for member in members] + [present % size]
    return combined, members


def renumber(codes: Codes | CodeArray, size: int) -> tuple[CodeArray, Codes]:
    """Renumber the codes below `size` that occur as 0, 1, 2, ..., and list them."""
    if size <= 4 * len(codes) + 1024:
        narrow = _narrow(codes)
        occurs = labels.find_occurring(narrow, size)
        present = np.flatnonzero(occurs)
        return (narrow if occurs.all() else labels.relabel(narrow, np.cumsum(occurs, dtype=np.int32) - 1)), present
    present, renumbered = np.unique(codes, return_inverse=True)
    return renumbered.astype(np.int32), present


def _rank_values(array: "pa.Array") -> tuple[CodeArray, "pa.Array"]:
    """Rank values, and list the distinct values in ascending order, missing last."""
    import pyarrow as pa

    bare = array
    if array.null_count and (pa.types.is_primitive(array.type) or pa.types.is_string(array.type)):
        bare = pa.Array.from_buffers(array.type, len(array), [None, *array.buffers()[1:]], 0, array.offset)
    found = labels.find_distinct_values(bare)
    if found is None:
        return _rank_all(array)
    rank, levels = _rank_all(bare.take(from_numbers(found.positions)))
    codes = found.rank(rank)
    if not array.null_count:
        return codes, levels
    codes[~to_numpy(array.is_valid())] = len(levels)  # whatever is written where a value is missing
    return _drop_absent(codes, _append_missing(levels))


def _rank_all(array: "pa.Array") -> tuple[CodeArray, "pa.Array"]:
    """Rank values by a look at each of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(array) and pa.types.is_integer(array.type) and array.null_count == 0:
        values = to_numpy(array)
        low, high = int(values.min()), int(values.max())
        if high - low <= 4 * len(values):
            wide = values if values.dtype.itemsize == 8 else values.astype(np.int64)
            codes, present = renumber((wide - wide.dtype.type(low)).astype(np.int64), high - low + 1)
            return codes, from_numbers((present.astype(wide.dtype) + wide.dtype.type(low)).astype(values.dtype))
    encoded = array.dictionary_encode(null_encoding="encode")
    order = to_numpy(pc.sort_indices(encoded.dictionary))
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank[to_numpy(encoded.indices)], encoded.dictionary.take(from_numbers(order))


def list_labels(keys: "pa.Table") -> list[Any]:
    """List the Python value of each row, or a tuple for several columns."""
    columns = [keys.column(name).to_pylist() for name in keys.column_names]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def python_value(value: Any) -> Any:
    """Convert a NumPy scalar to the Python value it has as a factor."""
    if isinstance(value, np.datetime64 | np.timedelta64) and np.datetime_data(value)[0] == "ns":
        value = value.astype(value.dtype.str[1:3] + "[us]")  # as factors are kept; finer ones have no Python value
    return value.item() if isinstance(value, np.generic) else value


def to_array(column: "pa.ChunkedArray") -> Any:
    """Values of a factor as an array of their type; of objects where NumPy has none for them."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = as_plain(column, "")
    if column.null_count or pa.types.is_date(column.type):
        return np.array([*column.to_pylist(), None], object)[:-1]
    return column.to_numpy(zero_copy_only=False)
