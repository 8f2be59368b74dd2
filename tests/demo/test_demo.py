"""The demo: what it measures is what is true, and what it leaves behind can be used."""

import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import crossfusion as cf
from crossfusion._base import number_text
from crossfusion.demo import make_population, measure_answers
from crossfusion.demo.population import EFFECT_SIZES, FACTORS

SEEDS = range(12)
ROWS = 8000
TOLERANCE = 4.5  # standard errors of a mean over SEEDS; beyond that for one in a thousand if unbiased
COMMAND = Path(sys.executable).with_name("crossfusion")


def summary_of(table):
    return cf.summarize(table, by=FACTORS)


@pytest.fixture(scope="module")
def runs():
    """Answers for each seed: population and rows are both new."""
    found = []
    for seed in SEEDS:
        table, truth = make_population(seed, rows=ROWS)
        found.append(measure_answers(summary_of(table), truth))
    return found


def errors(runs, name):
    """Measured minus true, seeds × questions, and the questions."""
    values = np.array([[getattr(entry, name) - entry.truth for entry in run] for run in runs])
    return values, [entry.question for entry in runs[0]]


def test_the_same_seed_gives_the_same_data():
    first, again, other = (make_population(seed, rows=1000) for seed in (3, 3, 4))
    assert first[0].equals(again[0])
    assert first[1].population.moments == again[1].population.moments
    assert not first[0].equals(other[0])


def test_unbiased_distances_are_true_on_average(runs):
    error, questions = errors(runs, "unbiased")
    standard_error = error.std(axis=0, ddof=1) / np.sqrt(len(runs))
    off = np.abs(error.mean(axis=0)) / standard_error
    assert {text: z for text, z in zip(questions, off, strict=True) if z > TOLERANCE} == {}


def test_every_unbiased_distance_is_near_the_true_one(runs):
    error, questions = errors(runs, "unbiased")
    truth = np.array([[entry.truth for entry in run] for run in runs])
    worst = np.max(np.abs(error) / truth, axis=0)
    assert {text: w for text, w in zip(questions, worst, strict=True) if w > 0.15} == {}


def test_the_plug_in_is_biased_where_groups_are_small(runs):
    error, questions = errors(runs, "distance")
    standard_error = error.std(axis=0, ddof=1) / np.sqrt(len(runs))
    bias = dict(zip(questions, error.mean(axis=0) / standard_error, strict=True))
    for question in ("CFD(site | label)", "CFD(scanner | site, label)", "hierarchy, level patient"):
        assert bias[question] > TOLERANCE


def test_distances_that_count_patients_are_those_of_sites_without_what_patients_add(monkeypatch):
    table, truth = make_population(0, rows=ROWS)
    low, high = summary_of(table).cfd("site", given="label", units="patient", level=0.95).interval
    these = truth.population.cfd("site", given="label")
    monkeypatch.setitem(EFFECT_SIZES, "patient", 0.0)
    sites = make_population(0, rows=1)[1].population.cfd("site", given="label").between
    assert low < -np.log1p(-sites / these.total) < high < these.distance


@pytest.mark.parametrize("seed", range(5))
def test_unadjusted_misleads_and_adjusted_does_not(seed):
    population = make_population(seed, rows=1)[1].population
    assert population.cfd("site").distance > 4 * population.cfd("site", given="label").distance
    plain, given = (population.pairwise("site", given=given).to_frame() for given in (None, "label"))
    assert set(plain.loc[plain["distance"].idxmax(), ["group_a", "group_b"]]) == {"Aarhus", "Bonn"}
    cork = (given["group_a"] == "Cork") | (given["group_b"] == "Cork")
    assert given["distance"][cork].min() > 2 * given["distance"][~cork].max()


