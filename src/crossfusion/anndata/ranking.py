"""From summaries of embeddings to a leaderboard: which cells count, what can be compared, and the questions."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crossfusion._base import CrossfusionWarning, InputError, arg, check_known, check_whole, factors, label_text, warn
from crossfusion.anndata.label_distances import WithinLabel
from crossfusion.anndata.leaderboard import Leaderboard
from crossfusion.summary import Summary, compare_summaries

BATCH, LABEL, DONOR = "batch", "label", "donor"  # factors, whatever the columns of obs are called


@dataclass(frozen=True)
class Keys:
    """Columns of obs: the batch and, where there are any, the label and the donor."""

    batch: str
    label: str | None = None
    donor: str | None = None

    def __post_init__(self) -> None:
        """Refuse a column that stands for two things."""
        names = list(self.by_factor.values())
        if not all(isinstance(name, str) for name in names):
            raise InputError(
                problem=f"{arg('batch_key')}, {arg('label_key')} and {arg('donor_key')} must be names of columns of"
                f" obs, not {names!r}"
            )
        if len(set(names)) < len(names):
            raise InputError(
                problem=f"{arg('batch_key')}, {arg('label_key')} and {arg('donor_key')} name a column of obs twice"
                f" ({', '.join(names)})",
                remedy="name each once",
            )

    @property
    def by_factor(self) -> dict[str, str]:
        """Name of the column for each factor that is asked for."""
        others = {LABEL: self.label, DONOR: self.donor}
        return {BATCH: self.batch} | {factor: name for factor, name in others.items() if name is not None}

    @property
    def compared(self) -> list[str]:
        """Factors whose combinations are compared."""
        return [factor for factor in self.by_factor if factor != DONOR]


def rank_embeddings(
    summaries: Mapping[str, Summary],
    keys: Keys,
    *,
    weights: str = "pooled",
    level: float = 0.95,
    reference: str | None = None,
    min_cells: int = 2,
) -> Leaderboard:
    """Leaderboard of embeddings, each summarized by the factors batch and, where keys have them, label and donor."""
    check_whole(min_cells, "min_cells")
    if reference is not None:
        check_known([reference], list(summaries), "embedding", "the leaderboard")
    first = next(iter(summaries))
    kept = {name: _select_cells(summary, keys, min_cells, tell=name == first) for name, summary in summaries.items()}
    _check_design(kept[first], keys)
    label, donor = (factor if factor in keys.by_factor else None for factor in (LABEL, DONOR))
    against = reference or first
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrossfusionWarning)  # of confounded designs, said once already
        found = compare_summaries(kept, BATCH, label, donor, against, weights=weights, level=level)
        asked: dict[str, Any] = {"units": donor, "weights": weights, "level": None if donor is None else level}
        plain = tuple(summary.cfd(BATCH, **asked) for summary in kept.values())
    cells = _count_cells(kept[first])
    return Leaderboard(
        embeddings=tuple(kept),
        batch_key=keys.batch,
        label_key=keys.label,
        donor_key=keys.donor,
        weights=weights,
        reference=against,
        batch=found.batch,
        biology=found.biology,
        plain=plain,
        standing=found.standing,
        difference=found.difference,
        kept=found.kept,
        labels=tuple(WithinLabel(*vars(entry).values()) for entry in found.labels),
        pairs=found.pairs,
        cells=cells,
        left_out=_count_cells(summaries[first]) - cells,
        level=found.level,
        lower=found.lower,
        upper=found.upper,
        kept_lower=found.kept_lower,
        kept_upper=found.kept_upper,
    )


def _count_cells(summary: Summary) -> int:
    return int(summary.moments.count.sum())


def _select_groups(summary: Summary, kept: Any) -> Summary:
    """Some of the groups."""
    places = np.flatnonzero(kept)
    return replace(summary, keys=summary.keys.take(places), moments=summary.moments[places], batches=())


def _select_cells(summary: Summary, keys: Keys, min_cells: int, tell: bool) -> Summary:
    """Cells that have all of their keys, of combinations that are large enough; the others are told of."""
    known = np.ones(len(summary), bool)
    for factor in keys.by_factor:
        known &= summary.keys.column(factor).is_valid().to_numpy(zero_copy_only=False)
    if not known.any():
        raise InputError(
            problem=f"no cell has a value in each of {_list_keys(keys)}", remedy="name other columns of obs"
        )
    complete = summary if known.all() else _select_groups(summary, known)
    code, _ = factors.encode(complete.keys.select(keys.compared))
    few = np.bincount(code, weights=complete.moments.count) < min_cells
    if keys.donor is not None:  # of whom each has one row in a combination
        few |= np.bincount(code) < 2
    kept = complete if not few.any() else _select_groups(complete, ~few[code])
    if tell:
        _warn_of_left_out(summary, complete, kept, keys, f"{few.sum()} of {len(few)}", min_cells)
    return kept


def _list_keys(keys: Keys) -> str:
    return ", ".join(map(repr, keys.by_factor.values()))


def _warn_of_left_out(summary: Summary, complete: Summary, kept: Summary, keys: Keys, few: str, min_cells: int) -> None:
    """Say which cells do not count, and refuse to go on without any."""
    missing, small = _count_cells(summary) - _count_cells(complete), _count_cells(complete) - _count_cells(kept)
    if missing:
        warn(
            f"{missing} of {_count_cells(summary)} cells miss a value in one of {_list_keys(keys)}", "they are left out"
        )
    if not small:
        return
    combined = " and ".join(repr(keys.by_factor[factor]) for factor in keys.compared)
    what = f"fewer than {min_cells} cells" + ("" if keys.donor is None else " or two donors")
    if not len(kept):
        way_out = f"lower {arg('min_cells')}" if keys.donor is None else f"leave {arg('donor_key')} out"
        raise InputError(
            problem=f"all combinations of {combined} have {what}, so they cannot be compared",
            remedy=f"{way_out}, or pass coarser labels",
        )
    warn(
        f"{few} combinations of {combined} have {what} and are left out, with {small} of {_count_cells(summary)} cells"
    )


def _check_design(summary: Summary, keys: Keys) -> None:
    """Refuse one batch or one label, and warn of batches and labels that cannot be told apart."""
    for factor in keys.compared:
        values = factors.list_labels(summary.rollup(factor).keys)
        if len(values) < 2:
            way_out = "name a column with two or more" if factor == BATCH else "leave it out, or name another column"
            raise InputError(
                f"{factor}_key",
                keys.by_factor[factor],
                f"has one value among the cells ({label_text(values[0])})",
                way_out,
            )
    if keys.label is None:
        return
    pairs = summary.rollup([BATCH, LABEL]).keys
    for one, other in ((LABEL, BATCH), (BATCH, LABEL)):
        shared = np.bincount(factors.encode(pairs.select([one]))[0]).max() > 1
        if not shared:
            _warn_of_confounding(keys.by_factor[one], keys.by_factor[other], keys.donor is not None)


def _warn_of_confounding(one: str, other: str, with_donors: bool) -> None:
    said = f"no value of {one!r} has cells of two values of {other!r}, so CFD({other} | {one}) compares nothing"
    if with_donors:
        raise InputError(
            problem=said,
            remedy=f"leave out {arg('label_key')}, or {arg('donor_key')}, or collect cells that share both",
        )
    warn(said, f"read CFD({other}) alone, or collect cells that share both")
