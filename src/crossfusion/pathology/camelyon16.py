"""Camelyon16 as its authors distribute it: `normal_001.tif`, `tumor_001.tif`, `test_001.tif` and so on, in any folders.

G. Litjens et al., 1399 H&E-stained sentinel lymph node sections of breast cancer patients: the CAMELYON dataset,
GigaScience 7, 2018. The slides of the training set come from Radboud UMC up to normal_100 and tumor_070, and from UMC
Utrecht from normal_101 and tumor_071 on; FLamby (J. Ogier du Terrail et al., NeurIPS 2022) lists the same for each
slide. Names of the test set do not tell. Groups of outlines, and the slides that are outlined in part, are those that
the data set's own description names.
"""

import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from crossfusion._base import FileError, arg, warn
from crossfusion.io import list_some, paths
from crossfusion.pathology.file_layouts import list_slide_tiles, read_table
from crossfusion.pathology.lesions import Lesions, read_lesions
from crossfusion.pathology.slide_files import TIFF_ENDINGS
from crossfusion.pathology.survey import Survey
from crossfusion.pathology.tile_settings import TileSettings
from crossfusion.pathology.tiles import Tile

SLIDE_NAME = re.compile(r"(normal|tumor|test)_(\d{3})", re.IGNORECASE)
RADBOUD, UTRECHT = "Radboud", "Utrecht"
LAST_NUMBERS = {"normal": (100, 160), "tumor": (70, 111)}  # of Radboud, and of all
OMITTED = {"normal_086": "it holds a tumor, and became tumor_111", "test_049": "it is there twice"}
PARTLY_OUTLINED = (
    10,
    15,
    18,
    20,
    25,
    29,
    33,
    34,
    44,
    46,
    51,
    54,
    55,
    56,
    67,
    79,
    85,
    92,
    95,
    110,
)  # not all lesions outlined


def read_camelyon16(data: str, cut: TileSettings, survey: Survey, centres: str | None = None) -> list[Tile]:
    """Tiles of all slides whose centre is known, with the factors centre, slide, kind and, with outlines, label."""
    known = _read_centers(centres)
    slides = {name: file for name, file in _find_files(data, TIFF_ENDINGS, "slides").items() if _is_used(name, known)}
    unknown = [name for name in slides if name not in known and name.startswith("test")]
    if unknown:
        warn(
            f"the names of {len(unknown):,} slides do not tell their center ({list_some(unknown)})",
            f"they are left out; name their centers in {arg('centres')}",
        )
    outlines = _find_files(data, (".xml",))
    _check_outlines(slides, outlines)
    tiles: list[Tile] = []
    for name in (name for name in slides if name not in unknown):
        centre, kind = known.get(name) or (_find_center(name), name.partition("_")[0])
        factors = {"centre": centre, "slide": name, "kind": kind}
        if not outlines:
            tiles += list_slide_tiles(slides[name], name, factors, cut, survey)
            continue
        lesions = read_lesions(Path(outlines[name])) if name in outlines else Lesions((), ())
        choose = partial(_choose_labeled, lesions=lesions, name=name, cut=cut)
        tiles += list_slide_tiles(slides[name], name, factors, cut, survey, choose=choose)
    return tiles


def _choose_labeled(tiles: Sequence[Tile], lesions: Lesions, name: str, cut: TileSettings) -> list[Tile]:
    return cut.sample(_label_tiles(tiles, lesions, name), name)


def _find_files(data: str, endings: Sequence[str], what: str | None = None) -> dict[str, str]:
    """Files named after a slide below a folder, by the slide's name in lower case and in order."""
    found: dict[str, str] = {}
    for root, folders, files in os.walk(data):
        folders.sort()
        for file in sorted(files):
            stem, ending = os.path.splitext(file)
            if ending.lower() in endings and SLIDE_NAME.fullmatch(stem):
                path = os.path.join(root, file)
                first = found.setdefault(stem.lower(), path)
                if first != path:
                    raise FileError(
                        paths.show_path(first), f"and {paths.show_path(path)} are of one slide", "keep one of them"
                    )
    if what and not found:
        raise FileError(
            paths.show_path(data),
            f"has no {what} called normal_001.tif, tumor_001.tif and so on below it",
            "check the path",
        )
    return dict(sorted(found.items()))


def _is_used(name: str, known: Mapping[str, object]) -> bool:
    kind, _, number = name.partition("_")
    if kind != "test" and name not in known and not 1 <= int(number) <= LAST_NUMBERS[kind][1]:
        raise FileError(
            name, f"is not a slide of Camelyon16, which ends at {kind}_{LAST_NUMBERS[kind][1]}", "take it out"
        )
    if name in OMITTED:
        warn(f"{name} is left out: {OMITTED[name]}")
    return name not in OMITTED


def _find_center(name: str) -> str:
    kind, _, number = name.partition("_")
    return RADBOUD if int(number) <= LAST_NUMBERS[kind][0] else UTRECHT


def _read_centers(path: str | None) -> dict[str, tuple[str, str]]:
    """Centre and kind of slides, by a table of them."""
    if path is None:
        return {}
    rows = read_table(Path(path), ["slide", "centre"])
    found = {os.path.splitext(row["slide"].lower())[0]: row for row in rows}
    return {name: (row["centre"], row.get("kind") or name.partition("_")[0]) for name, row in found.items()}


def _check_outlines(slides: Mapping[str, str], outlines: Mapping[str, str]) -> None:
    lacking = [name for name in slides if name.startswith("tumor") and name not in outlines] if outlines else []
    if lacking:
        raise FileError(
            problem=f"{len(lacking):,} slides with a tumor have no outlines, while others have ({list_some(lacking)})",
            remedy="add their XML files, or take all of them out",
        )


def _label_tiles(tiles: Sequence[Tile], lesions: Lesions, name: str) -> list[Tile]:
    """Tiles with a label, by what is in their middle; where outlines are not complete, those of tumor only."""
    middles = np.array([[tile.box[k] + tile.box[k + 2] / 2 for k in (0, 1)] for tile in tiles if tile.box], float)
    tumor = lesions.contain_points(middles.reshape(-1, 2))
    partly = name in {f"tumor_{number:03d}" for number in PARTLY_OUTLINED}
    return [
        Tile(tile.file, tile.key, {**tile.factors, "label": "tumor" if held else "normal"}, tile.box, tile.size)
        for tile, held in zip(tiles, tumor.tolist(), strict=True)
        if held or not partly
    ]
