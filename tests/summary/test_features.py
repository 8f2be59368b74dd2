"""Features by name: summaries match them, show them, and refuse what does not belong together."""

import dataclasses
import json
import warnings
from contextlib import contextmanager
from typing import Any

import anndata
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import crossfusion as cf
from crossfusion.anndata import matrices
from crossfusion.summary import checksums, storage
from tests.helpers.command_line import fails, run

NAMES = ("e_a", "e_b", "e_c")
X = np.random.default_rng(0).normal([0.0, 5.0, 9.0], 1.0, (200, 3))
WEEK = np.repeat([1, 2], 100)
TRUTH = cf.cfd(X, labels=WEEK).distance
TURNED = ["e_c", "e_b", "e_a"]


def runs(*arguments):
    return run(*arguments).stdout


def weeks(make=lambda frame: frame):
    """Two weeks of rows, the second with its columns in another order."""
    frame = pd.DataFrame(X, columns=list(NAMES)).assign(week=WEEK)
    return make(frame[:100]), make(frame[100:][["week", *TURNED]])


def parts():
    return [cf.summarize(frame, by="week", vectors="e_*") for frame in weeks()]


@pytest.fixture
def files(tmp_path):
    """The two weeks as text."""
    paths = tmp_path / "w1.csv", tmp_path / "w2.csv"
    for path, frame in zip(paths, weeks(), strict=True):
        frame.to_csv(path, index=False)
    return paths


# ---- adding up


def assert_matched(summary):
    assert summary.features == NAMES
    assert summary.cfd("week").distance == pytest.approx(TRUTH, rel=1e-9)
    np.testing.assert_allclose(summary.rollup("week").moments.mean, [X[:100].mean(0), X[100:].mean(0)])


def test_summaries_add_by_the_names_of_features():
    first, second = parts()
    assert (first.features, second.features) == (NAMES, tuple(TURNED))
    assert_matched(first + second)
    assert_matched(sum([first, second]))
    assert_matched(cf.merge_summaries([first, second]))
    assert (second + first).features == tuple(TURNED)


def test_files_in_another_order_of_columns_are_merged_and_appended_to_by_name(files, tmp_path):
    stored = [tmp_path / "one.parquet", tmp_path / "two.parquet"]
    for part, path in zip(parts(), stored, strict=True):
        part.write(path)
    assert_matched(cf.merge_summaries(stored))
    target = tmp_path / "all.parquet"
    for file in files:
        runs("summarize", file, "--by", "week", "--append", "-o", target)
    assert_matched(cf.read_summary(target))
    runs("merge", *stored, "-o", target)
    assert_matched(cf.read_summary(target))


def test_a_shuffled_order_of_columns_raises_no_alarm(tmp_path):
    rng = np.random.default_rng(1)
    target = tmp_path / "weeks.parquet"
    for week in range(1, 9):
        names = list(NAMES) if week < 8 else TURNED
        frame = pd.DataFrame(rng.normal([0.0, 5.0, 9.0], 1, (50, 3)), columns=list(NAMES)).assign(week=week)
        frame[["week", *names]].to_csv(tmp_path / "new.csv", index=False)
        runs("summarize", tmp_path / "new.csv", "--by", "week", "--append", "-o", target)
    assert "no alarms" in runs("drift", target, "--time", "week", "--reference", "first:6", "--alarm", 0.001)


@pytest.mark.parametrize(
    ("features", "said"),
    [
        (["e_a", "e_b", "e_d"], "it lacks 'e_c' and has 'e_d'"),
        ([*"xyz"], "it lacks 'e_a', 'e_b', 'e_c' and has 'x', 'y', 'z'"),
        (None, "one summary names its features and another does not"),
    ],
)
def test_other_features_do_not_add_up(features, said, refuses):
    first, second = parts()
    with refuses(said):
        first + second.with_features(features)
    if features is None:
        with refuses("another names its features and one summary does not"):
            second.with_features(features) + first


def test_of_many_other_features_a_few_are_named(refuses):
    many = cf.summarize(np.zeros((2, 50)), by={"g": [1, 1]})
    one, other = (many.with_features([f"{letter}{k:02}" for k in range(50)]) for letter in "ab")
    with refuses("lacks 'a00', 'a01', 'a02' and 47 more and has 'b00', 'b01', 'b02' and 47 more"):
        one + other


