"""The command that makes a page of everything."""

from functools import partial
from pathlib import Path

import click

from crossfusion._base import InputError, arg, check_lens
from crossfusion.cli import options, output
from crossfusion.cli.fail_above import ask_pairs, enforce, fail_above_option
from crossfusion.cli.options import check_typed, find_typed_command, is_typed
from crossfusion.cli.row_reader import RowReader, file_argument, reading_options
from crossfusion.report import (
    Question,
    Report,
    ReportData,
    check_page,
    make_question,
    summarize_and_sample,
)


@click.command()
@file_argument
@options.between_option
@options.given_option
@options.units_option("intervals and tests count these")
@options.min_units_option
@options.time_option(required=False)
@click.option("--method", metavar="NAME", help="Factor whose values are versions of the same rows, to be compared.")
@options.reference_option("The version", "the one called none or raw")
@options.names_option("--factors", "Factors from the outermost to the innermost.  [default: --between, then --units]")
@options.balanced_option
@options.level_option
@options.permutations_option
@options.seed_option("the permutations and of the sampled rows")
@click.option("--expect", metavar="fused|apart", help="What groups should do: batches fuse, classes separate.")
@click.option("--fused-within", type=float, metavar="CFD", help="Largest CFD that does not matter, to show agreement.")
@fail_above_option
@click.option("--title", metavar="TITLE", help="Title of the page.")
@options.file_option("The page", default=Path("report.html"), show_default=True)
@reading_options()
@options.json_option
def report(
    file: str | None,
    between: list[str],
    given: list[str],
    units: list[str],
    min_units: int,
    time: str | None,
    method: str | None,
    reference: str | None,
    factors: list[str],
    level: float,
    permutations: int,
    seed: int,
    expect: str | None,
    fused_within: float | None,
    fail_above: float | None,
    title: str | None,
    target: Path,
    weights: str,
    read: RowReader,
    as_json: bool,
) -> None:
    """Write an HTML report on how far groups are separated.

    The report is one self-contained file, with warnings about misleading results. A summary is enough; from rows, the
    page also shows a sample of them. With --json, the contents of the page are printed, and the page is written only
    if -o is given.

    \b
    Examples:
      crossfusion report embeddings.parquet --between scanner --given tissue --units patient -o report.html
      crossfusion report summary.parquet --between site --units patient --expect fused --fused-within 0.01
      crossfusion report corrected.parquet --between scanner --given tissue --units patient --method normalizer
    """
    check_typed(["min_units"], f"{arg('units')}", bool(units))
    if fail_above is not None and method is not None:
        raise InputError(
            "fail_above", problem=f"cannot be combined with {arg('method')}", remedy="pass the rows of one version"
        )
    question = make_question(
        between,
        given,
        units,
        time,
        method,
        reference,
        factors or None,
        weights,
        level,
        permutations,
        seed,
        min_units,
        expect,
        fused_within,
    )
    written = not as_json or is_typed("target")
    if written:
        check_page(target)
    data = _read(file, question, read)
    with output.show_steps("computing"):
        made = Report._from_data(data, title, find_typed_command())
    if written:
        made.write(target)
    with enforce(ask_pairs(fail_above, data.summary, between, given, weights, units, min_units)):
        if as_json:
            output.show_json(made.to_dict())
        else:
            click.echo(f"{made!r}\nwritten to {target}")


def _read(file: str | None, question: Question, read: RowReader) -> ReportData:
    """A summary, and some of the rows where threads of this process read them."""
    factors = list(question.factors)
    if read.is_summary(file):
        return ReportData(read.read_summary(file, factors), question)
    sources, joined = read.open_sources([] if file is None else [file], factors)
    lens = read.find_lens(sources, joined)
    check_lens(lens, adds_factors=False)
    if read.engine in ("auto", "local"):
        reduce = partial(read.summarize, joined=joined, lens=lens)
        return summarize_and_sample(sources, question, reduce, lens)
    return ReportData(read.summarize(sources, joined, lens=lens), question)
