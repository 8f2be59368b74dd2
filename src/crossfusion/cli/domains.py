"""What the commands that judge distances share: rows with their domains, distances with options."""

from collections.abc import Sequence
from inspect import signature

import click

from crossfusion.baselines import distances
from crossfusion.cli.options import names_option, settings
from crossfusion.cli.reading import Reading
from crossfusion.errors import InputError
from crossfusion.protocols.drops import SCORES
from crossfusion.sources.whole import Rows
from crossfusion.validation import check_known

LABEL = "Column of what a model predicts."
UNITS = "Columns of the independent units, such as patients: "
label_option = names_option("--label", LABEL, required=True)
option_option = click.option(
    "--option",
    "options",
    multiple=True,
    callback=settings,
    metavar="NAME=NUMBER",
    help="Option of the distances that have it, such as bandwidth=2.0.",
)
metric_option = click.option(
    "--metric", default="f1_macro", show_default=True, metavar="|".join(SCORES), help="The score."
)
folds_option = click.option("--folds", default=5, show_default=True, help="Parts of the cross-validation.")
seed_option = click.option("--seed", default=0, show_default=True, help="Seed of everything random.")
level_option = click.option("--level", default=0.95, show_default=True, help="Confidence level of the intervals.")


def rows_of(read: Reading, file: str | None, by: Sequence[str]) -> Rows:
    """All rows of a file with these factors."""
    if read.is_summary(file):
        raise InputError(f"{file} is a summary, which has no rows: name the file that it was made of")
    return read.whole(file, by)


def chosen_distances(
    names: list[str], options: dict[str, float], others: Sequence[str] = ()
) -> dict[str, dict[str, float]]:
    """Distances with those of the options that they have."""
    wanted = [*distances, *others] if "all" in names else list(dict.fromkeys(names))
    check_known(wanted, [*distances, *others], "distance", "crossfusion")
    known = {name: [*signature(distances[name]).parameters][2:] if name in distances else [] for name in wanted}
    check_known(options, sorted({option for own in known.values() for option in own}), "option", "these distances")
    return {name: {own: options[own] for own in known[name] if own in options} for name in wanted}
