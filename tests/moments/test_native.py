"""A fuzz of the C kernel: any shape, layout, type and code equals NumPy's twin or raises ValueError, and ends nothing.

`make test-native` runs it with sanitizers, which see what the numbers do not show.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crossfusion.moments import PRODUCTS, sum_influences, transpose
from crossfusion.moments import kernel as kernels
from tests.moments.test_kernel import LAYOUTS, TYPES

DRAWS = 25  # per seed
NUMBERS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 127, 128, 129, 300]
DIMS = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 1023, 1025]
REFUSED = (ValueError, TypeError, BufferError, OverflowError)


def within_records(values):
    """Between single bytes, so neither contiguous nor aligned."""
    records = np.zeros(values.shape, [("before", "i1"), ("values", values.dtype)])
    records["values"] = values
    return records["values"]


MORE_LAYOUTS: dict[str, Callable[[Any], Any]] = LAYOUTS | {
    "one row repeated": lambda x: np.broadcast_to(x[:1], x.shape) if len(x) else x,
    "inside a larger array": lambda x: np.pad(x, ((3, 1), (2, 5)))[3 : 3 + len(x), 2 : 2 + x.shape[1]],
    "field of records": within_records,
    "byte order named": lambda x: x.view(x.dtype.newbyteorder("L")),  # as Zarr does; NumPy calls it equal to its own
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
}
ODD_CODES: dict[str, Callable[[Any, int], Any]] = {
    "too large": lambda codes, groups: np.where(np.arange(len(codes)) == len(codes) // 2, groups, codes),
    "largest int32": lambda codes, groups: np.full_like(codes, 2**31 - 1),
    "smallest int32": lambda codes, groups: np.full_like(codes, -(2**31)),
    "group 0 modulo 2**32": lambda codes, groups: codes.astype(np.int64) + 2**32,
    "negative group 0 modulo 2**32": lambda codes, groups: codes.astype(np.int64) - 2**32,
    "too short": lambda codes, groups: codes[:-1],
    "too long": lambda codes, groups: np.append(codes, codes[:1]).astype(np.int32),
    "two axes": lambda codes, groups: codes[:, None],
    "floats": lambda codes, groups: codes.astype(np.float64),
    "booleans": lambda codes, groups: codes > 0,
    "uint64": lambda codes, groups: np.maximum(codes, 0).astype(np.uint64),
    "int64": lambda codes, groups: codes.astype(np.int64),
    "int8": lambda codes, groups: np.minimum(codes, 127).astype(np.int8),
    "not native": lambda codes, groups: codes.astype(">i4"),
    "byte order named": lambda codes, groups: codes.view(codes.dtype.newbyteorder("L")),
    "every other": lambda codes, groups: np.repeat(codes, 2)[::2],
    "backwards": lambda codes, groups: codes[::-1],
}


@pytest.fixture
def draw(seed):
    return np.random.default_rng(seed)


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    """Few rows are worth a thread, and several calls."""
    monkeypatch.setattr(kernels, "THREAD_BYTES", 1)
    monkeypatch.setattr(kernels, "CONVERTED_BYTES", 2**12)


def some_rows(draw, types=TYPES, numbers=NUMBERS, dims=DIMS):
    shape = int(draw.choice(numbers)), int(draw.choice(dims))
    values = draw.normal(50, 15, shape).clip(0, 100).astype(draw.choice(types))
    return MORE_LAYOUTS[draw.choice(list(MORE_LAYOUTS))](values)


def some_codes(draw, number):
    """Codes that fit, more often than not, and the number of groups."""
    groups = int(draw.choice([1, 2, 7, 40]))
    codes = draw.integers(draw.choice([-1, 0]), groups, number).astype(np.int32)
    if draw.random() < 0.3:
        codes = np.sort(codes)
    kind = draw.choice(list(ODD_CODES)) if draw.random() < 0.4 else "usual"
    return (codes if kind == "usual" else ODD_CODES[kind](codes, groups)), groups


def assert_same(compute, monkeypatch, rtol=1e-10):
    """What the C kernel returns, NumPy returns; what one refuses, both refuse."""
    found = []
    for compiled in (kernels.compiled, None):
        with monkeypatch.context() as patched:
            patched.setattr(kernels, "compiled", compiled)
            try:
                found.append([np.asarray(values) for values in compute()])
            except ValueError:
                found.append([])
    assert len(found[0]) == len(found[1])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-9)
    return bool(found[0])


@pytest.mark.parametrize("seed", range(20))
def test_moments_of_any_rows_and_codes(draw, monkeypatch):
    for _ in range(DRAWS):
        rows = some_rows(draw)
        codes, groups = some_codes(draw, len(rows)) if draw.random() < 0.8 else (None, int(draw.integers(0, 3)))
        threads = int(draw.integers(1, 4))
        assert_same(lambda: kernels.reduce_rows(rows, codes, groups, threads=threads), monkeypatch)  # noqa: B023


@pytest.mark.parametrize("seed", range(10))
def test_influences_of_any_rows_and_codes(draw, monkeypatch):
    for _ in range(DRAWS):
        rows = some_rows(draw)
        codes, groups = some_codes(draw, len(rows))
        mean, direction = draw.normal(50, 1, (groups, rows.shape[1])), draw.normal(size=(groups, rows.shape[1]))
        if draw.random() < 0.3:
            mean = np.asfortranarray(mean).view(mean.dtype.newbyteorder("L"))
        arguments = rows, codes, mean, direction, draw.random(groups), 1000.0
        assert_same(lambda: [sum_influences(*arguments)], monkeypatch)  # noqa: B023


@pytest.mark.parametrize("seed", range(5))
def test_distances_between_any_points(draw, monkeypatch):
    for _ in range(DRAWS):
        points = some_rows(draw, ["f8"], NUMBERS[:-1], [0, *DIMS[:-2]])
        assert assert_same(lambda: [kernels.squared_distances(points)], monkeypatch)  # noqa: B023


@pytest.mark.parametrize("seed", range(10))
def test_sums_of_any_members(draw, monkeypatch):
    for _ in range(DRAWS):
        rows = some_rows(draw, ["f8"])
        belongs = draw.random((int(draw.choice(NUMBERS)), len(rows))) < draw.random()
        belongs = belongs[:, ::-1] if draw.random() < 0.3 else belongs
        before = draw.normal(size=(len(belongs), rows.shape[1]))

        def add(belongs=belongs, rows=rows, before=before):
            sums = before.copy()
            kernels.add_members(belongs, rows, sums)
            return [sums]

        assert assert_same(add, monkeypatch)


@pytest.mark.parametrize("seed", range(5))
def test_rows_from_any_columns(draw, monkeypatch):
    for _ in range(DRAWS):
        rows = some_rows(draw, ["f4", "f8", "i4"], dims=DIMS[:-2])
        columns = [rows[:, j] if draw.random() < 0.5 else rows[:, j].copy() for j in range(rows.shape[1])]
        if draw.random() < 0.2:
            columns[0] = columns[0][:-1]
        assert_same(lambda: [transpose(columns)], monkeypatch, rtol=0)  # noqa: B023


# ---- the functions of the extension, called as nobody should


def with_zero_rows_of_any_width(array):
    return np.empty((0, 2**40), array.dtype)


def view_misaligned(array):
    """As no NumPy array is: native numbers at an odd address, without a word of it."""
    shape = array.shape
    flat = memoryview(bytearray(array.nbytes + 1))[1:]
    flat[:] = array.tobytes()
    return flat.cast(array.dtype.char, shape) if array.size else array


SPOILED: dict[str, Callable[[Any], Any]] = {
    "None": lambda array: None,
    "bytes": lambda array: array.tobytes(),
    "a number": lambda array: 3,
    "an axis more": lambda array: array[None],
    "an axis less": lambda array: array.reshape(-1) if array.ndim > 1 else array.sum(),
    "one entry less": lambda array: array[1:].copy(),
    "one entry more": lambda array: np.concatenate([array, array[:1], array[:1]]),
    "one column less": lambda array: np.ascontiguousarray(array[..., 1:]),
    "not contiguous": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    "not native": lambda array: array.astype(array.dtype.newbyteorder()),
    "not aligned": LAYOUTS["not aligned"],
    "not aligned and silent": view_misaligned,
    "no rows of any width": with_zero_rows_of_any_width,
    "any number of rows without width": lambda array: np.empty((2**40, 0), array.dtype),
    "endless, of one number": lambda array: np.broadcast_to(np.ones(1, array.dtype), (2**30, 2**20)),
    "half precision": lambda array: array.astype(np.float16),
    "complex": lambda array: array.astype(complex),
    "long integers": lambda array: array.astype(np.int64),
    "objects": lambda array: array.astype(object),
    "dates": lambda array: array.astype("M8[s]"),
    "records": lambda array: array.view([("a", array.dtype)]),
}
SPOILED_OUTPUT = {"read-only": LAYOUTS["not aligned"], "frozen": lambda array: memoryview(array).toreadonly()}
COLUMN = np.zeros(100)
NUMBERS_OUT_OF_RANGE = [-1, -(2**31), 2**31, 2**62, 2**63 - 1, -(2**63), 2**70, 0.5, None]


def accumulate_arguments(draw):
    number, dim, groups = int(draw.integers(1, 40)), int(draw.choice(DIMS[:-2])), 3
    rows = draw.normal(size=(number, dim)).astype(draw.choice(["f4", "f8"]))
    codes = draw.integers(-1, groups, number).astype(np.int32)
    tile = int(draw.choice([1, 2, 7, 4096]))
    return [rows, codes, tile, np.zeros((groups, dim)), *kernels.empty(groups, dim)], {3, 4, 5, 6}


def influence_arguments(draw):
    (rows, codes, *_), _ = accumulate_arguments(draw)
    table = draw.normal(size=(2, 3, rows.shape[1]))
    return [rows, codes, table[0].copy(), table[1].copy(), np.ones(3), 0.5, np.zeros((3, len(PRODUCTS)))], {6}


def distance_arguments(draw):
    number = int(draw.integers(1, 40))
    start, stop = sorted(int(edge) for edge in draw.integers(0, number + 1, 2))
    points = draw.normal(size=(number, int(draw.choice(DIMS[:-2]))))
    return [points, start, stop, np.zeros((number, number))], {3}


def interleave_arguments(draw):
    """All columns are the same one."""
    number, dim = int(draw.integers(1, 40)), int(draw.choice(DIMS[:-2]))
    start = int(draw.integers(0, number + 1))
    addresses = np.full(dim, COLUMN.ctypes.data, np.uint64)
    return [addresses, number, start, np.zeros((number - start, dim), draw.choice(["f4", "f8"]))], {3}


def member_arguments(draw):
    sets, number, dim = int(draw.integers(1, 40)), int(draw.integers(1, 40)), int(draw.choice(DIMS[:-2]))
    return [draw.random((sets, number)) < 0.5, draw.normal(size=(number, dim)), np.zeros((sets, dim))], {2}


FUNCTIONS = {
    "accumulate": accumulate_arguments,
    "influence": influence_arguments,
    "squared_distances": distance_arguments,
    "interleave": interleave_arguments,
    "add_members": member_arguments,
}
TRUSTED = {("interleave", 0)}  # addresses: only their number can be checked


def spoil(draw, value, output):
    """Another argument in its place."""
    if not isinstance(value, np.ndarray):
        return NUMBERS_OUT_OF_RANGE[draw.integers(len(NUMBERS_OUT_OF_RANGE))]
    ways = SPOILED | SPOILED_OUTPUT if output else SPOILED
    return ways[draw.choice(list(ways))](value)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_wrong_arguments_of_the_extension_are_refused_and_nothing_is_written(name, draw):
    for _ in range(DRAWS):
        arguments, outputs = FUNCTIONS[name](draw)
        place = int(draw.choice([k for k in range(len(arguments)) if (name, k) not in TRUSTED]))
        before = {k: arguments[k].copy() for k in outputs - {place}}
        arguments[place] = spoil(draw, arguments[place], place in outputs)
        try:
            getattr(kernels.compiled, name)(*arguments)
        except REFUSED:
            for k, values in before.items():
                np.testing.assert_array_equal(arguments[k], values)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_right_is_not_refused(name):
    for seed in range(50):
        arguments, _ = FUNCTIONS[name](np.random.default_rng(seed))
        getattr(kernels.compiled, name)(*arguments)


@pytest.mark.parametrize("way", SPOILED)
@pytest.mark.parametrize("place", [0, 1, 3, 4, 5, 6])
def test_every_way_is_refused_by_accumulate(way, place):
    arguments, _ = accumulate_arguments(np.random.default_rng(0))
    assert arguments[0].shape[1] > 1
    fine = {("None", 1)}  # one group
    arguments[place] = SPOILED[way](arguments[place])
    if (way, place) in fine:
        kernels.compiled.accumulate(*arguments)
    else:
        with pytest.raises(REFUSED):
            kernels.compiled.accumulate(*arguments)


def test_an_unknown_instruction_set_is_refused():
    for name in ("avx1024", "", "\ud800", 3):
        with pytest.raises((ValueError, TypeError)):
            kernels.compiled.instructions(name)
