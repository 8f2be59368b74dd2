"""Harmony, if it is installed."""

from typing import Any

import numpy as np

from crossfusion._base import FloatArray, check_seed, optional
from crossfusion.evaluation.correctors.domains import as_domains


def load_harmony() -> Any:
    """The library, or what installs it."""
    return optional.load("harmonypy", "harmonypy", None, "the correction 'harmony'")


def harmony(x: Any, domain: Any, *, seed: int = 0) -> FloatArray:
    """Harmony: cluster rows softly across domains, and correct each cluster.

    Parameters
    ----------
    x : array of shape (rows, dim)
        Rows of all domains; the authors use a few dozen principal components.
    domain : array of shape (rows,)
        The domain of each row.
    seed : int
        Seed of the clusters.

    Returns
    -------
    array of shape (rows, dim)
        Corrected rows.

    Notes
    -----
    Needs harmonypy, which is licensed under the GPL and therefore is neither a dependency nor part of an extra: install
    it by name. Each iteration is linear in rows.

    References
    ----------
    Korsunsky et al., *Fast, sensitive and accurate integration of single-cell data with Harmony* (2019).
    """
    check_seed(seed, below=2**32)
    found = as_domains(x, domain)
    run = load_harmony().run_harmony
    frame = optional.load("pandas", "pandas", "pandas", "the correction 'harmony'").DataFrame
    labels = frame({"domain": found.code.astype(str)})
    fitted = run(found.x, labels, ["domain"], random_state=seed, verbose=False)
    corrected, original = np.asarray(fitted.Z_corr, np.float64), np.asarray(fitted.Z_orig)
    upright = original.shape == found.x.shape and np.allclose(original, found.x, rtol=1e-3, atol=1e-3)
    return corrected if upright else np.ascontiguousarray(corrected.T)  # older versions have rows as columns
