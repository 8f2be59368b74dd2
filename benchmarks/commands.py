"""The commands that measure speed, and whether intervals and tests hold what they promise."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import click

from paper.checks import check_known
from paper.console import show_files, show_json, show_progress, show_steps, show_table
from paper.options import (
    PATH,
    SETTINGS,
    Commands,
    data_option,
    folder_option,
    json_option,
    names_option,
    number_option,
    quick_option,
    workers_option,
)


@click.group(cls=Commands, context_settings=SETTINGS)
def benchmarks() -> None:
    """Measure speed, and whether intervals and tests are valid.

    Speed is measured as a ratio within one run.

    \b
    Examples:
      python -m benchmarks moments --gigabytes 0.4
    """


@benchmarks.command("moments")
@click.option("--gigabytes", default=1.6, show_default=True, metavar="SIZE", help="Size of the rows.")
@number_option("--dim", 256, "Number of features.")
@number_option("--repeats", 7, "Number of rounds, in which the alternatives take turns.")
@json_option
def bench_moments(gigabytes: float, dim: int, repeats: int, as_json: bool) -> None:
    """Compare the kernel with the bandwidth of memory.

    NumPy, pandas and other libraries are measured in the same run.

    \b
    Examples:
      python -m benchmarks moments
      python -m benchmarks moments --gigabytes 0.4 --dim 1024 --json
    """
    from benchmarks import moments

    found = moments.run(gigabytes=gigabytes, dim=dim, repeats=repeats)
    if as_json:
        _show(found, as_json, left=())
    else:
        rows = [[name, f"{entry['value']:.3g}", entry["aim"]] for name, entry in found["ratios"].items()]
        _show({**found, "header": ["measured in this run", "value", "aim"], "rows": rows}, as_json, left=(0, 2))


@benchmarks.command("distances")
@number_option("--repeats", 3, "Number of rounds, in which the alternatives take turns.")
@json_option
def bench_distances(repeats: int, as_json: bool) -> None:
    """Compare distances with those of other libraries.

    \b
    Examples:
      python -m benchmarks distances
    """
    from benchmarks import distances

    found = distances.run(repeats=repeats)
    _show(found, as_json, left=(0, 1))


@benchmarks.command("lenses")
@number_option("--repeats", 5, "Number of rounds, in which the alternatives take turns.")
@json_option
def bench_lenses(repeats: int, as_json: bool) -> None:
    """Compare lenses with the matrix products that they need.

    \b
    Examples:
      python -m benchmarks lenses
    """
    from benchmarks import lenses

    _show(lenses.run(repeats=repeats), as_json, left=(0, 5))


@benchmarks.command("permutations")
@number_option("--repeats", 7, "Number of rounds, in which the alternatives take turns.")
@quick_option("without the comparison that takes minutes")
@json_option
def bench_permutations(repeats: int, quick: bool, as_json: bool) -> None:
    """Compare permutation tests with tests on distance matrices.

    \b
    Examples:
      python -m benchmarks permutations
    """
    from benchmarks import permutations

    found = permutations.run(repeats=repeats, quick=quick)
    _show(found, as_json, left=(0, 1, 2))


@benchmarks.command("intervals")
@number_option("--repeats", 15, "Number of rounds, in which the alternatives take turns.")
@json_option
def bench_intervals(repeats: int, as_json: bool) -> None:
    """Compare the cost of an interval with that of CFD alone.

    \b
    Examples:
      python -m benchmarks intervals
    """
    from benchmarks import intervals

    found = intervals.run(repeats=repeats)
    _show(found, as_json, left=(0,))


@benchmarks.command("corners")
@number_option("--repeats", 3, "Rounds, in which the sides alternate.")
@quick_option("a tenth of the sizes")
@json_option
def bench_corners(repeats: int, quick: bool, as_json: bool) -> None:
    """Measure what was slow once, each with its aim.

    Many groups, many units, units of one row, many files.

    \b
    Examples:
      python -m benchmarks corners
      python -m benchmarks corners --quick
    """
    from benchmarks import corners

    with show_steps("measuring") as tell:
        found = corners.run(repeats=repeats, quick=quick, tell=tell)
    _show(found, as_json, left=(0, 3))


@benchmarks.command("scale")
@click.option("--gigabytes", default=2.0, show_default=True, metavar="SIZE", help="Size of the rows.")
@click.option(
    "--large",
    default=12.0,
    show_default=True,
    metavar="SIZE",
    help="Size of the data set that must not fill memory, in gigabytes.",
)
@number_option("--dim", 256, "Number of features.")
@number_option("--repeats", 5, "Number of rounds, in which the alternatives take turns.")
@names_option("--only", "Measurements: storages, memory, processes.  [default: all]")
@click.option(
    "--folder",
    type=PATH,
    metavar="DIR",
    help="Folder for temporary files.  [default: the system's]",
)
@json_option
def bench_scale(
    gigabytes: float, large: float, dim: int, repeats: int, only: list[str], folder: Path | None, as_json: bool
) -> None:
    """Compare file formats and engines with plain reads.

    \b
    Examples:
      python -m benchmarks scale
      python -m benchmarks scale --only storages --gigabytes 0.5
    """
    from benchmarks import scale

    with show_steps("measuring") as tell:
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
        show_table(title, scale.MODEL, found["model"], left=(0,))


def _check_ending(_context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a file that is not a figure, or whose folder does not exist, before any work."""
    if path is not None and not (path.suffix in (".png", ".svg", ".pdf") and path.parent.is_dir()):
        raise click.BadParameter(f"{path} must end in .png, .svg or .pdf, in a folder that exists", param=parameter)
    return path


