"""Compiled loops over columns: rows from one array per feature, and moments of a strip of features.

Squares of numbers are transposed in registers, so that each is loaded and stored once.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from crossfusion.moments.compiled import add_tile, compile_for, sort_tile

SQUARE_SIZE = 8  # rows and columns that are turned over in registers


@intrinsic
def _load_number(typing, address, index, like):  # type: ignore[no-untyped-def]
    """A number of the type of an array, at some place after an address."""

    def generate(context, b, signature, arguments):  # type: ignore[no-untyped-def]
        pointer = b.inttoptr(arguments[0], context.get_value_type(like.dtype).as_pointer())
        return b.load(b.gep(pointer, [arguments[1]]))

    return like.dtype(address, index, like), generate


def _transpose_vectors(b: Any, vectors: list[Any]) -> list[Any]:
    """Columns from rows, or the reverse, of a square of numbers: the first half zipped with the second, until done."""
    size = len(vectors)
    index = ir.VectorType(ir.IntType(32), size)
    low = [(k // 2) + size * (k % 2) for k in range(size)]
    masks = [ir.Constant(index, low), ir.Constant(index, [k + size // 2 for k in low])]
    for _ in range(size.bit_length() - 1):
        pairs = zip(vectors[: size // 2], vectors[size // 2 :], strict=True)
        vectors = [b.shuffle_vector(one, other, mask) for one, other in pairs for mask in masks]
    return vectors


@intrinsic
def _transpose_square(typing, addresses, first, row, out, target):  # type: ignore[no-untyped-def]
    """Write a square of `SQUARE_SIZE` rows and columns to `out`, from columns that begin at addresses[first:]."""
    signature = types.void(addresses, types.intp, types.intp, out, types.intp)

    def generate(context, b, signature, arguments):  # type: ignore[no-untyped-def]
        table, data = (context.make_array(signature.args[k])(context, b, arguments[k]) for k in (0, 3))
        _, first, row, _, target = arguments
        element, size = data.data.type.pointee, context.get_abi_sizeof(data.data.type.pointee)
        vector = ir.VectorType(element, SQUARE_SIZE).as_pointer()
        columns = []
        for k in range(SQUARE_SIZE):
            address = b.load(b.gep(table.data, [b.add(first, first.type(k))]))
            base = b.gep(b.inttoptr(address, element.as_pointer()), [row])
            columns.append(b.load(b.bitcast(base, vector), align=size))
        dim = b.extract_value(data.shape, 1)
        for k, line in enumerate(_transpose_vectors(b, columns)):
            place = b.add(target, b.mul(dim, dim.type(k)))
            b.store(line, b.bitcast(b.gep(data.data, [place]), vector), align=size)
        return context.get_dummy_value()

    return signature, generate


@njit(nogil=True)
def _interleave(addresses, start, out):  # type: ignore[no-untyped-def]
    """Fill rows from columns that begin at some addresses, from their number `start` on."""
    rows, dim = out.shape
    whole, wide = rows // SQUARE_SIZE * SQUARE_SIZE, dim // SQUARE_SIZE * SQUARE_SIZE
    for column in range(0, wide, SQUARE_SIZE):
        for row in range(0, whole, SQUARE_SIZE):
            _transpose_square(addresses, column, start + row, out, row * dim + column)
    for row in range(rows):
        for column in range(wide if row < whole else 0, dim):
            out[row, column] = _load_number(addresses[column], start + row, out)


def _accumulate_strip(  # type: ignore[no-untyped-def]
    addresses, codes, first, origin, count, mean, sumsq, sums, order, kept, starts, space
):
    """Add rows, of which some features come as columns at these addresses, to the moments of their groups.

    `order` and `kept` say for all features in which order the rows of a tile are added; with the `first` ones of them,
    they are filled in.
    """
    tile_rows = len(space)
    for number, start in enumerate(range(0, len(order), tile_rows)):
        stop = min(start + tile_rows, len(order))
        if first:
            kept[number] = sort_tile(codes, count.size, start, stop, order[start:], starts)
        tile = space[: stop - start]
        _interleave(addresses, start, tile)
        add_tile(tile, codes, start, order[start:], kept[number], 0, origin, count, mean, sumsq, sums)


def compile_accumulate_strip(dtype: np.dtype[Any]) -> Any:
    """Compiled `_accumulate_strip` for columns of float32 or float64."""
    element = types.float32 if dtype == np.float32 else types.float64
    codes = types.Array(types.int32, 1, "C", readonly=True)
    table = types.float64[:, ::1]
    state = (element[:, ::1], types.float64[::1], table, table)
    scratch = (element[:, ::1], types.int32[::1], types.int64[::1], types.int64[::1], element[:, ::1])
    return compile_for(_accumulate_strip, types.void(types.uint64[::1], codes, types.boolean, *state, *scratch))


def compile_interleave(dtype: np.dtype[Any]) -> Any:
    """Kernel that makes rows of columns of a float type."""
    kind = types.float32 if dtype == np.float32 else types.float64
    return compile_for(_interleave.py_func, types.void(types.uint64[::1], types.intp, kind[:, ::1]))
