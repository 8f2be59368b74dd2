"""The files that get broken: whole ones, and those that are whole but hold something that is not rows and factors."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

import crossfusion as cf

ROWS, DIM = 60, 4
rng = np.random.default_rng(5)
X = rng.normal(size=(ROWS, DIM))
NUMBER = np.arange(ROWS) % 3
SITE = np.array([f"site {k}" for k in NUMBER])
ID = np.array([f"id {k}" for k in range(ROWS)])
TEXTS = ("x.tsv", *(f"x{kind}.{codec}" for kind in (".csv", ".tsv") for codec in ("gz", "bz2", "zst")))


def table() -> pa.Table:
    return pa.table({"site": SITE, "v": pa.array(X.tolist(), pa.list_(pa.float64(), DIM))})


def wide() -> pa.Table:
    return pa.table({"site": SITE, **{f"v{k}": X[:, k] for k in range(DIM)}})


def write_npy(path: Path) -> None:
    np.save(path, X)


def write_npz(path: Path) -> None:
    np.savez(path, v=X, site=SITE)


def write_packed(path: Path) -> None:
    np.savez_compressed(path, v=X, site=SITE)


def text(content: pa.Table, delimiter: str = ",") -> bytes:
    sink = io.BytesIO()
    pyarrow.csv.write_csv(content, sink, pyarrow.csv.WriteOptions(delimiter=delimiter))
    return sink.getvalue()


def write_text(path: Path, content: pa.Table | None = None) -> None:
    """A text table, packed as its ending says."""
    codecs = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
    plain = text(wide() if content is None else content, "\t" if ".tsv" in path.name else ",")
    with pa.OSFile(str(path), "wb") as file:
        if path.suffix not in codecs:
            file.write(plain)
            return
        with pa.CompressedOutputStream(file, codecs[path.suffix]) as sink:
            sink.write(plain)


def write_texts(path: Path) -> None:
    path.mkdir()
    for name in TEXTS:
        write_text(path / name)


def write_parquet(path: Path) -> None:
    pq.write_table(table(), path, row_group_size=25)


def write_wide(path: Path) -> None:
    pq.write_table(wide(), path, compression="zstd")


def write_many_columns(path: Path) -> None:
    columns = {f"v{k}": X[:, k % X.shape[1]] for k in range(20)}
    pq.write_table(pa.table({"site": SITE, **columns}), path)


def write_summary(path: Path) -> None:
    cf.summarize(X, by={"site": SITE}).write(path)


def write_arrow(path: Path) -> None:
    with pa.ipc.new_file(str(path), table().schema) as sink:
        sink.write_table(table(), max_chunksize=20)


def write_stream(path: Path) -> None:
    with pa.ipc.new_stream(str(path), table().schema) as sink:
        sink.write_table(table(), max_chunksize=20)


def write_feather(path: Path) -> None:
    pyarrow.feather.write_feather(wide(), str(path))


def write_hdf5(path: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=X, chunks=(20, DIM), compression="gzip")
        file.create_dataset("site", data=SITE.astype("S"))


def write_hdf5_tree(path: Path, latest: bool = True) -> None:
    """Groups in groups, in the file format of today or the oldest, texts of any length, and rows that are mapped."""
    import h5py

    with h5py.File(path, "w", libver="latest" if latest else None) as file:
        group = file.create_group("a/b")
        group.attrs["about"] = "texts in a collection"
        group.create_dataset("v", data=X)
        group.create_dataset("site", data=SITE.astype(object), dtype=h5py.string_dtype())


def write_h5ad(path: Path) -> None:
    import anndata
    import pandas as pd
    from scipy import sparse

    names = pd.Index([f"site {k}" for k in range(3)], dtype=object)
    index = pd.Index([f"cell {k}" for k in range(ROWS)], dtype=object)
    obs = pd.DataFrame({"site": pd.Categorical.from_codes(NUMBER, names)}, index=index)
    var = pd.DataFrame(index=pd.Index([f"gene {k}" for k in range(DIM)], dtype=object))
    anndata.AnnData(sparse.csr_matrix(np.round(X)), obs=obs, var=var, obsm={"v": X}).write_h5ad(path)


def write_zarr(path: Path, version: int = 3) -> None:
    import zarr

    store = zarr.storage.ZipStore(path, mode="w") if path.suffix == ".zip" else str(path)
    group = zarr.open_group(store, mode="w", zarr_format=version)
    group.create_array("v", shape=X.shape, chunks=(20, DIM), dtype="f8")[:] = X
    group.create_array("site", shape=(ROWS,), dtype="i8")[:] = NUMBER
    if path.suffix == ".zip":
        group.store.close()


def write_old_zarr(path: Path) -> None:
    write_zarr(path, version=2)


def write_pt(path: Path, now: bool = True) -> None:
    import torch

    content = {"v": torch.tensor(X), "site": torch.tensor(NUMBER)}
    with open(path, "wb") as file:  # torch does not write to any name
        torch.save(content, file, _use_new_zipfile_serialization=now)


def write_old_pt(path: Path) -> None:
    write_pt(path, now=False)


def write_lake(path: Path) -> None:
    """A folder whose folders name sites."""
    for k, name in enumerate(("x.parquet", "x.csv", "x.arrow")):
        folder = path / f"site={k}"
        folder.mkdir(parents=True)
        rows = wide().drop_columns("site").slice(20 * k, 20)
        if name == "x.csv":
            write_text(folder / name, rows)
        elif name == "x.arrow":
            pyarrow.feather.write_feather(rows, str(folder / name))
        else:
            pq.write_table(rows, folder / name)


def write_manifests(path: Path) -> None:
    """Vectors, and tables that hold their factors: by key, by order, by file."""
    path.mkdir()
    pq.write_table(table().drop_columns("site").append_column("id", pa.array(ID)), path / "x.parquet")
    by_key = pa.table({"id": ID, "site": SITE})
    for name in ("m.csv", "m.tsv.gz"):
        write_text(path / name, by_key)
    pq.write_table(by_key, path / "m.parquet")
    pyarrow.feather.write_feather(by_key, str(path / "m.feather"))
    write_text(path / "files.csv", pa.table({"file": ["x.parquet", "y.parquet"], "site": ["a", "b"]}))


def write_some(path: Path) -> None:
    """A file of each kind that can be read from elsewhere."""
    path.mkdir()
    for name, write in {
        "x.npz": write_npz,
        "x.csv": write_text,
        "x.parquet": write_parquet,
        "x.arrow": write_arrow,
        "x.h5": write_hdf5,
        "x.pt": write_pt,
    }.items():
        write(path / name)
