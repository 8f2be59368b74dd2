"""Tables of the study: methods on each data set, every task, strengths, and what a step costs."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from crossfusion.study import PageTable, number_text
from paper.training.cost import ALONE
from paper.training.outcomes import Estimate, Outcome, Run, summarize_runs
from paper.training.settings import LEVEL, METHODS, NONE, Settings

GROUPS = {
    "digits": "digits, from one simulated scanner to the other",
    "pacs": "pacs, each domain to the next",
    "office_caltech": "office_caltech, each domain to the next",
    "pacs_left_out": "pacs, three domains to the fourth, which is never seen",
}


def accuracy_table(found: Sequence[Outcome], group: str) -> PageTable:
    """Methods of a data set: accuracies with intervals, differences, and the best on the grid."""
    own = [outcome for outcome in found if outcome.group == group]
    header = ["method", "strength", "target accuracy", "difference", "source accuracy", "oracle: strength", "accuracy"]
    rows = [
        [
            METHODS[outcome.method],
            _strength(outcome, outcome.strength),
            share(outcome.target),
            _difference(outcome),
            share(outcome.source),
            _strength(outcome, outcome.best),
            share(outcome.best_target) if outcome.method != NONE else "–",
        ]
        for outcome in own
    ]
    caption = (
        f"in percent, ± half of the {LEVEL:.0%} interval over seeds; differences from no regulariser are taken seed by"
        " seed. The strength is chosen without a label of the target; “oracle” is the best of the grid by the target's"
        " labels, which is not to be had"
    )
    return PageTable(f"Accuracy, {GROUPS[group]}", caption, header, rows)


def distance_table(found: Sequence[Outcome], group: str) -> PageTable:
    """Whether the features of domains came together, and what is left beyond their means."""
    between = "the sources" if group == "pacs_left_out" else "source and target"
    header = ["method", "CFD", "CFD given label", "energy", "energy, means taken off", "confident", "of these right"]
    rows = [
        [METHODS[outcome.method], *map(number_text, outcome.distances.values()), *map(_percent, _guesses(outcome))]
        for outcome in found
        if outcome.group == group
    ]
    caption = (
        f"features of {between} on rows not trained on, at the strength chosen: unbiased CFD, and the energy distance"
        " at a variance of 1 within domains; then the share of the target's rows with a confident prediction, and how"
        " many percent of those are right"
    )
    return PageTable(f"Distances of the features, {GROUPS[group]}", caption, header, rows)


def _guesses(outcome: Outcome) -> tuple[float, float]:
    return outcome.confident, outcome.right


def task_table(runs: Sequence[Run], settings: Settings, found: Sequence[Outcome]) -> PageTable:
    """Accuracy on the target of every task, at the strengths chosen for its data set."""
    chosen = {(outcome.group, outcome.method): outcome.strength for outcome in found}
    tasks = list(dict.fromkeys((run["group"], run["task"]) for run in runs))
    rows = []
    for group, task in tasks:
        own = [run for run in runs if (run["group"], run["task"]) == (group, task)]
        own = [run for run in own if run["strength"] == chosen[group, run["method"]]]
        cells = {outcome.method: share(outcome.target) for outcome in summarize_runs(own, settings)}
        rows.append([f"{group}: {task}", *(cells[method] for method in METHODS)])
    caption = f"target accuracy in percent, ± half of the {LEVEL:.0%} interval over seeds"
    return PageTable("Every task", caption, ["task", *METHODS.values()], rows)


def strength_table(found: Sequence[Outcome]) -> PageTable:
    """Accuracy on target and sources at every strength."""
    grid = sorted({s for outcome in found if outcome.method != NONE for s in outcome.by_strength})
    rows = [
        [outcome.group, METHODS[outcome.method], *(_at(outcome, strength) for strength in grid)]
        for outcome in found
        if outcome.method != NONE
    ]
    caption = "target accuracy, and in brackets that on held-out rows of the sources, in percent; * the strength chosen"
    return PageTable("Every strength", caption, ["data set", "method", *(f"{s:g}" for s in grid)], rows)


def _at(outcome: Outcome, strength: float) -> str:
    means = outcome.by_strength[strength]
    mark = " *" if strength == outcome.strength else ""
    return f"{_percent(means['target'])} ({_percent(means['source'])}){mark}"


def cost_table(ratios: Sequence[Mapping[str, Any]]) -> PageTable:
    """Ratios of steps, a column a data set and number of rows."""
    columns = list(dict.fromkeys((entry["group"], entry["rows"]) for entry in ratios))
    cells = {(entry["group"], entry["rows"], entry["method"]): entry for entry in ratios}
    names = {**METHODS, ALONE: "no regulariser, labelled rows alone"}
    rows = [[title, *(_ratio(cells[(*column, name)]) for column in columns)] for name, title in names.items()]
    header = ["method", *(f"{group}, {rows} rows a domain" for group, rows in columns)]
    caption = (
        "processor time of a step over that of a step without a regulariser on the same rows, one thread, in turns:"
        f" median of {ratios[0]['rounds']} rounds, in brackets the quartiles"
    )
    return PageTable("Cost of a step", caption, header, rows)


def _ratio(entry: Mapping[str, Any]) -> str:
    if entry["method"] == NONE:
        return "1"
    return f"{entry['ratio']:.2f} ({entry['lower']:.2f} to {entry['upper']:.2f})"


def share(found: Estimate) -> str:
    """An accuracy in percent with its interval."""
    return f"{100 * found.mean:.1f} ± {100 * found.half:.1f}"


def _difference(outcome: Outcome) -> str:
    found = outcome.difference
    return "–" if outcome.method == NONE else f"{100 * found.mean:+.1f} ± {100 * found.half:.1f}"


def _strength(outcome: Outcome, strength: float) -> str:
    return "–" if outcome.method == NONE else f"{strength:g}"


def _percent(value: float) -> str:
    return "–" if isnan(value) else f"{100 * value:.1f}"
