"""The commands that reproduce the paper."""

from pathlib import Path
from typing import Any

import click

from paper.console import show_files, show_json, show_progress, show_steps, show_table, terminal_width
from paper.options import (
    SETTINGS,
    Commands,
    data_option,
    folder_option,
    json_option,
    names_option,
    number_option,
    numbers_option,
    quick_option,
    seed_option,
    workers_option,
)

WIDE = 130  # columns of a terminal that the whole table of claims takes
_quick = quick_option("small settings, within a minute or two")


@click.group(cls=Commands, context_settings=SETTINGS)
def paper() -> None:
    """Reproduce the paper's experiments and check its claims.

    \b
    Examples:
      python -m paper claims --quick
    """


@paper.command()
@names_option(
    "--experiment",
    "Experiments: displacement, dispersion, scaling, topology, outliers, imbalance, covariance.  [default: all]",
)
@numbers_option("--dims", int, "Numbers of features.  [default: 32,128]")
@numbers_option("--sizes", int, "Numbers of rows per group.  [default: 300,1000]")
@number_option("--trials", None, "Number of Monte Carlo repetitions.  [default: 50]")
@workers_option
@_quick
@folder_option("reproduction/synthetic")
@click.option("--spread", type=float, metavar="SD", help="Standard deviation of the mixture's means.  [default: 1]")
@numbers_option("--sigmas", float, "Spreads of a component (dispersion).  [default: 0.5,0.75,1,1.5,2,3]")
@click.option(
    "--delta",
    "base_delta",
    type=float,
    metavar="SHIFT",
    help="Shift in experiments that vary another factor.  [default: 2]",
)
@click.option(
    "--radius", type=float, metavar="LENGTH", help="Distance of the means from the origin (topology).  [default: 4]"
)
@click.option(
    "--trim",
    type=float,
    metavar="SHARE",
    help="Share of the farthest rows of each group to leave out.  [default: 0.05]",
)
def synthetic(experiment: list[str], workers: int | None, quick: bool, out: Path, **choices: Any) -> None:
    """Run the synthetic study: experiments, figures, tables.

    To resume an interrupted study, run the same command again.

    \b
    Examples:
      python -m paper synthetic --quick
      python -m paper synthetic --experiment displacement,outliers --dims 128 --sizes 300
    """
    from paper import synthetic as study

    given = {name: value for name, value in choices.items() if value is not None}
    if experiment and experiment != ["all"]:
        given["experiments"] = tuple(experiment)
    settings = study.Settings.quick(**given) if quick else study.Settings(**given)
    with show_progress("measuring", study.count_pairs(settings), "pairs") as progress:
        table = study.run(out, settings, workers=workers, progress=progress)
    written = [*study.write_tables(out), *study.write_figures(out)]
    click.echo(f"{table.num_rows:,} pairs in {out / 'trials.parquet'}")
    show_files(written)


@paper.command()
@seed_option("the groups")
@folder_option("reproduction/decomposition", has_quick=False)
@json_option
def decomposition(seed: int, out: Path, as_json: bool) -> None:
    """Draw the paper's first figure, a split of optimal transport.

    The figure splits the transport cost into translation and deformation.

    \b
    Examples:
      python -m paper decomposition
    """
    from paper import decomposition as study

    with show_steps("transporting") as tell:
        found = study.run(out, seed=seed, progress=tell)
    if as_json:
        show_json(found)
    else:
        show_files(sorted(out.glob("decomposition.*")))


@paper.command()
@number_option("--dim", 128, "Number of features.")
@click.option(
    "--cap", type=float, metavar="SECONDS", help="Skip calls that would take longer.  [default: 10; less with --quick]"
)
@number_option("--largest", None, "Largest number of rows per group.  [default: 1000000; fewer with --quick]")
@_quick
@folder_option("reproduction/runtime")
def runtime(dim: int, cap: float | None, largest: int | None, quick: bool, out: Path) -> None:
    """Time every distance against the number of rows.

    The study also fits growth exponents.

    \b
    Examples:
      python -m paper runtime --quick
    """
    from paper import runtime as study

    given = {name: value for name, value in {"cap": cap, "largest": largest}.items() if value is not None}
    limits: dict[str, Any] = {**(study.QUICK if quick else {}), **given}
    with show_steps("timing") as tell:
        study.run(out, dim=dim, progress=tell, **limits)
    click.echo((out / "runtime.md").read_text(encoding="utf-8"))
    show_files(sorted(out.glob("runtime.*")))


@paper.command()
@workers_option
@_quick
@folder_option("reproduction")
@json_option
def claims(workers: int | None, quick: bool, out: Path, as_json: bool) -> None:
    """Check the paper's claims; run the studies they need.

    \b
    Examples:
      python -m paper claims --quick
    """
    from paper import claims as ledger

    with show_steps("looking for studies") as tell:
        found = ledger.run(out, quick=quick, workers=workers, progress=tell)
    if as_json:
        show_json({"claims": [claim.to_dict() for claim in found]})
        return
    rows, shown = ledger.rows(found), range(len(ledger.HEADER))
    if terminal_width() < WIDE:  # room for the claim and the verdict
        shown = range(0, len(ledger.HEADER) - 1, 2)
    table = [[row[k] for k in shown] for row in (ledger.HEADER, *rows)]
    show_table("Claims of the paper", table[0], table[1:], left=range(len(table[0])))
    show_files(sorted(out.glob("claims.*")))


@paper.command()
@data_option
@names_option("--only", "Data sets to use, such as mitos_he,pacs.  [default: all]")
@workers_option
@_quick
@folder_option("reproduction/real")
@json_option
def real(data: Path | None, only: list[str], workers: int | None, quick: bool, out: Path, as_json: bool) -> None:
    """Evaluate distances on real data: scanners, centers, batches.

    To resume an interrupted study, run the same command again.

    \b
    Examples:
      python -m paper real --quick
      python -m paper real --data ../shared/data --only mitos_he,pacs
    """
    from paper import real as study

    with show_steps("reading") as tell:
        found = study.run(out, data, only=only, quick=quick, workers=workers, progress=tell)
    if as_json:
        show_json({"data": [result.to_dict() for result in found]})
        return
    click.echo((out / "reading.md").read_text(encoding="utf-8"), nl=False)
    show_files([out / f"real.{ending}" for ending in ("html", "md", "json")])


@paper.command()
@data_option
@seed_option("the first run")
@workers_option
@click.option("--cost-again", is_flag=True, help="Time the training steps again; keep the trained networks.")
@_quick
@folder_option("reproduction/training")
@json_option
def training(
    data: Path | None,
    seed: int,
    workers: int | None,
    cost_again: bool,
    quick: bool,
    out: Path,
    as_json: bool,
) -> None:
    """Train networks against CFD, CORAL, MMD and an adversary.

    Measures the accuracy on another domain and the cost of a training step, for digits under two simulated scanners
    and, if the data are available, for domains of images. To resume an interrupted study, run the same command again.

    \b
    Examples:
      python -m paper training --quick
      python -m paper training --data ../shared/data -o study
    """
    from paper import training as study

    settings = study.Settings.quick(seed) if quick else study.Settings(seed=seed)
    with show_steps("reading") as tell:
        found = study.run(out, data, settings=settings, workers=workers, cost_again=cost_again, progress=tell)
    if as_json:
        show_json({"outcomes": [outcome.to_dict() for outcome in found]})
        return
    click.echo((out / "reading.md").read_text(encoding="utf-8"), nl=False)
    show_files([out / f"training.{ending}" for ending in ("html", "md", "json")])
