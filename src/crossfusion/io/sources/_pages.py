"""Where the plain pages of a Parquet file lie. Compiled, since there are thousands of them.

Read are the footer, the heads of pages, and levels, which say whether values are missing and where lists begin.
Whatever is damaged or only unusual makes a function give up, and PyArrow has the word.

Reference: the Parquet format, https://parquet.apache.org/docs/file-format.
"""

from typing import Any

import numpy as np
from numba import njit, types

from crossfusion.io.sources._thrift import (
    AT,
    BAD,
    LIST,
    STOP,
    STRUCT,
    is_whole,
    next_byte,
    next_count,
    next_field,
    next_list,
    next_number,
    skip,
    whole_fields,
)
from crossfusion.moments.compiled import compile_for

FOREIGN, KIND, CODEC, VALUES, SIZE, START, DICTIONARY = 0, 1, 4, 5, 7, 9, 11  # of ColumnMetaData, and one of ours
FIELDS = 12
PLAIN, RLE = 0, 3  # encodings
DATA, DATA_2 = 0, 3  # kinds of pages
FLOAT = 4  # a type of values; the other one here is 5, DOUBLE
SMALLEST = 4096  # bytes of a page, on average, from which it is worth a look
FEW = 64  # pages that are, whatever their size


def _chunks(data, start, end, table):  # type: ignore[no-untyped-def]
    """Fill a table of row groups × columns × fields from the footer data[start:end]; whether it fits."""
    cursor = np.array([start, end, 0])
    table[:] = -1
    table[:, :, FOREIGN] = 0
    groups = field = np.int64(0)
    while not cursor[BAD]:
        field, kind = next_field(data, cursor, field)
        if kind == STOP:
            break
        if field == 8:  # encrypted
            return False
        if field == 4 and kind == LIST:
            groups, kind = next_list(data, cursor)
            if groups != len(table) or kind != STRUCT:
                return False
            for group in range(groups):
                if not _group(data, cursor, table[group]):
                    return False
        else:
            skip(data, cursor, kind)
    return not cursor[BAD] and groups == len(table)


@njit(nogil=True)
def _group(data, cursor, table):  # type: ignore[no-untyped-def]
    """Fill a table of columns × fields from the struct RowGroup; whether it fits."""
    columns = field = np.int64(0)
    while not cursor[BAD]:
        field, kind = next_field(data, cursor, field)
        if kind == STOP:
            break
        if field == 1 and kind == LIST:
            columns, kind = next_list(data, cursor)
            if columns != len(table) or kind != STRUCT:
                return False
            for column in range(columns):
                _column(data, cursor, table[column])
        else:
            skip(data, cursor, kind)
    return not cursor[BAD] and columns == len(table)


@njit(nogil=True)
def _column(data, cursor, found):  # type: ignore[no-untyped-def]
    """What is said of a column of a row group: the struct ColumnChunk, and in it ColumnMetaData."""
    field = np.int64(0)
    while not cursor[BAD]:
        field, kind = next_field(data, cursor, field)
        if kind == STOP:
            return
        if field == 3 and kind == STRUCT:
            whole_fields(data, cursor, found)
        else:
            found[FOREIGN] |= field in (1, 8, 9)  # in another file, or encrypted
            skip(data, cursor, kind)


@njit(nogil=True)
def _page(data, cursor, found, inner):  # type: ignore[no-untyped-def]
    """The struct PageHeader: its kind, size unpacked and size; inside of it DataPageHeader or DataPageHeaderV2."""
    found[:] = -1
    inner[:] = -1
    field = np.int64(0)
    while not cursor[BAD]:
        field, kind = next_field(data, cursor, field)
        if kind == STOP:
            return
        if 0 < field < len(found) and is_whole(kind):
            found[field] = next_number(data, cursor)
        elif field in (5, 8) and kind == STRUCT:
            whole_fields(data, cursor, inner)
        else:
            skip(data, cursor, kind)


@njit(nogil=True)
def _levels_fit(data, start, end, number, highest, first, dim):  # type: ignore[no-untyped-def]
    """Whether data[start:end] are levels of values of which none is missing, in runs.

    Levels of definition are all the highest; those of repetition, if there is a `dim`, 0 where a list of `dim` entries
    begins and 1 within one, counted from the value `first`. Where the highest level is 0, none are written.
    """
    if highest == 0:
        return start == end
    cursor, bits = np.array([start, end, 0]), _bits(highest)
    left = (-first) % dim if dim else np.int64(0)  # values until a list begins
    seen = np.int64(0)
    while seen < number and not cursor[BAD]:
        head = next_count(data, cursor)
        size = head >> 1
        if head & 1:  # groups of eight, bit by bit
            last = cursor[AT] + size * bits
            size = min(size * 8, number - seen)
            buffer, held = np.int64(0), 0
            for _ in range(size):
                if held < bits:
                    buffer |= next_byte(data, cursor) << held
                    held += 8
                level = buffer & ((1 << bits) - 1)
                buffer >>= bits
                held -= bits
                if level != (np.int64(left > 0) if dim else highest):
                    return False
                left = left - 1 if left else dim - 1
            cursor[AT] = last
        else:
            level = next_byte(data, cursor)
            if dim and level == 0 and left == 0 and (size == 1 or dim == 1):
                left = dim - 1
            elif dim and level == 1 and size <= left:
                left -= size
            elif dim or level != highest:
                return False
        if size <= 0:
            return False
        seen += size
    return seen == number and cursor[AT] == end and not cursor[BAD]


