"""The command that asks whether distances foresee what a model loses."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from crossfusion._base import InputError
from crossfusion.cli import options, output
from crossfusion.cli.options import parse_named_files
from crossfusion.cli.protocol_options import (
    UNITS_USE,
    choose_distances,
    correction_option,
    folds_option,
    label_option,
    metric_option,
    read_rows,
)
from crossfusion.cli.row_reader import RowReader, reading_options
from crossfusion.evaluation import (
    DEFAULT_CORRECTIONS,
    DEFAULT_DISTANCES,
    WITHIN_LABELS,
    Study,
    degradation_study,
    save_study_figure,
)
from crossfusion.io import Rows


@click.command()
@click.argument("files", metavar="FILE | NAME=FILE...", nargs=-1)
@options.between_option
@label_option
@options.units_option(UNITS_USE)
@options.distance_option(f"[default: {','.join(DEFAULT_DISTANCES)}]")
@options.distance_settings_option
@correction_option(f"[default: {','.join(DEFAULT_CORRECTIONS)}]")
@metric_option
@folds_option
@options.number_option("--rows", 500, "Maximum number of rows per domain in a distance.")
@options.number_option("--repeats", 5, "Number of random samples of rows per distance.")
@options.level_option
@options.seed_option("everything random")
@options.plot_option("distances against degradation")
@reading_options("vectors", "nan", "sql", "manifest", "on", "only_matched", "lens", "by_position")
@options.json_option
def degradation(
    files: tuple[str, ...],
    between: list[str],
    label: list[str],
    units: list[str],
    distance: list[str],
    options: dict[str, float],
    correction: list[str],
    plot: Path | None,
    read: RowReader,
    as_json: bool,
    **asked: Any,
) -> None:
    """Study whether distances predict how much a model degrades.

    Every pair of domains is measured after every correction.

    A single file is corrected by each of the corrections in --correction. Several files, as NAME=FILE, hold the same
    rows after your own corrections, such as stain normalization.

    \b
    Examples:
      crossfusion degradation embeddings.parquet --between scanner --label diagnosis --plot study.png
      crossfusion degradation none=raw.parquet macenko=macenko.parquet --between scanner --label diagnosis
    """
    chosen = choose_distances(distance or list(DEFAULT_DISTANCES), options, list(WITHIN_LABELS))
    rows, versions = _read_corrections(read, files, [*between, *label, *units], correction)
    with output.show_steps("measuring") as progress:
        found = degradation_study(
            rows.x,
            rows.values(label),
            rows.values(between),
            distances=chosen,
            corrections=versions,
            units=rows.values(units),
            progress=progress,
            **asked,
        )
    if plot is not None:
        save_study_figure(found, plot)
    if as_json:
        output.show_json(found.to_dict())
    else:
        _show_study(found, plot)


def _read_corrections(read: RowReader, files: Sequence[str], by: list[str], correction: list[str]) -> tuple[Rows, Any]:
    """Rows, and their corrections: by name, or read from a file each."""
    if len(files) < 2 and not any("=" in Path(file).name for file in files):
        return read_rows(read, files[0] if files else None, by), correction or list(DEFAULT_CORRECTIONS)
    if correction:
        raise InputError("correction", problem="goes with one file", remedy="leave it out, or the names of the files")
    named = {name: read_rows(read, path, by) for name, path in parse_named_files(files).items()}
    first, *others = named
    for other in others:
        if not named[other].keys.equals(named[first].keys):
            raise InputError(
                problem=f"{first} and {other} differ in the columns {', '.join(by)}",
                remedy="pass the same rows in the same order",
            )
    return named[first], {name: rows.x for name, rows in named.items()}


def _show_study(found: Study, plot: Path | None) -> None:
    number = len({(outcome.train, outcome.test) for outcome in found.outcomes})
    output.show_table(
        f"Averages over {number} directed pairs, {found.rows:,} rows a domain in distances", *found.table()
    )
    asked: list[tuple[str, str | None, str]] = [("pairs", name, f"over pairs, {name}") for name in found.corrections]
    if len(found.corrections) > 1:
        asked.append(("all", None, "over pairs and corrections"))
    for over, name, text in asked:
        click.echo()
        output.show_table(f"Correlation with CDDR {text}", *found.correlations(over, name))
    if found.caution:
        click.echo(f"caution: {found.caution}")
    if plot is not None:
        click.echo(f"written to {plot}")
