"""Lenses as the rest of the library knows them: objects that map rows before they are reduced, and may add factors.

A lens sees dense blocks of finite rows only. What is done here is the same for every lens and every kind of rows: the
blocks are small enough for the cache, and rows that are not finite come out as NaN, so that they are found as before.
"""

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from crossfusion._base.errors import InputError
from crossfusion._base.feature_names import Names, column_names
from crossfusion._base.lazy_rows import LazyRows, fit_rows_in_cache
from crossfusion._base.threads import map_threads
from crossfusion._base.validation import as_rows

MIN_BLOCK_ROWS = 64  # so that matrix products are worth their calls, however many features there are
VALUE_BYTES = 8  # in which products are computed
TASK_BLOCKS = 16  # blocks that a thread maps at a time


@runtime_checkable
class RowLens(Protocol):
    """A fixed map of rows, and factors that it adds."""

    @property
    def digest(self) -> str:
        """What identifies the map, wherever it is applied."""

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of the factors that it adds, with whole numbers as values; mostly none."""

    @property
    def changes_rows(self) -> bool:
        """Whether mapped rows differ from the rows."""

    @property
    def width(self) -> int:
        """The largest number of values per row that it works with, beside the features of the rows."""

    def count_features(self, dim: int, holder: str) -> int:
        """Number of features of mapped rows; rejects another number of features than the lens has."""

    def name_features(self, names: Names | None, holder: str) -> Names | None:
        """Names of the features of mapped rows; rejects other features than those of the lens."""

    def map_block(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Map finite rows."""

    def label_block(self, rows: NDArray[Any]) -> dict[str, NDArray[np.int32]]:
        """Values of the factors that it adds, for finite rows."""


def check_lens(lens: Any, *, adds_factors: bool = True, name: str = "lens") -> None:
    """Reject what is not a lens and, where factors have no use, a lens that adds some."""
    if lens is None:
        return
    if not isinstance(lens, RowLens):
        raise InputError(
            name,
            lens,
            "is not a lens",
            "pass one such as crossfusion.lens.unit(), or read its file with crossfusion.lens.read",
        )
    if lens.factors and not adds_factors:
        raise InputError(
            "lens",
            problem=f"adds the factor {lens.factors[0]!r}, which is of use in a summary only",
            remedy="pass it to summarize",
        )


def apply_lens(lens: Any, values: Any, rows: Any, name: str) -> tuple[Any, Names | None]:
    """Rows seen through a lens, if there is one, all in memory, and the names of their features.

    `values` is what the user passed, which may name features, and `rows` the same as an array.
    """
    names = column_names(values) or None
    if lens is None:
        return rows, names
    return map_rows(lens, rows, name), lens.name_features(names, name)


def map_rows(lens: RowLens, rows: Any, holder: str) -> Any:
    """Map all rows on threads, into one array."""
    dim = lens.count_features(rows.shape[1], holder)
    if not lens.changes_rows:
        return rows
    rows = np.asarray(rows) if isinstance(rows, LazyRows) else rows
    step = TASK_BLOCKS * _count_block_rows(lens, rows.shape[1])
    edges = range(0, max(1, rows.shape[0]), step)

    def work(start: int) -> NDArray[Any]:
        own = rows[start : start + step]
        return np.concatenate([*_map_blocks(lens, own)]) if own.shape[0] else _map_none(lens, rows, dim)

    with map_threads(len(edges)) as run:
        return np.concatenate([*run(work, edges)])


def _map_none(lens: RowLens, rows: Any, dim: int) -> NDArray[Any]:
    return np.empty((0, dim), lens.map_block(np.zeros((1, rows.shape[1]))).dtype)


def map_lazily(lens: RowLens, rows: Any, holder: str) -> Any:
    """The same rows, mapped block by block whenever they are read."""
    dim = lens.count_features(rows.shape[1], holder)
    if not lens.changes_rows:
        return rows
    return LazyRows((rows.shape[0], dim), np.dtype(np.float64), lambda: _map_blocks(lens, rows))


def label_rows(lens: RowLens, rows: Any, holder: str) -> dict[str, NDArray[np.int32]]:
    """Values of the factors that a lens adds; -1 for rows that are not finite."""
    lens.count_features(rows.shape[1], holder)
    found: dict[str, list[NDArray[np.int32]]] = {name: [np.empty(0, np.int32)] for name in lens.factors}
    for block in _split_blocks(rows, _count_block_rows(lens, rows.shape[1])):
        clean, finite = _replace_bad(block)
        with np.errstate(over="ignore", invalid="ignore"):
            labels = lens.label_block(clean)
        for name, values in labels.items():
            found[name].append(np.where(finite, values, np.int32(-1)))
    return {name: np.concatenate(values) for name, values in found.items()}


def _map_blocks(lens: RowLens, rows: Any) -> Iterator[NDArray[Any]]:
    for block in _split_blocks(rows, _count_block_rows(lens, rows.shape[1])):
        clean, finite = _replace_bad(block)
        with np.errstate(over="ignore", invalid="ignore"):  # as where rows are reduced
            mapped = lens.map_block(clean)
        if not finite.all():
            mapped[~finite] = np.nan
        yield mapped


def _replace_bad(block: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Put zeros in place of rows that are not finite, and say which rows are finite."""
    finite: NDArray[np.bool_] = np.asarray(np.isfinite(block.astype(np.float64, copy=False)).all(axis=1))
    return (block if finite.all() else np.where(finite[:, None], block, block.dtype.type(0))), finite


def _split_blocks(rows: Any, step: int) -> Iterator[NDArray[Any]]:
    """Dense blocks of at most so many rows."""
    chunks = rows.chunks() if isinstance(rows, LazyRows) else [rows]
    for chunk in chunks:
        for start in range(0, chunk.shape[0], step):
            block = chunk[start : start + step]
            yield block if isinstance(block, np.ndarray) else block.toarray()


def _count_block_rows(lens: RowLens, dim: int) -> int:
    return max(MIN_BLOCK_ROWS, fit_rows_in_cache(VALUE_BYTES * max(dim, lens.width)))


def as_lens_rows(values: Any, name: str, lens: Any) -> tuple[Any, Names | None]:
    """Rows of an argument, seen through a lens if there is one, and the names of their features."""
    return apply_lens(lens, values, as_rows(values, name), name)
