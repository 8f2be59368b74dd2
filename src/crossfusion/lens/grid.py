"""Products of rows and fixed vectors that have the same bits wherever they are computed.

BLAS adds up in an order that depends on the machine, the threads and the place of a row in its block. Factors on a
coarse binary grid make every product and every sum exact in float64, so that no order matters: a row is mapped to the
same features, and to the same region, in one chunk or in many, here or on a cluster.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FloatArray, multiply_matrices

FARTHEST = 2.0**20  # of a row from the center, in units of the scale; rows beyond count as that far
ROW_BITS = 24  # binary digits after the point of rows in units of the scale
VECTOR_BITS = 18  # of the fixed vectors; both together leave 2^11 for the size of a sum


def round_to_grid(values: FloatArray, bits: int) -> FloatArray:
    """Round values to multiples of 2^-bits."""
    scaled = values * 2.0**bits
    np.rint(scaled, out=scaled)
    scaled *= 2.0**-bits
    return scaled


def multiply_exactly(rows: NDArray[Any], center: FloatArray, scale: float, vectors: FloatArray) -> FloatArray:
    """Products of (rows - center) / scale, rounded to the grid, and vectors on the grid."""
    values = np.subtract(rows, center, dtype=np.float64)
    values /= scale
    np.clip(values, -FARTHEST, FARTHEST, out=values)
    values *= 2.0**ROW_BITS
    np.rint(values, out=values)
    values *= 2.0**-ROW_BITS
    return multiply_matrices(values, vectors)
