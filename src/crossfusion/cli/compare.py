"""The command that compares two files."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from crossfusion._base import (
    NAN_OPTIONS,
    InputError,
    NamedRows,
    arg,
    check_lens,
    check_option,
    check_positive,
    level_text,
    number_text,
    plain_value,
    quantity_text,
    require_finite,
    warn,
)
from crossfusion.arrays import cfd, permutation_test
from crossfusion.cli import options, output, result_tables
from crossfusion.cli.fail_above import ask_fusion, enforce, fail_above_option
from crossfusion.cli.fused_pairs import MARGIN_LEVEL
from crossfusion.cli.options import check_typed
from crossfusion.cli.row_reader import RowReader, reading_options
from crossfusion.fusion import Fusion, join_cautions
from crossfusion.io import Source, add_keys, find_features, read_rows, stack_rows

if TYPE_CHECKING:
    from crossfusion.lens import Lens


@click.command()
@click.argument("files", metavar="A B", nargs=-1)
@options.distance_option("[default: cfd, with its variances]")
@options.distance_settings_option
@options.weights_option
@click.option(
    "--trim",
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Share of rows to drop from each group, farthest first.",
)
@options.scale_option
@options.interval_option
@options.test_option
@click.option(
    "--fused-within",
    "margin",
    type=float,
    metavar="MARGIN",
    help="Largest CFD that does not matter: tests whether the upper 90% limit is below it.",
)
@options.seed_option("the permutations")
@fail_above_option
@options.plot_option("the variance within and between")
@reading_options("vectors", "nan", "sql", "lens", "by_position")
@options.json_option
def compare(
    files: tuple[str, ...],
    distance: list[str],
    options: dict[str, float],
    weights: str,
    trim: float,
    scale: str | None,
    level: float | None,
    permutations: int | None,
    margin: float | None,
    seed: int,
    fail_above: float | None,
    plot: Path | None,
    read: RowReader,
    as_json: bool,
) -> None:
    """Compare the rows of two files, folders or queries.

    Files come before queries. Intervals and tests assume independent rows.

    \b
    Examples:
      crossfusion compare A.npy B.npy
      crossfusion compare A.parquet B.parquet --vectors embedding --weights balanced --json
      crossfusion compare A.npy B.npy --level 0.95 --permutations 999
      crossfusion compare A.npy B.npy --fused-within 0.01
      crossfusion compare january/ 'february/*.parquet'
      crossfusion compare A.npy B.npy --distance cfd,sinkhorn,mmd --option epsilon=0.5
    """
    check_typed(["seed"], f"{arg('permutations')}, and is an {arg('options')} of distances", permutations is not None)
    if distance:
        asked = (level, permutations, margin, fail_above, plot)
        if weights != "pooled" or trim or scale or any(value is not None for value in asked):
            raise InputError(
                problem=f"{arg('weights')}, {arg('trim')}, {arg('scale')}, {arg('level')}, {arg('permutations')},"
                f" {arg('margin')}, {arg('fail_above')} and {arg('plot')} cannot be combined with {arg('distance')}",
                remedy="leave out one or the other",
            )
        _compare_by(distance, options, read, _open_two(read, files), as_json)
        return
    if options:
        raise InputError("options", problem=f"goes with {arg('distance')}", remedy="name the distances that have it")
    sources = _open_two(read, files)
    keyed, lens = _find_lens(read, sources)
    if margin is not None:
        check_positive(margin, "margin")
        level = MARGIN_LEVEL if level is None else level
    if trim or level is not None or permutations is not None:
        fusion = _compare_rows(sources, weights, trim, read.nan, level, permutations, seed, lens, scale)
    else:
        fusion = read.summarize(keyed, lens=lens).cfd("group", weights=weights, scale=scale)
    output.write_plot(plot, fusion.plot)
    with enforce(ask_fusion(fail_above, fusion, f"{sources[0].name} and {sources[1].name}")):
        if as_json:
            asked_margin = {} if margin is None else {"margin": margin, "fused_within": fusion.fused_within(margin)}
            output.show_json(fusion.to_dict() | asked_margin)
        else:
            result_tables.show_fusion(f"a: {sources[0].name}   b: {sources[1].name}", fusion)
            if margin is not None:
                click.echo(_describe_margin(fusion, margin))


def _describe_margin(fusion: Fusion, margin: float) -> str:
    """Say whether the groups are shown to be fused within a margin."""
    found, limits = fusion.fused_within(margin), fusion.limits(MARGIN_LEVEL)
    if found is None or limits is None:
        reason = fusion.reason or "the group means are equal by construction"
        return f"fused within {margin:g}: no answer, because {reason}"
    side = "below" if found else "not below"
    return (
        f"fused within {margin:g}: {'yes' if found else 'not shown'}, the upper limit"
        f" {number_text(limits[1])} at {level_text(MARGIN_LEVEL)} confidence is {side} the margin (alpha 0.05)"
    )


def _open_two(read: RowReader, files: Sequence[str]) -> Sequence[Source]:
    """The two sources to compare."""
    number = len(files) + len(read.sql)
    if number != 2:
        raise InputError(
            problem=f"compare takes two files or queries, not {number}",
            remedy="put the files of each group into a folder",
        )
    sources, _ = read.open_sources(files, [])
    return sources


def _find_lens(read: RowReader, sources: Sequence[Source]) -> "tuple[list[Source], Lens | None]":
    """The sources as groups a and b, and the lens that is asked for, which may be fitted on them."""
    keyed = [add_keys(source, {"group": name}) for source, name in zip(sources, "ab", strict=True)]
    lens = replace(read, groups=("group",)).find_lens(keyed)
    check_lens(lens, adds_factors=False)
    return keyed, lens


def _compare_rows(
    sources: Sequence[Source],
    weights: str,
    trim: float,
    nan: str,
    level: float | None,
    permutations: int | None,
    seed: int,
    lens: "Lens | None",
    scale: str | None,
) -> Fusion:
    """Distance with what needs the rows themselves: trimming, an interval, a test."""
    check_option(nan, NAN_OPTIONS, "nan")
    if trim and (level is not None or permutations is not None):
        raise InputError(
            "trim",
            problem=f"cannot be combined with {arg('level')}, {arg('permutations')} or {arg('margin')}, which take all"
            " rows",
            remedy="leave one out",
        )
    names = find_features(sources) or ()
    a, b = (read_rows(source) for source in sources)
    if permutations is None:
        both = (NamedRows(a, names), NamedRows(b, names))
        return cfd(*both, weights=weights, trim=trim, nan=nan, level=level, lens=lens, scale=scale)
    kept = [require_finite(rows, source.name, nan) for rows, source in zip((a, b), sources, strict=True)]
    fusion = cfd(*(NamedRows(rows, names) for rows in kept), weights=weights, level=level, lens=lens, scale=scale)
    labels = np.repeat([0, 1], [rows.shape[0] for rows in kept])
    stacked = NamedRows(stack_rows(kept), names)
    tested = permutation_test(stacked, labels, permutations=permutations, seed=seed, lens=lens, scale=scale)
    dropped = a.shape[0] + b.shape[0] - len(labels)
    asked = {name: getattr(tested, name) for name in ("statistic", "statistic_name", "pvalue", "permutations")}
    return replace(fusion, dropped=dropped, caution=join_cautions(fusion.caution, tested.caution), **asked)


def _compare_by(
    names: list[str], options: dict[str, float], read: RowReader, sources: Sequence[Source], as_json: bool
) -> None:
    """Show the distances asked for by name; of all there are, those that are undefined for these rows as a dash."""
    from crossfusion.cli.protocol_options import as_dense, choose_distances
    from crossfusion.evaluation import distances

    every = "all" in names
    chosen = choose_distances(names, options)
    check_option(read.nan, NAN_OPTIONS, "nan")
    _, lens = _find_lens(read, sources)
    rows = [as_dense(require_finite(read_rows(source), source.name, read.nan)) for source in sources]
    rows = rows if lens is None else [lens(own) for own in rows]
    found: dict[str, float | None] = {}
    with output.show_progress("measuring", len(chosen), "distances") as progress:
        for name, own in chosen.items():
            try:
                found[name] = distances[name](*rows, **own)
            except InputError as problem:
                if not every or name == "cfd":  # what cfd refuses is of no use to any
                    raise
                warn(f"{name} is left out: {problem.marked}")
                found[name] = None
            if progress is not None:
                progress(1)
    counts = {name: part.shape[0] for name, part in zip("ab", rows, strict=True)}
    if as_json:
        output.show_json(plain_value({"counts": counts, "dim": rows[0].shape[1], "distances": found}))
        return
    title = "   ".join(f"{k}: {source.name}, {counts[k]:,} rows" for k, source in zip("ab", sources, strict=True))
    output.show_table(title, ["distance", "value"], [[name, quantity_text(value)] for name, value in found.items()])
