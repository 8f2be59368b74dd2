"""The commands, one function each: read, ask, show."""

from collections.abc import Sequence
from inspect import signature
from pathlib import Path

import click
import numpy as np

from crossfusion import storage
from crossfusion._version import __version__
from crossfusion.baselines import distances
from crossfusion.cli import output, reading, tables
from crossfusion.cli.bench import bench
from crossfusion.cli.options import (
    PATH,
    between_option,
    given_option,
    json_option,
    names_option,
    nan_option,
    settings,
    vectors_option,
    weights_option,
)
from crossfusion.cli.reproduce import reproduce
from crossfusion.cli.test import test
from crossfusion.compare import cfd
from crossfusion.errors import InputError, warn
from crossfusion.hierarchy import HEADER
from crossfusion.sources import Source, open_files
from crossfusion.sources.arrays import read_rows
from crossfusion.sources.block import with_key
from crossfusion.text import label_text, number_text, percent, plain_value
from crossfusion.validation import NAN, check_known, check_option, finite_only


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, package_name="crossfusion")
def cli() -> None:
    """Measure how far groups of embeddings are fused or separated."""


cli.add_command(bench)
cli.add_command(reproduce)
cli.add_command(test)


@cli.command()
@click.argument("a", type=PATH)
@click.argument("b", type=PATH)
@names_option("--distance", "Show these distances instead; 'all' stands for every one there is.")
@click.option(
    "--option",
    "options",
    multiple=True,
    callback=settings,
    metavar="NAME=NUMBER",
    help="Option of the distances that have it, such as epsilon=0.5.",
)
@vectors_option
@weights_option
@click.option("--trim", default=0.0, metavar="SHARE", help="Share of each group's farthest rows to leave out.")
@nan_option
@json_option
def compare(
    a: Path,
    b: Path,
    distance: list[str],
    options: dict[str, float],
    vectors: str | None,
    weights: str,
    trim: float,
    nan: str,
    as_json: bool,
) -> None:
    """Distance between the rows of two files.

    \b
    Examples:
      crossfusion compare A.npy B.npy
      crossfusion compare A.parquet B.parquet --vectors embedding --weights balanced --json
      crossfusion compare A.npy B.npy --distance cfd,sinkhorn,mmd --option epsilon=0.5
    """
    if distance:
        if weights != "pooled" or trim:
            raise InputError("--weights and --trim do not go with --distance: leave it out, or them")
        _compare_by(distance, options, open_files([a, b], [], vectors), nan, as_json)
        return
    if options:
        raise InputError("--option goes with --distance: name the distances that have it")
    sources = open_files([a, b], [], vectors)
    if trim:
        fusion = cfd(read_rows(sources[0]), read_rows(sources[1]), weights=weights, trim=trim, nan=nan)
    else:
        keyed = [with_key(source, "group", name) for source, name in zip(sources, "ab", strict=True)]
        fusion = reading.reduced(keyed, nan=nan).cfd("group", weights=weights)
    if as_json:
        output.show_json(fusion.to_dict())
    else:
        tables.show_fusion(f"a: {a}   b: {b}", fusion)


def _compare_by(
    names: list[str], options: dict[str, float], sources: Sequence[Source], nan: str, as_json: bool
) -> None:
    """Show the distances asked for by name; of all there are, those that are undefined for these rows as a dash."""
    every = "all" in names
    names = list(distances) if every else list(dict.fromkeys(names))
    check_known(names, list(distances), "distance", "crossfusion")
    known = {name: [*signature(distances[name]).parameters][2:] for name in names}
    check_known(options, sorted({option for own in known.values() for option in own}), "option", "these distances")
    check_option(nan, NAN, "nan")
    rows = [finite_only(read_rows(source), source.name, nan) for source in sources]
    found: dict[str, float | None] = {}
    with output.progress("measuring", len(names), "distances") as progress:
        for name in names:
            try:
                found[name] = distances[name](*rows, **{own: options[own] for own in known[name] if own in options})
            except InputError as problem:
                if not every or name == "cfd":  # what cfd refuses is of no use to any
                    raise
                warn(f"{name} is left out: {problem}")
                found[name] = None
            if progress is not None:
                progress(1)
    if as_json:
        counts = {"a": len(rows[0]), "b": len(rows[1])}
        output.show_json(plain_value({"counts": counts, "dim": rows[0].shape[1], "distances": found}))
        return
    title = f"a: {sources[0].name}, {len(rows[0]):,} rows   b: {sources[1].name}, {len(rows[1]):,} rows"
    output.show_table(title, ["distance", "value"], [[name, number_text(value)] for name, value in found.items()])


@cli.command()
@click.argument("files", type=PATH, nargs=-1, required=True)
@names_option("--by", "Columns that define the groups.", required=True)
@vectors_option
@nan_option
@click.option("--min-count", default=0, metavar="ROWS", help="Leave out groups of fewer rows, and say which.")
@click.option("-o", "--output", "target", type=PATH, required=True, help="The summary to write (.parquet).")
@json_option
def summarize(
    files: tuple[Path, ...],
    by: list[str],
    vectors: str | None,
    nan: str,
    min_count: int,
    target: Path,
    as_json: bool,
) -> None:
    """Reduce files to the moments of their groups.

    \b
    Examples:
      crossfusion summarize embeddings.parquet --by site,label -o summary.parquet
      crossfusion summarize week1.csv week2.csv --by week --vectors 'dim_*' -o weeks.parquet
    """
    storage.check_target(target, files)
    summary = reading.reduced(open_files(files, by, vectors), nan=nan, min_count=min_count)
    summary.write(target)
    if as_json:
        facts = {"groups": len(summary), "rows": float(summary.moments.count.sum()), "dim": summary.dim}
        names = {"factors": summary.factors, "dropped": summary.dropped, "output": str(target)}
        output.show_json(plain_value(facts | names))
    else:
        click.echo(f"{summary!r}\nwritten to {target}")


