"""What normalizers make of tissue, to look at: an ordinary tile of each domain, after each of them."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from crossfusion._base import InputError, write_whole
from crossfusion.pathology import Normalizer, Tile, choose_reference
from crossfusion.study.figures import figure, set_figure_style

LOOKED_AT = 50  # tiles of a domain that the ordinary one is chosen of
MAX_DOMAINS = 8  # domains that are shown
SIDE = 1.7  # inches of a picture
MAX_NAME_LENGTH = 18  # letters of a name beside or above pictures, on one line


def choose_examples(tiles: Sequence[Tile], domain: Sequence[str]) -> dict[str, Tile]:
    """The most ordinary tile of each domain, of the first few domains."""
    found = {}
    for name in sorted(set(domain))[:MAX_DOMAINS]:
        own = [tile for tile, value in zip(tiles, domain, strict=True) if value == name]
        try:
            found[name] = choose_reference(own, sample=LOOKED_AT)
        except InputError:  # no tissue in any of them
            found[name] = own[0]
    return found


def draw_examples(path: Path, shown: Mapping[str, Tile], normalizers: Mapping[str, Normalizer]) -> Path:
    """Draw a tile a row, a normalizer a column."""
    with set_figure_style(axes_grid=False, axes_titlelocation="center"):
        drawn = figure(SIDE * len(normalizers) + 0.6, (SIDE + 0.12) * len(shown) + 0.3)
        grid = drawn.subplots(len(shown), len(normalizers), squeeze=False)
        for line, (name, tile) in zip(grid, shown.items(), strict=True):
            pixels = tile.read()
            for axes, normalize in zip(line, normalizers.values(), strict=True):
                _show(axes, normalize(pixels))
            line[0].set_ylabel(_shorten_name(name), fontsize=10)
        for axes, name in zip(grid[0], normalizers, strict=True):
            axes.set_title(_shorten_name(name), fontsize=10)
        options: dict[str, Any] = {"format": "png", "dpi": 130, "metadata": {"Software": None}}
        write_whole(path, partial(drawn.savefig, **options))
    return path


def _show(axes: Any, pixels: Any) -> None:
    axes.imshow(pixels)
    axes.set_xticks([])
    axes.set_yticks([])
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)


def _shorten_name(name: str) -> str:
    text = name.replace("$", "\\$")  # which would begin a formula
    return text if len(text) <= MAX_NAME_LENGTH else f"{text[: MAX_NAME_LENGTH - 1]}…"
