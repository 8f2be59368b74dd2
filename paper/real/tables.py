"""The data sets that come as tables of embeddings, corrected at the level of the representation."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from crossfusion.study import Dataset
from paper.real.folder import PLACES, Embeddings, read_embeddings

CORRECTIONS = ("none", "center", "standardize", "coral", "subspace", "combat")
FEW = ("none", "center", "combat")  # of a first look
CELL = 10  # rows of a domain and label in a first look


@dataclass(frozen=True)
class Source:
    """Where domain and label of a table are, and what to know of it."""

    domain: str
    label: str
    note: str
    counts: bool = False


SOURCES = {
    "sc_mixology": Source(
        "batch",
        "cell_line",
        "Single cells of five lines, sequenced in five batches, as 50 principal components. Two batches hold three of"
        " the lines only, so plain distances count a mix of labels that differs.",
    ),
    "pacs": Source(
        "domain", "label", "Photos, paintings, cartoons and sketches of seven kinds of things, by EfficientNet-Lite0."
    ),
    "office_caltech": Source(
        "domain",
        "label",
        "Office things from four sources, by EfficientNet-Lite0, which tells them apart well in all of them: there is"
        " little degradation to foresee.",
    ),
    "office_caltech_surf": Source(
        "domain",
        "label",
        "The same pictures as bags of SURF words, each row divided by its sum.",
        counts=True,
    ),
}


def corrections(quick: bool) -> tuple[str, ...]:
    """Names of the corrections: Harmony too where it is installed."""
    if quick:
        return FEW
    return (*CORRECTIONS, "harmony") if find_spec("harmonypy") else CORRECTIONS


def read_table_set(folder: Path, name: str, quick: bool) -> Dataset:
    """A data set of embeddings with its corrections.

    Parameters
    ----------
    folder : path
        Of the data.
    name : str
        One of ``SOURCES``.
    quick : bool
        Some rows of each domain and label, and few corrections.

    Returns
    -------
    Dataset
        Rows, domains, labels and names of corrections.
    """
    source = SOURCES[name]
    found = read_embeddings(folder / PLACES[name], [source.domain, source.label])
    if source.counts:
        found = Embeddings(found.x / np.maximum(found.x.sum(axis=1, keepdims=True), 1), found.factors)
    if quick:
        found = found.take(sample_rows(found, CELL))
    names = corrections(quick)
    return Dataset(
        name,
        dict(zip(names, names, strict=True)),
        found.x,
        found.factors[source.domain],
        found.factors[source.label],
        note=source.note,
    )


def sample_rows(found: Embeddings, most: int) -> Any:
    """Rows, at most so many of each combination of factors, in their order."""
    draw = np.random.default_rng(0)
    cells: dict[tuple[str, ...], list[int]] = {}
    for row, key in enumerate(zip(*found.factors.values(), strict=True)):
        cells.setdefault(key, []).append(row)
    return np.sort(np.concatenate([draw.permutation(rows)[:most] for rows in cells.values()]))
