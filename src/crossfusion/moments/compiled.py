"""The compiled inner loop. Imported only for inputs that are worth a compiler.

The work is one read of the rows, so everything here serves the memory bus:

- rows are visited in the order of their groups within a tile of some thousand rows, so that the sums of a group stay in
  the first-level cache while its rows pass;
- a strip of features is held in vector registers while a few rows run past it (`_add_strip`);
- the rows needed soon are prefetched, because group order defeats the hardware's own guess.

Sums run in the type of the rows, over at most ``RUN`` rows around the group's running mean, and are then folded into
float64 moments: a provisional center keeps the squares small, the short run keeps float32 honest.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

RUN_ROWS = 64  # rows summed in the type of the input before float64 takes over
PASS_ROWS = 16  # rows that run past one strip of features, few enough to stay in the first-level cache
WIDE_STRIP, NARROW_STRIP = 4, 1  # vectors in a strip
VECTOR_BYTES = 64
PREFETCH_ROWS = 4  # rows ahead that are prefetched where rows are read one by one
LONG_ROW_BYTES = 2048  # bytes of a row from which two are read together


def _declare_prefetch(builder: Any) -> Any:
    """LLVM's instruction to fetch a cache line."""
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, *(ir.IntType(32),) * 3])
    return builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)


def _make_strip(vectors: int, abreast: int = 1) -> Any:
    """Intrinsic that adds some rows, restricted to a strip of features, to the running sums.

    Rows that go abreast have sums of their own, so that none waits for the one before it; only a single file of rows is
    prefetched.
    """

    @intrinsic
    def add_strip(typing, rows, order, first, number, ahead, dim, column, sums):  # type: ignore[no-untyped-def]
        signature = types.void(rows, order, *(types.intp,) * 5, sums)

        def generate(context, b, signature, arguments):  # type: ignore[no-untyped-def]
            first, number, ahead, dim, column = arguments[2:7]
            x, index, accumulator = (
                context.make_array(signature.args[k])(context, b, arguments[k]).data for k in (0, 1, 7)
            )
            element = x.type.pointee
            size = 4 if isinstance(element, ir.FloatType) else 8
            lanes = VECTOR_BYTES // size
            vector = ir.VectorType(element, lanes)
            byte = ir.IntType(8).as_pointer()
            prefetch = _declare_prefetch(b)

            def pointer(base, start, k):  # type: ignore[no-untyped-def]
                return b.bitcast(b.gep(base, [b.add(start, start.type(k * lanes))]), vector.as_pointer())

            def load(base, start, k):  # type: ignore[no-untyped-def]
                return b.load(pointer(base, start, k), align=size)

            def row_start(position):  # type: ignore[no-untyped-def]
                row = b.sext(b.load(b.gep(index, [position])), dim.type)
                return b.add(b.mul(row, dim), column)

            def add_row(position, total, square):  # type: ignore[no-untyped-def]
                here = row_start(position)
                soon = row_start(b.add(position, ahead)) if abreast == 1 else None
                for k in range(vectors):
                    if soon is not None:
                        b.call(prefetch, [b.bitcast(pointer(x, soon, k), byte), *map(ir.IntType(32), (0, 3, 1))])
                    deviation = b.fsub(load(x, here, k), center[k])
                    b.store(b.fadd(b.load(total[k]), deviation), total[k])
                    squared = b.fmul(deviation, deviation, flags=("contract",))
                    b.store(b.fadd(b.load(square[k]), squared, flags=("contract",)), square[k])

            def sums_from(start, file):  # type: ignore[no-untyped-def]
                before = [zero if file else load(accumulator, start, k) for k in range(vectors)]
                return [cgutils.alloca_once_value(b, value) for value in before]

            zero = ir.Constant(vector, [0.0] * lanes)
            center = [load(accumulator, column, k) for k in range(vectors)]
            starts = [b.add(column, b.mul(dim, dim.type(line))) for line in (1, 2)]
            sums = [[sums_from(start, file) for start in starts] for file in range(abreast)]
            rounds = b.sdiv(number, number.type(abreast))
            with cgutils.for_range(b, rounds) as loop:
                position = b.add(first, b.mul(loop.index, number.type(abreast)))
                for file in range(abreast):
                    add_row(b.add(position, number.type(file)), *sums[file])
            done = b.mul(rounds, number.type(abreast))
            with cgutils.for_range(b, b.sub(number, done)) as loop:
                add_row(b.add(b.add(first, done), loop.index), *sums[0])
            for start, *files in zip(starts, *sums, strict=True):
                for k in range(vectors):
                    found = b.load(files[0][k])
                    for other in files[1:]:
                        found = b.fadd(found, b.load(other[k]))
                    b.store(found, pointer(accumulator, start, k), align=size)
            return context.get_dummy_value()

        return signature, generate

    return add_strip


