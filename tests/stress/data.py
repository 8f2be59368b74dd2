"""The files that commands are given: whole ones, and some that no command can make sense of."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import crossfusion as cf

ROWS, DIM = 120, 4
rng = np.random.default_rng(3)
_row = np.arange(ROWS)
BY = {
    "site": np.array(list("ABC"))[_row % 3],
    "scanner": np.array(["s1", "s2"])[_row // 3 % 2],
    "label": _row // 6 % 2,
    "patient": np.array([f"P{k:02d}" for k in _row % 3 + 3 * (_row // 30)]),
    "week": _row // 12,
}
X = rng.normal(size=(ROWS, DIM)) + 0.7 * (_row % 3)[:, None] + 0.3 * rng.normal(size=(12, DIM))[_row % 12]
HOSTILE = ("<script>alert(1)</script>", "[bold]x[/bold]", "\x1b[31mred", "a\nb", "=1+1", "\u202egnp", "${x}", "")


def vectors(x: np.ndarray) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(x).reshape(-1)), x.shape[1])


def table(x: np.ndarray = X, rows: slice = slice(None)) -> pa.Table:
    return pa.table({name: pa.array(values[rows]) for name, values in BY.items()} | {"v": vectors(x[rows])})


def summary(rows: slice = slice(None)) -> cf.Summary:
    return cf.summarize(X[rows], by={name: values[rows] for name, values in BY.items()})


def write_whole_files(folder: Path) -> None:
    """Rows, summaries, cells and images that every command can be given."""
    pq.write_table(table(), folder / "x.parquet")
    pq.write_table(table(0.5 * X), folder / "half.parquet")
    header = ",".join([*BY, *(f"v{k}" for k in range(DIM))])
    lines = [",".join(map(str, [*(values[i] for values in BY.values()), *X[i]])) for i in range(ROWS)]
    (folder / "x.csv").write_text("\n".join([header, *lines]))
    (folder / "policy.toml").write_text('[[rule]]\nbetween = "site"\nmax = 9.0\n')
    (folder / "keys.csv").write_text("\n".join(["site,scanner", *(",".join(line.split(",")[:2]) for line in lines)]))
    np.save(folder / "x.npy", X)
    np.save(folder / "a.npy", X[::2])
    np.save(folder / "b.npy", X[1::2])
    summary().write(folder / "s.parquet")
    summary(slice(0, 60)).write(folder / "north.parquet")
    summary(slice(60, None)).write(folder / "south.parquet")


def write_cells(path: Path) -> None:
    import anndata
    import pandas as pd

    index = pd.Index([f"cell {k}" for k in range(ROWS)], dtype=object)
    obs = pd.DataFrame({name: _categories(values) for name, values in BY.items()}, index=index)
    var = pd.DataFrame(index=pd.Index([f"gene {k}" for k in range(DIM)], dtype=object))
    anndata.AnnData(X, obs=obs, var=var, obsm={"a": X, "b": 0.5 * X}).write_h5ad(path)


def _categories(values: np.ndarray) -> object:
    import pandas as pd

    names, codes = np.unique(values.astype(str), return_inverse=True)
    return pd.Categorical.from_codes(codes, pd.Index(names.astype(object), dtype=object))


def write_images(folder: Path) -> None:
    from PIL import Image

    folder.mkdir()
    for k in range(4):
        pixels = rng.integers(90, 160, (64, 64, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{k}.png")
    lines = [f"{k}.png,{'AB'[k % 2]},{'xy'[k // 2]}" for k in range(4)]
    (folder / "m.csv").write_text("\n".join(["file,scanner,label", *lines]))


def write_bad_files(folder: Path) -> None:
    """What is empty, torn, something else, or holds rows without a distance."""
    whole = (folder / "x.parquet").read_bytes()
    kept = (folder / "s.parquet").read_bytes()
    (folder / "empty.parquet").touch()
    (folder / "torn.parquet").write_bytes(whole[: len(whole) // 2])
    (folder / "torn_s.parquet").write_bytes(kept[:-9])
    (folder / "text.parquet").write_text("no table\n")
    (folder / "none.csv").write_text("site,v0\n")
    (folder / "odd.csv").write_text("site,v0,v1\nA,1\nB,2,3,4\n")
    (folder / "s.h5ad").write_bytes(kept)
    (folder / "x.unknown").write_bytes(whole)
    bad = X.copy()
    bad[7, 1] = np.nan
    pq.write_table(table(bad), folder / "nan.parquet")
    pq.write_table(table(np.zeros_like(X)), folder / "same.parquet")
    pq.write_table(table(1e200 * X), folder / "huge.parquet")
    pq.write_table(table(rows=slice(0, 1)), folder / "one.parquet")
    pq.write_table(table(rows=slice(0, 0)), folder / "no_rows.parquet")
    names = np.array(HOSTILE)[np.arange(ROWS) % len(HOSTILE)]
    hostile = {HOSTILE[0]: names, "site": names, "week": names, "patient": BY["patient"], "v": vectors(X)}
    pq.write_table(pa.table(hostile), folder / "names.parquet")
    (folder / "folder.parquet").mkdir()
    (folder / "loop.parquet").symlink_to("loop.parquet")
    (folder / "gone.parquet").symlink_to("nowhere.parquet")
    os.mkfifo(folder / "pipe.parquet")


def prepare(folder: Path) -> None:
    """All of them."""
    write_whole_files(folder)
    write_cells(folder / "cells.h5ad")
    write_images(folder / "images")
    write_bad_files(folder)
