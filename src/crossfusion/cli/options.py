"""Options that several commands share."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from crossfusion._base import InputError
from crossfusion.cli import ARGUMENTS
from crossfusion.fusion import MIN_UNITS
from crossfusion.plots import saving, style

PATH = click.Path(path_type=Path)
NAMES_METAVAR = "NAME[,NAME...]"
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def split_names(_context: Any, parameter: click.Parameter, values: Sequence[str]) -> list[str]:
    """Names given as `a,b` or by repeating the option."""
    names = [name.strip() for value in values for name in value.split(",")]
    if not all(names):
        raise InputError(
            parameter.name, problem=f"has an empty name in {', '.join(map(repr, values))}", remedy="leave out the comma"
        )
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InputError(parameter.name, problem=f"names {twice[0]!r} twice", remedy="name each once")
    return names


def _make_number_parser(kind: type[Any]) -> Callable[..., tuple[Any, ...] | None]:
    def parse(_context: Any, parameter: click.Parameter, value: str | None) -> tuple[Any, ...] | None:
        """Numbers given as `1,2`."""
        if value is None:
            return None
        try:
            return tuple(kind(entry) for entry in value.split(","))
        except ValueError as problem:
            what = "whole numbers" if kind is int else "numbers"
            raise InputError(parameter.name, value, f"is not a list of {what}", "write 32,128") from problem

    return parse


def parse_settings(_context: Any, parameter: click.Parameter, values: Sequence[str]) -> dict[str, float]:
    """Settings given as `name=number`, by repeating the option."""
    found: dict[str, float] = {}
    for value in values:
        name, _, number = (part.strip() for part in value.partition("="))
        if name in found:
            raise InputError(parameter.name, problem=f"gives {name!r} twice", remedy="give it once")
        try:
            if not name:
                raise ValueError("there is no name")
            found[name] = float(number) if {*".enif"} & {*number.lower()} else int(number)
        except ValueError as problem:
            raise InputError(parameter.name, value, "is not NAME=NUMBER", "write epsilon=0.5") from problem
    return found


def is_typed(name: str) -> bool:
    """Whether a parameter of the command that runs was given on the command line."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def check_typed(names: Sequence[str], other: str, there: bool) -> None:
    """Refuse options that have no effect without another."""
    for parameter in click.get_current_context().command.params:
        if not there and parameter.name in names and is_typed(str(parameter.name)):
            raise InputError(parameter.name, problem=f"goes with {other}", remedy="give both, or leave it out")


def find_typed_command() -> str:
    """The whole command as it was typed."""
    return shlex.join(["crossfusion", *click.get_current_context().meta.get(ARGUMENTS, [])])


def names_option(name: str, text: str, required: bool = False) -> Decorator:
    """Option of one name or several."""
    return click.option(name, multiple=True, required=required, callback=split_names, metavar=NAMES_METAVAR, help=text)


def numbers_option(name: str, kind: type[Any], text: str) -> Decorator:
    """Option of one number or several."""
    return click.option(name, callback=_make_number_parser(kind), metavar="N[,N...]", help=text)


def parse_named_files(entries: Sequence[str]) -> dict[str, str]:
    """Names with files, given as NAME=FILE."""
    named: dict[str, str] = {}
    for entry in entries:
        name, equals, path = entry.partition("=")
        if not (name and equals and path):
            raise InputError(problem=f"{entry!r} is not NAME=FILE", remedy="write raw=raw.parquet")
        if name in named:
            raise InputError(problem=f"the name {name!r} is used twice", remedy="name each once")
        named[name] = path
    return named


def plot_option(what: str) -> Decorator:
    """Option of a figure; its ending, and whether it can be drawn, are checked before any work."""

    def check(_context: Any, _parameter: click.Parameter, path: Path | None) -> Path | None:
        if path is not None:
            saving.check_ending(path)
            style.load_matplotlib()
        return path

    return click.option(
        "--plot", type=PATH, callback=check, metavar="FILE", help=f"Also draw {what}: .png, .svg or .pdf."
    )


def number_option(name: str, default: int | None, text: str) -> Decorator:
    """Option of a whole number."""
    return click.option(name, type=int, default=default, show_default=default is not None, metavar="N", help=text)


def seed_option(of: str) -> Decorator:
    """Option of the seed of something random."""
    return number_option("--seed", 0, f"Seed of {of}.")


def units_option(use: str, default: str = "") -> Decorator:
    """Option of what is independent, and what that is for."""
    return names_option("--units", f"Factors that identify independent units, such as the patient: {use}.{default}")


min_units_option = number_option(
    "--min-units", MIN_UNITS, "Minimum number of units per group (and stratum); smaller groups are left out and named."
)


def time_option(required: bool) -> Decorator:
    """Option of the periods."""
    return click.option("--time", required=required, metavar="NAME", help="Factor of periods, such as the week.")


def reference_option(what: str, default: str = "first") -> Decorator:
    """Option of what others are compared with."""
    text = f"{what} that the others are compared with.  [default: {default}]"
    return click.option("--reference", metavar="NAME", help=text)


def quick_option(text: str) -> Decorator:
    """Option of small settings."""
    return click.option("--quick", is_flag=True, is_eager=True, help=f"For a first look: {text}.")


def folder_option(text: str = "", **more: Any) -> Decorator:
    """Option of the folder for what a study writes."""
    text = f"Folder for the results.{text}"
    return click.option("-o", "--output", "--out", "out", type=PATH, metavar="DIR", help=text, **more)


def file_option(what: str, **more: Any) -> Decorator:
    """Option of the file that a command writes."""
    return click.option("-o", "--output", "target", type=PATH, metavar="FILE", help=f"{what} to write.", **more)


def distance_option(default: str) -> Decorator:
    """Option of the distances to measure."""
    return names_option("--distance", f"Distances to compute, such as cfd,mmd, or all.  {default}")


between_option = names_option("--between", "Factors that define the groups to compare.", required=True)
given_option = names_option("--given", "Factors to adjust for.")


def make_weights_option(default: str) -> Decorator:
    """Option of the weights of groups."""
    return click.option(
        "--weights",
        default=default,
        show_default=True,
        metavar="pooled|balanced",
        help="Weight groups by their rows, or equally.",
    )


weights_option = make_weights_option("pooled")
balanced_option = make_weights_option("balanced")
interval_option = click.option(
    "--level", type=float, metavar="LEVEL", help="Confidence level of intervals, such as 0.95; omit for no intervals."
)
level_option = click.option(
    "--level", default=0.95, show_default=True, metavar="LEVEL", help="Confidence level of intervals."
)
test_option = click.option(
    "--permutations",
    type=int,
    metavar="N",
    help="Number of random permutations, such as 999; omit for no test.",
)
statistic_option = click.option(
    "--statistic",
    default="welch",
    show_default=True,
    metavar="welch|pseudo-f",
    help="Statistic of the test: welch allows for groups that differ in size and spread; pseudo-f is from PERMANOVA.",
)
permutations_option = number_option("--permutations", 999, "Number of random permutations.")
distance_settings_option = click.option(
    "--option",
    "options",
    multiple=True,
    callback=parse_settings,
    metavar="NAME=NUMBER",
    help="Option of a distance, such as epsilon=0.5; may be repeated.",
)
data_option = click.option(
    "--data", type=PATH, metavar="DIR", help="Folder of the data.  [default: $CROSSFUSION_DATA or ../shared/data]"
)
workers_option = number_option("--workers", None, "Number of processes.  [default: one per core]")
scale_option = click.option(
    "--scale",
    metavar="features",
    help="Divide each feature by its standard deviation within groups, so that all count the same.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
