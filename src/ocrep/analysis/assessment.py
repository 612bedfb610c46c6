"""Is a model any good: its scores on held-out rows, the scores of simple models on the same rows, and what to change.

Held-out rows may come from a file that does not fit into memory, so every score is a few sums that blocks of rows add
to:

- A regression needs n, Σ(y − ŷ)², Σ|y − ŷ| and the total sum of squares S = Σ(y − ȳ)², from which R² = 1 − RSS/S,
  RMSE and MAE follow. S is not Σy² − nȳ², which cancels where the mean is large: two parts with means ȳ₁, ȳ₂ merge
  exactly by S = S₁ + S₂ + (ȳ₁ − ȳ₂)²·n₁n₂/n.
- A classification needs the confusion matrix, which gives the share of misclassified rows and the balanced accuracy
  (the mean over classes of the share of their rows that are found), and the sum of −log p of the true class. Only the
  area under the ROC curve depends on the order of all rows. It is computed on a uniform sample of at most 50,000 of
  them: each row draws a random key, and the rows with the smallest keys stay. Its standard error is at most 1/(2√m),
  where m is the number of sampled rows of the rarer class.

All models are scored on the same rows. The simple ones are a constant (the mean, or the shares of the classes), a
linear model, and gradient boosting if it is asked for. They are trained on a sample, since they need all of their
rows in memory. A model is called worse than another only beyond 5 % of an RMSE, or two binomial standard errors of a
share of rows.
"""

from __future__ import annotations

import json
import math
import shlex
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from ocrep.analysis.evaluator import Evaluator
from ocrep.estimators.base import ClosedForm
from ocrep.rules import resolve
from ocrep.rules.search import advice_on

NETWORK, LINEAR, BOOSTING = "network", "linear model", "gradient boosting"
MEAN, MAJORITY = "baseline (mean)", "baseline (majority class)"
MOST_ROWS = 50_000
"""The most rows that train the simple models, or that the area under the ROC curve is computed on."""
CLEARLY = 0.05
"""By which share another γ or another model must be better to be named."""
WEAK_RANKING = 0.6
"""The area under the ROC curve from which a model ranks rows, even if it misclassifies as many as a constant."""
NEARLY_EXACT = 0.999
"""The R² above which a model needs no advice."""

_STANDARD_ERRORS = 2.0
_MOST_NAMED = 3
_SMALLEST = np.finfo(np.float64).tiny
# The simple models are trained on fewer rows where columns or classes are many: limits of columns × classes × rows,
# which is memory, and of columns² × rows, which is time.
_MOST_ENTRIES = 2**24
_MOST_PRODUCTS = 10**10
_FEWEST_ROWS = 500


# --- Scores, added up block by block ---------------------------------------------------------------------------------


@dataclass(slots=True)
class NumberScores:
    """Scores of a regression."""

    n: int = 0
    rss: float = 0.0
    absolute: float = 0.0
    """The sum of |y − prediction|."""
    mean: float = 0.0
    squares: float = 0.0
    """The total sum of squares, (y − mean)²."""
    low: float = np.inf
    high: float = -np.inf

    def add(self, y: np.ndarray, predicted: np.ndarray) -> None:
        """Add a block of rows."""
        residual = y - predicted
        self.rss += float(residual @ residual)
        self.absolute += float(np.abs(residual).sum())
        n = self.n + len(y)
        mean = float(y.mean())
        shift = mean - self.mean
        self.squares += float(np.sum((y - mean) ** 2)) + shift**2 * self.n * len(y) / n
        self.mean += shift * len(y) / n
        self.n = n
        self.low = min(self.low, float(y.min()))
        self.high = max(self.high, float(y.max()))

    def values(self) -> dict[str, float]:
        """R² (NaN where all targets are equal), RMSE and MAE."""
        # Rounding of the mean leaves a total sum of squares above 0 even where all targets are equal.
        r2 = 1.0 - self.rss / self.squares if self.low < self.high else float("nan")
        return {"r2": r2, "rmse": (self.rss / self.n) ** 0.5, "mae": self.absolute / self.n}


