"""Commands of earlier versions that moved out of the package, and the commands that replace them."""

import click

from crossfusion._base import InputError


def _moved(name: str, replacement: str) -> click.Command:
    """A hidden command that takes any arguments and names its replacement."""

    def say(_arguments: tuple[str, ...]) -> None:
        raise InputError(
            problem=f"crossfusion {name} has moved", remedy=f"run {replacement} in a checkout of crossfusion"
        )

    argument = click.Argument(["_arguments"], nargs=-1, type=click.UNPROCESSED)
    settings = {"ignore_unknown_options": True}
    return click.Command(name, callback=say, params=[argument], hidden=True, context_settings=settings)


reproduce = _moved("reproduce", "'python -m paper NAME' (crossfusion histopathology for slides of your own)")
bench = _moved("bench", "'python -m benchmarks NAME'")
