"""Ways in which rows reach the library, as users pass them: each takes a data set and a folder to a Summary."""

import datetime as dt
import io
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import crossfusion as cf
from crossfusion.cli import main
from tests.hunt.labels import as_key, read_as_text
from tests.hunt.recipes import Messy

FACTORS = ["site", "tissue", "patient"]
Route = Callable[[Messy, Path], cf.Summary]


def feature_names(data: Messy) -> list[str]:
    """One name per feature."""
    return [f"e{k}" for k in range(data.rows.shape[1])]


def run_command(*arguments: Any) -> tuple[int, str, str]:
    """Exit code, output and messages of a command, without a process of its own."""
    out, err = io.StringIO(), io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            return int(end.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def as_container(values: list[Any], draw: np.random.Generator) -> Any:
    """Labels in one of the things that hold labels."""
    plain = [as_key(value) for value in values]  # some libraries refuse values of different zones, or NaN in text
    levels = list(dict.fromkeys(value for value in plain if value is not None))
    makers: list[Callable[[], Any]] = [
        lambda: values,
        lambda: tuple(values),
        lambda: np.array([*values, None], object)[:-1],
        lambda: pd.Series(plain, index=np.arange(len(plain))),
        lambda: pd.Categorical(plain, categories=[*levels, *unused(levels)]),
        lambda: pl.Series(plain, strict=False),
        lambda: pa.array(plain),
        lambda: pa.array(plain).dictionary_encode(),
        lambda: pa.chunked_array([pa.array(plain).slice(0, 3), pa.array(plain).slice(3)]),
    ]
    return makers[int(draw.integers(len(makers)))]()


def unused(levels: Sequence[Any]) -> list[Any]:
    """A level of the same type that no row has."""
    return ["never seen"] if levels and isinstance(levels[0], str) else []


def from_arrays(data: Messy, _: Path) -> cf.Summary:
    """Arrays, with labels in whatever holds them."""
    draw = data.draw(1)
    return cf.summarize(data.rows, by={k: as_container(v, draw) for k, v in data.factors.items()}, nan="drop")


def make_frame(data: Messy) -> pd.DataFrame:
    """Columns in any order, an index that means nothing, categories that no row has."""
    draw = data.draw(2)
    native = data.rows.astype(data.rows.dtype.newbyteorder("="))
    columns: dict[str, Any] = {name: native[:, k] for k, name in enumerate(feature_names(data))}
    for name, values in data.factors.items():
        plain = [as_key(value) for value in values]
        levels = list(dict.fromkeys(value for value in plain if value is not None))
        category = pd.Categorical(plain, categories=[*levels, *unused(levels)])
        columns[name] = category if draw.random() < 0.5 else pd.Series(plain, dtype=object).to_numpy()
    order = draw.permutation(list(columns)).tolist()
    return pd.DataFrame({name: columns[name] for name in order}, index=draw.permutation(len(native)))


def from_pandas(data: Messy, _: Path) -> cf.Summary:
    """A DataFrame with one column per feature."""
    return cf.summarize(make_frame(data), by=FACTORS, vectors=feature_names(data), nan="drop")


def from_series(data: Messy, _: Path) -> cf.Summary:
    """A DataFrame of numbers, and Series of labels with the same index in another order."""
    draw = data.draw(7)
    tiles = [f"tile {k}" for k in range(len(data.rows))]
    rows = pd.DataFrame(data.rows.astype(data.rows.dtype.newbyteorder("=")), index=tiles, columns=feature_names(data))
    by = {
        name: pd.Series([as_key(v) for v in values], index=tiles, dtype=object) for name, values in data.factors.items()
    }
    return cf.summarize(rows, by={k: v.iloc[draw.permutation(len(tiles))] for k, v in by.items()}, nan="drop")


def from_pandas_lists(data: Messy, _: Path) -> cf.Summary:
    """A DataFrame with one column of vectors."""
    frame = make_frame(data)[FACTORS]
    frame["embedding"] = list(data.rows.astype(data.rows.dtype.newbyteorder("=")))
    return cf.summarize(frame, by=FACTORS, nan="drop")


def make_table(data: Messy, numbers: bool = True) -> pa.Table:
    """An Arrow table, with a column per feature or one of vectors, whose order is drawn."""
    draw = data.draw(3)
    rows = np.ascontiguousarray(data.rows.astype(data.rows.dtype.newbyteorder("=")))
    columns: dict[str, Any] = {}
    for name, values in data.factors.items():
        column = pa.array([as_key(value) for value in values])
        columns[name] = column.dictionary_encode() if draw.random() < 0.3 else column
    if numbers:
        columns |= {name: pa.array(rows[:, k]) for k, name in enumerate(feature_names(data))}
    else:
        columns["embedding"] = pa.array(rows.tolist(), pa.list_(pa.from_numpy_dtype(rows.dtype)))
    return pa.table({name: columns[name] for name in draw.permutation(list(columns)).tolist()})


def from_polars(data: Messy, _: Path) -> cf.Summary:
    """A Polars frame; it has no numbers of 16 bits."""
    rows = data.rows.astype(np.float32) if data.rows.dtype == np.float16 else data.rows
    plain = {name: [as_key(value) for value in values] for name, values in data.factors.items()}
    columns = {name: pl.Series(name, values, strict=False) for name, values in plain.items()}
    native = rows.astype(rows.dtype.newbyteorder("="))
    columns |= {name: pl.Series(name, native[:, k].copy()) for k, name in enumerate(feature_names(data))}
    return cf.summarize(pl.DataFrame(list(columns.values())), by=FACTORS, vectors=feature_names(data), nan="drop")


def from_arrow(data: Messy, _: Path) -> cf.Summary:
    """An Arrow table of vectors."""
    return cf.summarize(make_table(data, numbers=False), by=FACTORS, nan="drop")


def from_batches(data: Messy, _: Path) -> cf.Summary:
    """A stream of record batches."""
    table = make_table(data).unify_dictionaries()
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=3))
    return cf.summarize(reader, by=FACTORS, vectors=feature_names(data), nan="drop")


