"""Defaults of options from crossfusion.toml in the working folder; what is typed wins."""

import copy
import shlex
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from crossfusion._base import InputError, check_known, first_line
from crossfusion.cli import ARGUMENTS

FILE = Path("crossfusion.toml")
Values = Mapping[str, Any]


def read_defaults() -> Values:
    """Read the file of defaults; empty if there is none."""
    try:
        return tomllib.loads(FILE.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (IsADirectoryError, PermissionError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise InputError(
            problem=f"{FILE} cannot be read ({first_line(problem)})", remedy="fix it, or pass --no-config"
        ) from problem


def apply_defaults(
    ctx: click.Context,
    name: str,
    command: click.Command,
    found: Values,
    renamed: Mapping[str, str],
    others: Callable[[], Iterable[click.Command]],
) -> click.Command:
    """Set the defaults of a command, and return the command so that it says which of them it uses.

    Tables are for the command of their name, other keys for each command that has such an option. `renamed` holds
    options by their earlier names, and `others` gives all commands.
    """
    shared = {key: value for key, value in found.items() if not isinstance(value, dict)}
    shared, own = (
        {_rename(key, renamed): value for key, value in part.items()} for part in (shared, found.get(name, {}))
    )
    options = _list_options(command)
    check_known(own, options, "option", f"{FILE}, [{name}]")
    _check_shared([key for key in shared if key not in options], others)
    values = {key: value for key, value in {**shared, **own}.items() if key in options}
    parameters = {key: str(options[key].name) for key in values}
    ctx.default_map = {name: {parameters[key]: _check_value(options[key], key, values[key]) for key in values}}
    told = copy.copy(command)
    told.callback = _tell(command, {parameters[key]: (key, value) for key, value in values.items()})
    return told


def _rename(key: str, renamed: Mapping[str, str]) -> str:
    return renamed.get(f"--{key}", f"--{key}").removeprefix("--")


def check_tables(found: Values, commands: Iterable[str]) -> None:
    """Reject tables of unknown commands."""
    tables = [name for name, value in found.items() if isinstance(value, dict)]
    check_known(tables, list(commands), "command", str(FILE))


def _list_options(command: click.Command) -> dict[str, click.Option]:
    """Options of a command by their long names."""
    options = [option for option in command.params if isinstance(option, click.Option)]
    return {name[2:]: option for option in options for name in option.opts if name.startswith("--")}


def _check_shared(names: list[str], others: Callable[[], Iterable[click.Command]]) -> None:
    """Reject keys that are not an option of any command."""
    if names:
        known = {name for command in others() for name in _list_options(command)}
        check_known(names, sorted(known), "option", str(FILE))


def _check_value(option: click.Option, key: str, value: Any) -> Any:
    """Return a value as click takes it; reject one that the option would not take when typed."""
    several = isinstance(value, list) and option.multiple
    values = value if several else [value]
    fits = isinstance(value, bool) if option.is_flag else all(_is_plain(entry) for entry in values)
    if not fits:
        kind = "true or false" if option.is_flag else "text or numbers" if option.multiple else "text or a number"
        raise InputError(problem=f"{FILE}: {key} must be {kind}, not {value!r}", remedy="fix it, or pass --no-config")
    if option.is_flag:
        return value
    try:
        for entry in values:
            option.type.convert(str(entry), option, None)
    except click.BadParameter as problem:
        raise InputError(problem=f"{FILE}: {key}: {problem.message}", remedy="fix it, or pass --no-config") from problem
    return [*map(str, values)] if option.multiple else str(value)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _tell(command: click.Command, values: Mapping[str, tuple[str, Any]]) -> Callable[..., Any] | None:
    """Run a command after one line on the defaults that it uses, which count as typed for the page that it writes."""
    run = command.callback
    if run is None or not values:
        return run

    @wraps(run)
    def tell_and_run(*arguments: Any, **options: Any) -> Any:
        ctx = click.get_current_context()
        used = [
            word
            for name, (key, value) in values.items()
            if ctx.get_parameter_source(name) is ParameterSource.DEFAULT_MAP
            for word in _write_option(key, value)
        ]
        if used:
            click.echo(f"crossfusion: defaults from {FILE}: {shlex.join(used)}", err=True)
            ctx.meta[ARGUMENTS] = [*ctx.meta.get(ARGUMENTS, []), *used]
        return run(*arguments, **options)

    return tell_and_run


def _write_option(key: str, value: Any) -> list[str]:
    """Write an option as it would be typed."""
    if isinstance(value, bool):
        return [f"--{key}"] if value else []
    return [word for entry in (value if isinstance(value, list) else [value]) for word in (f"--{key}", str(entry))]
