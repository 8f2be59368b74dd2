"""The commands, one function each: read, ask, show."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from crossfusion import storage
from crossfusion._version import __version__
from crossfusion.cli import output, tables
from crossfusion.collect import collect
from crossfusion.compare import cfd
from crossfusion.errors import InputError
from crossfusion.hierarchy import HEADER
from crossfusion.sources import Source, open_file, open_files
from crossfusion.sources.arrays import read_rows
from crossfusion.sources.block import with_key
from crossfusion.summary import Summary, read_summary
from crossfusion.text import label_text, number_text, percent, plain_value

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _names(_context: Any, parameter: click.Parameter, values: Sequence[str]) -> list[str]:
    """Names given as `a,b` or by repeating the option."""
    names = [name.strip() for value in values for name in value.split(",")]
    if not all(names):
        raise InputError(f"{parameter.opts[0]} has an empty name in {', '.join(map(repr, values))}: name a column")
    return names


def _names_option(name: str, text: str, required: bool = False) -> Decorator:
    return click.option(name, multiple=True, required=required, callback=_names, metavar="NAME[,NAME...]", help=text)


_between = _names_option("--between", "Factors whose combinations are compared.", required=True)
_given = _names_option("--given", "Factors to adjust for.")
_vectors = click.option("--vectors", metavar="COLUMN", help="Column of vectors, or a pattern such as 'dim_*'.")
_weights = click.option(
    "--weights",
    default="pooled",
    show_default=True,
    metavar="pooled|balanced",
    help="Groups weigh by rows, or the same.",
)
_nan = click.option("--nan", default="raise", metavar="raise|drop", help="What to do about rows with NaN or infinity.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_path = click.Path(path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, package_name="crossfusion")
def cli() -> None:
    """Measure how far groups of embeddings are fused or separated."""


@cli.command()
@click.argument("a", type=_path)
@click.argument("b", type=_path)
@_vectors
@_weights
@click.option("--trim", default=0.0, metavar="SHARE", help="Share of each group's farthest rows to leave out.")
@_nan
@_json
def compare(a: Path, b: Path, vectors: str | None, weights: str, trim: float, nan: str, as_json: bool) -> None:
    """Distance between the rows of two files.

    \b
    Examples:
      crossfusion compare A.npy B.npy
      crossfusion compare A.parquet B.parquet --vectors embedding --weights balanced --json
    """
    sources = open_files([a, b], [], vectors)
    if trim:
        fusion = cfd(read_rows(sources[0]), read_rows(sources[1]), weights=weights, trim=trim, nan=nan)
    else:
        keyed = [with_key(source, "group", name) for source, name in zip(sources, "ab", strict=True)]
        fusion = _collect(keyed, nan=nan).cfd("group", weights=weights)
    if as_json:
        output.show_json(fusion.to_dict())
    else:
        tables.show_fusion(f"a: {a}   b: {b}", fusion)


@cli.command()
@click.argument("files", type=_path, nargs=-1, required=True)
@_names_option("--by", "Columns that define the groups.", required=True)
@_vectors
@_nan
@click.option("--min-count", default=0, metavar="ROWS", help="Leave out groups of fewer rows, and say which.")
@click.option("-o", "--output", "target", type=_path, required=True, help="The summary to write (.parquet).")
@_json
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
    summary = _collect(open_files(files, by, vectors), nan=nan, min_count=min_count)
    summary.write(target)
    if as_json:
        facts = {"groups": len(summary), "rows": float(summary.moments.count.sum()), "dim": summary.dim}
        names = {"factors": summary.factors, "dropped": summary.dropped, "output": str(target)}
        output.show_json(plain_value(facts | names))
    else:
        click.echo(f"{summary!r}\nwritten to {target}")


@cli.command()
@click.argument("file", metavar="FILE_OR_SUMMARY", type=_path)
@_between
@_given
@_vectors
@_weights
@_nan
@click.option("--unbiased", is_flag=True, help="Show unbiased distances in the table.")
@_json
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
    summary = _summary(file, [*between, *given], vectors, nan)
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
@click.argument("file", metavar="FILE_OR_SUMMARY", type=_path)
@_names_option("--levels", "Factors from the outermost to the innermost.", required=True)
@_vectors
@_weights
@_nan
@_json
def hierarchy(file: Path, levels: list[str], vectors: str | None, weights: str, nan: str, as_json: bool) -> None:
    """Split the distance of nested groups over their levels.

    \b
    Examples:
      crossfusion hierarchy summary.parquet --levels site,scanner
    """
    result = _summary(file, levels, vectors, nan).hierarchy(levels, weights=weights)
    if as_json:
        output.show_json(result.to_dict())
        return
    output.show_table("Cross-Fusion Distance by level", HEADER, result.rows())


@cli.command()
@click.argument("file", metavar="FILE_OR_SUMMARY", type=_path)
@_between
@_given
@click.option("--over", default="features", metavar="features|FACTOR", help="What contributes.")
@click.option("--top", default=20, metavar="N", help="Rows of the table; JSON has all.")
@_vectors
@_weights
@_nan
@_json
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
    summary = _summary(file, needed, vectors, nan)
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
@click.option("--out", type=_path, default=Path("crossfusion-demo"), show_default=True, help="Folder for the files.")
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


@cli.group()
def bench() -> None:
    """Measure speed, as ratios in one run."""


@bench.command("moments")
@click.option("--gigabytes", default=1.6, show_default=True, help="Size of the rows.")
@click.option("--dim", default=256, show_default=True, help="Number of features.")
@click.option("--repeats", default=7, show_default=True, help="Rounds, in which the sides alternate.")
@_json
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


def _collect(sources: Sequence[Source], *, nan: str, min_count: int = 0) -> Summary:
    """Summary of sources, with notes and a bar while they are read."""
    output.show_notes(source.note for source in sources)
    with output.progress("reading", sum(source.rows for source in sources)) as progress:
        return collect(sources, nan=nan, min_count=min_count, progress=progress)


def _summary(path: Path, by: Sequence[str], vectors: str | None, nan: str) -> Summary:
    """Read a summary, or make one of a file."""
    if path.suffix.lower() in storage.ENDINGS and storage.facts_of(path) is not None:
        return read_summary(path)
    return _collect([open_file(path, list(dict.fromkeys(by)), vectors)], nan=nan)
