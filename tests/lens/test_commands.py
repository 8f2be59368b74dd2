"""Lenses on the command line: fit, show, and --lens in every command that reads rows."""

import json

import numpy as np
import pandas as pd
import pytest

import crossfusion as cf
from crossfusion.cli.commands import cli
from tests.helpers.command_line import fails, run, run_json

RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 8))
X[:, -1] *= 60
X[200:, :3] += 1.5
SITE = np.repeat(["A", "B"], 200)
FRAME = pd.DataFrame(X, columns=[f"dim_{k}" for k in range(8)]).assign(site=SITE, patient=np.arange(400) // 20)
WIDE = ("--vectors", "dim_*")
LENS = cf.lens.standardize(X, by={"site": SITE})
EXPECTED = cf.cfd(X, labels=SITE, lens=LENS).unbiased


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("lens")
    FRAME.to_parquet(place / "rows.parquet")
    np.save(place / "a.npy", X[:200])
    np.save(place / "b.npy", X[200:])
    lens = cf.lens.standardize(place / "rows.parquet", by="site", vectors="dim_*")
    lens.write(place / "lens.safetensors")
    return place


def test_fit_writes_a_lens_and_show_tells_what_it_is(folder, tmp_path):
    rows, target = folder / "rows.parquet", tmp_path / "lens.safetensors"
    said = run("lens", "fit", "standardize", rows, *WIDE, "--by", "site", "-o", target).stdout
    assert said.splitlines()[0] == "Lens: standardize 8 features"
    found = cf.lens.read(target)
    assert found.digest == cf.lens.read(folder / "lens.safetensors").digest
    shown = run_json("lens", "show", target)
    assert (shown["digest"], shown["steps"][0]["kind"]) == (found.digest, "standardize")
    both = ("lens", "fit", "kernel+codebook", rows, *WIDE, "--after", target, "--features", "32", "--regions", "4")
    run(*both, "-o", target)
    assert [step.kind for step in cf.lens.read(target).steps] == ["standardize", "kernel", "codebook"]
    assert run_json("lens", "show", target)["factors"] == ["region"]


def test_fit_refuses_what_it_cannot_use(folder, tmp_path):
    rows, target = folder / "rows.parquet", tmp_path / "lens.safetensors"
    assert "-o lens.pkl" not in fails("lens", "fit", "unit", rows, "-o", tmp_path / "lens.pkl")
    assert "--regions 5 is not an option of kernel" in fails(
        "lens", "fit", "kernel", rows, *WIDE, "--regions", "5", "-o", target
    )
    assert "choose unit, standardize" in fails("lens", "fit", "pca", rows, *WIDE, "-o", target)
    assert "does not exist" in fails("lens", "show", target)
    assert "is not a safetensors file" in fails("lens", "show", rows)
    assert "--bandwidth wide is not known" in str(
        fails("lens", "fit", "kernel", rows, *WIDE, "--bandwidth", "wide", "-o", target)
    ).replace("'", "")


@pytest.mark.parametrize("lens", ["standardize", "lens.safetensors"])
def test_questions_are_of_mapped_rows(lens, folder):
    asked = ("rows.parquet", *WIDE, "--between", "site", "--lens", lens)
    for command, *more in (("matrix",), ("matrix", "--level", "0.95"), ("test", "--permutations", "99")):
        found = run(command, *asked, *more, "--json", cwd=folder).stdout
        value = json.loads(found)["unbiased"]
        value = value[0][1] if isinstance(value, list) else value
        assert value == pytest.approx(EXPECTED, rel=1e-9)


def test_two_files_are_compared_through_a_lens(folder):
    files = folder / "a.npy", folder / "b.npy"
    for more in ((), ("--level", "0.95"), ("--test", "99")):
        assert run_json("compare", *files, "--lens", "standardize", *more)["unbiased"] == pytest.approx(EXPECTED)
    a, b = LENS(X[:200]), LENS(X[200:])
    found = run_json("compare", *files, "--lens", "standardize", "--distance", "energy")["distances"]["energy"]
    assert found == pytest.approx(cf.distance("energy", a, b))


def test_a_summary_keeps_its_lens_and_refuses_others(folder, tmp_path):
    rows, target, lens = folder / "rows.parquet", tmp_path / "s.parquet", folder / "lens.safetensors"
    other = tmp_path / "other.parquet"
    FRAME.assign(dim_0=FRAME.dim_0 + 1).to_parquet(other)
    asked = (*WIDE, "--by", "site", "-o", target)
    run("summarize", rows, *asked, "--lens", lens)
    assert cf.read_summary(target).lens == cf.lens.read(lens).digest
    run("summarize", other, *asked, "--lens", lens, "--append")
    assert cf.read_summary(target).moments.count.sum() == 800
    assert "the lenses differ" in fails("summarize", other, *asked, "--append")
    assert "the lenses differ" in fails("summarize", other, *asked, "--append", "--lens", "codebook")
    said = fails("matrix", target, "--between", "site", "--lens", "unit")
    assert "is a summary, whose rows were mapped before it was made: leave out --lens" in said


def test_pictures_and_pages_show_mapped_rows(folder, tmp_path):
    asked = (folder / "rows.parquet", *WIDE, "--between", "site", "--lens", "standardize+kernel")
    page = run_json("report", *asked, "--permutations", "99")
    assert page["about"]["features"] == 1024
    assert page["distances"]["plain"]["interval"][0] > 0
    assert run_json("projection", *asked)["points"]


@pytest.mark.parametrize(
    "name",
    [
        "attribution",
        "cddr",
        "corrections",
        "degradation",
        "drift",
        "hierarchy",
        "integration",
        "matrix",
        "projection",
        "rdr",
        "report",
        "separability",
        "summarize",
        "test",
    ],
)
def test_every_command_that_reads_rows_has_the_option(name):
    assert any("--lens" in option.opts for option in cli.commands[name].params)
