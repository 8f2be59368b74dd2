"""Rows of unit length."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crossfusion.lens.composition import Lens
from crossfusion.lens.fitting import Training
from crossfusion.lens.step import Names, Step


@dataclass(frozen=True, eq=False)
class Unit(Step):
    """Each row over its length; rows of zeros stay as they are."""

    dim: int | None = None
    features: Names | None = None

    kind: ClassVar[str] = "unit"

    def map_block(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Map finite rows."""
        values = rows.astype(np.float64)
        largest = np.abs(values).max(axis=1, keepdims=True)
        values /= np.maximum(largest, np.finfo(np.float64).tiny)  # so that no square overflows
        length = np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
        return np.asarray(np.divide(values, length, out=values, where=length > 0))

    def describe(self) -> str:
        """Describe the step."""
        return "unit"


def unit() -> Lens:
    """Make a lens that scales each row to unit length, so that only its direction counts.

    Returns
    -------
    Lens
        The lens; it needs no fitting. Rows of zeros stay zero.

    Notes
    -----
    Squared distances of unit vectors are twice their cosine distance, and the total variance is 1 − ‖μ‖². So CFS is
    exactly (1 − Σ w_k ‖μ_k‖²) / (1 − ‖μ‖²) for groups of weight w_k and mean μ_k, with overall mean μ.

    Examples
    --------
    >>> import crossfusion as cf
    >>> cf.lens.unit()([[3.0, 4.0], [0.0, 2.0]])
    array([[0.6, 0.8],
           [0. , 1. ]])
    """
    return Lens((Unit(),))


def fit_unit(training: Training) -> Lens:
    """The same, after the lens that rows are seen through."""
    return training.follow(Unit())
