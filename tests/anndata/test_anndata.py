"""Leaderboards of embeddings in AnnData: every storage gives the same, and what is stored comes back."""

# mypy: disable-error-code="index,arg-type,union-attr"

import json

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import crossfusion as cf
import crossfusion.anndata as ca
from crossfusion.io.sources import chunk
from tests.helpers import ROOT
from tests.helpers.command_line import fails, run, run_json
from tests.helpers.missing_libraries import without

pytestmark = [  # what anndata 0.12 does that pandas 3 is leaving behind
    pytest.mark.filterwarnings("ignore:The 'mode.chained_assignment' option"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option"),
]

CELLS, ASKED = 600, {"batch_key": "batch", "label_key": "cell_type"}


def cells(seed=0):
    """Cells of two types from twelve donors in three batches, as counts and as three embeddings."""
    draw = np.random.default_rng(seed)
    donor = np.arange(CELLS) % 12
    batch, kind = donor % 3, draw.integers(0, 2, CELLS)
    x = draw.normal(size=(CELLS, 5)) + 0.2 * draw.normal(size=(12, 5))[donor] + 1.5 * kind[:, None]
    obs = pd.DataFrame(
        {
            "batch": pd.Categorical(np.array(["b1", "b2", "b3"])[batch], categories=["b3", "b1", "b2", "b0"]),
            "cell_type": np.array(["T", "B"])[kind],
            "donor": donor,
        },
        index=[f"cell{k}" for k in range(CELLS)],
    )
    counts = draw.poisson(0.5 + 0.5 * batch[:, None] * np.arange(7), size=(CELLS, 7)).astype(np.float32)
    adata = anndata.AnnData(counts, obs=obs)
    adata.layers["scaled"] = counts / 2
    adata.obsm["X_raw"] = x + batch[:, None]
    adata.obsm["X_half"] = x + 0.5 * batch[:, None]
    adata.obsm["X_pca"] = x
    return adata


@pytest.fixture(autouse=True)
def plain_text():
    """Text as anndata can write it."""
    with pd.option_context("future.infer_string", False):
        yield


@pytest.fixture
def adata():
    return cells()


def summary_of(adata, x):
    names = {"batch": "batch", "cell_type": "label", "donor": "donor"}
    return cf.summarize(x, by={name: adata.obs[key].to_numpy() for key, name in names.items()})


def test_a_row_holds_what_a_summary_says(adata):
    board = ca.cfd(adata, **ASKED, donor_key="donor", use_rep="X_raw")
    summary = summary_of(adata, adata.obsm["X_raw"])
    options = {"units": "donor", "level": 0.95}
    assert board.embeddings == ("X_raw",)
    assert board.batch == (summary.cfd("batch", given="label", **options),)
    assert board.biology == (summary.cfd("label", given="batch", **options),)
    assert board.plain == (summary.cfd("batch", **options),)
    assert [row.label for row in board.labels] == ["B", "T"]
    for row in board.labels:
        assert row.fusion == summary.select(label=row.label).cfd("batch", **options)
        assert row.batches == 3
    assert sum(row.cells for row in board.labels) == board.cells == CELLS
    assert "b0" not in board.plain[0].counts  # a category without cells


def test_a_leaderboard_is_compare_corrections_both_ways(adata):
    names = ["X_raw", "X_half", "X_pca"]
    board = ca.cfd(adata, **ASKED, donor_key="donor", embedding_obsm_keys=names)
    summaries = {name: summary_of(adata, adata.obsm[name]) for name in names}
    batch = cf.compare_corrections(summaries, between="batch", given="label", units="donor")
    biology = cf.compare_corrections(summaries, between="label", given="batch", units="donor")
    assert board.front == ("X_pca",)
    assert board.standing == batch.standing
    for name in ("difference", "lower", "upper"):
        np.testing.assert_array_equal(getattr(board, name), getattr(batch, name))
    np.testing.assert_array_equal(board.kept, biology.difference)
    np.testing.assert_array_equal(board.kept_lower, biology.lower)
    other = ca.cfd(adata, **ASKED, embedding_obsm_keys=names, reference="X_half", key_added=None)
    assert other.difference[1] == 0
    assert other.lower is None
    assert other.level is None


def test_weights_reach_all_distances(adata):
    uneven = adata[(adata.obs["donor"] % 3 > 0) | (np.arange(CELLS) < 200)].copy()
    board = ca.cfd(uneven, **ASKED, use_rep="X_raw", weights="balanced")
    summary = summary_of(uneven, uneven.obsm["X_raw"])
    asked = {"weights": "balanced"}
    assert board.batch[0].distance == pytest.approx(summary.cfd("batch", given="label", **asked).distance)
    assert board.biology[0].distance == pytest.approx(summary.cfd("label", given="batch", **asked).distance)
    assert board.plain[0].distance == pytest.approx(summary.cfd("batch", **asked).distance)
    assert board.labels[0].fusion.distance == pytest.approx(summary.select(label="B").cfd("batch", **asked).distance)
    assert board.plain[0].distance != pytest.approx(summary.cfd("batch").distance, rel=0.01)


def test_what_is_measured_where_nothing_is_named(adata):
    assert ca.cfd(adata, batch_key="batch").embeddings == ("X_pca",)
    del adata.obsm["X_pca"]
    assert ca.cfd(adata, batch_key="batch").embeddings == ("X",)
    board = ca.cfd(adata, **ASKED, embedding_obsm_keys=["X", "layers/scaled", "obsm/X_raw"])
    np.testing.assert_allclose(board.batch[0].distance, board.batch[1].distance, rtol=1e-6)
    assert board.batch[2] == ca.cfd(adata, **ASKED, use_rep="X_raw").batch[0]


def distances(adata, **asked):
    board = ca.cfd(adata, **(ASKED | asked), key_added=None)
    return [fusion.distance for fusions in (board.batch, board.biology, board.plain) for fusion in fusions]


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.csc_array])
def test_sparse_counts(adata, kind):
    expected = distances(adata, use_rep="X")
    adata.X = kind(adata.X)
    np.testing.assert_allclose(distances(adata, use_rep="X"), expected, rtol=1e-6)


