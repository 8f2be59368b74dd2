"""Every distance by its name."""

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from crossfusion._base import check_known
from crossfusion.evaluation.baselines.classifier import classifier
from crossfusion.evaluation.baselines.cross_fusion import cfd, cfd_balanced, cfd_unbiased
from crossfusion.evaluation.baselines.energy import energy
from crossfusion.evaluation.baselines.mmd import mmd, mmd2_unbiased
from crossfusion.evaluation.baselines.nearest_neighbors import chamfer, hausdorff
from crossfusion.evaluation.baselines.sinkhorn import sinkhorn, sinkhorn_divergence
from crossfusion.evaluation.baselines.transport import gaussian_wasserstein, sliced_wasserstein, wasserstein

_DISTANCES: tuple[Callable[..., float], ...] = (
    cfd,
    cfd_unbiased,
    cfd_balanced,
    wasserstein,
    sinkhorn,
    sinkhorn_divergence,
    sliced_wasserstein,
    gaussian_wasserstein,
    mmd,
    mmd2_unbiased,
    energy,
    hausdorff,
    chamfer,
    classifier,
)

distances: Mapping[str, Callable[..., float]] = MappingProxyType(
    {function.__name__: function for function in _DISTANCES}
)
"""Every distance by its name; each is a plain function of two arrays of rows."""


def distance(name: str, a: Any, b: Any, **options: Any) -> float:
    """Compute a distance between two groups of rows, by name.

    Parameters
    ----------
    name : str
        One of ``crossfusion.distances``.
    a, b : array of shape (rows, dim)
        The two groups of rows.
    **options
        Keyword arguments of the distance, such as ``bandwidth`` for ``mmd``.

    Returns
    -------
    float
        The distance.

    Examples
    --------
    >>> import crossfusion as cf
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(200, 8)), rng.normal(0.5, size=(200, 8))
    >>> for name in ("cfd_unbiased", "energy", "gaussian_wasserstein"):
    ...     print(f"{name:<22}{cf.distance(name, a, b):.4f}")
    cfd_unbiased          0.0501
    energy                0.6562
    gaussian_wasserstein  1.3603
    """
    check_known([name], list(distances), "distance", "crossfusion")
    function = distances[name]
    check_known(options, list(inspect.signature(function).parameters)[2:], "option", f"the distance {name!r}")
    return function(a, b, **options)
