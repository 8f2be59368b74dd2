"""Models trained on parts of one domain, and what they say about rows whose units they have not seen."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crossfusion._base import CodeArray, FloatArray, InputError, arg, count_text, label_text, optional
from crossfusion.evaluation.protocols.scores import Predictions

PURPOSE = "training a model"


@dataclass(frozen=True)
class Task:
    """Rows, what is to be predicted of them, and how."""

    x: FloatArray  # features
    domain: CodeArray  # codes of each row's domain, label and unit; a row is a unit of its own where there are none
    label: CodeArray  # codes of each row's domain, label and unit; a row is a unit of its own where there are none
    unit: CodeArray  # codes of each row's domain, label and unit; a row is a unit of its own where there are none
    domains: tuple[Any, ...]  # what the codes stand for
    labels: tuple[Any, ...]  # what the codes stand for
    grouped: bool  # whether units hold several rows

    def find_rows(self, domain: int, classes: Sequence[int]) -> Any:
        """Rows of a domain with one of these labels."""
        return np.flatnonzero((self.domain == domain) & np.isin(self.label, classes))

    def find_shared_labels(self, a: int, b: int) -> tuple[int, ...]:
        """Labels that two domains have in common."""
        return tuple(np.intersect1d(self.label[self.domain == a], self.label[self.domain == b]).tolist())


@dataclass
class Trainer:
    """Models of the folds of each domain, trained once however many domains they are tested on."""

    task: Task  # what to train on
    model: Any  # a fresh copy is trained for each fold; a standardized logistic regression by default
    folds: int  # parts of each domain
    seed: int  # seed of the folds
    scores: bool  # whether how strongly each class is said is needed
    _trained: dict[Any, Any] = field(default_factory=dict)

    def predict_pair(self, source: int, target: int, classes: tuple[int, ...]) -> tuple[Predictions, Predictions]:
        """Predictions within the source, and on the target: each row of a unit by models that did not see the unit."""
        models, parts = self._train_models(source, classes)
        task, rows = self.task, self.task.find_rows(target, classes)
        fold_of = dict(zip(task.unit[np.concatenate(parts)].tolist(), _number_folds(parts), strict=True))
        meets = np.isin(task.unit[rows], list(fold_of))
        if meets.any():  # what the source does not have is dealt to the models in turn
            place = np.array([fold_of.get(u, u % self.folds) for u in task.unit[rows].tolist()])
            tested = [rows[place == fold] for fold in range(self.folds)]
        else:
            tested = [rows] * self.folds
        return self._predict(models, parts, classes), self._predict(models, tested, classes)

    def _train_models(self, source: int, classes: tuple[int, ...]) -> tuple[list[Any], list[Any]]:
        key = source, classes
        if key not in self._trained:
            rows = self.task.find_rows(source, classes)
            parts = self._split_folds(rows, source)
            models = [self._fit(np.setdiff1d(rows, part), source) for part in parts]
            self._trained = {key: (models, parts)}  # of one domain at a time
        found: tuple[list[Any], list[Any]] = self._trained[key]
        return found

    def _split_folds(self, rows: Any, source: int) -> list[Any]:
        """Test rows of each fold, stratified by label, units whole."""
        selection = optional.load("sklearn.model_selection", "scikit-learn", "distances", PURPOSE)
        task, name = self.task, label_text(self.task.domains[source])
        label, unit = task.label[rows], task.unit[rows]
        for code in np.unique(label):
            number = int(np.sum(label == code))
            if number < self.folds:
                raise InputError(
                    problem=f"label {label_text(task.labels[code])!r} has {count_text(number, 'row')} in domain"
                    f" {name!r} for {arg('folds', self.folds)}",
                    remedy="pass fewer folds, or leave the label out",
                )
        units = len(np.unique(unit))
        if units < self.folds:
            way_out = "pass fewer folds" if units > 1 else "name smaller units, or leave the domain out"
            raise InputError(
                problem=f"domain {name!r} has {units} units for {arg('folds', self.folds)}", remedy=way_out
            )
        kind = selection.StratifiedGroupKFold if task.grouped else selection.StratifiedKFold
        splitter = kind(self.folds, shuffle=True, random_state=self.seed)
        groups = unit if task.grouped else None
        return [rows[test] for _, test in splitter.split(np.zeros((len(rows), 1)), label, groups)]

    def _fit(self, rows: Any, source: int) -> Any:
        if len(np.unique(self.task.label[rows])) < 2:
            name = label_text(self.task.domains[source])
            raise InputError(
                problem=f"a fold of domain {name!r} leaves one label to train on",
                remedy="pass fewer folds, or more units",
            )
        base = optional.load("sklearn.base", "scikit-learn", "distances", PURPOSE)
        return base.clone(self.model).fit(self.task.x[rows], self.task.label[rows])

    def _predict(self, models: list[Any], tested: Sequence[Any], classes: tuple[int, ...]) -> Predictions:
        at = {code: place for place, code in enumerate(classes)}
        guesses, scores, rows, fold = [], [], [], []
        for number, (model, test) in enumerate(zip(models, tested, strict=True)):
            if len(test):
                guesses += [at[code] for code in model.predict(self.task.x[test]).tolist()]
                scores += [_score_classes(model, self.task.x[test], at)] if self.scores else []
                rows.append(test)
                fold += [number] * len(test)
        where = np.concatenate(rows)
        truth = np.searchsorted(classes, self.task.label[where])
        score = np.concatenate(scores) if scores else None
        return Predictions(self.task.unit[where], truth, np.array(guesses), np.array(fold), score)


def _number_folds(parts: Sequence[Any]) -> list[int]:
    return np.repeat(np.arange(len(parts)), [len(part) for part in parts]).tolist()


def _score_classes(model: Any, x: FloatArray, at: dict[int, int]) -> FloatArray:
    """How strongly each class is said; a class that the model was not shown, less than any."""
    found = model.predict_proba(x) if hasattr(model, "predict_proba") else model.decision_function(x)
    found = np.stack([-found, found], axis=1) if found.ndim == 1 else found
    scores = np.full((len(x), len(at)), found.min() - 1)
    scores[:, [at[code] for code in model.classes_.tolist()]] = found
    return scores


def as_model(model: Any, scores: bool) -> Any:
    """A classifier to copy; by default a standardized logistic regression."""
    if model is None:
        linear, pipeline, preprocessing = (
            optional.load(f"sklearn.{module}", "scikit-learn", "distances", PURPOSE)
            for module in ("linear_model", "pipeline", "preprocessing")
        )
        return pipeline.make_pipeline(preprocessing.StandardScaler(), linear.LogisticRegression(max_iter=1000))
    needed = ["fit", "predict", "get_params"]
    if any(not hasattr(model, name) for name in needed) or isinstance(model, type):
        raise InputError(
            "model", model, "is not a scikit-learn classifier", "pass one that is made, such as LogisticRegression()"
        )
    base = optional.load("sklearn.base", "scikit-learn", "distances", PURPOSE)
    if not base.is_classifier(model):
        raise InputError("model", model, "predicts no classes", "pass a classifier, such as LogisticRegression()")
    if scores and not (hasattr(model, "predict_proba") or hasattr(model, "decision_function")):
        raise InputError(
            "metric", "auc", "needs a model with predict_proba or decision_function", "choose another of them"
        )
    return model
