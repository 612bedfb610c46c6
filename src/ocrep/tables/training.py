"""Train on a part of the rows, test on the rest, and train the model that is kept on all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from ocrep._files.formats import DataError
from ocrep.tables.pipeline import Settings, assemble, label, preprocessing
from ocrep.tables.problem import Problem
from ocrep.tables.task import Task

Progress = Callable[[str, int, int | None], None]
"""Called with what is being done, how much is done, and how much there is (None: unknown)."""


def silent(stage: str, done: int, total: int | None) -> None:
    """Show no progress."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A model, and what it cost and promises."""

    model: Pipeline
    scores: dict[str, float]
    """Errors on the held-out rows of a model trained without them; empty if none were held out."""
    n_train: int
    n_test: int
    refitted: bool
    """Whether `model` is trained on all rows rather than on the training part."""
    seconds: float
    """Of the last training."""


def train(
    problem: Problem, settings: Settings, *, test: float = 0.3, refit: bool = True, progress: Progress = silent
) -> Trained:
    """Train and test on a random split; then train on all rows, unless `refit` is False.

    `test=0` holds nothing out: no scores, one training.
    """
    scores: dict[str, float] = {}
    model, seconds, n_test = None, 0.0, 0
    if test > 0:
        training, held_out = split_rows(problem.y, problem.task, test, settings.seed)
        progress("Training on the training part", 0, None)
        model, seconds = _fit(assemble(problem, settings), problem.X.iloc[training], problem.y[training])
        progress("Testing", 0, None)
        scores = _scores(model, problem, held_out, problem.y[training])
        n_test = len(held_out)
    whole = model is None or refit
    if model is None or refit:
        progress("Training on all rows", 0, None)
        del model
        model, seconds = _fit(assemble(problem, settings), problem.X, problem.y)
    label(model, problem, scores)
    return Trained(model, scores, len(problem.y) - n_test, n_test, whole and n_test > 0, seconds)


def split_rows(y: np.ndarray, task: Task, test: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and rows to test on.

    Classes keep their shares where each has rows enough for both parts; the only row of a class is trained on.
    """
    rows, strata, lonely = np.arange(len(y)), None, np.zeros(len(y), dtype=bool)
    n_test = int(np.ceil(test * len(y)))
    if task == "classification":
        _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        lonely = counts[codes] == 1
        n_classes = int((counts > 1).sum())
        if min(n_test, len(y) - n_test - lonely.sum()) >= n_classes > 0:
            strata = y[~lonely]
    if n_test < 1 or len(y) - n_test - lonely.sum() < 1 or len(y) - n_test < 2:
        raise DataError(f"A test part of {test:g} leaves too few of {len(y)} rows: use another share, or more rows.")
    training, held_out = train_test_split(rows[~lonely], test_size=n_test, random_state=seed, stratify=strata)
    training = np.concatenate([training, rows[lonely]])
    if task == "classification" and len(np.unique(y[training])) < 2:
        raise DataError("The training part holds only one class: use a smaller test part, or more rows.")
    return training, held_out


def prepare(problem: Problem, *, test: float, seed: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Dense inputs and targets of a training part and of a test part; preprocessing sees the training part alone.

    Rows of a class so rare that the training part has none of it are left out of the test part.
    """
    training, held_out = split_rows(problem.y, problem.task, test, seed)
    if problem.task == "classification":
        held_out = held_out[np.isin(problem.y[held_out], problem.y[training])]
    columns = preprocessing(problem.kinds)
    columns.set_params(sparse_threshold=0.0)
    X, X_test = columns.fit_transform(problem.X.iloc[training]), columns.transform(problem.X.iloc[held_out])
    return X, problem.y[training], X_test, problem.y[held_out]


@contextmanager
def refusing() -> Iterator[None]:
    """Pass on the estimators' own sentence on data or parameters that do not fit each other."""
    try:
        yield
    except ValueError as error:
        raise DataError(str(error)) from error


def _fit(model: Pipeline, X: Any, y: np.ndarray) -> tuple[Pipeline, float]:
    start = perf_counter()
    with refusing():
        model.fit(X, y)
    return model, perf_counter() - start


def _scores(model: Pipeline, problem: Problem, held_out: np.ndarray, y_train: np.ndarray) -> dict[str, float]:
    """The error, and that of knowing only the training targets: their mean, or their most frequent class."""
    predicted = model.predict(problem.X.iloc[held_out])
    return errors(problem.task, problem.y[held_out], predicted, y_train)


def errors(task: Task, y: np.ndarray, predicted: np.ndarray, y_train: np.ndarray) -> dict[str, float]:
    """Regression: RMSE, R², and the RMSE of the mean. Classification: shares misclassified, also by the top class."""
    if task == "regression":
        rmse, spread = (float(np.sqrt(np.mean((y - p) ** 2))) for p in (predicted, y_train.mean()))
        total = float(np.sum((y - y.mean()) ** 2))
        r2 = 1.0 - float(np.sum((y - predicted) ** 2)) / total if total > 0 else float("nan")
        return {"rmse": rmse, "r2": r2, "baseline_rmse": spread}
    classes, counts = np.unique(y_train, return_counts=True)
    return {
        "error": float(np.mean(predicted != y)),
        "baseline_error": float(np.mean(classes[counts.argmax()] != y)),
    }
