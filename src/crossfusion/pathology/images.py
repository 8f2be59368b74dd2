"""Checks and numbers of images that normalizers and encoders share."""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FileError, InputError

Image = NDArray[np.uint8]
READ_BYTES = 2**24  # bytes of a file that are read at a time

LIGHT_INTENSITY = 240.0  # what the scanner sees through nothing, and
CLEAR_DENSITY = 0.15  # the optical density below which a pixel is that: the constants of Macenko et al. (2009)
MIN_STAINED_SHARE = 0.02  # share of stained pixels below which there is no stain to speak of


def as_image(values: Any, name: str = "image") -> Image:
    """An RGB image, rows × columns × 3, or one sentence that says what it is instead."""
    image = np.asarray(values)
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
        raise InputError(
            name,
            problem=f"must be an RGB image, rows × columns × 3 of uint8, but has shape {image.shape} of {image.dtype}",
            remedy="convert it with PIL.Image's convert('RGB')",
        )
    return image


def compute_densities(image: Image) -> NDArray[np.float64]:
    """Optical density of each pixel and channel, pixels × 3."""
    table = -np.log((np.arange(256) + 1.0) / LIGHT_INTENSITY)  # a look-up is some times as fast as a logarithm a pixel
    return np.asarray(table[image.reshape(-1, 3)])


def is_stained(density: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which pixels are stained: dense in every channel."""
    return np.asarray((density >= CLEAR_DENSITY).all(axis=1))


def has_tissue(image: Image) -> bool:
    """Whether enough of an image is stained for its stain to be known."""
    return bool(is_stained(compute_densities(image)).mean() >= MIN_STAINED_SHARE)


def compute_digest(parts: Iterable[Any]) -> str:
    """A short name for bytes, arrays and text, the same for the same."""
    found = blake2b(digest_size=12)
    for part in parts:
        found.update(part.encode() if isinstance(part, str) else part)
    return found.hexdigest()


def digest_file(path: Path) -> str:
    """A short name for the content of a network's file, and of the file beside it that ONNX puts large weights into."""
    beside = path.with_name(f"{path.name}.data")
    try:
        return compute_digest(
            piece for file in (path, beside) if file == path or file.exists() for piece in _read_chunks(file)
        )
    except OSError as problem:
        raise FileError(
            path, f"cannot be read ({problem.strerror or problem})", "check the path and the rights to read it"
        ) from problem


def _read_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: file.read(READ_BYTES), b"")