def test_the_truth_is_what_the_formula_says():
    """CFD(site | label) of the population, written out without the library."""
    population = make_population(0, rows=1)[1].population
    share, mean = population.moments.count, population.moments.mean
    variance = population.moments.sumsq / share[:, None]
    site, label = (np.array(population.keys.column(name).to_pylist()) for name in ("site", "label"))

    def scatter(members):
        weight = share[members] / share[members].sum()
        centre = weight @ mean[members]
        return share[members].sum() * (weight @ (variance[members] + (mean[members] - centre) ** 2).sum(axis=1))

    fine = sum(scatter((site == s) & (label == t)) for s in set(site) for t in set(label))
    coarse = sum(scatter(label == t) for t in set(label))
    expected = np.log(coarse / fine)
    assert population.cfd("site", given="label").distance == pytest.approx(expected, rel=1e-10)


def test_rows_have_the_moments_of_the_population():
    table, truth = make_population(1, rows=20_000)
    measured, true = (summary.rollup(["label"]).moments for summary in (summary_of(table), truth.population))
    error = np.sqrt(np.sum((measured.mean - true.mean) ** 2, axis=1))
    assert np.all(error < 2 * np.sqrt(true.dispersion / measured.count))
    assert measured.dispersion == pytest.approx(true.dispersion, rel=0.1)
    assert table.column("embedding").type.list_size == 256
    assert str(table.column("embedding").type.value_type) == "float"


def test_scanners_change_the_features_they_were_made_to_change():
    table, truth = make_population(0, rows=ROWS)
    found = summary_of(table).attribution("scanner", given=["site", "label"])
    hit = set(found.top(len(truth.scanner_features))) & set(truth.scanner_features)
    assert len(hit) >= len(truth.scanner_features) - 1


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The demo as a user runs it."""
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    done = subprocess.run(
        [COMMAND, "demo", "--out", folder, "--rows", "4000"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder, done


def test_the_demo_leaves_files_that_can_be_read(finished):
    folder, _ = finished
    table = pq.read_table(folder / "embeddings.parquet")
    assert table.column_names == ["embedding", *FACTORS]
    assert table.num_rows == 4000
    summary = cf.read_summary(folder / "summary.parquet")
    assert summary.factors == FACTORS
    assert summary.moments.count.sum() == 4000
    pair = [np.load(folder / f"{scanner}.npy") for scanner in ("Lumen", "Opal")]
    expected = summary.select(site="Delft", label="stroma", scanner=["Lumen", "Opal"]).cfd("scanner")
    assert cf.cfd(*pair).distance == pytest.approx(expected.distance, rel=1e-5)
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert sorted(path.name for path in folder.iterdir()) == [
        "Lumen.npy",
        "Opal.npy",
        "embeddings.parquet",
        "report.html",
        "summary.parquet",
    ]


def test_the_demo_shows_every_measured_value_beside_the_true_one(finished):
    folder, done = finished
    _, truth = make_population(0, rows=4000)
    for entry in measure_answers(cf.read_summary(folder / "summary.parquet"), truth):
        line = next(line for line in done.stdout.splitlines() if line.startswith(f"{entry.question}  "))
        assert line.split()[-1] == number_text(entry.truth)
        assert line.split()[-3] == number_text(entry.distance)
    warned = done.stderr.splitlines()  # few rows, and so groups that a summary discloses
    assert all("summary.parquet shows groups of fewer than 5 rows" in line for line in warned)
    assert len(done.stdout.splitlines()) < 110


def test_every_command_that_the_demo_shows_can_be_typed(finished):
    _, done = finished
    shown = [line[2:] for line in done.stdout.splitlines() if line.startswith("$ ")]
    assert [shlex.split(line)[1] for line in shown] == [
        "summarize",
        "matrix",
        "matrix",
        "hierarchy",
        "attribution",
        "compare",
        "report",
    ]
    for line in shown:
        again = subprocess.run([COMMAND, *shlex.split(line)[1:]], capture_output=True, text=True, check=True)
        assert again.stdout in done.stdout


@pytest.mark.parametrize("options", [["--rows", "10"], ["--seed", "-1"], ["--out", "/dev/null/demo"]])
def test_bad_options_are_refused_in_one_line(options, tmp_path):
    done = subprocess.run(
        [COMMAND, "demo", "--out", tmp_path / "demo", *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "demo").exists()
