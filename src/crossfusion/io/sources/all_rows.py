"""All rows at once, with their factors, for whatever cannot do with moments."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crossfusion._base import FiniteCheck, InputError, check_some_rows, factors, find_finite_rows, label_text
from crossfusion.io.sources.chunk import Source, concatenate_chunks
from crossfusion.io.sources.feature_order import find_features

if TYPE_CHECKING:
    import pyarrow as pa

    from crossfusion.io.sources.manifest import ManifestJoin


@dataclass(frozen=True)
class Rows:
    """Rows in one array, and the values of their factors."""

    x: Any
    keys: "pa.Table"
    features: tuple[str, ...] = ()

    def values(self, names: Sequence[str]) -> Any:
        """Values of one factor, or of several as text; None without any."""
        if not names:
            return None
        if len(names) == 1:
            return factors.to_array(self.keys.column(names[0]))
        labels = factors.list_labels(self.keys.select(list(names)))
        texts = {label: label_text(label) for label in set(labels)}
        if len(set(texts.values())) < len(texts):
            raise InputError(
                problem=f"some groups of {', '.join(names)} have names that read the same side by side",
                remedy="rename them",
            )
        return [texts[label] for label in labels]


def read_all(sources: Sequence[Source], manifest: "ManifestJoin | None" = None, nan: str = "raise") -> Rows:
    """All rows of some sources, which a manifest may have joined; those that are not finite raise, or are dropped."""
    import pyarrow as pa

    chunks = [entry for source in sources for entry in source.chunks()]
    name = ", ".join(source.name for source in sources)
    check_some_rows(len(chunks), name)
    rows = concatenate_chunks(chunks)
    if manifest is not None:
        manifest.settle([entry.match for entry in chunks], rows.shape[0])
    keys = factors.concat_tables([entry.keys for entry in chunks], name)
    finite, check = find_finite_rows(rows), FiniteCheck(name)
    check.see(rows, None if finite.all() else finite)
    features = find_features(sources) or ()
    if check.settle(nan):
        return Rows(rows[finite], keys.filter(pa.array(finite)), features)
    return Rows(rows, keys, features)
