"""A picture of a slide that is cut into tiles: its tissue, and the tiles that were kept."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from crossfusion._base import make_folder, optional, write_whole
from crossfusion.pathology.tiles import Tile
from crossfusion.pathology.tissue import CutSlide

PANEL = 900  # pixels of the longer side of a panel
LARGEST_SCALE = 12  # that a small overview is enlarged by
MARGIN, LINE = 16, 26  # pixels around panels, and of a line of text
TEXT_SIZE = 18
INK, PAPER = (30, 30, 30), (255, 255, 255)
TINT, TINTED = (0, 170, 200), 0.4  # color over what is not tissue, and how much of it
CHOSEN = (0, 70, 190)  # chosen tiles
SPARED = (120, 160, 215)  # tiles with enough tissue that were not chosen; frames
FADED = 0.55  # how far the slide is turned to white outside of chosen tiles


def write_picture(path: Path, slide: CutSlide, chosen: Sequence[Tile]) -> None:
    """Write a PNG that shows a slide twice: with what is not tissue tinted, and with its tiles."""
    images = optional.load("PIL.Image", "Pillow", "pathology", f"writing {path}")
    height, width = slide.mask.shape
    scale = min(PANEL / max(width, height), LARGEST_SCALE)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    small = images.fromarray(slide.overview).resize(size, resample=1 if scale < 1 else 0)
    panels = [_tint_glass(small, slide), _draw_tiles(small, slide, chosen)]
    drawn = _lay_out(panels, _make_title(slide), _describe(slide, chosen))
    make_folder(path.parent)
    write_whole(path, partial(drawn.save, format="PNG", optimize=True))


def _tint_glass(small: Any, slide: CutSlide) -> Any:
    """The slide in its own colors where tissue was found, and in a tint elsewhere."""
    images = optional.load("PIL.Image", "Pillow", "pathology", "drawing tissue")
    mask = np.asarray(images.fromarray(slide.mask).resize(small.size, resample=0))
    pixels = np.array(small)
    pixels[~mask] = (1 - TINTED) * pixels[~mask] + TINTED * np.array(TINT)
    return images.fromarray(pixels)


def _draw_tiles(small: Any, slide: CutSlide, chosen: Sequence[Tile]) -> Any:
    """The slide, faded outside of chosen tiles, with an outline of every tile that has enough tissue."""
    images = optional.load("PIL.Image", "Pillow", "pathology", "drawing tiles")
    scale = [small.size[k] / slide.size[k] for k in (0, 1)]
    pixels = np.asarray(small)
    faded = (pixels + FADED * (255.0 - pixels)).astype(np.uint8)
    corners = {tile.key: _scale_box(tile, scale) for tile in slide.tiles}
    taken = {tile.key for tile in chosen}
    for left, top, right, bottom in (corners[key] for key in corners if key in taken):
        faded[top : bottom + 1, left : right + 1] = pixels[top : bottom + 1, left : right + 1]
    image = images.fromarray(faded)
    draw = optional.load("PIL.ImageDraw", "Pillow", "pathology", "drawing tiles").Draw(image)
    for key in sorted(corners, key=taken.__contains__):  # chosen tiles on top
        draw.rectangle(corners[key], outline=CHOSEN if key in taken else SPARED)
    return image


def _scale_box(tile: Tile, scale: Sequence[float]) -> tuple[int, int, int, int]:
    """Corners of a tile on a small picture; neighbors share a line."""
    assert tile.box is not None
    left, top, width, height = tile.box
    ends = left * scale[0], top * scale[1], (left + width) * scale[0], (top + height) * scale[1]
    first_x, first_y, last_x, last_y = map(round, ends)
    return first_x, first_y, max(first_x, last_x), max(first_y, last_y)


def _make_title(slide: CutSlide) -> str:
    across, down = (length * mpp / 1000 for length, mpp in zip(slide.size, slide.mpp, strict=True))
    return f"{slide.key}    {across:.3g} by {down:.3g} mm"


def _describe(slide: CutSlide, chosen: Sequence[Tile]) -> list[str]:
    """A line for each panel."""
    tiles = f"{len(slide.tiles):,} of {slide.grid:,} tiles have at least {slide.least:.0%} tissue"
    tiles += f", {len(chosen):,} chosen" if len(chosen) < len(slide.tiles) else ""
    return [f"{slide.mask.mean():.0%} tissue; the rest is tinted blue", tiles]


def _lay_out(panels: Sequence[Any], title: str, lines: Sequence[str]) -> Any:
    """Panels side by side under a title, each below its own line of text."""
    images, drawing, fonts = (
        optional.load(f"PIL.{name}", "Pillow", "pathology", "drawing slides")
        for name in ("Image", "ImageDraw", "ImageFont")
    )
    font = fonts.load_default(size=TEXT_SIZE)
    widths = [max(panel.width, int(font.getlength(text)) + 1) for panel, text in zip(panels, lines, strict=True)]
    wide = max(sum(widths) + MARGIN, int(font.getlength(title)) + 1) + 2 * MARGIN
    top = MARGIN + 2 * LINE
    whole = images.new("RGB", (wide, top + panels[0].height + MARGIN), PAPER)
    draw = drawing.Draw(whole)
    draw.text((MARGIN, MARGIN), title, fill=INK, font=font)
    left = MARGIN
    for panel, text, width in zip(panels, lines, widths, strict=True):
        draw.text((left, MARGIN + LINE), text, fill=INK, font=font)
        whole.paste(panel, (left, top))
        draw.rectangle((left - 1, top - 1, left + panel.width, top + panel.height), outline=SPARED)
        left += width + MARGIN
    return whole