@benchmarks.command("integration")
@quick_option("few cells")
@names_option("--only", "Measurements: values, times.  [default: all]")
@click.option(
    "--cap", default=75.0, show_default=True, metavar="SECONDS", help="Time limit for each metric of scib-metrics."
)
@data_option
@click.option("--plot", type=PATH, callback=_check_ending, metavar="FILE", help="Also draw the leaderboard.")
@json_option
def bench_integration(
    quick: bool, only: list[str], cap: float, data: Path | None, plot: Path | None, as_json: bool
) -> None:
    """Compare with scib-metrics on embeddings of cells.

    The values and the run time, for the same embeddings.

    \b
    Examples:
      python -m benchmarks integration --quick
      python -m benchmarks integration --only values --plot board.png
    """
    from benchmarks import integration
    from paper.real.folder import data_folder

    with show_steps("measuring") as tell:
        found = integration.run(
            quick=quick,
            only=tuple(only) or integration.PARTS,
            cap=cap,
            data=data_folder(data),
            plot=None if plot is None else lambda board: board.plot().savefig(plot, dpi=150),
            tell=tell,
        )
    if as_json:
        show_json(found)
        return
    for number, part in enumerate(found.values()):
        click.echo("\n" * (number > 0), nl=False)
        _show(part, as_json, left=(0,))
        click.echo(part["note"])


@benchmarks.command("coverage")
@quick_option("a few points, within a minute")
@number_option("--draws", None, "Number of draws per point.  [default: 2000; 200 with --quick]")
@workers_option
@folder_option("coverage")
@json_option
def bench_coverage(quick: bool, draws: int | None, workers: int | None, out: Path, as_json: bool) -> None:
    """Measure how often intervals cover and tests reject.

    Rows are drawn repeatedly from populations with a known CFD. To resume an interrupted study, run the same command
    again.

    \b
    Examples:
      python -m benchmarks coverage --quick
      python -m benchmarks coverage -o coverage --json
    """
    from benchmarks import coverage

    with show_progress("drawing", coverage.count_points(quick=quick), "points") as progress:
        found = coverage.run(out, quick=quick, draws=draws, workers=workers, progress=progress)
    if as_json:
        show_json(found)
        return
    title = f"{found['draws']:,} draws a point; {'all promises hold' if found['all_hold'] else 'not all promises hold'}"
    _show({"title": title, "header": coverage.SUMMARY, "rows": coverage.summary(found)}, as_json, left=(0, 1))
    written = sorted(path for path in out.glob("*.*") if path.stem in ("coverage", "tests"))
    show_files(written)


