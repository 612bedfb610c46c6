"""The saved model: a pipeline of preprocessing and network, trained, tested on held-out rows, and told of its table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pandas
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from ocrep._files.formats import DataError
from ocrep.estimators import PinvClassifier, PinvRegressor
from ocrep.tables.problem import InputKind, Problem, Task

MISSING = "(missing)"  # the category that stands for a missing text
_ATTRIBUTE = "ocrep_table_"
StageProgress = Callable[[str, int, int | None], None]  # stage, amount done, and total amount (None if unknown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The user's choices for the network."""

    n_hidden: int | str = 300
    gamma: str | float = "ocrep"
    intercept: bool = False
    calibrate: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Description:
    """The table that a model was trained on; stored in the model file as plain data."""

    target: str
    task: Task
    kinds: dict[str, InputKind]
    ids: list[str]
    n_rows: int
    scores: dict[str, float]  # errors on held-out rows; empty if no rows were held out


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained pipeline with its held-out errors and its training time."""

    model: Pipeline
    scores: dict[str, float]  # errors on held-out rows of a model trained on the others; empty if none were held out
    n_train: int
    n_test: int
    on_all_rows: bool  # whether `model` was trained on all rows, and not only on the training part
    seconds: float  # time of the last training


def silent(stage: str, done: int, total: int | None) -> None:
    """Ignore all progress."""


def network(task: Task, settings: Settings) -> PinvRegressor | PinvClassifier:
    """Return an untrained network for a task."""
    options: dict[str, Any] = {"fit_intercept": settings.intercept, "random_state": settings.seed}
    if task == "regression":
        return PinvRegressor(settings.n_hidden, gamma=settings.gamma, **options)
    calibrate = "loo" if settings.calibrate else None
    return PinvClassifier(settings.n_hidden, gamma=settings.gamma, calibrate=calibrate, **options)


def _preprocessing(kinds: dict[str, InputKind]) -> ColumnTransformer:
    """The transformer of the inputs: numbers and booleans are imputed by the median, texts are one-hot coded."""
    texts = [name for name, kind in kinds.items() if kind == "text"]
    numbers = [name for name in kinds if name not in texts]
    imputed = SimpleImputer(strategy="median", keep_empty_features=True)
    filled = SimpleImputer(strategy="constant", fill_value=MISSING)
    # A text that was not seen in training gives zeros in all columns.
    coded = Pipeline([("fill", filled), ("one_hot", OneHotEncoder(handle_unknown="ignore"))])
    steps = [("numbers", imputed, numbers), ("texts", coded, texts)]
    return ColumnTransformer([step for step in steps if step[2]], verbose_feature_names_out=False)


def describe(model: Any) -> Description | None:
    """Return the description of a model's table; None if the model does not know its columns.

    For a model that was not trained here, the inputs are its `feature_names_in_`, all taken as numbers.
    """
    about = vars(model).get(_ATTRIBUTE)
    if about is not None:
        return Description(**about)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return None
    task: Task = "classification" if is_classifier(model) else "regression"
    return Description("prediction", task, dict.fromkeys(map(str, names), "number"), ids=[], n_rows=0, scores={})


def known_texts(model: Any) -> dict[str, np.ndarray]:
    """Return the categories of each text column that were seen in training."""
    if not isinstance(model, Pipeline) or "columns" not in model.named_steps:
        return {}
    coded = model.named_steps["columns"].named_transformers_.get("texts")
    return {} if coded is None else dict(zip(coded.feature_names_in_, coded["one_hot"].categories_, strict=True))


def example_rows(model: Any) -> Any:
    """Return one valid input row, which shows the kinds of the columns; None if they are unknown."""
    about = describe(model)
    if about is None:
        return None
    return pandas.DataFrame({name: [MISSING if kind == "text" else 0.0] for name, kind in about.kinds.items()})


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
    about = Description(problem.target, problem.task, problem.kinds, list(problem.ids), len(problem.y), scores)
    setattr(model, _ATTRIBUTE, asdict(about))
    return Trained(model, scores, len(problem.y) - n_test, n_test, on_all_rows, seconds)


def _fit(problem: Problem, settings: Settings, rows: np.ndarray | slice) -> tuple[Pipeline, float]:
    start = perf_counter()
    model = Pipeline([("columns", _preprocessing(problem.kinds)), ("network", network(problem.task, settings))])
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
    columns = _preprocessing(problem.kinds).set_params(sparse_threshold=0.0)
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
