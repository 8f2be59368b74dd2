"""How groups mix in the regions of a codebook: the result, and the mutual information of group and region."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion import plots
from crossfusion._base import (
    MAX_LISTED_GROUPS,
    FloatArray,
    count_text,
    interval_text,
    label_text,
    level_text,
    number_text,
    p_text,
    percent,
)
from crossfusion.fusion.design import Codes
from crossfusion.fusion.display import Content, Facts, TextTable
from crossfusion.fusion.exclusion import Exclusion, describe_excluded
from crossfusion.fusion.result import Record, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REGION = "region"  # the factor
MAX_SHARES = 4  # groups that have a column of their own in the table
OPTIONAL_FIELDS = ("level", "interval", "stderr")


@dataclass(frozen=True)
class Region(Record):
    """One region of a codebook.

    Parameters
    ----------
    region : value
        The region.
    rows : float
        Number of rows in it.
    shares : mapping
        For each group, the share of its rows that lie in the region.
    only : value or None
        The group that all of its rows belong to; None if it holds several.
    cfd : float or None
        Unbiased CFD between the groups within the region; None if it holds one, or too few rows.
    part : float
        Contribution to the mutual information, as a share of the whole.
    place : tuple of float
        Coordinates of its mean on the plane that shows the most variance between regions.

    Examples
    --------
    >>> import crossfusion as cf
    >>> by = {"batch": ["a", "a", "a", "b", "b", "b"], "region": [0, 0, 1, 1, 2, 2]}
    >>> summary = cf.summarize([[0.0], [1.0], [4.0], [5.0], [8.0], [9.0]], by=by)
    >>> summary.mixing("batch").regions[0].shares["b"]
    0.0
    """

    region: Hashable
    rows: float
    shares: Mapping[Hashable, float]
    only: Hashable | None
    cfd: float | None
    part: float
    place: tuple[float, float]


@dataclass(frozen=True, eq=False, repr=False)
class Mixing(Result):
    """How far groups occupy different regions: 0 if they mix in every region, 1 if no region holds two of them.

    Parameters
    ----------
    information : float
        Normalized mutual information of group and region, corrected for chance: (I − E) / (H − E), for the mutual
        information I, its mean E under permutations of units (or rows), and the entropy H of the group. It may be
        slightly negative, which means that the sample shows no separation.
    plug_in : float
        I / H, without the correction, which is positive even for groups that mix.
    pvalue : float
        Share of permutations, including the observed labels, with at least the observed information.
    permutations : int
        Number of random permutations of units (or rows).
    labels : tuple
        The groups.
    counts : mapping
        Number of rows of each group.
    regions : tuple of Region
        The regions, the largest contribution to the information first.
    alone : float
        Share of the rows that lie in regions of one group.
    cfd, shift, composition : float or None
        Unbiased CFD between the groups, counting rows; its part within regions (adjusted for the region); and the rest,
        by the chain rule: what different shares of the regions contribute. None where undefined.
    level : float, optional
        Confidence level of `interval`, if requested.
    interval : tuple of float, optional
        Confidence limits of `information`, from units.
    stderr : float, optional
        Standard error of `information`.
    excluded : tuple of Exclusion
        Groups, or groups in single strata, left out because they have too few units.
    caution : str or None
        Warning that most rows lie in regions of one unit, where groups cannot be told from units.

    Notes
    -----
    `to_frame` returns one row per region with region, rows, only, cfd, part and the share of each group. `plot` draws
    a map of the regions.

    Examples
    --------
    >>> import crossfusion as cf
    >>> by = {"batch": ["a", "a", "a", "b", "b", "b"], "region": [0, 0, 1, 1, 2, 2]}
    >>> mixing = cf.summarize([[0.0], [1.0], [4.0], [5.0], [8.0], [9.0]], by=by).mixing("batch")
    >>> round(mixing.plug_in, 4)
    0.6667
    >>> [region.only for region in mixing.regions]
    ['a', 'b', None]
    """

    information: float
    plug_in: float
    pvalue: float
    permutations: int
    labels: tuple[Hashable, ...]
    counts: Mapping[Hashable, float]
    regions: tuple[Region, ...]
    alone: float
    cfd: float | None
    shift: float | None
    composition: float | None
    level: float | None = None
    interval: tuple[float, float] | None = None
    stderr: float | None = None
    excluded: tuple[Exclusion, ...] = ()
    caution: str | None = None

    def __float__(self) -> float:
        return self.information

    def _values(self) -> dict[str, Any]:
        found = super()._values()
        return {name: value for name, value in found.items() if value is not None or name not in OPTIONAL_FIELDS}

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {
            name: [getattr(region, name) for region in self.regions]
            for name in ("region", "rows", "only", "cfd", "part")
        }
        shares = {f"share of {label}": [region.shares[label] for region in self.regions] for label in self.labels}
        return columns | shares

    def _draw(self, axes: Any) -> "Figure":
        """Draw each region where its mean lies, as a pie of the groups' shares."""
        return plots.region_map(
            [label_text(label) for label in self.labels],
            np.array([region.place for region in self.regions]),
            np.array([region.rows for region in self.regions]),
            np.array([[region.shares[label] for label in self.labels] for region in self.regions]),
            title=f"normalized mutual information {interval_text(self.information, self.interval)}",
            axes=axes,
        )

    def facts(self) -> list[tuple[str, str]]:
        """Return the numbers as names and texts.

        Returns
        -------
        list of tuple
            Pairs of text.
        """
        alone = sum(region.only is not None for region in self.regions)
        test = f"{p_text(self.pvalue)}, {count_text(self.permutations, 'permutation')}"
        rows = [
            ("plug-in", f"{number_text(self.plug_in)}, without the correction for chance"),
            ("test", test),
            ("one group", f"{count_text(alone, 'region')}, with {percent(self.alone)} of the rows"),
        ]
        if self.cfd is not None:
            parts = f"composition {number_text(self.composition)} + shift within regions {number_text(self.shift)}"
            rows.append(("CFD", f"{number_text(self.cfd)} = {parts}"))
        if self.level is not None:
            rows.append(("interval", f"{level_text(self.level)} confidence, standard error {number_text(self.stderr)}"))
        rows += [("excluded", describe_excluded(self.excluded))] if self.excluded else []
        return rows + ([("caution", self.caution)] if self.caution else [])

    def title(self) -> str:
        """Return the estimate in one line.

        Returns
        -------
        str
            With its interval, if there is one.
        """
        groups, regions = count_text(len(self.labels), "group"), count_text(len(self.regions), "region")
        estimate = interval_text(self.information, self.interval)
        return f"Mixing of {groups} in {regions}, from 0 (mixed) to 1 (separate): {estimate}"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the regions as a table of text, the largest contribution first.

        Returns
        -------
        tuple
            Column names, and a list of rows, each a list of strings.
        """
        shown = self.labels[:MAX_SHARES]
        header = ["region", "rows", *(f"share of {label_text(label)}" for label in shown), "only", "CFD", "part"]
        rows = [
            [
                label_text(region.region),
                f"{region.rows:,.12g}",
                *(percent(region.shares[label]) for label in shown),
                "" if region.only is None else label_text(region.only),
                number_text(region.cfd),
                percent(region.part),
            ]
            for region in self.regions
        ]
        return header, rows

    def _contents(self) -> list[Content]:
        header, rows = self.table()
        more = max(len(rows) - MAX_LISTED_GROUPS, 0)
        return [self.title(), Facts(self.facts()), TextTable(header, rows[:MAX_LISTED_GROUPS], more=more)]


def measure_information(count: FloatArray, stratum: Codes) -> FloatArray:
    """Measure the mutual information of group and region within strata, by region; its sum is the whole, in nats.

    `count` holds the rows of each cell (a group in a stratum) in each region.
    """
    strata = np.zeros((int(stratum.max()) + 1, count.shape[1]))
    np.add.at(strata, stratum, count)
    rows = count.sum(axis=1, keepdims=True)
    expected = rows * strata[stratum] / np.maximum(strata.sum(axis=1)[stratum][:, None], 1e-300)
    ratio = np.divide(count, expected, out=np.ones_like(count), where=count > 0)
    return np.asarray(np.sum(count * np.log(ratio), axis=0) / count.sum())


def measure_entropy(rows: FloatArray, stratum: Codes) -> float:
    """Measure the entropy of the group within strata from the rows of each cell, in nats."""
    whole = np.bincount(stratum, weights=rows)[stratum]
    some = rows > 0
    return float(-np.sum(rows[some] * np.log(rows[some] / whole[some])) / rows.sum())
