"""Compile all kernels once, before tests run side by side: none of them pays for it, and no two compile at once."""

from contextlib import suppress
from importlib import import_module

import numpy as np

from crossfusion.moments import compiled, compiled_columnwise


def compile_all() -> None:
    """Leave the machine code of every kernel in Numba's cache."""
    compiled.compile_squared_distances()
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        compiled.compile_accumulate(dtype)
        compiled.compile_influence_sums(dtype)
        compiled_columnwise.compile_accumulate_strip(dtype)
        compiled_columnwise.compile_interleave(dtype)
    with suppress(ImportError):
        import_module("dcor")  # compiles as it is imported; two processes that do so at once abort in LLVM


if __name__ == "__main__":
    compile_all()
