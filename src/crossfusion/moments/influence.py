"""Sums of the influence of rows on a distance, in one pass by a compiled, threaded kernel."""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import CodeArray, FloatArray, thread_count
from crossfusion.moments.kernel import CONVERTED_BYTES, choose_float_type

PRODUCTS = ((2, 0), (1, 1), (0, 2), (4, 0), (3, 1), (2, 2), (1, 3), (0, 4))  # powers of s and a in `sum_influences`


def sum_influences(
    rows: NDArray[Any], codes: CodeArray, mean: FloatArray, direction: FloatArray, dispersion: FloatArray, unit: float
) -> FloatArray:
    """Sum `PRODUCTS` over the rows of each group; a negative code leaves a row out.

    s = (‖z − mean‖² − dispersion) / unit and a = ⟨z − mean, direction⟩ / unit.
    """
    squarable = dispersion.max() < 1e30 and dispersion.min() > 1e-30  # in float32
    dtype = choose_float_type(rows.dtype) if squarable else np.dtype(np.float64)
    kernel = _load_influence_kernel(dtype)
    number, dim = rows.shape
    native = rows.dtype == dtype and rows.flags.c_contiguous
    step = max(1, number) if native else max(1, CONVERTED_BYTES // (dim * dtype.itemsize))
    center, along = mean.astype(dtype), direction.astype(dtype)

    def work(start: int, stop: int) -> FloatArray:
        sums = np.zeros((len(mean), len(PRODUCTS)))
        for begin in range(start, stop, step):
            where = slice(begin, min(begin + step, stop))
            chunk = np.ascontiguousarray(rows[where], dtype).view(np.ndarray)
            kernel(chunk, codes[where], center, along, dispersion, 1 / unit, sums)
        return sums

    threads = thread_count()
    edges = np.linspace(0, number, threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        return np.asarray(reduce(np.add, pool.map(work, edges[:-1], edges[1:])))


@lru_cache(maxsize=2)
def _load_influence_kernel(dtype: np.dtype[Any]) -> Any:
    from crossfusion.moments import compiled

    return compiled.compile_influence_sums(dtype)