_add_wide = _make_strip(WIDE_STRIP)
_add_narrow = _make_strip(NARROW_STRIP)
_add_abreast = _make_strip(NARROW_STRIP, abreast=2)


@njit(nogil=True)
def sort_tile(codes, groups, start, stop, order, starts):  # type: ignore[no-untyped-def]
    """Write the rows of a tile to `order`, group by group, leaving out negative codes; return how many."""
    descents = 0 if codes.size == 0 or codes[start] >= 0 else 1
    for i in range(start + 1, stop if codes.size else start):
        descents += codes[i] < codes[i - 1]
    if descents == 0:
        for i in range(start, stop):
            order[i - start] = i - start
        return stop - start
    starts[:] = 0
    for i in range(start, stop):
        if codes[i] >= 0:
            starts[codes[i]] += 1
    kept = 0
    for g in range(groups):
        size = starts[g]
        starts[g] = kept
        kept += size
    for i in range(start, stop):
        g = codes[i]
        if g >= 0:
            order[starts[g]] = i - start
            starts[g] += 1
    return kept


@njit(nogil=True)
def _add_run(tile, order, first, number, ahead, sums):  # type: ignore[no-untyped-def]
    """Add the rows order[first : first + number] of a tile to sums[1] and sums[2], around sums[0]."""
    dim = tile.shape[1]
    lanes = VECTOR_BYTES // tile.itemsize
    wide = dim // (WIDE_STRIP * lanes) * (WIDE_STRIP * lanes)
    narrow = dim // lanes * lanes
    for start in range(first, first + number, PASS_ROWS):
        rows = min(PASS_ROWS, first + number - start)
        for j in range(0, wide, WIDE_STRIP * lanes):
            _add_wide(tile, order, start, rows, ahead, dim, j, sums)
        for j in range(wide, narrow, NARROW_STRIP * lanes):
            _add_narrow(tile, order, start, rows, ahead, dim, j, sums)
        _add_rest(tile, order, start, rows, narrow, sums)


@njit(nogil=True)
def _add_cached_run(tile, order, first, number, sums):  # type: ignore[no-untyped-def]
    """The same for a tile of few features that is in the cache already."""
    dim = tile.shape[1]
    lanes = VECTOR_BYTES // tile.itemsize
    narrow = dim // lanes * lanes
    for j in range(0, narrow, NARROW_STRIP * lanes):
        _add_abreast(tile, order, first, number, 0, dim, j, sums)
    _add_rest(tile, order, first, number, narrow, sums)


@njit(nogil=True)
def _add_rest(tile, order, first, number, column, sums):  # type: ignore[no-untyped-def]
    """The same for the features from `column` on, which fill no vector."""
    for i in range(first, first + number):
        row = order[i]
        for j in range(column, tile.shape[1]):
            deviation = tile[row, j] - sums[0, j]
            sums[1, j] += deviation
            sums[2, j] += deviation * deviation


@njit(nogil=True, fastmath={"contract"})
def _fold(sums, number, group, origin, count, mean, sumsq):  # type: ignore[no-untyped-def]
    """Fold the sums of one run into the group's float64 moments (Chan, Golub, LeVeque 1983).

    Means are kept relative to the group's first row, so that an offset common to all rows costs no digits.
    """
    before = count[group]
    after = before + number
    share = number / after
    weight = before * share
    inverse = 1 / number
    for j in range(sums.shape[1]):
        shift = np.float64(sums[1, j]) * inverse
        gap = np.float64(sums[0, j]) - np.float64(origin[group, j]) + shift - mean[group, j]
        mean[group, j] += gap * share
        sumsq[group, j] += np.float64(sums[2, j]) - number * shift * shift + gap * gap * weight
    count[group] = after