def test_a_table_in_obsm(adata):
    expected = distances(adata, use_rep="X_raw")
    adata.obsm["X_table"] = pd.DataFrame(adata.obsm["X_raw"], index=adata.obs_names, columns=list("abcde"))
    np.testing.assert_allclose(distances(adata, use_rep="X_table"), expected)


def test_views_are_measured_as_their_copies(adata):
    chosen = np.random.default_rng(0).permutation(CELLS)[:300]
    expected = distances(adata[chosen].copy(), use_rep="X_raw")
    assert distances(adata[chosen], use_rep="X_raw") == expected
    np.testing.assert_allclose(
        distances(adata[chosen, :4], use_rep="X"), distances(adata[chosen, :4].copy(), use_rep="X")
    )


@pytest.fixture(params=["dense", "csr", "csc", "compressed"])
def backed(request, adata, tmp_path, monkeypatch):
    """The same cells on disk, and the distances of X in memory; blocks are small."""
    expected = distances(adata, use_rep="X")
    if request.param in ("csr", "csc"):
        adata.X = sparse.csr_matrix(adata.X) if request.param == "csr" else sparse.csc_matrix(adata.X)
    adata.raw = adata
    path = tmp_path / "cells.h5ad"
    adata.write_h5ad(path, compression="gzip" if request.param == "compressed" else None)
    monkeypatch.setattr(chunk, "CHUNK_BYTES", 2000)
    return request.param, path, expected


def warned(kind):
    """Context for a matrix that may be stored by columns, which is told of."""
    return pytest.warns(cf.CrossfusionWarning, match="CSC") if kind == "csc" else np.errstate()


def test_backed_counts_are_read_in_pieces(backed, adata):
    kind, path, expected = backed
    with warned(kind):
        opened = anndata.read_h5ad(path, backed="r")
        np.testing.assert_allclose(distances(opened, use_rep="X"), expected, rtol=1e-6)
    assert opened.isbacked
    opened.obs["other"] = np.roll(opened.obs["batch"].to_numpy(), 7)  # what is in memory counts, not the file
    adata.obs["other"] = opened.obs["other"]
    with warned(kind):
        found = distances(opened, use_rep="X", batch_key="other")
    np.testing.assert_allclose(found, distances(adata, use_rep="X", batch_key="other"), rtol=1e-6)
    with warned(kind):
        np.testing.assert_allclose(distances(opened, use_rep="raw/X"), expected, rtol=1e-6)
    opened.file.close()


