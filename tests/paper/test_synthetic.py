"""The synthetic study: what is drawn, what is kept, what is concluded."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import crossfusion as cf
from paper import synthetic
from paper.synthetic import Settings
from paper.synthetic.measures import NAMES
from paper.synthetic.populations import draw_pairs, symmetric_means
from paper.synthetic.tasks import schema
from tests.helpers import PATIENCE, ROOT

TINY = Settings(
    dims=(18,),
    sizes=(12, 24),
    trials=6,  # more than are in one part
    exact_up_to=12,
    deltas=(0.5, 2.0),
    sigmas=(0.5, 2.0),
    scales=(1.0, 4.0),
    modes=(1, 2),
    outlier_percents=(0.0, 25.0),
    ratios=(1.0, 0.5),
    contrasts=(0.0, 0.5),
)
FEW = replace(TINY, experiments=("displacement", "topology"))


def levels_of(settings, experiment, dim=200, size=400, trial=0, variant=""):
    return dict(draw_pairs(settings, experiment, dim, size, trial, variant=variant))


def dispersion(rows):
    return float(np.sum(np.var(rows, axis=0)))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run of everything, with two workers."""
    out = tmp_path_factory.mktemp("whole")
    return out, synthetic.run(out, TINY, workers=2)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """Two experiments by themselves, with one worker."""
    out = tmp_path_factory.mktemp("fresh")
    return out, synthetic.run(out, FEW, workers=1)


# --- what is drawn ---


def test_displacement_moves_the_same_rows_along_the_first_feature():
    drawn = levels_of(Settings(), "displacement")
    assert list(drawn) == [0.25, 0.5, 1, 2, 3, 4]
    first_a, first_b = drawn[0.25]
    for delta, (a, b) in drawn.items():
        np.testing.assert_array_equal(a, first_a)
        np.testing.assert_allclose(b - first_b, np.eye(200)[0] * (delta - 0.25) + np.zeros_like(b), atol=1e-12)
    assert first_a.shape == first_b.shape == (400, 200)


def test_the_mixture_has_its_components_and_spread():
    settings = Settings(experiments=("displacement",), spread=5.0, sigma=0.01)
    a, b = levels_of(settings, "displacement")[0.25]
    b = b - 0.25 * np.eye(200)[0]
    clusters = {tuple(row) for row in np.round(np.concatenate([a, b])[:, :3] / 0.2)}
    assert 4 <= len(clusters) <= 12  # four, but for rows beside an edge of the grid
    distances = [np.linalg.norm(a - row, axis=1) for row in a[:5]]
    near = [np.mean(each < 1) for each in distances]
    assert all(0.15 < share < 0.35 for share in near)
    far = np.concatenate([each[each > 1] for each in distances])
    assert far.mean() == pytest.approx(5 * np.sqrt(2 * 200), rel=0.15)


def test_dispersion_changes_the_spread_and_not_the_offset():
    settings = Settings(spread=0.0)
    for sigma, (a, b) in levels_of(settings, "dispersion").items():
        assert dispersion(a) == pytest.approx(200 * sigma**2, rel=0.03)
        assert dispersion(b) == pytest.approx(200 * sigma**2, rel=0.03)
        assert (b.mean(axis=0) - a.mean(axis=0))[0] == pytest.approx(10, abs=0.3 * sigma)


def test_scaling_is_exact():
    drawn = levels_of(Settings(), "scaling")
    for scale, (a, b) in drawn.items():
        np.testing.assert_array_equal(a, scale * drawn[1.0][0])
        np.testing.assert_array_equal(b, scale * drawn[1.0][1])


