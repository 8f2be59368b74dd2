"""The commands that measure speed."""

import click

from crossfusion.cli import output
from crossfusion.cli.options import json_option


@click.group()
def bench() -> None:
    """Measure speed, as ratios in one run."""


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
    if as_json:
        output.show_json(found)
    else:
        output.show_table(found["title"], found["header"], found["rows"], left=(0, 1))


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
    if as_json:
        output.show_json(found)
    else:
        output.show_table(found["title"], found["header"], found["rows"], left=(0, 1))


@bench.command("intervals")
@click.option("--repeats", default=7, show_default=True, help="Rounds, in which the sides alternate.")
@json_option
def bench_intervals(repeats: int, as_json: bool) -> None:
    """Compare the cost of an interval with that of the distance alone.

    \b
    Examples:
      crossfusion bench intervals
    """
    from crossfusion.benchmarks import intervals

    found = intervals.run(repeats=repeats)
    if as_json:
        output.show_json(found)
    else:
        output.show_table(found["title"], found["header"], found["rows"], left=(0,))
