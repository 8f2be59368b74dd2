"""Threads read and reduce parts side by side: the same bits for any number of them, and no more memory than blocks."""

import itertools
import threading
import time
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import crossfusion as cf
from crossfusion.io import reduction
from crossfusion.io.engines import local, resume
from crossfusion.io.engines.resume import Checkpoint
from crossfusion.io.sources.chunk import Chunk, Source

ROWS, DIM = 1200, 5
rng = np.random.default_rng(11)
X = 1e3 + rng.normal(size=(ROWS, DIM))
SITE = rng.choice(["A", "B", "C", "D"], ROWS)
EXPECTED = cf.summarize(X, by={"site": SITE})


def read(start, stop, step, rows, log):
    """Blocks of some rows, which come when they come."""
    for first in range(start, stop, step):
        log.append(first)
        time.sleep(0.0003 * (first % 5))
        cut = slice(first, min(first + step, stop))
        yield Chunk(rows[cut], pa.table({"site": SITE[cut]}), first)


def source(parts, step, rows=X, log=None, known=True):
    edges = np.linspace(0, ROWS, parts + 1).astype(int)
    log = [] if log is None else log
    reads = [partial(read, a, b, step, rows, log) for a, b in itertools.pairwise(edges)]
    return Source("made up", reads, ROWS if known else None)


def reduce_all(given, monkeypatch, threads, **options):
    monkeypatch.setattr(local, "thread_count", lambda: threads)
    return reduction.finish_summary(local.run([given], **options), "raise")


@pytest.mark.parametrize("parts", [1, 2, 7, 60])
@pytest.mark.parametrize("pending", [0, 2**30], ids=["merge at once", "merge at the end"])
def test_any_number_of_threads_gives_the_same_bits(parts, pending, monkeypatch):
    monkeypatch.setattr(reduction, "MAX_PENDING_BYTES", pending)
    found = [reduce_all(source(parts, 17), monkeypatch, threads) for threads in (1, 2, 3, 8)]
    for summary in found:
        assert summary.moments == found[0].moments
        np.testing.assert_array_equal(summary.moments.count, EXPECTED.moments.count)
        np.testing.assert_allclose(summary.moments.mean, EXPECTED.moments.mean, rtol=1e-12)
        np.testing.assert_allclose(summary.moments.sumsq, EXPECTED.moments.sumsq, rtol=1e-12)


@pytest.mark.parametrize("parts", [1, 40])
def test_no_more_blocks_are_in_memory_than_there_are_threads(parts, monkeypatch):
    alive, most, lock = 0, 0, threading.Lock()
    reduce_block = reduction.reduce_chunk

    def counted(*arguments, **options):
        nonlocal alive, most
        with lock:
            alive += 1
            most = max(most, alive)
        time.sleep(0.002)
        try:
            return reduce_block(*arguments, **options)
        finally:
            with lock:
                alive -= 1

    monkeypatch.setattr(local, "reduce_chunk", counted)
    reduce_all(source(parts, 10), monkeypatch, 3)
    assert most == 3  # a part that is read alone is reduced by all, too


def test_what_is_done_early_does_not_pile_up_behind_a_slow_part(monkeypatch):
    begun = threading.Event()
    started: list[int] = []

    def slow(number):
        started.append(number)
        if number == 0:
            begun.wait(2)
            assert len(started) <= 1 + 2 * local.MAX_AHEAD
        if len(started) == 2 * local.MAX_AHEAD:
            begun.set()
        yield Chunk(X[number : number + 1], pa.table({"site": ["A"]}), number)

    reduce_all(Source("made up", [partial(slow, k) for k in range(100)], 100), monkeypatch, 2)
    assert sorted(started) == list(range(100))


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("known", [True, False])
def test_reading_stops_at_rows_that_are_not_finite(threads, known, monkeypatch):
    rows = X.copy()
    log: list[int] = []
    rows[[100, 900], 2] = np.nan
    with pytest.raises(cf.NonFiniteError, match=r"1 of the first \d+ rows, the first in row 100, feature 2"):
        reduce_all(source(30, 8, rows, log, known), monkeypatch, threads)
    assert max(log) < 900


