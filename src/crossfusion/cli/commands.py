"""All commands, in the order and under the headings of the first page."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from crossfusion._version import __version__
from crossfusion.cli import end_output
from crossfusion.cli.attribution import attribution
from crossfusion.cli.compare import compare
from crossfusion.cli.corrections import corrections, methods
from crossfusion.cli.degradation import degradation
from crossfusion.cli.drift import drift
from crossfusion.cli.embed import embed
from crossfusion.cli.hierarchy import hierarchy
from crossfusion.cli.histopathology import histopathology
from crossfusion.cli.integration import integration
from crossfusion.cli.matrix import matrix
from crossfusion.cli.moved import bench, reproduce
from crossfusion.cli.options import ARGUMENTS
from crossfusion.cli.projection import projection
from crossfusion.cli.protocols import cddr, rdr
from crossfusion.cli.report import report
from crossfusion.cli.start import completion, demo
from crossfusion.cli.summarize import merge, summarize
from crossfusion.cli.test import test
from crossfusion.cli.tiles import tiles

SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "How far groups are apart": (compare, matrix, hierarchy, attribution, test, drift, projection, report),
    "Summaries of many rows": (summarize, merge),
    "Corrections and embeddings side by side": (corrections, integration),
    "What distances are worth": (rdr, cddr, degradation),
    "From images to embeddings": (tiles, embed, histopathology),
    "This software": (demo, completion),
}


@contextmanager
def _quiet_ends() -> Iterator[None]:
    """Leave it to this program what is said of an interruption, and of a reader that is gone."""
    try:
        yield
    except KeyboardInterrupt as problem:
        if sys.stderr.isatty():  # where the line begins with ^C
            raise
        raise click.Abort from problem
    except BrokenPipeError as problem:  # for which click would exit with 1, the code of an alarm
        end_output()
        raise click.exceptions.Exit(0) from problem


class Commands(click.Group):
    """All commands; in a pipe, an interruption is one line, without the empty one of click, and its end is no error."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments, which a page names as the command that made it."""
        ctx.meta[ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Read what was typed."""
        with _quiet_ends():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with _quiet_ends():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands under headings, in the order in which they are needed."""
        width = max(len(name) for name in self.list_commands(ctx))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                room = formatter.width - 6 - width
                formatter.write_dl(
                    [(f"{command.name:<{width}}", command.get_short_help_str(room)) for command in commands]
                )


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, package_name="crossfusion")
def cli() -> None:
    """Measure how far groups of embeddings are fused or separated.

    \b
    Examples:
      crossfusion demo -o demo
      crossfusion compare A.npy B.npy
      crossfusion matrix embeddings.parquet --between scanner --given label
      crossfusion report embeddings.parquet --between scanner --given label --units patient

    Each command has examples of its own: crossfusion COMMAND --help.
    """


for section in SECTIONS.values():
    for command in section:
        cli.add_command(command)
for command in (bench, methods, reproduce):
    cli.add_command(command)
