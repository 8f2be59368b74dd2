"""The command that compares all pairs of groups."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from crossfusion._base import InputError, arg, check_option, check_positive, label_text, plain_value
from crossfusion.arrays import infer_pairs, leave_out_small_groups
from crossfusion.cli import options, output, result_tables
from crossfusion.cli.fail_above import ask_pairs, check_unscaled, enforce, fail_above_option
from crossfusion.cli.fused_pairs import MARGIN_LEVEL, describe_fused_pairs, find_fused_pairs
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
@click.option(
    "--fused-within",
    "margin",
    type=float,
    metavar="MARGIN",
    help="Largest CFD that does not matter; also say which pairs are below: those whose upper 90% limit is.",
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
    margin: float | None,
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
      crossfusion matrix summary.parquet --between site --units patient --fused-within 0.02
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
    if margin is not None:
        check_positive(margin, "margin")
        level = MARGIN_LEVEL if level is None else level
    inference = level is not None or permutations is not None
    if inference and not units and read.is_summary(file):
        options = f"{arg('level')}, {arg('permutations')} or {arg('margin')}"
        raise InputError(
            problem=f"{file} is a summary, which has no rows for {options}",
            remedy=f"name the units with {arg('units')}",
        )
    if inference and not units:
        summary, ask = _read_rows(file, between, given, read, weights, scale, tests)
    else:
        summary = read.read_summary(file, [*between, *given, *units])
        asked: dict[str, Any] = {"given": given, "units": units, "min_units": min_units, "weights": weights}
        asked |= {"scale": scale}
        ask = partial(summary.pairwise, between, **asked | tests)
    result = ask(level=level)
    fused = None
    if margin is not None:
        limited = result if level == MARGIN_LEVEL else ask(level=MARGIN_LEVEL, permutations=None)
        fused = find_fused_pairs(limited, margin)
    output.write_plot(
        plot, lambda: result.plot_forest() if level else result.plot("distance" if plug_in else "unbiased")
    )
    with enforce(ask_pairs(fail_above, summary, between, given, weights, units, min_units)):
        if as_json:
            output.show_json(result.to_dict() | ({} if fused is None else {"margin": margin, "fused_within": fused}))
        elif as_csv:
            names = [label_text(label) for label in result.labels]
            columns = result.columns | ({} if fused is None else {"fused_within": np.array(fused, dtype=object)})
            rows = [
                [names[i], names[j], *(plain_value(values[i, j]) for values in columns.values())]
                for i, j in result_tables.list_pairs(len(names))
            ]
            output.show_csv(["group_a", "group_b", *columns], rows, names=(0, 1))
        else:
            question = result_tables.format_question(between, given)
            if inference:
                result_tables.show_pairs(result, f"{question} ({weights} weights)")
            else:
                values = result.distance if plug_in else result.unbiased
                named = f"{question} ({weights} weights, {'plug-in' if plug_in else 'unbiased'})"
                result_tables.show_matrix(result.labels, values, named)
            if fused is not None and margin is not None:
                click.echo(describe_fused_pairs(result, fused, margin))
            result_tables.show_whole(summary, between, given, weights, result, units, min_units, scale)
            result_tables.show_scale(result)
            result_tables.show_excluded(result.excluded)
            result_tables.show_caution(result)


def _read_rows(
    file: str | None,
    between: Sequence[str],
    given: Sequence[str],
    read: RowReader,
    weights: str,
    scale: str | None,
    tests: dict[str, Any],
) -> tuple[Summary, Callable[..., Pairwise]]:
    """A summary, and a function for the distances of all pairs of independent rows, with limits and p-values."""
    summary, rows, group, stratum = read.read_groups(file, between, given)

    def compare(level: float | None, **options: Any) -> Pairwise:
        kept, used, settings = group, None, {**tests, **options, "weights": weights, "level": level}
        if level is None:
            result = summary.pairwise(between, given=given, weights=weights, scale=scale)
        else:
            result, kept, used = leave_out_small_groups(summary, between, given, group, stratum, weights, scale)
        work = count_pairs(result) * ((level is not None) + (settings["permutations"] is not None))
        with output.show_progress("comparing", work, "pairs") as progress:
            return infer_pairs(result, rows, kept, stratum, progress=progress, scale=used, **settings)

    return summary, compare
