"""The command that tests a separation."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossfusion._base import (
    InputError,
    NamedRows,
    arg,
    check_level,
    check_option,
    factors,
    number_text,
    plain_value,
    pvalue_text,
    warn,
)
from crossfusion.arrays import cfd, permutation_test
from crossfusion.cli import options, output, result_tables
from crossfusion.cli.fail_above import ask_pairs, check_unscaled, enforce, fail_above_option
from crossfusion.cli.options import check_typed
from crossfusion.cli.row_reader import RowReader, file_argument, reading_options
from crossfusion.fusion import STATISTIC_NAMES, TEST_PLACE, Fusion, join_cautions
from crossfusion.inference import STATISTICS, TestResult
from crossfusion.io import Rows
from crossfusion.summary import Summary, describe_exchange, has_crossed_units

if TYPE_CHECKING:
    import pyarrow as pa

TEST_FIELDS = ("statistic_name", "statistic", "pvalue", "permutations", "exact")
ESTIMATE_FIELDS = ("distance", "unbiased", "overlap", "level", "interval", "stderr", "caution", "reason", "excluded")


@click.command()
@file_argument
@options.between_option
@options.given_option
@options.units_option("labels are permuted between units, or within units that are in several groups")
@options.names_option(
    "--pairs", "Factors that identify units measured in several groups: labels are permuted within units only."
)
@options.min_units_option
@options.level_option
@options.permutations_option
@options.statistic_option
@options.scale_option
@options.seed_option("the permutations")
@fail_above_option
@options.plot_option("the statistic and its distribution under permutation")
@reading_options()
@options.json_option
def test(
    file: str | None,
    between: list[str],
    given: list[str],
    units: list[str],
    pairs: list[str],
    min_units: int,
    permutations: int,
    statistic: str,
    scale: str | None,
    level: float,
    seed: int,
    fail_above: float | None,
    plot: Path | None,
    read: RowReader,
    as_json: bool,
) -> None:
    """Test whether groups differ by more than chance.

    Without --units or --pairs, the labels of single rows are permuted, which is valid only if rows are independent:
    tiles of one slide are not.

    \b
    Examples:
      crossfusion test embeddings.parquet --between scanner --given label --units slide
      crossfusion test summary.parquet --between scanner --pairs slide --json
    """
    check_level(level)
    if units and pairs:
        raise InputError(
            problem=f"{arg('units')} and {arg('pairs')} cannot be combined",
            remedy=f"pass independent units, such as the slide, as {arg('pairs')}",
        )
    check_typed(["min_units"], f"{arg('units')} or {arg('pairs')}", bool(units or pairs))
    check_option(statistic, STATISTICS, "statistic")
    check_unscaled(fail_above, scale)
    chance: dict[str, Any] = {"permutations": permutations, "seed": seed, "statistic": statistic, "scale": scale}
    if units or pairs:
        summary = read.read_summary(file, [*between, *given, *units, *pairs])
        _check_pairs(summary, between, pairs)
        result, fusion, said = _test_units(summary, between, given, units or pairs, min_units, level, chance)
        source: Summary | Rows = summary
    elif read.is_summary(file):
        raise InputError(
            problem=f"{file} is a summary, which has no rows to permute",
            remedy=f"name the units with {arg('units')} or {arg('pairs')}",
        )
    else:
        source = rows = read.read_rows(file, [*between, *given])
        result, fusion, said = _test_rows(rows, between, given, level, chance)
    output.write_plot(plot, result.plot)
    with enforce(ask_pairs(fail_above, source, between, given, "pooled", units or pairs, min_units)):
        if as_json:
            found = {name: plain_value(getattr(fusion, name)) for name in ESTIMATE_FIELDS}
            found |= {name: plain_value(getattr(fusion, name)) for name in ("scale", "constant") if scale}
            found |= {"exchanged": said, "caution": join_cautions(fusion.caution, result.caution)}
            output.show_json(found | {name: plain_value(getattr(result, name)) for name in TEST_FIELDS})
        else:
            _show(result, fusion, between, given, said)


def _test_units(
    summary: Summary,
    between: list[str],
    given: list[str],
    units: list[str],
    min_units: int,
    level: float,
    chance: dict[str, Any],
) -> tuple[TestResult, Fusion, str]:
    """A test that exchanges labels of units, the distance beside it, and what was exchanged."""
    result = summary.test(between, given=given, units=units, min_units=min_units, **chance)
    settings: dict[str, Any] = {"given": given, "units": units, "min_units": min_units, "level": level}
    settings["scale"] = chance["scale"]
    if result.excluded:  # the distance of all groups would be another one than that of the test
        fusion = summary.cfd(between, **settings)
    else:
        fusion = _choose_estimate(
            lambda: summary.cfd(between, **settings), lambda: summary.cfd(between, given=given, scale=chance["scale"])
        )
    return result, fusion, describe_exchange(summary, between, units)


def _test_rows(
    rows: Rows, between: list[str], given: list[str], level: float, chance: dict[str, Any]
) -> tuple[TestResult, Fusion, str]:
    """The same of single rows."""
    labels, strata = (_get_values(rows.keys, names) for names in (between, given))
    x = NamedRows(rows.x, rows.features)
    result = permutation_test(x, labels, given=strata, **chance)
    asked: dict[str, Any] = {"labels": labels, "given": strata, "scale": chance["scale"]}
    fusion = _choose_estimate(lambda: cfd(x, **asked, level=level), lambda: cfd(x, **asked))
    return result, fusion, "single rows"


def _check_pairs(summary: Summary, between: Sequence[str], pairs: Sequence[str]) -> None:
    """Refuse pairs of one group each, which would be exchanged as units are."""
    if pairs and not has_crossed_units(summary, between, pairs):
        raise InputError(
            problem="no unit was measured in two of the compared groups",
            remedy=f"pass units that were measured in several groups as {arg('pairs')}",
        )


def _choose_estimate(with_interval: Callable[[], Fusion], without: Callable[[], Fusion]) -> Fusion:
    """The distance with its interval; where there can be none, without one, and with a warning."""
    try:
        return with_interval()
    except InputError as problem:
        warn(f"there is no interval: {problem.marked}")
        return without()


def _get_values(keys: "pa.Table", names: list[str]) -> Any:
    """Values of a factor, codes of the combinations of several, or None."""
    if len(names) == 1:
        return factors.to_array(keys.column(names[0]))
    return factors.encode(keys.select(names))[0] if names else None


def _show(result: TestResult, fusion: Fusion, between: list[str], given: list[str], exchanged: str) -> None:
    """A result for people."""
    asked = result_tables.format_question(between, given)
    kind = "all that exist" if result.exact else "random permutations"
    rows = [
        *result_tables.make_estimate_rows(fusion),
        *result_tables.make_overlap_rows(fusion, given),
        ["statistic", number_text(result.statistic), STATISTIC_NAMES[result.statistic_name]],
        ["pvalue", pvalue_text(result.pvalue), "share of permutations that separate at least as far"],
        ["permutations", f"{result.permutations:,}", kind],
    ]
    title = f"Test of the separation of {asked}, permuting {exchanged}"
    output.show_table(title, ["", "value", ""], rows, [["bold", "", "dim"]] * len(rows), left=(0, 2))
    result_tables.show_scale(fusion, TEST_PLACE)
    result_tables.show_excluded(result.excluded)
    result_tables.show_caution(replace(fusion, caution=join_cautions(fusion.caution, result.caution)))
