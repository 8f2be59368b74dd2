"""Training with a distance as the penalty: what each is worth on a domain without labels, and what it costs."""

from paper.checks import load_library

for _module, _library in (("torch", "PyTorch"), ("sklearn", "scikit-learn")):
    load_library(_module, _library, "reproduce,torch", "python -m paper training")

from paper.training.run import run  # noqa: E402
from paper.training.settings import Settings  # noqa: E402

__all__ = ["Settings", "run"]
