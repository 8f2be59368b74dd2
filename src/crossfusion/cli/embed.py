"""The command that makes embeddings of images."""

from pathlib import Path
from typing import Any

import click

from crossfusion.cli import output
from crossfusion.cli.options import PATH, json_option
from crossfusion.cli.tiles import Tiling, tile_options
from crossfusion.errors import InputError
from crossfusion.pathology.embedding import embed as embed_tiles
from crossfusion.pathology.encoders import encoder as encoder_by_name
from crossfusion.pathology.normalizers import Normalizer
from crossfusion.pathology.normalizers import normalizer as normalizer_by_name
from crossfusion.pathology.parts import check_target, facts_of
from crossfusion.pathology.stains import find_reference
from crossfusion.pathology.tiles import Tile


@click.command()
@click.argument("data")
@tile_options
@click.option(
    "--encoder", "encoder", required=True, metavar="NAME", help="Such as efficientnet_lite0, virchow, timm:NAME."
)
@click.option(
    "--normalizer", default="none", show_default=True, metavar="NAME", help="Such as macenko, onnx:FILE@-1..1."
)
@click.option(
    "--reference",
    metavar="FILE|FACTOR=VALUE",
    help="What to normalise to: an image, or the most ordinary tile of a domain.",
)
@click.option("-o", "--output", "target", type=PATH, required=True, help="The table to write (.parquet).")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 or mps.")
@click.option("--precision", default="auto", show_default=True, help="float32, float16 or bfloat16.")
@click.option("--batch", default=32, show_default=True, help="Images that go through the network at once.")
@click.option("--workers", type=int, metavar="N", help="Threads that read and normalise.  [default: one a core]")
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
    """Encode images: a vector and all factors a row. An interrupted run goes on where it was.

    \b
    Examples:
      crossfusion embed manifest.csv --encoder efficientnet_lite0 -o raw.parquet
      crossfusion embed manifest.csv --encoder virchow --normalizer macenko --reference scanner=aperio -o m.parquet
      crossfusion embed MIDOG/ --layout midog --encoder virchow2:checkpoint/ --device cuda -o v2.parquet
      crossfusion embed images/ --layout folder --encoder random --normalizer onnx:gan.onnx@-1..1 -o g.parquet
    """
    check_target(target)
    tiles = tiling.read(data)
    normalize = choose_normalizer(normalizer, reference, tiles, device)
    encode = encoder_by_name(encoder, device=device, precision=precision)
    try:
        with output.progress("encoding", len(tiles), "tiles") as progress:
            options: dict[str, Any] = {"batch": batch, "workers": workers, "progress": progress}
            embed_tiles(tiles, target, encoder=encode, normalizer=normalize, **options)
    except KeyboardInterrupt:
        click.echo("crossfusion: what is done is kept: the same command goes on from there", err=True)
        raise
    _show(target, as_json)


def choose_normalizer(name: str, reference: str | None, tiles: list[Tile], device: str) -> Normalizer:
    """The normaliser, with its reference: a file, or the most ordinary tile of a domain or of all tiles."""
    needs = name in ("reinhard", "macenko")
    if not needs:
        if reference is not None:
            raise InputError(f"--reference goes with --normalizer reinhard or macenko, not with {name!r}: leave it out")
        return normalizer_by_name(name, device=device)
    return normalizer_by_name(name, find_reference(reference, tiles))


def _show(target: Path, as_json: bool) -> None:
    facts: dict[str, Any] = {"output": str(target)} | (facts_of(target) or {})
    if as_json:
        output.show_json(facts)
        return
    left = f", {facts['unchanged']:,} tiles without tissue left as they are" if facts["normalizer"] != "none" else ""
    click.echo(
        f"{facts['tiles']:,} tiles × {facts['dim']} features by {facts['encoder']},"
        f" normalised by {facts['normalizer']}{left}\nwritten to {target}"
    )
