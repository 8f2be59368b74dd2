"""The command that makes a page of everything."""

import shlex
from pathlib import Path

import click

from crossfusion.cli import output
from crossfusion.cli.options import (
    ARGUMENTS,
    PATH,
    between_option,
    given_option,
    json_option,
    names_option,
    weights_option,
)
from crossfusion.cli.reading import Reading, file_argument, reading_options
from crossfusion.report import Report, check_page
from crossfusion.report.data import Data, drawn
from crossfusion.report.question import Question, asked


@click.command()
@file_argument
@between_option
@given_option
@names_option("--units", "Columns of what is independent, such as patients: intervals and tests count these.")
@click.option("--time", metavar="NAME", help="Column of periods, such as the week.")
@click.option("--method", metavar="NAME", help="Column whose values are versions of the same rows, to be compared.")
@click.option("--reference", metavar="VALUE", help="The version that the others are compared with; the first one.")
@names_option("--levels", "Factors from the outermost to the innermost; by default those of --between, then --units.")
@click.option("--level", default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--permutations", default=999, show_default=True, metavar="N", help="Rearrangements of each test.")
@click.option("--seed", default=0, show_default=True, help="Seed of the permutations, and of the rows that are drawn.")
@click.option("--title", metavar="TEXT", help="Title of the page.")
@click.option(
    "-o", "--output", "path", type=PATH, default=Path("report.html"), show_default=True, help="The page to write."
)
@weights_option
@reading_options()
@json_option
def report(
    file: str | None,
    between: list[str],
    given: list[str],
    units: list[str],
    time: str | None,
    method: str | None,
    reference: str | None,
    levels: list[str],
    level: float,
    permutations: int,
    seed: int,
    title: str | None,
    path: Path,
    weights: str,
    read: Reading,
    as_json: bool,
) -> None:
    """Write one self-contained page: what is apart, by how much, whether it is real, and what could mislead.

    A summary is enough; from rows the page also shows the cloud itself. With --json the data of the page are printed.

    \b
    Examples:
      crossfusion report embeddings.parquet --between scanner --given tissue --units patient -o report.html
      crossfusion report summary.parquet --between site --units patient
      crossfusion report corrected.parquet --between scanner --given tissue --units patient --method normaliser
    """
    question = asked(between, given, units, time, method, reference, levels or None, weights, level, permutations, seed)
    if not as_json:
        check_page(path)
    data = _read(file, question, read)
    with output.steps("computing"):
        typed = click.get_current_context().meta.get(ARGUMENTS, [])
        made = Report._of(data, title, shlex.join(["crossfusion", *typed]))
    if as_json:
        output.show_json(made.to_dict())
        return
    made.write(path)
    click.echo(f"{made!r}\nwritten to {path}")


def _read(file: str | None, question: Question, read: Reading) -> Data:
    """A summary, and some of the rows where threads of this process read them."""
    factors = list(question.factors)
    if read.is_summary(file):
        return Data(read.summary(file, factors), question)
    sources, joined = read.sources([] if file is None else [file], factors)
    if read.engine in ("auto", "local"):
        return drawn(sources, question, lambda watched: read.reduced(watched, joined))
    return Data(read.reduced(sources, joined), question)
