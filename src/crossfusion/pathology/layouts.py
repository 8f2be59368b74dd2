"""Data sets of tissue, as they lie on disk, as lists of tiles."""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from crossfusion._base import FileError, InputError, arg, check_option, warn
from crossfusion.io import paths
from crossfusion.pathology.camelyon16 import read_camelyon16
from crossfusion.pathology.file_layouts import read_folder, read_manifest, read_slides
from crossfusion.pathology.midog import read_midog
from crossfusion.pathology.survey import Survey
from crossfusion.pathology.tile_settings import TileSettings
from crossfusion.pathology.tiles import Tile

READERS: dict[str, Callable[[str, TileSettings, Survey], list[Tile]]] = {
    "manifest": read_manifest,
    "folder": read_folder,
    "slides": read_slides,
    "midog": read_midog,
    "camelyon16": read_camelyon16,
}
LAYOUTS = tuple(READERS)


def read_layout(
    data: str | os.PathLike[str],
    layout: str = "manifest",
    *,
    mpp: float | None = None,
    slide_mpp: float | None = None,
    size: int = 224,
    tissue: float = 0.5,
    per_slide: int | None = None,
    seed: int = 0,
    centres: str | os.PathLike[str] | None = None,
    pictures: str | os.PathLike[str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Tile]:
    r"""List the tiles of a data set; `Tile.read` reads their pixels later.

    Parameters
    ----------
    data : path
        A manifest or `MIDOG.json`, or the folder of either; otherwise a folder, or for ``slides`` a file.
    layout : {"manifest", "folder", "slides", "midog", "camelyon16"}
        How the data set is stored; see below.
    mpp : float, optional
        µm per pixel of the tiles; by default 0.5 for slides, and full resolution for ``midog``.
    slide_mpp : float, optional
        µm per pixel of files that do not state their own.
    size : int
        Width and height of a tile in pixels. Images that are not cut keep their size.
    tissue : float
        Share of a tile on a slide that must be tissue.
    per_slide : int, optional
        Largest number of tiles per slide, sampled at random.
    seed : int
        Seed of the sample; the tiles of a slide do not depend on other slides.
    centres : path, optional
        Table with the columns slide, centre and, if known, kind, for slides of ``camelyon16`` whose name does not
        identify the center.
    pictures : path, optional
        Folder for a picture of each slide that is cut, named after its key: the slide with everything but tissue
        tinted, and the slide with its tiles. The folder is created with the first picture.
    progress : callable, optional
        Called with the number of files processed since the last call.

    Returns
    -------
    tiles : list of Tile
        Ordered by the manifest or by file name, then by position.

    Notes
    -----
    ``manifest`` is a CSV or TSV file with a column ``file``, relative to its folder; all other columns are factors, as
    text. ``folder`` reads images below a folder, with factors from folder names ``key=value``, or else with the factor
    ``group``, the folder of an image. Both cut slides into tiles. ``slides`` cuts all files, with the factor ``slide``.
    Tiles lie on a grid without overlap. Tissue is detected at 8 µm per pixel, the same way on every slide: a pixel is
    tissue if its brightest and darkest channels differ by 14 of 255 or more. A warning names groups of slides that keep
    clearly different shares of their tiles.

    ``midog`` gives crops around the annotations of MIDOG 2021, with scanner, slide and label. ``camelyon16`` gives
    tiles of slides with centre, slide and kind; if XML outlines are present, a label says whether the middle of a tile
    is tumor.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from crossfusion.pathology import read_layout
    >>> folder = tempfile.TemporaryDirectory()
    >>> Image.fromarray(np.full((32, 32, 3), 200, np.uint8)).save(f"{folder.name}/a.png")
    >>> _ = Path(folder.name, "manifest.csv").write_text("file,scanner,slide\na.png,aperio,03\n")
    >>> [tile] = read_layout(folder.name)
    >>> tile.key, tile.factors, tile.read().shape
    ('a.png', {'scanner': 'aperio', 'slide': '03'}, (32, 32, 3))
    >>> folder.cleanup()
    """
    check_option(layout, LAYOUTS, "layout")
    cut = TileSettings(mpp, slide_mpp, size, tissue, per_slide, seed)
    place = _find_local_path(data, layout)
    survey = Survey(progress or (lambda _: None), None if pictures is None else Path(pictures))
    if centres is not None and layout != "camelyon16":
        raise InputError(
            "centres", problem=f"goes with {arg('layout', 'camelyon16')}, not {layout!r}", remedy="leave it out"
        )
    if layout == "camelyon16":
        tiles = read_camelyon16(place, cut, survey, None if centres is None else paths.as_text(centres))
    else:
        tiles = READERS[layout](place, cut, survey)
    survey.warn_about_shares()
    if tiles and per_slide is not None and all(tile.box is None for tile in tiles):
        warn(f"{arg('per_slide')} has no effect on images that are taken whole", "leave it out")
    if not tiles:
        raise FileError(
            paths.show_path(place), "has no tiles", "ask for less tissue or smaller tiles, or check the files"
        )
    return tiles


def _find_local_path(data: str | os.PathLike[str], layout: str) -> str:
    """The path of data on this machine, a folder where there is no other way."""
    place = paths.as_text(data)
    if paths.is_remote(place):
        raise FileError(paths.show_path(place), "is a URL, and images are read from files", "copy it here")
    if layout == "camelyon16" and not os.path.isdir(place):
        raise FileError(paths.show_path(place), "is not a folder", "name the one with the slides")
    return place


def count_tiles(tiles: Sequence[Tile]) -> dict[str, dict[str, int]]:
    """How many tiles there are by each value of each factor."""
    names = dict.fromkeys(name for tile in tiles for name in tile.factors)
    return {name: dict(sorted(Counter(tile.factors[name] for tile in tiles).items())) for name in names}
