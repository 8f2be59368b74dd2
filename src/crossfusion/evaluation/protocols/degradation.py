"""The cross-domain degradation rate: the drop in score of a model trained on one domain and tested on another."""

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from crossfusion._base import (
    FloatArray,
    InputError,
    align_index,
    check_level,
    check_option,
    check_seed,
    check_whole,
    label_text,
    warn,
)
from crossfusion.evaluation.correctors.domains import Domains, as_codes, as_domains
from crossfusion.evaluation.protocols.cross_validation import Task, Trainer, as_model
from crossfusion.evaluation.protocols.degradation_result import Cddr, Drop
from crossfusion.evaluation.protocols.scores import METRICS, Predictions

MAX_RESAMPLED_WEIGHTS = 2**22  # numbers of resampled weights held at a time


def cddr(
    x: Any,
    y: Any,
    domain: Any,
    *,
    model: Any = None,
    metric: str = "f1_macro",
    units: Any = None,
    folds: int = 5,
    level: float = 0.95,
    draws: int = 999,
    pairs: Sequence[tuple[Any, Any]] | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Cddr:
    r"""Cross-domain degradation rate: the relative drop in score from the training domain to another domain.

    .. math:: \mathrm{CDDR}(A \to B) = (M_A - M_B) / M_A

    Parameters
    ----------
    x : array of shape (rows, dim)
        Rows of all domains.
    y : array of shape (rows,)
        The label of each row, to be predicted.
    domain : array of shape (rows,)
        The domain of each row, such as its scanner.
    model : scikit-learn classifier, optional
        By default a logistic regression on standardized features.
    metric : {"f1_macro", "auc", "accuracy"}
        The score; ``auc`` is the mean over classes of one class against the rest.
    units : array of shape (rows,), optional
        The unit of each row, such as its patient or slide. A unit is used for training or for testing, never for both.
        Equal values are one unit in all domains: renumber patients if sites use the same numbers for different ones.
    folds : int
        Number of cross-validation folds.
    level : float
        Confidence level of the intervals.
    draws : int
        Bootstrap resamples of the units, or of the rows if there are no units.
    pairs : sequence of pairs, optional
        Directed pairs (train, test) of domains; all pairs by default.
    seed : int
        Seed of folds and resamples.
    progress : function, optional
        Called with a line of text for each pair.

    Returns
    -------
    Cddr
        For each directed pair the scores within and across domains, the rate, and its interval.

    Notes
    -----
    Only rows whose label occurs in both domains are used. Each fold's model is tested on the fold of A that it was not
    trained on and on B, so both scores come from training sets of the same size. If B shares units with A, such as the
    same tissue on another scanner, a model is tested only on those units of B that are held out in A. Accuracy and F1
    pool the predictions of all folds; the area under the curve is averaged over folds.

    The interval is a percentile interval from a paired bootstrap of the predictions: each resample gives both scores,
    and shared units are drawn for both domains at once. Models are not retrained, so the interval does not include the
    variability of training. It is NaN if all resamples agree, and rough with three or four units.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> rng = np.random.default_rng(0)
    >>> label, scanner = np.tile([0, 1], 150), np.repeat(["S1", "S2"], 150)
    >>> x = rng.normal(size=(300, 4)) + 2 * label[:, None]
    >>> x[scanner == "S2"] += 2
    >>> cf.cddr(x, label, scanner)
    Cross-domain degradation rate of the macro F1
    train  test  within   cross    CDDR      95% interval  labels
    S1     S2    0.9600  0.3623  0.6226  0.5624 to 0.6727       2
    S2     S1    0.9667  0.3509  0.6370  0.5903 to 0.6828       2
    """
    check_cddr_options(metric, folds, level, draws, seed)
    y, domain, units = align_index("x", x, y=y, domain=domain, units=units)
    found = as_domains(x, domain)
    task = as_task(found, y, units)
    trainer = Trainer(task, as_model(model, metric == "auc"), folds, seed, metric == "auc")
    asked = list_directed_pairs(found, task, pairs)
    drops = []
    for number, (a, b) in enumerate(asked):
        if progress is not None:
            progress(f"{label_text(found.names[a])} → {label_text(found.names[b])}: pair {number + 1} of {len(asked)}")
        drops.append(measure_drop(trainer, a, b, metric, level, draws, seed))
    return Cddr(tuple(drops), metric, level)


def check_cddr_options(metric: Any, folds: Any, level: Any, draws: Any, seed: Any) -> None:
    """Refuse options that are none."""
    check_option(metric, list(METRICS), "metric")
    check_whole(folds, "folds", 2)
    check_level(level, needed=True)
    check_whole(draws, "draws", 2)
    check_seed(seed, below=2**32)


def as_task(found: Domains, y: Any, units: Any) -> Task:
    """Rows with their labels and units."""
    label, labels = as_codes(y, len(found.x), "y")
    if len(labels) < 2:
        raise InputError(
            "y", problem=f"has {len(labels)} distinct values", remedy="pass at least two labels to tell apart"
        )
    unit = np.arange(len(found.x), dtype=np.int32) if units is None else as_codes(units, len(found.x), "units")[0]
    return Task(found.x, found.code, label, unit, found.names, labels, units is not None)


def list_directed_pairs(found: Domains, task: Task, pairs: Any) -> list[tuple[int, int]]:
    """Directed pairs of domains that have two labels or more in common."""
    every = list(permutations(range(len(found.names)), 2))
    if pairs is None:
        kept = [pair for pair in every if len(task.find_shared_labels(*pair)) > 1]
        gone = [
            "–".join(label_text(found.names[k]) for k in pair)
            for pair in every
            if pair not in kept and pair < pair[::-1]
        ]
        if not kept:
            raise InputError(
                problem="no two domains have two labels in common",
                remedy="pass domains that share what a model predicts",
            )
        if gone:
            warn("pairs with fewer than two labels in common are left out: " + ", ".join(gone))
        return kept
    asked = found.pairs(pairs)
    for a, b in asked:
        if len(task.find_shared_labels(a, b)) < 2:
            raise InputError(
                problem=f"domains {label_text(found.names[a])!r} and {label_text(found.names[b])!r} have fewer"
                " than two labels in common",
                remedy="leave the pair out",
            )
    return asked


def measure_drop(trainer: Trainer, a: int, b: int, metric: str, level: float, draws: int, seed: int) -> Drop:
    """One directed pair."""
    task = trainer.task
    classes = task.find_shared_labels(a, b)
    within, cross = _renumber_units(*trainer.predict_pair(a, b, classes))
    scores = _score(within, cross, metric, len(classes), np.ones((1, _count_units(within, cross))))
    rng = np.random.default_rng([seed, a, b])
    resampled = [
        _score(within, cross, metric, len(classes), times) for times in _draw_resamples(within, cross, draws, rng)
    ]
    rates = _compute_rate(*np.concatenate(resampled, axis=1))
    rates = rates[np.isfinite(rates)]
    tails = (1 - level) / 2
    told = len(rates) and np.ptp(rates) > 0  # where no resample differs, they tell nothing of the error
    lower, upper = np.quantile(rates, [tails, 1 - tails]) if told else (np.nan, np.nan)
    return Drop(
        task.domains[a],
        task.domains[b],
        float(scores[0][0]),
        float(scores[1][0]),
        float(_compute_rate(*scores)[0]),
        float(lower),
        float(upper),
        tuple(task.labels[code] for code in classes),
        len(task.find_rows(a, classes)),
        len(task.find_rows(b, classes)),
    )


def _score(
    within: Predictions, cross: Predictions, metric: str, classes: int, times: FloatArray
) -> tuple[FloatArray, FloatArray]:
    score = METRICS[metric]
    return score(within, classes, times), score(cross, classes, times)


def _compute_rate(within: FloatArray, cross: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        rate: FloatArray = np.where(within > 0, (within - cross) / within, np.nan)
    return rate


def _renumber_units(within: Predictions, cross: Predictions) -> tuple[Predictions, Predictions]:
    """The same with the units of this pair numbered from 0."""
    _, codes = np.unique(np.concatenate([within.unit, cross.unit]), return_inverse=True)
    parts = np.split(codes, [len(within.unit)])
    a, b = (
        Predictions(code, said.truth, said.guess, said.fold, said.score)
        for code, said in zip(parts, (within, cross), strict=True)
    )
    return a, b


def _count_units(within: Predictions, cross: Predictions) -> int:
    return 1 + int(max(within.unit.max(), cross.unit.max()))


def _draw_resamples(
    within: Predictions, cross: Predictions, draws: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """How often each unit counts: both domains' units together where they share some, else each domain's apart."""
    own, other = np.unique(within.unit), np.unique(cross.unit)
    pools = [np.union1d(own, other)] if len(np.intersect1d(own, other)) else [own, other]
    size = _count_units(within, cross)
    step = max(1, MAX_RESAMPLED_WEIGHTS // size)
    for start in range(0, draws, step):
        times = np.zeros((min(step, draws - start), size))
        for pool in pools:
            drawn = rng.integers(len(pool), size=(len(times), len(pool))) + len(pool) * np.arange(len(times))[:, None]
            times[:, pool] = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)
        yield times