@benchmarks.command("drift")
@quick_option("few streams, within a minute or two")
@number_option("--draws", None, "Number of streams of each kind without drift.  [default: 200; 30 with --quick]")
@number_option("--streams", None, "Number of streams of each kind for all detectors.  [default: 4; 1 with --quick]")
@names_option("--only", "Measurements: rates, evidently, frouros.  [default: all]")
@click.option(
    "--folder",
    type=PATH,
    metavar="DIR",
    default=Path("bench-peers"),
    show_default=True,
    help="Folder in which evidently and frouros are installed, each in its own environment.",
)
@json_option
def bench_drift(
    quick: bool, draws: int | None, streams: int | None, only: list[str], folder: Path, as_json: bool
) -> None:
    """Count false alarms of drift and of other packages.

    Evidently and frouros are installed by pip into separate environments in --folder.

    \b
    Examples:
      python -m benchmarks drift --quick
      python -m benchmarks drift --only rates --json
    """
    from benchmarks import drift

    parts = only or ["rates", *drift.PACKAGES]
    check_known(parts, ["rates", *drift.PACKAGES], "part", "drift")
    found = {}
    if "rates" in parts:
        with show_progress("drawing", len(drift.kinds(quick)), "kinds") as progress:
            found["rates"] = drift.rates(quick=quick, draws=draws, progress=progress)
        _show_part(found["rates"], as_json, left=())
    peers = tuple(part for part in parts if part != "rates")
    if peers:
        with show_steps("comparing") as tell:
            found["peers"] = drift.side_by_side(folder, quick=quick, streams=streams, peers=peers, tell=tell)
        _show_part(found["peers"], as_json, left=(0,))
    if as_json:
        show_json(found)


def _show_part(found: dict[str, Any], as_json: bool, left: Collection[int]) -> None:
    """One table of several, as soon as it is there; JSON has to wait for all of them."""
    if not as_json:
        _show(found, as_json, left)
        click.echo("\n".join([*found.get("missing", []), ""]))


@benchmarks.command("report")
@number_option("--rows", 1_000_000, "Number of rows of the data set.")
@number_option("--groups", 100, "Number of groups to compare.")
@number_option("--repeats", 3, "Number of times that the page is opened.")
@json_option
def bench_report(rows: int, groups: int, repeats: int, as_json: bool) -> None:
    """Measure the size of a report and how fast it opens.

    The page is opened in Chromium.

    \b
    Examples:
      python -m benchmarks report
    """
    from benchmarks import report

    _show(report.run(rows=rows, groups=groups, repeats=repeats), as_json, left=(3,))


@benchmarks.command("startup")
@number_option("--repeats", 7, "Number of rounds, in which the alternatives take turns.")
@json_option
def bench_startup(repeats: int, as_json: bool) -> None:
    """Time `import crossfusion`, `--help` and a small comparison.

    \b
    Examples:
      python -m benchmarks startup
    """
    from benchmarks import startup

    _show(startup.run(repeats=repeats), as_json, left=(0,))


def _show(found: dict[str, Any], as_json: bool, left: Collection[int]) -> None:
    """What was measured, as a table or as JSON, with the machine it was measured on."""
    from benchmarks.machine import describe_machine

    if as_json:
        show_json({"machine": describe_machine(), **found})
    else:
        click.echo(describe_machine())
        show_table(found["title"], found["header"], found["rows"], left=left)