@pytest.mark.parametrize("how", ["mask", "shuffled", "repeated", "slice"])
def test_views_of_backed_counts(backed, adata, how):
    kind, path, _ = backed
    draw = np.random.default_rng(1)
    rows = {
        "mask": draw.random(CELLS) < 0.3,
        "shuffled": draw.permutation(CELLS)[:400],
        "repeated": draw.integers(0, CELLS, 400),
        "slice": slice(50, 500, 2),
    }[how]
    opened = anndata.read_h5ad(path, backed="r")
    whole = cells()
    with warned(kind):
        found = distances(opened[rows, [0, 3, 4, 5]], use_rep="X")
    counts, obs = whole.X[rows][:, [0, 3, 4, 5]], whole.obs.iloc[rows]
    taken = anndata.AnnData(counts, obs=obs.set_axis([str(k) for k in range(len(obs))], axis=0))
    np.testing.assert_allclose(found, distances(taken, use_rep="X"), rtol=1e-6)
    with warned(kind):
        found = distances(opened[rows, [0, 3, 4, 5]], use_rep="raw/X")
    taken = anndata.AnnData(whole.X[rows], obs=taken.obs)
    np.testing.assert_allclose(found, distances(taken, use_rep="X"), rtol=1e-6)
    opened.file.close()


def test_backed_counts_do_not_fill_memory(tmp_path, monkeypatch):
    adata = cells()
    adata.write_h5ad(tmp_path / "cells.h5ad")
    opened = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    monkeypatch.setattr(chunk, "CHUNK_BYTES", 1500)
    seen, original = [], type(opened.X).__getitem__

    def watched(data, key):
        seen.append(original(data, key))
        return seen[-1]

    monkeypatch.setattr(type(opened.X), "__getitem__", watched)
    ca.cfd(opened, **ASKED, use_rep="X", key_added=None)
    matrices = [values for values in seen if np.ndim(values) == 2]
    assert sum(map(len, matrices)) == CELLS
    assert max(values.nbytes for values in matrices) <= 1500
    opened.file.close()


def test_dask_arrays_are_reduced_chunk_by_chunk(adata):
    da = pytest.importorskip("dask.array")
    expected = [distances(adata, use_rep=name) for name in ("X", "X_raw")]
    largest = []

    def look(rows):
        largest.append(len(rows))
        return rows

    adata.X = da.from_array(adata.X, chunks=(70, 3)).map_blocks(look, dtype=np.float32)
    adata.obsm["X_raw"] = da.from_array(adata.obsm["X_raw"], chunks=(128, 5))
    for name, found in zip(("X", "X_raw"), expected, strict=True):
        np.testing.assert_allclose(distances(adata, use_rep=name), found, rtol=1e-6)
    assert max(largest) <= 70
    np.testing.assert_allclose(
        distances(adata[100:500], use_rep="X"), distances(cells()[100:500], use_rep="X"), rtol=1e-6
    )


def test_sparse_chunks_of_dask(adata):
    da = pytest.importorskip("dask.array")
    expected = distances(adata, use_rep="X")
    adata.X = da.from_array(adata.X, chunks=(100, 7)).map_blocks(sparse.csr_matrix)
    np.testing.assert_allclose(distances(adata, use_rep="X"), expected, rtol=1e-6)


def test_dask_arrays_are_for_their_own_engine(adata, refuses):
    da = pytest.importorskip("dask.array")
    adata.obsm["X_pca"] = da.from_array(adata.obsm["X_pca"], chunks=(100, 5))
    with refuses("use engine='dask'"):
        ca.cfd(adata, **ASKED, engine="local")