@pytest.mark.parametrize("variant", ["sigma", "dispersion"])
def test_topology_keeps_what_it_says(variant):
    for modes, (a, b) in levels_of(Settings(), "topology", size=4000, variant=variant).items():
        extra = 16 if variant == "sigma" and modes > 1 else 0
        assert dispersion(a) == pytest.approx(200, rel=0.01)
        assert dispersion(b) == pytest.approx(200 + extra, rel=0.01)
        assert np.linalg.norm(b.mean(axis=0)) < 0.35  # noise alone: the root of 200 / 4000 is 0.22
        sides = np.abs(b[:, : max(int(modes) // 2, 1)]).max(axis=1)
        assert (np.mean(sides > 2) > 0.9) == (modes > 1)


@pytest.mark.parametrize("modes", [1, 2, 4, 8])
def test_means_are_symmetric(modes):
    means = symmetric_means(modes, 3.0, 10)
    assert len(np.unique(means, axis=0)) == modes
    np.testing.assert_array_equal(means.sum(axis=0), 0)
    np.testing.assert_array_equal(np.linalg.norm(means, axis=1), 0 if modes == 1 else 3)


def test_outliers_are_counted_nested_and_wide():
    drawn = levels_of(Settings(), "outliers", size=300)
    for side in (0, 1):
        clean = drawn[0.0][side]
        replaced = [np.flatnonzero((pair[side] != clean).any(axis=1)) for pair in drawn.values()]
        assert [len(rows) for rows in replaced] == [0, 3, 6, 15]
        assert all(set(few) <= set(more) for few, more in pairwise(replaced))
        assert np.std(drawn[5.0][side][replaced[-1]]) == pytest.approx(5, rel=0.05)
    assert set(np.flatnonzero((drawn[5.0][0] != drawn[0.0][0]).any(axis=1))) != set(
        np.flatnonzero((drawn[5.0][1] != drawn[0.0][1]).any(axis=1))
    )


def test_imbalance_takes_rows_away_from_the_second_group():
    drawn = levels_of(Settings(), "imbalance", size=300)
    assert [len(b) for _, b in drawn.values()] == [300, 150, 75, 30, 6]
    for a, b in drawn.values():
        np.testing.assert_array_equal(a, drawn[1.0][0])
        np.testing.assert_array_equal(b, drawn[1.0][1][: len(b)])


def test_covariance_differs_at_equal_mean_and_trace():
    for contrast, (a, b) in levels_of(Settings(), "covariance", size=4000).items():
        variances = b.var(axis=0)
        assert variances[:100].mean() == pytest.approx(1 + contrast, rel=0.02)
        assert variances[100:].mean() == pytest.approx(1 - contrast, rel=0.02)
        assert a.var(axis=0).mean() == pytest.approx(1, rel=0.02)
        assert np.linalg.norm(b.mean(axis=0) - a.mean(axis=0)) < 0.5


def test_draws_depend_on_trial_experiment_dim_and_size_alone():
    def first(settings, experiment="displacement", **place):
        return next(iter(levels_of(settings, experiment, **place).values()))[0].ravel()[:10]

    base = first(Settings())
    np.testing.assert_array_equal(base, first(replace(Settings(), deltas=(7.0,), trials=1, experiments=("scaling",))))
    others = [first(Settings(), **place) for place in ({"trial": 1}, {"dim": 201}, {"size": 401})]
    others.append(first(Settings(), "imbalance"))
    assert all(not np.isclose(base, other).any() for other in others)


# --- what is run and kept ---


def test_a_row_a_trial_and_level_with_the_seed_schedule(whole):
    out, table = whole
    assert table.num_rows == synthetic.count_pairs(TINY) == 2 * 6 * 2 * (len(synthetic.EXPERIMENTS) + 1)
    rows = table.to_pylist()
    assert {row["trial"] for row in rows} == set(range(6))
    assert all(row["seed"] == 42 + row["trial"] for row in rows)
    assert synthetic.read(out).equals(table)
    assert json.loads((out / "settings.json").read_text())["radius"] == 4.0
    assert synthetic.read_settings(out) == TINY


def test_settings_are_those_of_the_trials_whatever_was_begun_since(fresh, tmp_path):
    out, _ = fresh
    shutil.copytree(out, tmp_path, dirs_exist_ok=True)

    def progress(k):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        synthetic.run(tmp_path, replace(FEW, trials=7), workers=1, progress=progress)
    assert synthetic.read_settings(tmp_path) == FEW
    assert json.loads((tmp_path / "settings.json").read_text())["trials"] == FEW.trials


def test_trials_without_settings_are_refused(fresh, tmp_path, refuses):
    table = fresh[1]
    for metadata in (
        None,
        {"crossfusion.settings": "{}"},
        {"crossfusion.settings": "[1]"},
        {"crossfusion.settings": "x"},
    ):
        pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "trials.parquet")
        with refuses("run the study again, which only puts it together", cf.FileError):
            synthetic.read_settings(tmp_path)


def test_measures_are_those_of_the_library(whole):
    for row in whole[1].to_pylist()[::17]:
        place = (row["experiment"], row["dim"], row["size"], row["trial"])
        a, b = dict(draw_pairs(TINY, *place, variant=row["variant"]))[row["level"]]
        assert row["cfd"] == pytest.approx(cf.cfd(a, b).distance, rel=1e-9)
        assert row["cfd_balanced_unbiased"] == pytest.approx(cf.cfd(a, b, weights="balanced").unbiased, rel=1e-9)
        assert row["cfd_trimmed"] == pytest.approx(cf.cfd(a, b, trim=0.05).distance, rel=1e-9)
        assert row["mmd"] == pytest.approx(cf.distance("mmd", a, b), rel=1e-6)
        route = "wasserstein" if row["size"] == 12 else "sinkhorn"
        options = {} if route == "wasserstein" else {"epsilon": 0.1, "tolerance": TINY.tolerance}
        assert row[route] == pytest.approx(cf.distance(route, a, b, **options), rel=1e-6)


def test_each_size_takes_its_route_and_only_covariance_is_classified(whole):
    for row in whole[1].to_pylist():
        assert (row["wasserstein"] is None) == (row["size"] > 12)
        assert (row["sinkhorn"] is None) == (row["size"] <= 12)
        assert (row["classifier"] is None) == (row["experiment"] != "covariance")


def test_results_depend_neither_on_workers_nor_on_what_else_is_asked_for(whole, fresh):
    table = whole[1]
    same = table.filter(pc.is_in(table.column("experiment"), pa.array(FEW.experiments)))
    assert same.equals(fresh[1])


def test_more_is_added_to_what_is_there(whole, fresh, tmp_path):
    out, first = fresh
    shutil.copytree(out, tmp_path, dirs_exist_ok=True)
    before = mtimes(tmp_path)
    seen: list[int] = []
    more = replace(FEW, experiments=(*FEW.experiments, "scaling"), trials=7)
    table = synthetic.run(tmp_path, more, workers=1, progress=seen.append)
    assert before.items() <= mtimes(tmp_path).items()
    assert seen[0] == synthetic.count_pairs(replace(FEW, trials=5))
    assert sum(seen) == synthetic.count_pairs(more) == table.num_rows
    again = table.filter(
        pc.and_(pc.less(table.column("trial"), 6), pc.not_equal(table.column("experiment"), "scaling"))
    )
    assert again.equals(first)


def mtimes(out):
    return {path.name: path.stat().st_mtime_ns for path in (out / "parts").glob("*.parquet")}


KILLED = """
import multiprocessing, os, signal, sys
from pathlib import Path
from paper import synthetic
from tests.paper.test_synthetic import FEW

done = 0
def progress(k):
    global done
    done += k
    if done:
        print(*(child.pid for child in multiprocessing.active_children()), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

synthetic.run(Path(sys.argv[1]), FEW, workers=2, progress=progress)
"""


def test_a_killed_run_is_resumed_and_leaves_no_workers(fresh, tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    root = ROOT
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, timeout=PATIENCE, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    before = mtimes(tmp_path)
    assert len(before) == 1
    workers = [int(pid) for pid in done.stdout.split()]
    assert len(workers) == 2
    deadline = time.monotonic() + PATIENCE
    while any(map(is_running, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    seen: list[int] = []
    assert synthetic.run(tmp_path, FEW, workers=2, progress=seen.append).equals(fresh[1])
    assert before.items() <= mtimes(tmp_path).items()
    assert seen[0] > 0


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_an_interrupt_stops_the_workers_and_goes_through(tmp_path):
    others = multiprocessing.active_children()

    def progress(k):
        if k:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        synthetic.run(tmp_path, FEW, workers=2, progress=progress)
    assert multiprocessing.active_children() == others
    assert len(mtimes(tmp_path)) == 1
    assert not (tmp_path / "trials.parquet").exists()


def test_the_environment_is_left_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    before = dict(os.environ)
    synthetic.run(tmp_path, replace(FEW, experiments=("scaling",), trials=1, sizes=(12,)), workers=1)
    assert dict(os.environ) == before


def test_other_settings_are_refused_in_the_same_folder(fresh, refuses):
    out, _ = fresh
    before = mtimes(out)
    with refuses(rf"{out} holds results of displacement .*spread 1.0 there, 2.0 here.*another folder"):
        synthetic.run(out, replace(FEW, spread=2.0), workers=1)
    with refuses("transport exact there, sinkhorn here"):
        synthetic.run(out, replace(FEW, exact_up_to=5), workers=1)
    assert mtimes(out) == before


def test_damaged_parts_are_computed_again(fresh, tmp_path):
    out, expected = fresh
    shutil.copytree(out, tmp_path, dirs_exist_ok=True)
    cut, flipped, foreign, *others = sorted((tmp_path / "parts").iterdir())
    cut.write_bytes(cut.read_bytes()[:1000])
    content = bytearray(flipped.read_bytes())
    content[200:260] = bytes(60)
    flipped.write_bytes(content)
    pq.write_table(pa.table({"x": [1]}), foreign)
    before = mtimes(tmp_path)
    seen: list[int] = []
    assert synthetic.run(tmp_path, FEW, workers=1, progress=seen.append).equals(expected)
    after = mtimes(tmp_path)
    assert {path.name for path in others} == {name for name, when in after.items() if when == before[name]}
    assert seen[0] < sum(seen) == synthetic.count_pairs(FEW)


def test_settings_that_cannot_be_drawn_are_refused(refuses):
    with refuses("dims=16 has no room for means at a radius of 4.0"):
        Settings(dims=(16, 32))
    with refuses("fewer than two rows at a ratio of 0.02"):
        Settings(sizes=(50,))
    with refuses("no experiment 'toplogy': did you mean 'topology'"):
        Settings(experiments=("toplogy",))
    with refuses("trials=0"):
        Settings(trials=0)
    with refuses(r"sizes=\(300, 300\) must name at least one value, and each once"):
        Settings(sizes=(300, 300))
    with refuses(r"modes=\(1, 3\) must each be 1 or an even number up to 8"):
        Settings(modes=(1, 3))
    assert Settings(dims=(8,), sizes=(50,), experiments=("scaling",)).dims == (8,)


def test_reading_nothing_says_what_to_do(tmp_path, refuses):
    with refuses("does not exist: run 'python -m paper synthetic'", cf.FileError):
        synthetic.read(tmp_path)


# --- what is concluded ---


def small_table(grid, **measures):
    """Trials of a made-up experiment: for each measure a list of values a level."""
    keys = {"experiment": "displacement", "variant": "", "dim": 2, "size": 3}
    rows = [
        keys
        | {"level": level, "trial": trial, "seed": 42 + trial}
        | {name: values[k][trial] for name, values in measures.items()}
        for trial in range(2)
        for k, level in enumerate(grid)
    ]
    return pa.Table.from_pylist(rows, schema())


def test_sensitivity_and_ratios_by_hand():
    table = small_table([0.5, 1.0, 2.0], cfd=[[1.9, 2.1], [4.0, 4.0], [4.5, 5.5]])
    found = synthetic.levels(table).to_pydict()
    assert found["measure"] == ["cfd"] * 3
    assert found["mean"] == pytest.approx([2, 4, 5])
    assert found["stderr"] == pytest.approx([0.1, 0, 0.5])
    assert found["sd"] == pytest.approx([0.02**0.5, 0, 0.5**0.5])
    assert found["relative"] == pytest.approx([1, 2, 2.5])
    assert found["relative_stderr"] == pytest.approx([0, 0.1, 0.125])  # 4 - 2 y, and y_3 - 2.5 y_1 = ± 0.25
    assert found["sensitivity"][0] is None
    assert found["sensitivity"][1:] == pytest.approx([1, 0.25])
    assert found["sensitivity_overall"][1:] == pytest.approx([1, 0.5])


def test_nothing_is_divided_by_what_may_be_zero():
    table = small_table([0.0, 1.0], cfd=[[1.0, 1.1], [2.0, 2.0]], cfd_unbiased=[[-0.1, 0.2], [2.0, 2.1]])
    found = {(row["measure"], row["level"]): row for row in synthetic.levels(table).to_pylist()}
    assert found["cfd", 1.0]["relative"] == pytest.approx(2 / 1.05)
    assert found["cfd", 1.0]["sensitivity"] is None
    assert found["cfd_unbiased", 1.0]["relative"] is None
    assert found["cfd_unbiased", 1.0]["mean"] == pytest.approx(2.05)


def test_scaling_leaves_cfd_and_multiplies_wasserstein(whole):
    rows = synthetic.levels(whole[1]).to_pylist()
    at = {(row["measure"], row["size"]): row for row in rows if row["experiment"] == "scaling" and row["level"] == 4}
    assert at["cfd", 12]["relative"] == pytest.approx(1)
    assert at["wasserstein", 12]["relative"] == pytest.approx(4)
    assert at["wasserstein", 12]["sensitivity_overall"] == pytest.approx(1)


def test_tables_are_written(whole):
    out, _ = whole
    assert [path.name for path in synthetic.write_tables(out)] == ["levels.parquet", "tables.md", "tables.html"]
    assert pq.read_table(out / "levels.parquet").equals(synthetic.levels(synthetic.read(out)))
    blocks = markdown_tables((out / "tables.md").read_text(encoding="utf-8"))
    assert len(blocks) == 2 * 2 + 3 * 2 * 8  # overview, then value, ratio and sensitivity of each reading
    assert all(len({len(row) for row in block}) == 1 for block in blocks)
    overview = {row[0]: dict(zip(blocks[0][0], row, strict=True)) for row in blocks[0]}
    assert overview["CFD"]["scaling"] == "1"
    assert overview["Wasserstein"]["scaling"] == "4"
    page = (out / "tables.html").read_text(encoding="utf-8")
    assert page.count("<table") == len(blocks)
    assert "http" not in page.replace("http-equiv", "")


def markdown_tables(text):
    """Tables of a Markdown text as lists of rows of cells, without their rules."""
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    for block in blocks:
        assert set(block[1]) <= set("|-: ")
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in (block[0], *block[2:])] for block in blocks
    ]


def test_figures_are_written(whole, tmp_path):
    table = whole[1]
    pq.write_table(table.filter(pc.equal(table.column("size"), 24)), tmp_path / "trials.parquet")
    paths = synthetic.write_figures(tmp_path)
    names = {f"{kind}-d18-n24" for kind in ("relative", "values", "beyond")}
    assert {path.name for path in paths} == {f"{name}.{ending}" for name in names for ending in ("png", "svg")}
    for path in paths:
        if path.suffix == ".svg":
            assert ET.parse(path).getroot().tag.endswith("svg")
        else:
            assert path.read_bytes().startswith(b"\x89PNG")


def test_a_figure_has_the_panels_that_there_are_results_for(tmp_path):
    found = small_table([0.5, 1.0], cfd=[[1.0, 1.1], [2.0, 2.2]], mmd=[[1.0, 1.1], [1.5, 1.4]])
    pq.write_table(found, tmp_path / "trials.parquet")
    paths = synthetic.write_figures(tmp_path)
    assert {path.stem for path in paths} == {"relative-d2-n3", "values-d2-n3"}
    before = {path: path.read_bytes() for path in paths}
    synthetic.write_figures(tmp_path)
    assert {path: path.read_bytes() for path in paths} == before  # the same results, the same bytes


def test_every_measure_has_a_name_and_a_style():
    from paper.synthetic.panels import STYLES

    assert list(NAMES) == list(STYLES)


def test_the_quick_study_takes_both_routes():
    quick = Settings.quick()
    assert min(quick.sizes) <= quick.exact_up_to < max(quick.sizes)
    assert quick.experiments == synthetic.EXPERIMENTS
    assert Settings.quick(trials=2).trials == 2
