"""The command that looks at how groups mix in regions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from crossfusion._base import InputError, arg
from crossfusion.cli import options, output, result_tables
from crossfusion.cli.options import check_typed
from crossfusion.cli.row_reader import RowReader, file_argument, reading_options
from crossfusion.fusion import Mixing

DEFAULT_LENS = "codebook"


@click.command()
@file_argument
@options.between_option
@options.given_option
@options.units_option("chance, test and interval count these")
@options.min_units_option
@options.interval_option
@options.permutations_option
@options.seed_option("the permutations")
@options.number_option("--top", 20, "Number of rows in the table; JSON has all regions.")
@options.plot_option("a map of the regions")
@reading_options()
@options.json_option
def mixing(
    file: str | None,
    between: list[str],
    given: list[str],
    units: list[str],
    min_units: int,
    level: float | None,
    permutations: int,
    seed: int,
    top: int,
    plot: Path | None,
    read: RowReader,
    as_json: bool,
) -> None:
    """Measure how groups mix in the regions of a codebook.

    Rows are divided into regions by --lens, by default a codebook that is fitted on them. A summary needs the factor
    "region".

    \b
    Examples:
      crossfusion mixing embeddings.parquet --between scanner --plot regions.pdf
      crossfusion mixing embeddings.parquet --between site --given label --units patient --level 0.95 --json
    """
    if top < 1:
        raise InputError("top", top, "must be a whole number, 1 or more")
    check_typed(["min_units"], f"{arg('units')}", bool(units))
    if read.lens is None and not read.is_summary(file):
        read = replace(read, lens=DEFAULT_LENS)
    summary = read.read_summary(file, [*between, *given, *units])
    settings: dict[str, Any] = {"given": given, "units": units, "level": level, "min_units": min_units}
    found = summary.mixing(between, permutations=permutations, seed=seed, **settings)
    output.write_plot(plot, found.plot)
    if as_json:
        output.show_json(found.to_dict())
        return
    _show(found, result_tables.format_question(between, given), top)


def _show(found: Mixing, asked: str, top: int) -> None:
    """The regions for people, the largest contribution first."""
    header, rows = found.table()
    bars = [region.part for region in found.regions]
    left = (0, header.index("only"))
    output.show_table(f"{asked}: {found.title()}", header, rows[:top], left=left, bars=bars[:top])
    for name, *texts in found.facts():
        click.echo(f"{name}: {' '.join(texts)}")
