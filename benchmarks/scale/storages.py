"""Files against plain reads of them, which do nothing with what they read."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from threading import local
from typing import Any

import numpy as np

from benchmarks.scale import files
from benchmarks.timing import best_times, rounds
from crossfusion import cfd
from crossfusion._base import thread_count
from crossfusion.io import add_keys, open_file, parquet_wide, reduce_sources, summarize
from paper.checks import load_library

SHORT = 960  # rows of a batch that stays in the cache

Sides = dict[str, Callable[[], Any]]


def measure(
    folder: Path, gigabytes: float, dim: int, repeats: int, tell: Callable[[str], None] | None = None
) -> list[list[str]]:
    """A line for each storage: what it costs beside the fastest plain read of the same file."""
    found: list[list[str]] = []
    for name, lines in (
        (".npy", _npy),
        ("Parquet, lists", _parquet),
        ("Parquet, wide", _wide),
        ("HDF5", _hdf5),
        ("Zarr", _zarr),
    ):
        if tell is not None:
            tell(f"measuring {name}")
        found += lines(folder, gigabytes, dim, repeats)
        for path in folder.iterdir():
            _remove(path)
    return found


def _remove(path: Path) -> None:
    if path.is_dir():
        for inner in path.iterdir():
            _remove(inner)
        path.rmdir()
    else:
        path.unlink()


def _npy(folder: Path, gigabytes: float, dim: int, repeats: int) -> list[list[str]]:
    paths = [folder / "a.npy", folder / "b.npy"]
    for path in paths:
        files.write_npy(path, gigabytes / 2, dim)
    a, b = (np.load(path) for path in paths)

    def reduce_mapped() -> None:
        reduce_sources([add_keys(open_file(path, []), {"group": path.stem}) for path in paths]).cfd("group")

    def plain() -> None:
        with ThreadPoolExecutor(thread_count()) as pool:
            _exhaust(pool.map(lambda path: np.load(path, mmap_mode="r").sum(), paths))

    reduce_mapped()
    best = best_times({"in memory": lambda: cfd(a, b), "plain": plain, "mapped": reduce_mapped}, repeats)
    what = ".npy, mapped and warm"
    return [
        [f"{what}: time beside a plain read", f"{best['mapped'] / best['plain']:.2f}", "≤ 1.25 (sum of the map)"],
        [f"{what}: rate of that in memory", f"{best['in memory'] / best['mapped']:.2f}", "(to compare)"],
    ]


def _parquet(folder: Path, gigabytes: float, dim: int, repeats: int) -> list[list[str]]:
    path = folder / "rows.parquet"
    files.write_parquet(path, gigabytes, dim)
    return _beside("Parquet, vectors", path, "vector", _decoders(path), repeats, "≤ 1.15")


def _wide(folder: Path, gigabytes: float, dim: int, repeats: int) -> list[list[str]]:
    path = folder / "rows.parquet"
    files.write_wide(path, gigabytes, dim)
    few = {"to decode a few at a time": lambda: _on_threads(path, _few_columns)}
    return _beside("Parquet, columns", path, "dim_*", _decoders(path), repeats, "≤ 1.15", few)


def _hdf5(folder: Path, gigabytes: float, dim: int, repeats: int) -> list[list[str]]:
    path = folder / "rows.h5"
    files.write_hdf5(path, gigabytes, dim)
    h5py = load_library("h5py", "h5py", "hdf5", "the benchmark of HDF5")

    def plain() -> None:
        with h5py.File(path) as file:
            _drain(file)

    return _beside("HDF5, chunked", path, "vector", {"chunks": plain}, repeats, "≤ 1.25")


def _zarr(folder: Path, gigabytes: float, dim: int, repeats: int) -> list[list[str]]:
    path = folder / "rows.zarr"
    files.write_zarr(path, gigabytes, dim)
    zarr = load_library("zarr", "Zarr", "zarr", "the benchmark of Zarr")
    return _beside(
        "Zarr, compressed",
        path,
        "vector",
        {
            "chunks": lambda: _drain(zarr.open_group(str(path), mode="r")),
            "chunks, on threads": lambda: _drain(zarr.open_group(str(path), mode="r"), thread_count()),
        },
        repeats,
        "≤ 1.25",
    )


def _drain(store: Any, threads: int = 1) -> None:
    """Read both arrays by runs of whole chunks."""
    rows, sites = store["vector"], store["site"]
    step = max(1, files.CHUNK_BYTES // rows.chunks[0] // (4 * rows.shape[1])) * rows.chunks[0]

    def read(start: int) -> None:
        rows[start : start + step]
        sites[start : start + step]

    with ThreadPoolExecutor(threads) as pool:
        _exhaust(pool.map(read, range(0, rows.shape[0], step)))


def _decoders(path: Path) -> Sides:
    """Ways to decode all columns of a Parquet file that keep nothing."""
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    def pieces(file: Any, number: int) -> None:
        _exhaust(file.iter_batches(SHORT, row_groups=[number], use_threads=False))

    return {
        "row groups on threads": lambda: _on_threads(path, _row_group),
        "short batches on threads": lambda: _on_threads(path, pieces),
        "iter_batches": lambda: _exhaust(pq.ParquetFile(path).iter_batches()),
        "scanner": lambda: _exhaust(ds.dataset(path).to_batches()),
    }


def _on_threads(path: Path, read: Callable[[Any, int], Any]) -> None:
    """Read each row group, on a thread that has the file open."""
    import pyarrow.parquet as pq

    opened = local()

    def open_one() -> None:
        opened.file = pq.ParquetFile(path, memory_map=True)

    with ThreadPoolExecutor(thread_count(), initializer=open_one) as pool:
        groups = range(pq.ParquetFile(path).metadata.num_row_groups)
        _exhaust(pool.map(lambda number: read(opened.file, number), groups))


def _row_group(file: Any, number: int) -> Any:
    return file.read_row_group(number, use_threads=False)


def _few_columns(file: Any, number: int) -> None:
    """The fastest decode of columns, which never holds all of a row."""
    names = file.schema_arrow.names
    for start in range(0, len(names), parquet_wide.COLUMNS_PER_CALL):
        file.read_row_group(number, columns=names[start : start + parquet_wide.COLUMNS_PER_CALL], use_threads=False)


def _exhaust(values: Iterable[Any]) -> None:
    for _ in values:
        pass


def _beside(
    what: str, path: Path, vectors: str, plain: Sides, repeats: int, aim: str, others: Sides | None = None
) -> list[list[str]]:
    """Times of a summary and of others, in those of the fastest plain read: medians over rounds of both."""

    def ours() -> None:
        summarize(path, by="site", vectors=vectors)

    sides = plain | (others or {}) | {"ours": ours}
    for read in sides.values():
        read()  # what it needs is imported then
    times = rounds(sides, repeats)
    fastest = min(plain, key=lambda name: median(times[name]))

    def ratio(name: str) -> str:
        return f"{median(own / other for own, other in zip(times[name], times[fastest], strict=True)):.2f}"

    lines = [[f"{what}: time beside the fastest plain read", ratio("ours"), f"{aim} ({fastest})"]]
    return lines + [[f"{what}: {name}", ratio(name), "(to compare)"] for name in others or ()]
