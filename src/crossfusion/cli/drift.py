"""The command that watches for drift."""

import sys
from pathlib import Path
from typing import Any

import click

from crossfusion._base import arg, check_option
from crossfusion.cli import end_output, options, output, result_tables
from crossfusion.cli.options import check_typed
from crossfusion.cli.row_reader import RowReader, file_argument, reading_options
from crossfusion.fusion import FEATURES
from crossfusion.summary import Drift, list_periods, parse_reference

EXIT_CODES = {"error": 2, "alarm": 1, "ignore": 0}  # of windows that cannot be compared


@click.command()
@file_argument
@options.time_option(required=True)
@click.option(
    "--reference",
    required=True,
    metavar="first:N|previous|A,B,...|A..B",
    help="Reference periods: the first N, the previous window, a list of periods, or a range.",
)
@options.given_option
@options.units_option("intervals count these")
@options.min_units_option
@options.number_option("--window", 1, "Number of periods per window.")
@options.number_option("--step", 1, "Number of periods from one window to the next.")
@click.option(
    "--alarm", default=0.01, show_default=True, metavar="RATE", help="False-alarm rate per window; 0 for no alarms."
)
@click.option(
    "--adjust",
    metavar="holm|bh",
    help="Adjust p-values for the number of windows: with holm, the rate applies to all windows together.",
)
@click.option("--latest", is_flag=True, help="Exit with 1 or 2 only because of the last window.")
@click.option(
    "--incomparable",
    default="error",
    show_default=True,
    metavar="error|alarm|ignore",
    help="Exit code if a window shares no stratum with the reference: 2, 1 as for an alarm, or 0.",
)
@options.names_option(
    "--over", "Factors, besides features, to attribute the first alarm to, or the most unusual window if there is none."
)
@options.weights_option
@options.scale_option
@options.level_option
@options.seed_option("the simulated series for the p-value of the change")
@options.plot_option("the windows")
@reading_options()
@options.json_option
def drift(
    file: str | None,
    time: str,
    reference: str,
    alarm: float,
    adjust: str | None,
    given: list[str],
    units: list[str],
    min_units: int,
    window: int,
    step: int,
    level: float,
    over: list[str],
    latest: bool,
    incomparable: str,
    plot: Path | None,
    weights: str,
    scale: str | None,
    seed: int,
    read: RowReader,
    as_json: bool,
) -> None:
    """Compare periods with a reference; exit with 1 on an alarm.

    A window that shares no stratum of --given with the reference cannot be compared. The command names it and, unless
    there is an alarm, exits with 2. Use `summarize --append` to add new files to a summary; it rejects rows that the
    summary already contains.

    \b
    Examples:
      crossfusion drift summary.parquet --time week --reference first:8
      crossfusion drift embeddings.parquet --time month --reference previous --given label --units patient
      crossfusion drift summary.parquet --time day --reference 2024-01-01..2024-01-31 --window 7 --latest --json
    """
    check_typed(["level", "min_units"], f"{arg('units')}", bool(units))
    check_option(incomparable, tuple(EXIT_CODES), "incomparable")
    check_typed(["adjust"], f"an {arg('alarm')} above 0", alarm != 0)
    over = [name for name in over if name != FEATURES]
    summary = read.read_summary(file, [time, *given, *units, *over])
    periods = list_periods(summary, time)[1]
    settings: dict[str, Any] = {"weights": weights, "level": level, "adjust": adjust, "seed": seed}
    settings |= {"min_units": min_units, "scale": scale}
    found = summary.drift(
        time,
        reference=parse_reference(reference, periods, time),
        given=given,
        units=units,
        alarm=alarm or None,
        window=window,
        step=step,
        over=[FEATURES, *over],
        **settings,
    )
    output.write_plot(plot, found.plot)
    try:
        output.show_json(found.to_dict()) if as_json else _show(found, result_tables.format_question([time], given))
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough; an alarm is one all the same
        end_output()
    watched = slice(-1, None) if latest else slice(None)
    if found.alarm[watched].any():
        sys.exit(1)
    if found.incomparable[watched].any():
        sys.exit(EXIT_CODES[incomparable])


def _show(found: Drift, asked: str) -> None:
    """The windows for people, with a bar for each distance."""
    header, rows = found.table()
    styles = [["bold", *["red" if alarm else ""] * (len(header) - 1)] for alarm in found.alarm]
    compared = "the window before" if isinstance(found.reference, str) else f"{len(found.reference)} reference periods"
    number = int(found.alarm.sum())
    said = "" if found.rate is None else f"; {number or 'no'} alarm{'' if number == 1 else 's'} at {found.rate:g}"
    apart = int(found.incomparable.sum())
    said += f"; {apart} of {len(found.periods)} cannot be compared" if apart else ""
    title = f"Cross-Fusion Distance of {asked} to {compared}{said}   {found.sparkline()}"
    output.show_table(
        title,
        header,
        rows,
        styles,
        left=(0, len(header) - 1 if header[-1] == "alarm" else 0),
        bars=found.distance.tolist(),
    )
    for line in found.describe():
        click.echo(line)
