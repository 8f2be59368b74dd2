"""What was found of each embedding: how far its batches are apart, and what is left of its labels."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from crossfusion._base import FloatArray, label_text, number_text
from crossfusion.anndata.label_distances import WithinLabel
from crossfusion.fusion import Content, Fusion, TextTable, data_frame
from crossfusion.summary import LabelPairs, Standing, VersionRanking, fusion_columns

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Fusions = tuple[Fusion, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Leaderboard(VersionRanking):
    """Comparison of embeddings of the same cells: how far batches and labels are separated in each.

    Parameters
    ----------
    embeddings : tuple of str
        Their names, in the order they were given.
    batch_key, label_key, donor_key : str or None
        Columns of obs that hold the batch, the label and the unit.
    weights : str
        "pooled" or "balanced".
    reference : str
        The embedding that the others are compared with.
    batch : tuple of Fusion
        Batch removal: CFD(batch | label), or CFD(batch) without `label_key`. Lower is more fused.
    biology : tuple of Fusion, optional
        Biology kept: CFD(label | batch). Higher is better; None without `label_key`.
    plain : tuple of Fusion
        Unadjusted CFD(batch), which includes the effect of different mixes of labels in the batches.
    standing : tuple of Standing
        For each embedding: whether it is on the Pareto front, the embeddings it is tied with, the biology it lost, and
        a caution, for example if batches have equal means by construction.
    difference : array
        `batch` minus that of the reference, both unbiased.
    kept : array, optional
        `biology` minus that of the reference, both unbiased.
    labels : tuple of WithinLabel
        Both CFDs of each label, for each embedding; empty without `label_key`.
    pairs : LabelPairs or None
        CFD between the two labels of each pair, for each embedding; None without `label_key`.
    cells, left_out : int
        Number of cells that were measured, and of cells left out: those with a missing key, or in combinations with too
        few cells.
    level : float, optional
        Confidence level of all intervals; None without `donor_key`.
    lower, upper : array, optional
        Confidence limits of `difference`, which account for the donors that the embeddings share.
    kept_lower, kept_upper : array, optional
        Confidence limits of `kept`.

    Notes
    -----
    An embedding is on the *front* if no other one is clearly better on one axis without being clearly worse on the
    other. "Clearly" means that the interval of the difference excludes 0. An embedding that keeps less than half of the
    reference's distance between two labels, or collapses a label, has lost biology and is never on the front. If the
    means of its batches are equal by construction within each label, `batch` says nothing about it, and it is not
    judged. If they are equal unadjusted, as after centering each batch, `batch` is too small by up to its sampling
    error: the limits of its differences allow for that, and the table says so.

    `to_frame` has one row per embedding: embedding, standing, front (1, 0, or NaN if not judged), tied_with, lost
    (number of pairs and labels), caution; batch, biology and plain, which are unbiased, with their plug-in values (such
    as batch_distance) and limits (batch_lower, batch_upper); overlap; difference and kept, with their limits. `plot`
    draws batch against biology, one point per embedding, filled on the front, and beside it the batch effect within
    each label. Better is to the left (batches fused) and up (labels separated); lines are intervals.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> import crossfusion.anndata
    >>> rng = np.random.default_rng(0)
    >>> batch, label = np.repeat(["b1", "b2"], 100), np.tile(["T", "B"], 100)
    >>> x = rng.normal(size=(200, 4)) + 2 * (label == "T")[:, None]
    >>> adata = anndata.AnnData(x, obs=pd.DataFrame({"batch": batch, "label": label}, index=map(str, range(200))))
    >>> adata.obsm["X_shifted"] = x + (batch == "b2")[:, None]
    >>> board = crossfusion.anndata.cfd(
    ...     adata, batch_key="batch", label_key="label", embedding_obsm_keys=["X_shifted", "X"]
    ... )
    >>> board.front
    ('X',)
    >>> board  # doctest: +ELLIPSIS
    Leaderboard of 2 embeddings, the Pareto front first: batch = CFD(batch | label), ..., plain = CFD(batch)
    embedding      batch  biology      plain  batch change  biology change      standing
    X          -0.007349   0.7080  -0.004770       -0.2304               0         front
    X_shifted     0.2231   0.7080     0.1145     reference       reference  worse than X
    no units, so no intervals: differences smaller than the bias of the plug-in CFD count as ties
    """

    embeddings: tuple[str, ...]
    batch_key: str
    label_key: str | None
    donor_key: str | None
    weights: str
    reference: str
    batch: Fusions
    biology: Fusions | None
    plain: Fusions
    standing: tuple[Standing, ...]
    difference: FloatArray
    kept: FloatArray | None
    labels: tuple[WithinLabel, ...]
    pairs: LabelPairs | None
    cells: int
    left_out: int = 0
    level: float | None = None
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    kept_lower: FloatArray | None = None
    kept_upper: FloatArray | None = None

    _has_panels: ClassVar[bool] = True
    _kind: ClassVar[str] = "embedding"

    def _names(self) -> tuple[str, ...]:
        return self.embeddings

    def columns(self) -> dict[str, Any]:
        """Return the columns of `to_frame`, one entry per embedding.

        Returns
        -------
        dict
            Arrays by name.
        """
        columns: dict[str, Any] = {"embedding": np.array(self.embeddings, object)} | self._standing_columns()
        columns |= self._distance_columns("batch", "biology", "plain", plug_in=True)
        columns["overlap"] = np.array([fusion.overlap for fusion in self.batch])
        compared = ("difference", "lower", "upper", "kept", "kept_lower", "kept_upper")
        return columns | self._select_present(*compared)

    def _columns(self) -> dict[str, Any]:
        return self.columns()

    def label_columns(self) -> dict[str, Any]:
        """Return the columns of `labels_frame`, one entry per embedding and label.

        Returns
        -------
        dict
            Arrays by name; labels as text.
        """
        columns: dict[str, Any] = {
            "embedding": np.array([row.embedding for row in self.labels], object),
            "label": np.array([label_text(row.label) for row in self.labels], object),
            "cells": np.array([row.cells for row in self.labels], int),
            "batches": np.array([row.batches for row in self.labels], int),
        }
        batch = fusion_columns("batch", [row.fusion for row in self.labels], intervals=self.level is not None)
        kept = {name: np.array([getattr(row, name) for row in self.labels]) for name in ("biology", "kept")}
        return columns | batch | kept

    def labels_frame(self) -> "pd.DataFrame":
        """Return one row per embedding and label.

        Returns
        -------
        pandas.DataFrame
            Columns embedding, label, cells, batches, batch (unbiased), batch_distance (plug-in) and their limits;
            biology (unbiased CFD between the label and the others, within batches) and kept, its share of the
            reference's.
        """
        return data_frame(self.label_columns())

    def to_uns(self) -> dict[str, Any]:
        """Return the result in the form that `cfd` stores in ``adata.uns`` and that HDF5 and Zarr can hold.

        Returns
        -------
        dict
            "format" (2), "params" (the arguments, as text and numbers), "leaderboard" (columns of `to_frame`, as
            arrays) and, with `label_key`, "labels" (columns of `labels_frame`).
        """
        asked = {name: getattr(self, name) for name in ("batch_key", "label_key", "donor_key", "weights", "reference")}
        asked |= {"level": self.level, "cells": self.cells, "left_out": self.left_out}
        params = {name: value for name, value in asked.items() if value is not None}
        stored = {"format": 2, "params": params, "leaderboard": self.columns()}
        return stored | ({"labels": self.label_columns()} if self.labels else {})

    def _draw(self, axes: Any) -> "Figure":  # noqa: ARG002 - it has several
        from crossfusion.anndata.figure import draw_leaderboard

        drawn: Figure = draw_leaderboard(self)
        return drawn

    def _contents(self) -> list[Content]:
        return [self.title(), TextTable(*self.table()), *self.remarks()]

    def title(self) -> str:
        """Return the title of the table, which explains its columns.

        Returns
        -------
        str
            One line.
        """
        number = len(self.embeddings)
        what = f"Leaderboard of {number} embedding{'s' if number > 1 else ''}, {self._order_text()}: batch = "
        if self.label_key is None:
            return f"{what}CFD({self.batch_key})"
        both = f"CFD({self.batch_key} | {self.label_key}), biology = CFD({self.label_key} | {self.batch_key})"
        return f"{what}{both}, plain = CFD({self.batch_key})"

    def _texts(self) -> dict[str, list[str]]:
        columns = self._distance_texts("batch", "biology")
        if self.biology is not None:
            columns["plain"] = [number_text(fusion.unbiased) for fusion in self.plain]
        if len(self.embeddings) == 1:
            return columns  # there is nothing to compare with
        columns["batch change"] = self._change_texts(self.difference, self.lower, self.upper)
        if self.kept is not None:
            columns["biology change"] = self._change_texts(self.kept, self.kept_lower, self.kept_upper)
        return columns
