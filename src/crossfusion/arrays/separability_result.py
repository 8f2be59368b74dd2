"""The result of `separability`."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion import plots
from crossfusion._base import MAX_LISTED_GROUPS, InputError, count_text, label_text, level_text, percent
from crossfusion.fusion import Content, Exclusion, Facts, Record, Result, TextTable, describe_excluded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("group_a", "group_b", "accuracy", "lower", "upper", "auc", "auc_lower", "auc_upper")


@dataclass(frozen=True)
class Recognition(Record):
    """How well a linear classifier tells two groups apart, or one group from all others.

    Parameters
    ----------
    group_a : value
        The group.
    group_b : value or None
        The other group; None for all others, which weigh the same.
    accuracy : float or None
        Balanced accuracy on rows of units that the classifier was not fitted to; chance level is 0.5. None if no
        stratum holds both.
    lower, upper : float or None
        Confidence limits of `accuracy`.
    auc : float or None
        Area under the ROC curve; chance level is 0.5. None if the groups have too few units to be held out together.
    auc_lower, auc_upper : float or None
        Confidence limits of `auc`.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> x, labels = np.random.default_rng(0).normal(size=(200, 8)), np.repeat(["A", "B"], 100)
    >>> x[100:] += 1
    >>> pair = cf.separability(x, labels).pairs[0]
    >>> pair.group_a, pair.group_b, round(pair.accuracy, 2)
    ('A', 'B', 0.93)
    """

    group_a: Hashable
    group_b: Hashable | None
    accuracy: float | None
    lower: float | None
    upper: float | None
    auc: float | None
    auc_lower: float | None
    auc_upper: float | None


@dataclass(frozen=True, repr=False)
class Separability(Result):
    """How well a linear classifier recognizes the group of rows from units that it was not fitted to.

    Parameters
    ----------
    groups : tuple
        The groups.
    accuracy : float or None
        Balanced accuracy: the mean over groups of the share of rows that are recognized, with equal weight for each
        unit of a group. None if nothing can be classified, for the reason in `reason`.
    interval : tuple of float or None
        Confidence limits of `accuracy` at `level`.
    chance : float or None
        Balanced accuracy of guessing: 1 / number of groups, averaged over strata.
    auc : float or None
        Area under the ROC curve of each group against all others, averaged over groups; chance level is 0.5.
    auc_interval : tuple of float or None
        Confidence limits of `auc`.
    level : float
        Confidence level.
    one_vs_rest : tuple of Recognition
        Each group against all others.
    pairs : tuple of Recognition
        Each pair of groups; empty if there are more than 100 groups.
    by : {"units", "rows"}
        What was held out: units, or single rows if no units were named.
    units, rows : int
        Number of units (or rows) and of rows that were classified; rows may be a sample.
    folds : int
        Number of parts the units were split into. Each part is classified after fitting to the others.
    seed : int
        Seed of the sample and the parts.
    overlap : float
        Share of the weight in strata with at least two groups; 1 without ``given``.
    caution : str or None
        Warning that rows were taken to be independent, that few units were held out, or that strata hardly overlap.
    reason : str or None
        Why `accuracy` is None.
    excluded : tuple of Exclusion
        Groups, or groups in single strata, that are left out because they have too few units. All numbers describe the
        remaining groups.

    Notes
    -----
    `to_frame` returns one row for all groups (without group_a and group_b), one per group (without group_b) and one per
    pair, with accuracy, lower, upper, auc, auc_lower and auc_upper. `plot` draws the balanced accuracy of each group
    against all others, or of the pair if there are only two groups.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> x, labels = np.random.default_rng(0).normal(size=(200, 8)), np.repeat(["A", "B"], 100)
    >>> x[100:] += 1
    >>> print(cf.separability(x, labels).describe("site"))
    a linear classifier recognizes the site of an unseen row in 93% (87–96%); chance 50%
    """

    groups: tuple[Hashable, ...]
    accuracy: float | None
    interval: tuple[float, float] | None
    chance: float | None
    auc: float | None
    auc_interval: tuple[float, float] | None
    level: float
    one_vs_rest: tuple[Recognition, ...]
    pairs: tuple[Recognition, ...]
    by: str
    units: int
    rows: int
    folds: int
    seed: int
    overlap: float = 1.0
    caution: str | None = None
    reason: str | None = None
    excluded: tuple[Exclusion, ...] = ()

    def __float__(self) -> float:
        if self.accuracy is None:
            raise InputError(problem=f"there is no accuracy, because {self.reason}", remedy="collect what is missing")
        return self.accuracy

    def describe(self, group: str = "group", unit: str | None = None) -> str:
        """Say in one sentence how well groups are recognized.

        Parameters
        ----------
        group : str
            What the groups are, such as "site".
        unit : str, optional
            What the units are, such as "patient"; by default "unit", or "row" if no units were named.

        Returns
        -------
        str
            The sentence, without a full stop.
        """
        if self.accuracy is None or self.interval is None or self.chance is None:
            return f"there is no separability, because {self.reason}"
        of = "an unseen row" if self.by == "rows" else f"a row of an unseen {unit or 'unit'}"
        low, high = (_percent(end) for end in self.interval)
        return (
            f"a linear classifier recognizes the {group} of {of} in {_percent(self.accuracy)}% ({low}–{high}%);"
            f" chance {_percent(self.chance)}%"
        )

    def _columns(self) -> dict[str, Any]:
        low, high = self.interval or (None, None)
        auc_low, auc_high = self.auc_interval or (None, None)
        overall = (None, None, self.accuracy, low, high, self.auc, auc_low, auc_high)
        rows = [overall, *(tuple(getattr(each, name) for name in COLUMNS) for each in self.one_vs_rest + self.pairs)]
        found = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
        kinds = ["overall"] + ["one_vs_rest"] * len(self.one_vs_rest) + ["pair"] * len(self.pairs)
        return {"comparison": kinds} | found

    def _draw(self, axes: Any) -> "Figure":
        """Draw balanced accuracies with their intervals."""
        if self.accuracy is None:
            raise InputError(
                problem=f"there is nothing to draw, because {self.reason}", remedy="collect what is missing"
            )
        entries = self.pairs if len(self.groups) == 2 else self.one_vs_rest
        entries = tuple(sorted(entries, key=lambda each: -(each.accuracy or 0.0)))
        names = [each.group_a if each.group_b is None else (each.group_a, each.group_b) for each in entries]
        columns = [
            np.array([getattr(each, name) for each in entries], float) for name in ("accuracy", "lower", "upper")
        ]
        what = f"balanced accuracy, {level_text(self.level)} interval"
        return plots.forest(
            names,
            *columns,
            what=what,
            title="" if len(self.groups) == 2 else "One group against the others",
            null=0.5,
            axes=axes,
        )

    def _contents(self) -> list[Content]:
        sentence = self.describe()
        if self.accuracy is None:
            return [sentence, *([f"excluded: {describe_excluded(self.excluded)}"] if self.excluded else [])]
        return [sentence, Facts(self._facts(), gap=1), *self._tables()]

    def _facts(self) -> list[tuple[str, ...]]:
        facts: list[tuple[str, ...]] = [("accuracy", f"balanced over groups, {level_text(self.level)} confidence")]
        if self.auc is not None and self.auc_interval is not None:
            facts.append(
                ("AUC", "{:.3f} ({:.3f} to {:.3f}), each group against the others".format(self.auc, *self.auc_interval))
            )
        held = count_text(self.rows, "row")
        if self.by == "units":
            held = f"{count_text(self.units, 'unit')}, {held}"
        facts.append(("held out", f"{held}, in {self.folds} parts"))
        if self.overlap < 1:
            facts.append(("overlap", f"{percent(self.overlap)} of the weight lies in strata that hold several groups"))
        if self.excluded:
            facts.append(("excluded", describe_excluded(self.excluded)))
        if self.caution:
            facts.append(("caution", self.caution))
        return facts

    def _tables(self) -> list[Content]:
        if len(self.groups) == 2:
            return []
        rest = sorted(self.one_vs_rest, key=lambda each: -(each.accuracy or 0.0))
        pairs = sorted(self.pairs, key=lambda each: -(each.accuracy or 0.0))
        return [
            _table(["group against the others"], [(label_text(each.group_a),) for each in rest], rest),
            *(
                [
                    _table(
                        ["group_a", "group_b"],
                        [(label_text(each.group_a), label_text(each.group_b)) for each in pairs],
                        pairs,
                    )
                ]
                if pairs
                else []
            ),
        ]


def _table(names: list[str], labels: list[tuple[str, ...]], entries: list[Recognition]) -> TextTable:
    rows = [
        [
            *label,
            *(_interval(getattr(each, name), getattr(each, low), getattr(each, high)) for name, low, high in FIGURES),
        ]
        for label, each in zip(labels[:MAX_LISTED_GROUPS], entries, strict=False)
    ]
    return TextTable([*names, "accuracy", "AUC"], rows, more=len(entries) - len(rows), left=range(len(names)))


FIGURES = (("accuracy", "lower", "upper"), ("auc", "auc_lower", "auc_upper"))


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    if value is None or low is None or high is None:
        return "–"
    return f"{_percent(value)}% ({_percent(low)}–{_percent(high)}%)"


def _percent(share: float) -> str:
    """Format a share in percent, with more digits where rounding would claim certainty or nothing.

    >>> _percent(0.876), _percent(0.9996), _percent(1.0), _percent(0.002)
    ('88', '99.9', '100', '0.2')
    """
    if 0.995 <= share < 1:
        return f"{min(int(1000 * share) / 10, 99.9):g}"
    return f"{100 * share:.1g}" if 0 < share < 0.0095 else f"{100 * share:.0f}"
