"""The command that compares all pairs of groups."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click
import numpy as np

from crossfusion.adjust import METHODS
from crossfusion.cli import output, tables
from crossfusion.cli.options import (
    between_option,
    given_option,
    json_option,
    level_option,
    names_option,
    seed_option,
    test_option,
    weights_option,
)
from crossfusion.cli.reading import Reading, file_argument, reading_options
from crossfusion.compare import cfd
from crossfusion.errors import InputError
from crossfusion.fusion import Fusion
from crossfusion.inference import matrix_of, of_pairs, with_pvalues
from crossfusion.judge import TestResult
from crossfusion.pairwise import Pairwise
from crossfusion.permutation import permutation_test
from crossfusion.summary import Summary
from crossfusion.text import label_text, plain_value
from crossfusion.validation import check_option


@click.command()
@file_argument
@between_option
@given_option
@names_option("--units", "Columns of the independent units, such as patients, for intervals and tests.")
@weights_option
@level_option
@test_option
@seed_option
@click.option(
    "--adjust",
    default="holm",
    show_default=True,
    metavar="holm|bh",
    help="How p-values account for the number of pairs.",
)
@click.option("--unbiased", is_flag=True, help="Show unbiased distances in the table.")
@reading_options()
@json_option
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, a row a pair.")
def matrix(
    file: str | None,
    between: list[str],
    given: list[str],
    units: list[str],
    weights: str,
    level: float | None,
    permutations: int | None,
    seed: int,
    adjust: str,
    unbiased: bool,
    read: Reading,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Distances between all pairs of groups.

    Without --units, intervals and tests take the rows of a file to be independent; a summary has none.

    \b
    Examples:
      crossfusion matrix summary.parquet --between scanner --given label
      crossfusion matrix embeddings.parquet --between site,scanner --csv > pairs.csv
      crossfusion matrix summary.parquet --between site --units patient --level 0.95 --test 999
      crossfusion matrix 'features/*.h5' --manifest slides.csv --on file --between scanner
      crossfusion matrix --sql "select site, vector from 'lake/*.parquet'" --between site
    """
    if as_json and as_csv:
        raise InputError("--json and --csv exclude each other: choose one")
    check_option(adjust, METHODS, "adjust")
    inference = level is not None or permutations is not None
    if inference and not units and read.is_summary(file):
        raise InputError(f"{file} is a summary, which has no rows for --level or --test: name the units with --units")
    if inference and not units:
        summary, result = _of_rows(file, between, given, read, weights, level, permutations, seed, adjust)
    else:
        summary = read.summary(file, [*between, *given, *units])
        tests: dict[str, Any] = {"permutations": permutations, "seed": seed, "adjust": adjust}
        result = summary.pairwise(between, given=given, units=units, weights=weights, level=level, **tests)
    if as_json:
        output.show_json(result.to_dict())
    elif as_csv:
        names = [label_text(label) for label in result.labels]
        columns = result.columns
        rows = [
            [names[i], names[j], *(plain_value(values[i, j]) for values in columns.values())]
            for i, j in tables.pairs(len(names))
        ]
        output.show_csv(["group_a", "group_b", *columns], rows)
    else:
        asked = tables.question(between, given)
        if inference:
            tables.show_pairs(result, f"{asked} ({weights})", adjust)
        else:
            values = np.where(result.overlap > 0, result.unbiased if unbiased else result.distance, np.nan)
            tables.show_matrix(result.labels, values, f"{asked} ({weights}, {'unbiased' if unbiased else 'plug-in'})")
        tables.show_whole(summary, between, given, weights, result, units)


def _of_rows(
    file: str | None,
    between: Sequence[str],
    given: Sequence[str],
    read: Reading,
    weights: str,
    level: float | None,
    permutations: int | None,
    seed: int,
    adjust: str,
) -> tuple[Summary, Pairwise]:
    """Distances of all pairs of groups of independent rows, with limits and p-values."""
    summary, rows, group, stratum = read.grouped(file, between, given)
    result = summary.pairwise(between, given=given, weights=weights)

    def chosen(a: int, b: int) -> tuple[Any, Any, Any]:
        own = np.flatnonzero((group == a) | (group == b))
        return rows[own], group[own], None if stratum is None else stratum[own]

    def fusion_of(a: int, b: int) -> Fusion:
        x, labels, strata = chosen(a, b)
        fusion = cfd(x, labels=labels, given=strata, weights=weights, level=level)
        if progress is not None:
            progress(1)
        return fusion

    def test_of(a: int, b: int) -> TestResult:
        x, labels, strata = chosen(a, b)
        tested = permutation_test(x, labels, strata=strata, permutations=permutations or 0, seed=seed)
        if progress is not None:
            progress(1)
        return tested

    pairs = int(np.sum(result.overlap > 0) - len(result.labels)) // 2
    with output.progress("comparing", pairs * ((level is not None) + (permutations is not None)), "pairs") as progress:
        if level is not None:
            found = of_pairs(result, fusion_of, "an interval")
            limits = np.array([[*(fusion.interval or (np.nan, np.nan)), fusion.stderr] for fusion in found.values()])
            lower, upper, stderr = (
                matrix_of(result, dict(zip(found, values.tolist(), strict=True)), 0.0) for values in limits.T
            )
            result = replace(result, level=level, lower=lower, upper=upper, stderr=stderr)
        if permutations is not None:
            result = with_pvalues(result, of_pairs(result, test_of, "a test"), permutations, adjust)
    return summary, result
