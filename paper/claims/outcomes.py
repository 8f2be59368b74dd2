"""Outcomes of tests: true, false, or None where the evidence leaves both open."""

from collections.abc import Iterable

Outcome = bool | None

STABLE = 0.10  # largest relative change of what is called stable, constant, robust or near
WITHIN = f"at most {STABLE:.0%}"
STEADY = (
    f"{WITHIN}, give or take two standard errors that are {WITHIN} themselves. Fails if beyond both, else undecided"
)
DOUBT = " Undecided where two standard errors leave both answers open."


def all_of(outcomes: Iterable[Outcome]) -> Outcome:
    """False if one is false, else undecided if one is undecided."""
    found = [*outcomes]
    if any(outcome is not None and not outcome for outcome in found):
        return False
    return None if any(outcome is None for outcome in found) else True


def any_of(outcomes: Iterable[Outcome]) -> Outcome:
    """True if one is true, else undecided if one is undecided."""
    return opposite(all_of(map(opposite, outcomes)))


def opposite(outcome: Outcome) -> Outcome:
    """What is undecided stays so."""
    return None if outcome is None else not outcome


def above(value: float, doubt: float, limit: float) -> Outcome:
    """Whether a value is above a limit, if it is on the same side of it all the way from − to + its doubt.

    A value that is not a number, as of what was not measured, is on neither side.
    """
    if value - doubt > limit:
        return True
    return False if value + doubt <= limit else None


def small(value: float, doubt: float, limit: float) -> Outcome:
    """Whether a value's size is at most a limit, in the same way."""
    return opposite(above(abs(value), doubt, limit))


def steady(change: float, doubt: float) -> Outcome:
    """Whether a relative change is none to speak of: not beyond STABLE, as far as one can tell, and one can tell.

    One can if the doubt is itself at most STABLE.
    """
    if abs(change) - doubt > STABLE:
        return False
    return True if abs(change) - doubt <= STABLE and doubt <= STABLE else None  # neither for what is not a number


def share(outcomes: Iterable[Outcome], of: str = "") -> str:
    """How many of how many are true, and of how many it is not known."""
    found = [*outcomes]
    unknown = sum(outcome is None for outcome in found)
    text = f"{sum(map(bool, found))} of {len(found)}{of and ' ' + of}"
    return f"{text}, undecided in {unknown}" if unknown else text
