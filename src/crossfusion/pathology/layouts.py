"""Data sets of tissue, as they lie on disk, as lists of tiles."""

import os
from collections import Counter
from collections.abc import Callable, Sequence

from crossfusion._base import FileError, InputError, arg, check_option, warn
from crossfusion.io import paths
from crossfusion.pathology.camelyon16 import read_camelyon16
from crossfusion.pathology.file_layouts import ReportProgress, read_folder, read_manifest, read_slides
from crossfusion.pathology.midog import read_midog
from crossfusion.pathology.tiles import Tile
from crossfusion.pathology.tissue import TileSettings

READERS: dict[str, Callable[[str, TileSettings, ReportProgress], list[Tile]]] = {
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
    progress: Callable[[int], None] | None = None,
) -> list[Tile]:
    r"""List the tiles of a data set; their pixels are read later, by `Tile.read`.

    Parameters
    ----------
    data : path
        A manifest or `MIDOG.json`, or the folder of either; otherwise a folder, or for ``slides`` a file.
    layout : {"manifest", "folder", "slides", "midog", "camelyon16"}
        How the data set lies on disk, see below.
    mpp : float, optional
        µm per pixel of the tiles; by default 0.5 for slides, and full resolution for ``midog``.
    slide_mpp : float, optional
        µm per pixel that files were scanned at which do not tell it themselves.
    size : int
        Width and height of a tile in pixels. Images that are taken whole keep theirs.
    tissue : float
        Share of a tile on a slide that must be tissue.
    per_slide : int, optional
        At most as many tiles of a slide, drawn at random.
    seed : int
        Of the draw; what is drawn of a slide does not depend on other slides.
    centres : path, optional
        Table with the columns slide, centre and, if known, kind, for slides of ``camelyon16`` whose name does not tell.
    progress : callable, optional
        Called with the number of files that were done since the last call.

    Returns
    -------
    tiles : list of Tile
        In the order of the manifest, or of the names of files, and then of positions.

    Notes
    -----
    ``manifest`` is a CSV or TSV file with a column ``file``, relative to its folder; all other columns are factors, as
    text. ``folder`` takes images below a folder, with factors from folders called ``key=value``, or else ``group``, the
    folder that an image lies in. In both, slides are cut into tiles. ``slides`` cuts all files, with the factor
    ``slide``. Tissue is where the saturation of a small picture of the slide is above Otsu's threshold; tiles lie on a
    grid without overlap.

    ``midog`` gives crops around the annotations of MIDOG 2021, with scanner, slide and label. ``camelyon16`` gives
    tiles of slides with centre, slide and kind; if the XML files of the outlines are there, a label tells whether the
    middle of a tile is tumor.

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
    place, done = _find_local_path(data, layout), progress or (lambda _: None)
    if centres is not None and layout != "camelyon16":
        raise InputError(
            "centres", problem=f"goes with {arg('layout', 'camelyon16')}, not {layout!r}", remedy="leave it out"
        )
    if layout == "camelyon16":
        tiles = read_camelyon16(place, cut, done, None if centres is None else paths.as_text(centres))
    else:
        tiles = READERS[layout](place, cut, done)
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
