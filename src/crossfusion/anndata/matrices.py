"""Matrices of an AnnData as rows in chunks: in memory, on disk, or still to be made by Dask."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import InputError, arg, as_names, as_rows, check_known, column_names, warn
from crossfusion.io import (
    Chunk,
    Hdf5,
    Source,
    Store,
    Zarr,
    cut_by_step,
    dask,
    engines,
    hold_in_memory,
    read_dense,
    read_sparse,
)

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_EMBEDDING = "X_pca"  # what is measured where it is there and nothing is named


def choose_embeddings(adata: Any, use_rep: Any, embedding_obsm_keys: Any) -> tuple[str, ...]:
    """Names of the embeddings to measure: those that are named, else the principal components, else X."""
    if use_rep is not None and embedding_obsm_keys is not None:
        raise InputError(
            "use_rep",
            problem=f"names one embedding and {arg('embedding_obsm_keys')} several",
            remedy="pass one of the two",
        )
    if use_rep is None and embedding_obsm_keys is None:
        return (DEFAULT_EMBEDDING if DEFAULT_EMBEDDING in adata.obsm else "X",)
    if use_rep is not None and not isinstance(use_rep, str):
        raise InputError(
            "use_rep", use_rep, "must be one name such as 'X_pca'", f"name several in {arg('embedding_obsm_keys')}"
        )
    names = as_names(embedding_obsm_keys if use_rep is None else use_rep, "embedding_obsm_keys", "embedding")
    if not names:
        raise InputError("embedding_obsm_keys", problem="is empty", remedy="name at least one entry of adata.obsm")
    known = [*adata.obsm, "X", *(["raw/X"] if adata.raw is not None else [])]
    known += [f"{place}/{name}" for place in ("layers", "obsm") for name in getattr(adata, place)]
    check_known(names, known, "embedding", "adata")
    if len({name.removeprefix("obsm/") for name in names}) < len(names):
        raise InputError("embedding_obsm_keys", [*names], "names an embedding twice", "name each once")
    return names


def open_embedding(adata: Any, name: str, keys: "pa.Table", engine: Any = "auto") -> tuple[Any, Any]:
    """Source of the rows of an embedding, or tasks of Dask, under these factors; and who is to reduce them."""
    source, who = _open_matrix(adata, name, keys, engine)
    return replace(source, features=_name_features(adata, name)), who


def _name_features(adata: Any, name: str) -> tuple[str, ...]:
    """Names of the features of an embedding, if they have any that tell them apart."""
    if name in adata.obsm or name.startswith("obsm/"):
        names = column_names(adata.obsm[name if name in adata.obsm else name.removeprefix("obsm/")])
    else:
        names = tuple(map(str, (adata.raw if name == "raw/X" else adata).var_names))
    return names if len({*names, ""}) > len(names) else ()


def _open_matrix(adata: Any, name: str, keys: "pa.Table", engine: Any) -> tuple[Any, Any]:
    called = f"adata {name}"
    if name in ("X", "raw/X") and adata.isbacked and adata.is_view:
        return _open_backed_view(adata, name, keys, called), engines.choose_engine(engine, None)
    values = _find_matrix(adata, name)
    who = engines.choose_engine(engine, values)
    if engines.is_collection(values):
        by = {factor: keys.column(factor).combine_chunks() for factor in keys.column_names}
        return replace(dask.open_collection(values, by), name=called), who
    if _is_stored(values):
        return _open_stored(values, keys, called), who
    return hold_in_memory(called, as_rows(values, called), keys), who


def _find_matrix(adata: Any, name: str) -> Any:
    if name in adata.obsm:
        return adata.obsm[name]
    place, _, inner = name.partition("/")
    values = adata.X if name == "X" else adata.raw.X if name == "raw/X" else getattr(adata, place)[inner]
    if values is None:
        raise InputError(
            "adata",
            problem="has no X",
            remedy=f"name an entry of obsm in {arg('use_rep')} or {arg('embedding_obsm_keys')}",
        )
    return values


def _is_stored(values: Any) -> bool:
    """Whether rows are on disk: a sparse matrix of anndata, or an array of HDF5 or Zarr."""
    return hasattr(values, "group") or (hasattr(values, "chunks") and not isinstance(values, np.ndarray))


def _open_backed_view(adata: Any, name: str, keys: "pa.Table", called: str) -> Source:
    """Rows of a view of X or raw/X on disk, which the view would read as a whole; a view of raw has all columns."""
    whole = adata._adata_ref
    rows, columns = np.arange(whole.n_obs)[adata._oidx], np.arange(whole.n_vars)[adata._vidx]
    matrix = _find_matrix(whole, name)
    columns = columns if name == "X" else slice(None)
    if np.all(np.diff(rows) > 0):
        return _open_stored(matrix, keys, called, rows, columns)
    order = np.argsort(rows, kind="stable")
    return _open_stored(matrix, keys.take(order), f"{called}, in the order of the file,", rows[order], columns)


def _open_stored(matrix: Any, keys: "pa.Table", called: str, rows: Any = None, columns: Any = None) -> Source:
    """Rows on disk, read some at a time; only some, in ascending order, and some columns, where it says which."""
    if getattr(matrix, "format", "") == "csc":
        warn(
            f"{called} is stored by columns (CSC), so all of it is read into memory",
            "write it as CSR to read it in chunks",
        )
    return Source(called, [partial(_select_chunks, matrix, keys, rows, columns)], keys.num_rows, here=True)


def _select_chunks(matrix: Any, keys: "pa.Table", rows: Any, columns: Any) -> Iterator[Chunk]:
    for first, values in _read_chunks(matrix):
        last = first + values.shape[0]
        if rows is None:
            yield Chunk(values, keys.slice(first, last - first), first)
            continue
        low, high = np.searchsorted(rows, [first, last])
        if low < high:
            yield Chunk(values[rows[low:high] - first][:, columns], keys.slice(low, high - low), int(low))


def _read_chunks(matrix: Any) -> Iterator[tuple[int, Any]]:
    """Rows that are on disk, some at a time, each with the index of the first; sparse ones from their arrays."""
    group = getattr(matrix, "group", None)
    store: Store = Zarr() if type(group or matrix).__module__.startswith("zarr") else Hdf5()
    if group is not None:
        yield from read_sparse(store, group)
        return
    for start, stop, size in cut_by_step(matrix.shape[0], matrix.shape[1] * matrix.dtype.itemsize, store.step(matrix)):
        for first in range(start, stop, size):
            yield first, read_dense(matrix, first, min(first + size, stop))
