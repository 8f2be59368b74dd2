"""All that a page says, computed."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crossfusion.errors import CrossfusionWarning, InputError
from crossfusion.fusion import Fusion
from crossfusion.hierarchy import Hierarchy
from crossfusion.pairwise import Pairwise
from crossfusion.summary import Summary
from crossfusion.table import Factors
from crossfusion.validation import as_names


@dataclass(frozen=True)
class Batch:
    """A batch factor against the labels: alone, given the labels, and the labels given it."""

    name: str
    plain: Fusion
    adjusted: Fusion
    biology: Fusion


@dataclass(frozen=True)
class Answers:
    """Results that the sections show, names for `between` and `given`, and a colour for each factor."""

    between: str
    given: str
    rows: int
    dim: int
    cells: int
    plain: Fusion
    adjusted: Fusion
    balanced: Fusion
    labels: Fusion
    biology: Fusion
    plain_pairs: Pairwise
    adjusted_pairs: Pairwise
    hierarchies: tuple[Hierarchy, ...]
    batches: tuple[Batch, ...]
    colours: Mapping[str, int]


def value(fusion: Fusion) -> float:
    """The unbiased distance, or the plug-in where that is undefined; NaN where nothing is compared."""
    if fusion.overlap == 0:
        return math.nan
    return fusion.distance if fusion.unbiased is None else fusion.unbiased


def ask(
    summary: Summary, *, between: Factors, given: Factors, levels: Sequence[str], batches: Sequence[str] | None
) -> Answers:
    """Put all questions to a summary; the page itself says where groups do not overlap."""
    compared, held = as_names(between, "between"), as_names(given, "given")
    if not held:
        raise InputError("given is empty: a page needs the factor to hold fixed, such as the label")
    nested = [name for name in as_names(levels, "levels") if name not in held]
    chosen = nested if batches is None else as_names(batches, "batches")
    coloured = dict.fromkeys([*nested, *held, *chosen])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrossfusionWarning)
        return Answers(
            between=" × ".join(compared),
            given=" × ".join(held),
            rows=int(summary.moments.count.sum()),
            dim=summary.dim,
            cells=len(summary),
            plain=summary.cfd(compared),
            adjusted=summary.cfd(compared, given=held),
            balanced=summary.cfd(compared, given=held, weights="balanced"),
            labels=summary.cfd(held),
            biology=summary.cfd(held, given=compared),
            plain_pairs=summary.pairwise(compared),
            adjusted_pairs=summary.pairwise(compared, given=held),
            hierarchies=(summary.hierarchy(nested), summary.hierarchy([*held, *nested])),
            batches=tuple(_batch(summary, name, held) for name in chosen),
            colours={name: position for position, name in enumerate(coloured)},
        )


def _batch(summary: Summary, name: str, given: Sequence[str]) -> Batch:
    plain, adjusted = summary.cfd(name), summary.cfd(name, given=given)
    return Batch(name, plain, adjusted, summary.cfd(given, given=name))
