"""How well a linear classifier tells two groups apart."""

from typing import Any

import numpy as np

from crossfusion._base import InputError, as_row_pair, check_seed, check_whole, count_text, optional


def classifier(a: Any, b: Any, *, folds: int = 5, seed: int = 0) -> float:
    r"""Proxy A-distance: how well a cross-validated linear classifier separates the groups.

    .. math:: 2\,(1 - 2\,\mathrm{err})

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The two groups of rows.
    folds : int
        Number of stratified folds; each group needs at least as many rows.
    seed : int
        Seed of the folds.

    Returns
    -------
    float
        2 if the groups are classified without error, about 0 if they cannot be distinguished; small negative values are
        expected.

    Notes
    -----
    The classifier is a standardized logistic regression; both groups have the same weight in its error, so imbalance
    does not look like separation. Costs `folds` fits, each linear in rows and features. Saturates at 2 once the groups
    are classified without error. Blind, like any linear rule, to differences in shape between groups of equal mean.

    References
    ----------
    Ben-David, Blitzer, Crammer and Pereira, *Analysis of representations for domain adaptation* (2006).
    """
    check_whole(folds, "folds", 2)
    check_seed(seed, below=2**32)
    rows, labels = _stack_with_labels(*as_row_pair(a, b), folds)
    purpose = "the distance 'classifier'"
    linear, selection, pipeline, preprocessing = (
        optional.load(f"sklearn.{module}", "scikit-learn", "distances", purpose)
        for module in ("linear_model", "model_selection", "pipeline", "preprocessing")
    )
    model = pipeline.make_pipeline(
        preprocessing.StandardScaler(), linear.LogisticRegression(class_weight="balanced", max_iter=1000)
    )
    parts = selection.StratifiedKFold(folds, shuffle=True, random_state=seed)
    wrong = selection.cross_val_predict(model, rows, labels, cv=parts) != labels
    return float(2 - 2 * (wrong[labels == 0].mean() + wrong[labels == 1].mean()))


def _stack_with_labels(a: Any, b: Any, folds: int) -> tuple[Any, Any]:
    for name, rows in {"a": a, "b": b}.items():
        if len(rows) < folds:
            raise InputError(
                name,
                problem=f"has {count_text(len(rows), 'row')} for {count_text(folds, 'fold')}",
                remedy="pass more rows or fewer folds",
            )
    return np.concatenate([a, b]), np.repeat([0, 1], [len(a), len(b)])
