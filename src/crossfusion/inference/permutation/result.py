"""The result of a permutation test."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion import plots
from crossfusion._base import FloatArray, count_text, number_text, p_text, pvalue_text
from crossfusion.fusion import (
    STATISTIC_NAMES,
    TEST_PLACE,
    Content,
    Exclusion,
    Facts,
    Result,
    describe_excluded,
    describe_scale,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


STATISTICS = tuple(STATISTIC_NAMES)
LEVEL = 0.05  # a p-value that no permutation can bring below this has a caution


@dataclass(frozen=True, eq=False, repr=False)
class TestResult(Result):
    """Result of a permutation test.

    Parameters
    ----------
    statistic : float
        The Welch statistic W*d or pseudo-F: the separation of the groups relative to that expected by chance.
    pvalue : float
        Share of permutations, including the observed labels, with a statistic at least as large as the observed one.
    permutations : int
        Number of permutations in `null`.
    null : array of shape (permutations,)
        The statistic under each permutation.
    distance : float
        Plug-in Cross-Fusion Distance between the groups, with pooled weights.
    exact : bool
        Whether `null` holds all possible permutations, including the observed labels, instead of a random sample.
    statistic_name : {"welch", "pseudo-f"}
        Which statistic was used.
    caution : str or None
        Warning that the p-value cannot reach 0.05 because there are too few permutations, that pseudo-F was used for
        groups that differ in size and spread, that few rows are compared, that the means of groups are equal by
        construction, or that a few features hide the others. `None` if there is nothing to warn about.
    excluded : tuple of Exclusion
        Groups left out of the test because they have too few units.
    scale : str, optional
        "features" if each feature is in units of its standard deviation: within strata for the statistic, as the labels
        must not matter, and within groups for `distance`.
    constant : tuple, optional
        With `scale`: the features left out because they do not vary.

    Notes
    -----
    `to_frame` returns one row with all scalar fields. `plot` draws the observed statistic and its distribution under
    permutation.

    Examples
    --------
    >>> import crossfusion as cf
    >>> cf.permutation_test([[0.0], [1.0], [2.0], [7.0], [8.0], [9.0]], list("aaabbb"))
    Permutation test: p = 0.1 (all 20 permutations)
      statistic  73.50, Welch W*d (by chance: median 0.4712, 95% up to 73.50)
      distance   2.964
      caution    only 20 permutations of the labels exist, so p cannot be below 0.1: more rows or units are needed
    """

    __test__ = False  # not a class of tests, whatever its name suggests to pytest

    statistic: float
    pvalue: float
    permutations: int
    null: FloatArray
    distance: float
    exact: bool = False
    statistic_name: str = "welch"
    caution: str | None = None
    excluded: tuple[Exclusion, ...] = ()
    scale: str | None = None
    constant: tuple[Hashable, ...] | None = None

    def _values(self) -> dict[str, Any]:
        unscaled = () if self.scale else ("scale", "constant")
        return {name: value for name, value in super()._values().items() if name not in unscaled}

    @property
    def smallest_pvalue(self) -> float:
        """The smallest p-value that these permutations can give, for any statistic."""
        if not self.exact:
            return 1 / (self.permutations + 1)
        return float(np.mean(self.null >= self.null.max() * (1 - 1e-9)))

    def _draw(self, axes: Any) -> "Figure":
        """Draw the observed statistic and its distribution under permutation."""
        return plots.null(self.statistic, self.null, self.pvalue, name=STATISTIC_NAMES[self.statistic_name], axes=axes)

    def _contents(self) -> list[Content]:
        half, rare = np.quantile(self.null, (0.5, 0.95), method="higher")
        kind = f"{'all ' if self.exact else ''}{count_text(self.permutations, 'permutation')}"
        by_chance = f"by chance: median {number_text(half)}, 95% up to {number_text(rare)}"
        name = STATISTIC_NAMES[self.statistic_name]
        facts = [
            ("statistic", f"{number_text(self.statistic)}, {name} ({by_chance})"),
            ("distance", number_text(self.distance)),
            *([("scale", describe_scale(self.constant or (), TEST_PLACE))] if self.scale else []),
            *([("caution", self.caution)] if self.caution else []),
        ]
        if self.excluded:
            facts.append(("excluded", describe_excluded(self.excluded)))
        return [f"Permutation test: {p_text(self.pvalue)} ({kind})", Facts(facts)]


def caution_about_number(result: TestResult) -> str | None:
    """Return a caution if no arrangement of the labels could give a p-value of at most 0.05."""
    smallest = result.smallest_pvalue
    if smallest <= LEVEL:
        return None
    if result.exact:
        return (
            f"only {result.permutations:,} permutations of the labels exist, so p cannot be below"
            f" {pvalue_text(smallest)}: more rows or units are needed"
        )
    reach = f"{result.permutations:,} permutations cannot give a p-value below {pvalue_text(smallest)}"
    return f"{reach}: increase permutations"
