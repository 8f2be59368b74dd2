"""Rows in HDF5, AnnData, Zarr and torch files: the same summary from each, and one sentence about bad ones."""

import contextlib
import json
import os
import pickle
import resource
import shutil
import warnings
import zlib
from pathlib import Path
from typing import Any

import anndata as ad
import google_crc32c
import h5py
import numcodecs
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
import zarr

import crossfusion as cf
from crossfusion.io import sources
from crossfusion.io.sources import chunk as block
from crossfusion.io.sources import zarr as zarr_source
from tests.helpers.command_line import run_json

ROWS, DIM = 257, 6
rng = np.random.default_rng(5)
X = rng.normal(size=(ROWS, DIM))
SITE = rng.choice(["A", "B", "Ç"], ROWS)
DAY = rng.integers(0, 3, ROWS)
BY = ["site", "day"]
EXPECTED = cf.summarize(X, by={"site": SITE, "day": DAY})
SPARSE = np.where(rng.random((ROWS, DIM)) < 0.4, X, 0)


def hdf5(path, rows=X, **options):
    with h5py.File(path, "w") as file:
        file.create_dataset("features", data=rows, **options)
        file["site"], file["day"] = SITE.tolist(), DAY


def hdf5_group(path):
    with h5py.File(path, "w") as file:
        file["slide/features"], file["slide/coords"] = X[None], np.zeros((ROWS, 2))
        file["slide/site"] = np.char.encode(SITE, "utf-8")
        file["day"] = DAY.astype(">i2")


def hdf5_big_endian(path):
    hdf5(path, X.astype(">f8"), chunks=(50, DIM))


