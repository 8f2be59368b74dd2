"""Tiles of slides and images: the options that choose them, and a command that counts them."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossfusion._base import label_text
from crossfusion.cli import output
from crossfusion.cli.options import PATH, json_option, number_option

if TYPE_CHECKING:
    from crossfusion.pathology import Tile

MAX_VALUES_SHOWN = 20  # values of a factor in a table for people

TILE_OPTIONS = (
    click.option(
        "--layout",
        default="manifest",
        show_default=True,
        metavar="manifest|folder|slides|midog|camelyon16",
        help="How the data set is stored.",
    ),
    click.option("--mpp", type=float, metavar="MICRONS", help="µm per pixel of tiles.  [default: 0.5 for slides]"),
    click.option(
        "--slide-mpp", type=float, metavar="MICRONS", help="µm per pixel of slides that do not state their own."
    ),
    click.option("--size", default=224, show_default=True, metavar="PIXELS", help="Width and height of a tile."),
    click.option(
        "--tissue", default=0.5, show_default=True, metavar="SHARE", help="Minimum share of tissue in a tile."
    ),
    number_option("--per-slide", None, "Maximum number of tiles per slide, sampled at random.  [default: all]"),
    number_option("--tile-seed", 0, "Seed of the sample of tiles."),
    click.option(
        "--centers",
        "--centres",
        "centres",
        type=PATH,
        metavar="FILE",
        help="CSV file with the centers of camelyon16 slides (columns slide, centre).",
    ),
)


@dataclass(frozen=True)
class Tiling:
    """Which tiles are taken, as the options say."""

    layout: str
    mpp: float | None
    slide_mpp: float | None
    size: int
    tissue: float
    per_slide: int | None
    tile_seed: int
    centres: Path | None

    def read(self, data: str, pictures: Path | None) -> "list[Tile]":
        """List all tiles of a data set with a progress bar, and write a picture of each slide to a folder."""
        from crossfusion.pathology import read_layout

        options = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        seed = options.pop("tile_seed")
        with output.show_progress("looking for tiles", None, "files") as progress:
            return read_layout(data, **options, seed=seed, pictures=pictures, progress=progress)


def tile_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of which tiles are taken, passed on as one argument, `tiling`."""
    names = [entry.name for entry in fields(Tiling)]

    @wraps(command)
    def run(**arguments: Any) -> Any:
        tiling = Tiling(**{name: arguments.pop(name) for name in names})
        return command(**arguments, tiling=tiling)

    wrapped: Callable[..., Any] = run
    for option in reversed(TILE_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


@click.command()
@click.argument("data")
@tile_options
@click.option(
    "--pictures", type=PATH, metavar="DIR", help="Folder for pictures of each slide, its tissue and its tiles."
)
@json_option
def tiles(data: str, tiling: Tiling, pictures: Path | None, as_json: bool) -> None:
    """Count the tiles that would be encoded, by factor.

    Slides are cut into tiles, and tiles with enough tissue are kept. Check the --pictures before encoding.

    \b
    Examples:
      crossfusion tiles manifest.csv
      crossfusion tiles slides/ --layout slides --mpp 0.5 --per-slide 200 --pictures tissue/
      crossfusion tiles MIDOG/ --layout midog --size 128
    """
    from crossfusion.pathology import count_tiles

    found = tiling.read(data, pictures)
    counts, files = count_tiles(found), len({tile.file for tile in found})
    if as_json:
        output.show_json({"tiles": len(found), "files": files, "factors": counts})
        return
    rows = []
    for name, values in counts.items():
        rows += [[name, label_text(value), f"{number:,}"] for value, number in [*values.items()][:MAX_VALUES_SHOWN]]
        rows += (
            [[name, f"... and {len(values) - MAX_VALUES_SHOWN:,} more", ""]] if len(values) > MAX_VALUES_SHOWN else []
        )
    output.show_table(f"{len(found):,} tiles of {files:,} files", ["factor", "value", "tiles"], rows, left=(0, 1))
