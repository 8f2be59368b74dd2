"""The command that compares all pairs of groups."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from crossfusion._base import InputError, arg, check_option, label_text, plain_value
from crossfusion.arrays import infer_pairs, leave_out_small_groups
from crossfusion.cli import options, output, result_tables
from crossfusion.cli.fail_above import ask_pairs, check_unscaled, enforce, fail_above_option
from crossfusion.cli.options import check_typed
from crossfusion.cli.row_reader import RowReader, file_argument, reading_options
from crossfusion.fusion import Pairwise
from crossfusion.inference import ADJUSTMENTS, STATISTICS, count_pairs
from crossfusion.summary import Summary


@click.command()
@file_argument
@options.between_option
@options.given_option
@options.units_option("intervals and tests count these")
@options.min_units_option
@options.balanced_option
@options.scale_option
@options.interval_option
@options.test_option
@options.statistic_option
@options.seed_option("the permutations")
@click.option(
    "--adjust",
    default="holm",
    show_default=True,
    metavar="holm|bh",
    help="Method that adjusts p-values for the number of pairs.",
)
@fail_above_option
@click.option("--plug-in", "plug_in", is_flag=True, help="Show the plug-in CFD of the paper in the table.")
@options.plot_option("the matrix or, with --level, the pairs with their intervals")
@reading_options()
@options.json_option
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, one row per pair.")
def matrix(
    file: str | None,
    between: list[str],
    given: list[str],
    units: list[str],
    min_units: int,
    weights: str,
    scale: str | None,
    level: float | None,
    permutations: int | None,
    statistic: str,
    seed: int,
    adjust: str,
    fail_above: float | None,
    plug_in: bool,
    plot: Path | None,
    read: RowReader,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Compare all pairs of groups.

    Without --units, intervals and tests assume independent rows and require a file of rows.

    \b
    Examples:
      crossfusion matrix summary.parquet --between scanner --given label
      crossfusion matrix embeddings.parquet --between site,scanner --csv > pairs.csv
      crossfusion matrix summary.parquet --between site --units patient --level 0.95 --permutations 999
      crossfusion matrix 'features/*.h5' --manifest slides.csv --on file --between scanner
      crossfusion matrix --sql "select site, vector from 'lake/*.parquet'" --between site
    """
    if as_json and as_csv:
        raise InputError(problem=f"{arg('as_json')} and {arg('as_csv')} cannot be combined", remedy="choose one")
    check_option(adjust, ADJUSTMENTS, "adjust")
    check_option(statistic, STATISTICS, "statistic")
    check_unscaled(fail_above, scale)
    check_typed(["adjust", "seed", "statistic"], f"{arg('permutations')}", permutations is not None)
    check_typed(["min_units"], f"{arg('units')}", bool(units))
    tests: dict[str, Any] = {"permutations": permutations, "seed": seed, "statistic": statistic, "adjust": adjust}
    inference = level is not None or permutations is not None
    if inference and not units and read.is_summary(file):
        raise InputError(
            problem=f"{file} is a summary, which has no rows for {arg('level')} or {arg('permutations')}",
            remedy=f"name the units with {arg('units')}",
        )
    if inference and not units:
        summary, result = _compare_rows(file, between, given, read, weights, level, tests, scale)
    else:
        summary = read.read_summary(file, [*between, *given, *units])
        tests |= {"units": units, "min_units": min_units, "level": level, "scale": scale}
        result = summary.pairwise(between, given=given, weights=weights, **tests)
    output.write_plot(
        plot, lambda: result.plot_forest() if level else result.plot("distance" if plug_in else "unbiased")
    )
    with enforce(ask_pairs(fail_above, summary, between, given, weights, units, min_units)):
        if as_json:
            output.show_json(result.to_dict())
        elif as_csv:
            names = [label_text(label) for label in result.labels]
            columns = result.columns
            rows = [
                [names[i], names[j], *(plain_value(values[i, j]) for values in columns.values())]
                for i, j in result_tables.list_pairs(len(names))
            ]
            output.show_csv(["group_a", "group_b", *columns], rows, names=(0, 1))
        else:
            asked = result_tables.format_question(between, given)
            if inference:
                result_tables.show_pairs(result, f"{asked} ({weights} weights)")
            else:
                values = result.distance if plug_in else result.unbiased
                named = f"{asked} ({weights} weights, {'plug-in' if plug_in else 'unbiased'})"
                result_tables.show_matrix(result.labels, values, named)
            result_tables.show_whole(summary, between, given, weights, result, units, min_units, scale)
            result_tables.show_scale(result)
            result_tables.show_excluded(result.excluded)
            result_tables.show_caution(result)


def _compare_rows(
    file: str | None,
    between: Sequence[str],
    given: Sequence[str],
    read: RowReader,
    weights: str,
    level: float | None,
    tests: dict[str, Any],
    scale: str | None,
) -> tuple[Summary, Pairwise]:
    """Distances of all pairs of groups of independent rows, with limits and p-values."""
    summary, rows, group, stratum = read.read_groups(file, between, given)
    if level is None:
        result, used = summary.pairwise(between, given=given, weights=weights, scale=scale), None
    else:
        result, group, used = leave_out_small_groups(summary, between, given, group, stratum, weights, scale)
    work = count_pairs(result) * ((level is not None) + (tests["permutations"] is not None))
    with output.show_progress("comparing", work, "pairs") as progress:
        settings: dict[str, Any] = {"weights": weights, "level": level, "progress": progress, "scale": used, **tests}
        return summary, infer_pairs(result, rows, group, stratum, **settings)
