"""Is a model any good: its scores on held-out rows, those of simple models on the same rows, and what to change."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from ocrep.analysis.advice import Advice, advice_of
from ocrep.analysis.scores import BOOSTING, LINEAR, MAJORITY, MEAN, MOST_ROWS, NETWORK, LabelScores, NumberScores

# The simple models see fewer rows where columns or classes are many: so many entries, and columns² × rows.
_MOST_ENTRIES, _MOST_PRODUCTS = 2**24, 10**10
_FEWEST_ROWS = 500


@dataclass(frozen=True, slots=True)
class Assessment:
    """Scores on held-out rows.

    Attributes
    ----------
    task : {"regression", "classification"}
        What was learned.
    n_test : int
        Number of held-out rows.
    models : dict
        The scores of `"network"`, of the baseline, of a plain linear model, and of gradient boosting if it was asked
        for. Regression: `r2`, `rmse`, `mae`. Classification: `error`, `balanced_accuracy`, `roc_auc` (the mean of each
        class against the others, if there are more than two), `log_loss`.
    classes : tuple or None
        The labels.
    confusion : tuple of tuples or None
        Held-out rows by true class (outer) and predicted class (inner).
    advice : tuple of Advice
        What seems wrong, and what to change.
    """

    task: Literal["regression", "classification"]
    n_test: int
    models: dict[str, dict[str, float]]
    classes: tuple[Any, ...] | None
    confusion: tuple[tuple[int, ...], ...] | None
    advice: tuple[Advice, ...]

    @property
    def scores(self) -> dict[str, float]:
        """The scores of the network, and the error of the baseline."""
        name, error = (MEAN, "rmse") if self.task == "regression" else (MAJORITY, "error")
        return {**self.models[NETWORK], f"baseline_{error}": self.models[name][error]}

    def to_json(self, how: Literal["command", "python"] = "command") -> dict[str, Any]:
        """All of it as plain data, with sentences of advice for users of the program or of Python."""
        return {**asdict(self), "advice": [{**asdict(one), "sentence": one.sentence(how)} for one in self.advice]}


def assess(
    model: Any, X: Any, y: Any, X_test: Any, y_test: Any, *, boosting: bool = False, seed: int = 0
) -> Assessment:
    """Assess a fitted model on held-out rows in memory.

    Parameters
    ----------
    model : estimator
        A fitted regressor or classifier; of a Pipeline with columns of text, give its last step and coded rows.
    X, y : arrays
        The training rows as numbers; the simple models are trained on at most 50,000 of them.
    X_test, y_test : arrays
        Held-out rows.
    boosting : bool, default=False
        Whether to train gradient boosting too.
    seed : int, default=0
        Seed of the sample of rows, and of the boosting.

    Returns
    -------
    Assessment
        The scores and the advice.
    """
    y, y_test = np.asarray(y), np.asarray(y_test)
    labels = is_classifier(model)
    constant = Constant.of_labels(*np.unique(y, return_counts=True)) if labels else Constant(float(np.mean(y)))
    held = Assessor.of(model, constant, X, y, boosting=boosting, seed=seed, all_labels=y_test)
    held.add(X_test, y_test)
    return held.finish()


def sample_size(n_columns: int, n_classes: int = 1) -> int:
    """How many rows the simple models are trained on at most."""
    width = max(1, n_columns)
    return min(MOST_ROWS, max(_FEWEST_ROWS, min(_MOST_ENTRIES // (width * n_classes), _MOST_PRODUCTS // width**2)))


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """The baseline: the mean, or the most frequent class with the shares of all classes as probabilities."""

    value: Any
    classes_: np.ndarray | None = None
    shares: np.ndarray | None = None

    @classmethod
    def of_labels(cls, classes: np.ndarray, counts: np.ndarray) -> Constant:
        """The baseline of a classification."""
        return cls(classes[counts.argmax()], classes, counts / counts.sum())

    @property
    def n_classes(self) -> int:
        """1 for a regression."""
        return 1 if self.classes_ is None else len(self.classes_)

    def predict(self, X: Any) -> np.ndarray:
        """The same for all rows."""
        return np.full(X.shape[0], self.value)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The shares of the classes, for all rows."""
        assert self.shares is not None
        return np.tile(self.shares, (X.shape[0], 1))