@cli.command()
@click.argument("file", metavar="FILE_OR_SUMMARY", type=PATH)
@between_option
@given_option
@vectors_option
@weights_option
@nan_option
@click.option("--unbiased", is_flag=True, help="Show unbiased distances in the table.")
@json_option
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, a row a pair.")
def matrix(
    file: Path,
    between: list[str],
    given: list[str],
    vectors: str | None,
    weights: str,
    nan: str,
    unbiased: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Distances between all pairs of groups.

    \b
    Examples:
      crossfusion matrix summary.parquet --between scanner --given label
      crossfusion matrix embeddings.parquet --between site,scanner --csv > pairs.csv
    """
    if as_json and as_csv:
        raise InputError("--json and --csv exclude each other: choose one")
    summary = reading.summary_of(file, [*between, *given], vectors, nan)
    result = summary.pairwise(between, given=given, weights=weights)
    if as_json:
        output.show_json(result.to_dict())
    elif as_csv:
        names = [label_text(label) for label in result.labels]
        columns = (result.distance, result.unbiased, result.overlap)
        rows = [[names[i], names[j], *(plain_value(c[i, j]) for c in columns)] for i, j in tables.pairs(len(names))]
        output.show_csv(["group_a", "group_b", "distance", "unbiased", "overlap"], rows)
    else:
        values = np.where(result.overlap > 0, result.unbiased if unbiased else result.distance, np.nan)
        kind = f"{weights}, {'unbiased' if unbiased else 'plug-in'}"
        tables.show_matrix(result.labels, values, f"{tables.question(between, given)} ({kind})")
        tables.show_whole(summary, between, given, weights, result)


@cli.command()
@click.argument("file", metavar="FILE_OR_SUMMARY", type=PATH)
@names_option("--levels", "Factors from the outermost to the innermost.", required=True)
@vectors_option
@weights_option
@nan_option
@json_option
def hierarchy(file: Path, levels: list[str], vectors: str | None, weights: str, nan: str, as_json: bool) -> None:
    """Split the distance of nested groups over their levels.

    \b
    Examples:
      crossfusion hierarchy summary.parquet --levels site,scanner
    """
    result = reading.summary_of(file, levels, vectors, nan).hierarchy(levels, weights=weights)
    if as_json:
        output.show_json(result.to_dict())
        return
    output.show_table("Cross-Fusion Distance by level", HEADER, result.rows())


@cli.command()
@click.argument("file", metavar="FILE_OR_SUMMARY", type=PATH)
@between_option
@given_option
@click.option("--over", default="features", metavar="features|FACTOR", help="What contributes.")
@click.option("--top", default=20, metavar="N", help="Rows of the table; JSON has all.")
@vectors_option
@weights_option
@nan_option
@json_option
def attribution(
    file: Path,
    between: list[str],
    given: list[str],
    over: str,
    top: int,
    vectors: str | None,
    weights: str,
    nan: str,
    as_json: bool,
) -> None:
    """What the variance between groups is made of: features, or units such as patients.

    \b
    Examples:
      crossfusion attribution summary.parquet --between site --given label
      crossfusion attribution summary.parquet --between site --over patient --top 5
    """
    if top < 1:
        raise InputError(f"--top {top} must be 1 or more")
    needed = [*between, *given, *([] if over == "features" else [over])]
    summary = reading.summary_of(file, needed, vectors, nan)
    result = summary.attribution(between, given=given, over=over, weights=weights)
    if as_json:
        output.show_json(result.to_dict())
        return
    rows = [
        [label_text(result.labels[i]), percent(result.share[i]), number_text(result.without[i])]
        for i in result.top(top)
    ]
    more = f", {len(rows)} of {len(result.labels)}" if len(rows) < len(result.labels) else ""
    title = f"Share of the variance between {tables.question(between, given)}, largest first{more}"
    output.show_table(title, [over, "share", "distance without"], rows)
    tables.show_whole(summary, between, given, weights)


@cli.command()
@click.option("--out", type=PATH, default=Path("crossfusion-demo"), show_default=True, help="Folder for the files.")
@click.option("--rows", default=40000, show_default=True, help="Rows of the data set.")
@click.option("--seed", default=0, show_default=True, help="Seed of the data set.")
def demo(out: Path, rows: int, seed: int) -> None:
    """Make a data set with known truth, and measure it.

    \b
    Examples:
      crossfusion demo --out demo
    """
    from crossfusion import demo as job

    def run(arguments: list[str]) -> None:
        cli.main(arguments, prog_name="crossfusion", standalone_mode=False)

    job.run(out, rows=rows, seed=seed, echo=click.echo, command=run)


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that makes a shell complete this command.

    \b
    Examples:
      crossfusion completion bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    if maker is None:
        raise InputError(f"{shell} is not a shell that completion is known for: use bash, zsh or fish")
    click.echo(maker(cli, {}, "crossfusion", "_CROSSFUSION_COMPLETE").source())
