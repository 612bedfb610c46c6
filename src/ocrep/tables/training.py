"""Training on a table: a pipeline of coding and network, tested on held-out rows, that knows the table it came from.

`train` holds rows out, trains on the others, scores the network on the held-out rows next to simple models, and then
trains once more on all rows: the scores belong to the first network, and the model is the second. The pipeline keeps a
`Description` of its table, from which predictions of files and ONNX graphs are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import pandas
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from ocrep._files.convert import DATE_KINDS
from ocrep._files.formats import DataError
from ocrep._layers.columns import FrameInputs
from ocrep._rows.stream import ProgressFunction, Scan
from ocrep.analysis.assessment import MOST_ROWS, Assessment, Assessor, sample_size
from ocrep.estimators import PinvClassifier, PinvClassifierCV, PinvRegressor, PinvRegressorCV
from ocrep.estimators.base import fit_silently
from ocrep.estimators.search import CANDIDATES
from ocrep.rules import Rule, resolve
from ocrep.tables.coding import MISSING, Coding, TablePart, split_problem
from ocrep.tables.leaks import advice_on_leaks
from ocrep.tables.problem import InputKind, Problem, StageProgress, TableRows, Task, silent

ATTRIBUTE = "ocrep_table_"
Network = PinvRegressor | PinvClassifier | PinvRegressorCV | PinvClassifierCV


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The user's choices for the network; None is the library's default."""

    candidates: str = "default"
    """The layers to choose among, unless one network is described."""
    n_hidden: int | str | None = None
    gamma: str | float | Rule | None = None
    intercept: bool | None = None
    layer: Mapping[str, Any] = field(default_factory=dict)
    """Other parameters of one network, such as `activation`."""
    class_weight: str | None = None
    calibrate: bool = True
    """Whether a classifier learns probabilities."""
    seed: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether one network is asked for, and not the best of several."""
        return bool(self.layer) or (self.n_hidden, self.gamma, self.intercept) != (None, None, None)


@dataclass(frozen=True, slots=True)
class Description:
    """The table that a model was trained on; stored in the model file as plain data."""

    target: str
    task: Task
    kinds: dict[str, InputKind]
    ids: list[str]
    n_rows: int
    scores: dict[str, float]  # errors on held-out rows; empty if no rows were held out
    reading: dict[str, Any] = field(default_factory=dict)  # how the file was written, where that is not the usual way


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained pipeline with its held-out errors and its training time."""

    model: Pipeline
    assessment: Assessment | None  # of a model trained on the other rows; None if no rows were held out
    n_train: int
    on_all_rows: bool  # whether `model` was trained on all rows, and not only on the training part
    seconds: float  # time of the last training

    @property
    def scores(self) -> dict[str, float]:
        """Scores on held-out rows; empty if there are none."""
        return {} if self.assessment is None else self.assessment.scores

    @property
    def n_test(self) -> int:
        """How many rows were held out."""
        return 0 if self.assessment is None else self.assessment.n_test


def _for_labels(settings: Settings) -> dict[str, Any]:
    return {"class_weight": settings.class_weight, "calibrate": "loo" if settings.calibrate else None}


def network(task: Task, settings: Settings) -> Network:
    """Return an untrained network for a task: one, or one whose layer is chosen among candidates."""
    if settings.is_plain:
        return plain_network(task, settings)
    if task == "regression":
        return PinvRegressorCV(settings.candidates, ensemble=False, random_state=settings.seed)
    return PinvClassifierCV(settings.candidates, ensemble=False, random_state=settings.seed, **_for_labels(settings))


def plain_network(task: Task, settings: Settings) -> PinvRegressor | PinvClassifier:
    """Return an untrained network of one layer."""
    given = {"n_hidden": settings.n_hidden, "gamma": settings.gamma, "fit_intercept": settings.intercept}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    options |= {**settings.layer, "random_state": settings.seed}
    if task == "regression":
        return PinvRegressor(**options)
    return PinvClassifier(**options, **_for_labels(settings))


def examined(task: Task, settings: Settings) -> str:
    """A sentence on the one network that `diagnose` examines, and on what `fit` would train."""
    one = layer(plain_network(task, settings).get_params(deep=False))
    if settings.is_plain:
        return f"Examined is the network of these options, {one}, which ocrep fit trains too."
    better = f"ocrep fit chooses the best of {len(CANDIDATES[task][settings.candidates])}, so its scores may be better"
    return f"Examined is the default network, {one}; {better}."


