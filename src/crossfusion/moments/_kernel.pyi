"""Loops over rows at the speed of memory."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import CodeArray, FloatArray

def accumulate(
    rows: NDArray[Any],
    codes: CodeArray | None,
    tile: int,
    origin: FloatArray,
    count: FloatArray,
    mean: FloatArray,
    sumsq: FloatArray,
) -> None: ...
def influence(
    rows: NDArray[Any],
    codes: CodeArray,
    mean: FloatArray,
    direction: FloatArray,
    dispersion: FloatArray,
    per_unit: float,
    sums: FloatArray,
) -> None: ...
def squared_distances(points: FloatArray, start: int, stop: int, out: FloatArray) -> None: ...
def add_members(belongs: NDArray[np.bool_], rows: FloatArray, sums: FloatArray) -> None: ...
def interleave(addresses: NDArray[Any], length: int, start: int, out: NDArray[Any]) -> None: ...
def instructions(name: str | None = None) -> str: ...
