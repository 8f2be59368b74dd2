"""The coverage study: what is drawn, what is kept, what is promised, and what would be noticed."""

import json
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import crossfusion as cf
from benchmarks import coverage
from benchmarks.coverage import measure, plan
from benchmarks.coverage.noise import FAMILIES
from benchmarks.coverage.plan import Task
from benchmarks.coverage.populations import Patients, Population
from benchmarks.coverage.promises import band, judge
from tests.helpers import PATIENCE
from tests.helpers.module_commands import ENVIRONMENT, module_command

DRAWS = 20
STRATA = ((300, 100), (150, 250), (200, 200))
POPULATIONS = {
    "plain": Population(((400,), (200,)), 4),
    "balanced": Population(((400,), (200,), (300,)), 4, spreads=(1.0, 2.0, 1.5), weights="balanced"),
    "given": Population(STRATA, 4, spreads=(1.0, 2.0, 1.5)),
    "given, balanced": Population(STRATA, 4, weights="balanced", along="one"),
    "nested": Population(((400,), (200,)), 4, patients=Patients((20, 10))),
    "paired": Population(((400,), (200,)), 4, patients=Patients(paired=True, shared=0.5, uneven=True)),
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A finished quick study of few draws."""
    out = tmp_path_factory.mktemp("study")
    reported: list[int] = []
    return out, coverage.run(out, quick=True, draws=DRAWS, workers=2, progress=reported.append), reported


def command(*arguments, cwd):
    words = module_command("benchmarks", "coverage", *arguments)
    return subprocess.run(
        words, capture_output=True, text=True, check=False, cwd=cwd, timeout=PATIENCE, env=ENVIRONMENT
    )


# --- what is drawn ---


@pytest.mark.parametrize("family", FAMILIES)
def test_noise_has_the_covariance_it_claims(family):
    rows = FAMILIES[family].draw(np.random.default_rng(0), 200_000, 4)
    expected = FAMILIES[family].covariance(4)
    assert rows.dtype == np.float32
    assert np.trace(expected) == pytest.approx(4)
    np.testing.assert_allclose(np.cov(rows.T), expected, atol=0.05)
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=0.02)


@pytest.mark.parametrize("name", POPULATIONS)
def test_the_distance_of_a_population_is_that_of_its_exact_moments(name):
    """Rows that have the population's means and spreads exactly are at the distance that the formula says."""
    population = POPULATIONS[name]
    group, stratum, _ = population.labels()
    cell = np.repeat(np.arange(len(population.count)), population.count)
    sign = np.where(np.arange(len(cell)) % 2, 1.0, -1.0)[:, None]  # of variance 1 around 0 in each cell
    rows = sign * population.spread[cell][:, None] + 2.0 * stratum[:, None] + np.zeros(population.dim)
    moved = population.pull_apart(rows.astype(np.float32), 1.5)
    given = stratum if population.strata > 1 else None
    found = cf.cfd(moved, labels=group, given=given, weights=population.weights)
    assert population.distance(1.5) == pytest.approx(found.distance, rel=1e-5)
    assert population.distance(population.shift(0.3)) == pytest.approx(0.3)
    assert population.distance(0.0) == 0


@pytest.mark.parametrize("name", POPULATIONS)
def test_errors_of_means_are_as_large_as_the_steps_assume(name):
    population = POPULATIONS[name]
    cell = np.repeat(np.arange(len(population.count)), population.count)
    draw, means = np.random.default_rng(0), []
    for _ in range(300):
        rows = population.noise(draw)
        means.append([rows[cell == c].mean(axis=0) - 2 * s for c, s in enumerate(population.stratum)])
    found = np.einsum("icd,ied->ce", means, means) / (300 * population.dim)
    expected = population.covariance()
    np.testing.assert_allclose(found, expected, atol=0.15 * expected.max())
    assert population.steps(0) == 0 < population.steps(1) < population.steps(3)


def test_patients_have_the_rows_and_groups_they_should():
    nested = replace(POPULATIONS["nested"], patients=Patients((20, 10), uneven=True))
    group, _, unit = nested.labels()
    assert [len(np.unique(unit[group == g])) for g in (0, 1)] == [20, 10]
    assert not set(unit[group == 0]) & set(unit[group == 1])
    rows = np.bincount(unit[group == 0])
    assert 3 < rows.max() / rows.min() < 5
    group, _, unit = POPULATIONS["paired"].labels()
    assert set(unit[group == 0]) == set(unit[group == 1]) == set(range(20))


def test_the_plan_spans_what_is_promised():
    tasks = [task for task in plan.full() if task.section == "rows"]
    populations = [task.population for task in tasks]
    assert {population.dim for population in populations} == {8, 128, 1024}
    assert {50, 300, 1000} <= {population.sizes[0][0] for population in populations}
    assert {population.family for population in populations} == set(FAMILIES) - {"elliptical t5"}
    assert {len(population.sizes) for population in populations} == {2, 5}
    assert {population.weights for population in populations} == {"pooled", "balanced"}
    assert max(population.strata for population in populations) == 3
    assert all(task.distances[0] == 0 and task.distances[-1] == 0.7 for task in tasks)
    seen = [task for task in plan.full() if task.lens]
    assert {(task.lens, task.fitted) for task in seen} >= {
        (lens, way) for lens in ("standardize", "kernel") for way in ("same", "others")
    }
    assert {task.section for task in seen} == {"lenses", "level"}
    every = plan.full()
    assert len({task.name(2000) for task in every}) == len(every) == len(set(every))
    assert coverage.count_points() == sum(len(task.distances) for task in every)
    units = [task.population.patients for task in every if task.section == "units"]
    assert {(patients.icc, patients.paired) for patients in units if patients is not None} == {
        (icc, paired) for icc in (0.1, 0.5) for paired in (False, True)
    }


# --- what is promised ---


@pytest.mark.parametrize("draws", [20, 200, 2000, 10_000])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.93])
def test_the_band_is_that_of_the_binomial_distribution(draws, share):
    low, high = stats.binom.interval(0.999, draws, share)
    assert band(draws, share) == (low / draws, high / draws)


