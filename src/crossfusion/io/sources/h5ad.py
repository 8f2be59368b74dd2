"""AnnData on disk, in HDF5 or Zarr, read by its published layout: rows from X, layers, obsm or raw, factors from obs.

Nothing is loaded whole: a partition reads its own rows of the matrix and of the requested columns of obs. The exception
are matrices stored by columns (CSC).
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from crossfusion._base import (
    FileError,
    InputError,
    arg,
    as_names,
    check_distinct,
    check_known,
    check_length,
    optional,
    warn,
)
from crossfusion.io.sources import chunk, paths
from crossfusion.io.sources.array_stores import Store, check_matrix, cut_by_step, is_number, read_keys, translate_errors
from crossfusion.io.sources.chunk import Chunk, Source
from crossfusion.io.sources.factor_columns import (
    Column,
    Slices,
    as_text,
    decode_categories,
    is_group,
    open_column,
    open_slices,
    read_encoding,
)

MAX_SPARSE_FEATURES = 2**24  # features of a sparse matrix, whose moments are dense
MATRIX_GROUPS = ("layers", "obsm")  # groups of matrices besides X and raw/X


def from_anndata(store: Store, root: Any, path: str, by: Sequence[str], vectors: Any) -> Source:
    """Rows of a matrix of AnnData, under columns of its obs."""
    called = paths.show_path(path)
    if "obs" not in root or not is_group(root["obs"]):
        raise FileError(called, "has no obs as AnnData of today writes it", "read it with anndata and write it again")
    name, chosen = _find_matrix(store, root, called, vectors)
    entry, holder = root[name], f"{called}: {name}"
    rows, dim = _find_shape(store, entry, holder)
    features = _read_features(store, root, name, dim, called)
    found = {factor: _find_column(root["obs"], factor, called) for factor in by}
    for factor, place in found.items():
        check_length(_open_factor(store, root["obs"], place, called).length, rows, f"{factor} of {called}", name)
    picked = None if chosen is None else _find_positions(chosen, features, name, called)
    read = partial(_read_chunks, store, path, name, found, picked)
    partitions = [partial(read, *cut) for cut in _cut_rows(store, entry, rows, dim, holder)]
    names = features if picked is None else tuple(features[k] for k in picked)
    check_distinct(names, holder, "make them unique first, as adata.var_names_make_unique() does")
    return Source(called, partitions, rows, features=names, matrix=name)


def _find_matrix(store: Store, root: Any, path: str, vectors: Any) -> tuple[str, list[str] | None]:
    """Place of the matrix that holds the rows, and its features where only some are asked for."""
    known = [name for name in ("X", "raw/X") if root.get(name) is not None]
    present = [place for place in MATRIX_GROUPS if root.get(place) is not None]
    known += [f"{place}/{as_text(name)}" for place in present for name in store.names(root[place])]
    names = as_names("X" if vectors is None else vectors, "vectors", "matrix")
    if len(names) == 1:
        short = [name for name in known if name.partition("/")[2] == names[0] and not name.startswith("raw/")]
        if names[0] in known or len(short) == 1:
            return (names[0] if names[0] in known else short[0]), None
        if len(short) > 1:
            raise InputError(
                problem=f"{path} has {' and '.join(short)}", remedy=f"name one of them in {arg('vectors')}"
            )
    for name in known:
        if names and all(entry.startswith(f"{name}/") for entry in names):
            return name, [entry[len(name) + 1 :] for entry in names]
    check_known(names, known, "matrix", path)
    raise InputError("vectors", vectors, f"must name one matrix of {path}, or features such as 'X/CD4'")


def _find_layout(entry: Any) -> str:
    """How a matrix is stored: dense, csr_matrix, csc_matrix, dataframe, or something else."""
    if not is_group(entry):
        return "dense"
    legacy = entry.attrs.get("h5sparse_format")
    return read_encoding(entry) if legacy is None else f"{as_text(legacy)}_matrix"


def _find_shape(store: Store, entry: Any, holder: str) -> tuple[int, int]:
    """Rows and features of a matrix, checked against the arrays that hold it."""
    kind = _find_layout(entry)
    if kind == "dense":
        check_matrix(store, entry, holder)
        if len(entry.shape) != 2:
            raise InputError(
                problem=f"{holder} has shape {entry.shape}", remedy="vectors need an array of rows × features"
            )
        return int(entry.shape[0]), int(entry.shape[1])
    if kind == "dataframe":
        columns = [open_slices(store, entry[name], holder) for name in _list_columns(entry)]
        wrong = [name for name in _list_columns(entry) if not is_number(entry[name].dtype)]
        if wrong or not columns:
            raise InputError(
                problem=f"{holder} has columns that are not numbers ({', '.join(wrong) or 'none'})", remedy="use others"
            )
        return columns[0].length, len(columns)
    if kind not in ("csr_matrix", "csc_matrix"):
        raise InputError(
            problem=f"{holder} is stored as {kind or 'a group'}", remedy="vectors need a dense or sparse matrix"
        )
    optional.load("scipy.sparse", "SciPy", "anndata", "reading sparse matrices")
    return _find_sparse_shape(store, entry, holder)


def _find_sparse_shape(store: Store, entry: Any, holder: str) -> tuple[int, int]:
    rows, dim = _read_shape(entry)
    data, indices, indptr = (open_slices(store, entry[name], holder) for name in ("data", "indices", "indptr"))
    store.check_written(entry["indptr"], holder)
    if not is_number(entry["data"].dtype):
        raise InputError(
            problem=f"{holder} holds {entry['data'].dtype} values", remedy="vectors need real numbers of up to 64 bits"
        )
    major = rows if _find_layout(entry) == "csr_matrix" else dim
    if not 0 <= dim <= MAX_SPARSE_FEATURES or rows < 0 or indptr.length != major + 1 or indices.length != data.length:
        raise FileError(holder, "is a sparse matrix whose arrays do not fit its shape", "write it again")
    return rows, dim


def _read_shape(entry: Any) -> tuple[int, int]:
    rows, dim = entry.attrs.get("shape", entry.attrs.get("h5sparse_shape"))
    return int(rows), int(dim)


def _list_columns(group: Any) -> list[str]:
    return [as_text(name) for name in group.attrs.get("column-order", ())]


def _read_features(store: Store, root: Any, name: str, dim: int, path: str) -> tuple[str, ...]:
    """Names of the features, where they have any; those of X and layers are in var."""
    if _find_layout(root[name]) == "dataframe":
        return tuple(_list_columns(root[name]))
    if name.startswith("obsm/"):
        return ()
    var = root["raw/var" if name.startswith("raw/") else "var"]
    index = open_column(store, var[as_text(var.attrs["_index"])], f"{path}: var")
    if index.length != dim:
        raise FileError(
            problem=f"{path}: {name} has {dim} features, but var has {index.length}", remedy="write it again"
        )
    return tuple(map(str, index.read(0, dim).to_pylist()))


def _find_positions(chosen: Sequence[str], features: tuple[str, ...], name: str, path: str) -> list[int]:
    check_known(chosen, features, f"feature of {name}", path)
    where = {feature: k for k, feature in enumerate(features)}
    return [where[feature] for feature in chosen]


def _find_column(obs: Any, factor: str, path: str) -> str:
    """Name in obs of a column, or of the index, which also goes by the name index."""
    index = as_text(obs.attrs.get("_index", "_index"))
    known = [*_list_columns(obs), index]
    if factor == "index" and factor not in known:
        return index
    check_known([factor], known, "column of obs", path)
    return factor


def _open_factor(store: Store, obs: Any, name: str, path: str) -> Column:
    """A column of obs; until 2021 categories were kept in a group of their own."""
    entry, holder = obs[name], f"{path}: obs/{name}"
    levels = None if is_group(entry) else obs.get("__categories")
    if levels is not None and levels.get(name) is not None:
        return decode_categories(store, entry, open_column(store, levels[name], holder), holder)
    return open_column(store, entry, holder)


def _cut_rows(store: Store, entry: Any, rows: int, dim: int, holder: str) -> list[tuple[int, int, int]]:
    """Start and stop of each partition and, where rows are of equal size, the rows per chunk."""
    kind = _find_layout(entry)
    if kind == "dense":
        return cut_by_step(rows, dim * entry.dtype.itemsize, store.step(entry))
    if kind == "dataframe":
        return cut_by_step(rows, 8 * dim, 1)
    size = entry["data"].shape[0] * _measure_entry(entry)
    if kind == "csc_matrix":
        warn(
            f"{holder} is stored by columns (CSC), so all of it is read into memory, {3 * size / 2**20:.0f} MB",
            "write it as CSR to read it in pieces",
        )
        return [(0, rows, 0)]
    return cut_by_step(rows, 8 + size // max(1, rows), 1)


def _measure_entry(entry: Any) -> int:
    return int(entry["data"].dtype.itemsize + entry["indices"].dtype.itemsize)


def _read_chunks(
    store: Store, path: str, name: str, by: dict[str, str], picked: list[int] | None, start: int, stop: int, size: int
) -> Iterator[Chunk]:
    with translate_errors(path, store.what), store.open(path) as root:
        columns = {
            factor: _open_factor(store, root["obs"], place, paths.show_path(path)) for factor, place in by.items()
        }
        entry, kind = root[name], _find_layout(root[name])
        many = store.rows(entry, path, start, stop, size) if kind == "dense" else None
        for first, rows in many or _READERS[kind](store, entry, start, stop, size):
            last = first + rows.shape[0]
            yield Chunk(rows if picked is None else rows[:, picked], read_keys(columns, first, last), first)


def _read_table(store: Store, entry: Any, start: int, stop: int, size: int) -> Iterator[tuple[int, Any]]:
    columns = [Slices(store, entry[name]) for name in _list_columns(entry)]
    for first in range(start, stop, size):
        yield first, np.column_stack([values(first, min(first + size, stop)) for values in columns])


def _read_csr(store: Store, entry: Any, start: int, stop: int, _size: int) -> Iterator[tuple[int, Any]]:
    """Rows of a CSR matrix, as many as their stored values take a chunk."""
    from scipy import sparse

    data, indices = Slices(store, entry["data"]), Slices(store, entry["indices"])
    dim = _read_shape(entry)[1]
    edges = _read_edges(store, entry, start, stop, data.length)
    costs = edges * _measure_entry(entry) + 8 * np.arange(len(edges))
    first = 0
    while first < len(edges) - 1:
        last = int(np.searchsorted(costs, costs[first] + chunk.CHUNK_BYTES, "right")) - 1
        last = min(max(last, first + 1), len(edges) - 1)
        low, high = int(edges[first]), int(edges[last])
        where = _check_indices(indices(low, high), dim)
        rows = sparse.csr_matrix((data(low, high), where, edges[first : last + 1] - low), (last - first, dim))
        yield start + first, rows
        first = last


def _read_csc(store: Store, entry: Any, _start: int, _stop: int, _size: int) -> Iterator[tuple[int, Any]]:
    """Rows of a CSC matrix, which needs to be in memory for that."""
    from scipy import sparse

    rows, dim = _read_shape(entry)
    edges = _read_edges(store, entry, 0, dim, entry["data"].shape[0])
    where = _check_indices(np.asarray(entry["indices"][:]), rows)
    matrix = sparse.csc_matrix((np.asarray(entry["data"][:]), where, edges), (rows, dim)).tocsr()
    for first, last, _ in cut_by_step(rows, 8 + matrix.nnz * _measure_entry(entry) // max(1, rows), 1):
        yield first, matrix[first:last]


def read_sparse(store: Store, entry: Any) -> Iterator[tuple[int, Any]]:
    """All rows of a sparse matrix that is open already, some at a time, each with the index of the first."""
    return _READERS[_find_layout(entry)](store, entry, 0, _read_shape(entry)[0], 0)


_READERS = {"dataframe": _read_table, "csr_matrix": _read_csr, "csc_matrix": _read_csc}


def _read_edges(store: Store, entry: Any, start: int, stop: int, stored: int) -> Any:
    """Where the values of each row (or column) start, which compiled code trusts and so must be right."""
    edges = Slices(store, entry["indptr"])(start, stop + 1).astype(np.int64)
    if edges[0] < 0 or edges[-1] > stored or np.any(np.diff(edges) < 0):
        raise ValueError("indptr of a sparse matrix is not in order")
    return edges


def _check_indices(indices: Any, size: int) -> Any:
    if len(indices) and not 0 <= indices.min() <= indices.max() < size:
        raise ValueError(f"a sparse matrix has indices from {indices.min()} to {indices.max()} for {size} places")
    return indices