def test_rows_that_are_not_finite_may_be_dropped_in_any_part(monkeypatch):
    rows = X.copy()
    rows[[100, 900], 2] = np.nan
    monkeypatch.setattr(local, "thread_count", lambda: 3)
    with pytest.warns(cf.CrossfusionWarning, match="2 of 1200 rows, the first in row 100, feature 2"):
        summary = reduction.finish_summary(local.run([source(30, 8, rows)], "drop"), "drop")
    kept = np.isfinite(rows).all(axis=1)
    expected = cf.summarize(rows[kept], by={"site": SITE[kept]})
    np.testing.assert_allclose(summary.moments.sumsq, expected.moments.sumsq, rtol=1e-12)
    assert summary.dropped == 2


@pytest.mark.parametrize("threads", [1, 4])
def test_an_error_in_one_part_ends_the_others_and_closes_them(threads, monkeypatch):
    closed: list[int] = []

    def failing(number):
        try:
            for first in range(60):
                if number == 5 and first == 3:
                    raise cf.FileError("part 5", "is damaged", "write it again")
                yield Chunk(X[:1], pa.table({"site": ["A"]}), first)
        finally:
            closed.append(number)

    with pytest.raises(cf.FileError, match="part 5 is damaged"):
        reduce_all(Source("made up", [partial(failing, k) for k in range(8)]), monkeypatch, threads)
    assert 5 in closed
    assert threading.active_count() < 20


def test_a_part_that_is_being_read_is_closed_afterwards():
    reading, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def blocks():
        try:
            reading.set()
            go_on.wait()
            yield Chunk(X[:1], pa.table({"site": ["A"]}), 0)
        finally:
            closed.set()

    lane = local._PartitionReader(0, 0, 0, blocks, "made up")
    reader, closer = threading.Thread(target=lane.next), threading.Thread(target=lane.close)
    reader.start()
    reading.wait()
    closer.start()
    assert not closed.wait(0.05)
    go_on.set()
    reader.join()
    closer.join()
    assert closed.is_set()


def test_progress_is_told_every_row(monkeypatch):
    told: list[int] = []
    reduce_all(source(7, 13), monkeypatch, 3, progress=told.append)
    assert sum(told) == ROWS


def test_features_must_be_as_many_in_every_block(monkeypatch):
    def blocks():
        yield Chunk(X[:5], pa.table({"site": SITE[:5]}), 0, "first.npy")
        yield Chunk(X[:5, :3], pa.table({"site": SITE[:5]}), 0, "second.npy")

    with pytest.raises(cf.InputError, match=r"first.npy has 5, second.npy has 3"):
        reduce_all(Source("folder", [blocks]), monkeypatch, 2)


def test_a_source_without_rows_is_named(monkeypatch):
    with pytest.raises(cf.InputError, match="nothing has no rows"):
        reduce_all(Source("nothing", [partial(iter, [])]), monkeypatch, 2)


def interrupted_at(first, log):
    """Progress that ends the work once so many rows are done."""

    def told(rows):
        log.append(rows)
        if sum(log) >= first:
            raise KeyboardInterrupt

    return told


@pytest.mark.parametrize("threads", [1, 3])
def test_interrupted_work_goes_on_where_it_was(threads, tmp_path, monkeypatch):
    monkeypatch.setattr(local, "thread_count", lambda: threads)
    monkeypatch.setattr(resume, "MIN_WORK_SECONDS", 0)
    read: list[int] = []
    given = [source(5, 24, log=read), source(25, 24, X + 1, log=read)]  # a hundred blocks
    with pytest.raises(KeyboardInterrupt):
        # threads are never twelve parts ahead of the first, which are 1536 rows: by then the first part is done
        local.run(given, progress=interrupted_at(1560, []), keeper=Checkpoint(tmp_path / "kept", "this"))
    assert list(tmp_path.iterdir())
    before = len(read)
    told: list[int] = []
    keeper = Checkpoint(tmp_path / "kept", "this")
    summary = reduction.finish_summary(local.run(given, progress=told.append, keeper=keeper), "raise")
    assert keeper.rows > 0
    assert sum(told) == 2 * ROWS
    assert len(read) - before == 100 - keeper.rows // 24  # what was done is not read again
    expected = cf.summarize(np.concatenate([X, X + 1]), by={"site": np.concatenate([SITE, SITE])})
    np.testing.assert_array_equal(summary.moments.count, expected.moments.count)
    np.testing.assert_allclose(summary.moments.sumsq, expected.moments.sumsq, rtol=1e-12)
    keeper.done()
    assert not list(tmp_path.iterdir())