def from_parquet(data: Messy, folder: Path) -> cf.Summary:
    """A Parquet file of many small row groups."""
    pq.write_table(make_table(data, numbers=bool(data.recipe.seed % 2)), folder / "rows.parquet", row_group_size=4)
    vectors = feature_names(data) if data.recipe.seed % 2 else None
    return cf.summarize(folder / "rows.parquet", by=FACTORS, vectors=vectors, nan="drop")


def from_folder(data: Messy, folder: Path) -> cf.Summary:
    """Several Parquet files whose columns are in different orders."""
    table = make_table(data)
    (folder / "lake").mkdir()
    half = len(data.rows) // 2
    pq.write_table(table.slice(0, half), folder / "lake" / "a.parquet")
    pq.write_table(table.slice(half).select(table.column_names[::-1]), folder / "lake" / "b.parquet")
    return cf.summarize(folder / "lake", by=FACTORS, vectors="e*", nan="drop")


def from_csv(data: Messy, folder: Path) -> cf.Summary:
    """A text table and the command line."""
    numbers = data.rows.astype(np.float64)
    frame = make_frame(data)
    for k, name in enumerate(feature_names(data)):
        frame[name] = numbers[:, k]
    frame.to_csv(folder / "rows.csv", index=False)
    vectors = ",".join(feature_names(data))
    typed = ["summarize", folder / "rows.csv", "--by", ",".join(FACTORS), "--vectors", vectors, "--nan", "drop"]
    code, _, said = run_command(*typed, "-o", folder / "summary.parquet")
    assert code == 0, said
    return cf.read_summary(folder / "summary.parquet")


def from_npz(data: Messy, folder: Path) -> cf.Summary:
    """A file of NumPy arrays, with a table of labels matched by position."""
    np.savez(folder / "rows.npz", x=data.rows)
    manifest = pd.DataFrame({name: [as_key(v) for v in values] for name, values in data.factors.items()})
    return cf.summarize(folder / "rows.npz", by=FACTORS, manifest=manifest, nan="drop")


def from_manifest(data: Messy, _: Path) -> cf.Summary:
    """A frame of vectors whose labels are in another frame, in another order, under a key."""
    draw = data.draw(4)
    key = [f"tile-{k}" for k in range(len(data.rows))]
    frame = pd.DataFrame({"tile": key, "embedding": list(data.rows.astype(data.rows.dtype.newbyteorder("=")))})
    manifest = pd.DataFrame({"tile": key} | {n: [as_key(v) for v in values] for n, values in data.factors.items()})
    shuffled = manifest.iloc[draw.permutation(len(key))]
    return cf.summarize(frame, by=FACTORS, vectors="embedding", manifest=shuffled, on="tile", nan="drop")


