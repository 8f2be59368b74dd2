"""Assertions for tests: that groups of embeddings are fused, or that they are apart."""

from typing import Any

from crossfusion._base import InputError, align_index, as_names, as_rows, check_length, factors, interval_text
from crossfusion.arrays import take_columns
from crossfusion.fusion import MIN_UNITS
from crossfusion.gates import Data, Rule, RuleOutcome, check_rule, make_rule
from crossfusion.io import Rows
from crossfusion.summary import Summary

__all__ = ["assert_apart", "assert_fused"]


def assert_fused(
    x: Any,
    labels: Any,
    *,
    max: float,  # noqa: A002 - as in a policy
    given: Any = None,
    units: Any = None,
    on: str = "estimate",
    level: float = 0.95,
    weights: str = "balanced",
    each_pair: bool = False,
    min_units: int = MIN_UNITS,
) -> None:
    """Raise an AssertionError if groups are farther apart than a Cross-Fusion Distance.

    Parameters
    ----------
    x : array of shape (rows, dim), table, or Summary
        Rows of all groups, or their summary.
    labels : array of shape (rows,), or str
        The group of each row; for a summary, the factor that defines the groups; for a pandas, Polars or PyArrow table,
        the column that holds the groups. The same goes for `given` and `units`. Named columns are not features.
    max : float
        The largest CFD that passes.
    given : array of shape (rows,), or str, optional
        The stratum of each row, or the factor to adjust for.
    units : array of shape (rows,), or str, optional
        The unit of each row, or the factor that identifies units, such as the patient.
    on : {"estimate", "lower", "upper"}
        The number that must be at most `max`: the unbiased CFD, or a confidence limit. With "lower", the assertion
        fails only if groups are shown to be farther apart; with "upper", it passes only if they are shown to be closer.
    level : float
        Confidence level of the interval.
    weights : {"pooled", "balanced"}
        "pooled" weights groups by their number of rows, "balanced" equally.
    each_pair : bool
        Whether each pair of groups must pass, instead of all groups together.
    min_units : int
        With `units`, the minimum number of units per group (and stratum).

    Returns
    -------
    None

    Raises
    ------
    AssertionError
        If the groups are farther apart.
    InputError
        If the question cannot be answered.

    See Also
    --------
    crossfusion.check : Check data against a policy with several rules.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfusion.testing import assert_fused
    >>> x = np.random.default_rng(0).normal(size=(400, 8))
    >>> assert_fused(x, np.arange(400) % 2, max=0.02, on="upper")
    >>> assert_fused(x, x[:, 0] > 0, max=0.02)
    Traceback (most recent call last):
    ...
    AssertionError:
    Groups are not fused: CFD at most 0.02
    <BLANKLINE>
    Compared: False and True
     CFD: 0.07448
     MAX: 0.02
    """
    __tracebackhide__ = True
    options = {"on": on, "level": level, "weights": weights, "each_pair": each_pair, "min_units": min_units}
    _assert_rule("Groups are not fused", x, labels, given, units, kind="max", limit=max, options=options)


def assert_apart(
    x: Any,
    labels: Any,
    *,
    min: float,  # noqa: A002 - as in a policy
    given: Any = None,
    units: Any = None,
    on: str = "estimate",
    level: float = 0.95,
    weights: str = "balanced",
    each_pair: bool = False,
    min_units: int = MIN_UNITS,
) -> None:
    """Raise an AssertionError if groups are closer than a Cross-Fusion Distance.

    Parameters
    ----------
    x : array of shape (rows, dim), table, or Summary
        Rows of all groups, or their summary.
    labels : array of shape (rows,), or str
        The group of each row; for a summary, the factor that defines the groups; for a pandas, Polars or PyArrow table,
        the column that holds the groups. The same goes for `given` and `units`. Named columns are not features.
    min : float
        The smallest CFD that passes.
    given : array of shape (rows,), or str, optional
        The stratum of each row, or the factor to adjust for.
    units : array of shape (rows,), or str, optional
        The unit of each row, or the factor that identifies units, such as the patient.
    on : {"estimate", "lower", "upper"}
        The number that must be at least `min`: the unbiased CFD, or a confidence limit. With "lower", the assertion
        passes only if groups are shown to be farther apart; with "upper", it fails only if they are shown to be closer.
    level : float
        Confidence level of the interval.
    weights : {"pooled", "balanced"}
        "pooled" weights groups by their number of rows, "balanced" equally.
    each_pair : bool
        Whether each pair of groups must pass, instead of all groups together.
    min_units : int
        With `units`, the minimum number of units per group (and stratum).

    Returns
    -------
    None

    Raises
    ------
    AssertionError
        If the groups are closer.
    InputError
        If the question cannot be answered.

    See Also
    --------
    crossfusion.check : Check data against a policy with several rules.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfusion.testing import assert_apart
    >>> labels = np.arange(400) % 3
    >>> x = np.random.default_rng(0).normal(size=(400, 8)) + 2.0 * labels[:, None]
    >>> assert_apart(x, labels, min=0.5, on="lower", each_pair=True)
    """
    __tracebackhide__ = True
    options = {"on": on, "level": level, "weights": weights, "each_pair": each_pair, "min_units": min_units}
    _assert_rule("Groups are not apart", x, labels, given, units, kind="min", limit=min, options=options)


def _assert_rule(
    failure: str, x: Any, labels: Any, given: Any, units: Any, *, kind: str, limit: float, options: dict[str, Any]
) -> None:
    __tracebackhide__ = True
    data, names = (
        _take_summary(x, labels, given, units) if isinstance(x, Summary) else _take_rows(x, labels, given, units)
    )
    rule = make_rule(kind, {kind: limit, **names, **options})
    outcome = check_rule(rule, data)
    if outcome.status == "unanswered":
        raise InputError(problem=outcome.message)
    if outcome.status == "broken":
        raise AssertionError(_format_failure(failure, rule, outcome))


def _take_summary(summary: Summary, labels: Any, given: Any, units: Any) -> tuple[Data, dict[str, Any]]:
    """A summary, and the factors that are named."""
    named = {"labels": labels, "given": given, "units": units}
    names = {key: list(as_names(value, key)) for key, value in named.items()}
    return Data(summary), {"between": names.pop("labels"), **names}


def _take_rows(x: Any, labels: Any, given: Any, units: Any) -> tuple[Data, dict[str, Any]]:
    """Rows with their labels as columns, and the names of these."""
    x, labels, given, units = take_columns(x, labels=labels, given=given, units=units)
    labels, given, units = align_index("x", x, labels=labels, given=given, units=units)
    passed = {"labels": labels, "given": given, "units": units}
    keys = factors.as_table({name: values for name, values in passed.items() if values is not None})
    rows = as_rows(x, "x")
    check_length(keys.num_rows, rows.shape[0], "labels", "x")
    names = {key: [name] for key, name in (("between", "labels"), ("given", "given"), ("units", "units"))}
    return Data(Rows(rows, keys)), {key: names[key] for key in names if names[key][0] in keys.column_names}


def _format_failure(failure: str, rule: Rule, outcome: RuleOutcome) -> str:
    interval = None if outcome.lower is None or outcome.upper is None else (outcome.lower, outcome.upper)
    lines = [
        f"\n{failure}: {rule.requirement}\n",
        f"Compared: {outcome.where}{', adjusted' if rule.given else ''}",
        f" CFD: {interval_text(outcome.estimate, interval)}",
        f" {rule.kind.upper()}: {rule.limit:g}",
        *([f"Caution: {outcome.caution}"] if outcome.caution else []),
    ]
    return "\n".join(lines)
