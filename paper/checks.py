"""Checks of what experiments are asked for; each refusal is one line that names the remedy."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from importlib import import_module
from math import isfinite
from typing import Any

from crossfusion import InputError, MissingDependencyError


def load_library(module: str, library: str, extra: str | None, purpose: str) -> Any:
    """Import a module of an optional library, or name the extra that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as problem:
        raise MissingDependencyError(library, extra, purpose) from problem


def check_known(wanted: Iterable[str], known: Collection[str], what: str, holder: str) -> None:
    """Refuse names that do not exist, and suggest the one that was meant."""
    for name in wanted:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, known))}"
            raise InputError(value=name, problem=f"{holder} has no {what} {name!r}", remedy=hint)


def check_whole(value: int, name: str, least: int = 1) -> None:
    """Refuse what is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(name, value, f"must be a whole number, {least} or more")


def check_seed(value: int) -> None:
    """Refuse what is not a seed."""
    check_whole(value, "seed", 0)


def check_positive(value: float, name: str) -> None:
    """Refuse what is not a finite number above 0."""
    if not (isfinite(value) and value > 0):
        raise InputError(name, value, "must be a finite number above 0")


def check_fraction(value: float, name: str, below: float = 0.5) -> None:
    """Refuse what is not a share from 0 up to a limit."""
    if not 0 <= value < below:
        raise InputError(name, value, f"must be a share from 0 up to, but not including, {below:g}")
