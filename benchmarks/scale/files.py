"""The same rows in several storages, made on the fly."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.checks import load_library

SITES = 8
CHUNK_BYTES = 64 * 2**20  # bytes written at a time
CHUNK = 4 * 2**20  # bytes of a chunk in HDF5 and Zarr

Chunk = tuple[NDArray[np.float32], NDArray[np.int64]]


def iterate_chunks(gigabytes: float, dim: int) -> Iterator[Chunk]:
    """Rows and their sites; the same noise again and again, since drawing it would take longer than writing it."""
    number, step = count_rows(gigabytes, dim), max(1, CHUNK_BYTES // (4 * dim))
    draw = np.random.default_rng(0)
    noise = draw.standard_normal((min(step, number), dim), dtype=np.float32)
    site = draw.integers(0, SITES, len(noise))
    for start in range(0, number, step):
        size = min(step, number - start)
        yield noise[:size], site[:size]


def count_rows(gigabytes: float, dim: int) -> int:
    """Number of rows."""
    return max(1000, int(gigabytes * 1e9 / (4 * dim)))


def write_npy(path: Path, gigabytes: float, dim: int) -> None:
    """One .npy file."""
    shape = {"descr": "<f4", "fortran_order": False, "shape": (count_rows(gigabytes, dim), dim)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, shape)
        for part, _ in iterate_chunks(gigabytes, dim):
            part.tofile(file)


def write_parquet(path: Path, gigabytes: float, dim: int) -> None:
    """One Parquet file with a column of vectors, as PyArrow writes it by default."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("site", pa.int64()), ("vector", pa.list_(pa.float32(), dim))])
    with pq.ParquetWriter(path, schema) as writer:
        for rows, site in iterate_chunks(gigabytes, dim):
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), dim)
            writer.write_table(pa.table({"site": site, "vector": vectors}, schema))


def write_wide(path: Path, gigabytes: float, dim: int) -> None:
    """One Parquet file with one column per feature, as PyArrow writes it by default."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"dim_{k}" for k in range(dim)]
    schema = pa.schema([("site", pa.int64()), *((name, pa.float32()) for name in names)])
    with pq.ParquetWriter(path, schema) as writer:
        for rows, site in iterate_chunks(gigabytes, dim):
            columns = {name: np.ascontiguousarray(rows[:, k]) for k, name in enumerate(names)}
            writer.write_table(pa.table({"site": site, **columns}, schema))


def write_hdf5(path: Path, gigabytes: float, dim: int) -> None:
    """One HDF5 file with chunked data sets."""
    h5py = load_library("h5py", "h5py", "hdf5", "the benchmark of HDF5")
    with h5py.File(path, "w") as file:
        _fill(file.create_dataset, gigabytes, dim)


def write_zarr(path: Path, gigabytes: float, dim: int) -> None:
    """One Zarr group with chunked arrays, compressed as Zarr does if nothing is said."""
    zarr = load_library("zarr", "Zarr", "zarr", "the benchmark of Zarr")
    group = zarr.open_group(str(path), mode="w")
    _fill(group.create_array if hasattr(group, "create_array") else group.create_dataset, gigabytes, dim)


def _fill(create: Any, gigabytes: float, dim: int) -> None:
    number, chunk = count_rows(gigabytes, dim), max(1, CHUNK // (4 * dim))
    rows = create("vector", shape=(number, dim), chunks=(min(number, chunk), dim), dtype="f4")
    sites = create("site", shape=(number,), chunks=(min(number, 2**16),), dtype="i8")
    start = 0
    for part, site in iterate_chunks(gigabytes, dim):
        rows[start : start + len(part)] = part
        sites[start : start + len(part)] = site
        start += len(part)
