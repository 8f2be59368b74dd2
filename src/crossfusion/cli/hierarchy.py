"""The command that splits a distance over nested levels."""

from pathlib import Path

import click

from crossfusion.cli import output
from crossfusion.cli.options import json_option, names_option, plot_option, scale_option, weights_option
from crossfusion.cli.row_reader import RowReader, file_argument, reading_options
from crossfusion.fusion import HEADER


@click.command()
@file_argument
@names_option("--factors", "Factors from the outermost to the innermost.", required=True)
@weights_option
@scale_option
@plot_option("the levels")
@reading_options()
@json_option
def hierarchy(
    file: str | None,
    factors: list[str],
    weights: str,
    scale: str | None,
    plot: Path | None,
    read: RowReader,
    as_json: bool,
) -> None:
    """Decompose the distance between nested groups by level.

    \b
    Examples:
      crossfusion hierarchy summary.parquet --factors site,scanner
      crossfusion hierarchy embeddings.parquet --factors site,scanner,patient --weights balanced --json
    """
    result = read.read_summary(file, factors).hierarchy(factors, weights=weights, scale=scale)
    output.write_plot(plot, result.plot)
    if as_json:
        output.show_json(result.to_dict())
        return
    output.show_table(
        "Cross-Fusion Distance by level", HEADER, result.rows(), bars=[level.share for level in result.levels]
    )
    click.echo("".join(f"{remark}\n" for remark in result.remarks()), nl=False)