class LabelScores:
    """Scores of a classification; a class that the model does not know counts as wrong, and has no log-loss.

    Parameters
    ----------
    classes : ndarray
        All labels that rows may have, sorted.
    known : ndarray
        The labels that the model knows, in the order of its probabilities.
    """

    def __init__(self, classes: np.ndarray, known: np.ndarray) -> None:
        self.classes = classes
        self.known = known
        self.confusion = np.zeros((len(classes), len(classes)), dtype=np.int64)
        """Rows by true class (first axis) and predicted class (second axis)."""
        self._loss = 0.0
        self._n_loss = 0
        # The fewer rows the more classes, so that the probabilities of the sample have a bounded size.
        self._sample = UniformSample(max(1, 2 * MOST_ROWS // max(2, len(known))))

    def add(self, y: np.ndarray, predicted: np.ndarray, probabilities: np.ndarray | None = None) -> None:
        """Add a block of rows; without probabilities there is neither log-loss nor the area under the ROC curve."""
        k = len(self.classes)
        true = np.searchsorted(self.classes, y)
        pairs = true * k + np.searchsorted(self.classes, predicted)
        self.confusion += np.bincount(pairs, minlength=k * k).reshape(k, k)
        if probabilities is None:
            return
        column = np.full(k, -1)  # of the probabilities, by class
        column[np.searchsorted(self.classes, self.known)] = np.arange(len(self.known))
        own = column[true]
        rows = np.flatnonzero(own >= 0)
        self._loss -= float(np.log(np.maximum(probabilities[rows, own[rows]], _SMALLEST)).sum())
        self._n_loss += len(rows)
        self._sample.add(np.column_stack([own[rows], probabilities[rows]]))

    def values(self) -> dict[str, float]:
        """The share of misclassified rows, balanced accuracy, area under the ROC curve and log-loss; NaN if unknown."""
        right = self.confusion.diagonal()
        n = self.confusion.sum(axis=1)
        present = n > 0
        return {
            "error": float(1.0 - right.sum() / n.sum()),
            "balanced_accuracy": float(np.mean(right[present] / n[present])),
            "roc_auc": self._roc_auc(),
            "log_loss": self._loss / self._n_loss if self._n_loss else float("nan"),
        }

    def _roc_auc(self) -> float:
        """The area for the second of two classes, or the mean of each class against all others; NaN if unknown."""
        rows = self._sample.rows()
        areas = []
        for number in range(len(self.known)) if len(self.known) > 2 else [1]:
            own = rows[:, 0] == number
            if own.any() and not own.all():
                areas.append(float(roc_auc_score(own, rows[:, 1 + number])))
        return float(np.mean(areas)) if areas else float("nan")


class UniformSample:
    """At most `size` rows of an array that comes in blocks, drawn at random with a fixed seed."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._random = np.random.default_rng(0)
        self._blocks: list[tuple[np.ndarray, Any]] = []

    def add(self, rows: Any) -> None:
        """Add rows, and drop those that cannot be in the sample any more."""
        self._blocks.append((self._random.random(len(rows)), rows))
        if sum(len(keys) for keys, _ in self._blocks) > 2 * self._size:
            self._keep_smallest()

    def rows(self) -> np.ndarray:
        """The sample, in the order of the rows."""
        if not self._blocks:
            return np.empty((0, 1))
        self._keep_smallest()
        return np.asarray(self._blocks[0][1])

    def _keep_smallest(self) -> None:
        keys, rows = (np.concatenate(parts) for parts in zip(*self._blocks, strict=True))
        kept = np.sort(np.argsort(keys)[: self._size])
        self._blocks = [(keys[kept], rows[kept])]


# --- Advice: what seems wrong, and the parameters that help ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing that seems wrong.

    Attributes
    ----------
    code : str
        A short name of it, for programs.
    problem : str
        What was found; a sentence without its full stop.
    change : dict
        Parameters that may help, with their values; empty if there are none.
    hint : str
        What to do where no parameter helps.
    """

    code: str
    problem: str
    change: dict[str, Any] = field(default_factory=dict)
    hint: str = ""

    def sentence(self, how: Literal["command", "python"] = "command") -> str:
        """The whole sentence, with options of the program or with parameters of the estimators."""
        if not self.change:
            return f"{self.problem}{f': {self.hint}' if self.hint else ''}."
        if how == "python":
            parameters = ", ".join(f"{name}={_python(value)}" for name, value in self.change.items())
            return f"{self.problem}: try {parameters}."
        # An option with several values is repeated.
        each = [(name, value if isinstance(value, tuple) else (value,)) for name, value in self.change.items()]
        words = [f"--{name.replace('_', '-')} {shlex.quote(str(one))}" for name, values in each for one in values]
        return f"{self.problem}: try {' '.join(words)}"


def _python(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_python, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _advice_of(
    model: Any,
    models: dict[str, dict[str, float]],
    classes: tuple[Any, ...] | None,
    confusion: tuple[tuple[int, ...], ...] | None,
    n_test: int,
) -> Iterator[Advice]:
    """What follows from the model, and from the scores of all models by name."""
    own = models[NETWORK]
    linear = models.get(LINEAR)
    baseline = MEAN if classes is None else MAJORITY
    nearly_exact = own.get("r2", 0.0) > NEARLY_EXACT
    of_gamma = list(_advice_on_gamma(model, nearly_exact=nearly_exact)) if hasattr(model, "gamma_") else []
    if any(advice.code == "rule" for advice in of_gamma):
        pass  # another γ may be all that is missing
    elif linear is not None and not nearly_exact and _clearly_worse(own, linear, n_test, models[baseline]):
        hint = "it may be all that these rows need"
        yield Advice("linear", "A plain linear model is better on the held-out rows", _more_layers(model), hint)
    elif _no_better(own, models[baseline]):
        hint = "the inputs may not tell the target, or it may depend on columns that are not used"
        yield Advice("baseline", f"The model is no better than the {baseline}", hint=hint)
        of_gamma = []
    if classes is not None and confusion is not None:
        yield from _advice_on_classes(classes, confusion, getattr(model, "class_weight", None))
    yield from of_gamma


def _no_better(own: dict[str, float], baseline: dict[str, float]) -> bool:
    if "rmse" in own:
        return own["rmse"] >= baseline["rmse"]
    # A model of rare classes may rank rows well although it misclassifies as many as the baseline. NaN is no ranking.
    return own["error"] >= baseline["error"] and not own["roc_auc"] >= WEAK_RANKING


def _clearly_worse(own: dict[str, float], other: dict[str, float], n_test: int, baseline: dict[str, float]) -> bool:
    if _no_better(other, baseline):
        return False
    if "rmse" in own:
        return own["rmse"] > (1.0 + CLEARLY) * other["rmse"]
    standard_error = math.sqrt(own["error"] * (1.0 - own["error"]) / n_test)
    return own["error"] - other["error"] > _STANDARD_ERRORS * standard_error


def _advice_on_classes(
    classes: tuple[Any, ...], confusion: tuple[tuple[int, ...], ...], class_weight: Any
) -> Iterator[Advice]:
    """Classes that some rows have and none is predicted as; or rare ones whose rows are mostly not found."""
    counts = np.array(confusion)
    n_true = counts.sum(axis=1)
    n_predicted = counts.sum(axis=0)
    found = counts.diagonal()
    change = {"class_weight": "balanced"} if class_weight is None else {}
    never = [f"{classes[i]!s} ({_rows(n_true[i])})" for i in np.flatnonzero((n_true > 0) & (n_predicted == 0))]
    if never:
        more = f" and {len(never) - _MOST_NAMED} more" if len(never) > _MOST_NAMED else ""
        problem = f"No held-out row is predicted as {', '.join(never[:_MOST_NAMED])}{more}"
        yield Advice("never_predicted", problem, change, "more rows of such classes would help")
        return
    rare = np.flatnonzero((n_true < n_true.sum() / (2 * len(classes))) & (found < n_true / 2))
    if len(rare) and class_weight is None:
        i = rare[np.argmin(found[rare] / n_true[rare])]
        problem = f"Only {found[i]:,} of {_rows(n_true[i])} of the rare class {classes[i]!s} are predicted as such"
        yield Advice("seldom_predicted", problem, change)


def _rows(n: int) -> str:
    return f"{n:,} {'row' if n == 1 else 'rows'}"


def _advice_on_gamma(model: ClosedForm, *, nearly_exact: bool) -> Iterator[Advice]:
    gamma = model.gamma_
    if isinstance(gamma, np.ndarray):
        return
    better = _better_rule(model)
    if better is not None:
        yield better
        return
    choice = model.choice_
    edge = choice.edge if advice_on(resolve(model.gamma), choice, model.spectrum_, network=True) else None
    if edge == "high":
        problem = f"γ = {gamma:.3g} is at the upper end of its range, where the output is almost constant"
        yield Advice("edge", problem, hint="the inputs may not tell the target")
    elif edge == "low" and not nearly_exact:
        problem = f"γ = {gamma:.3g} is at the lower end of its range, so this network needs no regularization"
        yield Advice("edge", problem, _more_layers(model), hint="more hidden units may do better")


def _more_layers(model: Any) -> dict[str, Any]:
    """More networks to choose among, if the model is the best of a list that can be longer."""
    return {"candidates": "thorough"} if getattr(model, "candidates", None) in ("quick", "default") else {}


def _better_rule(model: ClosedForm) -> Advice | None:
    """Whether another γ has a clearly smaller error on the folds that were stored."""
    if model.folds_ is None or len(model.folds_.filled) < 2:
        return None
    network = Evaluator(model.factor_, model.spectrum_, model.folds_)
    other = network.apply("ocrep_cv").gamma
    if other is None:
        return None
    gammas = np.array([model.gamma_, other])
    own, best = network.cv_errors(gammas)
    excess = own - best
    standard_error = network.cv_noise(gammas, other)[0]
    if not excess > max(CLEARLY * best, _STANDARD_ERRORS * standard_error):
        return None
    smaller = f"{100 * excess / own:.0f} % smaller"
    problem = f"In cross-validation the error would be {smaller} with γ = {other:.3g} than with γ = {model.gamma_:.3g}"
    return Advice("rule", problem, {"gamma": "ocrep_cv"})


# --- The assessment --------------------------------------------------------------------------------------------------


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
    margins : dict
        For each of the other models, by how much its loss exceeds the network's on the mean held-out row, and the
        standard error of that mean. The loss of a row is its squared error, or its log-loss; where the network has no
        probabilities, 1 if the label is wrong.
    n_simple : int or None
        The number of rows that the linear model and boosting were trained on, if the network had more.
    """

    task: Literal["regression", "classification"]
    n_test: int
    models: dict[str, dict[str, float]]
    classes: tuple[Any, ...] | None
    confusion: tuple[tuple[int, ...], ...] | None
    advice: tuple[Advice, ...]
    margins: dict[str, tuple[float, float]] = field(default_factory=dict)
    n_simple: int | None = None

    @property
    def verdict(self) -> Verdict:
        """Whether the model is any good, beside a constant and simple models on the same rows."""
        return _verdict(self)

    @property
    def scores(self) -> dict[str, float]:
        """The scores of the network, and the error of the baseline."""
        name, error = (MEAN, "rmse") if self.task == "regression" else (MAJORITY, "error")
        return {**self.models[NETWORK], f"baseline_{error}": self.models[name][error]}

    def to_json(self, how: Literal["command", "python"] = "command") -> dict[str, Any]:
        """All of it as plain data, with sentences of advice for users of the program or of Python."""
        advice = [{**asdict(one), "sentence": one.sentence(how)} for one in self.advice]
        return {**asdict(self), "judged_on": "held-out rows", "advice": advice, "verdict": asdict(self.verdict)}


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer to "is it good?".

    Attributes
    ----------
    code : {"good", "linear", "weak", "beaten", "ranks", "leak", "no_better"}
        The kind of the answer, for programs.
    level : {"good", "note", "warn"}
        How much attention it needs.
    answer : str
        One or two sentences.
    """

    code: str
    level: Literal["good", "note", "warn"]
    answer: str


def _verdict(found: Assessment) -> Verdict:
    """Graded from the least that must hold: better than a constant, by more than chance and by enough to matter."""
    labels = found.task == "classification"
    baseline = MAJORITY if labels else MEAN
    own, constant = found.models[NETWORK], found.models[baseline]
    # Labels that are rare are seldom predicted, however well their chances are known.
    measure = "rmse" if not labels else "error" if math.isnan(own["log_loss"]) else "log_loss"
    name = {"rmse": "error", "error": "share of wrong labels", "log_loss": "log-loss"}[measure]
    gain = 1.0 - own[measure] / constant[measure] if constant[measure] > 0.0 else 0.0
    if any(one.code == "leak" for one in found.advice):
        return Verdict("leak", "warn", "Not known yet: a column may hold the target itself (see the note on leakage).")
    if gain <= 0.0 or not _beyond_chance(found, baseline, 2.0):
        area = own.get("roc_auc", math.nan)
        if area >= WEAK_RANKING:
            ranks = f"it predicts no better than a constant, but it ranks rows (ROC AUC {area:.2f})"
            return Verdict("ranks", "note", f"In part: {ranks}.")
        return Verdict("no_better", "warn", "No: it predicts no better than a constant, or not beyond chance.")
    less = f"its {name} is {100.0 * gain:.0f}\u00a0% below that of a constant prediction"
    names = {LINEAR: "a linear model", BOOSTING: "gradient boosting"}
    worse = [other for other in names if other in found.models and _beyond_chance(found, other, -1.0)]
    better = [other for other in names if other in found.models and _beyond_chance(found, other, 1.0)]
    if worse:
        best = min(worse, key=lambda other: found.models[other][measure])
        return Verdict("beaten", "note", f"In part: {less}, but {names[best]} does better.")
    if gain < CLEARLY:
        return Verdict("weak", "note", f"Hardly: {less}.")
    if LINEAR in found.models and LINEAR not in better:
        return Verdict("linear", "note", f"As good as a linear model: {less}.")
    beside = f", and below those of {' and '.join(names[other] for other in better)}" if better else ""
    if better and found.n_simple is not None:
        beside += f" trained on {found.n_simple:,} of the rows"
    equal = BOOSTING in found.models and BOOSTING not in better
    return Verdict("good", "good", f"Yes: {less}{beside}.{' Gradient boosting does as well.' if equal else ''}")


def _beyond_chance(found: Assessment, other: str, errors: float) -> bool:
    """Whether another model's loss is larger by so many standard errors, or smaller by so many if they are negative."""
    mean, error = found.margins.get(other, (0.0, 0.0))
    return mean > errors * error if errors > 0.0 else mean < errors * error


def assess(model: Any, X: Any, y: Any, X_test: Any, y_test: Any, *, boosting: bool = False) -> Assessment:
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

    Returns
    -------
    Assessment
        The scores and the advice.
    """
    y = np.asarray(y)
    y_test = np.asarray(y_test)
    baseline = (DummyClassifier() if is_classifier(model) else DummyRegressor()).fit(X, y)
    assessor = Assessor.of(model, baseline, X, y, boosting=boosting, all_labels=y_test)
    assessor.add(X_test, y_test)
    return assessor.finish()


def assess_alone(model: Any, X: Any, y: np.ndarray) -> Assessment:
    """Assess a fitted model on held-out rows where its training rows are not at hand, beside their best constant."""
    labels = is_classifier(model)
    baseline = (DummyClassifier() if labels else DummyRegressor()).fit(np.zeros((len(y), 1)), y)
    classes = np.union1d(model.classes_, y) if labels else None
    assessor = Assessor({NETWORK: model, MAJORITY if labels else MEAN: baseline}, classes)
    assessor.add(X, y)
    return assessor.finish()


class Assessor:
    """Models that are scored on the same held-out rows, block by block."""

    def __init__(self, models: dict[str, Any], classes: np.ndarray | None, n_simple: int | None = None) -> None:
        self._models = models
        self._classes = classes
        self._n_simple = n_simple
        self._scores: dict[str, Any] = {
            name: NumberScores() if classes is None else LabelScores(classes, model.classes_)
            for name, model in models.items()
        }
        # Rows, sum and sum of squares of what another model's losses exceed the network's by.
        self._more: dict[str, tuple[int, float, float]] = {}

    @classmethod
    def of(
        cls,
        model: Any,
        baseline: DummyClassifier | DummyRegressor,
        X: Any,
        y: np.ndarray,
        *,
        boosting: bool = False,
        seed: int = 0,
        all_labels: np.ndarray | None = None,
        n_rows: int = 0,
    ) -> Assessor:
        """Train the simple models on rows of numbers; `all_labels` are those that held-out rows may have.

        The model was trained on `n_rows`, or on these rows.
        """
        labels = is_classifier(baseline)
        weight = getattr(model, "class_weight", None)
        models = {NETWORK: model, MAJORITY if labels else MEAN: baseline}
        models |= simple_models(X, y, labels=labels, class_weight=weight, boosting=boosting, seed=seed)
        classes = None
        if labels:
            classes = np.union1d(baseline.classes_, baseline.classes_ if all_labels is None else all_labels)
        n_simple = min(len(y), sample_size(X.shape[1], len(np.unique(y)) if labels else 1))
        return cls(models, classes, n_simple if n_simple < max(n_rows, len(y)) else None)

    def add(self, X: Any, y: np.ndarray) -> None:
        """Score a block of rows."""
        own: np.ndarray | None = None
        by_probability = hasattr(self._models[NETWORK], "predict_proba")
        for name, model in self._models.items():
            takes_sparse = name in (NETWORK, MEAN, MAJORITY)
            losses = []
            for part, true in [(X, y)] if takes_sparse else _dense_parts(X, y):
                given = [model.predict(part)]
                if self._classes is not None and hasattr(model, "predict_proba"):
                    given.append(model.predict_proba(part))
                self._scores[name].add(true, *given)
                losses.append(_losses(model, true, *given[: 1 + by_probability]))
            loss = np.concatenate(losses)
            if own is None:  # the network comes first
                own = loss
                continue
            more = loss - own
            more = more[np.isfinite(more)]
            n, total, squares = self._more.get(name, (0, 0.0, 0.0))
            self._more[name] = n + len(more), total + float(more.sum()), squares + float(more @ more)

    def finish(self, more: Sequence[Advice] = ()) -> Assessment:
        """The scores of all rows; `more` advice comes last."""
        models = {name: scores.values() for name, scores in self._scores.items()}
        own = self._scores[NETWORK]
        if self._classes is None:
            advice = (*_advice_of(self._models[NETWORK], models, None, None, own.n), *more)
            return Assessment("regression", own.n, models, None, None, advice, self._margins(), self._n_simple)
        labels = tuple(self._classes.tolist())
        confusion = tuple(map(tuple, own.confusion.tolist()))
        n_test = int(own.confusion.sum())
        advice = (*_advice_of(self._models[NETWORK], models, labels, confusion, n_test), *more)
        margins = self._margins()
        return Assessment("classification", n_test, models, labels, confusion, advice, margins, self._n_simple)

    def _margins(self) -> dict[str, tuple[float, float]]:
        found = {}
        for name, (n, total, squares) in self._more.items():
            mean = total / n if n else 0.0
            found[name] = mean, math.sqrt(max(0.0, squares / n - mean**2) / max(1, n - 1)) if n else math.inf
        return found


def _losses(model: Any, y: np.ndarray, predicted: np.ndarray, probabilities: np.ndarray | None = None) -> np.ndarray:
    """The loss of each row; NaN for a class that the model does not know."""
    if not hasattr(model, "classes_"):
        return (y - predicted) ** 2
    if probabilities is None:
        return (y != predicted).astype(np.float64)
    places = np.minimum(np.searchsorted(model.classes_, y), len(model.classes_) - 1)
    likely = np.maximum(probabilities[np.arange(len(y)), places], _SMALLEST)
    return np.where(model.classes_[places] == y, -np.log(likely), np.nan)


def simple_models(
    X: np.ndarray, y: np.ndarray, *, labels: bool, class_weight: Any = None, boosting: bool = False, seed: int = 0
) -> dict[str, Pipeline]:
    """A linear model and gradient boosting, by name, fitted to at most `sample_size` rows; none for a single class."""
    size = sample_size(X.shape[1], len(np.unique(y)) if labels else 1)
    if len(y) > size:
        chosen = np.sort(np.random.default_rng(seed).choice(len(y), size, replace=False))
        X, y = X[chosen], y[chosen]
    X = _dense(X)
    if labels and len(np.unique(y)) < 2:
        return {}
    linear = LogisticRegression(max_iter=100) if labels else RidgeCV(np.logspace(-3, 4, 8))
    # The squares of the scaler would overflow for a number such as 1e308.
    bounded = FunctionTransformer(np.clip, kw_args={"a_min": -1e100, "a_max": 1e100})
    models = {LINEAR: make_pipeline(bounded, StandardScaler(), linear)}
    if boosting:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        trees = HistGradientBoostingClassifier if labels else HistGradientBoostingRegressor
        models[BOOSTING] = make_pipeline(trees(random_state=seed))
    # As weights of rows: boosting does not find labels of text in a dict of class weights.
    weights = None if class_weight is None else compute_sample_weight(class_weight, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a simple model that has not converged serves for comparison too
        return {
            name: model.fit(X, y, **{f"{model.steps[-1][0]}__sample_weight": weights}) for name, model in models.items()
        }


def sample_size(n_columns: int, n_classes: int = 1) -> int:
    """How many rows the simple models are trained on at most."""
    width = max(1, n_columns)
    return min(MOST_ROWS, max(_FEWEST_ROWS, min(_MOST_ENTRIES // (width * n_classes), _MOST_PRODUCTS // width**2)))


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def _dense_parts(X: Any, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows as dense arrays of at most `_MOST_ENTRIES` numbers if they are sparse."""
    size = len(y) if not sparse.issparse(X) else max(1, _MOST_ENTRIES // max(1, X.shape[1]))
    for start in range(0, len(y), max(1, size)):
        yield _dense(X[start : start + size]), y[start : start + size]
