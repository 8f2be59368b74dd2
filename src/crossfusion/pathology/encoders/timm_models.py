"""Encoders of timm: published ones from the Hugging Face hub, any model by name, and checkpoints in a folder."""

import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from crossfusion._base import CrossfusionError, FileError, InputError, declare_operators, optional
from crossfusion.pathology.devices import load_torch, shorten_problem
from crossfusion.pathology.encoders.base import Array, Encoder, wrap_module
from crossfusion.pathology.images import Image


@dataclass(frozen=True)
class PublishedModel:
    """A published encoder: where its weights are, and how its authors say to load and pool it."""

    repository: str
    options: Callable[[Any], dict[str, Any]]
    before_patches: int | None = None  # tokens before those of patches: the class token and registers; None: pooled


def _make_swiglu_options(timm: Any) -> dict[str, Any]:
    # not in the published config.json: without both, the weights do not fit
    return {"mlp_layer": timm.layers.SwiGLUPacked, "act_layer": load_torch().nn.SiLU}


def _make_layer_scale_options(_timm: Any) -> dict[str, Any]:
    return {"init_values": 1e-5, "dynamic_img_size": True}


PUBLISHED = {  # as the cards of these models on huggingface.co say
    "virchow": PublishedModel("paige-ai/Virchow", _make_swiglu_options, before_patches=1),
    "virchow2": PublishedModel("paige-ai/Virchow2", _make_swiglu_options, before_patches=5),
    "uni": PublishedModel("MahmoodLab/UNI", _make_layer_scale_options),
}


def load_published(name: str, folder: str, **options: Any) -> Encoder:
    """A published encoder from the hub, or from a folder that holds its files."""
    known = PUBLISHED[name.partition(":")[0]]
    timm = load_timm()
    source = f"local-dir:{_check_folder(folder)}" if folder else f"hf-hub:{known.repository}"
    with _explain_failure(name, known.repository, folder):
        model = timm.create_model(source, pretrained=True, **known.options(timm))
    return _make_encoder(name, model, known.before_patches, **options)


def load_by_name(name: str, model_name: str, *, pretrained: bool = True, **options: Any) -> Encoder:
    """Any model of timm, without its head; its weights are fetched unless told otherwise."""
    timm, library = load_timm(), load_torch()
    plain = model_name.split(".")[0]
    if ":" not in model_name and not timm.is_model(plain):
        near = timm.list_models(f"*{plain}*")[:3]
        hint = f"there is {', '.join(near)}" if near else "see timm.list_models()"
        raise InputError(problem=f"timm has no model {model_name!r}", remedy=hint)
    with _explain_failure(name, model_name, ""), library.random.fork_rng(devices=[]):
        library.manual_seed(0)  # of weights that are not fetched
        model = timm.create_model(model_name, pretrained=pretrained, num_classes=0)
    return _make_encoder(name, model, None, **options)


def load_folder(name: str, folder: str, **options: Any) -> Encoder:
    """A checkpoint in a folder: config.json beside model.safetensors or pytorch_model.bin."""
    timm = load_timm()
    with _explain_failure(name, folder, folder):
        model = timm.create_model(f"local-dir:{_check_folder(folder)}", pretrained=True, num_classes=0)
    return _make_encoder(name, model, None, **options)


def _make_encoder(name: str, model: Any, before_patches: int | None, **options: Any) -> Encoder:
    data = load_timm().data
    config = data.resolve_data_config(model.pretrained_cfg, model=model)
    transform = data.create_transform(**config)
    pillow = optional.load("PIL.Image", "Pillow", "pathology", "encoding images")

    def prepare(image: Image) -> Array:
        return np.asarray(transform(pillow.fromarray(image)).numpy(), np.float32)

    _, height, width = config["input_size"]
    pool = None if before_patches is None else _make_token_pool(name, model, before_patches)
    return wrap_module(name, model, prepare, (width, height), pool=pool, **options)


def _make_token_pool(name: str, model: Any, before: int) -> Callable[[Any], Any]:
    """The class token beside the mean of the patches' tokens; registers are passed over."""
    library = load_torch()
    found = getattr(model, "num_prefix_tokens", None)
    if found != before:
        raise InputError(
            problem=f"{name} has {found} tokens before its patches, not {before}",
            remedy="name the encoder that it is of",
        )

    def pool(tokens: Any) -> Any:
        if tokens.ndim != 3:
            raise InputError(problem=f"{name} gives no tokens", remedy="its config.json must have an empty global_pool")
        return library.cat([tokens[:, 0], tokens[:, before:].mean(1)], dim=-1)

    return pool


def _check_folder(folder: str) -> Path:
    """A folder with a checkpoint, or what is missing of it."""
    path = Path(folder)
    config = path / "config.json"
    if not config.is_file():
        raise FileError(config, "does not exist", "a checkpoint is a folder with config.json and model.safetensors")
    try:
        has_architecture = "architecture" in json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError) as problem:
        raise FileError(config, f"is not readable JSON ({shorten_problem(problem)})", "fetch it again") from problem
    if not has_architecture:
        raise FileError(config, "names no architecture of timm", "use a checkpoint that timm's save_for_hf wrote")
    return path


@contextmanager
def _explain_failure(name: str, origin: str, folder: str) -> Iterator[None]:
    """Turn whatever goes wrong when weights are fetched or read into one sentence with the way out."""
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # it tells of each attempt; what counts is said below
    try:
        yield
    except CrossfusionError:
        raise
    except Exception as problem:
        said = shorten_problem(problem).partition(". ")[0]
        if folder:
            raise FileError(
                problem=f"the checkpoint in {folder} cannot be loaded as {name.partition(':')[0]} ({said})",
                remedy="check that it is complete and of that architecture",
            ) from problem
        terms = f"accept the terms on huggingface.co/{origin} and log in with 'hf auth login'"
        way, local = (terms, f"{name}:DIR") if name in PUBLISHED else ("check the network", "folder:DIR")
        raise InputError(
            problem=f"the weights of {name} cannot be fetched ({said})",
            remedy=f"{way}, or pass a folder that holds them as {local}",
        ) from problem
    finally:
        logger.setLevel(level)


@lru_cache(maxsize=1)
def load_timm() -> Any:
    """Import timm, beside whichever build of torchvision is there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        declare_operators()
        return optional.load("timm", "timm", "pathology", "this encoder")