def test_only_the_very_same_work_is_gone_on_with(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "thread_count", lambda: 1)
    monkeypatch.setattr(resume, "MIN_WORK_SECONDS", 0)
    with pytest.raises(KeyboardInterrupt):
        local.run([source(9, 20)], progress=interrupted_at(600, []), keeper=Checkpoint(tmp_path / "kept", "this"))
    for about, number in (("that", 1), ("this", 2)):
        assert Checkpoint(tmp_path / "kept", about).load(number) is None
    assert Checkpoint(tmp_path / "kept", "this").load(1) is not None
    (kept,) = tmp_path.iterdir()
    with pytest.raises(cf.FileError, match="state of an unfinished run"):
        cf.read_summary(kept)
    kept.write_bytes(kept.read_bytes()[:-9])
    assert Checkpoint(tmp_path / "kept", "this").load(1) is None  # damaged: from the start


def test_a_state_is_kept_from_time_to_time(tmp_path, monkeypatch):
    monkeypatch.setattr(resume, "SAVE_SECONDS", 0)
    monkeypatch.setattr(resume, "MIN_WORK_RATIO", 0)
    keeper = Checkpoint(tmp_path / "kept", "this")
    local.run([source(20, 20)], keeper=keeper)
    (number, _), *_ = Checkpoint(tmp_path / "kept", "this").load(1) or []
    assert number > 10


def test_many_small_files_are_added_up_in_linear_time(monkeypatch):
    looked = []
    size: Any = vars(reduction.Reduction)["size"]

    def look(self):
        looked.append(1)
        return size.fget(self)

    monkeypatch.setattr(reduction.Reduction, "size", property(look))
    running = reduction.RunningSum("made up")
    chunk = reduction.reduce_chunk(Chunk(X[:8], pa.table({"site": SITE[:8]})), "made up")
    for number in range(500):
        running.add(number, chunk)
    assert len(looked) <= 1000
    assert running.total().summary.moments.count.sum() == 4000


def test_units_of_one_row_are_the_rows_themselves(monkeypatch):
    unit = np.random.default_rng(0).permutation(ROWS)
    by = {"site": SITE, "unit": unit}
    fine = cf.summarize(X.astype(np.float32), by=by)
    place = [int(np.flatnonzero(unit == key)[0]) for key in fine.keys.column("unit").to_pylist()]
    np.testing.assert_array_equal(fine.moments.mean, X.astype(np.float32)[place])
    assert not fine.moments.sumsq.any()
    swapped = cf.summarize(X, by={"unit": unit, "site": SITE})
    found, expected = swapped.cfd("site", units="unit", level=0.95), cf.cfd(X, labels=SITE, units=unit, level=0.95)
    assert found.distance == pytest.approx(expected.distance, rel=1e-12)
    assert found.interval == pytest.approx(expected.interval, rel=0.05)  # from units and from rows
    monkeypatch.setattr("crossfusion.summary.moment_table.arrange_rows", None)  # not needed where nothing moves
    np.testing.assert_allclose(fine.rollup("site").moments.mean, EXPECTED.moments.mean, rtol=1e-6)
    with pytest.raises(cf.InputError, match=r"not finite|NaN"):
        cf.summarize(np.where(np.arange(ROWS)[:, None] == 3, np.nan, X), by=by)