@pytest.mark.parametrize("ending", ["h5ad", "zarr"])
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_what_is_stored_survives_writing(adata, ending, tmp_path):
    names = ["X_raw", "layers/scaled"]
    board = ca.cfd(adata, **ASKED, donor_key="donor", embedding_obsm_keys=names)
    ca.cfd(adata, batch_key="batch", key_added="plain")
    path = tmp_path / f"cells.{ending}"
    getattr(adata, f"write_{ending}")(path)
    back = getattr(anndata, f"read_{ending}")(path).uns
    stored = back["crossfusion"]
    assert int(stored["format"]) == 2
    params = {name: getattr(value, "item", lambda value=value: value)() for name, value in stored["params"].items()}
    assert params == {
        "batch_key": "batch",
        "label_key": "cell_type",
        "donor_key": "donor",
        "weights": "pooled",
        "reference": "X_raw",
        "level": 0.95,
        "cells": CELLS,
        "left_out": 0,
    }
    pd.testing.assert_frame_equal(
        pd.DataFrame(dict(stored["leaderboard"]))[list(board.columns())], board.to_frame(), check_dtype=False
    )
    pd.testing.assert_frame_equal(
        pd.DataFrame(dict(stored["labels"]))[list(board.label_columns())], board.labels_frame(), check_dtype=False
    )
    assert "labels" not in back["plain"]


def test_where_a_result_is_stored(adata, tmp_path):
    ca.cfd(adata, **ASKED, key_added=None)
    assert "crossfusion" not in adata.uns
    adata.write_h5ad(tmp_path / "cells.h5ad")
    opened = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    ca.cfd(opened, **ASKED, key_added="mine")
    assert set(opened.uns["mine"]) == {"format", "params", "leaderboard", "labels"}
    with pytest.warns(cf.CrossfusionWarning, match="not stored: pass key_added=None"):
        ca.cfd(opened[:300], **ASKED)
    opened.file.close()
    view = adata[:300]
    with pytest.warns(anndata.ImplicitModificationWarning):  # anndata makes a copy of a view that is written to
        ca.cfd(view, **ASKED)
    assert "crossfusion" in view.uns
    assert "crossfusion" not in adata.uns


@pytest.mark.parametrize("kind", ["object", "category"])
def test_cells_with_a_missing_key_are_left_out(adata, kind):
    gone = np.zeros(CELLS, bool)
    gone[::7] = True
    expected = distances(adata[~gone], use_rep="X_raw")
    adata.obs["cell_type"] = adata.obs["cell_type"].where(~gone).astype(kind)
    with pytest.warns(cf.CrossfusionWarning, match=r"86 of 600 cells miss a value in one of 'batch', 'cell_type'"):
        board = ca.cfd(adata, **ASKED, embedding_obsm_keys=["X_raw", "X_pca"], key_added=None)
    assert (board.cells, board.left_out) == (514, 86)
    assert board.batch[0].distance == pytest.approx(expected[0])


def test_combinations_that_are_too_small_are_left_out(adata):
    adata.obs["cell_type"] = adata.obs["cell_type"].astype(object)
    adata.obs.iloc[[0], 1] = "rare"
    with pytest.warns(cf.CrossfusionWarning, match="1 of 7 combinations of 'batch' and 'cell_type' .* with 1 of 600"):
        board = ca.cfd(adata, **ASKED)
    assert (board.cells, board.left_out) == (CELLS - 1, 1)
    adata.obs.iloc[[0, 12, 24], 1] = "rare"  # of one donor
    with pytest.warns(cf.CrossfusionWarning, match="fewer than 2 cells or two donors and are left out, with 3"):
        assert ca.cfd(adata, **ASKED, donor_key="donor").left_out == 3
    assert ca.cfd(adata, **ASKED).left_out == 0  # in one batch only, so there is nothing to compare
    assert [row.fusion is None for row in ca.cfd(adata, **ASKED).labels] == [False, False, True]
    assert np.isnan(ca.cfd(adata, **ASKED).labels_frame()["batch"].iloc[-1])


