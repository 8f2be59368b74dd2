"""MIDOG 2021 as its authors distribute it: `MIDOG.json` and `images/001.tiff` to `images/200.tiff`.

M. Aubreville et al., Mitosis domain generalization in histopathology images: the MIDOG challenge, Medical Image
Analysis 84, 2023; data at https://zenodo.org/record/4643381. The authors assign scanners by the number of the image,
and give boxes as left, top, right, bottom, unlike COCO's own.
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from crossfusion._base import FileError
from crossfusion.io import list_some, paths
from crossfusion.pathology.file_layouts import check_exist
from crossfusion.pathology.slide_files import open_slide_file
from crossfusion.pathology.survey import Survey
from crossfusion.pathology.tile_settings import TileSettings
from crossfusion.pathology.tiles import Tile

# 151 to 200, of a Leica GT450, have no annotations
SCANNERS = {range(1, 51): "Hamamatsu XR", range(51, 101): "Hamamatsu S360", range(101, 151): "Aperio CS2"}
LABELS = {1: "mitotic figure", 2: "hard negative"}


@dataclass(frozen=True)
class _Mark:
    """An annotation: its number, what it is, and the middle of its box."""

    number: int
    label: str
    middle: tuple[float, float]


def read_midog(data: str, cut: TileSettings, survey: Survey) -> list[Tile]:
    """Crops around all annotations, with the factors scanner, slide and label."""
    table = Path(data) / "MIDOG.json" if os.path.isdir(data) else Path(data)
    marks, names = _read_json(table)
    if not marks:
        raise FileError(paths.show_path(table), "has no annotations", "take the one of the training set")
    files = {number: _find_image(table.parent, names[number]) for number in marks}
    check_exist(list(files.values()), [names[number] for number in marks], paths.show_path(table))
    tiles = []
    for number, file in files.items():
        tiles += _list_crops(file, names[number], marks[number], cut)
        survey.finish_file()
    return tiles


def _find_image(folder: Path, name: str) -> str:
    """Where an image is: in `images`, or beside the annotations as it was downloaded."""
    beside = folder / name
    return str(beside if beside.is_file() else folder / "images" / name)


def _list_crops(file: str, name: str, marks: list[_Mark], cut: TileSettings) -> list[Tile]:
    stem = PurePath(name).stem
    scanner = _find_scanner(int(stem))
    picture = open_slide_file(file)
    try:
        side, limits = cut.measure_side(picture, usual=None), picture.size
    finally:
        picture.close()
    outside = [
        mark.number for mark in marks if not all(0 <= at < end for at, end in zip(mark.middle, limits, strict=True))
    ]
    if outside:
        raise FileError(
            paths.show_path(file),
            f"has {limits[0]:,} × {limits[1]:,} pixels, and the middle of {len(outside):,} annotations"
            f" lies outside ({list_some(outside)})",
            "the image and MIDOG.json must be of one version",
        )
    tiles = []
    for mark in marks:
        corner = [math.floor(at - length / 2 + 0.5) for at, length in zip(mark.middle, side, strict=True)]
        factors = {"scanner": scanner, "slide": stem, "label": mark.label}
        size = (cut.size, cut.size)
        tiles.append(Tile(file, f"{stem}/{mark.number}", factors, (corner[0], corner[1], *side), size))
    return cut.sample(tiles, stem)


def _find_scanner(number: int) -> str:
    return next(name for numbers, name in SCANNERS.items() if number in numbers)


def _read_json(path: Path) -> tuple[dict[int, list[_Mark]], dict[int, str]]:
    """Annotations of each image, and the names of images; both by the image's number."""
    paths.check_file(path)
    with paths.translate_errors(str(path), "cannot be read as JSON"):
        found = json.loads(path.read_bytes())
    if not isinstance(found, Mapping) or not all(
        isinstance(found.get(name), list) for name in ("images", "annotations")
    ):
        raise FileError(
            paths.show_path(path), "has no lists of images and annotations", "take MIDOG.json as distributed"
        )
    with paths.translate_errors(str(path), "is not as distributed"):
        names = {_check_integer(image["id"]): _check_name(image["file_name"]) for image in found["images"]}
        marks: dict[int, list[_Mark]] = {}
        for entry in found["annotations"]:
            marks.setdefault(_check_integer(entry["image_id"]), []).append(_read_mark(entry, path))
    _check_marks(marks, names, path)
    return dict(sorted(marks.items())), names


def _check_marks(marks: Mapping[int, list[_Mark]], names: Mapping[int, str], path: Path) -> None:
    unknown = [number for number in marks if number not in names]
    if unknown:
        raise FileError(
            paths.show_path(path),
            f"has annotations of images that it does not list ({list_some(unknown)})",
            "take MIDOG.json as distributed",
        )
    other = [names[number] for number in marks if not any(_read_number(names[number]) in known for known in SCANNERS)]
    if other:
        raise FileError(
            paths.show_path(path),
            f"has annotations of {list_some(other)}, and those of MIDOG 2021 are of 001 to 150 (151 to"
            " 200 have none), so the scanners are not known",
            "write a manifest for other versions",
        )
    numbers = [mark.number for entries in marks.values() for mark in entries]
    if len(set(numbers)) < len(numbers):
        raise FileError(paths.show_path(path), "has annotations with the same id", "number them apart")


def _read_mark(entry: Mapping[str, Any], path: Path) -> _Mark:
    number, label, box = (
        _check_integer(entry["id"]),
        LABELS.get(entry["category_id"]),
        [float(edge) for edge in entry["bbox"]],
    )
    if label is None:
        raise FileError(
            paths.show_path(path),
            f"has category_id={entry['category_id']!r} in annotation {number}",
            "known are 1, mitotic figure, and 2, hard negative",
        )
    if len(box) != 4 or not all(map(math.isfinite, box)) or box[0] >= box[2] or box[1] >= box[3]:
        raise FileError(
            paths.show_path(path),
            f"has bbox={entry['bbox']!r} in annotation {number}",
            "it must be left, top, right, bottom",
        )
    return _Mark(number, label, ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2))


def _read_number(name: str) -> int:
    stem = PurePath(name).stem
    return int(stem) if stem.isascii() and stem.isdigit() else 0


def _check_name(value: Any) -> str:
    """The name of a file, without a way out of its folder."""
    name = str(value)
    if PurePath(name).name != name:
        raise ValueError(f"file_name={name!r} is not the name of a file")
    return name


def _check_integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"an id is {value!r}, not a whole number")
    return value
