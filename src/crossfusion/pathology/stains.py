"""Stain normalization by the stain's statistics: Reinhard and Macenko, as torchstain has them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FileError, InputError, arg, check_known, check_whole, optional
from crossfusion.pathology.images import (
    LIGHT_INTENSITY,
    MIN_STAINED_SHARE,
    Image,
    as_image,
    compute_densities,
    has_tissue,
    is_stained,
)
from crossfusion.pathology.tiles import Tile

FLAT_SPREAD = 1e-3  # spread of the optical density below which an image has one color
GRAY_SPREAD = 0.5  # and of the values of 0 to 255
FAINTEST = 0.1  # concentration of a stain below which it is not there, so that scaling it up scales noise
OBLIQUE = 50.0  # condition of the two stains' directions beyond which they are one

Apply = Callable[[Image], Image | None]  # None: there is nothing to normalize


def macenko(reference: Image) -> Apply:
    """Match the two stains' colors and concentrations with a reference."""
    colors, most = _find_stains(reference) or _refuse("macenko")

    def apply(image: Image) -> Image | None:
        own = _find_stains(image)
        if own is None:
            return None
        concentrations = np.linalg.pinv(own[0]) @ compute_densities(image).T
        concentrations *= (most / own[1])[:, None]
        light = LIGHT_INTENSITY * np.exp(-colors @ concentrations)
        return np.minimum(light, 255).T.reshape(image.shape).astype(np.uint8)  # cut off, as torchstain does

    return apply


def _find_stains(image: Image) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Colors of hematoxylin and eosin (3 × 2) and the most there is of each; None where there are no two stains."""
    density = compute_densities(image)
    mask = is_stained(density)
    if mask.mean() < MIN_STAINED_SHARE or density[mask].std(axis=0).max() < FLAT_SPREAD:
        return None
    fitted = _load_torchstain().NumpyMacenkoNormalizer()
    with np.errstate(all="ignore"):
        fitted.fit(image, Io=LIGHT_INTENSITY)
    colors, most = np.asarray(fitted.HERef), np.asarray(fitted.maxCRef)
    if not (np.isfinite(colors).all() and np.isfinite(most).all()) or most.min() < FAINTEST:
        return None
    return (colors, most) if np.linalg.cond(colors) < OBLIQUE else None


def reinhard(reference: Image) -> Apply:
    """Match mean and spread of lightness and both color axes with a reference."""
    fitted = _load_torchstain().NumpyReinhardNormalizer()
    fitted.fit(reference)
    if not _is_colorful(reference):
        _refuse("reinhard")

    def apply(image: Image) -> Image | None:
        if not _is_colorful(image):
            return None
        with np.errstate(all="ignore"):  # colors beyond those of a screen, which are clipped
            return np.asarray(fitted.normalize(image), np.uint8)

    return apply


def _is_colorful(image: Image) -> bool:
    """Whether there is tissue, and lightness and both color axes vary: what does not vary cannot be rescaled."""
    red, green, blue = image.reshape(-1, 3).T.astype(np.int16)
    return min(axis.std() for axis in (green, red - green, green - blue)) >= GRAY_SPREAD and has_tissue(image)


def _load_torchstain() -> Any:
    # its NumPy side: the same on every device, and one image a thread
    return optional.load("torchstain.numpy.normalizers", "torchstain", "pathology", "stain normalization")


def _refuse(name: str) -> Any:
    raise InputError(
        problem=f"the reference image of {name} has no tissue with two stains", remedy="choose another one"
    )


def as_reference(reference: Any, name: str) -> Image:
    """Pixels of a reference, given as an array, a file or a tile."""
    if reference is None:
        raise InputError(
            problem=f"the normalizer {name!r} needs a reference image",
            remedy="pass a file, an array, or what choose_reference found",
        )
    if isinstance(reference, str | Path):
        reference = Tile(str(reference), str(reference), {})
    return as_image(reference.read() if isinstance(reference, Tile) else reference, "reference")


def choose_reference(tiles: Sequence[Tile], *, sample: int = 200) -> Tile:
    """Choose the most typical tile as the reference for normalization.

    Parameters
    ----------
    tiles : sequence of Tile
        Tiles of the domain that other domains should look like.
    sample : int
        Number of tiles to examine, spread evenly over the sequence.

    Returns
    -------
    Tile
        The tile whose optical densities (mean and spread of each channel over stained pixels) are nearest to the
        medians over all tiles, each measured in median absolute deviations. Tiles without tissue are ignored.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from PIL import Image
    >>> from crossfusion.pathology.stains import choose_reference
    >>> from crossfusion.pathology.tiles import Tile
    >>> folder = tempfile.mkdtemp()
    >>> rng = np.random.default_rng(0)
    >>> tiles = []
    >>> for name, shade in {"pale": 190, "ordinary": 140, "dark": 60}.items():
    ...     pixels = rng.integers(shade - 20, shade + 20, (32, 32, 3)).astype(np.uint8)
    ...     Image.fromarray(pixels).save(f"{folder}/{name}.png")
    ...     tiles.append(Tile(f"{folder}/{name}.png", name, {}))
    >>> choose_reference(tiles).key
    'ordinary'
    """
    check_whole(sample, "sample")
    places = np.linspace(0, len(tiles) - 1, min(sample, len(tiles))).astype(int).tolist()
    seen = [(tiles[k], _compute_statistics(tiles[k].read())) for k in places]
    found = [(tile, numbers) for tile, numbers in seen if numbers is not None]
    if not found:
        raise InputError(
            problem=f"none of {len(seen)} tiles has tissue, so none can be the reference", remedy="pass an image"
        )
    numbers = np.array([entry for _, entry in found])
    gap = np.abs(numbers - np.median(numbers, axis=0))
    unit = np.median(gap, axis=0)
    distance = (gap / np.where(unit > 0, unit, 1)).sum(axis=1)
    tile: Tile = found[int(np.argmin(distance))][0]
    return tile


def find_reference(asked: str | None, tiles: Sequence[Tile]) -> Path | Tile:
    """A reference as the command line names it: a file, or the most ordinary tile of a domain or of all tiles."""
    if asked is None:
        return choose_reference(tiles)
    if Path(asked).is_file():
        return Path(asked)
    factor, equals, value = asked.partition("=")
    if not equals:
        raise FileError(
            problem=f"{arg('reference', asked)} does not exist", remedy="name an image, or a domain as scanner=aperio"
        )
    check_known([factor], list(tiles[0].factors), "factor", "the data")
    check_known([value], sorted({tile.factors[factor] for tile in tiles}), f"{factor} called", "the data")
    return choose_reference([tile for tile in tiles if tile.factors[factor] == value])


def _compute_statistics(image: Image) -> NDArray[np.float64] | None:
    density = compute_densities(image)
    mask = is_stained(density)
    if mask.mean() < MIN_STAINED_SHARE:
        return None
    stained = density[mask]
    return np.concatenate([stained.mean(axis=0), stained.std(axis=0)])
