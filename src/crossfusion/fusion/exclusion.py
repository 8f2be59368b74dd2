"""Groups, or groups in single strata, that are left out of a comparison because they have too few units."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import MAX_LISTED_GROUPS, FloatArray, InputError, check_whole, label_text, warn
from crossfusion.fusion.design import Codes, Design
from crossfusion.fusion.result import Record

MIN_UNITS = 2  # units needed to tell the effect of a group from that of a unit
FEW_UNITS = 5  # of a group: with fewer, intervals are rough


@dataclass(frozen=True)
class Exclusion(Record):
    """A group that is left out of a comparison, everywhere or in one stratum.

    Parameters
    ----------
    group : value
        The group.
    stratum : value or None
        The stratum in which the group is left out; None if it is left out as a whole.
    units : int
        Number of units of the group there; of rows, if rows are the units.
    reason : str
        Why it is left out.

    Examples
    --------
    >>> import crossfusion as cf
    >>> by = {"site": ["A", "A", "B", "B", "C"], "patient": [1, 2, 3, 4, 5]}
    >>> summary = cf.summarize([[0.0], [2.0], [2.0], [4.0], [9.0]], by=by)
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     summary.cfd("site", units="patient").excluded
    (Exclusion(group='C', stratum=None, units=1, reason='fewer than 2 units'),)
    """

    group: Hashable
    stratum: Hashable | None
    units: int
    reason: str

    def __str__(self) -> str:
        place = "" if self.stratum is None else f" in {label_text(self.stratum)}"
        return f"{label_text(self.group)}{place} ({self.units})"


def list_excluded(excluded: Sequence[Exclusion]) -> str:
    """List what is left out with the numbers of units, by reason; the first few of each."""
    named = {entry.reason: [str(each) for each in excluded if each.reason == entry.reason] for entry in excluded}
    return "; ".join(f"{shorten_list(names)}: {reason}" for reason, names in named.items())


def shorten_list(names: Sequence[str]) -> str:
    """List the first few names, and count the others."""
    more = len(names) - MAX_LISTED_GROUPS
    listed = ", ".join(names[:MAX_LISTED_GROUPS])
    return f"{listed} and {more:,} more" if more > 0 else listed


def describe_excluded(excluded: Sequence[Exclusion]) -> str:
    """Say in one sentence what is left out and why."""
    return f"{list_excluded(excluded)}; all numbers are about the remaining groups"


def check_min_units(min_units: int, least: int = MIN_UNITS) -> None:
    """Reject a number of units with which no error can be estimated."""
    check_whole(min_units, "min_units", least=least)


def leave_out_cells(
    design: Design, number: FloatArray, least: int, *, of: str = "units", tell: bool = True
) -> tuple[Codes, tuple[Exclusion, ...]]:
    """Find the cells with at least this number of units, and name the others, with a warning unless `tell` is False.

    A group that would be alone in its stratum for that reason is left out there, too: it would be compared with
    nothing, and units would be permuted by strata that no longer matter.
    """
    design.check_groups()
    small = number < least
    if not small.any():
        return np.arange(len(number)), ()
    left, before = (np.bincount(design.stratum[cells], minlength=len(number)) for cells in (~small, slice(None)))
    alone = ~small & (left == 1)[design.stratum] & (before > 1)[design.stratum]
    place = "" if design.strata is None else " in a stratum"
    excluded = _name_cells(design, number, small, f"fewer than {least} {of}{place}")
    if design.strata is not None:
        excluded += _name_cells(design, number, alone, "no other group left in the stratum")
    kept = np.flatnonzero(~(small | alone))
    if len(np.unique(design.group[kept])) < 2:
        raise InputError(
            problem=f"fewer than two groups remain after leaving out {list_excluded(excluded)}",
            remedy=f"pass more {of}{' or coarser strata' if place else ''}",
        )
    if tell:
        warn(f"left out: {describe_excluded(excluded)}")
    return kept, excluded


def _name_cells(design: Design, number: FloatArray, chosen: NDArray[np.bool_], reason: str) -> tuple[Exclusion, ...]:
    return tuple(
        Exclusion(design.labels[design.group[k]], design.name_stratum(k), int(number[k]), reason)
        for k in np.flatnonzero(chosen).tolist()
    )