def test_a_confounded_design_is_told_of(adata, refuses):
    adata.obs["cell_type"] = adata.obs["batch"].astype(str) + "_cells"
    with pytest.warns(cf.CrossfusionWarning) as told:
        board = ca.cfd(adata, **ASKED, embedding_obsm_keys=["X_raw", "X_pca"])
    said = [str(entry.message) for entry in told]
    assert len(said) == 2
    assert "no value of 'cell_type' has cells of two values of 'batch', so CFD(batch | cell_type)" in said[0]
    assert [(fusion.overlap, fusion.distance, fusion.unbiased) for fusion in board.batch] == [(0, None, None)] * 2
    assert [entry.front for entry in board.standing] == [None, None]
    assert repr(board).splitlines()[2].split()[1] == "–"
    board.plot()
    assert board.plain[0].distance > 0.1
    with refuses("leave out label_key, or donor_key"):
        ca.cfd(adata, **ASKED, donor_key="donor")


def test_bad_input_is_one_clear_sentence(adata, refuses):
    with refuses("adata has no column of obs 'Batch': did you mean 'batch'"):
        ca.cfd(adata, batch_key="Batch")
    with refuses("adata has no embedding 'X_rew': did you mean 'X_raw'"):
        ca.cfd(adata, batch_key="batch", use_rep="X_rew")
    with refuses("adata must be an AnnData, not ndarray"):
        ca.cfd(adata.X, batch_key="batch")
    with refuses("pass one of the two"):
        ca.cfd(adata, batch_key="batch", use_rep="X", embedding_obsm_keys=["X"])
    with refuses("name several in embedding_obsm_keys"):
        ca.cfd(adata, batch_key="batch", use_rep=["X"])
    with refuses("embedding_obsm_keys is empty"):
        ca.cfd(adata, batch_key="batch", embedding_obsm_keys=[])
    for twice in (["X", "X"], ["X_pca", "obsm/X_pca"]):
        with refuses("names an embedding twice"):
            ca.cfd(adata, batch_key="batch", embedding_obsm_keys=twice)
    with refuses(r"name a column of obs twice \(batch, batch\)"):
        ca.cfd(adata, batch_key="batch", label_key="batch")
    with refuses("must be names of columns of obs"):
        ca.cfd(adata, batch_key=None)
    with refuses("the leaderboard has no embedding 'X_rew'"):
        ca.cfd(adata, batch_key="batch", use_rep="X", reference="X_rew")
    with refuses("level=2"):
        ca.cfd(adata, batch_key="batch", donor_key="donor", level=2)
    with refuses("key_added=''"):
        ca.cfd(adata, batch_key="batch", key_added="")
    with refuses("nan='keep'"):
        ca.cfd(adata, batch_key="batch", nan="keep")
    with refuses("fewer than 1000 cells, .*: lower min_cells, or pass coarser labels"):
        ca.cfd(adata, batch_key="batch", min_cells=1000)
    with refuses("min_cells=0"):
        ca.cfd(adata, batch_key="batch", min_cells=0)
    with refuses(r"label_key='one' has one value among the cells \(x\): leave it out"):
        adata.obs["one"] = "x"
        ca.cfd(adata, batch_key="batch", label_key="one")
    with refuses("all combinations of 'batch' and 'cell_type' have fewer than 2 cells or two donors"):
        adata.obs["sample"] = adata.obs["batch"].astype(str)
        ca.cfd(adata, **ASKED, donor_key="sample")
    with refuses("no cell has a value in each of 'none'"):
        adata.obs["none"] = np.nan
        ca.cfd(adata, batch_key="none")
    with refuses("adata has no X"):
        ca.cfd(anndata.AnnData(obs=adata.obs), batch_key="batch")


def test_values_that_are_not_finite(adata):
    adata.obsm["X_pca"][11, 2] = np.nan
    with pytest.raises(cf.NonFiniteError, match=r"adata X_pca has NaN .* row 11, feature 2"):
        ca.cfd(adata, **ASKED)
    with pytest.warns(cf.CrossfusionWarning, match="adata X_pca has NaN"):
        board = ca.cfd(adata, **ASKED, nan="drop")
    assert board.cells == CELLS - 1


def test_cells_as_units(adata):
    board = ca.cfd(adata[:200].copy(), **ASKED, donor_key="index", use_rep="X_raw")
    by = {"batch": adata.obs["batch"].to_numpy()[:200], "label": adata.obs["cell_type"].to_numpy()[:200]}
    rows = cf.cfd(adata.obsm["X_raw"][:200], labels=by["batch"], given=by["label"], level=0.95)
    np.testing.assert_allclose(board.batch[0].interval, rows.interval, atol=0.03)


