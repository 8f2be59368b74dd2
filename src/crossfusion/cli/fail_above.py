"""The option `--fail-above`: an exit code for the simple case, without a policy."""

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from crossfusion._base import InputError, arg
from crossfusion.cli import end_output, fail
from crossfusion.fusion import MIN_UNITS, Fusion
from crossfusion.gates import Data, Findings, Measurement, RuleOutcome, check_rule, compare_with_limit, make_rule
from crossfusion.io import Rows
from crossfusion.summary import Summary

EXIT_CODES = {"broken": 1, "unanswered": 2}


def _check_limit(_context: Any, parameter: click.Parameter, value: float | None) -> float | None:
    """Refuse a limit that is not one, before any work."""
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise InputError(parameter.name, value, "must be a finite number, 0 or more")
    return value


fail_above_option = click.option(
    "--fail-above",
    type=float,
    metavar="CFD",
    callback=_check_limit,
    help="Exit with 1 if the unbiased CFD of a pair of groups is above this, and with 2 if a pair has none.",
)


def ask_pairs(
    limit: float | None,
    source: Summary | Rows,
    between: Sequence[str],
    given: Sequence[str],
    weights: str,
    units: Sequence[str] = (),
    min_units: int = MIN_UNITS,
) -> RuleOutcome | None:
    """Whether each pair of groups is within a limit; None without one."""
    if limit is None:
        return None
    settings: dict[str, Any] = {"between": list(between), "given": list(given), "units": list(units)}
    settings |= {"weights": weights, "min_units": min_units, "each_pair": True, "max": limit}
    return check_rule(make_rule("max", settings), Data(source))


def ask_fusion(limit: float | None, fusion: Fusion, where: str) -> RuleOutcome | None:
    """The same of two groups whose distance is known."""
    if limit is None:
        return None
    measured = Measurement(where, fusion.unbiased, reason=fusion.reason or "")
    return compare_with_limit(
        make_rule("max", {"between": "group", "max": limit}), Findings((measured,), notes=fusion.caution)
    )


def check_unscaled(limit: float | None, scale: str | None) -> None:
    """Refuse a limit for distances of scaled features, which `ask_pairs` does not compute."""
    if limit is not None and scale is not None:
        raise InputError(
            "fail_above", problem=f"cannot be combined with {arg('scale')}", remedy="standardize the features first"
        )


@contextmanager
def enforce(outcome: RuleOutcome | None) -> Iterator[None]:
    """Show a result, then end with 1 if a limit is exceeded, and with 2 if that is not known."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough; a limit that is exceeded is one all the same
        if outcome is None:
            raise
        end_output()
    if outcome is not None and outcome.status in EXIT_CODES:
        fail(outcome.message, EXIT_CODES[outcome.status])