@njit(nogil=True)
def add_tile(tile, codes, start, order, kept, ahead, origin, count, mean, sumsq, sums):  # type: ignore[no-untyped-def]
    """Add the rows order[:kept] of a tile, whose codes begin at `start`, to the moments of their groups.

    `ahead`: how many rows ahead are prefetched; 0: the tile is in the cache.
    """
    dim = tile.shape[1]
    k = 0
    while k < kept:
        group = codes[start + order[k]] if codes.size else 0
        number = min(RUN_ROWS, kept - k)
        while codes.size and codes[start + order[k + number - 1]] != group:
            number -= 1
        if count[group] == 0:
            origin[group] = tile[order[k]]
        for j in range(dim):
            sums[0, j] = np.float64(origin[group, j]) + mean[group, j]
            sums[1, j] = 0
            sums[2, j] = 0
        if ahead:
            _add_run(tile, order, k, number, ahead, sums)
        else:
            _add_cached_run(tile, order, k, number, sums)
        _fold(sums, number, group, origin, count, mean, sumsq)
        k += number


def _accumulate(  # type: ignore[no-untyped-def]
    rows, codes, tile_rows, ahead, origin, count, mean, sumsq, sums, order, starts
):
    """Add rows to the moments of their groups, in place; no codes: one group; negative code: no group."""
    total = len(rows)
    for start in range(0, total, tile_rows):
        stop = min(start + tile_rows, total)
        kept = sort_tile(codes, count.size, start, stop, order, starts)
        for i in range(kept, kept + ahead):  # what is prefetched beyond the tile's end: the start of the next one
            order[i] = min(stop - start + i - kept, total - 1 - start)
        add_tile(rows[start:stop], codes, start, order, kept, ahead, origin, count, mean, sumsq, sums)


def _squared_distances(points, start, stop, out):  # type: ignore[no-untyped-def]
    """Write squared Euclidean distances of rows start:stop to all rows before them, by differences.

    Two rows meet four at a time, which keeps the registers busy and loads each number for several pairs.
    """
    dim = points.shape[1]
    for block in range(0, stop, 32):  # rows that stay in the second-level cache while all others pass
        for p in range(start, stop, 2):
            q = min(p + 1, stop - 1)
            for a in range(block, min(block + 32, q), 4):
                b, c, d = min(a + 1, q), min(a + 2, q), min(a + 3, q)
                pa = pb = pc = pd = qa = qb = qc = qd = 0.0
                for k in range(dim):
                    first, second = points[p, k], points[q, k]
                    pa += (points[a, k] - first) ** 2
                    pb += (points[b, k] - first) ** 2
                    pc += (points[c, k] - first) ** 2
                    pd += (points[d, k] - first) ** 2
                    qa += (points[a, k] - second) ** 2
                    qb += (points[b, k] - second) ** 2
                    qc += (points[c, k] - second) ** 2
                    qd += (points[d, k] - second) ** 2
                out[p, a], out[p, b], out[p, c], out[p, d] = pa, pb, pc, pd
                out[a, p], out[b, p], out[c, p], out[d, p] = pa, pb, pc, pd
                out[q, a], out[q, b], out[q, c], out[q, d] = qa, qb, qc, qd
                out[a, q], out[b, q], out[c, q], out[d, q] = qa, qb, qc, qd


