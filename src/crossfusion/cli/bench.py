"""The commands that measure speed, and whether intervals and tests hold what they promise."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import click

from crossfusion import pictures
from crossfusion.cli import output
from crossfusion.cli.options import PATH, json_option, names_option, plot_option
from crossfusion.validation import check_known


@click.group()
def bench() -> None:
    """Measure speed, as ratios in one run, and whether intervals and tests hold."""


@bench.command("moments")
@click.option("--gigabytes", default=1.6, show_default=True, help="Size of the rows.")
@click.option("--dim", default=256, show_default=True, help="Number of features.")
@click.option("--repeats", default=7, show_default=True, help="Rounds, in which the sides alternate.")
@json_option
def bench_moments(gigabytes: float, dim: int, repeats: int, as_json: bool) -> None:
    """Compare the kernel with the machine's read bandwidth and with what else people use.

    \b
    Examples:
      crossfusion bench moments
      crossfusion bench moments --gigabytes 0.4 --dim 1024 --json
    """
    from crossfusion.benchmarks import moments

    found = moments.run(gigabytes=gigabytes, dim=dim, repeats=repeats)
    if as_json:
        output.show_json(found)
    else:
        rows = [[name, f"{entry['value']:.3g}", entry["aim"]] for name, entry in found["ratios"].items()]
        output.show_table(found["title"], ["measured in this run", "value", "aim"], rows, left=(0, 2))


@bench.command("distances")
@click.option("--repeats", default=3, show_default=True, help="Rounds, in which the sides alternate.")
@json_option
def bench_distances(repeats: int, as_json: bool) -> None:
    """Compare the baseline distances with the libraries that people use for them.

    \b
    Examples:
      crossfusion bench distances
    """
    from crossfusion.benchmarks import distances

    found = distances.run(repeats=repeats)
    _show(found, as_json, left=(0, 1))


@bench.command("permutations")
@click.option("--repeats", default=3, show_default=True, help="Rounds, in which the sides alternate.")
@click.option("--quick", is_flag=True, help="Leave out the comparison that takes minutes.")
@json_option
def bench_permutations(repeats: int, quick: bool, as_json: bool) -> None:
    """Compare permutation tests with those on distance matrices.

    \b
    Examples:
      crossfusion bench permutations
    """
    from crossfusion.benchmarks import permutations

    found = permutations.run(repeats=repeats, quick=quick)
    _show(found, as_json, left=(0, 1))


@bench.command("intervals")
@click.option("--repeats", default=15, show_default=True, help="Rounds, in which the sides alternate.")
@json_option
def bench_intervals(repeats: int, as_json: bool) -> None:
    """Compare the cost of an interval with that of the distance alone.

    \b
    Examples:
      crossfusion bench intervals
    """
    from crossfusion.benchmarks import intervals

    found = intervals.run(repeats=repeats)
    _show(found, as_json, left=(0,))


@bench.command("scale")
@click.option("--gigabytes", default=2.0, show_default=True, help="Size of the rows that are read.")
@click.option("--large", default=12.0, show_default=True, help="Gigabytes of the data set that must not fill memory.")
@click.option("--dim", default=256, show_default=True, help="Number of features.")
@click.option("--repeats", default=5, show_default=True, help="Rounds, in which the sides alternate.")
@names_option("--only", "Measure only these: storages, memory, processes.")
@click.option(
    "--folder", type=PATH, help="Where files are made, and deleted after.  [default: that for temporary ones]"
)
@json_option
def bench_scale(
    gigabytes: float, large: float, dim: int, repeats: int, only: list[str], folder: Path | None, as_json: bool
) -> None:
    """Compare storages and engines with plain reads of the same files, and watch memory.

    \b
    Examples:
      crossfusion bench scale
      crossfusion bench scale --only storages --gigabytes 0.5
    """
    from crossfusion.benchmarks import scale

    with output.steps("measuring") as tell:
        found = scale.run(
            gigabytes=gigabytes,
            large=large,
            dim=dim,
            repeats=repeats,
            only=tuple(only) or scale.PARTS,
            folder=folder,
            tell=tell,
        )
    _show(found, as_json, left=(0, 2))
    if found["model"] and not as_json:
        title = f"\nThe model: 10⁹ × 1024 float32 on 100 workers of 4 threads, {found['rate']:.2f} GB/s a thread"
        output.show_table(title, scale.MODEL, found["model"], left=(0,))


@bench.command("integration")
@click.option("--quick", is_flag=True, help="Few cells, for a first look.")
@names_option("--only", "Measure only these: values, times.")
@click.option("--cap", default=75.0, show_default=True, help="Seconds that each metric of scib-metrics has.")
@click.option("--data", type=PATH, help="Folder of sc_mixology.parquet.  [default: CROSSFUSION_DATA]")
@plot_option("Also draw the leaderboard")
@json_option
def bench_integration(
    quick: bool, only: list[str], cap: float, data: Path | None, plot: Path | None, as_json: bool
) -> None:
    """Set embeddings of single cells beside scib-metrics: the same embeddings, values and time.

    \b
    Examples:
      crossfusion bench integration --quick
      crossfusion bench integration --only values --plot board.png
    """
    from crossfusion.benchmarks import integration
    from crossfusion.experiments.real.folder import data_folder

    with output.steps("measuring") as tell:
        found = integration.run(
            quick=quick,
            only=tuple(only) or integration.PARTS,
            cap=cap,
            data=data_folder(data),
            plot=None if plot is None else lambda board: pictures.write(board.plot(), plot, 150),
            tell=tell,
        )
    if as_json:
        output.show_json(found)
        return
    for number, part in enumerate(found.values()):
        click.echo("\n" * (number > 0), nl=False)
        _show(part, as_json, left=(0,))
        click.echo(part["note"])


@bench.command("coverage")
@click.option("--quick", is_flag=True, help="A few points, for a first look within a minute.")
@click.option("--draws", type=int, metavar="N", help="Of each point.  [default: 2000, or 200]")
@click.option("--workers", type=int, metavar="N", help="Processes; by default one a core.")
@click.option("--out", type=PATH, help="Folder for the results.  [default: coverage, or coverage-quick]")
@json_option
def bench_coverage(quick: bool, draws: int | None, workers: int | None, out: Path | None, as_json: bool) -> None:
    """Show how often intervals cover the truth, and how often tests reject.

    Rows are drawn again and again from populations whose distance is known. An interrupted study goes on where it was
    when the same command is given again.

    \b
    Examples:
      crossfusion bench coverage --quick
      crossfusion bench coverage --out coverage --json
    """
    from crossfusion.benchmarks import coverage

    folder = out or Path("coverage-quick" if quick else "coverage")
    with output.progress("drawing", coverage.count(quick=quick), "points") as progress:
        found = coverage.run(folder, quick=quick, draws=draws, workers=workers, progress=progress)
    if as_json:
        output.show_json(found)
        return
    title = f"{found['draws']:,} draws a point; {'all promises hold' if found['all_hold'] else 'not all promises hold'}"
    output.show_table(title, coverage.SUMMARY, coverage.summary(found), left=(0, 1))
    written = sorted(path for path in folder.glob("*.*") if path.stem in ("coverage", "tests"))
    click.echo("\n".join(["written:", *(f"  {path}" for path in written)]))


@bench.command("drift")
@click.option("--quick", is_flag=True, help="Few streams, for a first look within a minute or two.")
@click.option("--draws", type=int, metavar="N", help="Streams of each kind without drift.  [default: 200, or 30]")
@click.option("--streams", type=int, metavar="N", help="Streams of each kind for all detectors.  [default: 4, or 1]")
@names_option("--only", "Measure only these: rates, evidently, frouros.")
@click.option(
    "--folder",
    type=PATH,
    default=Path("bench-peers"),
    show_default=True,
    help="Where evidently and frouros are installed, each in an environment of its own.",
)
@json_option
def bench_drift(
    quick: bool, draws: int | None, streams: int | None, only: list[str], folder: Path, as_json: bool
) -> None:
    """Show how often the alarm of drift is false, and compare it with evidently and frouros.

    Others are installed by pip into environments of their own, in the folder that --folder names.

    \b
    Examples:
      crossfusion bench drift --quick
      crossfusion bench drift --only rates --json
    """
    from crossfusion.benchmarks import drift

    parts = only or ["rates", *drift.PACKAGES]
    check_known(parts, ["rates", *drift.PACKAGES], "part", "bench drift")
    found = {}
    if "rates" in parts:
        with output.progress("drawing", len(drift.kinds(quick)), "kinds") as progress:
            found["rates"] = drift.rates(quick=quick, draws=draws, progress=progress)
        _show_part(found["rates"], as_json, left=())
    peers = tuple(part for part in parts if part != "rates")
    if peers:
        with output.steps("comparing") as tell:
            found["peers"] = drift.side_by_side(folder, quick=quick, streams=streams, peers=peers, tell=tell)
        _show_part(found["peers"], as_json, left=(0,))
    if as_json:
        output.show_json(found)


def _show_part(found: dict[str, Any], as_json: bool, left: Collection[int]) -> None:
    """One table of several, as soon as it is there; JSON has to wait for all of them."""
    if not as_json:
        output.show_table(found["title"], found["header"], found["rows"], left=left)
        click.echo("\n".join([*found.get("missing", []), ""]))


@bench.command("report")
@click.option("--rows", default=1_000_000, show_default=True, help="Rows of the study.")
@click.option("--groups", default=100, show_default=True, help="Groups that are compared.")
@click.option("--repeats", default=3, show_default=True, help="How often the page is opened.")
@json_option
def bench_report(rows: int, groups: int, repeats: int, as_json: bool) -> None:
    """Show how large the page of a large study is, and how long Chromium takes to open it.

    \b
    Examples:
      crossfusion bench report
    """
    from crossfusion.benchmarks import report

    _show(report.run(rows=rows, groups=groups, repeats=repeats), as_json, left=(3,))


def _show(found: dict[str, Any], as_json: bool, left: Collection[int]) -> None:
    """What was measured, as a table or as JSON."""
    if as_json:
        output.show_json(found)
    else:
        output.show_table(found["title"], found["header"], found["rows"], left=left)
