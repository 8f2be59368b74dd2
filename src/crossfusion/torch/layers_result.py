"""Distances of the layers of a model, as a table and against depth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion import plots
from crossfusion._base import label_text, level_text, limits_text, number_text
from crossfusion.fusion import Content, Fusion, Result, TextTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Layers(Result):
    """Distances between groups in each layer of a model, in the order in which the layers are called.

    Parameters
    ----------
    names : tuple of str
        The layers. A layer that is called again in a pass is listed again: "relu", "relu:2".
    dims : tuple of int
        Number of features of each.
    fusions : tuple of Fusion
        CFD between the groups in each layer, adjusted for the strata if there are any.
    strata : tuple of Fusion, optional
        CFD between the strata, adjusted for the groups; None without ``given``.
    between, given : str
        Names of the factors of groups and strata.
    skipped : tuple of str
        Layers that do not return one vector per row of every batch.

    Notes
    -----
    `to_frame` returns one row per layer: layer, depth (from 1), dim, distance, unbiased and, with a level, lower and
    upper; with ``given`` also the same for the strata, as strata_distance and so on. `plot` draws the unbiased CFD
    against depth, with its intervals.

    Examples
    --------
    >>> import torch
    >>> from crossfusion.torch import layerwise_cfd
    >>> x = torch.arange(12.0).reshape(6, 2)
    >>> layers = layerwise_cfd(torch.nn.ReLU(), [(x, [0, 0, 0, 1, 1, 1])], between=1)
    >>> layers
    CFD(between) of 1 layer
    layer  depth  dim  distance  unbiased
    model      1    2     1.476     1.126
    """

    names: tuple[str, ...]
    dims: tuple[int, ...]
    fusions: tuple[Fusion, ...]
    strata: tuple[Fusion, ...] | None = None
    between: str = "between"
    given: str | None = None
    skipped: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {"layer": list(self.names), "depth": range(1, len(self) + 1), "dim": list(self.dims)}
        columns |= _make_columns(self.fusions)
        if self.strata is not None:
            columns |= {f"strata_{name}": values for name, values in _make_columns(self.strata).items()}
        return columns

    def _draw(self, axes: Any) -> "Figure":
        """Draw the unbiased distances against depth, with their intervals where there are any."""
        lines = {self._title("fusions"): self.fusions}
        if self.strata is not None:
            lines[self._title("strata")] = self.strata
        values = {
            title: np.array([np.nan if own.unbiased is None else own.unbiased for own in fusions])
            for title, fusions in lines.items()
        }
        columns = {title: _make_columns(fusions) for title, fusions in lines.items()}
        limits = {
            title: np.array([own["lower"], own["upper"]], np.float64)
            for title, own in columns.items()
            if "lower" in own
        }
        return plots.depth(self.names, values, limits, axes=axes)

    def _title(self, kind: str) -> str:
        first, second = (self.between, self.given) if kind == "fusions" else (self.given, self.between)
        return f"CFD({first})" if second is None else f"CFD({first} | {second})"

    def _contents(self) -> list[Content]:
        header = ["layer", "depth", "dim", "distance", "unbiased"]
        level = self.fusions[0].level
        header += [] if level is None else [f"{level_text(level)} interval"]
        header += [] if self.strata is None else [self._title("strata")]
        rows = []
        for depth, (name, dim, fusion) in enumerate(zip(self.names, self.dims, self.fusions, strict=True), 1):
            row = [label_text(name), f"{depth}", f"{dim:,}", number_text(fusion.distance), number_text(fusion.unbiased)]
            if fusion.interval is not None:
                row.append(limits_text(*fusion.interval))
            rows.append(row + ([] if self.strata is None else [number_text(self.strata[depth - 1].unbiased)]))
        said = (
            [f"left out because they do not give one vector per row: {', '.join(self.skipped)}"] if self.skipped else []
        )
        counted = f"{len(self)} layer{'' if len(self) == 1 else 's'}"
        return [f"{self._title('fusions')} of {counted}", TextTable(header, rows), *said]


def _make_columns(fusions: Sequence[Fusion]) -> dict[str, list[float | None]]:
    columns: dict[str, list[float | None]] = {
        "distance": [fusion.distance for fusion in fusions],
        "unbiased": [fusion.unbiased for fusion in fusions],
    }
    intervals = [fusion.interval for fusion in fusions if fusion.interval is not None]
    if intervals:
        columns["lower"], columns["upper"] = map(list, zip(*intervals, strict=True))
    return columns