@intrinsic
def _prefetch(typing, rows, position):  # type: ignore[no-untyped-def]
    """Fetch the cache line that holds a number of C-ordered rows."""

    def generate(context, b, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, b, arguments[0]).data
        byte = ir.IntType(8).as_pointer()
        fetch = _declare_prefetch(b)
        b.call(fetch, [b.bitcast(b.gep(data, [arguments[1]]), byte), *map(ir.IntType(32), (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(rows, types.intp), generate


@njit(nogil=True)
def _fetch_row(rows, row):  # type: ignore[no-untyped-def]
    """Prefetch a row, or the last one."""
    number, dim = rows.shape
    start = min(row, number - 1) * dim
    for j in range(0, dim, VECTOR_BYTES // rows.itemsize):
        _prefetch(rows, start + j)


@njit(nogil=True)
def _add_products(square, along, group, dispersion, per_unit, sums):  # type: ignore[no-untyped-def]
    """Add products of powers of s and a of one row to the sums of its group, in the order of `influence.PRODUCTS`."""
    s, a = (np.float64(square) - dispersion[group]) * per_unit, np.float64(along) * per_unit
    ss, sa, aa = s * s, s * a, a * a
    sums[group, 0] += ss
    sums[group, 1] += sa
    sums[group, 2] += aa
    sums[group, 3] += ss * ss
    sums[group, 4] += ss * sa
    sums[group, 5] += ss * aa
    sums[group, 6] += sa * aa
    sums[group, 7] += aa * aa


def _influence_sums(rows, codes, mean, direction, dispersion, per_unit, sums):  # type: ignore[no-untyped-def]
    """Add products of powers of s and a of each row to the sums of its group.

    Sums over features run in the type of the rows, those over rows in float64. The rows needed soon are prefetched, and
    long rows of one group go in pairs, which loads the group's mean and direction once for both.
    """
    number, dim = rows.shape
    in_pairs = dim * rows.itemsize >= LONG_ROW_BYTES
    i = 0
    while i < number:
        group = codes[i]
        _fetch_row(rows, i + PREFETCH_ROWS)
        if group < 0:
            i += 1
        elif in_pairs and i + 1 < number and codes[i + 1] == group:
            _fetch_row(rows, i + 1 + PREFETCH_ROWS)
            square = along = other_square = other_along = rows.dtype.type(0)
            for j in range(dim):
                center, ahead = mean[group, j], direction[group, j]
                gap, other = rows[i, j] - center, rows[i + 1, j] - center
                square += gap * gap
                along += gap * ahead
                other_square += other * other
                other_along += other * ahead
            _add_products(square, along, group, dispersion, per_unit, sums)
            _add_products(other_square, other_along, group, dispersion, per_unit, sums)
            i += 2
        else:
            square = along = rows.dtype.type(0)
            for j in range(dim):
                gap = rows[i, j] - mean[group, j]
                square += gap * gap
                along += gap * direction[group, j]
            _add_products(square, along, group, dispersion, per_unit, sums)
            i += 1


def compile_for(function: Any, signature: Any, **options: Any) -> Any:
    """Compile for one signature, keeping the machine code on disk where that works."""
    try:
        return njit(signature, nogil=True, cache=True, **options)(function)
    except Exception:  # no writable cache folder, a full disk, a damaged cache file: the code is what matters
        return njit(signature, nogil=True, **options)(function)


def compile_accumulate(dtype: np.dtype[Any]) -> Any:
    """Compiled `_accumulate` for C-ordered rows of float32 or float64."""
    element = types.float32 if dtype == np.float32 else types.float64
    rows = types.Array(element, 2, "C", readonly=True)
    codes = types.Array(types.int32, 1, "C", readonly=True)
    table = types.float64[:, ::1]
    state = (element[:, ::1], types.float64[::1], table, table)
    scratch = (element[:, ::1], types.int32[::1], types.int64[::1])
    signature = types.void(rows, codes, types.intp, types.intp, *state, *scratch)
    return compile_for(_accumulate, signature)


def compile_squared_distances() -> Any:
    """Compiled `_squared_distances`."""
    points = types.Array(types.float64, 2, "C", readonly=True)
    signature = types.void(points, types.intp, types.intp, types.float64[:, ::1])
    return compile_for(_squared_distances, signature, fastmath={"reassoc", "contract"})


def compile_influence_sums(dtype: np.dtype[Any]) -> Any:
    """Compiled `_influence_sums` for C-ordered rows of float32 or float64."""
    element = types.float32 if dtype == np.float32 else types.float64
    rows = types.Array(element, 2, "C", readonly=True)
    codes = types.Array(types.int32, 1, "C", readonly=True)
    table = types.Array(types.float64, 1, "C", readonly=True)
    signature = types.void(rows, codes, element[:, ::1], element[:, ::1], table, types.float64, types.float64[:, ::1])
    return compile_for(_influence_sums, signature, fastmath={"reassoc", "contract"})