def test_shares_are_judged_as_they_are():
    def holds(section, share, ratio=0.0, draws=2000):
        found = judge(section, {"coverage": share, "rejected": share, "ratio": ratio, "draws": draws})
        return found.get("holds")

    assert holds("rows", 0.93)
    assert holds("rows", 1.0)
    assert holds("rows", 0.97, ratio=10)
    assert not holds("rows", 0.80)
    assert not holds("rows", 1859 / 2000)
    assert not holds("rows", 0.975, ratio=10)
    assert holds("units", 0.90)
    assert not holds("units", 0.89)
    assert holds("level", 0.05)
    assert not holds("level", 0.07)
    assert not holds("level", 0.03)
    assert holds("beyond", 0.5) is None
    assert holds("rows", 0.90, draws=200), "chance may have done it"
    assert not holds("rows", 0.80, draws=200), "chance cannot have done it"


def test_a_broken_interval_is_noticed(monkeypatch):
    """An interval of half the width is told from the true one by few draws."""
    task = plan.intervals("rows", Population(((50,), (50,)), 4), (3.0,))
    true_cfd = cf.cfd

    def half(*arguments, **options):
        fusion = true_cfd(*arguments, **options)
        assert fusion.interval is not None
        low, high = fusion.interval
        return replace(fusion, interval=(low + (high - low) / 4, high - (high - low) / 4))

    assert all(judge("rows", point)["holds"] for point in measure.measure(task, 200))
    monkeypatch.setattr(cf, "cfd", half)
    assert not any(judge("rows", point)["holds"] for point in measure.measure(task, 200))


def test_a_broken_test_is_noticed():
    """Rows of patients exchanged one by one."""
    task = Task("level", Population(((100,), (100,)), 4, patients=Patients()), (0.0,), test="permutation")
    (wrong,) = measure.measure(task, 100)
    (right,) = measure.measure(replace(task, told="units"), 100)
    assert not judge("level", wrong)["holds"]
    assert judge("level", right)["holds"]


def test_points_say_what_was_measured():
    task = plan.intervals("units", Population(((60,), (60,)), 4, patients=Patients((6,))), (3.0,))
    near, far = measure.measure(task, 100)
    assert [near["column"], far["column"]] == ["3", "far"]
    assert near["coverage"] + near["below"] + near["above"] == pytest.approx(1)
    assert near["naive"] < near["coverage"]
    assert near["ratio"] == pytest.approx(3, rel=0.5)
    assert near["stderr_over_sd"] == pytest.approx(1, abs=0.4)
    assert 0 < near["width"] < far["width"]
    assert near["error"] == pytest.approx((near["coverage"] * (1 - near["coverage"]) / 100) ** 0.5)


# --- what is kept ---


def test_the_study_leaves_tables_and_figures(study):
    out, found, reported = study
    assert sum(reported) == coverage.count_points(quick=True)
    assert json.loads((out / "coverage.json").read_text(encoding="utf-8")) == json.loads(json.dumps(found))
    text = (out / "coverage.md").read_text(encoding="utf-8")
    for title in ("Independent rows", "Rows of 20 patients", "Tests of groups that are not apart"):
        assert f"## {title}" in text
    assert "| t₅ | 50 + 150 | 8 | spreads 1, 2 |" in text
    for name in ("coverage", "tests"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (out / f"{name}.svg").stat().st_size > 1000
    assert coverage.summary(found)[0][0] == "intervals, independent rows"


def test_a_second_run_reads_what_the_first_one_found(study):
    out, found, _ = study
    before = {path: path.read_bytes() for path in out.glob("*.*")}
    reported: list[int] = []
    assert coverage.run(out, quick=True, draws=DRAWS, workers=1, progress=reported.append) == found
    assert reported == [coverage.count_points(quick=True)]
    assert {path: path.read_bytes() for path in out.glob("*.*")} == before


def test_what_was_lost_is_computed_again_with_the_same_result(study):
    out, found, _ = study
    parts = sorted((out / "parts").glob("level-*.json"))
    parts[0].unlink()
    parts[1].write_text('{"points": ', encoding="utf-8")
    reported: list[int] = []
    assert coverage.run(out, quick=True, draws=DRAWS, workers=1, progress=reported.append) == found
    assert reported == [coverage.count_points(quick=True) - 2, 1, 1]


def test_the_command_prints_a_table_or_json(study):
    out, found, _ = study
    plain = command("--quick", "--draws", str(DRAWS), "--out", str(out), cwd=out)
    assert plain.returncode == 0, plain.stderr
    assert plain.stderr == ""
    assert "intervals, rows of patients" in plain.stdout
    assert f"  {out / 'coverage.md'}" in plain.stdout
    as_json = command("--quick", "--draws", str(DRAWS), "--out", str(out), "--json", cwd=out)
    assert json.loads(as_json.stdout) == json.loads(json.dumps(found))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--draws", "0"], "--draws 0 must be a whole number, 20 or more"),
        (["--draws", "many"], "'many' is not a valid integer"),
        (["--quick", "--workers", "0"], "--workers 0 must be a whole number, 1 or more"),
        (["--quick", "--out", "file"], "file/parts cannot be made"),
    ],
)
def test_bad_options_are_one_line(arguments, message, tmp_path):
    (tmp_path / "file").write_text("")
    done = command(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
