"""The command that looks at groups on the plane that separates them most."""

from pathlib import Path

import click

from crossfusion._base import (
    InputError,
    arg,
    check_seed,
    check_whole,
    factors,
    label_text,
    map_rows,
    percent,
    quantity_text,
)
from crossfusion.cli import output, result_tables
from crossfusion.cli.options import (
    between_option,
    is_typed,
    json_option,
    number_option,
    plot_option,
    scale_option,
    seed_option,
)
from crossfusion.cli.row_reader import RowReader, file_argument, reading_options
from crossfusion.fusion import Projection
from crossfusion.io import Sample


@click.command()
@file_argument
@between_option
@number_option("--points", 3000, "Maximum number of rows to draw.")
@seed_option("the sample of rows")
@scale_option
@plot_option("the projection")
@reading_options()
@json_option
def projection(
    file: str | None,
    between: list[str],
    points: int,
    seed: int,
    scale: str | None,
    plot: Path | None,
    read: RowReader,
    as_json: bool,
) -> None:
    """Project groups onto the plane that separates them most.

    If the input is a file of rows, the figure also shows a sample of the rows.

    \b
    Examples:
      crossfusion projection embeddings.parquet --between scanner --plot groups.pdf
      crossfusion projection summary.parquet --between site
    """
    if read.is_summary(file) and (is_typed("points") or is_typed("seed")):
        raise InputError(
            problem=f"{file} is a summary, which has no rows to draw",
            remedy=f"leave out {arg('points')} and {arg('seed')}",
        )
    check_whole(points, "points")
    check_seed(seed)
    found = _project(file, between, points, seed, read, scale)
    output.write_plot(plot, found.plot)
    if as_json:
        output.show_json(found.to_dict())
        return
    rows = [
        [label_text(label), *map(quantity_text, place)]
        for label, place in zip(found.labels, found.means.tolist(), strict=True)
    ]
    title = f"Means of {result_tables.format_question(between, [])} on the plane that separates them most"
    output.show_table(title, [" × ".join(between), "first", "second"], rows)
    click.echo(f"the plane shows {percent(found.shown)} of the variance between the groups")
    result_tables.show_scale(found)


def _project(
    file: str | None, between: list[str], points: int, seed: int, read: RowReader, scale: str | None
) -> Projection:
    """From a summary the means alone; from rows, read once, also some of them."""
    if read.is_summary(file) or read.engine not in ("auto", "local"):
        return read.read_summary(file, between).project(between, scale=scale)
    sources, joined = read.open_sources([] if file is None else [file], between)
    sample = Sample(seed, rows=points)
    lens = read.find_lens(sources, joined)
    summary = read.summarize(sample.watch(sources), joined, lens=lens)
    rows = sample.rows()
    if rows is None:
        return summary.project(between, scale=scale)
    x = rows.x if lens is None else map_rows(lens, rows.x, "the sample")
    labels = factors.list_labels(rows.keys.select(between))
    return summary.project(between, rows=x, labels=labels, scale=scale)
