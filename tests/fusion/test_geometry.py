"""A caution where a few features of large variance hide a difference in the others."""

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import crossfusion as cf
from tests.hunt.routes import run_command

DATA = Path(os.environ.get("CROSSFUSION_DATA", Path(__file__).parents[3] / "shared" / "data"))
REMEDY = ': pass scale="features"'


def dominated(rows=500, scale=60.0, shift=0.8, seed=0):
    """Two groups that differ in 16 of 64 features, of which the last varies most."""
    draw = np.random.default_rng(seed)
    x, labels = draw.normal(size=(2 * rows, 64)), np.repeat([0, 1], rows)
    x[labels == 1, :16] += shift
    return x * np.r_[np.ones(63), scale], labels


@pytest.mark.parametrize("rows", [100, 500])
def test_a_dominating_feature_is_named_with_the_remedy_in_every_answer(rows):
    x, labels = dominated(rows)
    unit = np.arange(len(x)) // 10
    summary = cf.summarize(x, by={"site": labels, "unit": unit})
    results: list[Any] = [
        cf.cfd(x, labels=labels),
        cf.cfd(x[labels == 0], x[labels == 1], level=0.9),
        cf.cfd(x, labels=labels, units=unit, level=0.9),
        summary.cfd("site", units="unit"),
        *summary.one_vs_rest("site").values(),
        summary.pairwise("site"),
        summary.pairwise("site", units="unit", level=0.9),
        cf.permutation_test(x, labels, permutations=99),
        cf.permutation_test(x, labels, units=unit, permutations=99),
        summary.test("site", units="unit", permutations=99),
    ]
    for result in results:
        assert result.caution.startswith("feature 63 holds 98% of the variance within groups (effective dimension 1.0)")
        assert result.caution.endswith(REMEDY)
        assert result.caution in repr(result)
        assert result.to_dict()["caution"] == result.caution


def test_commands_that_read_rows_name_the_feature(tmp_path):
    x, labels = dominated()
    frame = pd.DataFrame(x, columns=[f"f{k}" for k in range(64)]).assign(site=labels)
    for k, part in frame.groupby("site"):
        part.to_parquet(tmp_path / f"{k}.parquet")
    both, read = (tmp_path / "0.parquet", tmp_path / "1.parquet"), ("--vectors", "f*")
    for typed in (
        ("test", tmp_path, "--between", "site", "--permutations", 99),
        ("compare", *both),
        ("compare", *both, "--level", 0.9),
        ("compare", *both, "--permutations", 99),
    ):
        code, printed, _ = run_command(*typed, *read, "--json")
        assert code == 0
        assert json.loads(printed)["caution"].startswith("feature f63 holds")


def test_a_hierarchy_names_the_level_whose_difference_is_hidden():
    x, labels = dominated()
    by = {"site": labels, "scanner": np.arange(1000) % 2}
    found = cf.summarize(x, by=by).with_features([f"f{k}" for k in range(64)]).hierarchy(["scanner", "site"])
    assert found.caution.startswith("site: feature f63 holds 98% of the variance within groups")
    assert found.caution.endswith(REMEDY)
    assert f"caution: {found.caution}" in repr(found)
    assert found.to_dict()["caution"] == found.caution
    assert cf.summarize(x, by=by).hierarchy(["scanner"]).caution is None


