"""What a model loses from one domain to another, as a table."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion import plots
from crossfusion._base import label_text, level_text, limits_text, number_text
from crossfusion.fusion import Content, Result, TextTable, record_columns

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCORE_NAMES = {"f1_macro": "macro F1", "auc": "AUC", "accuracy": "accuracy"}


@dataclass(frozen=True)
class Drop:
    """A model trained on one domain and tested on another."""

    train: Any
    test: Any
    within: float
    cross: float
    cddr: float
    lower: float
    upper: float
    labels: tuple[Any, ...]
    rows_train: int
    rows_test: int


@dataclass(frozen=True, repr=False)
class Cddr(Result):
    """Cross-domain degradation rates, one for each directed pair of domains.

    Parameters
    ----------
    drops : tuple
        One entry per directed pair, with the domains ``train`` and ``test``, the score ``within`` the first and
        ``cross`` on the second, ``cddr`` = (within - cross) / within with its limits ``lower`` and ``upper``, the
        ``labels`` that both domains have, and the number of rows of each domain with these labels.
    metric : str
        The score.
    level : float
        Confidence level of the limits.

    Notes
    -----
    `to_frame` has one row per directed pair, with the columns of ``drops`` and the number of labels. `plot` draws the
    rate of each directed pair, with its interval.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> rng = np.random.default_rng(0)
    >>> label, scanner = np.tile([0, 1], 150), np.repeat(["S1", "S2"], 150)
    >>> x = rng.normal(size=(300, 4)) + 2 * label[:, None]
    >>> x[scanner == "S2"] += 2
    >>> found = cf.cddr(x, label, scanner)
    >>> found.drops[0].train, found.drops[0].cddr > 0.2
    ('S1', True)
    """

    drops: tuple[Drop, ...]
    metric: str
    level: float

    def _columns(self) -> dict[str, Any]:
        return record_columns(Drop, self.drops) | {"labels": [len(entry.labels) for entry in self.drops]}

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the result as a table of text.

        Returns
        -------
        tuple
            Column names, and a list of rows, each a list of strings.
        """
        header = ["train", "test", "within", "cross", "CDDR", f"{level_text(self.level)} interval", "labels"]
        rows = [
            [
                label_text(drop.train),
                label_text(drop.test),
                *map(number_text, (drop.within, drop.cross, drop.cddr)),
                limits_text(drop.lower, drop.upper),
                str(len(drop.labels)),
            ]
            for drop in self.drops
        ]
        return header, rows

    def _draw(self, axes: Any) -> "Figure":
        """Draw what is lost on each directed pair, with its interval."""
        names = [f"{label_text(drop.train)} → {label_text(drop.test)}" for drop in self.drops]
        values = (np.array([getattr(drop, name) for drop in self.drops]) for name in ("cddr", "lower", "upper"))
        what = f"CDDR of the {SCORE_NAMES[self.metric]}, {level_text(self.level)} interval"
        return plots.forest(names, *values, what=what, axes=axes)

    def _contents(self) -> list[Content]:
        return [
            f"Cross-domain degradation rate of the {SCORE_NAMES[self.metric]}",
            TextTable(*self.table(), left=(0, 1)),
        ]
