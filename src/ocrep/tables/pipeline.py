"""The saved model: a scikit-learn Pipeline of preprocessing and network, with a description of its table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from ocrep.estimators import PinvClassifier, PinvRegressor
from ocrep.tables.problem import InputKind, Problem, Task

MISSING = "(missing)"  # the category that stands for a missing text
_ATTRIBUTE = "ocrep_table_"


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


def network(task: Task, settings: Settings) -> PinvRegressor | PinvClassifier:
    """Return an untrained network for a task."""
    options: dict[str, Any] = {"fit_intercept": settings.intercept, "random_state": settings.seed}
    if task == "regression":
        return PinvRegressor(settings.n_hidden, gamma=settings.gamma, **options)
    calibrate = "loo" if settings.calibrate else None
    return PinvClassifier(settings.n_hidden, gamma=settings.gamma, calibrate=calibrate, **options)


def preprocessing(kinds: dict[str, InputKind]) -> ColumnTransformer:
    """Return the transformer of the inputs: numbers and booleans are imputed by the median, texts are one-hot coded."""
    texts = [name for name, kind in kinds.items() if kind == "text"]
    numbers = [name for name in kinds if name not in texts]
    filler = SimpleImputer(strategy="constant", fill_value=MISSING)
    # A text that was not seen in training gives zeros in all columns.
    coded = Pipeline([("fill", filler), ("one_hot", OneHotEncoder(handle_unknown="ignore"))])
    steps = [
        ("numbers", SimpleImputer(strategy="median", keep_empty_features=True), numbers),
        ("texts", coded, texts),
    ]
    return ColumnTransformer([step for step in steps if step[2]], verbose_feature_names_out=False)


def assemble(problem: Problem, settings: Settings) -> Pipeline:
    """Return an untrained pipeline of preprocessing and network."""
    return Pipeline([("columns", preprocessing(problem.kinds)), ("network", network(problem.task, settings))])


def store_description(model: Pipeline, problem: Problem, scores: dict[str, float]) -> None:
    """Add the `Description` of its table to a trained model."""
    about = Description(problem.target, problem.task, problem.kinds, list(problem.ids), len(problem.y), scores)
    setattr(model, _ATTRIBUTE, asdict(about))


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
    coded = [step for step in model.named_steps["columns"].transformers_ if step[0] == "texts"]
    return {
        name: texts
        for _, fitted, names in coded
        for name, texts in zip(names, fitted.named_steps["one_hot"].categories_, strict=True)
    }


def example_rows(model: Any) -> Any:
    """Return one valid input row, which shows the kinds of the columns; None if they are unknown."""
    about = describe(model)
    if about is None:
        return None
    return pandas.DataFrame({name: [MISSING if kind == "text" else 0.0] for name, kind in about.kinds.items()})