def test_a_series_names_the_windows_whose_change_is_hidden():
    x, _ = dominated()
    week = np.r_[np.arange(500) % 5, np.full(500, 5)]
    names = [f"f{k}" for k in range(64)]
    summary = cf.summarize(x, by={"week": week, "unit": np.arange(1000) // 10}).with_features(names)
    for units in (None, "unit"):
        found = summary.drift("week", reference="first:4", units=units)
        assert not found.alarm.any()
        assert found.caution.startswith("5: feature f63 holds 98% of the variance within groups")
        assert found.caution.endswith(REMEDY)
        assert f"caution: {found.caution}" in repr(found)
    centered = x - np.array([x[week == k].mean(axis=0) for k in range(6)])[week]
    found = cf.summarize(centered, by={"week": week}).drift("week", reference="first:4")
    assert found.caution.startswith("4, 5: the group means agree far more closely than sampling error allows")
    assert cf.summarize(x[:500], by={"week": week[:500]}).drift("week", reference="first:4").caution is None


def test_the_remedy_removes_the_caution_and_shows_the_difference():
    x, labels = dominated()
    spread = np.sqrt(sum(x[labels == k].var(axis=0) for k in (0, 1)) / 2)
    before, after = cf.cfd(x, labels=labels), cf.cfd(x / spread, labels=labels)
    assert before.unbiased < 0.001 < 0.03 < after.unbiased
    assert after.caution is None
    told = re.search(r"\(CFD ([\d.]+) if all features count the same\)", before.caution)
    assert float(told[1]) == pytest.approx(after.unbiased, rel=0.02)


def test_several_features_are_named_the_largest_first():
    x, labels = dominated(scale=1.0)
    several = x * np.r_[np.ones(61), 30, 40, 50]
    assert cf.cfd(several, labels=labels).caution.startswith("3 of 64 features (63, 62, 61) hold 99%")
    more = x * np.r_[np.ones(56), 50 + np.arange(8.0) * 5]
    assert cf.cfd(more, labels=labels).caution.startswith("7 of 64 features (63, 62, 61, 60, 59 and 2 more) hold 9")


def test_several_cautions_are_one_text():
    x, labels = dominated(rows=2000)
    x[labels == 1, 63] *= 3
    caution = cf.cfd(x, labels=labels).caution
    spread, geometry = caution.split("; ")
    assert spread.startswith("the groups differ in spread")
    assert geometry.endswith(REMEDY)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_no_alarm_on_noise_whatever_the_scales(power):
    draw = np.random.default_rng(1)
    scale = np.arange(1, 65) ** -power
    for _ in range(30):
        x = draw.normal(size=(120, 64)) * scale
        assert cf.cfd(x, labels=np.arange(120) % 3).caution is None


def test_no_alarm_where_the_large_features_differ_too():
    x, labels = dominated()
    x[labels == 1, 63] += 60
    assert cf.cfd(x, labels=labels).caution is None


def test_no_alarm_where_units_explain_the_small_features():
    """Units differ in the small features, groups do not: by rows an alarm, by units none."""
    draw = np.random.default_rng(2)
    unit = np.repeat(np.arange(12), 50)
    x = draw.normal(size=(600, 8)) * np.r_[np.ones(7), 100]
    x[:, :7] += 0.8 * draw.normal(size=(12, 7))[unit]
    labels = unit % 2
    assert cf.cfd(x, labels=labels).caution.startswith("feature 7 ")
    assert cf.cfd(x, labels=labels, units=unit).caution is None
    summary = cf.summarize(x, by={"site": labels, "unit": unit})
    assert summary.pairwise("site").caution.startswith("feature 7 ")
    assert summary.pairwise("site", units="unit").caution is None


def test_a_cell_with_one_row_and_constant_features_change_nothing():
    x, labels = dominated()
    constant = np.c_[x, np.full((len(x), 3), 7.0)]
    assert cf.cfd(np.r_[constant, constant[:1]], labels=np.r_[labels, 2]).caution.startswith("feature 63 ")
    assert cf.cfd(np.ones((4, 2)), labels=[0, 0, 1, 1]).caution is None


def test_the_report_says_it():
    x, labels = dominated()
    report = cf.Report(x, by={"site": labels}, between="site")
    concern = next(entry for entry in report.to_dict()["warnings"] if entry["kind"] == "geometry")
    assert concern["serious"]
    assert concern["text"].startswith("Feature 63 holds 98%")
    assert concern["advice"].startswith("Standardize the features")
    assert "Feature 63 holds 98%" in report.to_html()


@pytest.mark.parametrize("name", ["pacs", "office_caltech", "office_caltech_surf", "sc_mixology"])
def test_no_alarm_on_real_embeddings_and_principal_components(name):
    path = DATA / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    table = pq.read_table(path)
    names = ("batch", "cell_line") if name == "sc_mixology" else ("domain", "label")
    group, label = (table[column].to_pylist() for column in names)
    x = np.stack(table["embedding"].combine_chunks().to_numpy(zero_copy_only=False)).astype(np.float64)
    centered = x - x.mean(axis=0)
    for rows in (x, centered @ np.linalg.eigh(centered.T @ centered)[1][:, :-51:-1]):
        summary = cf.summarize(rows, by={"group": group, "label": label})
        for between, given in (("group", None), ("group", "label"), ("label", None), ("label", "group")):
            assert "scale=" not in (summary.cfd(between, given=given).caution or "")


def test_the_geometry_counts_features_and_measures_rows():
    x, labels = dominated(scale=1.0)
    x = x * np.r_[np.ones(62), 2, 3] + 5
    found = cf.summarize(x, by={"site": labels}).with_features([f"f{k}" for k in range(64)]).geometry("site")
    within = sum(np.mean(labels == k) * x[labels == k].var(axis=0) for k in (0, 1))
    assert found.within == pytest.approx(within.sum(), rel=1e-12)
    assert found.dimension == pytest.approx(within.sum() ** 2 / np.sum(within**2), rel=1e-12)
    assert found.features[:2] == ("f63", "f62")
    assert found.share[0] == pytest.approx(within[63] / within.sum(), rel=1e-12)
    assert found.norm == pytest.approx(np.sqrt(np.mean(np.sum(x**2, axis=1))), rel=1e-9)
    assert found.center == pytest.approx(np.linalg.norm(x.mean(axis=0)) / found.norm, rel=1e-9)
    assert found.caution is None
    assert found.to_frame()["cumulative"].iloc[-1] == pytest.approx(1)
    assert found.plot().axes[0].get_xlabel() == "share of the variance within groups"


def test_the_geometry_proposes_the_scale():
    x, labels = dominated()
    found = cf.summarize(x, by={"site": labels}).geometry("site")
    assert found.caution.endswith(REMEDY)
    assert found.dimension < 1.1
    assert "caution" in repr(found)
    assert cf.summarize(np.eye(2), by={"site": [0, 1]}).geometry("site").dimension is None
