"""What the numbers say, in sentences that are made from them."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from paper.training.outcomes import Outcome
from paper.training.settings import LEVEL, METHODS, NONE, OURS, Settings
from paper.training.tables import share

Ratios = Sequence[Mapping[str, Any]]


def describe_results(found: Sequence[Outcome], ratios: Ratios, settings: Settings) -> list[str]:
    """Paragraphs about what was found.

    Parameters
    ----------
    found : sequence of Outcome
        All data sets and methods.
    ratios : sequence of mappings
        Cost of a step.
    settings : Settings
        Every choice.

    Returns
    -------
    list of str
        Sentences; every number in them is computed.
    """
    groups = list(dict.fromkeys(outcome.group for outcome in found))
    said = [_of_group({o.method: o for o in found if o.group == group}) for group in groups]
    said.append(_of_ours(found, groups))
    said.append(_by_chance(found, settings))
    said += [_means(found, groups), _name_driven_apart(found), _describe_guesses(found), _oracle(found, settings)]
    return [*(text for text in said if text), _cost(ratios)]


def _of_group(own: Mapping[str, Outcome]) -> str:
    """What is lost on the target, and which methods win it back."""
    base = own[NONE]
    others = [outcome for outcome in own.values() if outcome.method != NONE]
    above = sorted((o for o in others if o.difference.sign > 0), key=lambda o: -o.difference.mean)
    below = sorted((o for o in others if o.difference.sign < 0), key=lambda o: o.difference.mean)
    gains = join_names([f"{METHODS[o.method]} ({100 * o.difference.mean:+.1f})" for o in above])
    losses = join_names([f"{METHODS[o.method]} ({100 * o.difference.mean:+.1f})" for o in below])
    return (
        f"{base.group}: without a regulariser {share(base.source)} % of the sources' held-out rows are right, and"
        f" {share(base.target)} % of the target's. Better beyond the interval of the difference, in points: {gains};"
        f" worse: {losses}."
    )


def _of_ours(found: Sequence[Outcome], groups: Sequence[str]) -> str:
    """Where CFD helps, where it does not, and its place."""
    said = []
    for method in OURS:
        own = {o.group: o for o in found if o.method == method}
        wins, losses = ([g for g in groups if own[g].difference.sign == sign] for sign in (1, -1))
        undecided = [g for g in groups if own[g].difference.sign == 0]
        places = ", ".join(f"{_place(found, own[g])} on {g}" for g in groups)
        said.append(
            f"{METHODS[method]} beats no regulariser on {join_names(wins)}, loses to it on {join_names(losses)}, and is"
            f" not told from it on {join_names(undecided)}; its place by mean accuracy among all"
            f" {len(METHODS)}: {places}."
        )
    return " ".join(said)


def _place(found: Sequence[Outcome], own: Outcome) -> int:
    return 1 + sum(o.target.mean > own.target.mean for o in found if o.group == own.group)


def _by_chance(found: Sequence[Outcome], settings: Settings) -> str:
    compared = [outcome for outcome in found if outcome.method != NONE]
    apart = sum(outcome.difference.sign != 0 for outcome in compared)
    return (
        f"{apart} of {len(compared)} differences lie beyond their {LEVEL:.0%} interval; if no method did anything,"
        f" about {(1 - LEVEL) * len(compared):.1f} would. Intervals are over {settings.seeds} seeds, which differ in"
        " splits, weights and batches, not over data sets."
    )


def _means(found: Sequence[Outcome], groups: Sequence[str]) -> str:
    """Whether the distance fell, and that it sees means only."""
    said = []
    for group in groups:
        base, own = (next(o for o in found if (o.group, o.method) == (group, name)) for name in (NONE, "cfd"))
        cells = [f"{_change(base, own, what)}{text}" for what, text in KINDS.items()]
        said.append(f"on {group}, {', '.join(cells)}")
    return (
        "CFD sees means only. Training against it takes, from no regulariser to CFD: "
        f"{'; '.join(said)}. Of what is left with the means taken off, CFD knows nothing."
    )


def _name_driven_apart(found: Sequence[Outcome]) -> str:
    """Methods after which the means of the features lie farther apart than without them."""
    base = {o.group: o.distances["cfd"] for o in found if o.method == NONE}
    said = []
    for method, title in METHODS.items():
        own = [o.group for o in found if o.method == method and o.distances["cfd"] > base[o.group]]
        said += [f"{title} on {join_names(own)}"] if own else []
    if not said:
        return ""
    return (
        f"Not every method brings the features together: their CFD is larger than without a regulariser with"
        f" {'; '.join(said)}. Such training has not done what it is meant to, and says little about the method at its"
        " best."
    )


KINDS = {
    "cfd": " for CFD",
    "energy": " for the energy distance",
    "energy_centred": " for the energy distance with the means taken off",
}


def _change(base: Outcome, own: Outcome, what: str) -> str:
    return " to ".join(f"{o.distances[what] + 0.0:.3f}".replace("-0.000", "0.000") for o in (base, own))


def _percent(value: float) -> str:
    """A share, or a dash where there is none."""
    return "–" if isnan(value) else f"{value:.1%}"


def _describe_guesses(found: Sequence[Outcome]) -> str:
    """What the labels within which domains were fused are worth."""
    own = [o for o in found if o.method == "cfd_given_label" and o.group != "pacs_left_out"]
    cells = ", ".join(f"{o.group} {o.confident:.0%} of rows, {_percent(o.right)} of them right" for o in own)
    more = " Where a domain is left out, the labels are the sources' true ones." if len(own) < _groups(found) else ""
    return (
        "CFD given label has no labels of the target: it takes the network's own where they are confident. On the"
        f" target at the end: {cells}. What is confidently wrong is fused with the wrong class.{more}"
    )


def _groups(found: Sequence[Outcome]) -> int:
    return len({outcome.group for outcome in found})


def _oracle(found: Sequence[Outcome], settings: Settings) -> str:
    """What the choice of the strength without labels costs."""
    gaps = [(o.best_target.mean - o.target.mean, o) for o in found if o.method != NONE]
    gap, most = max(gaps, key=lambda entry: entry[0])
    weakest = sum(o.best == min(settings.strengths) for _, o in gaps)
    same = sum(o.best == o.strength for _, o in gaps)
    apart = sum(o.best_difference.sign > 0 for _, o in gaps)
    wins = sum(o.difference.sign > 0 for _, o in gaps)
    return (
        f"The strength chosen without labels of the target is the best of the grid in {same} of {len(gaps)} cases;"
        f" the best is the weakest of the grid in {weakest}. At most the choice costs {100 * gap:.1f} points"
        f" ({METHODS[most.method]} on {most.group}). Chosen with the target's labels, {apart} would beat no regulariser"
        f" beyond the interval instead of {wins}: a study that chooses so reports more than can be had."
    )


def _cost(ratios: Ratios) -> str:
    """What a step costs, at the fewest and the most rows."""
    said = []
    for rows in sorted({entry["rows"] for entry in ratios}):
        own = [entry for entry in ratios if entry["rows"] == rows]
        cells = []
        for method in [name for name in METHODS if name != NONE]:
            values = [entry["ratio"] for entry in own if entry["method"] == method]
            low, high = f"{min(values):.2f}", f"{max(values):.2f}"
            cells.append(f"{METHODS[method]} {low}" + (f" to {high}" if high != low else ""))
        said.append(f"at {rows} rows a domain {', '.join(cells)}")
    return f"A step takes this many times one without a regulariser: {'; '.join(said)}."


def join_names(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]])) or "none"
