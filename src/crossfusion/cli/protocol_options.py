"""What the commands that judge distances share: rows with their domains, distances with options."""

from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

import click
import numpy as np

from crossfusion._base import InputError, check_known
from crossfusion.cli.options import NAMES_METAVAR, Decorator, names_option, number_option, split_names
from crossfusion.cli.row_reader import RowReader
from crossfusion.evaluation import SCORE_NAMES, corrections, distances, respell_correction
from crossfusion.io import Rows

UNITS_USE = "a unit is used for training or for testing, never for both"  # what units are for
METRIC_NAMES = "|".join(SCORE_NAMES)
label_option = names_option("--label", "Factors that a model predicts.", required=True)
metric_option = click.option(
    "--metric", default="f1_macro", show_default=True, metavar=METRIC_NAMES, help="Score of the model."
)
folds_option = number_option("--folds", 5, "Number of cross-validation folds.")


def correction_option(default: str) -> Decorator:
    """Option of the corrections of vectors."""
    text = f"Corrections of the embeddings: {', '.join(corrections)}.  {default}"

    def parse(context: Any, parameter: click.Parameter, values: Sequence[str]) -> list[str]:
        return [respell_correction(name) for name in split_names(context, parameter, values)]

    return click.option("--correction", multiple=True, callback=parse, metavar=NAMES_METAVAR, help=text)


def read_rows(read: RowReader, file: str | None, by: Sequence[str]) -> Rows:
    """All rows of a file with these factors."""
    if read.is_summary(file):
        raise InputError(problem=f"{file} is a summary, which has no rows", remedy="name the file that it was made of")
    rows = read.read_rows(file, by)
    return replace(rows, x=as_dense(rows.x))


def as_dense(rows: Any) -> Any:
    """Rows that are all in memory, as an array."""
    return rows if isinstance(rows, np.ndarray) else rows.toarray()


def choose_distances(
    names: list[str], options: dict[str, float], others: Sequence[str] = ()
) -> dict[str, dict[str, float]]:
    """Distances with those of the options that they have."""
    wanted = [*distances, *others] if "all" in names else list(dict.fromkeys(names))
    check_known([name for name in names if name != "all"], [*distances, *others], "distance", "crossfusion")
    known = {name: [*signature(distances[name]).parameters][2:] if name in distances else [] for name in wanted}
    there = sorted({option for own in known.values() for option in own})
    check_known(options, there, "option", f"--distance {','.join(names)}")
    return {name: {own: options[own] for own in known[name] if own in options} for name in wanted}
