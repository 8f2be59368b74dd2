"""Messages of the library in the words of the command line."""

import shlex
from ast import literal_eval
from collections.abc import Callable, Sequence
from contextlib import suppress

import click

from crossfusion._base import Argument, Spelling

INSTEAD = {  # what the library calls an option that has another name here
    "batch_key": "batch",
    "label_key": "label",
    "donor_key": "donor",
    "embedding_obsm_keys": "obsm",
    "seed": "tile_seed",
    "distances": "distance",
    "corrections": "correction",
    "levels": "factors",
    "y": "label",
    "domain": "between",
}
TYPED = {("alarm", "None"): "0"}  # values that are typed otherwise


def make_wording(command: click.Command, typed: Sequence[str] = ()) -> Callable[[Argument | Spelling], str]:
    """How messages name arguments where a command was called: by its options."""
    options = {str(each.name): each for each in command.params if isinstance(each, click.Option)}
    options |= {name: options[here] for name, here in INSTEAD.items() if here in options and name not in options}

    def show(part: Argument | Spelling) -> str:
        if isinstance(part, Spelling):
            return part.typed
        option = options.get(part.name)
        if option is None:
            return part.python
        return " ".join(
            [_name_option(option, typed), *([] if part.value is None else [_format_value(option, part.value, typed)])]
        )

    return show


def find_command(command: click.Command, words: Sequence[str]) -> click.Command:
    """The command that some words call, which may be one of a group of commands."""
    for word in words:
        if isinstance(command, click.Group) and word in command.commands:
            command = command.commands[word]
    return command


def _name_option(option: click.Option, typed: Sequence[str]) -> str:
    """An option by the name that was typed, or by its first long one."""
    long = [name for name in option.opts if name.startswith("--")]
    return next((name for name in option.opts if name in typed), long[0])


def _format_value(option: click.Option, value: str, typed: Sequence[str]) -> str:
    """A value as it is typed: text as a shell takes it, lists as they were."""
    value = TYPED.get((str(option.name), value), value)
    if value[:1] in "([":
        return _find_typed(option, typed) or value
    if value[:1] in "'\"":
        with suppress(SyntaxError, ValueError):  # cut short
            return shlex.quote(literal_eval(value))
    return value


def _find_typed(option: click.Option, typed: Sequence[str]) -> str:
    """What was typed as the value of an option, if anything."""
    for word, following in zip(typed, [*typed[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name in option.opts:
            return shlex.quote(value if equals else following)
    return ""
