"""The C kernel and its NumPy twin: equal to each other and to exact arithmetic, however the work is cut."""

import os
import sys
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import crossfusion as cf
from crossfusion._base.threads import thread_count
from crossfusion.moments import kernel as kernels
from crossfusion.moments import sum_influences, transpose
from tests.helpers import reference

DIMS = [1, 3, 15, 16, 17, 63, 64, 65, 130]
THREADS = [1, 2, 3, 5]
GROUPS = 7
LABELS: dict[str, Callable[[Any, int], Any]] = {
    "one group": lambda draw, n: None,
    "random": lambda draw, n: draw.integers(0, GROUPS, n),
    "sorted": lambda draw, n: np.sort(draw.integers(0, GROUPS, n)),
    "descending": lambda draw, n: np.sort(draw.integers(0, GROUPS, n))[::-1],
    "some left out": lambda draw, n: draw.integers(-2, GROUPS, n),
    "sorted, some left out": lambda draw, n: np.sort(draw.integers(-2, GROUPS, n)),
    "empty groups": lambda draw, n: draw.choice([1, 5], n),
    "all left out": lambda draw, n: np.full(n, -1),
}


def by_numpy(rows, codes, groups):
    return kernels.merge(None, rows, None, codes, groups)


def by_compiler(threads):
    return lambda rows, codes, groups: kernels._reduce_on_threads(rows, codes, groups, threads)


@pytest.fixture(autouse=True)
def on_threads(monkeypatch):
    """Few rows are worth a thread."""
    monkeypatch.setattr(kernels, "THREAD_BYTES", 1)


def some_codes(name, number, draw):
    codes = LABELS[name](draw, number)
    return (None, 1) if codes is None else (np.ascontiguousarray(codes, np.int32), GROUPS)


def assert_exact(found, rows, codes, groups, rtol):
    """Count, mean and sum of squares of each group are those of exact arithmetic, relative to the spread."""
    for group in range(groups):
        own = np.asarray(rows if codes is None else rows[codes == group]).astype(np.float64)
        count, mean, sumsq = (values[group] for values in found)
        assert count == len(own)
        if len(own) == 0:
            assert not mean.any()
            assert not sumsq.any()
            continue
        exact = reference.moments(own)
        expected = np.array(exact.sumsq, np.float64)
        unit = np.finfo(np.float64).eps * np.abs(own).max(axis=0)
        spread = np.sqrt(expected / len(own))
        assert np.all(np.abs(mean - np.array(exact.mean, np.float64)) <= rtol * spread + 8 * unit)
        assert np.all(np.abs(sumsq - expected) <= rtol * expected)


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", DIMS)
def test_both_routes_equal_exact_arithmetic(dim, dtype, labels):
    draw = np.random.default_rng(dim)
    rows = draw.normal(3, 1, (150, dim)).astype(dtype)
    codes, groups = some_codes(labels, len(rows), draw)
    assert_exact(by_numpy(rows, codes, groups), rows, codes, groups, 1e-12)
    for threads in THREADS:
        found = by_compiler(threads)(rows, codes, groups)
        assert_exact(found, rows, codes, groups, 1e-12)


@pytest.mark.parametrize("number", [1, 2, 16, 63, 64, 65, 129, 4095, 4096, 4097, 9000])
@pytest.mark.parametrize("labels", ["one group", "random", "sorted", "some left out"])
def test_any_number_of_rows(number, labels):
    draw = np.random.default_rng(number)
    rows = draw.normal(-2, 1, (number, 5))
    codes, groups = some_codes(labels, number, draw)
    for reduce in (by_numpy, by_compiler(1), by_compiler(2)):
        assert_exact(reduce(rows, codes, groups), rows, codes, groups, 1e-12)


def test_as_many_groups_as_rows():
    rows = np.random.default_rng(0).normal(size=(5000, 3))
    codes = np.random.default_rng(1).permutation(5000).astype(np.int32)
    for count, mean, sumsq in (reduce(rows, codes, 5000) for reduce in (by_numpy, by_compiler(3))):
        np.testing.assert_array_equal(count, 1)
        np.testing.assert_array_equal(mean[codes], rows)
        np.testing.assert_array_equal(sumsq, 0)


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": lambda x: x,
    "Fortran": np.asfortranarray,
    "every other row": lambda x: np.repeat(x, 2, axis=0)[::2],
    "every other column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "not native": lambda x: x.astype(x.dtype.newbyteorder(">")),
    "not aligned": lambda x: np.frombuffer(b"-" + x.tobytes(), x.dtype, offset=1).reshape(x.shape),
}
TYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "bool"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TYPES)
def test_the_compiled_route_takes_any_type_and_layout(dtype, layout, monkeypatch):
    monkeypatch.setattr(kernels, "CONVERTED_BYTES", 1000)  # so that converting takes several bites
    draw = np.random.default_rng(6)
    values = draw.normal(50, 15, (200, 17)).clip(0, 100)
    rows = LAYOUTS[layout]((values > 50 if dtype == "bool" else values).astype(dtype))
    codes, groups = some_codes("random", len(rows), draw)
    assert_exact(by_compiler(2)(rows, codes, groups), rows, codes, groups, 1e-12)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "float64"])
