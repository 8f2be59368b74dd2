"""The command that checks data against a policy."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from crossfusion._base import InputError, arg, check_folder, write_text
from crossfusion.cli import end_output, options, output
from crossfusion.cli.row_reader import RowReader, reading_options
from crossfusion.gates import HEADER, LEFT, CheckResult, Data, Policy, check_rows, check_summary, read_policy

MULTIQC_ENDING = "_mqc.json"
COLORS = {"holds": "green", "broken": "red", "unanswered": "yellow"}


@click.command()
@click.argument("policy", metavar="POLICY")
@click.argument("file", metavar="[FILE_OR_SUMMARY]", required=False)
@click.option("--junit", type=options.PATH, metavar="FILE", help="Also write JUnit XML, with one test per rule.")
@click.option(
    "--multiqc",
    type=options.PATH,
    metavar="FILE",
    help=f"Also write a MultiQC section; the name must end in {MULTIQC_ENDING}.",
)
@click.option("--github", is_flag=True, help="Print annotations for GitHub Actions.")
@options.plot_option("the estimate that decided each rule")
@reading_options("vectors", "nan", "sql", "manifest", "on", "only_matched", "engine", "by_position")
@options.json_option
def check(
    policy: str,
    file: str | None,
    junit: Path | None,
    multiqc: Path | None,
    github: bool,
    plot: Path | None,
    read: RowReader,
    as_json: bool,
) -> None:
    """Check data against the rules of a policy.

    POLICY is a TOML file with rules. The command exits with 0 if all rules hold, with 1 if a rule is broken, and with 2
    if a rule cannot be answered, or if the policy or the data cannot be read.

    \b
    Examples:
      crossfusion check policy.toml embeddings.parquet
      crossfusion check policy.toml summary.parquet --junit check.xml --multiqc check_mqc.json
      crossfusion check policy.toml embeddings.parquet --github
    """
    if github and as_json:
        raise InputError(problem=f"{arg('github')} and {arg('as_json')} exclude each other", remedy="choose one")
    _check_targets(junit, multiqc)
    result = _check(read_policy(policy), file, read)
    output.write_plot(plot, result.plot)
    if junit is not None:
        write_text(junit, result.to_junit())
    if multiqc is not None:
        write_text(multiqc, json.dumps(result.to_multiqc(), indent=2))
    try:
        _show(result, github, as_json)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough; a broken rule is one all the same
        end_output()
    sys.exit(result.exit_code or None)


def _check_targets(junit: Path | None, multiqc: Path | None) -> None:
    """Refuse files that cannot be written, before any work."""
    for target in filter(None, (junit, multiqc)):
        check_folder(target)
    if multiqc is not None and not multiqc.name.endswith(MULTIQC_ENDING):
        raise InputError(
            "multiqc", str(multiqc), f"does not end in {MULTIQC_ENDING}, by which MultiQC finds it", "rename it"
        )


def _check(policy: Policy, file: str | None, read: RowReader) -> CheckResult:
    """The outcomes, from a summary or from rows."""
    if file is not None and read.is_summary(file):
        return check_summary(policy, read.read_summary(file, []))

    def open_data(names: Sequence[str]) -> Callable[[bool], Data]:
        sources, joined = read.open_sources([] if file is None else [file], names)
        return lambda whole: Data(read.read_rows(file, names) if whole else read.summarize(sources, joined))

    return check_rows(policy, open_data)


def _show(result: CheckResult, github: bool, as_json: bool) -> None:
    if as_json:
        output.show_json(result.to_dict())
    elif github:
        click.echo(result.to_github(), nl=False)
    else:
        styles = [["bold", COLORS[each.status], "", "", ""] for each in result.outcomes]
        output.show_table(result.summarize(), HEADER, result.rows(), styles, left=LEFT)
        for line in result.describe():
            click.echo(line)
