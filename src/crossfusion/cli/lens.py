"""The commands that fit a lens, and show what is in its file."""

from pathlib import Path
from typing import Any

import click

from crossfusion._base import FileError, InputError, check_folder
from crossfusion.cli import output
from crossfusion.cli.options import PATH, file_option, is_typed, json_option, names_option, number_option, seed_option
from crossfusion.cli.row_reader import RowReader, reading_options
from crossfusion.lens import LENS_ENDING, NAMES, Lens, Training, fit_named
from crossfusion.lens import read as read_lens

OPTIONS = ("features", "bandwidth", "regions", "rank", "shrinkage", "seed")  # that some lens has


@click.group()
def lens() -> None:
    """Fit a lens, a map of rows, and show lens files.

    A lens maps each row before it is reduced, so that distances see more than the means of raw features: unit length,
    features in units of their standard deviation, whitened features, a kernel, or regions. Give its file to any command
    that reads rows as --lens FILE.

    \b
    Examples:
      crossfusion lens fit kernel embeddings.parquet -o lens.safetensors
      crossfusion lens show lens.safetensors
    """


def _parse_bandwidth(_context: Any, _parameter: click.Parameter, value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value


@lens.command()
@click.argument("kind", metavar="|".join(NAMES))
@click.argument("files", metavar="[FILE]...", nargs=-1)
@names_option("--by", "Factors within whose groups standard deviations and correlations are measured.")
@number_option("--features", 1024, "Number of features of a kernel.")
@click.option(
    "--bandwidth",
    default="median",
    show_default=True,
    callback=_parse_bandwidth,
    metavar="H|median",
    help="Width of a kernel, or the median distance.",
)
@number_option("--regions", 64, "Number of regions of a codebook.")
@number_option("--rank", None, "Number of directions that are whitened one by one.  [default: all, or 256 of many]")
@click.option(
    "--shrinkage",
    type=float,
    metavar="SHARE",
    help="Weight of the identity in whitened correlations.  [default: estimated]",
)
@seed_option("sampled rows and random features")
@click.option("--after", type=PATH, metavar="FILE", help="A lens that is applied first; the new file contains both.")
@reading_options("vectors", "nan", "sql", "manifest", "on", "only_matched", "by_position")
@file_option("The lens (.safetensors)", required=True)
@json_option
def fit(
    kind: str,
    files: tuple[str, ...],
    by: list[str],
    after: Path | None,
    read: RowReader,
    target: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Fit a lens on rows and write it to a file.

    Several lenses are joined by +, such as standardize+kernel: each is fitted on rows seen through those before it.

    \b
    Examples:
      crossfusion lens fit standardize embeddings.parquet --by site,label -o lens.safetensors
      crossfusion lens fit kernel embeddings.parquet --features 512 -o lens.safetensors
      crossfusion lens fit standardize+codebook embeddings.parquet --by site --regions 128 -o lens.safetensors
    """
    _check_target(target, files)
    sources, joined = read.open_sources(files, by)
    first = None if after is None else read_lens(after)
    typed = {name: options[name] for name in OPTIONS if is_typed(name)}
    with output.show_steps("fitting"):
        found = fit_named(kind, Training(sources, tuple(by), read.nan, first, joined=joined), typed)
    found.write(target)
    _show(found, as_json, f"written to {target}")


def _check_target(target: Path, files: tuple[str, ...]) -> None:
    """Refuse, before any work, what cannot be written."""
    if target.suffix.lower() != LENS_ENDING:
        raise FileError(target, "has an ending that does not fit a lens", f"use {LENS_ENDING}")
    check_folder(target)
    if any(Path(file).exists() and target.exists() and target.samefile(file) for file in files):
        raise InputError("target", target, "is one of the inputs", "choose another name")


@lens.command()
@click.argument("file", type=PATH, metavar="FILE")
@json_option
def show(file: Path, as_json: bool) -> None:
    """Show the contents of a lens file.

    \b
    Examples:
      crossfusion lens show lens.safetensors
      crossfusion lens show lens.safetensors --json
    """
    _show(read_lens(file), as_json)


def _show(found: Lens, as_json: bool, done: str = "") -> None:
    features = "any" if found.dim is None else f"{found.dim:,}"
    if as_json:
        steps = [{"kind": step.kind, **step.facts()} for step in found.steps]
        output.show_json({"digest": found.digest, "factors": list(found.factors), "steps": steps})
        return
    click.echo(f"{found!r}\nfeatures {features}   digest {found.digest}")
    if found.features is not None:
        click.echo(f"names {', '.join(found.features[:10])}{', ...' if len(found.features) > 10 else ''}")
    click.echo(done, nl=bool(done))
