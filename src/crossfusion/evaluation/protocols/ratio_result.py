"""Relative distance ratios as a table."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion import plots
from crossfusion._base import InputError, label_text, number_text
from crossfusion.fusion import Content, Result, TextTable, record_columns

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Ratio:
    """One distance, one pair of domains, one side of it."""

    pair: tuple[Any, Any]
    domain: Any
    distance: str
    order: int
    within: float
    within_sd: float
    across: float
    across_sd: float
    ratio: float
    ratio_sd: float
    ratio_of_means: float
    ratio_root: float
    ratio_squared: float
    rows: float


@dataclass(frozen=True, repr=False)
class Rdr(Result):
    """Relative distance ratios, one for each distance, pair of domains and side of the pair.

    Parameters
    ----------
    ratios : tuple
        One entry per distance, pair and side, with the fields ``pair``, ``domain`` (the side), ``distance`` and its
        ``order`` (2 if it grows with the square of a small shift, else 1); mean and standard deviation (``_sd``) over
        the repeats of ``within``, ``across`` and their ``ratio``; ``ratio_of_means``; ``ratio_root`` and
        ``ratio_squared``, the mean ratio after bringing all distances to order 1 and to order 2 (NaN if a distance is
        negative); and ``rows``, the mean size of a half.
    repeats : int
        Number of random splits into halves.

    Notes
    -----
    `to_frame` has one row per distance, pair and side: group_a and group_b (the pair), and the columns of ``ratios``.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> rng = np.random.default_rng(0)
    >>> x, scanner = rng.normal(size=(200, 8)), np.repeat(["S1", "S2"], 100)
    >>> x[scanner == "S2"] += 0.5
    >>> found = cf.rdr(x, scanner, distances=["cfd", "mmd"], repeats=10)
    >>> [entry.domain for entry in found.ratios if entry.distance == "cfd"]
    ['S1', 'S2']
    """

    ratios: tuple[Ratio, ...]
    repeats: int

    @property
    def distances(self) -> tuple[str, ...]:
        """Names of the distances."""
        return tuple(dict.fromkeys(entry.distance for entry in self.ratios))

    @property
    def sides(self) -> tuple[tuple[tuple[Any, Any], Any], ...]:
        """Pairs, each with one of its domains."""
        return tuple(dict.fromkeys((entry.pair, entry.domain) for entry in self.ratios))

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {f"group_{side}": [e.pair[k] for e in self.ratios] for k, side in enumerate("ab")}
        return columns | {name: own for name, own in record_columns(Ratio, self.ratios).items() if name != "pair"}

    def table(self, what: str = "ratio") -> tuple[list[str], list[list[str]]]:
        """Return the result as a table of text, laid out like table 2 of the paper: distances by sides of pairs.

        Parameters
        ----------
        what : str
            A column of ``ratios``, such as ``ratio_squared`` or ``within``, shown with its standard deviation if it has
            one.

        Returns
        -------
        tuple
            Column names, and a list of rows, each a list of strings.
        """
        self._check_column(what)
        places = {(entry.distance, entry.pair, entry.domain): entry for entry in self.ratios}
        header = ["distance", *(f"{label_text(domain)} in {pair_text(pair)}" for pair, domain in self.sides)]
        rows = [[name, *(_format_cell(places[name, *side], what) for side in self.sides)] for name in self.distances]
        return header, rows

    def plot(self, what: str = "ratio", *, axes: Any = None) -> "Figure":
        """Draw the mean ± standard deviation of the repeats, one line per distance and side.

        Parameters
        ----------
        what : str
            A column of ``ratios``, such as ``ratio_squared`` or ``within``.
        axes : matplotlib.axes.Axes, optional
            Axes to draw on; by default a new figure, one column wide.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; save it with ``savefig``.
        """
        self._check_column(what)
        spread = np.array([getattr(entry, f"{what}_sd", 0.0) for entry in self.ratios])
        values = np.array([getattr(entry, what) for entry in self.ratios], np.float64)
        names = [(entry.distance, f"{label_text(entry.domain)} in {pair_text(entry.pair)}") for entry in self.ratios]
        title = f"relative distance ratio, {self.repeats} random halves"
        return plots.forest(names, values, values - spread, values + spread, what=what, title=title, axes=axes)

    @staticmethod
    def _check_column(what: str) -> None:
        if what not in {part.name for part in fields(Ratio)} - {"pair", "domain", "distance"}:
            raise InputError("what", what, "is not a column of ratios", "choose 'ratio', 'within', 'across' or another")

    def _contents(self) -> list[Content]:
        title = f"Relative distance ratio, mean ± sd of {self.repeats} random halves"
        header, rows = self.table()
        (_, *distances), *sides = zip(header, *rows, strict=True)  # sides go down the page, as there may be many
        return [title, TextTable(["", *distances], sides)]


def pair_text(pair: tuple[Any, Any]) -> str:
    """A pair of domains as people read it."""
    return "–".join(map(label_text, pair))


def _format_cell(entry: Ratio, what: str) -> str:
    value, spread = getattr(entry, what), getattr(entry, f"{what}_sd", None)
    return number_text(value) if spread is None else f"{number_text(value)} ± {number_text(spread)}"
