"""Where on a slide tissue is, and a grid of tiles on it."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import InputError, arg, check_positive, check_whole, warn
from crossfusion.io import show_path
from crossfusion.pathology.slide_files import Box, Pixels, SlideFile
from crossfusion.pathology.tiles import Tile

DEFAULT_MPP = 0.5  # µm per pixel at which most encoders of tissue were trained, 20×
OVERVIEW_SIDE = 4096  # pixels of the picture in which tissue is looked for
BAND_PIXELS = 64_000_000  # pixels of a band of a picture that has no smaller level
LEAST_SATURATION = 13  # saturation of 255 that is never tissue
MOST_SATURATION = 51  # saturation of 255 that is always tissue
DARK_BRIGHTNESS = 25  # brightness below which color is noise, such as the black around a scan


@dataclass(frozen=True)
class TileSettings:
    """How slides are cut into tiles, as `read_layout` explains."""

    mpp: float | None = None
    slide_mpp: float | None = None
    size: int = 224
    tissue: float = 0.5
    per_slide: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole(self.size, "size", least=8)
        check_whole(self.seed, "seed", least=0)
        if self.per_slide is not None:
            check_whole(self.per_slide, "per_slide")
        for name in ("mpp", "slide_mpp"):
            if getattr(self, name) is not None:
                check_positive(getattr(self, name), name)
        share = self.tissue
        if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0 <= share <= 1:
            raise InputError("tissue", share, "must be a share of the tile from 0 to 1")

    def measure_side(self, picture: SlideFile, usual: float | None = DEFAULT_MPP) -> tuple[int, int]:
        """Width and height in pixels of the full resolution that a tile covers; full resolution without `usual`."""
        wanted = self.mpp if self.mpp is not None else usual
        if wanted is None:
            return self.size, self.size
        own = picture.mpp or (None if self.slide_mpp is None else (self.slide_mpp, self.slide_mpp))
        if own is None:
            raise InputError(
                problem=f"{show_path(picture.path)} does not tell its µm per pixel, so that tiles of {wanted} cannot be"
                " cut",
                remedy=f"say with {arg('slide_mpp')} what it was scanned at",
            )
        if max(own) > 1.1 * wanted:
            warn(f"{show_path(picture.path)} has {max(own):.3g} µm per pixel", f"its tiles are enlarged to {wanted}")
        return max(1, round(self.size * wanted / own[0])), max(1, round(self.size * wanted / own[1]))

    def remove_limit(self) -> "TileSettings":
        """The same without a limit on the number of tiles."""
        return replace(self, per_slide=None)

    def sample(self, tiles: Sequence[Tile], name: str) -> list[Tile]:
        """At most as many tiles of a slide as are wanted, in their order, whatever other slides there are."""
        if self.per_slide is None or len(tiles) <= self.per_slide:
            return list(tiles)
        draw = np.random.default_rng([self.seed, zlib.crc32(name.encode("utf-8", "surrogateescape"))])
        return [tiles[k] for k in sorted(draw.choice(len(tiles), self.per_slide, replace=False))]


def cut_slide(picture: SlideFile, key: str, factors: Mapping[str, str], cut: TileSettings) -> list[Tile]:
    """All tiles on a grid that hold enough tissue; a warning where there are none."""
    width, height = cut.measure_side(picture)
    boxes = find_tissue_boxes(picture, (width, height), cut.tissue)
    if not boxes:
        warn(
            f"{show_path(picture.path)} has no tile of {width} × {height} pixels with {cut.tissue:.0%} tissue",
            "it is left out",
        )
    size = (cut.size, cut.size)
    return [Tile(picture.path, f"{key}@{box[0]},{box[1]}", factors, box, size) for box in boxes]


def find_tissue_boxes(picture: SlideFile, side: tuple[int, int], share: float) -> list[Box]:
    """Boxes of a grid, row by row, of which at least this share is tissue."""
    columns, rows = picture.size[0] // side[0], picture.size[1] // side[1]
    if not columns or not rows:
        return []
    scale = max(1.0, max(picture.size) / OVERVIEW_SIDE)
    small = max(1, round(picture.size[0] / scale)), max(1, round(picture.size[1] / scale))
    mask = find_tissue(_read_overview(picture, small))
    shares = _measure_tissue_shares(mask, (rows, columns), [side[k] * small[k] / picture.size[k] for k in (1, 0)])
    found = np.argwhere(shares >= share) if share > 0 else np.argwhere(np.ones_like(shares, bool))
    return [(int(column) * side[0], int(row) * side[1], *side) for row, column in found]


def _read_overview(picture: SlideFile, size: tuple[int, int]) -> Pixels:
    """The whole picture at a small size; one without smaller levels is read in bands."""
    width, height = picture.size
    bands = 1 if picture.levels > 1 else min(size[1], 1 + width * height // BAND_PIXELS)
    edges = np.linspace(0, size[1], bands + 1).round().astype(int).tolist()
    tops = [round(edge * height / size[1]) for edge in edges]
    parts = [
        picture.read_region((0, tops[k], width, tops[k + 1] - tops[k]), (size[0], edges[k + 1] - edges[k]))
        for k in range(bands)
    ]
    return np.concatenate(parts)


def find_tissue(pixels: Pixels) -> NDArray[np.bool_]:
    """Which pixels are tissue: those whose saturation is above Otsu's threshold, kept within sensible limits.

    The limits decide where Otsu cannot: a slide without tissue has noise that it would split, and one that is all
    tissue has no background.
    """
    bright = pixels.max(axis=2).astype(np.float32)
    saturation = np.zeros(bright.shape, np.uint8)
    colored = bright > DARK_BRIGHTNESS
    spread = bright - pixels.min(axis=2)
    saturation[colored] = 255 * spread[colored] / bright[colored]
    return np.asarray(
        (saturation > min(max(find_otsu_threshold(saturation), LEAST_SATURATION), MOST_SATURATION)) & colored
    )


def find_otsu_threshold(values: Pixels) -> int:
    """The value up to which the lower of two classes goes, so that the variance between them is largest.

    N. Otsu, A threshold selection method from gray-level histograms, IEEE Trans. SMC 9, 1979.
    """
    counts = np.bincount(values.ravel(), minlength=256).astype(float)
    below = np.cumsum(counts)
    above = below[-1] - below
    sums = np.cumsum(counts * np.arange(256))
    with np.errstate(divide="ignore", invalid="ignore"):
        between = below * above * (sums / below - (sums[-1] - sums) / above) ** 2
    return int(np.argmax(np.nan_to_num(between)))


def _measure_tissue_shares(
    mask: NDArray[np.bool_], grid: tuple[int, int], side: Sequence[float]
) -> NDArray[np.float64]:
    """Share of tissue in each cell of a grid, by sums over the mask up to its corners."""
    total = np.zeros((mask.shape[0] + 1, mask.shape[1] + 1))
    total[1:, 1:] = mask.cumsum(axis=0, dtype=float).cumsum(axis=1)
    (top, bottom), (left, right) = (_find_edges(*span) for span in zip(grid, side, mask.shape, strict=True))
    corners = [total[np.ix_(down, across)] for down in (top, bottom) for across in (left, right)]
    inside = corners[3] - corners[2] - corners[1] + corners[0]
    return np.asarray(inside / np.outer(bottom - top, right - left))


def _find_edges(number: int, side: float, limit: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the cells of a grid begin and end in a mask: at least one pixel each."""
    starts = np.minimum(np.floor(np.arange(number) * side + 1e-6).astype(np.int64), limit - 1)
    stops = np.ceil(np.arange(1, number + 1) * side - 1e-6).astype(np.int64)
    return starts, np.clip(stops, starts + 1, limit)
