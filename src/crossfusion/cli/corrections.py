"""The command that compares corrections."""

from pathlib import Path
from typing import Any

import click

from crossfusion._base import arg
from crossfusion.cli import options, output, result_tables
from crossfusion.cli.options import check_typed, parse_named_files
from crossfusion.cli.row_reader import RowReader, reading_options
from crossfusion.summary import compare_corrections


@click.command()
@click.argument("files", metavar="NAME=FILE_OR_SUMMARY...", nargs=-1, required=True)
@options.between_option
@options.given_option
@options.units_option("intervals count these")
@options.min_units_option
@options.reference_option("The correction")
@options.weights_option
@options.scale_option
@options.level_option
@options.plot_option("batch against biology")
@reading_options("vectors", "nan", "manifest", "on", "only_matched", "engine", "lens", "by_position")
@options.json_option
def corrections(
    files: tuple[str, ...],
    between: list[str],
    given: list[str],
    units: list[str],
    min_units: int,
    reference: str | None,
    level: float,
    weights: str,
    scale: str | None,
    plot: Path | None,
    read: RowReader,
    as_json: bool,
) -> None:
    """Compare corrections of the same rows by batch and biology.

    A good correction fuses the groups of --between and keeps the groups of --given separated. A correction is on the
    front if no other one is clearly better.

    \b
    Examples:
      crossfusion corrections raw=raw.parquet macenko=macenko.parquet --between scanner --given label --units patient
    """
    check_typed(["level", "min_units"], f"{arg('units')}", bool(units))
    factors, paths = [*between, *given, *units], parse_named_files(files)
    of_rows = not all(map(read.is_summary, paths.values()))  # how they are read is said beside summaries then
    readings = {name: RowReader() if of_rows and read.is_summary(path) else read for name, path in paths.items()}
    named = {name: readings[name].read_summary(path, factors) for name, path in paths.items()}
    settings: dict[str, Any] = {"weights": weights, "level": level, "reference": reference, "min_units": min_units}
    settings["scale"] = scale
    found = compare_corrections(named, between=between, given=given, units=units, **settings)
    output.write_plot(plot, found.plot)
    if as_json:
        output.show_json(found.to_dict())
        return
    output.show_table(f"{result_tables.format_question(between, given)}: {found.title()}", *found.table())
    click.echo("".join(f"{remark}\n" for remark in found.remarks()), nl=False)


methods = click.Command(  # its name in 0.1
    "methods", callback=corrections.callback, params=corrections.params, help=corrections.help, hidden=True
)
