"""Arrow arrays from NumPy and back hold the same values as PyArrow's own conversions."""

import numpy as np
import pyarrow as pa
import pytest

from crossfusion._base import arrow

NUMBERS = [np.arange(5, dtype=kind) for kind in ("i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8")]
NUMBERS += [np.zeros(0), np.arange(10.0)[::2]]


@pytest.mark.parametrize("values", NUMBERS, ids=lambda values: f"{values.dtype}, {len(values)}")
def test_numbers_come_back_as_they_were(values):
    there = arrow.from_numbers(values)
    assert there.equals(pa.array(values))
    back = arrow.to_numpy(there)
    assert back.dtype == values.dtype
    assert back.tolist() == values.tolist()


@pytest.mark.parametrize("texts", [[], ["a"], ["", "é", "日本", "b" * 999]])
def test_texts_are_those_of_pyarrow(texts):
    there = arrow.from_texts(texts)
    there.validate(full=True)
    assert there.equals(pa.array(texts, pa.string()))


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, 2, None]),
        pa.array([True, False]),
        pa.array(["a", None]),
        pa.array([1.5, 2.5, 3.5])[1:],
        pa.chunked_array([[1, 2], [3]]),
        pa.chunked_array([[1, 2]]),
        pa.chunked_array([], pa.float32()),
    ],
    ids=str,
)
def test_other_arrays_are_converted_as_pyarrow_does(array):
    expected = array.to_numpy(zero_copy_only=False) if isinstance(array, pa.Array) else array.to_numpy()
    found = arrow.to_numpy(array)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_numbers_in_one_chunk_are_not_copied():
    values = np.arange(5.0)
    assert np.shares_memory(arrow.to_numpy(pa.chunked_array([arrow.from_numbers(values)])), values)
