"""The command that asks a linear classifier."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from crossfusion._base import InputError, arg, check_level, factors, label_text, level_text, percent
from crossfusion.arrays import Recognition, Separability
from crossfusion.arrays import separability as measure_separability
from crossfusion.cli import options, output, result_tables
from crossfusion.cli.options import check_typed
from crossfusion.cli.result_tables import PAIRS_SHOWN
from crossfusion.cli.row_reader import RowReader, reading_options, rows_argument

if TYPE_CHECKING:
    import pyarrow as pa


@click.command()
@rows_argument
@options.between_option
@options.given_option
@options.units_option("whole units are held out")
@options.min_units_option
@options.level_option
@options.seed_option("the sample of rows and of the parts that units are split into")
@options.plot_option("the accuracy of each group against the others")
@reading_options("vectors", "nan", "sql", "manifest", "on", "only_matched", "lens", "by_position")
@options.json_option
def separability(
    file: str | None,
    between: list[str],
    given: list[str],
    units: list[str],
    min_units: int,
    level: float,
    seed: int,
    plot: Path | None,
    read: RowReader,
    as_json: bool,
) -> None:
    """Measure how well a classifier recognizes groups.

    A linear classifier is fitted to some units and classifies the rows of others. Without --units, single rows are held
    out, which is valid only if rows are independent: tiles of one slide are not.

    \b
    Examples:
      crossfusion separability embeddings.parquet --between scanner --given label --units patient
      crossfusion separability 'features/*.h5' --manifest slides.csv --on file --between scanner --json
    """
    check_level(level, needed=True)
    check_typed(["min_units"], f"{arg('units')}", bool(units))
    if read.is_summary(file):
        raise InputError(problem=f"{file} is a summary, which has no rows to classify", remedy="pass the rows")
    rows = read.read_rows(file, [*between, *given, *units])
    found = measure_separability(
        rows.x,
        _name_values(rows.keys, between),
        given=_name_values(rows.keys, given) if given else None,
        units=_get_codes(rows.keys, units) if units else None,
        level=level,
        seed=seed,
        min_units=min_units,
    )
    output.write_plot(plot, found.plot)
    if as_json:
        output.show_json(found.to_dict() | {"sentence": _describe(found, between, units)})
    else:
        _show(found, between, given, units)


def _name_values(keys: "pa.Table", names: Sequence[str]) -> Any:
    """Values of a factor, or names of the combinations of several."""
    if len(names) == 1:
        return factors.to_array(keys.column(names[0]))
    codes, combinations = factors.encode(keys.select(list(names)))
    return np.array([label_text(label) for label in factors.list_labels(combinations)])[codes]


def _get_codes(keys: "pa.Table", names: Sequence[str]) -> Any:
    factors.check_units(keys, list(names))
    return factors.encode(keys.select(list(names)))[0]


def _describe(found: Separability, between: Sequence[str], units: Sequence[str]) -> str:
    return found.describe(" × ".join(between), " × ".join(units) or None)


def _show(found: Separability, between: Sequence[str], given: Sequence[str], units: Sequence[str]) -> None:
    """A result for people."""
    asked = result_tables.format_question(between, given)
    rest = [[label_text(each.group_a), *_format(each)] for each in _sort(found.one_vs_rest)]
    header = ["balanced accuracy", f"{level_text(found.level)} interval", "AUC"]
    if found.accuracy is not None and len(found.groups) > 2:
        output.show_table(f"{asked}: each group against the others", ["group", *header], rest)
    if found.accuracy is not None:
        pairs = [[label_text(each.group_a), label_text(each.group_b), *_format(each)] for each in _sort(found.pairs)]
        title = f"{asked}: pairs of groups"
        output.show_table(title, ["group_a", "group_b", *header], pairs[:PAIRS_SHOWN], left=(0, 1))
        if len(pairs) > PAIRS_SHOWN:
            click.echo(f"... and {len(pairs) - PAIRS_SHOWN:,} more pairs: --json lists all")
    sentence = _describe(found, between, units)
    click.echo(f"{sentence[0].upper()}{sentence[1:]}.")
    result_tables.show_excluded(found.excluded)
    if found.caution:
        click.echo(f"caution: {found.caution}")


def _sort(entries: Sequence[Recognition]) -> list[Recognition]:
    return sorted(entries, key=lambda each: -(each.accuracy or 0.0))


def _format(entry: Recognition) -> list[str]:
    if entry.accuracy is None:
        return ["–", "–", "–"]
    auc = "–" if entry.auc is None else f"{entry.auc:.3f}"
    return [percent(entry.accuracy), f"{percent(entry.lower)} to {percent(entry.upper)}", auc]
