"""What comparisons of versions of the same rows share: their order, their tables, their remarks and their figure."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from crossfusion import plots
from crossfusion._base import FloatArray, interval_text, label_text, percent
from crossfusion.fusion import Exclusion, Fusion, Result, data_frame, describe_excluded
from crossfusion.summary.label_effects import MAX_PAIRED_LABELS, LabelPairs
from crossfusion.summary.standing import Standing

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MAX_LISTED = 4  # pairs of labels or versions in a remark


class VersionRanking(Result):
    """Versions of the same rows, such as corrections or embeddings, by how far they leave groups and labels apart."""

    reference: str
    batch: tuple[Fusion, ...]
    biology: tuple[Fusion, ...] | None
    standing: tuple[Standing, ...]
    pairs: LabelPairs | None
    level: float | None
    _kind: ClassVar[str]  # what a version is called

    def _names(self) -> tuple[str, ...]:
        """The versions, in the order they were given."""
        raise NotImplementedError

    @property
    def front(self) -> tuple[str, ...] | None:
        """Names of the versions on the Pareto front; None without labels, which show the biology that is kept."""
        if self.biology is None:
            return None
        return tuple(name for name, entry in zip(self._names(), self.standing, strict=True) if entry.front)

    def pairs_frame(self) -> "pd.DataFrame":
        """Return one row per version and pair of labels.

        Returns
        -------
        pandas.DataFrame
            The version, label_a, label_b, biology (unbiased CFD of the two labels, within groups), kept (as a share of
            the reference) and lost; without rows if there are no labels.
        """
        names, pairs = self._names(), self.pairs
        labels = () if pairs is None else pairs.labels
        columns: dict[str, Any] = {
            self._kind: np.repeat(np.array(names, object), len(labels)),
            "label_a": [a for _ in names for a, _ in labels],
            "label_b": [b for _ in names for _, b in labels],
        }
        values = () if pairs is None else ("biology", "kept", "lost")
        return data_frame(columns | {name: np.ravel(getattr(pairs, name)) for name in values})

    def _order(self) -> list[int]:
        """Positions of the versions: the front first, lost biology last, and among these the most fused first."""
        found = zip(self.standing, self.batch, strict=True)
        keys = [(_sort_standing(entry), np.inf if (v := fusion.unbiased) is None else v) for entry, fusion in found]
        return sorted(range(len(keys)), key=keys.__getitem__)

    def _order_text(self) -> str:
        """How the table is sorted."""
        return "the most fused first" if self.biology is None else "the Pareto front first"

    @property
    def excluded(self) -> tuple[Exclusion, ...]:
        """Groups left out because they have too few units, first between groups, then between labels."""
        axes = [self.batch, *([] if self.biology is None else [self.biology])]
        return tuple(dict.fromkeys(entry for fusions in axes for entry in fusions[0].excluded))

    def _describe_excluded(self) -> list[str]:
        return [f"excluded: {describe_excluded(self.excluded)}"] if self.excluded else []

    def _select_present(self, *names: str) -> dict[str, Any]:
        """The fields of these names that have a value."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def _distance_columns(self, *names: str, plug_in: bool) -> dict[str, FloatArray]:
        """Columns of a frame for the fields of these names that hold distances."""
        found: dict[str, FloatArray] = {}
        for name, fusions in self._select_present(*names).items():
            found |= fusion_columns(name, fusions, intervals=self.level is not None, plug_in=plug_in)
        return found

    def _standing_columns(self) -> dict[str, Any]:
        """Columns of a frame for the standing: front (1, 0, or NaN if not judged), and the others as text."""
        front = [np.nan if entry.front is None else float(entry.front) for entry in self.standing]
        return {
            "standing": np.array([entry.text for entry in self.standing], object),
            "front": np.array(front),
            "tied_with": np.array([_join(entry.tied_with) for entry in self.standing], object),
            "lost": np.array([len(entry.lost) for entry in self.standing]),
            "caution": np.array([entry.caution or "" for entry in self.standing], object),
        }

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the result as a table of text, the front first.

        Returns
        -------
        tuple
            Column names, and a list of rows, each a list of strings.
        """
        columns = {self._kind: [label_text(name) for name in self._names()]} | self._texts()
        if self.biology is not None and len(self.standing) > 1:
            columns["standing"] = [entry.text for entry in self.standing]
        return list(columns), [[texts[k] for texts in columns.values()] for k in self._order()]

    def remarks(self) -> list[str]:
        """Return remarks on the table: ties, lost biology, and misleading values.

        Returns
        -------
        list of str
            Sentences.
        """
        several = len(self.standing) > 1
        found = [*self._describe_ranking(), *self._describe_ties()] if several else []
        return [*found, *self._describe_lost(), *self._describe_cautions(), *self._describe_excluded()]

    def _describe_ranking(self) -> Iterator[str]:
        if self.biology is None:
            yield "not ranked: removing everything fuses groups too, so name labels that a version should keep apart"
        elif self.level is None:
            yield "no units, so no intervals: differences smaller than the bias of the plug-in CFD count as ties"
        if self.biology is not None and self.batch[0].overlap < 1:
            yield f"overlap {percent(self.batch[0].overlap)}: share of the weight in labels that groups share"
        if self.biology is not None and self.pairs is None:
            yield f"more than {MAX_PAIRED_LABELS} labels, which are not compared pair by pair"

    def _describe_ties(self) -> Iterator[str]:
        same = self._list_pairs("identical_to")
        tied = [pair for pair in self._list_pairs("tied_with") if pair not in same]
        if same:
            yield f"identical rows: {_list_some(same)}"
        if tied:
            why = "" if self.level is None else ", as the intervals of their differences include 0"
            yield f"tied{why}: {_list_some(tied)}"

    def _list_pairs(self, field: str) -> list[str]:
        """Pairs of versions that a field of their standing names."""
        names = self._names()
        return [
            f"{label_text(name)} and {label_text(other)}"
            for k, name in enumerate(names)
            for other in getattr(self.standing[k], field)
            if names.index(other) > k
        ]

    def _describe_lost(self) -> Iterator[str]:
        reference = label_text(self.reference)
        for name, entry in zip(self._names(), self.standing, strict=True):
            closer = [loss.labels for loss in entry.lost if loss.kind == "closer"]
            apart = [f"{label_text(one[0])} and {label_text(one[1])}" for one in closer if len(one) == 2]
            apart += [f"{label_text(one[0])} and all other labels" for one in closer if len(one) == 1]
            alone = [label_text(loss.labels[0]) for loss in entry.lost if loss.kind == "collapsed"]
            less = f"{label_text(name)} lost biology: less than half of the distance in {reference} is left between"
            if apart:
                yield f"{less} {_list_some(apart)}"
            elif closer:
                yield f"{less} all labels together"
            if alone:
                yield f"{label_text(name)} lost biology: the rows of {_list_some(alone)} barely vary anymore"

    def _describe_cautions(self) -> Iterator[str]:
        of_caution: dict[str, list[str]] = {}
        for name, entry in zip(self._names(), self.standing, strict=True):
            if entry.caution:
                of_caution.setdefault(entry.caution, []).append(label_text(name))
        for caution, names in of_caution.items():
            yield f"caution, {_list_some(names)}: {caution}"

    def _texts(self) -> dict[str, list[str]]:
        """Columns of the table after the first."""
        raise NotImplementedError

    def _distance_texts(self, *names: str) -> dict[str, list[str]]:
        return {
            name: [interval_text(fusion.unbiased, fusion.interval) for fusion in fusions]
            for name, fusions in self._select_present(*names).items()
        }

    def _change_texts(self, change: FloatArray, lower: FloatArray | None, upper: FloatArray | None) -> list[str]:
        """Differences from the reference, with their intervals where there are some."""
        ends = [None] * len(change) if lower is None or upper is None else np.stack([lower, upper], axis=1).tolist()
        texts = [interval_text(*entry) for entry in zip(change, ends, strict=True)]
        named = zip(self._names(), texts, strict=True)
        return ["reference" if name == self.reference else text for name, text in named]

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
        front = [bool(self.standing[k].front) for k in order]
        return plots.plane(names, values["batch"], values["biology"], *both, front=front, axes=axes)


def _sort_standing(entry: Standing) -> int:
    return 3 if entry.lost else 2 if entry.front is None else 0 if entry.front else 1


def _join(names: Sequence[Hashable]) -> str:
    return ", ".join(map(label_text, names))


def _list_some(texts: Sequence[str]) -> str:
    """List a few texts, and count the others."""
    more = len(texts) - MAX_LISTED
    return "; ".join(texts[:MAX_LISTED]) + (f"; and {more} more" if more > 0 else "")


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
