"""The commands that judge distances: by halves of one domain, and by what models lose."""

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossfusion import factors
from crossfusion.alignment import corrections
from crossfusion.baselines import distances
from crossfusion.cli import output
from crossfusion.cli.options import PATH, between_option, json_option, names_option, settings
from crossfusion.cli.reading import Reading, file_argument, reading_options
from crossfusion.errors import InputError
from crossfusion.experiments import scatter
from crossfusion.protocols.degradation import cddr as measure_cddr
from crossfusion.protocols.drops import SCORES
from crossfusion.protocols.measures import WITHIN_LABELS
from crossfusion.protocols.outcomes import Study
from crossfusion.protocols.ratios import Rdr, pair_text
from crossfusion.protocols.relative import rdr as measure_rdr
from crossfusion.protocols.study import CORRECTIONS, DISTANCES, degradation_study
from crossfusion.text import label_text, number_text
from crossfusion.validation import check_known

if TYPE_CHECKING:
    import pyarrow as pa

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


@dataclass(frozen=True)
class Rows:
    """Rows with their factors, as the protocols take them."""

    x: Any
    keys: "pa.Table"

    def values(self, names: Sequence[str]) -> Any:
        """Values of one factor, or of several as text; None without any."""
        if not names:
            return None
        if len(names) == 1:
            return factors.values(self.keys.column(names[0]))
        return [label_text(label) for label in factors.labels(self.keys.select(list(names)))]


def _rows(read: Reading, file: str | None, by: Sequence[str]) -> Rows:
    if read.is_summary(file):
        raise InputError(f"{file} is a summary, which has no rows: name the file that it was made of")
    return Rows(*read.whole(file, list(dict.fromkeys(by))))


def _chosen(names: list[str], options: dict[str, float], others: Sequence[str] = ()) -> dict[str, dict[str, float]]:
    """Distances with those of the options that they have."""
    wanted = [*distances, *others] if "all" in names else list(dict.fromkeys(names))
    check_known(wanted, [*distances, *others], "distance", "crossfusion")
    known = {name: [*signature(distances[name]).parameters][2:] if name in distances else [] for name in wanted}
    check_known(options, sorted({option for own in known.values() for option in own}), "option", "these distances")
    return {name: {own: options[own] for own in known[name] if own in options} for name in wanted}


@click.command()
@file_argument
@between_option
@names_option("--units", UNITS + "they go whole to one half.")
@names_option("--distance", "Distances to judge; 'all' stands for every one there is. cfd by default.")
@option_option
@click.option("--repeats", default=50, show_default=True, help="Random halves to draw.")
@click.option("--rows", type=int, metavar="N", help="Most rows of a half; half of the smaller domain by default.")
@seed_option
@reading_options("vectors", "nan", "sql", "manifest", "on")
@json_option
def rdr(
    file: str | None,
    between: list[str],
    units: list[str],
    distance: list[str],
    options: dict[str, float],
    repeats: int,
    rows: int | None,
    seed: int,
    read: Reading,
    as_json: bool,
) -> None:
    """Relative distance ratio: two halves of one domain, at distance zero, over two domains.

    \b
    Examples:
      crossfusion rdr embeddings.parquet --between scanner --units slide --distance cfd,cfd_unbiased,mmd
    """
    chosen = _chosen(distance or ["cfd"], options)
    found_rows = _rows(read, file, [*between, *units])
    with output.steps("measuring") as progress:
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
            f"{number_text(entry.within)} ± {number_text(entry.within_sd)}",
            f"{number_text(entry.across)} ± {number_text(entry.across_sd)}",
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
@file_argument
@between_option
@label_option
@names_option("--units", UNITS + "trained on or tested on, never both.")
@metric_option
@folds_option
@level_option
@seed_option
@reading_options("vectors", "nan", "sql", "manifest", "on")
@json_option
def cddr(
    file: str | None,
    between: list[str],
    label: list[str],
    units: list[str],
    metric: str,
    folds: int,
    level: float,
    seed: int,
    read: Reading,
    as_json: bool,
) -> None:
    """Cross-domain degradation rate: what a model trained on one domain loses on another.

    \b
    Examples:
      crossfusion cddr embeddings.parquet --between scanner --label diagnosis --units patient --metric auc
    """
    rows = _rows(read, file, [*between, *label, *units])
    options: dict[str, Any] = {"metric": metric, "folds": folds, "level": level, "seed": seed}
    with output.steps("training") as progress:
        found = measure_cddr(
            rows.x,
            rows.values(label),
            rows.values(between),
            units=rows.values(units),
            progress=progress,
            **options,
        )
    if as_json:
        output.show_json(found.to_dict())
        return
    title = f"Degradation of the {SCORES[metric]} of {' × '.join(label)} between {' × '.join(between)}"
    output.show_table(title, *found.table(), left=(0, 1))


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
@click.option("--plot", type=PATH, metavar="FILE", help="Draw distances against degradation: .png, .svg or .pdf.")
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
    if plot is not None:
        scatter.check_ending(plot)
    chosen = _chosen(distance or list(DISTANCES), options, list(WITHIN_LABELS))
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
        return _rows(read, files[0] if files else None, by), correction or list(CORRECTIONS)
    if correction:
        raise InputError("--correction goes with one file: leave it out, or the names of the files")
    named: dict[str, Rows] = {}
    for entry in files:
        name, equals, path = entry.partition("=")
        if not (name and equals and path) or name in named:
            raise InputError(f"{entry!r} is not NAME=FILE with a name of its own: write macenko=macenko.parquet")
        named[name] = _rows(read, path, by)
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
