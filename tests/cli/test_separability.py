"""Separability and equivalence on the command line."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import crossfusion as cf
from tests.helpers.command_line import fails, run, run_json


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Rows of patients of three sites in two tissues, a summary, and two arrays."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(5)
    patient = np.arange(360) // 12
    site = np.array(["Aarhus", "Bonn", "Cork"])[patient % 3]
    x = rng.normal(size=(360, 4)) + 0.3 * rng.normal(size=(30, 4))[patient]
    x[site == "Cork", 0] += 2
    factors = {"site": site, "patient": patient, "tissue": rng.choice(["stroma", "tumor"], 360)}
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), 4)
    pq.write_table(pa.table(factors | {"embedding": vectors}), folder / "x.parquet")
    cf.summarize(x, by=factors).write(folder / "s.parquet")
    for name, rows in {"a": x[site == "Aarhus"], "b": x[site == "Bonn"], "c": x[site == "Cork"]}.items():
        np.save(folder / f"{name}.npy", rows)
    np.savez(folder / "x.npz", x=x, **factors)
    return folder


def test_the_command_prints_what_the_library_finds(data):
    rows = np.load(data / "x.npz")
    expected = cf.separability(rows["x"], rows["site"], given=rows["tissue"], units=rows["patient"], level=0.9, seed=3)
    options = ("--between", "site", "--given", "tissue", "--units", "patient", "--level", "0.9", "--seed", "3")
    found = run_json("separability", data / "x.parquet", *options)
    sentence = found.pop("sentence")
    assert found == expected.to_dict()
    assert sentence == expected.describe("site", "patient")
    shown = run("separability", data / "x.parquet", *options).stdout
    assert f"A{sentence[1:]}." in shown
    assert shown.splitlines()[2].split()[0] == "Cork"
    assert "90% interval" in shown


def test_several_factors_are_named_together(data, tmp_path):
    done = run("separability", data / "x.parquet", "--between", "site,tissue", "--plot", tmp_path / "s.png")
    assert "Aarhus / stroma" in done.stdout
    assert "recognizes the site × tissue of an unseen row" in done.stdout
    assert "caution: rows were held out one by one" in done.stdout
    assert (tmp_path / "s.png").stat().st_size > 1000


def test_what_cannot_be_classified_is_said(data):
    done = run("separability", data / "x.parquet", "--between", "site", "--given", "site")
    assert "There is no separability, because no stratum holds two" in done.stdout
    assert "fully confounded" in done.stderr


@pytest.mark.parametrize(
    ("file", "options", "said"),
    [
        ("s.parquet", (), "is a summary, which has no rows to classify: pass the rows"),
        ("x.parquet", ("--level", "3"), "--level 3.0 must be a confidence level"),
        ("x.parquet", ("--seed", "-1"), "--seed -1 must be a whole number"),
        ("x.parquet", ("--min-units", "3"), "--min-units goes with --units"),
        ("x.parquet", ("--units", "donor"), "donor"),
        ("x.parquet", ("--units", "site"), "fewer than two groups remain"),
    ],
)
def test_bad_input_is_one_line(data, file, options, said):
    assert said in fails("separability", data / file, "--between", "site", *options)


def test_fused_within_a_margin(data):
    near, far = (data / "a.npy", data / "b.npy"), (data / "a.npy", data / "c.npy")
    expected = cf.cfd(*map(np.load, near), level=0.9)
    _, upper = expected.interval or (0.0, 0.0)
    for margin, shown in ((2 * upper, True), (upper / 2, False)):
        found = run_json("compare", *near, "--fused-within", margin)
        assert (found["margin"], found["fused_within"], found["level"]) == (margin, shown, 0.9)
    assert (
        f"fused within {2 * upper:g}: yes, the upper limit" in run("compare", *near, "--fused-within", 2 * upper).stdout
    )
    done = run("compare", *far, "--fused-within", 0.01, "--level", 0.95)
    assert "fused within 0.01: not shown" in done.stdout
    assert "of unbiased, at 95% confidence" in done.stdout


def test_a_margin_goes_with_intervals_only(data):
    files = (data / "a.npy", data / "b.npy")
    assert "--fused-within -1.0 must be a finite number above 0" in fails("compare", *files, "--fused-within", -1)
    assert "--fused-within" in fails("compare", *files, "--fused-within", 1, "--trim", 0.1)
    assert "--fused-within" in fails("compare", *files, "--fused-within", 1, "--distance", "cfd")
