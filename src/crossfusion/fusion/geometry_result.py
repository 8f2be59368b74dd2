"""The geometry of rows within groups: how many features, and how much variance, a comparison rests on."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion import plots
from crossfusion._base import MAX_LISTED_GROUPS, FloatArray, label_text, number_text, percent
from crossfusion.fusion.design import Design
from crossfusion.fusion.display import Content, Facts, TextTable
from crossfusion.fusion.geometry import caution_about_geometry
from crossfusion.fusion.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Geometry(Result):
    """Variance of features within groups, from the moments alone.

    Parameters
    ----------
    features : tuple
        Names of the features, or their numbers from 0 if they have none, the largest variance first.
    share : array
        Share of each feature in the variance within groups, in that order.
    dimension : float
        Effective dimension ``1 / Σ share²``: the number of features of equal variance with the same sum. None if
        rows do not vary within groups.
    within : float
        Variance within groups, summed over features.
    norm : float
        Root mean square length of the rows.
    center : float
        Length of the mean of all rows, as a share of `norm`: near 1, all rows point in almost the same direction.
    caution : str or None
        Warning that a few features of large variance hide a difference between groups in the others, with the remedy.

    Notes
    -----
    `to_frame` returns one row per feature with feature, share, cumulative. `plot` draws the largest shares.

    Examples
    --------
    >>> import crossfusion as cf
    >>> summary = cf.summarize([[0.0, 1.0], [2.0, 7.0], [2.0, 1.0], [4.0, 7.0]], by={"site": ["A", "A", "B", "B"]})
    >>> summary.geometry("site")
    Geometry of 2 features within groups
      effective dimension  1.220
      variance within      10.00
      length of rows       5.568, of which 80.3% is the length of their mean
    feature  share  cumulative
    1        90.0%       90.0%
    0        10.0%        100%
    """

    features: tuple[Hashable, ...]
    share: FloatArray
    dimension: float | None
    within: float
    norm: float
    center: float
    caution: str | None = None

    def _columns(self) -> dict[str, Any]:
        return {"feature": list(self.features), "share": self.share, "cumulative": np.cumsum(self.share)}

    def _draw(self, axes: Any) -> "Figure":
        """Draw the largest shares of the variance within groups."""
        shown = plots.LINES
        return plots.contributions(
            self.features[:shown],
            self.share[:shown],
            over="features",
            of=len(self.features),
            what="variance within groups",
            axes=axes,
        )

    def rows(self) -> list[tuple[str, str]]:
        """Return the numbers as names and texts.

        Returns
        -------
        list of tuple
            Pairs of text.
        """
        return [
            ("effective dimension", number_text(self.dimension)),
            ("variance within", number_text(self.within)),
            (
                "length of rows",
                f"{number_text(self.norm)}, of which {percent(self.center)} is the length of their mean",
            ),
        ]

    def _contents(self) -> list[Content]:
        cumulative = np.cumsum(self.share)
        rows = [
            [label_text(name), percent(share), percent(total)]
            for name, share, total in list(zip(self.features, self.share, cumulative, strict=True))[:MAX_LISTED_GROUPS]
        ]
        table = TextTable(["feature", "share", "cumulative"], rows, more=len(self.features) - len(rows))
        said = [f"caution: {self.caution}"] if self.caution else []
        return [f"Geometry of {len(self.features):,} features within groups", Facts(self.rows()), table, *said]


def measure_geometry(design: Design, weights: str) -> Geometry:
    """Measure the shares of features in the variance within the cells of a design."""
    design.check_groups()
    cells, weight = design.cells, design.weights(weights)
    within = np.asarray((weight / cells.count) @ cells.sumsq)
    total = float(within.sum())
    share = within / total if total > 0 else np.full(cells.dim, np.nan)
    order = np.argsort(-within, kind="stable")
    names = range(cells.dim) if design.features is None else design.features
    whole = cells.merge(np.zeros(len(cells), int), 1)
    norm = float(np.sqrt(np.sum(whole.mean**2) + whole.dispersion[0]))
    return Geometry(
        features=tuple(names[k] for k in order.tolist()),
        share=share[order],
        dimension=float(1 / np.sum(share**2)) if total > 0 else None,
        within=total,
        norm=norm,
        center=float(np.linalg.norm(whole.mean)) / norm if norm > 0 else 0.0,
        caution=caution_about_geometry(design, weight, names=design.features),
    )