class Assessor:
    """Models that are scored on the same held-out rows, block by block."""

    def __init__(self, models: dict[str, Any], classes: np.ndarray | None) -> None:
        self._models, self._classes = models, classes
        self._scores: dict[str, Any] = {
            name: NumberScores() if classes is None else LabelScores(classes, model.classes_)
            for name, model in models.items()
        }

    @classmethod
    def of(
        cls,
        model: Any,
        constant: Constant,
        X: Any,
        y: np.ndarray,
        *,
        boosting: bool = False,
        seed: int = 0,
        all_labels: np.ndarray | None = None,
    ) -> Assessor:
        """Train the simple models on rows of numbers; `all_labels` are those that held-out rows may have."""
        labels = constant.classes_ is not None
        weight = getattr(model, "class_weight", None)
        models = {NETWORK: model, MAJORITY if labels else MEAN: constant}
        models |= simple_models(X, y, labels=labels, class_weight=weight, boosting=boosting, seed=seed)
        classes = None
        if constant.classes_ is not None:
            classes = np.union1d(constant.classes_, constant.classes_ if all_labels is None else all_labels)
        return cls(models, classes)

    def add(self, X: Any, y: np.ndarray) -> None:
        """Score some rows."""
        for name, model in self._models.items():
            own = name in (NETWORK, MEAN, MAJORITY)
            for part, true in [(X, y)] if own else _dense_parts(X, y):
                given = [model.predict(part)]
                if self._classes is not None and hasattr(model, "predict_proba"):
                    given.append(model.predict_proba(part))
                self._scores[name].add(true, *given)

    def finish(self, more: Sequence[Advice] = ()) -> Assessment:
        """The scores of all rows; `more` advice comes last."""
        models = {name: scores.values() for name, scores in self._scores.items()}
        found, task = self._scores[NETWORK], "regression" if self._classes is None else "classification"
        labels = None if self._classes is None else tuple(self._classes.tolist())
        confusion = None if labels is None else tuple(map(tuple, found.confusion.tolist()))
        n_test = found.n if labels is None else int(found.confusion.sum())
        said = (*advice_of(self._models[NETWORK], models, labels, confusion, n_test), *more)
        return Assessment(task, n_test, models, labels, confusion, said)  # type: ignore[arg-type]


def simple_models(
    X: np.ndarray, y: np.ndarray, *, labels: bool, class_weight: Any = None, boosting: bool = False, seed: int = 0
) -> dict[str, Pipeline]:
    """A linear model and gradient boosting, by name, fitted to at most `sample_size` rows; none for a single class."""
    classes = np.unique(y) if labels else None
    chosen = _sampled(len(y), sample_size(X.shape[1], 1 if classes is None else len(classes)), seed)
    X, y = _dense(X[chosen]), y[chosen]
    if labels and len(np.unique(y)) < 2:
        return {}
    linear = LogisticRegression(max_iter=100) if labels else RidgeCV(np.logspace(-3, 4, 8))
    # Of a number such as 1e308 the scaler's squares would overflow.
    bounded = FunctionTransformer(np.clip, kw_args={"a_min": -1e100, "a_max": 1e100})
    models = {LINEAR: make_pipeline(bounded, StandardScaler(), linear)}
    if boosting:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        trees = HistGradientBoostingClassifier if labels else HistGradientBoostingRegressor
        models[BOOSTING] = make_pipeline(trees(random_state=seed))
    # As weights of rows: boosting does not find labels of text in a dict of class weights.
    weights = None if class_weight is None else compute_sample_weight(class_weight, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the simple models are yardsticks: one that has not converged is one too
        return {
            name: model.fit(X, y, **{f"{model.steps[-1][0]}__sample_weight": weights}) for name, model in models.items()
        }


def _sampled(n_rows: int, size: int, seed: int) -> np.ndarray:
    """The numbers of at most `size` rows, in their order."""
    if n_rows <= size:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, size, replace=False))


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def _dense_parts(X: Any, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    size = len(y) if not sparse.issparse(X) else max(1, _MOST_ENTRIES // max(1, X.shape[1]))
    for start in range(0, len(y), max(1, size)):
        yield _dense(X[start : start + size]), y[start : start + size]
