"""Distances with their intervals and tests: by the units of a summary, by the rows at hand, or without either."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from crossfusion._base import InputError, factors
from crossfusion.arrays import (
    cfd,
    find_shape_caution,
    infer_pairs,
    leave_out_small_groups,
    one_vs_rest,
    permutation_test,
)
from crossfusion.fusion import (
    SPREAD_CAUTION,
    Exclusion,
    Fusion,
    Pairwise,
    join_cautions,
    leave_out_cells,
)
from crossfusion.inference import MIN_CELL_ROWS, TestResult, count_pairs
from crossfusion.io import Rows
from crossfusion.report.question import Question
from crossfusion.summary import (
    MIN_CROSSED_SHARE,
    Summary,
    count_exchangeable_units,
    describe_exchange,
    has_crossed_units,
)

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
MAX_JUDGED_PAIRS = 1000  # pairs up to which each has an interval and a test: they take milliseconds per pair
MAX_INTERVAL_GROUPS = 300  # groups up to which each has an interval
ADJUSTMENT = "holm"
ESTIMATE_FIELDS = (
    "unbiased",
    "reason",
    "level",
    "interval",
    "stderr",
    "caution",
    "errors",
)  # what units or rows say of a distance
NO_UNITS = "no units are named, and a summary has no rows: name the independent units in units"
TOO_MANY_ROWS = "there are more rows than fit in memory: name the independent units, such as the patient, in units"


@dataclass(frozen=True)
class TestOutcome:
    """A test, and what it exchanged: `number` of `total` rows or units, or labels within units."""

    result: TestResult
    exchanged: str
    number: int
    total: int
    by_units: bool = False
    within: bool = False

    @property
    def partial(self) -> bool:
        """Whether labels are exchanged within units of which most have one group only."""
        return self.within and self.number < MIN_CROSSED_SHARE * self.total


@dataclass(frozen=True)
class Evidence:
    """A summary, some of the rows it was made of, if there are any, and what could not be had."""

    summary: Summary
    question: Question
    rows: Rows | None = None
    whole: bool = False  # whether the rows are all there are
    missing: dict[str, str] = field(default_factory=dict)
    excluded: tuple[Exclusion, ...] = ()

    def leave_out_small_groups(self) -> "Evidence":
        """Leave out groups that have too few units, or rows, for an interval, so that the page is about the others."""
        if self.why_not is not None:
            return self
        between, units = self.question.between, self.question.units
        design = self.summary._make_design(between, ())
        least, of = (self.question.min_units, "units") if units else (MIN_CELL_ROWS, "rows")
        try:
            number = design.cells.count
            if units:
                number = self.summary._make_unit_moments(between, (), units, "a report").count_units(len(design.cells))
            excluded = leave_out_cells(design, number, least, of=of)[1]
        except InputError:  # then there are no intervals, as the page says
            return self
        rows = self.rows
        if excluded and rows is not None:
            kept = find_remaining(rows.keys, between, (), excluded)
            rows = Rows(rows.x[kept], rows.keys.take(kept))
        return replace(self, summary=drop_excluded(self.summary, between, (), excluded), rows=rows, excluded=excluded)

    def select(self, labels: Collection[Any], *, drawn: bool = False) -> "Evidence":
        """Evidence on some of the compared groups alone; what it cannot have is not missing on the page.

        Where units judge, drawn rows would only cost time, and are kept if `drawn`.
        """
        chosen = set(labels)

        def keep(keys: "pa.Table") -> Any:
            return np.flatnonzero([label in chosen for label in factors.list_labels(self._select_groups(keys))])

        return self._take(keep, drawn or not self.question.units)

    def oppose(self, first: Collection[Any], second: Collection[Any], *, drawn: bool = False) -> "Evidence":
        """Evidence on some groups, taken together, against others, taken together; `drawn` as in `select`."""
        both = self.select([*first, *second], drawn=drawn)
        name = " or ".join([*self.summary.factors, "others"])  # not the name of a factor
        sides = set(first)

        def append(keys: "pa.Table") -> "pa.Table":
            own = [label in sides for label in factors.list_labels(self._select_groups(keys))]
            return keys.append_column(name, factors.as_column(np.array(own), name))

        summary = replace(both.summary, keys=append(both.summary.keys), batches=())
        rows = both.rows and Rows(both.rows.x, append(both.rows.keys))
        return replace(both, summary=summary, rows=rows, question=replace(self.question, between=(name,)))

    def balance(self) -> "Evidence":
        """The same with equal weights of the groups."""
        return replace(self, question=replace(self.question, weights="balanced"))

    def estimate(self, given: tuple[str, ...]) -> float | None:
        """The distance by rows, which takes no time."""
        asked = self.question
        return self.summary.cfd(asked.between, given=given, weights=asked.weights).unbiased

    def _select_groups(self, keys: "pa.Table") -> "pa.Table":
        return keys.select(list(self.question.between))

    def _take(self, keep: Callable[["pa.Table"], Any], drawn: bool) -> "Evidence":
        """Evidence on some rows; `keep` gives their positions among keys."""
        kept, rows = keep(self.summary.keys), self.rows
        summary = replace(
            self.summary, keys=self.summary.keys.take(kept), moments=self.summary.moments[kept], batches=()
        )
        if rows is not None:
            places = keep(rows.keys) if drawn else ()
            rows = Rows(rows.x[places], rows.keys.take(places)) if len(places) else None
        return replace(self, summary=summary, rows=rows, missing={})

    @property
    def total(self) -> int:
        """Rows of the summary."""
        return round(float(self.summary.moments.count.sum()))

    @property
    def by_rows(self) -> bool:
        """Whether single rows are what is independent, and are all here."""
        return not self.question.units and self.whole

    @property
    def why_not(self) -> str | None:
        """Why there are no intervals at all, if there are none."""
        if self.question.units or self.by_rows:
            return None
        return NO_UNITS if self.rows is None else TOO_MANY_ROWS

    def distance(self, between: tuple[str, ...], given: tuple[str, ...], what: str | None = None) -> Fusion:
        """Distance with its interval, where there can be one, and a look at the shape of the groups in the rows.

        `what` names the interval where it is missing.
        """
        asked = self.question
        plain = self.summary.cfd(between, given=given, weights=asked.weights)
        found: Fusion | None = None
        if asked.units:
            options: dict[str, Any] = {"units": asked.units, "weights": asked.weights, "level": asked.level}
            options |= {"min_units": asked.min_units}
            found = self._try(what, lambda: self.summary.cfd(between, given=given, **options))
        elif self.by_rows:
            found = self._try(what, lambda: self._compare_rows(between, given))
        else:
            self.missing["interval"] = self.why_not or ""
        found = found or plain
        rows = self.rows
        if rows is not None and SPREAD_CAUTION not in (found.caution or "") and not self.by_rows:
            shape = self._try(None, lambda: find_shape_caution(rows.x, **self._describe_rows(between, given)))
            return replace(found, caution=join_cautions(found.caution, shape))
        if found.excluded:
            return found
        return replace(plain, **{name: getattr(found, name) for name in ESTIMATE_FIELDS})

    def _compare_rows(self, between: tuple[str, ...], given: tuple[str, ...]) -> Fusion:
        assert self.rows is not None
        return cfd(self.rows.x, level=self.question.level, **self._describe_rows(between, given))

    def _describe_rows(self, between: tuple[str, ...], given: tuple[str, ...]) -> dict[str, Any]:
        """Labels and strata of the rows, and how they are compared."""
        assert self.rows is not None
        asked, values = self.question, self.rows.values
        options = {"weights": asked.weights, "min_units": asked.min_units}
        return {"labels": values(between), "given": values(given), "units": values(asked.units), **options}

    def _try(self, what: str | None, ask: Callable[[], T]) -> T | None:
        """An answer, or none, and then what is missing and why."""
        try:
            return ask()
        except InputError as problem:
            if what is not None:
                self.missing.setdefault(what, str(problem))
            return None

    def pairs(self, summary: Summary, given: tuple[str, ...], *, tested: bool = True) -> Pairwise:
        """Distances of all pairs of a summary's groups, with limits and, if `tested`, p-values, where possible."""
        asked = self.question
        plain = summary.pairwise(asked.between, given=given, weights=asked.weights)
        number = count_pairs(plain)
        if not number or self.why_not is not None:
            return plain
        if number > MAX_JUDGED_PAIRS:
            self.missing["intervals and tests of pairs"] = (
                f"there are {number:,} pairs, more than {MAX_JUDGED_PAIRS:,}: each group is compared with the others"
                " together"
            )
            return plain
        tests: dict[str, Any] = {"level": asked.level, "seed": asked.seed, "adjust": ADJUSTMENT}
        tests["permutations"] = asked.permutations if tested else None

        def ask() -> Pairwise:
            if asked.units:
                options = tests | {"units": asked.units, "min_units": asked.min_units}
                return summary.pairwise(asked.between, given=given, weights=asked.weights, **options)
            group, stratum = self._encode_rows(summary, given)
            assert self.rows is not None
            left, group, _ = leave_out_small_groups(summary, asked.between, given, group, stratum, asked.weights)
            return infer_pairs(left, self.rows.x, group, stratum, weights=asked.weights, statistic="welch", **tests)

        found = self._try("intervals of pairs", ask)
        if found is None and tests["permutations"] is not None:
            tests["permutations"] = None
            found = self._try(None, ask)
        return found or plain

    def one_vs_rest(self, given: tuple[str, ...]) -> dict[Any, Fusion]:
        """Distance of each group to all others together, with its interval where there can be one."""
        asked = self.question
        options: dict[str, Any] = {"given": given or None, "weights": asked.weights}
        plain = self.summary.one_vs_rest(asked.between, **options)
        if self.why_not is not None or len(plain) > MAX_INTERVAL_GROUPS:
            return plain

        def ask() -> dict[Any, Fusion]:
            if asked.units:
                by_units: dict[str, Any] = {"units": asked.units, "level": asked.level, "min_units": asked.min_units}
                return self.summary.one_vs_rest(asked.between, **options, **by_units)
            assert self.rows is not None
            return one_vs_rest(self.rows.x, level=asked.level, **self._describe_rows(asked.between, given))

        found = self._try("intervals of single groups", ask) or {}
        return {label: found.get(label, fusion) for label, fusion in plain.items()}

    def _encode_rows(self, summary: Summary, given: tuple[str, ...]) -> tuple[Any, Any]:
        """Codes of the rows' groups as the summary numbers them (-1: not among them), and of their strata."""
        assert self.rows is not None
        places = {label: k for k, label in enumerate(list_groups(summary, self.question.between))}
        code, groups = factors.encode(self.rows.keys.select(list(self.question.between)))
        own = np.array([places.get(label, -1) for label in factors.list_labels(groups)])
        return own[code], factors.encode(self.rows.keys.select(list(given)))[0] if given else None

    def test(self, given: tuple[str, ...]) -> TestOutcome | None:
        """Outcome of the permutation test, and what was exchanged."""
        asked = self.question
        tests: dict[str, Any] = {"permutations": asked.permutations, "seed": asked.seed}
        if asked.units:
            tests |= {"units": asked.units, "min_units": asked.min_units}
            found = self._try("test", lambda: self.summary.test(asked.between, given=given, **tests))
            if found is None:
                return None
            remaining = drop_excluded(self.summary, asked.between, given, found.excluded)
            number = count_exchangeable_units(remaining, asked.between, given, asked.units)
            within = has_crossed_units(remaining, asked.between, asked.units)
            said, total = describe_exchange(remaining, asked.between, asked.units), len(remaining.rollup(asked.units))
            return TestOutcome(found, said, number, total, by_units=True, within=within)
        if self.rows is None:
            self.missing["test"] = NO_UNITS
            return None
        rows, labels, strata = self.rows.x, self.rows.values(asked.between), self.rows.values(given)
        tested = self._try("test", lambda: permutation_test(rows, labels, given=strata, **tests))
        return None if tested is None else TestOutcome(tested, "single rows", len(rows), self.total)


def find_remaining(
    keys: "pa.Table", between: tuple[str, ...], given: tuple[str, ...], excluded: Sequence[Exclusion]
) -> Any:
    """Positions of the keys that are not left out."""
    gone = {(entry.group, entry.stratum) for entry in excluded}
    groups = factors.list_labels(keys.select(list(between)))
    strata = factors.list_labels(keys.select(list(given))) if given else [None] * len(groups)
    return np.flatnonzero([pair not in gone for pair in zip(groups, strata, strict=True)])


def drop_excluded(
    summary: Summary, between: tuple[str, ...], given: tuple[str, ...], excluded: Sequence[Exclusion]
) -> Summary:
    """A summary without what is left out of a question."""
    if not excluded:
        return summary
    kept = find_remaining(summary.keys, between, given, excluded)
    return replace(summary, keys=summary.keys.take(kept), moments=summary.moments[kept], batches=())


def list_groups(summary: Summary, between: tuple[str, ...]) -> list[Any]:
    """The compared groups, in the order of all results."""
    return factors.list_labels(summary.rollup(between).keys.select(list(between)))
