"""What a claim is, how it is checked, and how a verdict follows from outcomes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from paper.claims.evidence import Evidence
from paper.claims.outcomes import Outcome, all_of

Outcomes = Mapping[tuple[str, str], Outcome]

HOLDS = "holds"
CONDITIONS = "holds under these conditions"
FAILS = "does not hold"
UNDECIDED = "not decided"
VERDICTS = (HOLDS, CONDITIONS, FAILS, UNDECIDED)


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
        "holds", "holds under these conditions", "does not hold" or "not decided".
    conditions : str
        Under which it holds, if it does not always, and for what it is undecided.
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


def decide(outcomes: Mapping[str, Outcome], figure: str, mend: str = "") -> Finding:
    """Verdict on a claim about several subjects, for each of which it may hold.

    Holds if every outcome is true; not at all if some are false and none is true; is not decided if none is known; else
    holds for those that are true, which are named.
    """
    verdict = _verdict([*outcomes.values()])
    names: dict[Outcome, list[str]] = {True: [], False: [], None: []}
    for name, outcome in outcomes.items():
        names[outcome if outcome is None else bool(outcome)].append(name)
    told = {"holds for": names[True], "not for": names[False], "undecided for": names[None]}
    if verdict == FAILS and names[None]:
        return Finding(figure, verdict, "; ".join(_describe(told, "not for", "undecided for")), mend)
    return Finding(figure, verdict, "; ".join(_describe(told, *told)) if verdict == CONDITIONS else "", mend)


def _describe(told: Mapping[str, list[str]], *which: str) -> list[str]:
    return [f"{words} {join_names(told[words])}" for words in which if told[words]]


def _verdict(outcomes: Sequence[Outcome]) -> str:
    if all(outcome is None for outcome in outcomes):
        return UNDECIDED
    if not any(outcomes):
        return FAILS
    return HOLDS if all(outcomes) else CONDITIONS


def decide_jointly(outcomes: Mapping[str, Outcome], figure: str, mend: str = "") -> Finding:
    """Verdict on a claim that is one only if all of its parts are so: one that is not is enough against it."""
    verdict = {True: HOLDS, False: FAILS, None: UNDECIDED}[all_of(outcomes.values())]
    return Finding(figure, verdict, mend=mend)


def decide_across(outcomes: Outcomes, figure: str, mend: str = "") -> Finding:
    """The same as `decide` for several subjects in several settings: which subject holds in how many of them."""
    verdict = _verdict([*outcomes.values()])
    unknown = any(outcome is None for outcome in outcomes.values())
    if verdict != CONDITIONS and not (verdict == FAILS and unknown):
        return Finding(figure, verdict, mend=mend)
    lines = []
    for subject in dict.fromkeys(subject for subject, _ in outcomes):
        here = {setting: outcome for (name, setting), outcome in outcomes.items() if name == subject}
        lines.append(f"{subject} {_in_settings(here)}")
    return Finding(figure, verdict, f"holds for {join_names(lines)}", mend)


def _in_settings(outcomes: Mapping[str, Outcome]) -> str:
    """In how many settings something holds, and in which, if in some only."""
    true = [setting for setting, outcome in outcomes.items() if outcome]
    unknown = [setting for setting, outcome in outcomes.items() if outcome is None]
    notes = ["; ".join(true)] if 0 < len(true) < len(outcomes) else []
    notes += [f"undecided in {len(unknown)}: {'; '.join(unknown)}"] if unknown else []
    return f"in {len(true)} of {len(outcomes)}" + (f" ({', '.join(notes)})" if notes else "")


def in_both_readings(look: Callable[[Evidence], tuple[Outcomes, str]], evidence: Evidence) -> Finding:
    """What two samples say; if that is not all of the claim, also what a sample and its moved copy would say."""
    found = decide_across(*look(evidence))
    if found.verdict == HOLDS:
        return found
    moved = decide_across(*look(evidence.of_copies))
    says = {
        HOLDS: "would hold if B were A's own sample, moved",
        CONDITIONS: f"if B were A's own sample, moved, it {moved.conditions}",
        FAILS: "would not hold either if B were A's own sample, moved",
        UNDECIDED: "not decided either if B were A's own sample, moved",
    }
    return replace(found, mend=f"{says[moved.verdict]}: {moved.figure}")


def join_names(names: list[str]) -> str:
    """Names in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
