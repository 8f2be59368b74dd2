"""What a degradation study found, as tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from crossfusion import plots
from crossfusion._base import (
    InputError,
    check_option,
    count_text,
    field_values,
    level_text,
    limits_text,
    number_text,
    pvalue_text,
    quantity_text,
)
from crossfusion.evaluation.protocols.degradation_result import SCORE_NAMES
from crossfusion.fusion import Content, Result, TextTable, data_frame, record_columns
from crossfusion.plots import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

POINT_SETS = ("corrections", "pairs", "all")
FEW_DOMAINS = 10  # points of which a correlation says little, or domains


@dataclass(frozen=True)
class Outcome:
    """One directed pair of domains after one correction."""

    correction: str
    train: Any
    test: Any
    distances: Mapping[str, float]
    within: float
    cross: float
    cddr: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Association:
    """How closely one distance goes with degradation, over some of the outcomes."""

    over: str
    correction: str | None
    distance: str
    points: int
    pearson: float
    pearson_lower: float | None
    pearson_upper: float | None
    pearson_pvalue: float | None
    spearman: float
    spearman_lower: float | None
    spearman_upper: float | None
    spearman_pvalue: float | None
    rank: int
    rank_spearman: int


@dataclass(frozen=True, repr=False)
class Study(Result):
    """Distances between domains and the degradation of a model between them, before and after corrections.

    Parameters
    ----------
    outcomes : tuple
        One entry per correction and directed pair, with ``correction``, ``train``, ``test``, ``distances`` (name to
        value), the scores ``within`` and ``cross``, ``cddr`` and its limits ``lower`` and ``upper``.
    associations : tuple
        One entry per distance and set of points, with Pearson's and Spearman's correlation with CDDR, their limits and
        p-values (None if undefined) and the distance's rank by each, 1 for the highest. ``over`` identifies the points:
        "pairs" within one ``correction``, "corrections" averaged over pairs as in the paper, or "all".
    domains : tuple
        The domains.
    metric : str
        The score.
    level : float
        Confidence level of all limits.
    rows : int
        Number of rows per domain in each distance.
    repeats : int
        Number of random samples over which each distance is averaged.

    Notes
    -----
    `to_frame` has one row per correction and directed pair: correction, train, test, one column per distance, within,
    cross, cddr, lower, upper. `plot` draws distances against degradation, one panel per distance, one color per
    correction; titles give Pearson's correlation over the pairs within the first correction and over all.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> rng = np.random.default_rng(0)
    >>> site, label = np.repeat(["A", "B", "C"], 80), np.tile([0, 1], 120)
    >>> x = rng.normal(size=(240, 4)) + 2 * label[:, None] + np.repeat([0.0, 0.5, 2.0], 80)[:, None]
    >>> found = cf.degradation_study(x, label, site, distances=["cfd"], corrections=["none", "center"])
    >>> len(found.outcomes)
    12
    """

    _has_panels: ClassVar[bool] = True

    outcomes: tuple[Outcome, ...]
    associations: tuple[Association, ...]
    domains: tuple[Any, ...]
    metric: str
    level: float
    rows: int
    repeats: int

    @property
    def distances(self) -> tuple[str, ...]:
        """Names of the distances."""
        return tuple(self.outcomes[0].distances)

    @property
    def corrections(self) -> tuple[str, ...]:
        """Names of the corrections."""
        return tuple(dict.fromkeys(outcome.correction for outcome in self.outcomes))

    @property
    def caution(self) -> str:
        """Warning about the correlations."""
        said = f"{count_text(len(self.domains), 'domain')} and {count_text(len(self.corrections), 'correction')}"
        if len(self.domains) >= FEW_DOMAINS:
            return ""
        return f"correlations rest on {said}; pairs share domains, so these are few points, however many the rows"

    def _columns(self) -> dict[str, Any]:
        columns = {name: [getattr(o, name) for o in self.outcomes] for name in ("correction", "train", "test")}
        columns |= {name: [o.distances[name] for o in self.outcomes] for name in self.distances}
        scores = ("within", "cross", "cddr", "lower", "upper")
        return columns | {name: [getattr(o, name) for o in self.outcomes] for name in scores}

    def correlations_frame(self) -> "pd.DataFrame":
        """Return one row per distance and set of points.

        Returns
        -------
        pandas.DataFrame
            Columns as in ``associations``.
        """
        return data_frame(record_columns(Association, self.associations))

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the result as a table of text, laid out like table 3 of the paper.

        Returns
        -------
        tuple
            Column names, and a list of rows, each a list of strings: averages over all directed pairs, one row per
            correction, and last Pearson's correlation of these averages with CDDR.
        """
        header = ["correction", *self.distances, f"cross {SCORE_NAMES[self.metric]}", "CDDR"]
        rows = []
        for name in self.corrections:
            own = [outcome for outcome in self.outcomes if outcome.correction == name]
            values = [np.mean([o.distances[d] for o in own]) for d in self.distances]
            values += [np.mean([o.cross for o in own]), np.mean([o.cddr for o in own])]
            distances, rates = values[:-2], values[-2:]
            rows.append([name, *(quantity_text(float(v)) for v in distances), *(number_text(float(v)) for v in rates)])
        found = {a.distance: a.pearson for a in self.associations if a.over == "corrections"}
        last = [number_text(found.get(name)) for name in self.distances]
        return header, [*rows, ["correlation with CDDR", *last, "–", "–"]]

    def correlations(self, over: str = "pairs", correction: str | None = None) -> tuple[list[str], list[list[str]]]:
        """Return the correlations with CDDR as a table of text, highest first.

        Parameters
        ----------
        over : {"pairs", "corrections", "all"}
            The points: pairs within one correction, corrections averaged over pairs, or all.
        correction : str, optional
            The correction, if the points are pairs; by default the first one.

        Returns
        -------
        tuple
            Names of the columns, and rows of text.
        """
        check_option(over, POINT_SETS, "over")
        name = (correction or self.corrections[0]) if over == "pairs" else None
        if name is not None and name not in self.corrections:
            raise InputError("correction", name, "is not in this study", f"there are {', '.join(self.corrections)}")
        found = [a for a in self.associations if (a.over, a.correction) == (over, name)]
        interval = f"{level_text(self.level)} interval"
        header = ["distance", "points", "Pearson", interval, "p", "Spearman", interval, "p"]
        return header, [_format_row(entry) for entry in sorted(found, key=lambda entry: entry.rank)]

    def _draw(self, axes: Any) -> "Figure":  # noqa: ARG002 - it has several
        """Draw distances against degradation: one panel per distance, one color per correction."""
        points: dict[str, list[dict[str, float]]] = {name: [] for name in self.corrections}
        for outcome in self.outcomes:
            limits = {"cddr": outcome.cddr, "lower": outcome.lower, "upper": outcome.upper}
            points[outcome.correction].append({**outcome.distances, **limits})
        titles = {name: self._format_correlation(name) for name in self.distances}
        return plots.panels(titles, points, up=f"CDDR of the {SCORE_NAMES[self.metric]}")

    def _format_correlation(self, name: str) -> str:
        """Pearson's correlation of a distance."""
        found = {(a.over, a.correction): a.pearson for a in self.associations if a.distance == name}
        first = self.corrections[0]
        values = {first: found["pairs", first]} | ({"all": found["all", None]} if ("all", None) in found else {})
        said = {text: f"{value:.2f}" if np.isfinite(value) else "–" for text, value in values.items()}
        return ", ".join(f"r {style.format_name(text)} {value}" for text, value in said.items())

    def _values(self) -> dict[str, Any]:
        return field_values(self) | {"caution": self.caution}

    def _contents(self) -> list[Content]:
        return [
            f"Distances, and what a model loses, averaged over {len(self._pairs())} directed pairs of domains",
            TextTable(*self.table()),
            f"Correlation with CDDR over pairs, {self.corrections[0]}",
            TextTable(*self.correlations("pairs")),
            *([f"caution: {self.caution}"] if self.caution else []),
        ]

    def _pairs(self) -> set[tuple[Any, Any]]:
        return {(outcome.train, outcome.test) for outcome in self.outcomes}


def _format_limits(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else limits_text(low, high)


def _format_row(entry: Association) -> list[str]:
    return [
        entry.distance,
        str(entry.points),
        number_text(entry.pearson),
        _format_limits(entry.pearson_lower, entry.pearson_upper),
        pvalue_text(entry.pearson_pvalue),
        number_text(entry.spearman),
        _format_limits(entry.spearman_lower, entry.spearman_upper),
        pvalue_text(entry.spearman_pvalue),
    ]
