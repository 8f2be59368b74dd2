"""The commands, one function each: read, ask, show."""

import sys
from pathlib import Path
from typing import Any

import click

from crossfusion._version import __version__
from crossfusion.cli import end_output, output, tables
from crossfusion.cli.bench import bench
from crossfusion.cli.compare import compare
from crossfusion.cli.degradation import degradation
from crossfusion.cli.drift import drift
from crossfusion.cli.embed import embed
from crossfusion.cli.integration import integration
from crossfusion.cli.matrix import matrix
from crossfusion.cli.methods import methods
from crossfusion.cli.options import (
    ARGUMENTS,
    PATH,
    between_option,
    given_option,
    json_option,
    names_option,
    plot_option,
    weights_option,
)
from crossfusion.cli.projection import projection
from crossfusion.cli.protocols import cddr, rdr
from crossfusion.cli.reading import Reading, file_argument, reading_options
from crossfusion.cli.report import report
from crossfusion.cli.reproduce import reproduce
from crossfusion.cli.summarize import merge, summarize
from crossfusion.cli.test import test
from crossfusion.cli.tiles import tiles
from crossfusion.errors import InputError
from crossfusion.hierarchy import HEADER
from crossfusion.text import label_text, number_text, percent


class Commands(click.Group):
    """All commands; in a pipe, an interruption is one line, without the empty one of click, and its end is no error."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments, which a page names as the command that made it."""
        ctx.meta[ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as problem:
            if sys.stderr.isatty():  # where the line begins with ^C
                raise
            raise click.Abort from problem
        except BrokenPipeError as problem:  # for which click would exit with 1, the code of an alarm
            end_output()
            raise click.exceptions.Exit(0) from problem


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, package_name="crossfusion")
def cli() -> None:
    """Measure how far groups of embeddings are fused or separated."""


for command in (
    compare,
    summarize,
    merge,
    matrix,
    test,
    methods,
    projection,
    report,
    drift,
    integration,
    rdr,
    cddr,
    degradation,
    tiles,
    embed,
    bench,
    reproduce,
):
    cli.add_command(command)


@cli.command()
@file_argument
@names_option("--levels", "Factors from the outermost to the innermost.", required=True)
@weights_option
@plot_option()
@reading_options()
@json_option
def hierarchy(
    file: str | None, levels: list[str], weights: str, plot: Path | None, read: Reading, as_json: bool
) -> None:
    """Split the distance of nested groups over their levels.

    \b
    Examples:
      crossfusion hierarchy summary.parquet --levels site,scanner
    """
    result = read.summary(file, levels).hierarchy(levels, weights=weights)
    output.draw(plot, result.plot)
    if as_json:
        output.show_json(result.to_dict())
        return
    output.show_table(
        "Cross-Fusion Distance by level", HEADER, result.rows(), bars=[level.share for level in result.levels]
    )


@cli.command()
@file_argument
@between_option
@given_option
@click.option("--over", default="features", metavar="features|FACTOR", help="What contributes.")
@click.option("--top", default=20, metavar="N", help="Rows of the table; JSON has all.")
@weights_option
@plot_option()
@reading_options()
@json_option
def attribution(
    file: str | None,
    between: list[str],
    given: list[str],
    over: str,
    top: int,
    weights: str,
    plot: Path | None,
    read: Reading,
    as_json: bool,
) -> None:
    """What the variance between groups is made of: features, or units such as patients.

    \b
    Examples:
      crossfusion attribution summary.parquet --between site --given label
      crossfusion attribution summary.parquet --between site --over patient --top 5
    """
    if top < 1:
        raise InputError(f"--top {top} must be 1 or more")
    needed = [*between, *given, *([] if over == "features" else [over])]
    summary = read.summary(file, needed)
    result = summary.attribution(between, given=given, over=over, weights=weights)
    output.draw(plot, lambda: result.plot(top))
    if as_json:
        output.show_json(result.to_dict())
        return
    rows = [
        [label_text(result.labels[i]), percent(result.share[i]), number_text(result.without[i])]
        for i in result.top(top)
    ]
    more = f", {len(rows)} of {len(result.labels)}" if len(rows) < len(result.labels) else ""
    title = f"Share of the variance between {tables.question(between, given)}, largest first{more}"
    output.show_table(title, [over, "share", "distance without"], rows, bars=result.share[result.top(top)].tolist())
    tables.show_whole(summary, between, given, weights)


@cli.command()
@click.option("--out", type=PATH, default=Path("crossfusion-demo"), show_default=True, help="Folder for the files.")
@click.option("--rows", default=40000, show_default=True, help="Rows of the data set.")
@click.option("--seed", default=0, show_default=True, help="Seed of the data set.")
def demo(out: Path, rows: int, seed: int) -> None:
    """Make a data set with known truth, and measure it.

    \b
    Examples:
      crossfusion demo --out demo
    """
    from crossfusion import demo as job

    def run(arguments: list[str]) -> None:
        cli.main(arguments, prog_name="crossfusion", standalone_mode=False)

    job.run(out, rows=rows, seed=seed, echo=click.echo, command=run)


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that makes a shell complete this command.

    \b
    Examples:
      crossfusion completion bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    if maker is None:
        raise InputError(f"{shell} is not a shell that completion is known for: use bash, zsh or fish")
    click.echo(maker(cli, {}, "crossfusion", "_CROSSFUSION_COMPLETE").source())