# ------------------------------------------------------------------------------
# Which layer was chosen


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """The best of several candidates by their error on rows held out in cross-validation, and the next best."""

    measure: str
    """"RMSE" or "log-loss"."""
    n_candidates: int
    best: dict[str, Any]
    error: float
    next_best: dict[str, Any] | None
    """None if all others failed."""
    next_error: float | None
    """Its error, perhaps on fewer rows."""

    @classmethod
    def of(cls, network: Any) -> LayerChoice | None:
        """What a fitted network says; None if its layer was not chosen among candidates."""
        results = getattr(network, "cv_results_", None)
        if results is None:
            return None
        labels = hasattr(network, "classes_")
        scores = np.asarray(results["mean_test_score"])
        errors = -scores if labels else np.sqrt(-scores)
        order = np.argsort(results["rank_test_score"], kind="stable")
        first, *others = [int(i) for i in order if np.isfinite(scores[i])]
        following = others[0] if others else None
        return cls(
            "log-loss" if labels else "RMSE",
            len(scores),
            results["params"][first],
            float(errors[first]),
            None if following is None else results["params"][following],
            None if following is None else float(errors[following]),
        )

    def sentences(self) -> list[tuple[str, str]]:
        """The choice as names and values."""
        found = [("layer", f"{layer(self.best)}: the best of {self.n_candidates}, {self.measure} {self.error:.4g}")]
        if self.next_best is not None and self.next_error is not None:
            percent = 100 * (self.next_error / self.error - 1) if self.error > 0 else 0.0
            more = f", {percent:.{0 if percent >= 10 else 1}f} % more" if percent else ""
            found.append(("next best", f"{layer(self.next_best)}: {self.measure} {self.next_error:.4g}{more}"))
        return found

    def to_json(self) -> dict[str, Any]:
        """The choice as plain data."""
        return asdict(self)


def layer(parameters: dict[str, Any]) -> str:
    """A layer in a few words."""
    words = {"weight_init": "{}", "units_see": "each sees {} inputs", "weight_scale": "scale {}"}
    details = [form.format(parameters[name]) for name, form in words.items() if parameters.get(name) is not None]
    units = " ".join(str(parameters[name]) for name in ("n_hidden", "activation") if name in parameters)
    return f"{units} units" + (f" ({', '.join(details)})" if details else "")


# ------------------------------------------------------------------------------
# What a model knows of its table


def for_frames(trained: Trained, problem: Problem) -> Pipeline:
    """The trained pipeline for any data frame: a first step gives its columns the kinds of training."""
    first = ("frame", FrameInputs(dict(problem.kinds)).fit())
    model = Pipeline([first, *trained.model.steps])
    setattr(model, ATTRIBUTE, vars(trained.model)[ATTRIBUTE])
    model.left_out_ = dict(problem.left_out)
    model.gaps_ = problem.gaps
    if trained.assessment is not None:
        model.assessment_ = trained.assessment.to_json("python")
    return model


def without_frame(model: Any) -> Any:
    """A pipeline without its first step for data frames, which needs Python."""
    has_one = isinstance(model, Pipeline) and isinstance(model.steps[0][1], FrameInputs)
    return Pipeline(model.steps[1:]) if has_one else model


def describe(model: Any) -> Description | None:
    """Return the description of a model's table; None if the model does not know its columns.

    For a model that was not trained here, the inputs are its `feature_names_in_`, all taken as numbers.
    """
    about = vars(model).get(ATTRIBUTE)
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
    values: dict[str, Any] = {"text": MISSING, **dict.fromkeys(DATE_KINDS, pandas.Timestamp("2020-01-01"))}
    return pandas.DataFrame({name: [values.get(kind, 0.0)] for name, kind in about.kinds.items()})


# ------------------------------------------------------------------------------
# Training


