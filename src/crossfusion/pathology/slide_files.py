"""Regions of slides and images as pixels, whichever library reads the file.

Whole-slide files go through OpenSlide where it is installed and knows the format, else through tiffslide; everything
else through Pillow. All three answer the same questions: how large, how fine, and what a region looks like.
"""

import logging
import math
import os
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, suppress
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FileError, MissingDependencyError, arg, optional
from crossfusion.io import show_path, translate_errors

Box = tuple[int, int, int, int]  # left, top, width, height
Pixels = NDArray[np.uint8]

TIFF_ENDINGS = (".tif", ".tiff")  # an image or a slide: the file tells
SLIDE_ENDINGS = (".svs", ".ndpi", ".mrxs", ".scn", ".svslide", ".bif", ".vms", ".vmu", ".qptiff")
IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".jp2", ".ppm")
PILLOW_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP", "JPEG2000", "PPM")  # Pillow knows others that run programs
DEEP_MODES = ("I", "F", "I;16", "I;16B", "I;16L", "I;16N")  # modes of Pillow with more than eight bits
MAX_PIXELS = 150_000_000  # pixels decoded in one go: half a gigabyte
TILE_WIDTH_TAG = 322  # TIFF tag of the width of a tile
TILE_OFFSETS_TAG = 324  # TIFF tag of the offsets of the tiles
TILE_SIZES_TAG = 325  # TIFF tag of the sizes of the tiles


class SlideFile(ABC):
    """A file that is open: its size in pixels, µm per pixel across and down if they are known, and its levels."""

    path: str
    size: tuple[int, int]
    mpp: tuple[float, float] | None = None
    levels = 1

    @abstractmethod
    def read_region(self, box: Box, size: tuple[int, int]) -> Pixels:
        """A region that lies within the picture, scaled to a size."""

    @abstractmethod
    def close(self) -> None:
        """Give the file back."""

    def __del__(self) -> None:
        with suppress(Exception):  # of one that never came to be, or at the end of the process
            self.close()


def explain_read_errors(path: str) -> AbstractContextManager[None]:
    """Turn whatever goes wrong with an image into one sentence."""
    return translate_errors(path, "is damaged, or no image that can be read")


def open_slide_file(path: str) -> SlideFile:
    """Open a slide or an image."""
    with explain_read_errors(path):
        os.stat(path)  # some libraries do not tell a file that is missing from one that is none of theirs
        return _open_slide(path) if _is_tiled(path) else _Image(path)


def _is_tiled(path: str) -> bool:
    """Whether a file is for a library of slides: by its ending, or a TIFF in tiles."""
    ending = PurePath(path).suffix.lower()
    if ending not in TIFF_ENDINGS:
        return ending in SLIDE_ENDINGS
    plugin = optional.load("PIL.TiffImagePlugin", "Pillow", "pathology", f"reading {show_path(path)}")
    with open(path, "rb") as file, plugin.TiffImageFile(file) as image:  # not Image.open, which refuses large ones
        tags = image.tag_v2
        ends = (
            start + size
            for start, size in zip(tags.get(TILE_OFFSETS_TAG, ()), tags.get(TILE_SIZES_TAG, ()), strict=False)
        )
        if max(ends, default=0) > os.stat(path).st_size:
            raise ValueError("it ends before its pixels do")
        return TILE_WIDTH_TAG in tags


def _open_slide(path: str) -> SlideFile:
    """A slide by the first library that is installed and reads it."""
    problem: Exception = MissingDependencyError("OpenSlide or tiffslide", "pathology", f"reading {show_path(path)}")
    for reader in (_OpenSlide, _TiffSlide):
        try:
            return reader(path)
        except ImportError:
            continue
        except Exception as found:  # the other library may know the format
            problem = found
    raise problem


class _Slide(SlideFile):
    """What OpenSlide and tiffslide have in common: levels, of which the finest that is needed is read."""

    def __init__(self, path: str, slide: Any, names: str) -> None:
        self.path, self.slide = path, slide
        self.size = slide.dimensions
        self.levels = slide.level_count
        self.mpp = _check_resolution(slide.properties.get(f"{names}.mpp-x"), slide.properties.get(f"{names}.mpp-y"))

    def read_region(self, box: Box, size: tuple[int, int]) -> Pixels:
        left, top, width, height = box
        level = self.slide.get_best_level_for_downsample(max(1.0, 1.001 * min(width / size[0], height / size[1])))
        scale = self.slide.level_downsamples[level]
        limits = self.slide.level_dimensions[level]
        x, y = min(math.floor(left / scale), limits[0] - 1), min(math.floor(top / scale), limits[1] - 1)
        right, bottom = ((left + width) / scale, (top + height) / scale)
        part = min(math.ceil(right), limits[0]) - x, min(math.ceil(bottom), limits[1]) - y
        _check_pixels(part, self.path)
        image = self.slide.read_region((round(x * scale), round(y * scale)), level, part)
        edges = left / scale - x, top / scale - y, min(right - x, part[0]), min(bottom - y, part[1])
        return _crop_and_scale(image, edges, size)

    def close(self) -> None:
        self.slide.close()


