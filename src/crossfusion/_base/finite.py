"""Rows with NaN or infinite values: find them, and raise an error or drop them."""

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base.errors import NonFiniteError, warn
from crossfusion._base.lazy_rows import LazyRows
from crossfusion._base.messages import arg
from crossfusion._base.text import MAX_LISTED_GROUPS, label_text

SPLIT_BYTES = 8 * 2**20  # bytes checked at a time
NAN_OPTIONS = ("raise", "drop")  # what can be done about such rows
DROP_REMEDY = f"leave those rows out with {arg('nan', 'drop')}"  # the usual way out


def require_finite(rows: NDArray[Any], name: str, nan: str, way_out: str = DROP_REMEDY) -> NDArray[Any]:
    """Return the finite rows if others may be dropped; otherwise raise an error."""
    finite = find_finite_rows(rows)
    check = FiniteCheck(name)
    check.see(rows, None if finite.all() else finite)
    return rows[finite] if check.settle(nan, way_out) else rows


def split_rows(rows: Any, size: int = SPLIT_BYTES) -> Iterable[tuple[int, Any]]:
    """Chunks of rows of a few megabytes each, with the index of their first row."""
    if isinstance(rows, LazyRows):
        start = 0
        for chunk in rows.chunks():
            yield start, chunk
            start += len(chunk)
        return
    step = max(1, size // (8 * rows.shape[1]))
    for start in range(0, rows.shape[0], step):
        yield start, rows[start : start + step]


def find_finite_rows(rows: Any) -> NDArray[np.bool_]:
    """Find the rows that contain only finite values."""
    if isinstance(rows, LazyRows):
        return rows.find_finite()
    masks = [
        np.isfinite(chunk.astype(np.float64, copy=False)).all(axis=1)
        if isinstance(chunk, np.ndarray)
        else _find_finite_sparse(chunk)
        for _, chunk in split_rows(rows)
    ]
    return np.concatenate([np.ones(0, bool), *masks])


def _find_finite_sparse(chunk: Any) -> NDArray[np.bool_]:
    owner = np.repeat(np.arange(chunk.shape[0]), np.diff(chunk.indptr))
    bad = np.bincount(owner[~np.isfinite(chunk.data)], minlength=chunk.shape[0])
    return np.asarray(bad == 0)


class FiniteCheck:
    """Counts and locates rows that are not finite, over any number of chunks, and reports them once.

    Parameters
    ----------
    name : str
        What the rows are called in messages.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows = self.bad = 0
        self.where = ""

    def see(self, rows: Any, finite: NDArray[np.bool_] | None, first: int = 0) -> None:
        """Record which rows of a chunk are finite (None: all); `first` is the index of its first row."""
        if finite is not None:
            if not self.bad:
                self.where = self._describe_first(rows, finite, first)
            self.bad += len(finite) - int(finite.sum())
        self.rows += rows.shape[0]

    def _describe_first(self, rows: Any, finite: NDArray[np.bool_], start: int) -> str:
        first = int(np.flatnonzero(~finite)[0])
        if isinstance(rows, LazyRows):
            row = rows.read_row(first)
        else:
            row = rows[first] if isinstance(rows, np.ndarray) else rows[[first]].toarray()[0]
        feature = int(np.flatnonzero(~np.isfinite(row.astype(np.float64)))[0])
        return f"row {start + first}, feature {feature}"

    def settle(self, nan: str, way_out: str = DROP_REMEDY, so_far: bool = False) -> int:
        """Raise an error, or warn and return the number of dropped rows."""
        if self.bad == 0:
            return 0
        rows = f"the first {self.rows}" if so_far else f"{self.rows}"
        found = f"NaN or infinite values in {self.bad} of {rows} rows, the first in {self.where} (from 0)"
        if nan == "raise":
            raise NonFiniteError(self.name, problem=f"has {found}", remedy=f"fix them, or {way_out}")
        warn(f"{self.name} has {found}", "those rows are left out")
        return self.bad


LOST_GROUPS = "groups without a finite row are left out"  # how that warning begins


def warn_about_lost_groups(gone: Collection[Any]) -> None:
    """Warn about groups without a finite row, if there are any."""
    if gone:
        warn(f"{LOST_GROUPS} ({len(gone)}): {', '.join(sorted(map(label_text, gone))[:MAX_LISTED_GROUPS])}")
