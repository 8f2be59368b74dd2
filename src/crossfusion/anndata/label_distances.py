"""How far batches are apart within each label, and each label from the others."""

from collections.abc import Hashable
from dataclasses import dataclass

from crossfusion.fusion import Fusion, Record


@dataclass(frozen=True)
class WithinLabel(Record):
    """Both CFDs of one label: between batches among its cells, and between it and all other labels.

    Parameters
    ----------
    embedding : str
        The embedding.
    label : value
        The label.
    cells, batches : int
        Number of cells with this label, and of batches that contain such cells.
    fusion : Fusion or None
        CFD between the batches; None if there is only one batch.
    biology : float
        Unbiased CFD between this label and all others, within batches.
    kept : float
        `biology` as a share of that of the reference; NaN if the latter is not above 0.
    """

    embedding: str
    label: Hashable
    cells: int
    batches: int
    fusion: Fusion | None
    biology: float
    kept: float
