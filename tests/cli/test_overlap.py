"""What --given leaves to compare: overlap is shown, few rows are a caution, and a confounded design has no distance."""

import json

import numpy as np
import pytest

import crossfusion as cf
from tests.helpers.command_line import run

COMMANDS = {
    "matrix": ["matrix", "{file}", "--between", "site", "--given", "label"],
    "attribution": ["attribution", "{file}", "--between", "site", "--given", "label"],
    "hierarchy": ["hierarchy", "{file}", "--factors", "label,site"],
    "corrections": ["corrections", "a={file}", "b={file}", "--between", "site", "--given", "label"],
}


def write_summary(path, shared):
    """Two sites with a label each, but for some rows of the first site that have the other's label."""
    rng = np.random.default_rng(1)
    site = np.repeat(["A", "B"], 100)
    label = np.where((site == "A") & (np.arange(200) >= shared), "t", "u")
    patient = np.arange(200) // 10
    summary = cf.summarize(rng.normal(size=(200, 4)), by={"site": site, "label": label, "patient": patient})
    summary.rollup(["site", "label"]).write(path)
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_a_confounded_design_shows_dashes_and_no_overlap(name, tmp_path):
    file = write_summary(tmp_path / "s.parquet", 0)
    said = run(*(word.format(file=file) for word in COMMANDS[name])).stdout
    assert "–" in said
    assert "overlap" in said
    assert "0%" in said.split("overlap")[1]


@pytest.mark.parametrize("name", COMMANDS)
def test_overlap_is_shown_where_rows_are_adjusted(name, tmp_path):
    file = write_summary(tmp_path / "s.parquet", 20)
    said = run(*(word.format(file=file) for word in COMMANDS[name])).stdout
    assert "60.0%" in said.split("overlap")[1]


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "hierarchy"])
def test_few_rows_are_a_caution(name, tmp_path):
    file = write_summary(tmp_path / "s.parquet", 3)
    said = run(*(word.format(file=file) for word in COMMANDS[name])).stdout
    assert "rests on few rows: only 3 of 100 rows of A" in said


def test_levels_of_a_hierarchy_know_their_overlap():
    by = {"label": ["t", "t", "u", "u", "u", "v", "v"], "site": ["A", "A", "A", "B", "B", "B", "B"]}
    found = cf.summarize(np.arange(7.0)[:, None], by=by).hierarchy(["label", "site"])
    assert [level.overlap for level in found.levels] == [1.0, pytest.approx(3 / 7)]
    assert "site 42.9%" in repr(found)
    assert list(found.to_frame()["overlap"]) == [1.0, pytest.approx(3 / 7)]


def test_a_window_with_new_labels_only_is_named_and_fails_the_command(tmp_path):
    rng = np.random.default_rng(2)
    week = np.repeat(np.arange(1, 11), 40)
    label = np.where(week < 10, np.tile(["cat", "dog"], 200), "fish")
    summary = cf.summarize(rng.normal(size=(400, 4)) + 100 * (week == 10)[:, None], by={"week": week, "label": label})
    summary.write(tmp_path / "s.parquet")
    command = [
        "drift",
        tmp_path / "s.parquet",
        "--time",
        "week",
        "--reference",
        "first:8",
        "--given",
        "label",
        "--latest",
    ]
    done = run(*command, code=2)
    assert "cannot be compared, for lack of common strata: 10" in done.stdout
    last = next(line for line in done.stdout.splitlines() if line.startswith("10 "))
    assert last.split()[2:] == ["–", "–", "–", "0%", "–", "incomparable"]
    run(*command, "--incomparable", "alarm", code=1)
    found = json.loads(run(*command, "--incomparable", "ignore", "--json").stdout)
    assert (found["incomparable"], found["distance"][-1], found["overlap"]) == ([False, True], None, [1.0, 0.0])
    assert "--incomparable" in run("drift", "--help").stdout