def test_unnamed_features_stand_for_named_ones_only_where_the_user_says_so(tmp_path):
    named = cf.summarize(pd.DataFrame(X[:100], columns=list(NAMES)), by={"week": WEEK[:100]})
    array = cf.summarize(X[100:], by={"week": WEEK[100:]})
    assert (named.features, array.features) == (NAMES, None)
    assert_matched(named + array.with_features(NAMES))
    for pair in ([named, array], [array, named]):
        assert_matched(cf.merge_summaries(pair, by_position=True))
    path, other = tmp_path / "week.parquet", tmp_path / "array.parquet"
    array.write(path)
    with pytest.raises(cf.InputError, match="does not: if they are the same in the same order"):
        cf.append_summary(named, path)
    assert_matched(cf.append_summary(named, path, by_position=True))
    named.write(path)
    array.write(other)
    assert "give --by-position" in fails("merge", path, other, "-o", tmp_path / "all.parquet")
    runs("merge", path, other, "--by-position", "-o", tmp_path / "all.parquet")
    assert_matched(cf.read_summary(tmp_path / "all.parquet"))


def test_features_that_cannot_be_appended_are_refused_before_rows_are_read(files, tmp_path):
    target = tmp_path / "all.parquet"
    runs("summarize", files[0], "--by", "week", "-o", target)
    before = target.read_bytes()
    bad = tmp_path / "bad.csv"
    bad.write_text("week,e_a,e_b,e_z\n3,1.5,2.5,nan\n3,1.5,2.5,3.5\n")
    said = fails("summarize", bad, "--by", "week", "--append", "-o", target)
    assert "it lacks 'e_c' and has 'e_z'" in said
    assert target.read_bytes() == before


def test_the_same_rows_are_recognized_in_another_order_of_columns(tmp_path, refuses):
    first, _ = parts()
    frame = weeks()[0]
    again = cf.summarize(frame[["week", *TURNED]], by="week", vectors="e_*")
    assert again.features == tuple(TURNED)
    digests = {checksums.hash_batch(each.keys, each.moments, each.tags, each.features) for each in (first, again)}
    assert len(digests) == 1
    cf.append_summary(first, tmp_path / "s.parquet")
    with refuses("already contains these rows", cf.FileError):
        cf.append_summary(again, tmp_path / "s.parquet")
    with refuses("summary 2 holds rows that summary 1 holds too"):
        cf.merge_summaries([first, again])


# ---- naming


@pytest.mark.parametrize(
    ("features", "said"),
    [
        (["a", "b"], "must be 3 names, one per feature, or None, not 2 names"),
        ([1, 2, 3], "must be 3 names"),
        ("abc", "must be 3 names, one per feature, or None, not str"),
        (["a", "b", "a"], r"names several features alike \('a'\)"),
        (["a", "", "b"], "a feature with an empty name"),
    ],
)
def test_names_that_are_none_are_refused(features, said, refuses):
    with refuses(said):
        parts()[0].with_features(features)


def test_names_stay_with_a_summary(tmp_path):
    whole = dataclasses.replace(sum(parts()), lens="a" * 16)
    for found in (whole.rollup("week"), whole.select(week=1), whole + whole):
        assert (found.features, found.lens) == (NAMES, whole.lens)
    whole.write(tmp_path / "s.parquet")
    read = cf.read_summary(tmp_path / "s.parquet")
    assert (read.features, read.lens) == (NAMES, whole.lens)
    about = json.loads(pq.read_schema(tmp_path / "s.parquet").metadata[storage.METADATA_KEY])
    assert (about["format"], about["features"], about["lens"]) == (3, list(NAMES), whole.lens)
    cf.summarize(X, by={"week": WEEK}).write(tmp_path / "s.parquet")
    about = json.loads(pq.read_schema(tmp_path / "s.parquet").metadata[storage.METADATA_KEY])
    assert (about["features"], about["lens"]) == (None, None)


def test_rows_seen_through_different_lenses_do_not_add_up(refuses):
    first, second = parts()
    with refuses(r"the lenses differ \(one summary has none, another has abc\)"):
        first + dataclasses.replace(second, lens="abc")
    assert (dataclasses.replace(first, lens="abc") + dataclasses.replace(second, lens="abc")).lens == "abc"


def change(path, **changed):
    """Write other facts into a file, with the checksum that belongs to them."""
    keys, moments, facts = storage.read(path)
    kept = {name: value for name, value in facts.items() if name not in ("format", "dim", "cells", "checksum")}
    storage.write(path, keys, moments, kept | changed)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"features": ["a", "b"]}, "must be 3 names"),
        ({"features": ["a", "b", "b"]}, "names several features alike"),
        ({"features": "abc"}, "its features cannot be read"),
        ({"lens": 3}, "its lens cannot be read"),
        ({"dropped": -1}, "fewer than no rows were dropped"),
    ],
)
def test_names_that_a_file_cannot_have_are_refused(changed, said, tmp_path, refuses):
    path = tmp_path / "s.parquet"
    parts()[0].write(path)
    change(path, **changed)
    with refuses(said, cf.FileError):
        cf.read_summary(path)


