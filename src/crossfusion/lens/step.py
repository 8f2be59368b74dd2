"""What every lens is made of: steps, each of which maps rows or names the region of each."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FloatArray

Names = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Step:
    """One map of rows. Its fields are arrays and plain values, and nothing else is needed to apply it or to store it.

    Parameters
    ----------
    dim : int or None
        Number of features of the rows; None for any.
    features : tuple of str or None
        Their names, if they have any.
    """

    dim: int | None
    features: Names | None

    kind: ClassVar[str]
    factors: ClassVar[Names] = ()  # that it adds
    changes_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Reject fields that do not belong together, as in a file that is not what was written."""
        dim_fits = self.dim is None or (type(self.dim) is int and self.dim > 0)
        names_fit = self.features is None or (self.dim == len(self.features) == len({*self.features, ""}) - 1)
        if not (dim_fits and names_fit):
            raise ValueError(f"{self.dim} features do not have the names {self.features}")
        for name, values in self.arrays().items():
            if not np.isfinite(values).all():
                raise ValueError(f"{name} is not finite")

    @property
    def width(self) -> int:
        """The largest number of values per row that the step works with."""
        return self.dim or 1

    def count_features(self, dim: int) -> int:
        """Number of features of mapped rows."""
        return dim

    def name_features(self, names: Names | None) -> Names | None:
        """Names of the features of mapped rows, given those of the rows."""
        return names

    def map_block(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Map finite rows."""
        raise NotImplementedError

    def label_block(self, rows: NDArray[Any]) -> NDArray[np.int32]:
        """Values of the factor that it adds."""
        raise NotImplementedError

    def describe(self) -> str:
        """Describe the step as in the repr of a lens."""
        raise NotImplementedError

    def arrays(self) -> dict[str, FloatArray]:
        """Fields that are arrays."""
        return {name: value for name, value in self._fields().items() if isinstance(value, np.ndarray)}

    def facts(self) -> dict[str, Any]:
        """All other fields, as JSON has them."""
        facts = {name: value for name, value in self._fields().items() if not isinstance(value, np.ndarray)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in facts.items()}

    def _fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def check_shape(values: FloatArray, *shape: int) -> None:
    """Reject an array of another shape, as in a file that is not what was written."""
    if values.shape != shape or values.dtype != np.float64:
        raise ValueError(f"an array has shape {values.shape} and type {values.dtype}, not {shape} and float64")