def train(
    problem: Problem,
    settings: Settings,
    *,
    test: float = 0.3,
    refit: bool = True,
    boosting: bool = False,
    progress: StageProgress = silent,
) -> Trained:
    """Train and test on a random split; then train on all rows, unless `refit` is False.

    With `test=0` no rows are held out: the model is trained once, and not assessed.
    """
    found = None
    on_all_rows = refit or test <= 0
    if test > 0:
        training, held_out = split_problem(problem, test, settings.seed)
        model, seconds = _fit(training, settings, _stage("Training on the training part", progress), with_folds=True)
        progress("Testing", 0, None)
        found = _assessed(model[-1], training, held_out, problem, boosting=boosting, seed=settings.seed)
        if model[-1].store_folds:  # they were stored for the advice about other rules only
            model[-1].set_params(store_folds=False)
            model[-1].folds_ = None
    if on_all_rows:
        whole = TablePart.of(problem.rows, problem.survey)
        model, seconds = _fit(whole, settings, _stage("Training on all rows", progress))
    n_test = 0 if found is None else found.n_test
    scores = {} if found is None else found.scores
    reading = problem.rows.file.reading.to_json()
    about = Description(problem.target, problem.task, problem.kinds, list(problem.ids), problem.n_rows, scores, reading)
    setattr(model, ATTRIBUTE, asdict(about))
    return Trained(model, found, problem.n_rows - n_test, on_all_rows, seconds)


def _assessed(
    network: Network, training: TablePart, held_out: TableRows, problem: Problem, *, boosting: bool, seed: int
) -> Assessment:
    """The scores of a network on held-out rows, and the scores of simple models trained on a sample of its rows."""
    baseline = training.baseline()
    coding = training.coding
    sample = training.sample(sample_size(coding.width, len(training.counts)))
    found = Assessor.of(network, baseline, *sample, boosting=boosting, seed=seed, all_labels=problem.classes)
    for rows in held_out.blocks():
        found.add(coding.inputs(rows), rows.y)
    return found.finish([*problem.advice(), *advice_on_leaks(training, *sample)])


def _stage(name: str, progress: StageProgress) -> ProgressFunction:
    progress(name, 0, None)
    return lambda done, total: progress(name, done, total)


def _fit(
    part: TablePart, settings: Settings, progress: ProgressFunction, *, with_folds: bool = False
) -> tuple[Pipeline, float]:
    start = perf_counter()
    trained = network(part.rows.target.task, settings)
    if with_folds and resolve(trained.gamma).folds is None:
        trained.set_params(store_folds=True)
    # Probabilities are learned from the outputs of left-out rows, which are held in memory. Where rows are many, a
    # search with one candidate is fitted instead: it trains on all rows, and calibrates on a sample of `MOST_ROWS`.
    sampled = isinstance(trained, PinvClassifier) and trained.calibrate is not None and part.survey.n_rows > MOST_ROWS
    search: Any = trained
    if sampled:
        parameters = trained.get_params(deep=False)
        shared = [name for name in PinvClassifierCV().get_params(deep=False) if name in parameters]
        common = {name: parameters.pop(name) for name in shared}
        search = PinvClassifierCV([parameters], ensemble=False, selection_rows=MOST_ROWS, **common)
    with as_data_errors():
        fit_silently(search, Scan(part.source(), part.classes, progress))
    trained = search.best_estimator_ if sampled else trained
    model = Pipeline([("columns", part.coding.transformer), ("network", trained)])
    return model, perf_counter() - start


def prepare(problem: Problem, *, test: float, seed: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Return X, y, X_test, y_test of a random split, all rows in memory with dense inputs; the coding is that of X.

    Test rows of a class that the training part lacks are left out.
    """
    training, held_out = split_problem(problem, test, seed)
    X, y = _in_memory(training.coding, training.rows)
    X_test, y_test = _in_memory(training.coding, held_out)
    if training.classes is not None:
        known = np.isin(y_test, training.classes)
        X_test, y_test = X_test[known], y_test[known]
    return X, y, X_test, y_test


def _in_memory(coding: Coding, rows: TableRows) -> tuple[np.ndarray, np.ndarray]:
    blocks = [(coding.inputs(found, dense=True), found.y) for found in rows.blocks()]
    return np.concatenate([X for X, _ in blocks]), np.concatenate([y for _, y in blocks])


@contextmanager
def as_data_errors() -> Iterator[None]:
    """Turn an estimator's `ValueError` about data or parameters into a `DataError` with the same message."""
    try:
        yield
    except ValueError as error:
        raise DataError(str(error)) from error