# ---- where names come from

FRAMES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "stream": lambda frame: pa.Table.from_pandas(frame, preserve_index=False).to_reader(),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_name_features(kind):
    first, second = (cf.summarize(frame, by="week", vectors="e_*") for frame in weeks(FRAMES[kind]))
    assert_matched(first + second)
    assert cf.summarize(FRAMES[kind](weeks()[0]), by="week", vectors="e_b").features == ("e_b",)


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv", "tsv"])
def test_folders_are_read_by_name_whatever_the_order_of_columns(ending, tmp_path):
    for number, frame in enumerate(weeks(), 1):
        path = tmp_path / f"part{number}.{ending}"
        if ending in ("csv", "tsv"):
            frame.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
        else:
            getattr(frame.reset_index(drop=True), f"to_{ending}")(path)
    pattern = str(tmp_path / f"*.{ending}")
    assert_matched(cf.summarize(tmp_path, by="week", vectors="e_*"))
    assert_matched(cf.summarize(pattern, by="week", vectors="e_*"))
    one = cf.summarize(tmp_path / f"part1.{ending}", by="week", vectors="e_b")
    assert one.features == ("e_b",)


def test_files_that_do_not_name_the_same_features_are_refused(files, tmp_path, refuses):
    other = tmp_path / "w3.csv"
    other.write_text("week,e_a,e_b,e_z\n3,1,2,3\n")
    with refuses(r"w3.csv does not have the features of .*w1.csv: it lacks 'e_c' and has 'e_z'"):
        cf.summarize([files[0], other], by="week")
    vectors = pa.table({"week": WEEK, "embedding": X.tolist()})
    pq.write_table(vectors, tmp_path / "lists.parquet")
    both = [files[0], tmp_path / "lists.parquet"]
    with refuses(r"w1.csv names its features and .*lists.parquet does not: .* pass by_position=True to summarize"):
        cf.summarize(both, by="week")
    for found in (both, both[::-1]):
        assert cf.summarize(found, by="week", by_position=True).features == NAMES
    assert "names its features and" in fails("compare", *both, "--vectors", "e*")
    assert '"distance"' in runs("compare", *both, "--vectors", "e*", "--by-position", "--json")
    summary = tmp_path / "s.parquet"
    runs("summarize", files[0], "--by", "week", "-o", summary)
    assert "leave out --by-position" in fails("matrix", summary, "--between", "week", "--by-position")


def test_queries_are_matched_with_files_and_with_each_other(files, tmp_path):
    query = f"select week, {', '.join(TURNED)} from '{files[0]}'"
    target = tmp_path / "s.parquet"
    runs("summarize", files[1], "--sql", query, "--by", "week", "--vectors", "e_*", "-o", target)
    found = cf.read_summary(target)
    assert found.features == tuple(TURNED)
    assert found.cfd("week").distance == pytest.approx(TRUTH, rel=1e-9)
    plain = query.replace("e_c, e_b, e_a", "e_a, e_b, e_c")
    shown = runs("compare", "--sql", query, "--sql", plain, "--vectors", "e_*", "--json")
    assert json.loads(shown)["distance"] == pytest.approx(0, abs=1e-12)


def test_vectors_and_arrays_are_unnamed(tmp_path):
    pq.write_table(pa.table({"week": WEEK, "embedding": X.tolist()}), tmp_path / "x.parquet")
    assert cf.summarize(tmp_path / "x.parquet", by="week").features is None
    for rows in (X, X.tolist(), pd.DataFrame(X), pa.table({"week": WEEK, "v": X.tolist()})):
        by = "week" if isinstance(rows, pa.Table) else {"week": WEEK}
        assert cf.summarize(rows, by=by).features is None


def test_columns_of_one_name_are_refused(refuses):
    twice = pd.DataFrame(X, columns=["a", "b", "a"])
    with refuses(r"x names several features alike \('a'\): rename them, or pass the values alone, x.to_numpy\(\)"):
        cf.summarize(twice, by={"week": WEEK})
    assert cf.summarize(twice.to_numpy(), by={"week": WEEK}).features is None


