"""The command that makes embeddings of images."""

import csv
from pathlib import Path
from typing import Any

import click

from crossfusion.cli import output
from crossfusion.cli.options import PATH, json_option
from crossfusion.errors import FileError, InputError
from crossfusion.pathology.embedding import embed as embed_tiles
from crossfusion.pathology.encoders import encoder as encoder_by_name
from crossfusion.pathology.normalizers import Normalizer
from crossfusion.pathology.normalizers import normalizer as normalizer_by_name
from crossfusion.pathology.parts import check_target, facts_of
from crossfusion.pathology.stains import choose_reference
from crossfusion.pathology.tiles import Tile
from crossfusion.validation import check_known

IMAGES = (".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")


@click.command()
@click.argument("data", type=PATH)
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
    data: Path,
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
      crossfusion embed tiles/ --encoder virchow2:checkpoints/virchow2 --device cuda --batch 128 -o v2.parquet
      crossfusion embed tiles/ --encoder timm:resnet50 --normalizer onnx:staingan.onnx@-1..1 -o gan.parquet
    """
    check_target(target)
    tiles = read_tiles(data)
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
    if reference is not None and Path(reference).is_file():
        return normalizer_by_name(name, reference)
    chosen = tiles
    if reference is not None:
        factor, equals, value = reference.partition("=")
        if not equals:
            raise FileError(f"--reference {reference} does not exist: name an image, or a domain as scanner=aperio")
        check_known([factor], list(tiles[0].factors), "factor", "the data")
        chosen = [tile for tile in tiles if tile.factors[factor] == value]
        check_known([value], sorted({tile.factors[factor] for tile in tiles}), f"{factor} called", "the data")
    return normalizer_by_name(name, choose_reference(chosen))


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


def read_tiles(data: Path) -> list[Tile]:
    """Tiles of a manifest (a CSV with a column file) or of a folder of images."""
    if data.is_dir():
        found = sorted(path for path in data.rglob("*") if path.suffix.lower() in IMAGES)
        tiles = [Tile(str(path), str(path.relative_to(data)), {"group": path.parent.name}) for path in found]
    elif data.is_file():
        with data.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
        if not rows or "file" not in rows[0]:
            raise FileError(f"{data} has no column 'file': name the images in one")
        tiles = [
            Tile(str(data.parent / row["file"]), row["file"], {name: row[name] or "" for name in row if name != "file"})
            for row in rows
        ]
    else:
        raise FileError(f"{data} does not exist: name a manifest or a folder of images")
    if not tiles:
        raise FileError(f"{data} holds no images: look for {', '.join(IMAGES)}")
    return tiles
