"""The result of a check: the outcome of every rule, and the exit code that follows."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion import plots
from crossfusion._base import count_text, interval_text
from crossfusion.fusion import Content, Result, TextTable, record_columns
from crossfusion.gates import formats
from crossfusion.gates.outcome import BROKEN, HOLDS, UNANSWERED, RuleOutcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEADER = ["rule", "status", "requirement", "estimate", "where"]
LEFT = (0, 1, 2, 4)  # columns of text


@dataclass(frozen=True, repr=False)
class CheckResult(Result):
    """The outcome of every rule of a policy.

    Parameters
    ----------
    policy : str
        The file of the policy, or "policy".
    outcomes : tuple of RuleOutcome
        One outcome per rule, in the order of the policy.

    Notes
    -----
    `to_frame` returns one row per rule. `plot` draws the estimate that decided each rule, with its interval.

    Examples
    --------
    >>> import crossfusion as cf
    >>> summary = cf.summarize([[0.0], [2.0], [2.0], [4.0]], by={"site": ["A", "A", "B", "B"]})
    >>> result = cf.check({"rule": [{"between": "site", "max": 0.02}]}, summary)
    >>> result.passed, result.exit_code
    (False, 1)
    """

    policy: str
    outcomes: tuple[RuleOutcome, ...]

    @property
    def passed(self) -> bool:
        """Whether every rule holds."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """0 if every rule holds, 1 if a rule is broken, 2 if none is broken but one cannot be answered."""
        if self.count(BROKEN):
            return 1
        return 2 if self.count(UNANSWERED) else 0

    def count(self, status: str) -> int:
        """Count the rules with a status.

        Parameters
        ----------
        status : {"holds", "broken", "unanswered"}
            The status.

        Returns
        -------
        int
            Number of rules.
        """
        return sum(outcome.status == status for outcome in self.outcomes)

    def to_junit(self) -> str:
        """Return the outcomes as JUnit XML, with one test case per rule.

        Returns
        -------
        str
            A broken rule is a failure, a rule that cannot be answered an error.
        """
        return formats.make_junit(self.policy, self.outcomes)

    def to_github(self) -> str:
        """Return the outcomes as annotations of GitHub Actions, with one line per rule.

        Returns
        -------
        str
            Workflow commands, such as ``::error file=policy.toml,title=...::...``.
        """
        return formats.make_annotations(self.policy, self.outcomes)

    def to_multiqc(self) -> dict[str, Any]:
        """Return the outcomes as a section of a MultiQC report.

        Returns
        -------
        dict
            Contents of a file whose name ends in ``_mqc.json``.
        """
        return formats.make_multiqc(self.policy, self.outcomes)

    def summarize(self) -> str:
        """Describe the outcomes in one line.

        Returns
        -------
        str
            Numbers of rules by status.
        """
        said = {HOLDS: "held", BROKEN: "broken", UNANSWERED: "unanswered"}
        counts = [f"{self.count(status)} {word}" for status, word in said.items() if self.count(status)]
        return f"{self.policy}: {count_text(len(self.outcomes), 'rule')}, {', '.join(counts)}"

    def rows(self) -> list[list[str]]:
        """Return the outcomes as a table of text.

        Returns
        -------
        list of list of str
            One row per rule: name, status, requirement, estimate with its interval, and where it was found.
        """
        return [
            [
                each.rule,
                each.status.upper() if each.status != HOLDS else HOLDS,
                each.requirement,
                _format(each),
                each.where,
            ]
            for each in self.outcomes
        ]

    def describe(self) -> list[str]:
        """Describe what needs attention.

        Returns
        -------
        list of str
            A line per rule that does not hold, and per caution.
        """
        said = [f"{each.rule}: {each.message}" for each in self.outcomes if each.status != HOLDS]
        return said + [f"caution, {each.rule}: {each.caution}" for each in self.outcomes if each.caution]

    def _values(self) -> dict[str, Any]:
        facts = {"policy": self.policy, "passed": self.passed, "exit_code": self.exit_code}
        return facts | {"rules": list(self.outcomes)}

    def _columns(self) -> dict[str, Any]:
        return record_columns(RuleOutcome, self.outcomes)

    def _contents(self) -> list[Content]:
        return [self.summarize(), TextTable(HEADER, self.rows(), left=LEFT), *self.describe()]

    def _draw(self, axes: Any) -> "Figure":
        """Draw the estimate and interval of each rule."""
        values, lower, upper = (
            np.array([getattr(each, name) for each in self.outcomes], np.float64)
            for name in ("estimate", "lower", "upper")
        )
        return plots.forest([each.rule for each in self.outcomes], values, lower, upper, axes=axes)


def _format(outcome: RuleOutcome) -> str:
    limits = None if outcome.lower is None or outcome.upper is None else (outcome.lower, outcome.upper)
    return interval_text(outcome.estimate, limits)
