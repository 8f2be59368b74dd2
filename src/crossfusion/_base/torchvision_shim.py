"""torchvision beside a PyTorch that it was not built for."""

import re
import warnings
from importlib import import_module
from typing import Any

from crossfusion._base.errors import InputError, first_line

DECLARED_LIBRARIES: list[Any] = []


def declare_operators() -> None:
    """Let torchvision be imported beside a PyTorch that it was not built for.

    timm and torchmetrics import torchvision, of which they use plain Python. The wheels of torchvision on PyPI are
    built for CUDA; beside PyTorch for the CPU their compiled part does not load, and the import fails because operators
    for detection, which nothing here uses, are not declared. Declaring them is enough.
    """
    for _ in range(9):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                import_module("torchvision")
        except ModuleNotFoundError:
            return  # who needs it will say so
        except RuntimeError as problem:
            missing = re.fullmatch(r"operator torchvision::(\w+) does not exist", str(problem))
            if missing is None:
                said = first_line(problem)
                raise InputError(
                    problem=f"torchvision does not fit this PyTorch ({said})",
                    remedy="install versions that go together",
                ) from problem
            declared = import_module("torch").library.Library("torchvision", "FRAGMENT")
            declared.define(f"{missing[1]}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            DECLARED_LIBRARIES.append(declared)  # a declaration lasts as long as its library
        else:
            return
