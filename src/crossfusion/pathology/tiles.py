"""Tiles: where an image to encode is, and what is known of it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crossfusion import optional
from crossfusion.errors import FileError


@dataclass(frozen=True)
class Tile:
    """A square or whole image to encode: where it is, and the factors that are known of it.

    Parameters
    ----------
    file : str
        Path of the image.
    key : str
        Unique within a data set: names the tile in tables and when work is resumed.
    factors : mapping of str to str
        Such as scanner, slide, label.
    box : tuple of int, optional
        Left, top, width, height in pixels of the full resolution; None for the whole image.
    size : tuple of int, optional
        Width and height in pixels after scaling; None for as it is.
    """

    file: str
    key: str
    factors: Mapping[str, str]
    box: tuple[int, int, int, int] | None = None
    size: tuple[int, int] | None = None

    def read(self) -> NDArray[np.uint8]:
        """The pixels.

        Returns
        -------
        array of uint8
            Rows × columns × 3, RGB.
        """
        pillow = optional.load("PIL.Image", "Pillow", "pathology", "reading images")
        try:
            with pillow.open(self.file) as image:
                shown = image.convert("RGB")
        except (OSError, SyntaxError, ValueError, pillow.DecompressionBombError) as problem:
            raise FileError(f"{self.file} cannot be read as an image ({problem}): check the file") from problem
        if self.box is not None:
            left, top, width, height = self.box
            shown = shown.crop((left, top, left + width, top + height))
        if self.size is not None:
            shown = shown.resize(self.size, pillow.Resampling.BICUBIC)
        return np.asarray(shown)
