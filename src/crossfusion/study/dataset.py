"""A data set to evaluate distances on, the settings, and what was found."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import InputError, check_option, field_values
from crossfusion.evaluation import Rdr, Study
from crossfusion.fusion import Record
from crossfusion.study import published

NONE = "none"
Rows = NDArray[np.floating[Any]]

UNLABELLED = (  # those of the registry that are neither another one's square nor many times as slow
    "cfd",
    "cfd_unbiased",
    "cfd_balanced",
    "wasserstein",
    "mmd",
    "mmd2_unbiased",
    "energy",
    "hausdorff",
    "chamfer",
    "gaussian_wasserstein",
    "sliced_wasserstein",
    "classifier",
)
LABELLED = ("cfd_given_label", "cfd_given_label_unbiased")


@dataclass(frozen=True)
class Dataset:
    """Rows of several domains, and the versions of them that are compared.

    Parameters
    ----------
    name : str
        Letters, digits, ``_`` and ``-``: also the folder of the results.
    versions : mapping of str to array or str
        Corrected rows in the order of `x`, such as embeddings of normalized images; or the name of a correction of
        ``crossfusion.corrections``, which is made of `x`. ``none`` comes first, whether it is named or not.
    x : array of shape (rows, dim)
        The rows as they are.
    domain : sequence of str
        The domain of each row.
    label : sequence of str, optional
        What a model predicts; without it, only ratios are found.
    units : sequence of str, optional
        What is independent; equal values are one unit in all domains.
    note : str
        What to know when reading its tables, in sentences.
    printed : str, optional
        The data set of the paper that this is, a key of ``published.DATASETS``, whose printed numbers stand beside
        ours; None for any other data.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfusion.study import Dataset
    >>> x, site = np.random.default_rng(0).normal(size=(8, 2)), ["A", "B"] * 4
    >>> list(Dataset("small", {"centered": "center"}, x, site, label=["u", "u", "v", "v"] * 2).all_versions)
    ['none', 'centered']
    """

    name: str
    versions: Mapping[str, Rows | str]
    x: Rows
    domain: Sequence[str]
    label: Sequence[str] | None = None
    units: Sequence[str] | None = None
    note: str = ""
    printed: str | None = None

    def __post_init__(self) -> None:
        """Reject a name that is not valid for a folder, and a data set that the paper does not have."""
        if self.printed is not None:
            check_option(self.printed, tuple(published.DATASETS), "printed")
        if not re.fullmatch(r"[A-Za-z0-9][\w-]*", self.name, re.ASCII):
            raise InputError("name", self.name, "is not a valid name of a data set", "use letters, digits, _ and -")

    @property
    def all_versions(self) -> dict[str, Rows | str]:
        """Every version, the rows as they are first."""
        return {NONE: self.x} | {name: value for name, value in self.versions.items() if name != NONE}


@dataclass(frozen=True)
class Plan:
    """How a data set is evaluated.

    Parameters
    ----------
    distances : sequence of str
        Those of ratios and of the study.
    within_labels : sequence of str
        Those that need labels, of the study only.
    halves : int
        Random halves for the ratios.
    rows : int
        Most rows of a domain in a distance, of a half in a ratio.
    repeats : int
        Samples of so many rows that a distance of the study is the average of.
    folds, draws, permutations, level, metric, seed
        As in ``degradation_study``.

    Examples
    --------
    >>> from crossfusion.study import Plan
    >>> Plan.quick(seed=1).seed
    1
    """

    distances: Sequence[str] = UNLABELLED
    within_labels: Sequence[str] = LABELLED
    halves: int = 50
    rows: int = 250
    repeats: int = 5
    folds: int = 5
    draws: int = 999
    permutations: int = 999
    level: float = 0.95
    metric: str = "f1_macro"
    seed: int = 0

    @classmethod
    def quick(cls, **choices: Any) -> "Plan":
        """Small settings for a first look: fewer distances, rows and repeats; `choices` are fields to set otherwise."""
        few: dict[str, Any] = {
            "distances": ("cfd", "cfd_unbiased", "wasserstein", "mmd", "hausdorff", "chamfer"),
            "halves": 5,
            "rows": 60,
            "repeats": 2,
            "folds": 3,
            "draws": 99,
            "permutations": 99,
        }
        return cls(**few | choices)


@dataclass(frozen=True)
class Evaluation(Record):
    """What was found on one data set; names, notes and `printed` are as there, and `study` is None without labels."""

    name: str
    note: str
    plan: Plan
    counts: Mapping[str, int]
    rdr: Mapping[str, Rdr]
    study: Study | None
    cautions: tuple[str, ...] = field(default=())
    printed: str | None = None
    folder: Path = field(default=Path(), compare=False)

    def _values(self) -> dict[str, Any]:
        return {name: value for name, value in field_values(self).items() if name != "folder"}
