"""Normalizers: functions of an image that make it look as if stained and scanned elsewhere."""

import threading
from typing import Any

import numpy as np

from crossfusion._base import InputError, check_known
from crossfusion.pathology import networks, stains
from crossfusion.pathology.images import Image, as_image, compute_digest, digest_file, has_tissue

STAIN_NORMALIZERS = ("none", "reinhard", "macenko")
NETWORKS = {"onnx": networks.load_onnx, "torchscript": networks.load_torchscript}


class Normalizer:
    """A function from images to images. Images without tissue are returned unchanged and counted.

    Parameters
    ----------
    name : str
        Its name.
    apply : callable
        Maps an RGB image to one of the same shape, or to None if there is nothing to normalize.
    tag : str, optional
        Distinguishes normalizers of the same name, such as a digest of the reference.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfusion.pathology.normalizers import Normalizer
    >>> darker = Normalizer("darker", lambda image: image // 2)
    >>> darker(np.full((2, 2, 3), 200, np.uint8))[0, 0]
    array([100, 100, 100], dtype=uint8)
    >>> darker
    Normalizer('darker'), 0 of 1 images left as they are
    """

    def __init__(self, name: str, apply: stains.Apply, tag: str = "") -> None:
        self.name, self.tag = name, tag
        self._apply = apply
        self._lock = threading.Lock()
        self.seen = self.unchanged = 0

    def __call__(self, image: Any) -> Image:
        """Return the normalized image."""
        return self.apply(image)[0]

    def apply(self, image: Any) -> tuple[Image, bool]:
        """Normalize an image, and return whether it was left unchanged because it has too little tissue.

        Parameters
        ----------
        image : array of uint8
            Rows × columns × 3, RGB.

        Returns
        -------
        tuple
            The image, and True if it was left unchanged.
        """
        given = as_image(image)
        found = self._apply(given)
        with self._lock:
            self.seen += 1
            self.unchanged += found is None
        if found is None:
            return given, True
        if found.shape != given.shape:
            raise InputError(
                problem=f"{self.name} makes {found.shape} of {given.shape}",
                remedy="use one that keeps the size of images",
            )
        return found, False

    def __repr__(self) -> str:
        return f"Normalizer({self.name!r}), {self.unchanged} of {self.seen} images left as they are"


def normalizer(name: str, reference: Any = None, *, values: str | None = None, device: str = "auto") -> Normalizer:
    """Create a stain normalizer by name.

    Parameters
    ----------
    name : str
        ``none``; ``reinhard`` or ``macenko``, which match an image to a reference; ``onnx:FILE`` or
        ``torchscript:FILE``, any network from image to image, n × 3 × height × width. A TorchScript file is a program:
        load only files whose origin you trust.
    reference : path, array or Tile, optional
        The reference image for Reinhard and Macenko; see :func:`choose_reference`.
    values : {"0..1", "-1..1", "0..255"}, optional
        The range of values that a network takes and returns; or append it to the name: ``onnx:FILE@-1..1``.
    device : str
        Where a network runs: ``auto``, ``cpu``, ``cuda``, ``cuda:1`` or ``mps``.

    Returns
    -------
    Normalizer
        A function from an RGB image (uint8) to one of the same size. Images with less than 2% stained pixels or
        fewer than two stains are returned unchanged; ``unchanged`` counts them.

    References
    ----------
    .. [1] E. Reinhard et al., Color transfer between images. IEEE Computer Graphics and Applications 21(5), 2001.
    .. [2] M. Macenko et al., A method for normalizing histology slides for quantitative analysis. ISBI 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfusion.pathology.normalizers import normalizer
    >>> rng = np.random.default_rng(0)
    >>> reference = rng.integers(60, 180, (64, 64, 3)).astype(np.uint8)
    >>> to_reference = normalizer("reinhard", reference)
    >>> image = rng.integers(100, 200, (64, 64, 3)).astype(np.uint8)
    >>> bool(abs(to_reference(image).mean() - reference.mean()) < 5)
    True
    >>> blank = np.full((64, 64, 3), 245, np.uint8)
    >>> bool((to_reference(blank) == blank).all()), to_reference.unchanged
    (True, 1)
    """
    kind, colon, rest = str(name).partition(":")
    if colon and kind in NETWORKS:
        return _load_network(name, kind, rest, values, device)
    check_known([name], [*STAIN_NORMALIZERS, *(f"{kind}:FILE" for kind in NETWORKS)], "normalizer", "crossfusion")
    if name == "none":
        return Normalizer("none", lambda image: image)
    pixels = stains.as_reference(reference, name)
    maker = stains.macenko if name == "macenko" else stains.reinhard
    return Normalizer(name, maker(pixels), compute_digest([str(pixels.shape), np.ascontiguousarray(pixels)]))


def _load_network(name: str, kind: str, rest: str, values: str | None, device: str) -> Normalizer:
    path, numbers, said = networks.split_values(rest, values, networks.VALUE_RANGES, name)
    network = NETWORKS[kind](path, device)

    def apply(image: Image) -> Image | None:
        if not has_tissue(image):
            return None
        taken = (network.height or image.shape[0], network.width or image.shape[1])
        if taken != image.shape[:2]:
            sides = f"{image.shape[1]} × {image.shape[0]}"
            raise InputError(
                problem=f"{path} takes images of {taken[1]} × {taken[0]} pixels, not {sides}",
                remedy="read tiles of that size",
            )
        found = network.run(numbers.to_network(image)[None])
        if found.shape != (1, 3, *taken):
            raise InputError(
                problem=f"{path} makes {found.shape} of (1, 3, {taken[0]}, {taken[1]})",
                remedy="use a network that keeps both",
            )
        if not np.isfinite(found).all():
            raise InputError(
                problem=f"{path} gives NaN or infinite values", remedy=f"check that it takes values of {said}"
            )
        return numbers.to_image(found[0])

    return Normalizer(name, apply, compute_digest([digest_file(path), said]))
