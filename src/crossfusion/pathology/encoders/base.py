"""What an encoder is: how an image is prepared, and how prepared images become vectors."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import InputError, optional
from crossfusion.pathology.devices import choose_device, choose_precision, load_torch, make_precision_context
from crossfusion.pathology.images import Image, as_image, compute_digest

Array = NDArray[np.float32]


@dataclass(frozen=True, eq=False, repr=False)
class Encoder:
    """A function from RGB images to embeddings.

    Parameters
    ----------
    name : str
        Its name.
    dim : int
        Number of features.
    size : tuple of int
        Width and height in pixels that the network sees.
    prepare : callable
        Maps an image (uint8, any size) to the network's input, 3 × height × width of float32. Runs on several threads.
    forward : callable
        Maps prepared images, n × 3 × height × width, to n × dim of float32.
    tag : str
        Distinguishes encoders of the same name: a digest of the weights, and the precision.
    batch : int
        Number of images per forward pass.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfusion.pathology.encoders import Encoder
    >>> color = Encoder(
    ...     "mean color", dim=3, size=(1, 1),
    ...     prepare=lambda image: image.mean(axis=(0, 1), dtype=np.float32)[:, None, None],
    ...     forward=lambda images: images[:, :, 0, 0],
    ... )
    >>> color(np.full((2, 8, 8, 3), 7, np.uint8))
    array([[7., 7., 7.],
           [7., 7., 7.]], dtype=float32)
    """

    name: str
    dim: int
    size: tuple[int, int]
    prepare: Callable[[Image], Array]
    forward: Callable[[Array], Array]
    tag: str = ""
    batch: int = 32

    def __call__(self, images: Iterable[Any]) -> Array:
        """Encode images; returns n × dim."""
        ready = [self.prepare(as_image(image, f"images[{k}]")) for k, image in enumerate(images)]
        found = [self.encode(np.stack(ready[k : k + self.batch])) for k in range(0, len(ready), self.batch)]
        return np.concatenate([np.empty((0, self.dim), np.float32), *found])

    def encode(self, batch: Array) -> Array:
        """Encode prepared images, and check the shape of the result.

        Parameters
        ----------
        batch : array of float32
            Stacked results of ``prepare``.

        Returns
        -------
        array of float32
            One row per image.
        """
        found = np.asarray(self.forward(batch), np.float32)
        if found.shape != (len(batch), self.dim):
            raise InputError(
                problem=f"the encoder {self.name!r} gives {found.shape} for {len(batch)} images of {self.dim} features",
                remedy="give one vector per image",
            )
        return found

    def __repr__(self) -> str:
        return f"Encoder({self.name!r}, dim={self.dim}, size={self.size})"


def wrap_module(
    name: str,
    model: Any,
    prepare: Callable[[Image], Array],
    size: tuple[int, int],
    *,
    device: str,
    precision: str,
    batch: int,
    pool: Callable[[Any], Any] | None = None,
) -> Encoder:
    """An encoder of a PyTorch module; `pool` makes one vector of what it gives for an image."""
    library, place = load_torch(), choose_device(device)
    used = choose_precision(precision, place)
    context = make_precision_context(place, used)
    weights = compute_digest(_iterate_weights(model))
    channels_last = {"memory_format": library.channels_last}  # in which convolutions on a CPU take half the time
    model = model.eval().requires_grad_(False).to(place, **channels_last)

    def forward(images: Array) -> Array:
        with library.inference_mode(), context():
            found = model(library.from_numpy(np.ascontiguousarray(images)).to(place, **channels_last))
            found = found if pool is None else pool(found)
        return np.asarray(found.float().cpu().numpy())

    dim = forward(np.zeros((1, 3, size[1], size[0]), np.float32)).shape
    if len(dim) != 2:
        raise InputError(
            problem=f"the encoder {name!r} gives {dim[1:]} numbers per image, not one vector",
            remedy="name a model that pools, or load it as virchow:DIR, which does",
        )
    return Encoder(name, dim[1], size, prepare, forward, f"weights {weights}, {used}", batch)


def _iterate_weights(model: Any) -> Any:
    """Names and values of all weights."""
    library = load_torch()
    for name, value in model.state_dict().items():
        yield name
        yield value.detach().cpu().contiguous().reshape(-1).view(library.uint8).numpy()


def fit_image(image: Image, width: int, height: int) -> Image:
    """The middle of an image at its own magnification; an image that is too small is enlarged."""
    scale = max(width / image.shape[1], height / image.shape[0])
    if scale > 1:
        pillow = optional.load("PIL.Image", "Pillow", "pathology", "encoding images")
        sides = max(width, round(image.shape[1] * scale)), max(height, round(image.shape[0] * scale))
        image = np.asarray(pillow.fromarray(image).resize(sides, pillow.Resampling.BICUBIC))
    top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
    return image[top : top + height, left : left + width]