def with_zarr(path, **options):
    form = options.pop("zarr_format", 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # text has no final specification in version 3
        store = zarr.storage.ZipStore(path, mode="w") if path.suffix == ".zip" else path
        group = zarr.open_group(store, mode="w", zarr_format=form)
        group.create_array("x", data=X, **options)
        group.create_array("site", data=SITE.astype(np.dtypes.StringDType()), chunks=(100,))
        group.create_array("day", data=DAY, chunks=(64,))
    if path.suffix == ".zip":
        store.close()


def observations():
    index = [f"c{k}" for k in range(ROWS)]
    site = pd.Categorical(SITE.astype(object), pd.Index(["A", "B", "Ç"], dtype=object))
    return pd.DataFrame({"site": site, "day": DAY}, index=pd.Index(index, dtype=object))


@contextlib.contextmanager
def quiet():
    """Text as AnnData can write it, and without its announcements."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pd.option_context("future.infer_string", False):
            yield


def annotated(rows=X, **options):
    with quiet():
        var = pd.DataFrame(index=pd.Index([f"g{k}" for k in range(rows.shape[1])], dtype=object))
        return ad.AnnData(rows, obs=observations(), var=var, **options)


def save_anndata(path, data):
    with quiet():
        data.write_h5ad(path) if path.suffix == ".h5ad" else data.write_zarr(path)


def anndata_of(place):
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(DIM)], index=observations().index)
    made = {
        "X": lambda: annotated(X),
        "csr": lambda: annotated(sp.csr_matrix(X)),
        "layer": lambda: annotated(np.zeros((ROWS, DIM)), layers={"counts": X}),
        "obsm": lambda: annotated(np.zeros((ROWS, 2)), obsm={"X_pca": X}),
        "frame": lambda: annotated(np.zeros((ROWS, 2)), obsm={"frame": frame}),
    }
    return lambda path: save_anndata(path, made[place]())


def raw_anndata(path):
    data = annotated(np.zeros((ROWS, 2)))
    data.raw = annotated(X)
    save_anndata(path, data)


def tensors(path, rows=X, **options):
    torch.save({"x": torch.tensor(rows), "site": SITE.tolist(), "day": torch.tensor(DAY), "epoch": 3}, path, **options)


STORAGES = {
    "hdf5": ("x.h5", hdf5, None),
    "hdf5 chunks": ("x.hdf5", lambda path: hdf5(path, chunks=(37, DIM)), "features"),
    "hdf5 tiles": ("x.h5", lambda path: hdf5(path, chunks=(40, 4)), None),
    "hdf5 gzip": ("x.h5", lambda path: hdf5(path, chunks=(37, 5), compression="gzip", shuffle=True), None),
    "hdf5 lzf": ("x.h5", lambda path: hdf5(path, chunks=(300, DIM), compression="lzf", maxshape=(None, DIM)), None),
    "hdf5 group": ("x.h5", hdf5_group, "slide/features"),
    "hdf5 big-endian": ("x.h5", hdf5_big_endian, None),
    "zarr 3": ("x.zarr", lambda path: with_zarr(path, chunks=(37, DIM)), None),
    "zarr 3 shards": ("x.zarr", lambda path: with_zarr(path, chunks=(10, 3), shards=(50, 6)), "x"),
    "zarr 2": ("x.zarr", lambda path: with_zarr(path, zarr_format=2, chunks=(300, 2)), None),
    "zarr zip": ("x.zarr.zip", lambda path: with_zarr(path, chunks=(50, DIM)), None),
    "h5ad": ("x.h5ad", anndata_of("X"), None),
    "h5ad csr": ("x.h5ad", anndata_of("csr"), "X"),
    "h5ad layer": ("x.h5ad", anndata_of("layer"), "counts"),
    "h5ad obsm": ("x.h5ad", anndata_of("obsm"), "X_pca"),
    "h5ad frame": ("x.h5ad", anndata_of("frame"), "obsm/frame"),
    "h5ad raw": ("x.h5ad", raw_anndata, "raw/X"),
    "anndata zarr": ("x.zarr", anndata_of("csr"), None),
    "anndata zarr obsm": ("x.zarr", anndata_of("obsm"), "obsm/X_pca"),
    "torch": ("x.pt", tensors, None),
    "torch before 1.6": ("x.pth", lambda path: tensors(path, _use_new_zipfile_serialization=False), "x"),
}


def saved(name, tmp_path):
    file, save, vectors = STORAGES[name]
    save(tmp_path / file)
    return tmp_path / file, vectors


def assert_same(summary, expected=EXPECTED, rtol=1e-12):
    assert summary.keys.to_pylist() == expected.keys.to_pylist()
    np.testing.assert_array_equal(summary.moments.count, expected.moments.count)
    np.testing.assert_allclose(summary.moments.mean, expected.moments.mean, rtol=rtol, atol=1e-14)
    np.testing.assert_allclose(summary.moments.sumsq, expected.moments.sumsq, rtol=rtol, atol=1e-14)


@pytest.mark.parametrize("size", [500, 2**26], ids=["small blocks", "one block"])
@pytest.mark.parametrize("name", STORAGES)
def test_every_store_gives_the_same_summary(name, size, tmp_path, monkeypatch):
    path, vectors = saved(name, tmp_path)
    monkeypatch.setattr(block, "CHUNK_BYTES", size)
    assert_same(cf.summarize(path, by=BY, vectors=vectors))


@pytest.mark.parametrize("name", STORAGES)
def test_parts_can_be_pickled_and_hold_every_row_once(name, tmp_path, monkeypatch):
    path, vectors = saved(name, tmp_path)
    monkeypatch.setattr(block, "CHUNK_BYTES", 2000)
    source = sources.open_file(path, BY, vectors)
    blocks = [part for whole in pickle.loads(pickle.dumps(source.partitions)) for part in whole()]
    assert source.rows == ROWS
    assert len(blocks) > 1 or name in (
        "hdf5 lzf",
        "zarr 2",
        "anndata zarr obsm",
    )  # whose chunks are longer than the array
    assert [one.first for one in blocks] == np.cumsum([0, *(one.rows.shape[0] for one in blocks)])[:-1].tolist()
    rows = [one.rows.toarray() if sp.issparse(one.rows) else one.rows for one in blocks]
    np.testing.assert_array_equal(np.concatenate(rows), X)
    for name, values in (("site", SITE), ("day", DAY)):
        assert [value for one in blocks for value in one.keys.column(name).to_pylist()] == values.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("ending", [".h5", ".pt", ".h5ad"])
def test_narrow_types_keep_their_precision(dtype, ending, tmp_path):
    path, values = tmp_path / f"x{ending}", (X * 10).astype(dtype)
    save = {".h5": hdf5, ".pt": tensors, ".h5ad": lambda path, rows: save_anndata(path, annotated(rows))}[ending]
    save(path, values)
    summary = cf.summarize(path, by="site")
    assert_same(summary, cf.summarize(values.astype(float), by={"site": SITE}), rtol=1e-6)
    assert summary.dtype == dtype


def test_bfloat16_tensors_are_read(tmp_path):
    rows = torch.tensor(X).to(torch.bfloat16)
    torch.save({"x": rows, "site": SITE.tolist()}, tmp_path / "x.pt")
    assert_same(cf.summarize(tmp_path / "x.pt", by="site"), cf.summarize(rows.double(), by={"site": SITE}), 1e-6)


@pytest.mark.parametrize("size", [200, 2**26])
@pytest.mark.parametrize("ending", [".h5ad", ".zarr"])
def test_sparse_equals_dense(ending, size, tmp_path, monkeypatch):
    expected = cf.summarize(SPARSE, by={"site": SITE})
    path = tmp_path / f"x{ending}"
    save_anndata(path, annotated(sp.csr_matrix(SPARSE), layers={"columns": sp.csc_matrix(SPARSE)}))
    monkeypatch.setattr(block, "CHUNK_BYTES", size)
    assert_same(cf.summarize(path, by="site"), expected)
    with pytest.warns(cf.CrossfusionWarning, match=r"columns is stored by columns \(CSC\).*into memory"):
        assert_same(cf.summarize(path, by="site", vectors="columns"), expected)


def test_sparse_rows_in_several_blocks_are_put_together(tmp_path):
    """Whatever needs all rows at once, on the command line."""
    for name, rows in (("a", SPARSE), ("b", 2 * SPARSE)):
        save_anndata(tmp_path / f"{name}.h5ad", annotated(sp.csr_matrix(rows)))
    files = [tmp_path / "a.h5ad", tmp_path / "b.h5ad"]
    dense, by = np.concatenate([SPARSE, 2 * SPARSE]), np.concatenate([SITE, SITE])
    pair = by != "B"
    interval: Any = cf.cfd(dense[pair], labels=by[pair], level=0.95, weights="balanced").interval
    found = run_json("matrix", tmp_path, "--between", "site", "--level", "0.95")
    assert found["upper"][0][2] == pytest.approx(interval[1], rel=1e-9)
    found = run_json("test", tmp_path, "--between", "site", "--permutations", "99")
    assert found["pvalue"] == cf.permutation_test(dense, by, permutations=99).pvalue
    found = run_json("compare", *files, "--permutations", "99")
    assert found["pvalue"] == cf.permutation_test(dense, np.repeat([0, 1], ROWS), permutations=99).pvalue
    found = run_json("compare", *files, "--distance", "cfd,energy")
    assert found["distances"]["energy"] == pytest.approx(cf.distance("energy", SPARSE, 2 * SPARSE), rel=1e-9)
    assert found["counts"] == {"a": ROWS, "b": ROWS}
    assert found["distances"]["cfd"] == pytest.approx(cf.cfd(SPARSE, 2 * SPARSE).distance, rel=1e-12)


def test_blocks_of_sparse_rows_are_cut_by_stored_values(tmp_path, monkeypatch):
    save_anndata(tmp_path / "x.h5ad", annotated(sp.csr_matrix(SPARSE)))
    monkeypatch.setattr(block, "CHUNK_BYTES", 1000)
    blocks = list(sources.open_file(tmp_path / "x.h5ad", BY).chunks())
    assert max(one.rows.data.nbytes + one.rows.indices.nbytes for one in blocks) <= 1000
    assert len(blocks) > 5


def rich_observations():
    with quiet():
        data = annotated(X)
        data.obs["half"] = np.arange(ROWS) % 4 / 2
        data.obs["flag"] = np.arange(ROWS) % 2 == 0
        data.obs["maybe"] = pd.array(([1, None, 2] * ROWS)[:ROWS], dtype="Int64")
        data.obs["perhaps"] = pd.array(([True, None] * ROWS)[:ROWS], dtype="boolean")
        data.obs["grade"] = pd.Categorical((["lo", None, "hi"] * ROWS)[:ROWS], pd.Index(["lo", "hi"], dtype=object))
        data.obs["level"] = pd.Categorical(([10, 20] * ROWS)[:ROWS])
        data.obs_names = pd.Index([f"cell{k % 2}" for k in range(ROWS)], dtype=object)
        data.obs.index.name = "cell"
    return data


@pytest.mark.parametrize("ending", [".h5ad", ".zarr"])
@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("half", [0.0, 0.5, 1.0, 1.5]),
        ("flag", [False, True]),
        ("maybe", [1, 2, None]),
        ("perhaps", [True, None]),
        ("grade", ["hi", "lo", None]),
        ("level", [10, 20]),
        ("cell", ["cell0", "cell1"]),
        ("index", ["cell0", "cell1"]),
    ],
)
def test_every_kind_of_obs_column_is_a_factor(column, values, ending, tmp_path, monkeypatch):
    monkeypatch.setattr(block, "CHUNK_BYTES", 1000)
    save_anndata(tmp_path / f"x{ending}", rich_observations())
    assert cf.summarize(tmp_path / f"x{ending}", by=column).keys.column(column).to_pylist() == values


def test_categories_of_old_anndata_files(tmp_path):
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file["X"] = X
        file["obs/_index"], file["var/_index"] = list(map(str, range(ROWS))), list("abcdef")
        file["obs/site"] = np.where(SITE == "A", 0, np.where(SITE == "B", 1, -1)).astype("i1")
        file["obs/__categories/site"] = ["A", "B"]
        file["obs"].attrs.update({"_index": "_index", "column-order": ["site"]})
        file["var"].attrs["_index"] = "_index"
    keys = cf.summarize(tmp_path / "x.h5ad", by="site").keys
    assert keys.column("site").to_pylist() == ["A", "B", None]


def test_features_of_several_anndata_files_go_together_by_name(tmp_path):
    first, second = annotated(X), annotated(sp.csr_matrix(X[:, ::-1]))
    second.var.index = second.var.index[::-1]
    paths = [tmp_path / "a.h5ad", tmp_path / "b.h5ad"]
    for path, data in zip(paths, (first, second), strict=True):
        save_anndata(path, data)
    np.testing.assert_allclose(cf.summarize(paths, by=BY).moments.mean, EXPECTED.moments.mean, rtol=1e-12)
    assert cf.summarize(paths[0], by=BY, vectors=["X/g4", "X/g1"]).dim == 2
    np.testing.assert_array_equal(next(sources.open_file(paths[0], [], "X/g1").chunks()).rows, X[:, [1]])
    with pytest.raises(cf.InputError, match=r"no feature of X 'g9'"):
        cf.summarize(paths[0], by=BY, vectors=["X/g9", "X/g1"])


def test_hdf5_enumerations_and_booleans_are_factors(tmp_path):
    kind = h5py.enum_dtype({"tumour": 1, "stroma": 5})
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"], file["ok"] = X, DAY > 0
        file.create_dataset("tissue", data=np.where(SITE == "A", 1, 5), dtype=kind)
    keys = cf.summarize(tmp_path / "x.h5", by=["ok", "tissue"]).keys
    assert set(keys.column("tissue").to_pylist()) == {"tumour", "stroma"}
    assert set(keys.column("ok").to_pylist()) == {True, False}


def test_arrays_and_tensors_without_names_have_no_factors(tmp_path):
    zarr.create_array(tmp_path / "x.zarr", data=X)
    torch.save(torch.tensor(X), tmp_path / "x.pt")
    for name in ("x.zarr", "x.pt"):
        np.testing.assert_array_equal(next(sources.open_file(tmp_path / name, []).chunks()).rows, X)
        with pytest.raises(cf.InputError, match="without names, so 'site' is not in it"):
            cf.summarize(tmp_path / name, by="site")


def test_zarr_opens_what_fsspec_opens():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarr.open_group("memory://stores/x.zarr", mode="w")
        group.create_array("x", data=X, chunks=(50, DIM))
    source = zarr_source.from_zarr("memory://stores/x.zarr", [])
    np.testing.assert_array_equal(np.concatenate([one.rows for one in source.chunks()]), X)


def test_uncompressed_chunks_that_lie_apart_are_read_in_order(tmp_path, monkeypatch):
    rows = rng.normal(size=(4000, 64))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        sets = [file.create_dataset(name, rows.shape, "f8", chunks=(150, 64)) for name in ("x", "other")]
        for start in range(0, 4000, 150):
            for one in sets:
                one[start : start + 150] = rows[start : start + 150]
    for size in (1, 2**18, 2**26):
        monkeypatch.setattr(block, "CHUNK_BYTES", size)
        blocks = list(sources.open_file(tmp_path / "x.h5", [], "x").chunks())
        np.testing.assert_array_equal(np.concatenate([one.rows for one in blocks]), rows)


def refused(path, content):
    with h5py.File(path, "w") as file:
        content(file)


def declared(file, **options):
    file["site"] = SITE.tolist()
    return file.create_dataset("x", (10**12, DIM), "f8", **options)


BAD_HDF5: dict[str, Any] = {
    "no rows in it": (lambda file: file.create_group("x"), {}, "no two-dimensional array"),
    "two matrices": (lambda file: file.update(a=X, b=X), {}, r"2 two-dimensional arrays of numbers \(a, b\)"),
    "misspelt": (lambda file: file.update(features=X), {"vectors": "feature"}, "did you mean 'features'"),
    "no factor": (lambda file: file.update(x=X, sites=DAY), {}, "no array 'site': did you mean 'sites'"),
    "one dimension": (lambda file: file.update(x=X[:, 0], site=DAY), {"vectors": "x"}, "shape .257,.: vectors need"),
    "three dimensions": (lambda file: file.update(x=np.ones((2, 3, 4))), {"vectors": "x"}, "rows × features"),
    "a group": (lambda file: file.create_group("x"), {"vectors": "x"}, "is a group"),
    "complex": (lambda file: file.update(x=X * 1j), {"vectors": "x"}, "holds complex128"),
    "compound": (lambda file: file.update(x=np.zeros((3, 2), "i4,f4")), {"vectors": "x"}, "real numbers"),
    "lengths": (lambda file: file.update(x=X, site=DAY[:5]), {}, "5 entries for 257 rows"),
    "factor of two dimensions": (lambda file: file.update(x=X, site=X), {"vectors": "x"}, "one value per row"),
    "factor of references": (
        lambda file: file.update(x=X, site=np.array([file.ref] * ROWS, h5py.ref_dtype)),
        {},
        "lists or references",
    ),
    "text that is not UTF-8": (lambda file: file.update(x=X, site=np.array([b"\xff"] * ROWS)), {}, "cannot be read"),
    "declared, contiguous": (declared, {}, "never written"),
    "declared in chunks": (lambda file: declared(file, chunks=(10**6, DIM)), {}, "0 of 1000000 chunks"),
    "no rows": (lambda file: file.update(x=X[:0], site=DAY[:0]), {}, "no rows"),
    "no features": (lambda file: file.update(x=X[:, :0], site=DAY), {}, "without features"),
    "chunks beyond memory": (
        lambda file: declared(file, chunks=(5 * 10**7, DIM), compression="gzip"),
        {},
        "chunks of more than 1 GB",
    ),
    "two names": (lambda file: file.update(x=X, site=DAY), {"vectors": ["x", "site"]}, "name of one array"),
}


@pytest.mark.parametrize("name", BAD_HDF5)
def test_bad_hdf5_files_get_one_clear_sentence(name, tmp_path, refuses):
    content, options, message = BAD_HDF5[name]
    refused(tmp_path / "x.h5", content)
    with refuses(message, cf.CrossfusionError):
        cf.summarize(tmp_path / "x.h5", by="site", **options)


def test_values_in_other_files_are_refused(tmp_path, refuses):
    hdf5(tmp_path / "a.h5")
    layout = h5py.VirtualLayout(X.shape, "f8")
    layout[:] = h5py.VirtualSource(tmp_path / "a.h5", "features", X.shape)
    refused(tmp_path / "x.h5", lambda file: (file.create_virtual_dataset("x", layout), file.update(site=DAY)))
    with refuses("in other files"):
        cf.summarize(tmp_path / "x.h5", by="site")


LINKS: dict[str, Any] = {
    "an array": lambda file: file.update(x=h5py.ExternalLink("other.h5", "features"), site=DAY),
    "a group": lambda file: file.update(g=h5py.ExternalLink("other.h5", "/"), site=DAY),
    "a soft link to it": lambda file: file.update(
        g=h5py.ExternalLink("other.h5", "/"), x=h5py.SoftLink("/g/features"), site=DAY
    ),
    "a factor": lambda file: file.update(x=X, site=h5py.ExternalLink("other.h5", "site")),
    "raw bytes": lambda file: (
        file.create_dataset("x", data=X, external=[("raw.bin", 0, h5py.h5f.UNLIMITED)]),
        file.update(site=DAY),
    ),
}


@pytest.mark.parametrize("name", LINKS)
def test_links_into_other_files_are_refused(name, tmp_path, refuses, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hdf5(tmp_path / "other.h5", np.full_like(X, 7))
    refused(tmp_path / "x.h5", LINKS[name])
    vectors = "g/features" if name == "a group" else "x"
    with refuses("keeps its values in other files: read those files"):
        cf.summarize(tmp_path / "x.h5", by="site", vectors=vectors)


def test_links_of_a_remote_file_do_not_reach_this_machine(tmp_path, refuses):
    import fsspec

    hdf5(tmp_path / "other.h5")
    refused(
        tmp_path / "x.h5",
        lambda file: file.update(x=h5py.ExternalLink(str(tmp_path / "other.h5"), "features"), site=DAY),
    )
    fsspec.filesystem("memory").pipe("/links/x.h5", (tmp_path / "x.h5").read_bytes())
    with refuses("no two-dimensional array|in other files"):
        cf.summarize("memory://links/x.h5", by="site")


def test_links_within_a_file_and_user_blocks_are_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with h5py.File("x.h5", "w", userblock_size=1024) as file:
        file["rows"], file["site"] = X, SITE.tolist()
        file["soft"], file["self"], file["day"] = h5py.SoftLink("/rows"), h5py.ExternalLink("x.h5", "/rows"), DAY
        file["hard"] = file["rows"]
    for name in ("rows", "soft", "self", "hard"):  # a link to the file itself leads nowhere else
        assert_same(cf.summarize("x.h5", by=BY, vectors=name))


def test_names_that_are_not_text_are_shown_all_the_same(tmp_path, refuses):
    refused(tmp_path / "x.h5", lambda file: file.update({b"\xff\xfe": X, b"\xfd": X}))
    with refuses(r"2 two-dimensional arrays of numbers \(.*xf"):
        cf.summarize(tmp_path / "x.h5", by="site")


def test_texts_of_impossible_length_are_refused(tmp_path, refuses):
    hdf5(tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5") as file:
        place = file["site"].id.get_offset()
    content = bytearray((tmp_path / "x.h5").read_bytes())
    content[place : place + 4] = (4 * 10**9).to_bytes(4, "little")
    (tmp_path / "x.h5").write_bytes(content)
    with refuses("cannot be read as an HDF5 file", cf.FileError):
        cf.summarize(tmp_path / "x.h5", by="site")


def test_zarr_that_was_only_declared_is_refused(tmp_path, refuses):
    group = zarr.open_group(tmp_path / "x.zarr", mode="w")
    group.create_array("x", shape=(10**12, DIM), chunks=(1000, DIM), dtype="f8")[:5] = 1
    group.create_array("wide", shape=(10**6, 10**6), chunks=(1000, 10), dtype="f8")
    group.create_array("huge", shape=(10**9, DIM), chunks=(10**9, DIM), dtype="f8")
    for name, message in (("x", "never written"), ("wide", "never written"), ("huge", "chunks of more than 1 GB")):
        with refuses(message, cf.FileError):
            cf.summarize(tmp_path / "x.zarr", by="x", vectors=name)


def inflate_zeros(size):
    """Deflated zeros."""
    coder = zlib.compressobj(9)
    return b"".join(coder.compress(bytes(2**20)) for _ in range(size // 2**20)) + coder.flush()


@pytest.mark.parametrize("codec", ["zstd", "blosc", "lz4", "zlib"])
def test_zarr_chunks_that_decode_to_more_than_was_declared_are_refused(tmp_path, refuses, codec):
    codec = numcodecs.get_codec({"id": codec})
    group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=2)
    group.create_array("x", shape=(10, DIM), chunks=(10, DIM), dtype="f8", compressors=codec)[:] = 1
    group.create_array("site", shape=(10,), dtype="i8")[:] = np.arange(10) % 2
    assert cf.summarize(tmp_path / "x.zarr", by="site", vectors="x").moments.count.sum() == 10
    bomb = inflate_zeros(2**31) if codec.codec_id == "zlib" else codec.encode(bytes(2**26))
    (tmp_path / "x.zarr" / "x" / "0.0").write_bytes(bomb)
    with refuses("decodes to more than was declared", cf.FileError):
        cf.summarize(tmp_path / "x.zarr", by="site", vectors="x")


@pytest.mark.parametrize("codec", ["bz2", "lzma"])
def test_zarr_chunks_of_any_ratio_are_refused_if_they_decode_to_more_than_was_declared(tmp_path, refuses, codec):
    codec = numcodecs.get_codec({"id": codec})
    group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=2)
    group.create_array("x", shape=(10, DIM), chunks=(10, DIM), dtype="f8", compressors=codec)[:] = 1
    group.create_array("site", shape=(10,), dtype="i8")[:] = np.arange(10) % 2
    assert cf.summarize(tmp_path / "x.zarr", by="site", vectors="x").moments.count.sum() == 10
    (tmp_path / "x.zarr" / "x" / "0.0").write_bytes(codec.encode(bytes(2**24)))
    with refuses("decodes to more than was declared", cf.FileError):
        cf.summarize(tmp_path / "x.zarr", by="site", vectors="x")


def compress_without_size(content):
    """A zstd frame that does not say how long its content is."""
    target = pa.BufferOutputStream()
    with pa.CompressedOutputStream(target, "zstd") as stream:
        stream.write(content)
    return target.getvalue().to_pybytes()


def test_zarr_frames_without_a_size_are_decoded_if_they_hold_what_was_declared(tmp_path, refuses):
    group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=3)
    array = group.create_array("x", shape=(10, DIM), chunks=(10, DIM), dtype="f8", compressors=zarr.codecs.ZstdCodec())
    group.create_array("site", shape=(10,), dtype="i8")[:] = np.arange(10) % 2
    array[:] = 1
    place = tmp_path / "x.zarr" / "x" / "c" / "0" / "0"
    place.write_bytes(compress_without_size(np.full((10, DIM), 7.0).tobytes()))
    assert (cf.summarize(tmp_path / "x.zarr", by="site", vectors="x").moments.mean == 7).all()
    place.write_bytes(compress_without_size(bytes(2**24)))
    with refuses("decodes to more than was declared", cf.FileError):
        cf.summarize(tmp_path / "x.zarr", by="site", vectors="x")


@pytest.mark.parametrize("where", ["start", "end"])
def test_zarr_chunks_in_shards_that_decode_to_more_than_was_declared_are_refused(tmp_path, refuses, where):
    group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=3)
    inner = [zarr.codecs.BytesCodec(), zarr.codecs.ZstdCodec()]
    shard = zarr.codecs.ShardingCodec(chunk_shape=(5, DIM), codecs=inner, index_location=where)
    options = {"shape": (10, DIM), "chunks": (10, DIM), "dtype": "f8"}
    group.create_array("x", **options, serializer=shard, compressors=None)[:] = 1
    group.create_array("site", shape=(10,), dtype="i8")[:] = np.arange(10) % 2
    assert cf.summarize(tmp_path / "x.zarr", by="site", vectors="x").moments.count.sum() == 10
    place = tmp_path / "x.zarr" / "x" / "c" / "0" / "0"
    bomb, header = numcodecs.Zstd().encode(bytes(2**24)), 36 if where == "start" else 0
    index = np.array([header, len(bomb)] * 2, "<u8").tobytes()
    index += google_crc32c.value(index).to_bytes(4, "little")
    place.write_bytes(index + bomb if where == "start" else bomb + index)
    with refuses("decodes to more than was declared", cf.FileError):
        cf.summarize(tmp_path / "x.zarr", by="site", vectors="x")


def test_zarr_chunks_longer_than_declared_or_compressed_twice_are_refused(tmp_path, refuses):
    group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=3)
    group.create_array("x", shape=(10, DIM), chunks=(10, DIM), dtype="f8", compressors=None)[:] = 1
    twice = [zarr.codecs.GzipCodec(), zarr.codecs.ZstdCodec()]
    group.create_array("y", shape=(10, DIM), chunks=(10, DIM), dtype="f8", compressors=twice)[:] = 1
    group.create_array("site", shape=(10,), dtype="i8")[:] = np.arange(10) % 2
    assert cf.summarize(tmp_path / "x.zarr", by="site", vectors="x").moments.count.sum() == 10
    os.truncate(tmp_path / "x.zarr" / "x" / "c" / "0" / "0", 2**31)  # which takes no room on the disk
    for name, message in (("x", "decodes to more than was declared"), ("y", "compressed 2 times, by gzip, zstd")):
        with refuses(message, cf.FileError):
            cf.summarize(tmp_path / "x.zarr", by="site", vectors=name)


def test_hdf5_chunks_that_decode_to_more_than_was_declared_are_refused(tmp_path, refuses):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["site"] = np.arange(10) % 2
        rows = file.create_dataset("x", (10, DIM), "f8", chunks=(10, DIM), compression="gzip")
        rows.id.write_direct_chunk((0, 0), inflate_zeros(2**31))
    with refuses("decodes to more than was declared", cf.FileError):
        cf.summarize(tmp_path / "x.h5", by="site", vectors="x")


def test_hdf5_chunks_that_are_compressed_twice_are_refused(tmp_path, refuses):
    settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    settings.set_chunk((10, DIM))
    settings.set_shuffle()
    settings.set_deflate(4)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["site"] = np.arange(10) % 2
        space = h5py.h5s.create_simple((10, DIM))
        for name in (b"once", b"twice"):
            made = h5py.Dataset(h5py.h5d.create(file.id, name, h5py.h5t.IEEE_F64LE, space, settings))
            made[:] = 1
            settings.set_filter(h5py.h5z.FILTER_DEFLATE, 0, (4,))
        made.id.write_direct_chunk((0, 0), zlib.compress(inflate_zeros(2**28), 9))
    assert cf.summarize(tmp_path / "x.h5", by="site", vectors="once").moments.count.sum() == 10
    with refuses("twice is compressed 2 times", cf.FileError):
        cf.summarize(tmp_path / "x.h5", by="site", vectors="twice")


def test_zarr_never_unpickles(tmp_path, refuses):
    with_zarr(tmp_path / "x.zarr", zarr_format=2, chunks=(50, DIM))
    about = json.loads((tmp_path / "x.zarr/day/.zarray").read_text())
    about |= {"dtype": "|O", "filters": [{"id": "pickle", "protocol": 5}], "fill_value": None, "compressor": None}
    (tmp_path / "x.zarr/day/.zarray").write_text(json.dumps(about))
    marker = tmp_path / "unpickled"
    for chunk in (tmp_path / "x.zarr/day").glob("[0-9]*"):
        chunk.write_bytes(pickle.dumps(Touch(str(marker))))
    with refuses("pickled objects|cannot be read", cf.CrossfusionError):
        cf.summarize(tmp_path / "x.zarr", by="day")
    assert not marker.exists()


class Touch:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("zipped", [True, False])
def test_torch_files_of_other_objects_are_refused(zipped, tmp_path, refuses):
    marker = tmp_path / "unpickled"
    torch.save({"x": Touch(str(marker))}, tmp_path / "x.pt", _use_new_zipfile_serialization=zipped)
    with refuses("tensors", cf.FileError):
        cf.summarize(tmp_path / "x.pt", by="site")
    assert not marker.exists()


BAD_TORCH: dict[str, Any] = {
    "a list": ([1, 2], {}, "holds list"),
    "no matrix": ({"site": [1]}, {}, "0 two-dimensional tensors"),
    "two matrices": ({"a": torch.ones(2, 2), "b": torch.ones(2, 2), "site": [1, 2]}, {}, "2 two-dimensional"),
    "misspelt": ({"x": torch.ones(2, 2), "sites": [1, 2]}, {}, "did you mean 'sites'"),
    "lengths": ({"x": torch.ones(2, 2), "site": [1]}, {}, "1 entry for 2 rows"),
    "one dimension": ({"x": torch.ones(2), "site": [1]}, {"vectors": "x"}, "has shape"),
    "complex": ({"x": torch.ones(1, 2) * 1j, "site": [1]}, {}, "complex"),
    "sparse": ({"x": torch.eye(2).to_sparse(), "site": [1, 2]}, {"vectors": "x"}, "sparse"),
    "expanded": ({"x": torch.ones(1, 2).expand(10**12, 2), "site": [1]}, {}, "repeats values"),
    "mixed factor": ({"x": torch.ones(2, 2), "site": [1, "a"]}, {}, "one plain value"),
    "factor of two dimensions": ({"x": torch.ones(2, 2), "site": torch.ones(2, 2)}, {"vectors": "x"}, "one plain"),
    "factor that is a number": ({"x": torch.ones(2, 2), "site": 3}, {}, "is int"),
}


@pytest.mark.parametrize("name", BAD_TORCH)
def test_bad_torch_files_get_one_clear_sentence(name, tmp_path, refuses):
    content, options, message = BAD_TORCH[name]
    torch.save(content, tmp_path / "x.pt")
    with refuses(message, cf.CrossfusionError):
        cf.summarize(tmp_path / "x.pt", by="site", **options)


BAD_ANNDATA: dict[str, Any] = {
    "no such matrix": (lambda file: None, {"vectors": "X_umap"}, "no matrix 'X_umap'"),
    "no such column": (lambda file: None, {"by": "sites"}, "no column of obs 'sites': did you mean 'site'"),
    "no obs": (lambda file: file.pop("obs"), {}, "has no obs"),
    "codes beyond the categories": (lambda file: file["obs/site/codes"].write_direct(np.full(ROWS, 9, "i1")), {}, "9"),
    "indices beyond the features": (lambda file: file["X/indices"].__setitem__(3, 10**6), {}, "1000000"),
    "indices below 0": (lambda file: file["X/indices"].__setitem__(3, -5), {}, "-5"),
    "indptr in disorder": (lambda file: file["X/indptr"].__setitem__(3, 10**6), {}, "not in order"),
    "shape of another matrix": (lambda file: file["X"].attrs.__setitem__("shape", [5, DIM]), {}, "do not fit"),
    "features without names": (lambda file: file["X"].attrs.__setitem__("shape", [ROWS, 10**6]), {}, "var has 6"),
    "unknown encoding": (lambda file: file["X"].attrs.__setitem__("encoding-type", "awkward"), {}, "awkward"),
}


@pytest.mark.parametrize("name", BAD_ANNDATA)
def test_bad_anndata_files_get_one_clear_sentence(name, tmp_path, refuses):
    change, options, message = BAD_ANNDATA[name]
    save_anndata(tmp_path / "x.h5ad", annotated(sp.csr_matrix(X)))
    with h5py.File(tmp_path / "x.h5ad", "r+") as file:
        change(file)
    with refuses(message, cf.CrossfusionError):
        cf.summarize(tmp_path / "x.h5ad", **({"by": "site"} | options))


def damages(content, number):
    """Cut short, and with some bytes changed."""
    draw = np.random.default_rng(len(content))
    for _ in range(number):
        yield content[: draw.integers(0, len(content))]
        bad = bytearray(content)
        for place in draw.integers(0, len(content), draw.integers(1, 20)):
            bad[place] = draw.integers(0, 256)
        yield bytes(bad)


def read_all(path, vectors):
    """What becomes of a file; errors that are not ours pass through."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cf.summarize(path, by=BY, vectors=vectors, nan="drop")
    except cf.CrossfusionError as problem:
        return "in one line" if "\n" not in str(problem) else "in several"
    return "read"


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("name", ["hdf5", "hdf5 chunks", "hdf5 gzip", "h5ad csr", "torch", "torch before 1.6"])
def test_damaged_files_give_errors_of_ours(name, tmp_path):
    path, vectors = saved(name, tmp_path)
    content = path.read_bytes()
    outcomes = set()
    for bad in damages(content, 25):
        path.write_bytes(bad)
        outcomes.add(read_all(path, vectors))
    assert outcomes - {"read"} == {"in one line"}


@pytest.fixture
def little_memory():
    """No more than two gigabytes beyond what is in use: some libraries take as much as a damaged file asks for."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + 2 * 2**30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("name", ["zarr 3", "zarr 2", "anndata zarr"])
def test_damage_in_any_file_of_a_zarr_folder_gives_errors_of_ours(name, tmp_path):
    path, vectors = saved(name, tmp_path)
    outcomes = set()
    unread = {"layers", "obsm", "obsp", "uns", "varm", "varp"}
    for file in sorted(one for one in path.rglob("*") if one.is_file() and one.parent.name not in unread):
        content = file.read_bytes()
        for bad in damages(content, 1):
            file.write_bytes(bad)
            outcomes.add(read_all(path, vectors))
        file.write_bytes(content)
    assert outcomes == {"read", "in one line"}
    assert read_all(path, vectors) == "read"


@pytest.mark.parametrize("ending", [".h5", ".h5ad", ".zarr.zip", ".pt"])
def test_empty_and_strange_files_are_refused(ending, tmp_path, refuses):
    for content in (b"", b"not what it says", bytes(4096)):
        (tmp_path / f"x{ending}").write_bytes(content)
        with refuses("cannot be read as|other objects", cf.FileError):
            cf.summarize(tmp_path / f"x{ending}", by="site")


def test_folders_that_are_no_zarr_stores_are_refused(tmp_path, refuses):
    (tmp_path / "x.zarr").mkdir()
    with refuses("has no file below it with an ending that is known", cf.FileError):
        cf.summarize(tmp_path / "x.zarr", by="site")
    shutil.rmtree(tmp_path / "x.zarr")
    with refuses("does not exist", cf.FileError):
        cf.summarize(tmp_path / "x.zarr", by="site")
