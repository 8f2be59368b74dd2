"""Sums of the influence of rows on a distance, in one pass."""

from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import CodeArray, FloatArray, split_rows, thread_count
from crossfusion.moments import kernel

READ_BYTES = 2**20  # of rows as float64, at a time
PRODUCTS = ((2, 0), (1, 1), (0, 2), (4, 0), (3, 1), (2, 2), (1, 3), (0, 4))  # powers of s and a in `sum_influences`


def sum_influences(
    rows: Any, codes: CodeArray, mean: FloatArray, direction: FloatArray, dispersion: FloatArray, unit: float
) -> FloatArray:
    """Sum `PRODUCTS` over the rows of each group; a negative code leaves a row out.

    s = (‖z − mean‖² − dispersion) / unit and a = ⟨z − mean, direction⟩ / unit.
    """
    codes = kernel.check_codes(codes, rows, len(mean))
    if kernel.compiled is None or not isinstance(rows, np.ndarray):
        return _sum_by_numpy(rows, codes, mean, direction, dispersion, unit)
    centers, along = np.ascontiguousarray(mean), np.ascontiguousarray(direction)

    def work(start: int, stop: int) -> FloatArray:
        sums = np.zeros((len(mean), len(PRODUCTS)))
        for chunk in kernel.split_for_conversion(rows[start:stop]):
            here = np.ascontiguousarray(codes[start : start + len(chunk)], np.int32)
            kernel.compiled.influence(chunk, here, centers, along, dispersion, 1 / unit, sums)
            start += len(chunk)
        return sums

    threads = max(1, min(thread_count(), rows.nbytes // kernel.THREAD_BYTES))
    edges = np.linspace(0, len(rows), threads + 1).astype(int).tolist()
    if threads == 1:
        return work(0, len(rows))
    with ThreadPoolExecutor(threads) as pool:
        return np.asarray(reduce(np.add, pool.map(work, edges[:-1], edges[1:])))


def _sum_by_numpy(
    rows: Any, codes: CodeArray, mean: FloatArray, direction: FloatArray, dispersion: FloatArray, unit: float
) -> FloatArray:
    """The same for sparse rows, and where there is no compiled kernel."""
    sums = np.zeros((len(mean), len(PRODUCTS)))
    for start, chunk in split_rows(rows, READ_BYTES):
        dense: NDArray[Any] = chunk if isinstance(chunk, np.ndarray) else chunk.toarray()
        here = codes[start : start + len(dense)]
        for group in np.unique(here[here >= 0]).tolist():
            own = here == group
            gap = np.subtract(dense if own.all() else dense[own], mean[group], dtype=np.float64)
            s = (np.einsum("ij,ij->i", gap, gap) - dispersion[group]) / unit
            a = gap @ (direction[group] / unit)
            ss, sa, aa = s * s, s * a, a * a
            sums[group] += [np.sum(values) for values in (ss, sa, aa, ss * ss, ss * sa, ss * aa, sa * aa, aa * aa)]
    return sums