def test_tables_and_json(adata):
    board = ca.cfd(adata, **ASKED, donor_key="donor", embedding_obsm_keys=["X_raw", "X_half"])
    plain = json.loads(json.dumps(board.to_dict(), allow_nan=False))
    assert plain["embeddings"] == ["X_raw", "X_half"]
    assert plain["labels"][0]["fusion"]["distance"] == board.labels[0].fusion.distance
    lines = repr(board).splitlines()
    assert "CFD(batch | cell_type), biology = CFD(cell_type | batch)" in lines[0]
    assert lines[2].startswith("X_half")
    assert "reference" in lines[3]
    frame = board.to_frame()
    assert {"batch_lower", "biology_upper", "plain", "kept_lower", "front"} <= set(frame.columns)
    assert len(board.labels_frame()) == 4


@pytest.mark.parametrize("asked", [{}, {"label_key": None}, {"donor_key": "donor"}, {"use_rep": "X_raw"}])
def test_the_picture_shows_every_embedding(adata, asked):
    names = None if "use_rep" in asked else ["X_raw", "X_half", "X_pca"]
    board = ca.cfd(adata, **(ASKED | asked), embedding_obsm_keys=names)
    drawn = board.plot()
    drawn.draw_without_rendering()
    shown = [text.get_text() for axes in drawn.axes for text in axes.get_yticklabels()]
    shown += [text.get_text() for legend in drawn.legends for text in legend.get_texts()]
    assert set(board.embeddings) <= set(shown)
    if board.label_key is not None:
        assert {"B", "T"} <= set(shown)


def test_without_the_library_it_says_what_to_install(python):
    code = """
import crossfusion as cf, crossfusion.anndata
try:
    crossfusion.anndata.cfd(None, batch_key="batch")
except cf.MissingDependencyError as problem:
    print(problem)
"""
    expected = "crossfusion.anndata needs anndata, which is not installed: pip install 'crossfusion[anndata]'"
    assert python(without("anndata") + code) == expected
    assert python("import sys, crossfusion.anndata; print('anndata' in sys.modules)") == "False"


def test_public_names_are_documented():
    page = (ROOT / "docs" / "api.md").read_text()
    for name in ca.__all__:
        assert f"\n   anndata.{name}\n" in page
    members = [name for name, value in vars(ca.Leaderboard).items() if callable(value) and not name.startswith("_")]
    assert all(getattr(ca.Leaderboard, name).__doc__ for name in members)  # the page of the class lists them


def test_the_command(adata, tmp_path):
    path = tmp_path / "cells.h5ad"
    adata.write_h5ad(path)
    asked = ("--batch", "batch", "--label", "cell_type", "--donor", "donor", "--obsm", "X_raw,X_half,layers/scaled")
    found = run_json("integration", path, *asked)
    names = ["X_raw", "X_half", "layers/scaled"]
    board = ca.cfd(adata, **ASKED, donor_key="donor", embedding_obsm_keys=names)
    assert found == json.loads(json.dumps(board.to_dict()))
    text = run("integration", path, *asked, "--plot", tmp_path / "board.svg").stdout
    assert "batch = CFD(batch) among its cells" in text
    assert (tmp_path / "board.svg").read_text().startswith("<?xml")
    assert "has no column of obs 'site'" in fails("integration", path, "--batch", "site", "--obsm", "X_raw")
    assert "has no matrix 'X_no'" in fails("integration", path, "--batch", "batch", "--obsm", "X_no")
    assert "twice" in fails("integration", path, "--batch", "batch", "--obsm", "X_raw,X_raw")
    assert "lower --min-cells" in fails("integration", path, *asked[:4], "--obsm", "X", "--min-cells", 1000)
    assert "--weights even is not" in fails("integration", path, *asked, "--weights", "even")
    adata.obs["one"] = "x"
    adata.write_h5ad(path)
    assert "--label one has one value" in fails(
        "integration", path, "--batch", "batch", "--label", "one", "--obsm", "X_raw"
    )