@contextmanager
def plain_text():
    """Text as AnnData can write it, and without its announcements."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pd.option_context("future.infer_string", False):
            yield


def annotated(names, columns=NAMES):
    """The rows as AnnData, with names of variables, and a frame in obsm."""
    with plain_text():
        obs = pd.DataFrame({"week": WEEK}, index=[f"cell{k}" for k in range(200)])
        data = anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=pd.Index(names, dtype=object)))
        data.obsm["frame"] = pd.DataFrame(X, columns=list(columns), index=obs.index)
        data.obsm["array"] = X
        data.layers["scaled"] = X
    return data


@pytest.mark.parametrize("ending", ["h5ad", "zarr"])
def test_genes_and_columns_of_obsm_name_features_of_anndata(ending, tmp_path):
    path, genes = tmp_path / f"x.{ending}", ("ISG15", "CD4", "MKI67")
    with plain_text():
        getattr(annotated(genes), f"write_{ending}")(path)
    for vectors, expected in {None: genes, "scaled": genes, "frame": NAMES, "array": None}.items():
        assert cf.summarize(path, by="week", vectors=vectors).features == expected
    assert cf.summarize(path, by="week", vectors=["X/CD4", "X/ISG15"]).features == ("CD4", "ISG15")
    assert "ISG15" in repr(cf.summarize(path, by="week").attribution("week"))


def test_genes_of_one_name_are_matched_by_position_with_a_warning(tmp_path):
    with plain_text():
        annotated(["a", "b", "a"]).write_h5ad(tmp_path / "x.h5ad")
    with pytest.warns(cf.CrossfusionWarning, match="features of the same name .* matched by position: make names uni"):
        assert cf.summarize(tmp_path / "x.h5ad", by="week").features is None


def test_leaderboards_know_the_names_of_anndata():
    data = annotated(["ISG15", "CD4", "MKI67"])
    keys = pa.table({"week": WEEK})
    for place, expected in {"X": ("ISG15", "CD4", "MKI67"), "frame": NAMES, "array": ()}.items():
        assert matrices.open_embedding(data, place, keys)[0].features == expected


# ---- where names are shown


def test_a_caution_about_geometry_names_the_features():
    x = np.random.default_rng(0).normal(size=(1000, 64)) * np.r_[np.ones(63), 60]
    label = np.repeat(["a", "b"], 500)
    x[label == "b", :16] += 0.8
    frame = pd.DataFrame(x, columns=[f"gene{k}" for k in range(64)])
    summary = cf.summarize(frame, by={"site": label, "unit": np.arange(1000) // 10})
    results: list[Any] = [
        cf.cfd(frame, labels=label),
        cf.cfd(frame[:500], frame[500:]),
        summary.cfd("site"),
        summary.cfd("site", units="unit"),
        summary.pairwise("site"),
        *summary.one_vs_rest("site").values(),
    ]
    assert all("feature gene63 holds" in str(result.caution) for result in results)
    said = cf.Report(summary, between="site").to_dict()["warnings"]
    assert any("gene63" in str(concern) for concern in said)


def test_attributions_say_the_names(tmp_path):
    whole = sum(parts())
    found = whole.attribution("week")
    assert found.labels == NAMES
    assert list(found.to_frame()["label"]) == list(NAMES)
    assert all(name in repr(found) for name in NAMES)
    drawn = [text.get_text() for text in found.plot().axes[0].get_yticklabels()]
    assert set(drawn) == set(NAMES)
    path = tmp_path / "s.parquet"
    whole.write(path)
    assert "\ne_" in runs("attribution", path, "--between", "week")
    drift = whole.drift("week", reference=[1], alarm=None)
    assert drift.attributions["features"].labels == NAMES
    assert "by features: e_" in repr(drift)
    assert cf.summarize(X, by={"week": WEEK}).attribution("week").labels == (0, 1, 2)


def test_a_report_says_the_names():
    report = cf.Report(sum(parts()), between="week")
    assert set(report.to_dict()["features"]["labels"]) == set(NAMES)


def test_rows_of_a_frame_are_projected_by_name(refuses):
    whole, frame = sum(parts()), weeks()[1].drop(columns="week")
    plain = whole.project("week", rows=X[100:], labels=WEEK[100:])
    turned = whole.project("week", rows=frame, labels=WEEK[100:])
    np.testing.assert_allclose(turned.points, plain.points)
    with refuses("rows does not have the features of the summary: it lacks 'e_a' and has 'z'"):
        whole.project("week", rows=frame.rename(columns={"e_a": "z"}), labels=WEEK[100:])
