"""The commands that judge distances by halves of one domain, and domains by what a model loses."""

from pathlib import Path
from typing import Any

import click

from crossfusion._base import label_text, number_text, quantity_text
from crossfusion.cli import options, output
from crossfusion.cli.protocol_options import (
    UNITS_USE,
    choose_distances,
    folds_option,
    label_option,
    metric_option,
    read_rows,
)
from crossfusion.cli.row_reader import RowReader, reading_options, rows_argument
from crossfusion.evaluation import SCORE_NAMES, Rdr, pair_text
from crossfusion.evaluation import cddr as measure_cddr
from crossfusion.evaluation import rdr as measure_rdr


@click.command()
@rows_argument
@options.between_option
@options.units_option("all rows of a unit go to the same half")
@options.distance_option("[default: cfd]")
@options.distance_settings_option
@options.number_option("--repeats", 50, "Number of random splits into halves.")
@options.number_option("--rows", None, "Maximum number of rows per half.  [default: half of the smaller domain]")
@options.seed_option("everything random")
@options.plot_option("the ratios")
@reading_options("vectors", "nan", "sql", "manifest", "on", "only_matched", "lens", "by_position")
@options.json_option
def rdr(
    file: str | None,
    between: list[str],
    units: list[str],
    distance: list[str],
    options: dict[str, float],
    repeats: int,
    rows: int | None,
    seed: int,
    plot: Path | None,
    read: RowReader,
    as_json: bool,
) -> None:
    """Measure the relative distance ratio (RDR) of distances.

    RDR is the distance between two halves of one domain, which should be 0, divided by the distance between domains.

    \b
    Examples:
      crossfusion rdr embeddings.parquet --between scanner --units slide --distance cfd,cfd_unbiased,mmd
    """
    chosen = choose_distances(distance or ["cfd"], options)
    found_rows = read_rows(read, file, [*between, *units])
    with output.show_steps("measuring") as progress:
        found = measure_rdr(
            found_rows.x,
            found_rows.values(between),
            distances=chosen,
            units=found_rows.values(units),
            repeats=repeats,
            rows=rows,
            seed=seed,
            progress=progress,
        )
    output.write_plot(plot, found.plot)
    if as_json:
        output.show_json(found.to_dict())
    else:
        _show_ratios(found, " × ".join(between))


def _show_ratios(found: Rdr, asked: str) -> None:
    header = ["pair", "domain", "distance", "within", "across", "ratio", "as root", "as square"]
    rows = [
        [
            pair_text(entry.pair),
            label_text(entry.domain),
            entry.distance,
            f"{quantity_text(entry.within)} ± {quantity_text(entry.within_sd)}",
            f"{quantity_text(entry.across)} ± {quantity_text(entry.across_sd)}",
            f"{number_text(entry.ratio)} ± {number_text(entry.ratio_sd)}",
            number_text(entry.ratio_root),
            number_text(entry.ratio_squared),
        ]
        for entry in found.ratios
    ]
    output.show_table(
        f"Relative distance ratio of {asked}, mean ± sd of {found.repeats} random halves", header, rows, left=(0, 1, 2)
    )
    click.echo("a ratio depends on the scale of a distance: compare distances as roots or as squares")


@click.command()
@rows_argument
@options.between_option
@label_option
@options.units_option(UNITS_USE)
@metric_option
@folds_option
@options.level_option
@options.seed_option("everything random")
@options.plot_option("the rates with their intervals")
@reading_options("vectors", "nan", "sql", "manifest", "on", "only_matched", "lens", "by_position")
@options.json_option
def cddr(
    file: str | None,
    between: list[str],
    label: list[str],
    units: list[str],
    metric: str,
    folds: int,
    level: float,
    seed: int,
    plot: Path | None,
    read: RowReader,
    as_json: bool,
) -> None:
    """Measure the cross-domain degradation rate (CDDR) of a model.

    CDDR is the relative drop in score from the training domain to another domain.

    \b
    Examples:
      crossfusion cddr embeddings.parquet --between scanner --label diagnosis --units patient --metric auc
    """
    rows = read_rows(read, file, [*between, *label, *units])
    settings: dict[str, Any] = {"metric": metric, "folds": folds, "level": level, "seed": seed}
    with output.show_steps("training") as progress:
        found = measure_cddr(
            rows.x, rows.values(label), rows.values(between), units=rows.values(units), progress=progress, **settings
        )
    output.write_plot(plot, found.plot)
    if as_json:
        output.show_json(found.to_dict())
        return
    title = f"Degradation of the {SCORE_NAMES[metric]} of {' × '.join(label)} between {' × '.join(between)}"
    output.show_table(title, *found.table(), left=(0, 1))
