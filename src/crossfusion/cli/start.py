"""The commands for a start: a demonstration, and completion in the shell."""

from pathlib import Path

import click

from crossfusion._base import InputError
from crossfusion.cli.options import folder_option, number_option, seed_option

SHELLS = ("bash", "zsh", "fish")


@click.command()
@folder_option(default=Path("crossfusion-demo"), show_default=True)
@number_option("--rows", 40000, "Number of rows of the data set.")
@seed_option("the data set")
@click.pass_context
def demo(context: click.Context, out: Path, rows: int, seed: int) -> None:
    """Simulate a data set with a known answer and measure it.

    \b
    Examples:
      crossfusion demo -o demo
      crossfusion demo -o demo --rows 10000 --seed 1
    """
    from crossfusion import demo as job

    cli = context.find_root().command

    def run(arguments: list[str]) -> None:
        cli.main(arguments, prog_name="crossfusion", standalone_mode=False)

    job.run(out, rows=rows, seed=seed, echo=click.echo, command=run)


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell completion script.

    \b
    Examples:
      crossfusion completion bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    if maker is None:
        raise InputError(problem=f"{shell} is not a supported shell", remedy=f"use {', '.join(SHELLS)}")
    root = context.find_root().command
    click.echo(maker(root, {}, "crossfusion", "_CROSSFUSION_COMPLETE").source())
