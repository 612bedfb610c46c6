"""Training on a part of the rows, testing on the others, and training the model to be saved on all rows."""

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
from ocrep.tables.pipeline import Settings, assemble, preprocessing, store_description
from ocrep.tables.problem import Problem, Task

# Called with the name of a stage, the amount done, and the total amount (None if unknown).
StageProgress = Callable[[str, int, int | None], None]


def silent(stage: str, done: int, total: int | None) -> None:
    """Ignore all progress."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained pipeline with its held-out errors and its training time."""

    model: Pipeline
    scores: dict[str, float]  # errors on held-out rows of a model trained on the others; empty if none were held out
    n_train: int
    n_test: int
    on_all_rows: bool  # whether `model` was trained on all rows, and not only on the training part
    seconds: float  # time of the last training


def train(
    problem: Problem, settings: Settings, *, test: float = 0.3, refit: bool = True, progress: StageProgress = silent
) -> Trained:
    """Train and test on a random split; then train on all rows, unless `refit` is False.

    With `test=0` no rows are held out: the model is trained once, and `scores` is empty.
    """
    scores: dict[str, float] = {}
    n_test, on_all_rows = 0, refit or test <= 0
    if test > 0:
        training, held_out = split_rows(problem.y, problem.task, test, settings.seed)
        progress("Training on the training part", 0, None)
        model, seconds = _fit(problem, settings, training)
        progress("Testing", 0, None)
        predicted = model.predict(problem.X.iloc[held_out])
        scores = errors(problem.task, problem.y[held_out], predicted, problem.y[training])
        n_test = len(held_out)
    if on_all_rows:
        progress("Training on all rows", 0, None)
        model, seconds = _fit(problem, settings, slice(None))
    store_description(model, problem, scores)
    return Trained(model, scores, len(problem.y) - n_test, n_test, on_all_rows, seconds)


def _fit(problem: Problem, settings: Settings, rows: np.ndarray | slice) -> tuple[Pipeline, float]:
    model, start = assemble(problem, settings), perf_counter()
    with as_data_errors():
        model.fit(problem.X.iloc[rows], problem.y[rows])
    return model, perf_counter() - start


def split_rows(y: np.ndarray, task: Task, test: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the rows to train on and of those to test on.

    The split is stratified if each class has enough rows for both parts; the only row of a class is trained on.
    """
    rows, strata, single = np.arange(len(y)), None, np.zeros(len(y), dtype=bool)
    n_test = int(np.ceil(test * len(y)))
    if task == "classification":
        _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        single = counts[codes] == 1
        n_classes = int((counts > 1).sum())
        if min(n_test, len(y) - n_test - single.sum()) >= n_classes > 0:
            strata = y[~single]
    if n_test < 1 or len(y) - n_test - single.sum() < 1 or len(y) - n_test < 2:
        raise DataError(f"A test part of {test:g} leaves too few of {len(y)} rows: use another share, or more rows.")
    training, held_out = train_test_split(rows[~single], test_size=n_test, random_state=seed, stratify=strata)
    training = np.concatenate([training, rows[single]])
    if task == "classification" and len(np.unique(y[training])) < 2:
        raise DataError("The training part holds only one class: use a smaller test part, or more rows.")
    return training, held_out


def prepare(problem: Problem, *, test: float, seed: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Return X, y, X_test, y_test of a random split, with dense inputs; preprocessing is fitted to X alone.

    Test rows of a class that the training part lacks are left out.
    """
    training, held_out = split_rows(problem.y, problem.task, test, seed)
    if problem.task == "classification":
        held_out = held_out[np.isin(problem.y[held_out], problem.y[training])]
    columns = preprocessing(problem.kinds).set_params(sparse_threshold=0.0)
    X, X_test = columns.fit_transform(problem.X.iloc[training]), columns.transform(problem.X.iloc[held_out])
    return X, problem.y[training], X_test, problem.y[held_out]


@contextmanager
def as_data_errors() -> Iterator[None]:
    """Turn an estimator's `ValueError` about data or parameters into a `DataError` with the same message."""
    try:
        yield
    except ValueError as error:
        raise DataError(str(error)) from error


def errors(task: Task, y: np.ndarray, predicted: np.ndarray, y_train: np.ndarray) -> dict[str, float]:
    """Return the errors of predictions, and of a baseline that knows only the training targets.

    Regression: RMSE, R², and the RMSE of the mean. Classification: the share of misclassified rows, for the model and
    for the most frequent class.
    """
    if task == "regression":
        rmse, spread = (float(np.sqrt(np.mean((y - p) ** 2))) for p in (predicted, y_train.mean()))
        total = float(np.sum((y - y.mean()) ** 2))
        r2 = 1.0 - float(np.sum((y - predicted) ** 2)) / total if total > 0 else float("nan")
        return {"rmse": rmse, "r2": r2, "baseline_rmse": spread}
    classes, counts = np.unique(y_train, return_counts=True)
    wrong, baseline = (float(np.mean(guess != y)) for guess in (predicted, classes[counts.argmax()]))
    return {"error": wrong, "baseline_error": baseline}
