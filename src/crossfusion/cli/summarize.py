"""The commands that make summaries: of rows, and of other summaries."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossfusion._base import (
    InputError,
    arg,
    as_tags,
    check_option,
    check_tags,
    check_wait,
    check_whole,
    count_text,
    plain_number,
    plain_value,
)
from crossfusion.cli import output
from crossfusion.cli.options import PATH, file_option, json_option, names_option, number_option
from crossfusion.cli.row_reader import SHARED_OPTIONS, RowReader, reading_options
from crossfusion.io import Checkpoint, ManifestJoin, find_features
from crossfusion.summary import (
    SMALL_OPTIONS,
    WAIT_SECONDS,
    Summary,
    append_summary,
    check_appendable,
    check_appendable_features,
    check_appendable_lens,
    merge_summaries,
    storage,
    suppress_small,
)

if TYPE_CHECKING:
    from crossfusion.lens import Lens


def _parse_tags(_context: Any, _parameter: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """Tags given as `name=value`, by repeating the option."""
    found: dict[str, str] = {}
    for value in values:
        name, equals, said = (part.strip() for part in value.partition("="))
        if not (name and equals and said):
            raise InputError("tags", value, "is not NAME=VALUE", "write encoder=virchow")
        if found.setdefault(name, said) != said:
            raise InputError("tags", name, f"is given as {found[name]!r} and as {said!r}", "give it once")
    return as_tags(found)


def small_options(command: Any) -> Any:
    """What to do about small groups."""
    least = number_option("--min-count", 0, "Minimum number of rows per group; smaller groups are dropped or merged.")
    way = click.option(
        "--small",
        default=SMALL_OPTIONS[0],
        show_default=True,
        metavar="|".join(SMALL_OPTIONS),
        help="Drop small groups, or merge those that differ only in the last factors; a warning names them.",
    )
    return least(way(command))


@click.command()
@click.argument("files", metavar="[FILE]...", nargs=-1)
@names_option("--by", "Columns that define the groups.", required=True)
@reading_options()
@small_options
@click.option(
    "--tag",
    "tags",
    multiple=True,
    callback=_parse_tags,
    metavar="NAME=VALUE",
    help="Property of all rows; may be repeated.",
)
@file_option("The summary (.parquet)", required=True)
@click.option("--append", is_flag=True, help="Add to the summary in -o instead of replacing it.")
@click.option(
    "--wait",
    type=float,
    metavar="SECONDS",
    help=f"How long --append waits for other processes that write.  [default: {WAIT_SECONDS:g}]",
)
@json_option
def summarize(
    files: tuple[str, ...],
    by: list[str],
    read: RowReader,
    min_count: int,
    small: str,
    tags: dict[str, str],
    target: Path,
    append: bool,
    wait: float | None,
    as_json: bool,
) -> None:
    """Reduce rows to the moments of their groups, in one pass.

    Rows are read from files, folders, patterns, URLs or queries, in chunks.

    \b
    Examples:
      crossfusion summarize embeddings.parquet --by site,label -o summary.parquet
      crossfusion summarize week1.csv week2.csv --by week --vectors 'dim_*' -o weeks.parquet
      crossfusion summarize week3.csv --by week --vectors 'dim_*' --append -o weeks.parquet
      crossfusion summarize lake/ --by site,week -o lake.parquet
      crossfusion summarize 'features/*.h5' --manifest slides.csv --on file --by scanner -o s.parquet
      crossfusion summarize embeddings.parquet --by site --lens lens.safetensors -o s.parquet
      crossfusion summarize embeddings.parquet --by site --tag encoder=virchow --min-count 10 -o s.parquet
    """
    _check(target, [Path(file) for file in files], min_count, small)
    inside = next(
        (file for file in files if Path(file).is_dir() and Path(file).resolve() in target.resolve().parents), None
    )
    if inside is not None:
        raise InputError("target", target, f"is in {inside}, which is read", "write it elsewhere")
    check_tags(tags, by)
    if wait is not None and not append:
        raise InputError("wait", problem=f"goes with {arg('append')}", remedy="leave it out")
    if append:
        check_wait(WAIT_SECONDS if wait is None else wait)
    sources, joined = read.open_sources(files, by)
    lens = read.find_lens(sources, joined)
    added = () if lens is None else lens.factors
    check_tags(tags, added)
    if append:
        check_appendable_lens(target, None if lens is None else lens.digest)
        check_appendable(target, [*by, *added], tags)
        features = find_features(sources) if lens is None else lens.name_features(find_features(sources))
        check_appendable_features(target, features, by_position=read.by_position)
    keeper = read.make_checkpoint(target, files, by, lens)
    found = replace(_reduce(read, sources, joined, keeper, lens), tags=tags)
    summary = suppress_small(found, min_count, small)
    rows = plain_number(float(summary.moments.count.sum()))
    if append:
        summary = append_summary(
            summary, target, wait=WAIT_SECONDS if wait is None else wait, by_position=read.by_position
        )
    else:
        summary.write(target)
    if keeper is not None:
        keeper.done()
    _show(
        summary, target, as_json, f"{count_text(rows, 'row')} added to {target}" if append else f"written to {target}"
    )


def _reduce(
    read: RowReader,
    sources: Sequence[Any],
    joined: ManifestJoin | None,
    keeper: Checkpoint | None,
    lens: "Lens | None",
) -> Summary:
    """Summary of sources; says where what is done is kept, and that it was gone on with."""
    try:
        summary = read.summarize(sources, joined, keeper, lens)
    except KeyboardInterrupt:
        if keeper is not None and keeper.path.exists():
            click.echo(f"crossfusion: what is done is in {keeper.path}: the same command goes on from there", err=True)
        raise
    if keeper is not None and keeper.rows:
        click.echo(f"crossfusion: went on after {count_text(keeper.rows, 'row')} that were read before", err=True)
    return summary


@click.command()
@click.argument("summaries", type=PATH, metavar="SUMMARY...", nargs=-1, required=True)
@small_options
@file_option("The summary (.parquet)", required=True)
@SHARED_OPTIONS["by_position"]
@json_option
def merge(
    summaries: tuple[Path, ...], min_count: int, small: str, target: Path, by_position: bool, as_json: bool
) -> None:
    """Add up summaries of different rows or sites.

    \b
    Examples:
      crossfusion merge north.parquet south.parquet -o all.parquet
      crossfusion merge sites/*.parquet --min-count 10 --small merge -o all.parquet
    """
    _check(target, summaries, min_count, small)
    summary = merge_summaries(summaries, min_count=min_count, small=small, by_position=by_position)
    summary.write(target)
    _show(summary, target, as_json, f"written to {target}")


def _check(target: Path, inputs: Sequence[Path], min_count: int, small: str) -> None:
    """Refuse, before any work, what would fail after it."""
    storage.check_target(target, inputs)
    check_whole(min_count, "min_count", least=0)
    check_option(small, SMALL_OPTIONS, "small")
    if small != SMALL_OPTIONS[0] and not min_count:
        raise InputError("small", small, f"goes with {arg('min_count')}", "say which groups are small")


def _show(summary: Summary, target: Path, as_json: bool, done: str) -> None:
    """A summary, and what became of it."""
    if not as_json:
        click.echo(f"{summary!r}\n{done}")
        return
    facts = {"groups": len(summary), "rows": float(summary.moments.count.sum()), "dim": summary.dim}
    names = {"features": summary.features, "factors": summary.factors, "tags": dict(summary.tags), "lens": summary.lens}
    output.show_json(plain_value(facts | names | {"dropped": summary.dropped, "output": str(target)}))
