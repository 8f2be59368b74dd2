"""Other distances between two groups of rows: rows in, one number out.

Unlike the layers below, they need the rows themselves, and most of them need every pair of rows.
"""

from crossfusion.evaluation.baselines.registry import distance, distances
from crossfusion.evaluation.baselines.transport import Decomposition, wasserstein_decomposition

__all__ = ["Decomposition", "distance", "distances", "wasserstein_decomposition"]
