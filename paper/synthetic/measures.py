"""What is measured between the two groups of a pair."""

import crossfusion as cf
from paper.synthetic.populations import Rows
from paper.synthetic.settings import Settings

NAMES = {
    "cfd": "CFD",
    "cfd_unbiased": "CFD, unbiased",
    "cfd_balanced": "CFD, balanced",
    "cfd_balanced_unbiased": "CFD, balanced and unbiased",
    "cfd_trimmed": "CFD, trimmed",
    "wasserstein": "Wasserstein",
    "sinkhorn": "Wasserstein (Sinkhorn)",
    "mmd": "MMD",
    "hausdorff": "Hausdorff",
    "chamfer": "Chamfer",
    "energy": "Energy",
    "gaussian_wasserstein": "Gaussian Wasserstein",
    "sliced_wasserstein": "Sliced Wasserstein",
    "classifier": "Classifier",
}
"""Columns of the results, and what people call them."""

PLAIN = ("mmd", "hausdorff", "chamfer", "energy", "gaussian_wasserstein", "sliced_wasserstein")


def measure(settings: Settings, experiment: str, size: int, a: Rows, b: Rows) -> dict[str, float | None]:
    """All measures of one pair.

    Parameters
    ----------
    settings : Settings
        Which route transport takes, and how much is trimmed.
    experiment : str
        One of ``EXPERIMENTS``; the classifier is for "covariance" only.
    size : int
        Rows of the first group.
    a, b : array of shape (rows, dim)
        The pair.

    Returns
    -------
    dict
        A number for each column, None where it is not measured or not defined.
    """
    found: dict[str, float | None] = dict.fromkeys(NAMES)
    pooled, balanced = cf.cfd(a, b), cf.cfd(a, b, weights="balanced")
    found |= {"cfd": pooled.distance, "cfd_unbiased": pooled.unbiased}
    found |= {"cfd_balanced": balanced.distance, "cfd_balanced_unbiased": balanced.unbiased}
    found["cfd_trimmed"] = cf.cfd(a, b, trim=settings.trim).distance
    if size <= settings.exact_up_to:
        found["wasserstein"] = cf.distance("wasserstein", a, b)
    else:
        options = {"epsilon": settings.epsilon, "tolerance": settings.tolerance}
        found["sinkhorn"] = cf.distance("sinkhorn", a, b, **options)
    found |= {name: cf.distance(name, a, b) for name in PLAIN}
    if experiment == "covariance":
        found["classifier"] = cf.distance("classifier", a, b)
    return found
