"""Options that several commands share."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from crossfusion import pictures
from crossfusion.errors import InputError
from crossfusion.plots import style

PATH = click.Path(path_type=Path)
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _names(_context: Any, parameter: click.Parameter, values: Sequence[str]) -> list[str]:
    """Names given as `a,b` or by repeating the option."""
    names = [name.strip() for value in values for name in value.split(",")]
    if not all(names):
        raise InputError(
            f"{parameter.opts[0]} has an empty name in {', '.join(map(repr, values))}: leave out the comma"
        )
    return names


def _numbers(kind: type[Any]) -> Callable[..., tuple[Any, ...] | None]:
    def parse(_context: Any, parameter: click.Parameter, value: str | None) -> tuple[Any, ...] | None:
        """Numbers given as `1,2`."""
        if value is None:
            return None
        try:
            return tuple(kind(entry) for entry in value.split(","))
        except ValueError as problem:
            what = "whole numbers" if kind is int else "numbers"
            raise InputError(f"{parameter.opts[0]} {value!r} is not a list of {what}: write 32,128") from problem

    return parse


def settings(_context: Any, parameter: click.Parameter, values: Sequence[str]) -> dict[str, float]:
    """Settings given as `name=number`, by repeating the option."""
    found: dict[str, float] = {}
    for value in values:
        name, _, number = value.partition("=")
        try:
            found[name.strip()] = float(number) if {*".enif"} & {*number.lower()} else int(number)
        except ValueError as problem:
            raise InputError(f"{parameter.opts[0]} {value!r} is not NAME=NUMBER: write epsilon=0.5") from problem
    return found


def names_option(name: str, text: str, required: bool = False) -> Decorator:
    """Option of one name or several."""
    return click.option(name, multiple=True, required=required, callback=_names, metavar="NAME[,NAME...]", help=text)


def numbers_option(name: str, kind: type[Any], text: str) -> Decorator:
    """Option of one number or several."""
    return click.option(name, callback=_numbers(kind), metavar="N[,N...]", help=text)


def named_files(entries: Sequence[str]) -> dict[str, str]:
    """Names with files, given as NAME=FILE."""
    named: dict[str, str] = {}
    for entry in entries:
        name, equals, path = entry.partition("=")
        if not (name and equals and path):
            raise InputError(f"{entry!r} is not NAME=FILE: write raw=raw.parquet")
        if name in named:
            raise InputError(f"the name {name!r} is there twice: name each once")
        named[name] = path
    return named


def plot_option(text: str = "Also draw it") -> Decorator:
    """Option of a figure; its ending, and whether it can be drawn, are checked before any work."""

    def checked(_context: Any, _parameter: click.Parameter, path: Path | None) -> Path | None:
        if path is not None:
            pictures.check_ending(path)
            style.matplotlib()
        return path

    return click.option("--plot", type=PATH, callback=checked, metavar="FILE", help=f"{text}: .png, .svg or .pdf.")


between_option = names_option("--between", "Factors whose combinations are compared.", required=True)
given_option = names_option("--given", "Factors to adjust for.")
weights_option = click.option(
    "--weights",
    default="pooled",
    show_default=True,
    metavar="pooled|balanced",
    help="Groups weigh by rows, or the same.",
)
level_option = click.option(
    "--level", type=float, metavar="LEVEL", help="Give confidence intervals at this level, such as 0.95."
)
test_option = click.option(
    "--test", "permutations", type=int, metavar="N", help="Test by this many permutations, such as 999."
)
seed_option = click.option("--seed", default=0, show_default=True, help="Seed of the permutations.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
ARGUMENTS = "crossfusion.arguments"  # where a context keeps what was typed
