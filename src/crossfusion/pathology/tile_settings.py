"""How slides are cut into tiles."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crossfusion._base import InputError, arg, check_positive, check_whole, warn
from crossfusion.io import show_path
from crossfusion.pathology.slide_files import SlideFile
from crossfusion.pathology.tiles import Tile

DEFAULT_MPP = 0.5  # µm per pixel at which most encoders of tissue were trained, 20×


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

    def find_mpp(self, picture: SlideFile) -> tuple[float, float]:
        """µm per pixel of the full resolution, across and down, as the file or the user states."""
        if picture.mpp is not None:
            return picture.mpp
        if self.slide_mpp is None:
            raise InputError(
                problem=f"{show_path(picture.path)} does not state its resolution, and tiles and tissue are measured in"
                " µm",
                remedy=f"pass {arg('slide_mpp')} with its µm per pixel, such as 0.25 for a scan at 40× or 0.5 at 20×",
            )
        return self.slide_mpp, self.slide_mpp

    def measure_side(self, picture: SlideFile, usual: float | None = DEFAULT_MPP) -> tuple[int, int]:
        """Width and height in pixels of the full resolution that a tile covers; full resolution without `usual`."""
        wanted = self.mpp if self.mpp is not None else usual
        if wanted is None:
            return self.size, self.size
        own = self.find_mpp(picture)
        if max(own) > 1.1 * wanted:
            warn(f"{show_path(picture.path)} has {max(own):.3g} µm per pixel", f"its tiles are enlarged to {wanted}")
        return max(1, round(self.size * wanted / own[0])), max(1, round(self.size * wanted / own[1]))

    def sample(self, tiles: Sequence[Tile], name: str) -> list[Tile]:
        """At most as many tiles of a slide as are wanted, in their order, whatever other slides there are."""
        if self.per_slide is None or len(tiles) <= self.per_slide:
            return list(tiles)
        draw = np.random.default_rng([self.seed, zlib.crc32(name.encode("utf-8", "surrogateescape"))])
        return [tiles[k] for k in sorted(draw.choice(len(tiles), self.per_slide, replace=False))]
