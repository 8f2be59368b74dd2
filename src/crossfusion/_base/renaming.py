"""Earlier names of arguments, which are still accepted."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from crossfusion._base.errors import InputError, warn
from crossfusion._base.messages import arg

P = ParamSpec("P")
R = TypeVar("R")


def accept_old_names(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Accept arguments by their earlier names, with a warning that gives the new ones.

    >>> @accept_old_names(strata="given")
    ... def test(x, *, given=None):
    ...     return given
    >>> test(1, given="tissue")
    'tissue'
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **options: P.kwargs) -> R:
            for old, new in names.items():
                if old in options:
                    if new in options:
                        raise InputError(
                            old, problem=f"is the earlier name of {arg(new)}", remedy="pass only one of them"
                        )
                    warn(f"{old} is now called {new}", f"pass {new}=")
                    options[new] = options.pop(old)
            return function(*args, **options)

        return call

    return decorate
