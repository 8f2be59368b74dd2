"""The command that says what the variance between groups is made of."""

from pathlib import Path

import click

from crossfusion._base import InputError, label_text, number_text, percent
from crossfusion.cli import options, output, result_tables
from crossfusion.cli.row_reader import RowReader, file_argument, reading_options
from crossfusion.fusion import Attribution, Geometry


@click.command()
@file_argument
@options.between_option
@options.given_option
@click.option(
    "--over",
    default="features",
    show_default=True,
    metavar="features|NAME",
    help="Contributors: features, or the values of a factor.",
)
@options.number_option("--top", 20, "Number of rows in the table; JSON has all of them.")
@options.weights_option
@options.scale_option
@options.plot_option("the largest shares")
@reading_options()
@options.json_option
def attribution(
    file: str | None,
    between: list[str],
    given: list[str],
    over: str,
    top: int,
    weights: str,
    scale: str | None,
    plot: Path | None,
    read: RowReader,
    as_json: bool,
) -> None:
    """Attribute the variance between groups to features or units.

    \b
    Examples:
      crossfusion attribution summary.parquet --between site --given label
      crossfusion attribution summary.parquet --between site --over patient --top 5
    """
    if top < 1:
        raise InputError("top", top, "must be a whole number, 1 or more")
    needed = [*between, *given, *([] if over == "features" else [over])]
    summary = read.read_summary(file, needed)
    result = summary.attribution(between, given=given, over=over, weights=weights, scale=scale)
    output.write_plot(plot, lambda: result.plot(top))
    if as_json:
        output.show_json(result.to_dict())
        return
    _show(result, top, result_tables.format_question(between, given), over)
    if over == "features":
        _show_geometry(summary.geometry(between, given=given, weights=weights))
    result_tables.show_scale(result)
    result_tables.show_whole(summary, between, given, weights, scale=scale)


def _show_geometry(found: Geometry) -> None:
    """One line on how many features hold the variance within groups."""
    largest = f"the largest is {label_text(found.features[0])} with {percent(found.share[0])}"
    dimension = f"effective dimension {number_text(found.dimension)} of {len(found.features):,} features"
    click.echo(f"variance within groups: {dimension}; {largest}")


def _show(result: Attribution, top: int, asked: str, over: str) -> None:
    """The largest shares for people."""
    largest = result.top(top)
    rows = [[label_text(result.labels[i]), percent(result.share[i]), number_text(result.without[i])] for i in largest]
    more = f", {len(rows)} of {len(result.labels)}" if len(rows) < len(result.labels) else ""
    title = f"Share of the variance between {asked}, largest first{more}"
    output.show_table(title, [over, "share", "distance without"], rows, bars=result.share[largest].tolist())
