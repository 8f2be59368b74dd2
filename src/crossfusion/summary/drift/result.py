"""Results of a drift query."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossfusion import plots
from crossfusion._base import (
    MAX_LISTED_GROUPS,
    FloatArray,
    count_text,
    label_text,
    level_text,
    limits_text,
    number_text,
    p_text,
    percent,
    pvalue_text,
)
from crossfusion.fusion import Attribution, Content, Exclusion, Record, Result, TextTable, describe_scale, list_excluded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WINDOW_COLUMNS = ("count", "distance", "unbiased", "lower", "upper", "pvalue", "threshold", "alarm", "incomparable")
LABEL_COLUMNS = ("overlap", "compared", "plain", "label_shift", "composition")
BARS = " ▁▂▃▄▅▆▇█"
NO_BAR = "·"  # of a window without a distance
MAX_BARS = 40  # periods in a row of blocks


@dataclass(frozen=True)
class Change(Record):
    """The most likely change point of a series of periods.

    Parameters
    ----------
    period : value
        The first period after the change.
    distance, unbiased : float
        Plug-in and unbiased Cross-Fusion Distance between the periods before the change and the periods after it;
        `unbiased` is None if undefined.
    pvalue : float, optional
        Probability of at least this distance at any split without drift; None if the reference has too few periods.

    Examples
    --------
    >>> import crossfusion as cf
    >>> summary = cf.summarize([[0.0], [2.0], [0.0], [2.0], [5.0], [7.0]], by={"week": [1, 1, 2, 2, 3, 3]})
    >>> summary.drift("week", reference=[1], alarm=None).change.period
    3
    """

    period: Hashable
    distance: float
    unbiased: float | None
    pvalue: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Drift(Result):
    """Distance of each window of periods to the reference, with alarms.

    Parameters
    ----------
    time : str
        The factor whose values are the periods.
    reference : tuple, or "previous"
        The periods of the reference, or "previous" if each window is compared with the one before it.
    periods, starts : tuple
        The last and the first period of each window.
    count : array
        Number of rows of each window.
    distance, unbiased : array
        Plug-in and unbiased Cross-Fusion Distance to the reference; NaN where the window shares no stratum with the
        reference, and `unbiased` also where undefined.
    incomparable : array of bool
        Whether the window cannot be compared: it shares no stratum with the reference or, if alarms are requested, none
        that occurs in every reference period. Such a window never raises an alarm.
    caution : str, optional
        Warning that names windows whose comparison rests on few rows, or whose means hide a change.
    lower, upper : array, optional
        Confidence limits of the distance at `level`, if units were given.
    level : float, optional
        Confidence level of the limits.
    pvalue : array, optional
        Probability of at least this distance without drift; NaN if there are too few earlier periods.
    threshold : array, optional
        Distance above which a single window raises an alarm.
    alarm : array of bool
        Whether `pvalue`, adjusted if requested, is at most `rate`.
    rate : float, optional
        The requested rate of false alarms.
    adjust : str, optional
        Method that adjusted the p-values for the number of windows.
    overlap, compared : array, optional
        With `given`: the share of the weight in strata that the window and the reference share, and the number of the
        window's rows in them.
    plain, label_shift, composition : array, optional
        With `given`: the unadjusted CFD; the contribution of changed strata to it (by the chain rule, the
        unadjusted minus the adjusted unbiased CFD, both counting rows); and the share of rows that would have to
        change stratum to restore the composition of the reference.
    change : Change, optional
        The most likely change point of the series.
    jump : value
        The last period of the window that `attributions` explains: the first alarm; without alarms, the window with the
        smallest p-value or, without p-values, the largest distance; None if no window can be compared.
    attributions : mapping
        Attribution of that window's distance to features and to the requested factors.
    excluded : tuple of Exclusion
        Strata left out of the distance and interval of a window because the window, or the reference, has too few units
        in them; `group` is the label of the window, or "reference".
    scale : str, optional
        "features" if each feature is in units of its standard deviation within the reference periods.
    constant : tuple, optional
        With `scale`: the features left out because they do not vary there.

    Notes
    -----
    `to_frame` returns one row per window with start, period, count, distance, unbiased and the requested fields. `plot`
    draws the distances over time, the alarm threshold, the alarms and the change.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> week = np.repeat(np.arange(1, 13), 50)
    >>> x = np.random.default_rng(0).normal(size=(600, 16)) + np.where(week < 11, 0.0, 0.5)[:, None]
    >>> drift = cf.summarize(x, by={"week": week}).drift("week", reference="first:8")
    >>> drift.alarm
    array([False, False,  True,  True])
    >>> drift.change.period
    11
    """

    time: str
    reference: tuple[Hashable, ...] | str
    periods: tuple[Hashable, ...]
    starts: tuple[Hashable, ...]
    count: FloatArray
    distance: FloatArray
    unbiased: FloatArray
    alarm: NDArray[np.bool_]
    incomparable: NDArray[np.bool_]
    caution: str | None = None
    rate: float | None = None
    adjust: str | None = None
    pvalue: FloatArray | None = None
    threshold: FloatArray | None = None
    level: float | None = None
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    overlap: FloatArray | None = None
    compared: FloatArray | None = None
    plain: FloatArray | None = None
    label_shift: FloatArray | None = None
    composition: FloatArray | None = None
    change: Change | None = None
    jump: Hashable = None
    attributions: Mapping[str, Attribution] = field(default_factory=dict)
    excluded: tuple[Exclusion, ...] = ()
    scale: str | None = None
    constant: tuple[Hashable, ...] | None = None

    def _columns(self) -> dict[str, Any]:
        columns = {
            name: getattr(self, name) for name in (*WINDOW_COLUMNS, *LABEL_COLUMNS) if getattr(self, name) is not None
        }
        return {"start": list(self.starts), "period": list(self.periods)} | columns

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the windows as a table of text, in order of time.

        Returns
        -------
        tuple
            Column names, and a list of rows, each a list of strings.
        """
        header = [self.time, "rows", "distance", "unbiased"]
        header += [] if self.level is None else [f"{level_text(self.level)} interval"]
        header += [] if self.plain is None else ["label shift", "overlap"]
        header += [] if self.pvalue is None else ["pvalue"]
        header += ["alarm"] if self.pvalue is not None or self.incomparable.any() else []
        return header, [self._row(k) for k in range(len(self.periods))]

    def _row(self, k: int) -> list[str]:
        row = [self.window(k), f"{self.count[k]:,.12g}", number_text(self.distance[k]), number_text(self.unbiased[k])]
        if self.lower is not None and self.upper is not None:
            row.append(limits_text(self.lower[k], self.upper[k]))
        if self.label_shift is not None:
            row.append(number_text(self.label_shift[k]))
        if self.overlap is not None:
            row.append(percent(self.overlap[k]))
        if self.pvalue is not None:
            row.append(pvalue_text(self.pvalue[k]))
        if self.pvalue is not None or self.incomparable.any():
            row.append("ALARM" if self.alarm[k] else "incomparable" if self.incomparable[k] else "")
        return row

    def window(self, k: int) -> str:
        """Return the label of a window.

        Parameters
        ----------
        k : int
            Index of the window.

        Returns
        -------
        str
            Its period, or its first and last period.
        """
        first, last = self.starts[k], self.periods[k]
        return label_text(last) if first == last else f"{label_text(first)} … {label_text(last)}"

    def name_windows(self, chosen: NDArray[np.bool_]) -> str:
        """Return the labels of some windows, or of the first few.

        Parameters
        ----------
        chosen : array of bool
            Which windows.

        Returns
        -------
        str
            The labels, and the number of further windows.
        """
        return list_windows([self.window(k) for k in np.flatnonzero(chosen).tolist()])

    def sparkline(self) -> str:
        """Draw the distances of the latest windows as a line of bar characters.

        Returns
        -------
        str
            One character per window.
        """
        shown = np.nan_to_num(self.distance[-MAX_BARS:], posinf=np.nan)
        top = np.nanmax(shown) if np.isfinite(shown).any() else 0.0
        share = np.nan_to_num(shown / top, nan=1.0) if top > 0 else np.zeros(len(shown))
        bars = [BARS[max(1, round(8 * value))] for value in share.tolist()]
        known = ~np.isnan(self.distance[-MAX_BARS:])
        return "".join(np.where(known, bars, NO_BAR).tolist())

    def describe(self) -> list[str]:
        """Describe the scale, incomparable windows, the change and the attributions in words.

        Returns
        -------
        list of str
            One line each for the scale, incomparable windows, excluded strata, a caution and the change, and one per
            attribution.
        """
        lines = [f"scale: {describe_scale(self.constant or (), 'within the reference')}"] if self.scale else []
        if self.incomparable.any():
            lines.append(f"cannot be compared, for lack of common strata: {self.name_windows(self.incomparable)}")
        if self.excluded:
            lines.append(f"excluded: {list_excluded(self.excluded)}; distances are about the remaining strata")
        if self.caution is not None:
            lines.append(f"caution: {self.caution}")
        if self.change is not None:
            chance = "" if self.change.pvalue is None else f", {p_text(self.change.pvalue)}"
            lines.append(
                f"change: largest before and from {label_text(self.change.period)} on, distance"
                f" {number_text(self.change.distance)}{chance}"
            )
        for name, attribution in self.attributions.items():
            window = self.window(self.periods.index(self.jump))
            labels, share = attribution.labels, attribution.share
            top = ", ".join(f"{label_text(labels[i])} {percent(share[i])}" for i in attribution.top(3))
            lines.append(f"{window} by {name}: {top}")
        return lines

    def _draw(self, axes: Any) -> "Figure":
        """Draw the distances over time, the alarm threshold, the alarms and the change."""
        limits = None if self.lower is None or self.upper is None else np.array([self.lower, self.upper])
        change = None if self.change is None or self.change.period not in self.starts else self.change.period
        return plots.series(
            self.periods,
            self.distance,
            alarm=self.alarm,
            limits=limits,
            threshold=self.threshold,
            rate=self.rate,
            change=None if change is None else self.starts.index(change),
            time=self.time,
            axes=axes,
        )

    def _contents(self) -> list[Content]:
        compared = self.reference if isinstance(self.reference, str) else count_text(len(self.reference), "period")
        rate = "" if self.rate is None else f", alarm at {self.rate:g}"
        title = f"Drift over {self.time}, reference: {compared}{rate}   {self.sparkline()}"
        return [title, TextTable(*self.table()), *self.describe()]


def list_windows(names: Sequence[str]) -> str:
    """List the first of some names of windows, and say how many more there are."""
    more = len(names) - MAX_LISTED_GROUPS
    return ", ".join(names[:MAX_LISTED_GROUPS]) + (f" and {more} more" if more > 0 else "")
