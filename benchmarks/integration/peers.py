"""The metrics of scib-metrics, each a function of the embedding before, the one after, batches and labels."""

import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from crossfusion._base import thread_count
from paper.checks import load_library

NEIGHBOURS = 90  # as its own benchmark has them
Metric = Callable[[Any, Any, Any, Any], float]


def library() -> Any:
    """The module, or what installs it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what its dependencies say of each other while they load
        return load_library("scib_metrics", "scib-metrics", "bench", "the comparison with scib-metrics")


def pcr(x: Any, batch: Any) -> float:
    """Principal component regression on the batch, over all components."""
    return float(library().utils.principal_component_regression(x, batch, categorical=True))


def pcr_comparison(before: Any, x: Any, batch: Any, _label: Any) -> float:
    """Share of the batch's part of the variance that is gone; 0 where it grew, or is what rounding makes of that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return float(library().pcr_comparison(before, x, batch, categorical=True))


def ilisi(_before: Any, x: Any, batch: Any, _label: Any) -> float:
    """How many batches the nearest neighbours of a cell are of, from 0 for one to 1 for all."""
    near = min(NEIGHBOURS, len(x) - 1)
    found = library().nearest_neighbors.pynndescent(np.asarray(x), n_neighbors=near, n_jobs=thread_count())
    return float(library().ilisi_knn(found, batch))


def asw_batch(_before: Any, x: Any, batch: Any, label: Any) -> float:
    """Average silhouette width of batches within labels, turned so that 1 is mixed."""
    return float(library().silhouette_batch(x, label, batch))


def asw_label(_before: Any, x: Any, _batch: Any, label: Any) -> float:
    """Average silhouette width of labels, from 0 to 1."""
    return float(library().silhouette_label(x, label))


METRICS: Mapping[str, Metric] = MappingProxyType(
    {"PCR comparison": pcr_comparison, "iLISI": ilisi, "ASW batch": asw_batch, "ASW label": asw_label}
)