def from_h5ad(data: Messy, folder: Path) -> cf.Summary:
    """A file that AnnData wrote."""
    obs = pd.DataFrame(index=pd.Index([f"cell {k}" for k in range(len(data.rows))], dtype=object))
    for name, values in data.factors.items():
        plain = [read_from_h5ad(as_key(value)) for value in values]
        levels = list(dict.fromkeys(value for value in plain if value is not None))
        is_text = isinstance(levels[0], str)
        obs[name] = pd.Categorical(plain, categories=pd.Index(levels, dtype=object if is_text else None))
    rows = data.rows if data.rows.dtype.kind == "f" and data.rows.dtype.isnative else data.rows.astype(np.float64)
    rows = rows.astype(np.float32) if rows.dtype == np.float16 else np.ascontiguousarray(rows)
    adata = anndata.AnnData(rows, obs=obs, var=pd.DataFrame(index=pd.Index(feature_names(data), dtype=object)))
    adata.write_h5ad(folder / "cells.h5ad")
    return cf.summarize(folder / "cells.h5ad", by=FACTORS, vectors="X", nan="drop")


def read_from_h5ad(value: Any) -> Any:
    """A label that AnnData can write: times as text."""
    return value.isoformat() if isinstance(value, dt.datetime) else value


def from_saved(data: Messy, folder: Path) -> cf.Summary:
    """Written and read."""
    from_arrays(data, folder).write(folder / "summary.parquet")
    return cf.read_summary(folder / "summary.parquet")


def split(data: Messy) -> list[Messy]:
    """Up to three parts, each with a row that is finite."""
    finite = np.flatnonzero(data.finite)[:3]
    part = data.draw(5).integers(len(finite), size=len(data.rows))
    part[finite] = np.arange(len(finite))
    return [data.take(np.flatnonzero(part == k)) for k in range(len(finite))]


def from_sum(data: Messy, folder: Path) -> cf.Summary:
    """The sum of three summaries."""
    total: cf.Summary = sum(from_plain(part, folder) for part in split(data))  # type: ignore[assignment]
    return total


def from_plain(data: Messy, _: Path) -> cf.Summary:
    """Arrays and lists."""
    by = {name: [as_key(value) for value in values] for name, values in data.factors.items()}
    return cf.summarize(data.rows, by=by, nan="drop")


def from_append(data: Messy, folder: Path) -> cf.Summary:
    """A file to which three summaries were added, one after another."""
    for part in split(data):
        cf.append_summary(from_plain(part, folder), folder / "weeks.parquet")
    return cf.read_summary(folder / "weeks.parquet")


def from_merge(data: Messy, folder: Path) -> cf.Summary:
    """Files of three sites, merged by the command line."""
    paths = [folder / f"{k}.parquet" for k, _ in enumerate(split(data))]
    for path, part in zip(paths, split(data), strict=True):
        from_plain(part, folder).write(path)
    code, _, said = run_command("merge", *paths, "-o", folder / "all.parquet")
    if code:
        raise cf.InputError(problem=said.removeprefix("crossfusion: ").strip())
    return cf.read_summary(folder / "all.parquet")


def from_rollup(data: Messy, _: Path) -> cf.Summary:
    """A summary of every single row, rolled up."""
    by = {name: [as_key(value) for value in values] for name, values in data.factors.items()}
    by["tile"] = list(range(len(data.rows)))
    return cf.summarize(data.rows, by=by, nan="drop").rollup(FACTORS)


ROUTES: dict[str, Route] = {
    "arrays": from_arrays,
    "pandas": from_pandas,
    "pandas series": from_series,
    "pandas lists": from_pandas_lists,
    "Polars": from_polars,
    "Arrow": from_arrow,
    "record batches": from_batches,
    "Parquet": from_parquet,
    "folder": from_folder,
    "CSV and command line": from_csv,
    "npz and labels": from_npz,
    "manifest": from_manifest,
    "h5ad": from_h5ad,
    "write and read": from_saved,
    "sum": from_sum,
    "append": from_append,
    "merge": from_merge,
    "rollup": from_rollup,
}

READINGS: dict[str, Callable[[Any], Any]] = {"CSV and command line": read_as_text, "h5ad": read_from_h5ad}