def test_wide_types_are_not_squeezed_into_float32(dtype, route):
    rows = (2**30 + np.random.default_rng(0).integers(0, 5, (300, 3))).astype(dtype)
    assert_exact(kernels.reduce_rows(rows, None, 1), rows, None, 1, 1e-12)


def test_results_do_not_depend_on_how_the_work_is_cut(monkeypatch):
    draw = np.random.default_rng(7)
    rows, codes = draw.normal(100, 1, (20_000, 5)), draw.integers(0, 3, 20_000).astype(np.int32)
    order = draw.permutation(len(rows))
    found = [by_compiler(threads)(rows, codes, 3) for threads in THREADS]
    found += [by_compiler(2)(rows[order], codes[order], 3)]
    for segment in (2**6, 2**10, 2**16):
        monkeypatch.setattr(kernels, "SEGMENT_NUMBERS", segment)
        found += [by_numpy(rows, codes, 3), by_numpy(rows[order], codes[order], 3)]
    for one in found:
        for values, expected in zip(one, found[0], strict=True):
            np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize("number", [100, 20_000])
def test_float32_far_from_the_origin(number, route):
    rows = (1e6 + np.random.default_rng(8).normal(size=(number, 3))).astype(np.float32)
    labels = np.arange(number) % 2
    rows[labels == 1] += 1
    assert_exact(kernels.reduce_rows(rows, None, 1), rows, None, 1, 1e-12)
    exact = reference.cfd(rows, labels.tolist()).distance
    assert cf.cfd(rows, labels=labels).distance == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("offset", [0, 3, -100])
def test_float32_over_many_rows(offset, route):
    rows = np.random.default_rng(10).normal(offset, 1, (20_000, 17)).astype(np.float32)
    assert_exact(kernels.reduce_rows(rows, None, 1), rows, None, 1, 1e-12)


@pytest.mark.parametrize("scale", [1e-30, 1e-24, 1e-20, 1e20, 1e30])
def test_float32_whose_squares_leave_its_range(scale, route):
    rows = (np.random.default_rng(9).normal(size=(500, 4)) * scale).astype(np.float32)
    moments = cf.Moments.of(rows)
    expected = cf.Moments.of(rows.astype(np.float64))
    np.testing.assert_allclose(moments.sumsq, expected.sumsq, rtol=1e-12)


def test_no_rows_on_either_route(route):
    for values in kernels.reduce_rows(np.empty((0, 3)), None, 2):
        assert not values.any()


# ---- which kernel


INSTRUCTIONS = ["baseline", "avx2", "avx512"]


@pytest.fixture(params=INSTRUCTIONS)
def instructions(request):
    """Each instruction set that this processor can run."""
    usual = kernels.compiled.instructions()
    try:
        kernels.compiled.instructions(request.param)
    except ValueError:
        pytest.skip(f"this processor has no {request.param}")
    yield request.param
    kernels.compiled.instructions(usual)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", [1, 7, 8, 33, 1025])