class _OpenSlide(_Slide):
    def __init__(self, path: str) -> None:
        super().__init__(path, _load_library("openslide").OpenSlide(path), "openslide")


class _TiffSlide(_Slide):
    def __init__(self, path: str) -> None:
        logging.getLogger("tifffile").addHandler(logging.NullHandler())  # what is wrong is said once, by us
        super().__init__(path, _load_library("tiffslide").TiffSlide(path), "tiffslide")


class _Image(SlideFile):
    """An image that is decoded whole, when it is first looked at."""

    def __init__(self, path: str) -> None:
        images = optional.load("PIL.Image", "Pillow", "pathology", f"reading {show_path(path)}")
        try:
            self.image = images.open(path, formats=PILLOW_FORMATS)
        except images.DecompressionBombError as problem:
            raise _make_size_error(path, "more pixels than Pillow reads") from problem
        self.path, self.size = path, self.image.size
        _check_pixels(self.size, path)
        if self.image.mode in DEEP_MODES:
            raise FileError(show_path(path), "has more than eight bits per channel", "convert it to RGB of eight bits")
        self.mpp = _read_resolution_tags(self.image)

    def read_region(self, box: Box, size: tuple[int, int]) -> Pixels:
        left, top, width, height = box
        return _crop_and_scale(self.image, (left, top, left + width, top + height), size)

    def close(self) -> None:
        self.image.close()


def _load_library(name: str) -> Any:
    try:
        return optional.load(name, name, "pathology", "reading slides")
    except OSError as problem:  # Python's part is there, the shared library is not
        raise MissingDependencyError(name, "pathology", "reading slides") from problem


def _crop_and_scale(image: Any, edges: tuple[float, float, float, float], size: tuple[int, int]) -> Pixels:
    """The part of an image between edges, in RGB on white, at a size."""
    x, y = math.floor(edges[0]), math.floor(edges[1])
    part = edges[0] - x, edges[1] - y, edges[2] - x, edges[3] - y
    image = _flatten_on_white(image.crop((x, y, math.ceil(edges[2]), math.ceil(edges[3]))))
    if part == (0.0, 0.0, float(size[0]), float(size[1])):
        return np.asarray(image)
    return np.asarray(image.resize(size, resample=1, box=part))  # 1: Lanczos


def _flatten_on_white(image: Any) -> Any:
    """RGB; what is transparent is glass."""
    if image.mode == "RGB":
        return image
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        ground = image.copy()
        ground.paste((255, 255, 255, 255), (0, 0, *image.size))
        ground.alpha_composite(image)
        image = ground
    return image.convert("RGB")


def _check_pixels(size: tuple[int, int], path: str) -> None:
    if size[0] * size[1] > MAX_PIXELS:
        raise _make_size_error(path, f"{size[0]:,} × {size[1]:,} pixels to decode in one go")


def _make_size_error(path: str, what: str) -> FileError:
    return FileError(
        show_path(path), f"has {what}", f"convert it to a tiled TIFF, and read it with {arg('layout', 'slides')}"
    )


def _read_resolution_tags(image: Any) -> tuple[float, float] | None:
    """µm per pixel of a TIFF that is no slide, by its tags."""
    tags = getattr(image, "tag_v2", {})
    unit = {2: 25400.0, 3: 10000.0}.get(tags.get(296, 0))  # µm in an inch, in a centimeter
    across, down = (float(tags.get(tag) or 0) for tag in (282, 283))
    return _check_resolution(unit / across, unit / down) if unit and across > 0 and down > 0 else None


def _check_resolution(across: Any, down: Any) -> tuple[float, float] | None:
    """µm per pixel, None where it is missing or cannot be that of a slide: printers and screens write theirs, too."""
    try:
        found = float(across), float(down)
    except (TypeError, ValueError):
        return None
    return found if all(0.01 <= value <= 20 for value in found) else None
