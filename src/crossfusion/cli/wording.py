"""Messages of the library in the words of the command line."""

import re
import shlex
from collections.abc import Callable, Sequence

import click

from crossfusion._base import Argument, Spelling

VALUE = r"""'[^']*'|"[^"]*"|\([^()]*\)|\[[^\[\]]*\]|-?[\w.+-]*\w"""
INSTEAD = {  # what the library calls an option that has another name here
    "batch_key": "batch",
    "label_key": "label",
    "donor_key": "donor",
    "embedding_obsm_keys": "obsm",
    "seed": "tile_seed",
    "distances": "distance",
    "corrections": "correction",
    "pairs": "paired",
    "y": "label",
    "domain": "between",
}
SAID = {("alarm", "None"): "0"}  # values that are typed otherwise
PHRASES = (  # names without a value, where they cannot be words of a sentence
    r"(?<=\bin )(?:between|by|given|method|on|time|units|vectors)\b",
    r"(?<=\bor )(?:between|given)\b",
    r"(?<=\bleave )given\b",
    r"(?<=\bof )(?:given|vectors)\b",
    r"(?<=\bwith )given\b",
    r"(?<=\bneeds )units\b",
    r"(?<=\bwithout )on\b",
    r"^(?:between|by|given|level|levels|units|vectors)(?= (?:and \w+ )?(?:is empty|needs?|names|goes)\b)",
    r"(?<=^--level and )units(?= need\b)",
    r"^reference(?=: )",
    r"^sql(?= cannot be run)",
    r"^centres(?= goes )",
    r"^tags(?= has )",
    r"^(?:y|domain)(?= has \d+ (?:distinct|missing) )",
    r"(?<=; )reference(?= takes )",
    r"(?<=; )vectors(?= names )",
)


def words_of(command: click.Command, typed: Sequence[str] = ()) -> Callable[[Argument | Spelling], str]:
    """How messages name arguments where a command was called: by its options.

    Parameters
    ----------
    command : click.Command
        The command that was called, which knows its options.
    typed : list of str
        What was typed after its name: lists of values are shown as they were.

    Returns
    -------
    callable
        Takes an argument of a message, such as `level` with the value 2, and returns "--level 2".
    """
    options = {str(each.name): each for each in command.params if isinstance(each, click.Option)}
    options |= {name: options[here] for name, here in INSTEAD.items() if here in options and name not in options}

    def show(part: Argument | Spelling) -> str:
        if isinstance(part, Spelling):
            return part.typed
        option = options.get(part.name)
        if option is None:
            return part.python
        return " ".join([_option(option, typed), *([] if part.value is None else [_value(option, part.value, typed)])])

    return show


def as_options(message: str, command: click.Command, typed: Sequence[str] = ()) -> str:
    """A message in which the arguments of functions are called as the options of a command.

    Parameters
    ----------
    message : str
        What the library says, such as "level=2 must be ...".
    command : click.Command
        The command that was called, which knows its options.
    typed : list of str
        What was typed after its name: lists of values are shown as they were.

    Returns
    -------
    str
        The same with "--level 2".
    """
    parameters = [each for each in command.params if isinstance(each, click.Option) and each.name]
    known = {str(each.name): each for each in parameters}
    known |= {name: known[here] for name, here in INSTEAD.items() if here in known and name not in known}
    if not known:
        return message
    names = "|".join(sorted(map(re.escape, known), key=len, reverse=True))

    def valued(found: re.Match[str]) -> str:
        return f"{_option(known[found[1]], typed)} {_value(known[found[1]], found[2] or '', typed)}".rstrip()

    def bare(found: re.Match[str]) -> str:
        return _option(known[found[0]], typed) if found[0] in known else found[0]

    message = re.sub(rf"(?<![\w.'-])(?<!no group has )({names})=({VALUE})?(?![\w(\[{{<])", valued, message)
    for phrase in PHRASES:
        message = re.sub(phrase, bare, message)
    return re.sub(r"(?<![\w.'-])[a-z]+_\w+\b(?![(=.])", bare, message)  # no word of a sentence


def command_of(command: click.Command, words: Sequence[str]) -> click.Command:
    """The command that some words call, which may be one of a group of commands."""
    for word in words:
        if isinstance(command, click.Group) and word in command.commands:
            command = command.commands[word]
    return command


def _option(option: click.Option, typed: Sequence[str]) -> str:
    """An option by the name that was typed, or by its first long one."""
    long = [name for name in option.opts if name.startswith("--")]
    return next((name for name in long if name in typed), long[0])


def _value(option: click.Option, value: str, typed: Sequence[str]) -> str:
    """A value as it is typed: what there is to choose from without quotes, lists as they were."""
    value = SAID.get((str(option.name), value), value)
    if value[:1] in "([":
        return _typed(option, typed) or value
    return value[1:-1] if value[1:-1] in (option.metavar or "").split("|") else value


def _typed(option: click.Option, typed: Sequence[str]) -> str:
    """What was typed as the value of an option, if anything."""
    for word, following in zip(typed, [*typed[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name in option.opts:
            return shlex.quote(value if equals else following)
    return ""
