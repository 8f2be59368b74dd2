"""Commands of earlier versions that moved out of the package, and the commands that replace them."""

import click

from crossfusion._base import InputError


def _make_moved_command(name: str, remedy: str) -> click.Command:
    """A hidden command that takes any arguments, --help among them, and names its replacement."""

    def say(_arguments: tuple[str, ...]) -> None:
        raise InputError(problem=f"crossfusion {name} has moved", remedy=remedy)

    argument = click.Argument(["_arguments"], nargs=-1, type=click.UNPROCESSED)
    settings = {"ignore_unknown_options": True}
    return click.Command(
        name, callback=say, params=[argument], hidden=True, add_help_option=False, context_settings=settings
    )


reproduce = _make_moved_command(
    "reproduce",
    "run 'python -m paper NAME' in a checkout of crossfusion, or 'crossfusion histopathology' on slides of your own",
)
bench = _make_moved_command("bench", "run 'python -m benchmarks NAME' in a checkout of crossfusion")
