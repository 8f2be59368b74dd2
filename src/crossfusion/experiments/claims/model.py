"""What a claim is, how it is checked, and how a verdict follows from outcomes."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from crossfusion.experiments.claims.evidence import Evidence

Outcomes = Mapping[tuple[str, str], bool]

HOLDS = "holds"
CONDITIONS = "holds under these conditions"
FAILS = "does not hold"
VERDICTS = (HOLDS, CONDITIONS, FAILS)
COPIES = "holds throughout if B is not a sample of its own but that of A, moved"


@dataclass(frozen=True)
class Finding:
    """What a check found: figure and verdict; where it does not hold as it stands, on what terms and what mends it."""

    figure: str
    verdict: str
    conditions: str = ""
    mend: str = ""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper with its verdict.

    Parameters
    ----------
    id : str
        Short name, unique.
    place : str
        Where the paper makes it.
    claim : str
        What it says, in other words.
    check : str
        How it was checked, with the thresholds that decide.
    figure : str
        The numbers found.
    verdict : str
        "holds", "holds under these conditions" or "does not hold".
    conditions : str
        Under which it holds, if it does not always.
    mend : str
        Which variant does better where it fails, with its numbers.
    part : str
        The part of the ledger that it belongs to.
    """

    id: str
    place: str
    claim: str
    check: str
    figure: str
    verdict: str
    conditions: str = ""
    mend: str = ""
    part: str = ""

    def to_dict(self) -> dict[str, str]:
        """Fields by name, for JSON.

        Returns
        -------
        dict
            Texts.
        """
        return asdict(self)


@dataclass(frozen=True)
class Check:
    """A claim before the evidence is looked at."""

    id: str
    place: str
    claim: str
    how: str
    find: Callable[[Evidence], Finding]

    def __call__(self, evidence: Evidence) -> Claim:
        """The claim with what the evidence says of it."""
        found = self.find(evidence)
        mend = "" if found.verdict == HOLDS else found.mend
        return Claim(self.id, self.place, self.claim, self.how, found.figure, found.verdict, found.conditions, mend)


def check(id: str, place: str, claim: str, how: str) -> Callable[[Callable[[Evidence], Finding]], Check]:  # noqa: A002
    """Make a check of a function that looks at the evidence."""
    return lambda find: Check(id, place, claim, how, find)


def verdict_of(outcomes: Mapping[str, bool], figure: str, mend: str = "") -> Finding:
    """Holds if every outcome is true, not at all if none is, else for those that are, which are named."""
    true = [name for name, outcome in outcomes.items() if outcome]
    if len(true) == len(outcomes):
        return Finding(figure, HOLDS)
    if not true:
        return Finding(figure, FAILS, mend=mend)
    false = [name for name, outcome in outcomes.items() if not outcome]
    return Finding(figure, CONDITIONS, f"holds for {listed(true)}; not for {listed(false)}", mend)


def across(outcomes: Outcomes, figure: str, mend: str = "") -> Finding:
    """The same for outcomes of several subjects in several settings: which subject holds in how many of them."""
    flat = verdict_of(
        {f"{subject} {setting}": outcome for (subject, setting), outcome in outcomes.items()}, figure, mend
    )
    if flat.verdict != CONDITIONS:
        return flat
    lines = []
    for subject in dict.fromkeys(subject for subject, _ in outcomes):
        here = {setting: outcome for (name, setting), outcome in outcomes.items() if name == subject}
        true = [setting for setting, outcome in here.items() if outcome]
        where = f" ({'; '.join(true)})" if 0 < len(true) < len(here) else ""
        lines.append(f"{subject} in {len(true)} of {len(here)}{where}")
    return Finding(figure, CONDITIONS, f"holds for {listed(lines)}", mend)


def in_both_readings(look: Callable[[Evidence], tuple[Outcomes, str]], evidence: Evidence) -> Finding:
    """What two samples say; if that is not all of the claim, whether a sample and its moved copy say all of it."""
    found = across(*look(evidence))
    if found.verdict == HOLDS:
        return found
    outcomes, figure = look(evidence.of_copies)
    if not all(outcomes.values()):
        return found
    terms = "; ".join(filter(None, [found.conditions, COPIES]))
    return Finding(f"{found.figure}. With moved copies: {figure}", CONDITIONS, terms, found.mend)


def listed(names: list[str]) -> str:
    """Names in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
