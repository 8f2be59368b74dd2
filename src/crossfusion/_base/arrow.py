"""Arrow arrays from NumPy and back, without PyArrow's own conversions where they would import pandas.

They do so wherever pandas is installed, which takes a third of a second.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


def from_numbers(values: NDArray[Any]) -> "pa.Array":
    """An Arrow array of the integers or floats of a NumPy array, which is not copied."""
    import pyarrow as pa

    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def from_texts(values: Sequence[str]) -> "pa.Array":
    """An Arrow array of strings."""
    import pyarrow as pa

    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(encoded), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))])


def to_numpy(array: "pa.Array | pa.ChunkedArray") -> NDArray[Any]:
    """The values of an Arrow array; numbers in one chunk, of which none is missing, are not copied."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    if not array.null_count and (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        return np.from_dlpack(array)
    values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values
