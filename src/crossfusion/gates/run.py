"""Checks data against the rules of a policy."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crossfusion._base import CrossfusionWarning, InputError, arg, check_known
from crossfusion.gates.drift_rule import judge_drift
from crossfusion.gates.measure import Data, measure_groups, measure_pairs
from crossfusion.gates.outcome import RuleOutcome, compare_with_limit, explain_refusal
from crossfusion.gates.policy import Policy, read_policy
from crossfusion.gates.result import CheckResult
from crossfusion.gates.rule import Rule
from crossfusion.gates.separability_rule import measure_separability
from crossfusion.io import open_sources, read_all, reduce_sources
from crossfusion.summary import Summary, read_summary, storage

Reader = Callable[[bool], Data]  # reads whole rows, or their moments


def check(
    policy: Any, source: Any, *, by: Mapping[str, Any] | None = None, vectors: Any = None, nan: str = "raise"
) -> CheckResult:
    """Check data against a policy: rules on how far groups are fused or separated.

    Parameters
    ----------
    policy : path or mapping
        A TOML file with rules, or a mapping of the same form, such as ``{"rule": [{"between": "site", "max": 0.02}]}``.
    source : Summary, path or rows
        A summary, its file, or rows in any form that `summarize` reads.
    by : mapping, optional
        Arrays with the columns that the rules name, if `source` is an array.
    vectors : str, int or list of str, optional
        The column of the embeddings; see `summarize`.
    nan : {"raise", "drop"}
        Whether rows with NaN or infinite values raise an error or are dropped.

    Returns
    -------
    CheckResult
        The outcome of every rule, and the exit code that follows from them.

    Notes
    -----
    A rule whose question cannot be answered never holds: its status is "unanswered".

    Examples
    --------
    >>> import crossfusion as cf
    >>> summary = cf.summarize([[0.0], [2.0], [2.0], [4.0]], by={"site": ["A", "A", "B", "B"]})
    >>> result = cf.check({"rule": [{"name": "sites agree", "between": "site", "max": 0.02}]}, summary)
    >>> print(result.outcomes[0].message)
    CFD of A and B is 0.2231, which is above 0.02
    """
    read = read_policy(policy)
    if isinstance(source, str | os.PathLike) and storage.is_summary(source):
        source = read_summary(source)
    if isinstance(source, Summary):
        if by is not None or vectors is not None:
            raise InputError(
                problem=f"{arg('by')} and {arg('vectors')} apply only to rows",
                remedy="leave them out if source is a summary",
            )
        return check_summary(read, source)

    def open_data(names: Sequence[str]) -> Reader:
        sources, joined = open_sources(source, list(names) if by is None else _choose(by, names), vectors)
        return lambda whole: Data(
            read_all(sources, joined, nan) if whole else reduce_sources(sources, nan=nan, joined=joined)
        )

    return check_rows(read, open_data)


def _choose(by: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    check_known(names, by, "column", f"{arg('by')}")
    return {name: by[name] for name in names}


def check_summary(policy: Policy, summary: Summary) -> CheckResult:
    """Check a summary."""
    return _check_data(policy, Data(summary), {})


def check_rows(policy: Policy, open_data: Callable[[Sequence[str]], Reader]) -> CheckResult:
    """Check rows: `open_data` opens them with some columns and returns a function that reads them, whole or reduced."""
    names = list(dict.fromkeys(name for rule in policy.rules for name in rule.factors))
    missing: dict[str, InputError] = {}
    try:
        read = open_data(names)
    except InputError:
        missing = _find_missing(names, open_data)
        left = [name for name in names if name not in missing]
        if not left:
            raise
        read = open_data(left)
    asked = [rule for rule in policy.rules if not missing.keys() & {*rule.factors}]
    return _check_data(policy, read(any(rule.needs_rows for rule in asked)), missing)


def _find_missing(names: Sequence[str], open_data: Callable[[Sequence[str]], Reader]) -> dict[str, InputError]:
    """Find the columns that the data do not have, each with what is said of it."""
    missing = {}
    for name in names:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CrossfusionWarning)  # of columns that are not opened for good
                open_data([name])
        except InputError as problem:
            missing[name] = problem
    return missing


def _check_data(policy: Policy, data: Data, missing: Mapping[str, InputError]) -> CheckResult:
    outcomes = []
    for rule in policy.rules:
        lacking = [missing[name] for name in rule.factors if name in missing]
        outcomes.append(explain_refusal(rule, lacking[0]) if lacking else check_rule(rule, data))
    return CheckResult(policy.name, tuple(outcomes))


def check_rule(rule: Rule, data: Data) -> RuleOutcome:
    """Check one rule; a question that is refused has no answer."""
    try:
        if rule.kind == "drift":
            return judge_drift(rule, data.summary)
        if rule.kind == "max_separability":
            return compare_with_limit(rule, measure_separability(rule, data))
        return compare_with_limit(rule, measure_pairs(rule, data) if rule.each_pair else measure_groups(rule, data))
    except InputError as problem:
        return explain_refusal(rule, problem)
