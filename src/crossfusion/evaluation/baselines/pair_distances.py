"""Squared distances between all pairs of rows, a block at a time, in memory linear in the rows.

One matrix product gives a block: ‖x − y‖² = (−2x, ‖x‖², 1) · (y, 1, ‖y‖²). Blocks depend on the numbers of rows alone,
and results come in their order, so the number of threads changes no sum.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossfusion._base import FloatArray, map_threads, multiply_matrices

BLOCK_ROWS = 256  # with 1024 columns a block takes 2 MB, which stay in the cache of a core
BLOCK_COLUMNS = 1024
CLOSE_SHARE = 1e-5  # squared distance, of the squared norms, below which the product has lost too many digits
ROUNDING = 16 * np.finfo(float).eps  # relative error of a sum over pairs: a smaller difference is none
RECOMPUTE_SIZE = 2**19  # numbers gathered at a time to recompute close pairs

Block = tuple[slice, slice]


@dataclass(frozen=True)
class SquaredDistances:
    """Squared distances between the rows of two groups, any block of them.

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The two groups of rows.
    left, right : array of shape (rows, dim + 2)
        The factors of the product, around a common center: one holds −2x, the other y.
    norm_a, norm_b : array of shape (rows,)
        Squared norms of the centered rows.
    """

    a: FloatArray
    b: FloatArray
    left: FloatArray
    right: FloatArray
    norm_a: FloatArray
    norm_b: FloatArray

    @classmethod
    def between(cls, a: FloatArray, b: FloatArray) -> "SquaredDistances":
        """Squared distances between the rows of `a` and the rows of `b`."""
        center = (a.mean(axis=0) + b.mean(axis=0)) / 2  # an offset common to both costs no digits
        left, right = (np.empty((len(rows), rows.shape[1] + 2)) for rows in (a, b))
        for factor, rows, norm, one in ((left, a, -2, -1), (right, b, -1, -2)):
            own = np.subtract(rows, center, out=factor[:, :-2])
            np.einsum("ij,ij->i", own, own, out=factor[:, norm])
            factor[:, one] = 1
        left[:, :-2] *= -2
        return cls(a, b, left, right, left[:, -2], right[:, -1])

    def flip(self) -> "SquaredDistances":
        """The same with the groups exchanged."""
        return SquaredDistances(self.b, self.a, self.right, self.left, self.norm_b, self.norm_a)

    def multiply(self, rows: Any, columns: Any, out: FloatArray | None = None) -> FloatArray:
        """Block of squared distances as the matrix product gives it; pairs that are close have yet to be mended."""
        left, right = self.left[rows], self.right[columns]
        return multiply_matrices(left, right.T, None if out is None else out[: len(left), : len(right)])

    def recompute_close(self, squares: FloatArray, rows: Any, columns: Any) -> FloatArray:
        """Recompute the close pairs of a block by differences, in place: equal rows are at distance zero exactly."""
        limit = 2 * CLOSE_SHARE * self.norm_a[rows]  # rows that are close have almost the same norm
        some = np.flatnonzero(squares.min(axis=1, initial=np.inf) < limit)
        if len(some):
            which, j = np.nonzero(squares[some] < limit[some, None])
            _recompute(squares, self.a[rows], self.b[columns], (some[which], j))
        return squares

    def compute_block(self, rows: Any, columns: Any) -> FloatArray:
        """Block of squared distances."""
        return self.recompute_close(self.multiply(rows, columns), rows, columns)


def _recompute(squares: FloatArray, a: FloatArray, b: FloatArray, pairs: Any) -> None:
    step = max(1, RECOMPUTE_SIZE // a.shape[1])
    for start in range(0, len(pairs[0]), step):
        i, j = (side[start : start + step] for side in pairs)
        gap = a[i] - b[j]
        squares[i, j] = np.einsum("ij,ij->i", gap, gap)


def compute_squared_distances(a: FloatArray, b: FloatArray) -> FloatArray:
    """Squared distances between all rows of two groups, as one matrix."""
    whole = np.empty((len(a), len(b)))

    def keep(squares: FloatArray, rows: slice, columns: slice) -> None:
        whole[rows, columns] = squares

    map_blocks(keep, a, b)
    return whole


def map_blocks(work: Callable[[FloatArray, slice, slice], Any], a: FloatArray, b: FloatArray) -> list[Any]:
    """Results of ``work(squares, rows, columns)`` for blocks that cover all pairs of a row of each group.

    `squares` may be overwritten, and does not outlive the call.
    """
    blocks = [
        (rows, columns)
        for rows in _split_range(0, len(a), BLOCK_ROWS)
        for columns in _split_range(0, len(b), BLOCK_COLUMNS)
    ]
    return _map(work, SquaredDistances.between(a, b), blocks)


def map_pairs(work: Callable[[FloatArray], Any], a: FloatArray, b: FloatArray) -> tuple[list[Any], ...]:
    """Results of ``work(squares)`` for parts of all pairs between the groups, within `a` and within `b`.

    Within a group each pair counts once, and no row pairs with itself. `squares` may be overwritten, and does not
    outlive the call.
    """
    between = map_blocks(lambda squares, *_: work(squares), a, b)
    return between, _map_within(work, a), _map_within(work, b)


def _map_within(work: Callable[[FloatArray], Any], rows: FloatArray) -> list[Any]:
    stripes = _split_range(0, len(rows), BLOCK_ROWS)
    beside = [(own, columns) for own in stripes for columns in _split_range(own.stop, len(rows), BLOCK_COLUMNS)]

    def count_once(block: FloatArray, own: slice, columns: slice) -> Any:
        on_diagonal = own.start == columns.start
        return work(block[np.triu_indices(len(block), 1)] if on_diagonal else block)

    return _map(count_once, SquaredDistances.between(rows, rows), [(own, own) for own in stripes] + beside)


def _split_range(start: int, stop: int, step: int) -> list[slice]:
    return [slice(begin, min(begin + step, stop)) for begin in range(start, stop, step)]


def _map(work: Callable[[FloatArray, slice, slice], Any], squares: SquaredDistances, blocks: list[Block]) -> list[Any]:
    memory = threading.local()

    def work_on_block(block_at: Block) -> Any:
        if not hasattr(memory, "scratch"):
            memory.scratch = np.empty((min(BLOCK_ROWS, len(squares.left)), min(BLOCK_COLUMNS, len(squares.right))))
        block = squares.multiply(*block_at, memory.scratch)
        return work(squares.recompute_close(block, *block_at), *block_at)

    with map_threads(len(blocks)) as apply:
        return list(apply(work_on_block, blocks))
