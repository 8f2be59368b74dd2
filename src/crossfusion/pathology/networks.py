"""Networks in files, ONNX and TorchScript, as functions of float32 arrays: n × 3 × height × width in, an array out."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FileError, InputError, optional
from crossfusion.pathology import devices
from crossfusion.pathology.devices import shorten_problem

Array = NDArray[np.float32]
INPUT_TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
CUDA_PROVIDERS = ["CUDAExecutionProvider", "CPUExecutionProvider"]


@dataclass(frozen=True)
class ValueRange:
    """How numbers of 0 to 255 are passed to a network: (value / 255 − mean) / std."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def to_network(self, image: NDArray[np.uint8]) -> Array:
        """Channels × rows × columns in the network's numbers."""
        numbers = image.transpose(2, 0, 1).astype(np.float32) / np.float32(255)
        return (numbers - _reshape_channels(self.mean)) / _reshape_channels(self.std)

    def to_image(self, numbers: Array) -> NDArray[np.uint8]:
        """And back, rounded, and clipped to what an image can hold."""
        values = (numbers * _reshape_channels(self.std) + _reshape_channels(self.mean)) * np.float32(255)
        return np.asarray(np.clip(np.rint(values), 0, 255).astype(np.uint8).transpose(1, 2, 0))


def _reshape_channels(values: tuple[float, ...]) -> Array:
    return np.array(values, np.float32)[:, None, None]


VALUE_RANGES = {
    "0..1": ValueRange((0.0,) * 3, (1.0,) * 3),
    "-1..1": ValueRange((0.5,) * 3, (0.5,) * 3),
    "0..255": ValueRange((0.0,) * 3, (1 / 255,) * 3),
}
IMAGENET = {"imagenet": ValueRange((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))}


@dataclass(frozen=True)
class Network:
    """A network, and the height and width that it takes (None: any)."""

    run: Callable[[Array], Array]
    height: int | None = None
    width: int | None = None


def split_values(
    text: str, values: str | None, known: dict[str, ValueRange], name: str
) -> tuple[Path, ValueRange, str]:
    """File and values of `FILE@VALUES`; the values may be given apart, and must be given."""
    head, at, tail = text.rpartition("@")
    path, said = (head, tail) if at and tail in known else (text, values)
    if said is None or said not in known or (values not in (None, said)):
        found = "nothing says" if said is None else f"{said!r} does not say" if values in (None, said) else "two say"
        raise InputError(problem=f"{found} which values {name} takes", remedy=f"end it with @{', @'.join(known)}")
    if not Path(path).is_file():
        raise FileError(path, "does not exist", f"check the path after {name.partition(':')[0]}:")
    return Path(path), known[said], said


def load_onnx(path: Path, device: str) -> Network:
    """A network in ONNX format; nothing of it is run but its operators."""
    runtime = optional.load("onnxruntime", "onnxruntime", "pathology", "running ONNX files")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    try:
        session = runtime.InferenceSession(str(path), options, providers=_choose_providers(runtime, device))
    except InputError:
        raise
    except Exception as problem:
        raise FileError(
            path, f"is not a readable ONNX file ({shorten_problem(problem)})", "export it again"
        ) from problem
    return _wrap_session(session, path)


def _choose_providers(runtime: Any, device: str) -> list[str]:
    """Who runs an ONNX file: CUDA where onnxruntime has it, else the CPU."""
    has_cuda = CUDA_PROVIDERS[0] in runtime.get_available_providers()
    if device not in ("auto", "cpu", "cuda"):
        raise InputError("device", device, "is not a known device for ONNX files", "choose 'auto', 'cpu' or 'cuda'")
    if device == "cuda" and not has_cuda:
        raise InputError(
            "device", "cuda", "is not available for ONNX files", "install onnxruntime-gpu, or choose 'auto'"
        )
    return CUDA_PROVIDERS if has_cuda and device != "cpu" else CUDA_PROVIDERS[1:]


def _wrap_session(session: Any, path: Path) -> Network:
    inputs, outputs = session.get_inputs(), session.get_outputs()
    shape = inputs[0].shape if inputs else []
    if len(inputs) != 1 or len(shape) != 4 or shape[1] not in (3, None) or inputs[0].type not in INPUT_TYPES:
        said = ", ".join(f"{entry.name} {entry.type} {entry.shape}" for entry in inputs) or "nothing"
        raise InputError(
            problem=f"{path} takes {said}", remedy="export a network that takes images, n × 3 × height × width of float"
        )
    height, width = (side if isinstance(side, int) else None for side in shape[2:])
    one = shape[0] == 1  # exported without a free number of images

    def run(batch: Array) -> Array:
        given = batch.astype(INPUT_TYPES[inputs[0].type])
        pieces = [given[k : k + 1] for k in range(len(given))] if one else [given]
        try:
            found = [session.run([outputs[0].name], {inputs[0].name: piece})[0] for piece in pieces]
        except Exception as problem:
            raise _make_run_error(path, batch, problem) from problem
        return np.concatenate(found).astype(np.float32)

    return Network(run, height, width)


def load_torchscript(path: Path, device: str) -> Network:
    """A network in TorchScript format. It is a program: loading a file runs what it says."""
    torch, place = devices.load_torch(), devices.choose_device(device)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the format is an old one: people have such files
            model = torch.jit.load(str(path), map_location=place).eval()
    except Exception as problem:
        said = shorten_problem(problem)
        raise FileError(path, f"is not a readable TorchScript file ({said})", "export it again") from problem

    def run(batch: Array) -> Array:
        try:
            with torch.inference_mode():
                found = model(torch.from_numpy(batch).to(place))
            return np.asarray(found.float().cpu().numpy())
        except Exception as problem:
            raise _make_run_error(path, batch, problem) from problem

    return Network(run)


def _make_run_error(path: Path, batch: Array, problem: BaseException) -> InputError:
    sides = f"{batch.shape[3]} × {batch.shape[2]}"
    return InputError(
        problem=f"{path} cannot take images of {sides} pixels ({shorten_problem(problem)})",
        remedy="read tiles of a size that it takes",
    )
