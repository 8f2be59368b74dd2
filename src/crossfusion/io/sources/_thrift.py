"""Thrift's compact protocol, compiled: the notation in which Parquet says where its pages are.

A cursor is an array of where it is, where the bytes end, and whether it came upon something damaged. Every byte is
asked for through `next_byte`, which sees where they end; a cursor that is bad stays so.

Reference: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md.
"""

import numpy as np
from numba import njit

AT, END, BAD = 0, 1, 2  # entries of a cursor
STOP, TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12  # kinds of values
DEEPEST = 12  # structs and lists within others


@njit(nogil=True)
def next_byte(data, cursor):  # type: ignore[no-untyped-def]
    """A byte; 0, and the end of all reading, where there is none."""
    at = cursor[AT]
    if at < 0 or at >= cursor[END]:
        cursor[BAD] = 1
        return np.int64(0)
    cursor[AT] = at + 1
    return np.int64(data[at])


@njit(nogil=True)
def next_count(data, cursor):  # type: ignore[no-untyped-def]
    """A whole number from 0 on, in groups of seven bits."""
    value = np.int64(0)
    for shift in range(0, 63, 7):
        byte = next_byte(data, cursor)
        value |= (byte & 127) << shift
        if byte < 128:
            return value
    cursor[BAD] = 1
    return np.int64(0)


@njit(nogil=True)
def next_number(data, cursor):  # type: ignore[no-untyped-def]
    """A whole number of either sign."""
    value = next_count(data, cursor)
    return (value >> 1) ^ -(value & 1)


@njit(nogil=True)
def next_field(data, cursor, before):  # type: ignore[no-untyped-def]
    """Number and kind of a field of a struct; `before`: the number of the one before it."""
    byte = next_byte(data, cursor)
    kind, step = byte & 15, byte >> 4
    if kind == STOP or cursor[BAD]:
        return np.int64(0), np.int64(STOP)
    return (before + step if step else next_number(data, cursor)), kind


@njit(nogil=True)
def next_list(data, cursor):  # type: ignore[no-untyped-def]
    """Number and kind of the elements of a list, each of which takes at least a byte."""
    byte = next_byte(data, cursor)
    number = byte >> 4
    if number == 15:
        number = next_count(data, cursor)
    if number > cursor[END] - cursor[AT]:
        cursor[BAD] = 1
    return (np.int64(0) if cursor[BAD] else number), byte & 15


@njit(nogil=True)
def is_whole(kind):  # type: ignore[no-untyped-def]
    """Whether values of a kind are whole numbers of 16 to 64 bits."""
    return BYTE < kind < DOUBLE


@njit(nogil=True)
def skip(data, cursor, kind):  # type: ignore[no-untyped-def]
    """Go on behind a value of some kind.

    Not by recursion, which Numba compiles but does not find again in its cache.
    """
    if kind not in (LIST, SET, STRUCT):
        _skip_plain(data, cursor, kind)
        return
    left, inner = np.empty(DEEPEST, np.int64), np.empty(DEEPEST, np.int64)  # elements to come of lists, and their kind
    depth = 0
    while True:
        if kind not in (LIST, SET, STRUCT):
            _skip_plain(data, cursor, kind)
        elif depth == DEEPEST:
            cursor[BAD] = 1
        else:
            left[depth], inner[depth] = (-1, STRUCT) if kind == STRUCT else next_list(data, cursor)
            depth += 1
        while depth and not cursor[BAD]:
            if left[depth - 1] < 0:  # a struct, which tells of each field
                _, kind = next_field(data, cursor, 0)
                if kind != STOP:
                    break
            elif left[depth - 1]:
                left[depth - 1] -= 1
                kind = BYTE if inner[depth - 1] <= FALSE else inner[depth - 1]
                break
            depth -= 1
        else:
            return


@njit(nogil=True)
def _skip_plain(data, cursor, kind):  # type: ignore[no-untyped-def]
    """Go on behind a value that holds no others."""
    if kind == BYTE:
        next_byte(data, cursor)
    elif is_whole(kind):
        next_count(data, cursor)
    elif kind == DOUBLE:
        cursor[AT] += 8
    elif kind == BINARY:
        size = next_count(data, cursor)
        if size > cursor[END] - cursor[AT]:
            cursor[BAD] = 1
        else:
            cursor[AT] += size
    elif kind not in (TRUE, FALSE):  # maps, which Parquet does not have, among them
        cursor[BAD] = 1


@njit(nogil=True)
def whole_fields(data, cursor, found):  # type: ignore[no-untyped-def]
    """Read a struct, and write its fields that are whole numbers to the places of their numbers."""
    field = np.int64(0)
    while not cursor[BAD]:
        field, kind = next_field(data, cursor, field)
        if kind == STOP:
            return
        if 0 < field < len(found) and is_whole(kind):
            found[field] = next_number(data, cursor)
        else:
            skip(data, cursor, kind)
