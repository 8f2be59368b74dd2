"""Options that several commands share; the benchmarks use them too."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import click

PATH = click.Path(path_type=Path)
SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


@contextmanager
def _leave_ends_to_run() -> Iterator[None]:
    """Let `crossfusion.cli.run` report an interruption in one line; a closed pipe is not an error."""
    try:
        yield
    except KeyboardInterrupt as problem:
        raise click.Abort from problem
    except BrokenPipeError as problem:  # the reader, such as head, has seen enough
        sys.stdout = sys.stderr = StringIO()
        raise click.exceptions.Exit(0) from problem


class Commands(click.Group):
    """Commands that end as those of `crossfusion` do."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Read what was typed."""
        with _leave_ends_to_run():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with _leave_ends_to_run():
            return super().invoke(ctx)


def _split_names(_context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> list[str]:
    """Names given as `a,b` or by repeating the option."""
    names = [name.strip() for value in values for name in value.split(",")]
    if not all(names):
        raise click.BadParameter(f"{','.join(values)!r} has an empty name: leave out the comma", param=parameter)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise click.BadParameter(f"{twice!r} is used twice: name each once", param=parameter)
    return names


def names_option(name: str, text: str) -> Decorator:
    """Option of one name or several."""
    return click.option(name, multiple=True, callback=_split_names, metavar="NAME[,NAME...]", help=text)


def numbers_option(name: str, kind: type[Any], text: str) -> Decorator:
    """Option of one number or several."""

    def parse(_context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[Any, ...] | None:
        if value is None:
            return None
        try:
            return tuple(kind(entry) for entry in value.split(","))
        except ValueError as problem:
            what = "whole numbers" if kind is int else "numbers"
            raise click.BadParameter(f"{value!r} is not a list of {what}: write 32,128", param=parameter) from problem

    return click.option(name, callback=parse, metavar="N[,N...]", help=text)


def number_option(name: str, default: int | None, text: str) -> Decorator:
    """Option of a whole number."""
    return click.option(name, type=int, default=default, show_default=default is not None, metavar="N", help=text)


def seed_option(of: str) -> Decorator:
    """Option of the seed of something random."""
    return number_option("--seed", 0, f"Seed of {of}.")


def quick_option(text: str) -> Decorator:
    """Option of small settings."""
    return click.option("--quick", is_flag=True, is_eager=True, help=f"For a first look: {text}.")


def folder_option(default: str, *, has_quick: bool = True) -> Decorator:
    """Option of the folder for results; small settings have a default of their own, so as not to pass for full ones."""
    first, *rest = Path(default).parts
    quickly = Path(f"{first}-quick", *rest)

    def choose(context: click.Context, _parameter: click.Parameter, value: Path | None) -> Path:
        return value or (quickly if context.params.get("quick") else Path(default))

    shown = f"{default}; {quickly} with --quick" if has_quick else default
    text = f"Folder for the results.  [default: {shown}]"
    return click.option("-o", "--output", "--out", "out", type=PATH, callback=choose, metavar="DIR", help=text)


data_option = click.option(
    "--data", type=PATH, metavar="DIR", help="Folder of the data.  [default: $CROSSFUSION_DATA or ../shared/data]"
)
workers_option = number_option("--workers", None, "Number of processes.  [default: one per core]")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
