"""The command that makes embeddings of images."""

from pathlib import Path
from typing import Any

import click

from crossfusion._base import InputError, arg
from crossfusion.cli import output
from crossfusion.cli.options import file_option, json_option, number_option
from crossfusion.cli.tiles import Tiling, tile_options
from crossfusion.pathology import Normalizer, Tile, check_target, find_reference, read_facts
from crossfusion.pathology import embed as embed_tiles
from crossfusion.pathology import encoder as encoder_by_name
from crossfusion.pathology import normalizer as normalizer_by_name

encoder_option = click.option(
    "--encoder",
    required=True,
    metavar="NAME",
    help="Encoder, such as efficientnet_lite0, virchow, virchow:DIR or timm:NAME.",
)
stain_option = click.option(
    "--reference",
    metavar="FILE|NAME=VALUE",
    help="Target of normalization: an image, or a domain, whose most typical tile is used.  [default: all tiles]",
)


def network_options(command: Any) -> Any:
    """How images go through a network."""
    options = (
        click.option(
            "--device",
            default="auto",
            show_default=True,
            metavar="auto|cpu|cuda|cuda:N|mps",
            help="Device that runs the network.",
        ),
        click.option(
            "--precision",
            default="auto",
            show_default=True,
            metavar="auto|float32|float16|bfloat16",
            help="Precision of the network.",
        ),
        number_option("--batch", 32, "Number of images per forward pass."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("data")
@tile_options
@encoder_option
@click.option(
    "--normalizer",
    default="none",
    show_default=True,
    metavar="NAME",
    help="Stain normalizer, such as macenko or onnx:FILE@-1..1.",
)
@stain_option
@file_option("The table (.parquet)", required=True)
@network_options
@number_option("--workers", None, "Number of threads that read and normalize.  [default: one per core]")
@json_option
def embed(
    data: str,
    tiling: Tiling,
    encoder: str,
    normalizer: str,
    reference: str | None,
    target: Path,
    device: str,
    precision: str,
    batch: int,
    workers: int | None,
    as_json: bool,
) -> None:
    """Encode images; write one row per tile, with its factors.

    To resume an interrupted run, run the same command again. Each slide that is cut into tiles gets a picture of
    the tissue found and the tiles kept, in a folder next to the table: raw_tissue for raw.parquet.

    \b
    Examples:
      crossfusion embed manifest.csv --encoder efficientnet_lite0 -o raw.parquet
      crossfusion embed manifest.csv --encoder virchow --normalizer macenko --reference scanner=aperio -o m.parquet
      crossfusion embed MIDOG/ --layout midog --encoder virchow2:checkpoint/ --device cuda -o v2.parquet
      crossfusion embed images/ --layout folder --encoder random --normalizer onnx:gan.onnx@-1..1 -o g.parquet
    """
    check_target(target)
    pictures = target.with_name(f"{target.stem}_tissue")
    tiles = tiling.read(data, pictures)
    if any(tile.box is not None for tile in tiles) and pictures.is_dir():
        click.echo(f"crossfusion: pictures of the tissue on each slide are in {pictures}", err=True)
    normalize = choose_normalizer(normalizer, reference, tiles, device)
    encode = encoder_by_name(encoder, device=device, precision=precision)
    try:
        with output.show_progress("encoding", len(tiles), "tiles") as progress:
            options: dict[str, Any] = {"batch": batch, "workers": workers, "progress": progress}
            embed_tiles(tiles, target, encoder=encode, normalizer=normalize, **options)
    except KeyboardInterrupt:
        click.echo("crossfusion: what is done is kept: the same command goes on from there", err=True)
        raise
    _show(target, as_json)


def choose_normalizer(name: str, reference: str | None, tiles: list[Tile], device: str) -> Normalizer:
    """The normalizer, with its reference: a file, or the most ordinary tile of a domain or of all tiles."""
    needs = name in ("reinhard", "macenko")
    if not needs:
        if reference is not None:
            raise InputError(
                "reference",
                problem=f"goes with {arg('normalizer')} reinhard or macenko, not with {name!r}",
                remedy="leave it out",
            )
        return normalizer_by_name(name, device=device)
    return normalizer_by_name(name, find_reference(reference, tiles))


def _show(target: Path, as_json: bool) -> None:
    facts: dict[str, Any] = {"output": str(target)} | (read_facts(target) or {})
    if as_json:
        output.show_json(facts)
        return
    left = f", {facts['unchanged']:,} tiles without tissue left as they are" if facts["normalizer"] != "none" else ""
    click.echo(
        f"{facts['tiles']:,} tiles × {facts['dim']} features by {facts['encoder']},"
        f" normalized by {facts['normalizer']}{left}\nwritten to {target}"
    )
