"""What comparisons of versions of the same rows share: their order, their tables and their figure."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from crossfusion import plots
from crossfusion._base import FloatArray, interval_text, label_text, percent
from crossfusion.fusion import Exclusion, Fusion, Result, describe_excluded

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class VersionRanking(Result):
    """Versions of the same rows, such as corrections or embeddings, ranked by how far they leave groups apart."""

    reference: str
    batch: tuple[Fusion, ...]
    biology: tuple[Fusion, ...] | None
    rank: Any
    level: float | None
    stability: FloatArray | None
    _kind: ClassVar[str]  # what a version is called
    _digits: ClassVar[int] = 4  # of numbers in the table

    def _names(self) -> tuple[str, ...]:
        """The versions, in the order they were given."""
        raise NotImplementedError

    def _order(self) -> list[int]:
        """Positions of the versions, the most fused first."""
        order: list[int] = np.argsort(self.rank, kind="stable").tolist()
        return order

    @property
    def excluded(self) -> tuple[Exclusion, ...]:
        """What is left out of all distances, for too few units."""
        return self.batch[0].excluded

    def _describe_excluded(self) -> list[str]:
        return [f"excluded: {describe_excluded(self.excluded)}"] if self.excluded else []

    def _present(self, *names: str) -> dict[str, Any]:
        """The fields of these names that have a value."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def _distance_columns(self, *names: str, plug_in: bool) -> dict[str, FloatArray]:
        """Columns of a frame for the fields of these names that hold distances."""
        found: dict[str, FloatArray] = {}
        for name, fusions in self._present(*names).items():
            found |= fusion_columns(name, fusions, intervals=self.level is not None, plug_in=plug_in)
        return found

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of a table for people, the most fused version first.

        Returns
        -------
        tuple
            Names of the columns, and rows of text.
        """
        columns = {self._kind: [label_text(name) for name in self._names()]} | self._texts()
        return list(columns), [[texts[k] for texts in columns.values()] for k in self._order()]

    def _texts(self) -> dict[str, list[str]]:
        """Columns of the table after the first."""
        raise NotImplementedError

    def _distance_texts(self, *names: str) -> dict[str, list[str]]:
        return {
            name: [interval_text(fusion.unbiased, fusion.interval, self._digits) for fusion in fusions]
            for name, fusions in self._present(*names).items()
        }

    def _change_texts(self, change: FloatArray, lower: FloatArray | None, upper: FloatArray | None) -> list[str]:
        """Differences from the reference, with their intervals where there are some."""
        ends = [None] * len(change) if lower is None or upper is None else np.stack([lower, upper], axis=1).tolist()
        texts = [interval_text(*entry, self._digits) for entry in zip(change, ends, strict=True)]
        named = zip(self._names(), texts, strict=True)
        return ["reference" if name == self.reference else text for name, text in named]

    def _stability_texts(self) -> dict[str, list[str]]:
        return {} if self.stability is None else {"rank holds in": [percent(share) for share in self.stability]}

    def _draw(self, axes: Any) -> "Figure":
        """Draw batch against biology, one point per version; without biology the batch alone."""
        order = self._order()
        names = [self._names()[k] for k in order]
        columns = self._distance_columns("batch", "biology", plug_in=False)
        values = {name: column[order] for name, column in columns.items()}
        limits = {
            name: np.array([values[f"{name}_lower"], values[f"{name}_upper"]])
            for name in ("batch", "biology")
            if f"{name}_lower" in values
        }
        if self.biology is None:
            return plots.forest(names, values["batch"], *limits.get("batch", (None, None)), axes=axes)
        both = limits.get("batch"), limits.get("biology")
        return plots.plane(names, values["batch"], values["biology"], *both, axes=axes)


def fusion_columns(
    name: str, fusions: Iterable[Fusion | None], *, intervals: bool, plug_in: bool = True
) -> dict[str, FloatArray]:
    """Columns of some distances: unbiased, and if asked for plug-in and limits; NaN where there is none."""
    found = list(fusions)
    columns: dict[str, list[float | None]] = {name: [None if fusion is None else fusion.unbiased for fusion in found]}
    if plug_in:
        columns[f"{name}_distance"] = [None if fusion is None else fusion.distance for fusion in found]
    if intervals:
        limits = [(None, None) if fusion is None or fusion.interval is None else fusion.interval for fusion in found]
        columns |= {f"{name}_lower": [low for low, _ in limits], f"{name}_upper": [high for _, high in limits]}
    return {column: np.array([np.nan if v is None else v for v in values]) for column, values in columns.items()}