def test_every_instruction_set_gives_the_same_numbers(dim, dtype, instructions):
    draw = np.random.default_rng(dim)
    rows = draw.normal(3, 1, (300, dim)).astype(dtype)
    codes, groups = some_codes("some left out", len(rows), draw)
    for found, expected in zip(by_compiler(2)(rows, codes, groups), by_numpy(rows, codes, groups), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    columns = [np.ascontiguousarray(column) for column in rows.T]
    np.testing.assert_array_equal(transpose(columns), rows)
    points = rows[:40].astype(np.float64)
    gap = points[:, None] - points
    np.testing.assert_allclose(kernels.squared_distances(points), (gap**2).sum(axis=2), rtol=1e-12)
    member, sums = draw.random((60, len(rows))) < 0.5, np.zeros((60, dim))
    kernels.add_members(member, rows, sums)
    np.testing.assert_allclose(sums, member @ rows.astype(np.float64), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", [1, 7, 33, 1025])
def test_every_instruction_set_gives_the_same_influences(dim, dtype, instructions, monkeypatch):
    draw = np.random.default_rng(dim)
    rows = draw.normal(3, 1, (300, dim)).astype(dtype)
    codes, groups = some_codes("some left out", len(rows), draw)
    table = draw.normal(size=(2, groups, dim))
    arguments = rows, codes, *table, np.full(groups, float(dim)), 10.0
    found = sum_influences(*arguments)
    with monkeypatch.context() as patched:
        patched.setattr(kernels, "compiled", None)
        np.testing.assert_allclose(found, sum_influences(*arguments), rtol=1e-9, atol=1e-9)


def test_the_kernel_is_the_compiled_one_and_has_a_name(route):
    assert kernels.describe_kernel() in ({"NumPy"} if route == "numpy" else {f"C ({name})" for name in INSTRUCTIONS})


def test_without_the_extension_numpy_stands_in(python):
    """As on a machine where it could not be built."""
    code = """
import sys
sys.modules["crossfusion.moments._kernel"] = None
import numpy as np, crossfusion as cf
from crossfusion.moments import kernel
x = np.random.default_rng(0).normal(size=(2000, 16))
print(kernel.describe_kernel(), repr(cf.cfd(x[:900], x[900:], level=0.95).interval[0]))
"""
    rows = np.random.default_rng(0).normal(size=(2000, 16))
    name, low = python(code).split()
    assert name == "NumPy"
    assert float(low) == pytest.approx(cf.cfd(rows[:900], rows[900:], level=0.95).interval[0], rel=1e-9)


def test_differences_whose_squares_are_lost_are_refused(route, refuses):
    rows = np.random.default_rng(0).normal(size=(50, 3))
    for scale in (1e-158, 1e-162, 1e-200):
        with refuses("scale the rows up"):
            cf.cfd(rows * scale, labels=np.arange(50) % 2)
    assert cf.Moments.of(np.full((5, 2), 1e-200)).sumsq.tolist() == [0, 0]
    usual, mixed = cf.Moments.of(rows), cf.Moments.of(rows * [1, 1, 1e-200])
    np.testing.assert_array_equal(mixed.sumsq[:2], usual.sumsq[:2])


@pytest.mark.parametrize(
    ("wish", "cores", "threads"), [(None, 4, 4), ("2", 4, 2), ("8", 4, 4), ("0", 4, 4), ("many", 4, 4), ("4,2", 4, 4)]
)
def test_threads_are_the_cores_or_fewer_on_request(wish, cores, threads, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(cores), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if wish is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", wish)
    assert thread_count() == threads


def test_other_threads_run_during_a_reduction(monkeypatch):
    rows = np.zeros((300_000, 16), np.float32)
    kernel = kernels.compiled.accumulate
    ticks, progress = [0], list[int]()
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks[0] += 1
            time.sleep(0)  # hands the interpreter over, so that nobody waits for the switch interval

    def watched(*arguments):
        before = ticks[0]
        kernel(*arguments)
        progress.append(ticks[0] - before)

    monkeypatch.setattr(kernels, "compiled", SimpleNamespace(accumulate=watched))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # from here on a thread runs only when another one lets go
    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        for _ in range(20):
            kernels.reduce_rows(rows, None, 1, threads=1)
    finally:
        stop.set()
        ticker.join()
        sys.setswitchinterval(interval)
    assert sum(progress) > 0


# ---- distances between points


@pytest.mark.parametrize("dim", [1, 2, 7, 64])
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 31, 32, 33, 70])
def test_squared_distances_of_close_points_far_away_are_exact(number, dim, route):
    offsets = np.random.default_rng(number).integers(0, 100, (number, dim))
    gap = offsets[:, None] - offsets
    np.testing.assert_array_equal(kernels.squared_distances(offsets + np.float64(2**45)), (gap**2).sum(axis=2))


def test_squared_distances_on_several_threads(monkeypatch):
    offsets = np.random.default_rng(0).integers(0, 100, (400, 300))
    monkeypatch.setattr(kernels, "thread_count", lambda: 3)
    found = kernels.squared_distances(offsets + np.float64(2**45))
    square = (offsets**2).sum(axis=1)
    np.testing.assert_array_equal(found, square[:, None] + square - 2 * offsets @ offsets.T)
