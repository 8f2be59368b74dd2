"""The first figure and the runtime study: files that parse, numbers that fit."""

import json
import math
from functools import partial
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

import crossfusion as cf
from paper import decomposition, growth, runtime, timing
from tests.helpers.module_commands import run_module


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("decomposition")
    return folder, decomposition.run(folder, seed=3)


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runtime") / "new"
    said: list[str] = []
    return folder, runtime.run(folder, dim=16, cap=0.05, largest=1000, progress=said.append), said


def is_picture(folder, name):
    ElementTree.parse(folder / f"{name}.svg")
    return (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_decomposition_files(drawn):
    folder, found = drawn
    assert is_picture(folder, "decomposition")
    assert json.loads((folder / "decomposition.json").read_text()) == decomposition.read(folder) == found
    assert found["seed"] == 3


def test_squares_add_and_roots_do_not(drawn):
    _, found = drawn
    for step in (*found["displacement"], *found["deformation"], found["example"]):
        assert step["translation"] + step["deformation"] == pytest.approx(step["distance"] ** 2, rel=1e-9)
    example = found["example"]
    assert math.sqrt(example["translation"]) + math.sqrt(example["deformation"]) > 1.1 * example["distance"]


def test_each_sweep_moves_one_part(drawn):
    _, found = drawn
    moved, deformed = found["displacement"], found["deformation"]
    assert np.ptp([step["deformation"] for step in moved]) < 1e-9
    assert [step["translation"] for step in moved] == pytest.approx([step["step"] ** 2 for step in moved])
    assert np.ptp([step["translation"] for step in deformed]) < 1e-9
    assert np.all(np.diff([step["deformation"] for step in deformed]) > 0)
    assert deformed[0]["deformation"] == pytest.approx(0, abs=1e-12)


def test_decomposition_is_reproducible(drawn, tmp_path):
    folder, _ = drawn
    decomposition.run(tmp_path, seed=3)
    for name in ("decomposition.json", "decomposition.svg"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_damaged_or_missing_results_are_refused(tmp_path, refuses):
    with refuses("python -m paper decomposition", cf.FileError):
        decomposition.read(tmp_path)
    (tmp_path / "decomposition.json").write_text("[1]")
    with refuses("does not hold a decomposition", cf.FileError):
        decomposition.read(tmp_path)
    for content in (
        "{}",
        '{"displacement": [], "deformation": []}',
        '{"displacement": [{"distance": 1}]}',
        '{"displacement": 1}',
    ):
        (tmp_path / "decomposition.json").write_text(content)
        with refuses("does not hold a decomposition: run", cf.FileError):
            decomposition.read(tmp_path)
    with refuses("python -m paper runtime", cf.FileError):
        runtime.read(tmp_path)


def test_runtime_files(timed):
    folder, table, said = timed
    assert is_picture(folder, "runtime")
    assert runtime.read(folder).equals(table)
    assert len(said) == 5
    rows = table.to_pylist()
    assert all(row["seconds"] > 0 for row in rows)
    assert {row["ratio"] for row in rows if row["sweep"] == "rows" and row["measure"] == "cfd"} == {1.0}
    assert {row["rows"] for row in rows if row["measure"] == "cfd" and row["sweep"] == "rows"} == {100, 316, 1000}
    text = (folder / "runtime.md").read_text(encoding="utf-8")
    assert "| CFD | 1 | 1 |" in text
    assert "seconds" not in text
    assert all(measure.title in text for measure in runtime.MEASURES.values())


def table_of(times):
    rows = [{"sweep": "rows", "measure": "mmd", "rows": n, "dim": 2, "seconds": t, "ratio": 1.0} for n, t in times]
    return pa.Table.from_pylist(rows)


def test_exponents_leave_out_fixed_cost():
    sizes = runtime.sizes(10**6)
    assert sizes[:4] == [100, 316, 1000, 3162]
    assert sizes[-1] == 10**6
    fitted = runtime.fit_exponents(table_of([(n, 1e-3 + 1e-9 * n**2) for n in sizes]))
    assert fitted["mmd"] == pytest.approx(2, abs=0.05)
    few = [(n, 1e-3 + 1e-9 * n**2) for n in (500, 2000, 8000, 32_000)]
    assert runtime.fit_exponents(table_of(few))["mmd"] == pytest.approx(1.85, abs=0.1)
    assert runtime.fit_exponents(table_of([(100, 1.0), (1000, 10.0)])) == {}


def test_exponents_begin_where_another_route_takes_over():
    slow = [(n, 1e-6 * n) for n in (100, 1000, 10_000)]
    fast = [(n, 1e-8 * n) for n in (20_000, 40_000, 80_000)]
    assert runtime.fit_exponents(table_of(slow + fast))["mmd"] == pytest.approx(1)


def test_measures_stop_before_the_cap():
    assert runtime.is_feasible("mmd", {100: 0.01, 316: 0.1}, 1000, cap=1.1)
    assert not runtime.is_feasible("mmd", {100: 0.01, 316: 0.1}, 1000, cap=0.9)
    assert runtime.is_feasible("mmd", {}, 10**6, cap=1e-9)
    assert not runtime.is_feasible("wasserstein", {}, 10**5, cap=math.inf)


def test_one_point_that_took_too_long_does_not_end_a_measure():
    assert runtime.is_feasible("mmd", {100: 0.01, 316: 1.0}, 1000, cap=15)
    assert not runtime.is_feasible("mmd", {100: 0.01, 316: 1.0}, 1000, cap=9)
    assert runtime.is_feasible("mmd", {100: 0.1, 316: 0.01}, 1000, cap=0.05)


class Clock:
    """A clock that only calls move on."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def spend(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(timing, "perf_counter", found)
    return found


def test_slow_calls_are_timed_twice(clock):
    times = iter([0.05, 0.001])
    assert runtime._time_measures({"slow": lambda: clock.spend(next(times))}, 0.01) == {"slow": pytest.approx(0.001)}


def test_features_are_varied_for_what_stays_within_the_cap():
    known = {"sweep": "rows", "rows": runtime.MODERATE, "dim": 768}
    points = [known | {"measure": "hausdorff", "seconds": 1e-4}, known | {"measure": "mmd", "seconds": 1.0}]
    found = list(runtime._others_over_features(points, 0.1, 0, lambda _: None))
    assert [(row["measure"], row["dim"]) for row in found] == [("hausdorff", width) for width in runtime.WIDTHS]
    table = pa.Table.from_pylist([known | {"measure": "hausdorff", "seconds": 1e-4, "ratio": 1.0}, *found])
    power = runtime.fit_exponents(table, "dim")["hausdorff"]
    assert f"| – | {power:.2f} | O(n²·d) |" in growth.render_markdown(table)
    assert "others at 1,000 rows" in growth.render_markdown(table)


def test_runtime_refuses_what_makes_no_sense(tmp_path, refuses):
    wrong: dict[str, Any] = {"largest": 10, "dim": 0, "cap": 0.0, "seed": -1}
    for name, value in wrong.items():
        with refuses(f"{name}={value}"):
            runtime.run(tmp_path, **{name: value})
    with refuses("seed=-1"):
        decomposition.run(tmp_path, seed=-1)


def test_calls_take_turns_and_slow_ones_sit_out(clock):
    calls: list[str] = []

    def call(name: str, seconds: float) -> None:
        calls.append(name)
        clock.spend(seconds)

    found = timing.best_of({"slow": partial(call, "slow", 0.02), "fast": partial(call, "fast", 0.002)}, 0.005)
    assert calls[:3] == ["slow", "fast", "fast"]
    assert calls.count("slow") == 1
    assert calls.count("fast") > 1
    assert found == {"slow": pytest.approx(0.02), "fast": pytest.approx(0.002)}


def test_the_whole_paper_with_one_command(tmp_path):
    """As a user runs it, with the small settings."""
    done = run_module("paper", "claims", "--quick", "--json", cwd=tmp_path)
    assert done.stderr == ""
    folder = tmp_path / "reproduction-quick"
    assert json.loads(done.stdout)["claims"] == json.loads((folder / "claims.json").read_text())["claims"]
    for name in (
        "synthetic/trials.parquet",
        "synthetic/tables.html",
        "runtime/runtime.svg",
        "decomposition/decomposition.png",
    ):
        assert (folder / name).stat().st_size > 1000
    pictures = {path.stem for path in (folder / "synthetic" / "figures").glob("*.png")}
    assert pictures == {f"{kind}-d32-n{size}" for kind in ("relative", "values", "beyond") for size in (100, 200)}
