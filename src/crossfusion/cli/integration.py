"""The command that compares embeddings of the same cells."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from crossfusion._base import InputError, arg, interval_text, label_text, number_text, percent
from crossfusion.anndata import Keys, Leaderboard, rank_embeddings
from crossfusion.cli import options, output
from crossfusion.cli.options import check_typed
from crossfusion.cli.row_reader import RowReader, reading_options
from crossfusion.summary import Summary

LABELS_SHOWN = 40  # rows of the table of labels


@click.command()
@click.argument("file", metavar="FILE.h5ad")
@click.option("--batch", required=True, metavar="NAME", help="Column of obs with the batch.")
@click.option("--label", metavar="NAME", help="Column of obs with the label, such as the cell type.")
@click.option(
    "--donor",
    metavar="NAME",
    help="Column of obs with the independent unit, for intervals; 'index' treats cells as units.",
)
@options.names_option("--obsm", "Embeddings: entries of obsm, X, raw/X or layers/NAME.", required=True)
@options.reference_option("The embedding")
@options.number_option("--min-cells", 2, "Minimum number of cells per batch and label; fewer are left out.")
@options.weights_option
@options.level_option
@options.plot_option("batches against biology")
@reading_options("nan", "engine", "lens")
@options.json_option
def integration(
    file: str,
    batch: str,
    label: str | None,
    donor: str | None,
    obsm: list[str],
    plot: Path | None,
    read: RowReader,
    as_json: bool,
    **asked: Any,
) -> None:
    """Compare embeddings of the same cells by batch and biology.

    A good embedding fuses batches and keeps labels separated. The file holds an AnnData object in HDF5 or Zarr format
    and is read in chunks.

    \b
    Examples:
      crossfusion integration cells.h5ad --batch batch --label cell_type --obsm X_pca,X_scVI
      crossfusion integration cells.h5ad --batch batch --label cell_type --donor donor --obsm X_pca --plot b.png
    """
    check_typed(["level"], f"{arg('donor')}", donor is not None)
    keys = Keys(batch, label, donor)
    if len({name.removeprefix("obsm/") for name in obsm}) < len(obsm):
        raise InputError("obsm", problem=f"names an embedding twice ({', '.join(obsm)})", remedy="name each once")
    if read.is_summary(file):
        raise InputError(
            problem=f"{file} is a summary, without embeddings to choose from", remedy="name the file of the cells"
        )
    found = rank_embeddings({name: _summarize_embedding(read, file, name, keys) for name in obsm}, keys, **asked)
    output.write_plot(plot, found.plot)
    if as_json:
        output.show_json(found.to_dict())
    else:
        _show(found, plot)


def _summarize_embedding(read: RowReader, file: str, name: str, keys: Keys) -> Summary:
    """Summary of an embedding, under the names that factors have in a leaderboard."""
    by = keys.by_factor
    summary = replace(read, vectors=name).read_summary(file, list(by.values()))
    names = {column: factor for factor, column in by.items()}
    return replace(summary, keys=summary.keys.rename_columns([names[column] for column in summary.factors]))


def _show(found: Leaderboard, plot: Path | None) -> None:
    output.show_table(found.title(), *found.table())
    click.echo("".join(f"{remark}\n" for remark in found.remarks()), nl=False)
    if found.labels:
        rows = [
            [
                row.embedding,
                label_text(row.label),
                f"{row.cells:,}",
                str(row.batches),
                "–" if row.fusion is None else interval_text(row.fusion.unbiased, row.fusion.interval),
                number_text(row.biology),
                percent(row.kept),
            ]
            for row in found.labels[:LABELS_SHOWN]
        ]
        more = f", {len(rows)} of {len(found.labels)} rows (--json has all)" if len(rows) < len(found.labels) else ""
        click.echo()
        what = f"batch = CFD({found.batch_key}) among its cells, biology = CFD(it, others | {found.batch_key})"
        title = f"Each {found.label_key}: {what}, kept = its share of {label_text(found.reference)}'s{more}"
        header = ["embedding", "label", "cells", "batches", "batch", "biology", "kept"]
        output.show_table(title, header, rows, left=(0, 1))
    if plot is not None:
        click.echo(f"written to {plot}")