@njit(nogil=True)
def _levels_with_lengths(data, start, end, number, definition, repetition, first, dim):  # type: ignore[no-untyped-def]
    """`_levels_fit` of both kinds of levels, each behind its length in four bytes."""
    at = start
    for highest, every in ((repetition, dim), (definition, 0)):
        if highest:
            if end - at < 4:
                return False
            length = np.int64(0)
            for k in range(4):
                length |= np.int64(data[at + k]) << (8 * k)
            at += 4
            if length > end - at or not _levels_fit(data, at, at + length, number, highest, first, every):
                return False
            at += length
    return at == end


@njit(nogil=True)
def _locate(data, chunk, kind, number, definition, repetition, dim):  # type: ignore[no-untyped-def]
    """Begin and number of the values of each page of a chunk.

    None unless all are plain and hold, without any that is missing, `number` values of a kind: of lists of `dim`
    entries each, if there is `repetition`.
    """
    start, size, itemsize = chunk[START], chunk[SIZE], 4 if kind == FLOAT else 8
    if chunk[KIND] != kind or chunk[CODEC] or chunk[DICTIONARY] > 0 or chunk[FOREIGN] or chunk[VALUES] != number:
        return None
    if start < 0 or size < 0 or size > len(data) - start:
        return None
    end = start + size
    pages = np.empty((FEW + size // SMALLEST, 2), np.int64)
    cursor, found, inner = np.array([start, end, 0]), np.empty(4, np.int64), np.empty(7, np.int64)
    count = done = np.int64(0)
    while done < number:
        _page(data, cursor, found, inner)
        body, size, values = cursor[AT], found[3], inner[1]
        if cursor[BAD] or count == len(pages) or size < 0 or size > end - body or size != found[2]:
            return None
        if values <= 0 or values > number - done or size < values * itemsize:
            return None
        first = body + size - values * itemsize  # where values begin if there are levels and nothing else before them
        if found[1] == DATA and inner[2] == PLAIN and inner[3] == inner[4] == RLE:
            fits = _levels_with_lengths(data, body, first, values, definition, repetition, done, dim)
        elif found[1] == DATA_2 and inner[4] == PLAIN and inner[2] == 0:  # none is missing
            fits = inner[6] + inner[5] == first - body and min(inner[5], inner[6]) >= 0
            middle = body + inner[6]
            fits = fits and _levels_fit(data, body, middle, values, repetition, done, dim)
            fits = fits and _levels_fit(data, middle, first, values, definition, done, 0)
        else:
            fits = False
        if not fits:
            return None
        pages[count, 0], pages[count, 1] = first, values
        count += 1
        done += values
        cursor[AT] = body + size
    return pages[:count]


@njit(nogil=True)
def _bits(highest):  # type: ignore[no-untyped-def]
    """Bits of a level."""
    bits = 0
    while highest >> bits:
        bits += 1
    return bits


def _lists(data, chunk, kind, number, definition, repetition, dim):  # type: ignore[no-untyped-def]
    """`_locate`, with no page at all in place of None."""
    pages = _locate(data, chunk, kind, number, definition, repetition, dim)
    return np.empty((0, 2), np.int64) if pages is None else pages


def _columns(data, chunks, kind, definition, space):  # type: ignore[no-untyped-def]
    """Copy columns without lists to the lines of `space`, as bytes; whether all of them are plain."""
    itemsize = 4 if kind == FLOAT else 8
    for k in range(len(chunks)):
        pages = _locate(data, chunks[k], kind, space.shape[1] // itemsize, definition[k], 0, 0)
        if pages is None:
            return False
        done = 0
        for page in range(len(pages)):
            start, size = pages[page, 0], pages[page, 1] * itemsize
            source, room = data[start : start + size], space[k, done : done + size]
            for byte in range(size):  # which the compiler makes a fast copy of, unlike an assignment of slices
                room[byte] = source[byte]
            done += size
    return True


BYTES = types.Array(types.uint8, 1, "C", readonly=True)
NUMBERS = types.Array(types.int64, 1, "C", readonly=True)
TABLE = types.Array(types.int64, 2, "C", readonly=True)


def chunks() -> Any:
    """Compiled `_chunks`."""
    return compile_for(_chunks, types.boolean(BYTES, types.intp, types.intp, types.int64[:, :, ::1]))


def lists() -> Any:
    """Compiled `_lists`."""
    return compile_for(_lists, types.int64[:, ::1](BYTES, NUMBERS, *(types.intp,) * 5))


def columns() -> Any:
    """Compiled `_columns`."""
    return compile_for(_columns, types.boolean(BYTES, TABLE, types.intp, NUMBERS, types.uint8[:, ::1]))
