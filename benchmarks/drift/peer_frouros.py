"""Runs in an environment of its own, without crossfusion: frouros' MMD on streams of embeddings."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

PERMUTATIONS = 99  # so that p ≤ 0.01 has a probability of exactly 1 in 100


def fit(reference: Any) -> Callable[[Any], bool]:
    """From the reference's rows to a function of the rows of a window."""
    from frouros.callbacks import PermutationTestDistanceBased
    from frouros.detectors.data_drift import MMD
    from frouros.utils.kernels import rbf_kernel
    from scipy.spatial.distance import pdist

    test = PermutationTestDistanceBased(PERMUTATIONS, num_jobs=1, method="conservative", random_state=0)
    kernel = partial(rbf_kernel, sigma=float(np.median(pdist(reference))))
    detector = MMD(kernel=kernel, callbacks=test)
    detector.fit(X=reference)

    def alarm(window: Any) -> bool:
        return bool(detector.compare(X=window)[1][test.name]["p_value"] <= 0.01)

    return alarm


if __name__ == "__main__":
    from harness import main

    main({"frouros, MMD, 99 permutations": fit})
