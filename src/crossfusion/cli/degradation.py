"""The command that asks whether distances foresee what a model loses."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from crossfusion.alignment import corrections
from crossfusion.cli import output
from crossfusion.cli.domains import (
    UNITS,
    chosen_distances,
    folds_option,
    label_option,
    level_option,
    metric_option,
    option_option,
    rows_of,
    seed_option,
)
from crossfusion.cli.options import between_option, json_option, named_files, names_option, plot_option
from crossfusion.cli.reading import Reading, reading_options
from crossfusion.errors import InputError
from crossfusion.experiments import scatter
from crossfusion.protocols.measures import WITHIN_LABELS
from crossfusion.protocols.outcomes import Study
from crossfusion.protocols.study import CORRECTIONS, DISTANCES, degradation_study
from crossfusion.sources.whole import Rows


@click.command()
@click.argument("files", metavar="FILE | NAME=FILE...", nargs=-1)
@between_option
@label_option
@names_option("--units", UNITS + "trained on or tested on, never both.")
@names_option("--distance", f"Distances to judge; 'all' stands for every one. By default {', '.join(DISTANCES)}.")
@option_option
@names_option(
    "--correction", f"Corrections of the embeddings, of {', '.join(corrections)}. By default {', '.join(CORRECTIONS)}."
)
@metric_option
@folds_option
@click.option("--rows", default=500, show_default=True, metavar="N", help="Most rows of each domain in a distance.")
@click.option("--repeats", default=5, show_default=True, help="Random samples of so many rows.")
@level_option
@seed_option
@plot_option("Also draw distances against degradation")
@reading_options("vectors", "nan", "sql", "manifest", "on")
@json_option
def degradation(
    files: tuple[str, ...],
    between: list[str],
    label: list[str],
    units: list[str],
    distance: list[str],
    options: dict[str, float],
    correction: list[str],
    plot: Path | None,
    read: Reading,
    as_json: bool,
    **asked: Any,
) -> None:
    """Do distances foresee what a model loses: every pair of domains, every correction.

    One file is corrected by the methods that --correction names. Several, as NAME=FILE, are the same rows after
    corrections of your own, such as stain normalisations.

    \b
    Examples:
      crossfusion degradation embeddings.parquet --between scanner --label diagnosis --plot study.png
      crossfusion degradation none=raw.parquet macenko=macenko.parquet --between scanner --label diagnosis
    """
    chosen = chosen_distances(distance or list(DISTANCES), options, list(WITHIN_LABELS))
    rows, versions = _versions(read, files, [*between, *label, *units], correction)
    with output.steps("measuring") as progress:
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
        scatter.save(found, plot)
    if as_json:
        output.show_json(found.to_dict())
    else:
        _show_study(found, plot)


def _versions(read: Reading, files: Sequence[str], by: list[str], correction: list[str]) -> tuple[Rows, Any]:
    """Rows, and their corrections: by name, or read from a file each."""
    if len(files) < 2 and not any("=" in Path(file).name for file in files):
        return rows_of(read, files[0] if files else None, by), correction or list(CORRECTIONS)
    if correction:
        raise InputError("--correction goes with one file: leave it out, or the names of the files")
    named = {name: rows_of(read, path, by) for name, path in named_files(files).items()}
    first, *others = named
    for other in others:
        if not named[other].keys.equals(named[first].keys):
            raise InputError(
                f"{first} and {other} differ in the columns {', '.join(by)}: pass the same rows in the same order"
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
