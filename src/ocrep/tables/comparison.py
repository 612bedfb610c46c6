"""Comparison of rules, methods of the literature and simple models over random splits, with tests against OCReP."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocrep import literature
from ocrep.analysis.assessment import BOOSTING, LINEAR, simple_models
from ocrep.analysis.compare import compare_rules
from ocrep.analysis.significance import corrected_paired_t_test
from ocrep.estimators import PinvRegressor
from ocrep.rules import names as rule_names
from ocrep.tables.problem import Problem, StageProgress, Task, silent
from ocrep.tables.training import as_data_errors, prepare

REFERENCE = "ocrep"
DEFAULT = "ocrep_cv"
MAIN_RULES = (DEFAULT, "kfold", "loo", "gcv", "evidence", "bic", REFERENCE, "none")
"""The rules that are compared unless all are asked for."""
LEVEL = 0.05
_LITERATURE: dict[Task, dict[str, Any]] = {
    "regression": {
        "ELM": literature.ELMRegressor,
        "RELM": literature.RELMRegressor,
        "OP-ELM": literature.OPELMRegressor,
        "TROP-ELM": literature.TROPELMRegressor,
        "pruned ELM": literature.PrunedELMRegressor,
    },
    "classification": {"ELM": literature.ELMClassifier, "RELM": literature.RELMClassifier},
}


@dataclass(frozen=True, slots=True)
class Method:
    """One method's test errors, and whether they differ significantly from OCReP's."""

    name: str
    errors: tuple[float, ...]  # one per split
    mean: float
    deviation: float
    difference: float  # mean difference from OCReP; positive where the method is worse
    p_value: float  # of the corrected paired t-test, adjusted for the number of methods (Holm)

    @property
    def verdict(self) -> str:
        """ "better" or "worse"; "" if the difference is not significant."""
        if self.name == REFERENCE or self.p_value >= LEVEL:
            return ""
        return "worse" if self.difference > 0 else "better"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The methods, sorted by mean error, and the reasons why others could not be applied."""

    methods: tuple[Method, ...]
    not_applicable: dict[str, str]
    n_splits: int
    test_share: float

    def advice(self) -> str:
        """Which rule to use, or whether a simple model does better than all networks."""
        best = self.methods[0]
        default = next((method for method in self.methods if method.name == DEFAULT), None)
        if default is None or best is default:
            return f"{best.name} has the least error."
        if not self._better(best, default):
            return f"No method is significantly better than {DEFAULT}, the default: keep it."
        less = f"{100 * (1 - best.mean / default.mean):.0f} % below that of {DEFAULT}, the default"
        if best.name in (LINEAR, BOOSTING):
            named = "A linear model" if best.name == LINEAR else "Gradient boosting"
            return f"{named} is better than all networks here: its error is {less}."
        how = f"--gamma {best.name}" if best.name in rule_names() else best.name
        return f"Use {how}: its error is {less}."

    def _better(self, one: Method, other: Method) -> bool:
        found = corrected_paired_t_test(one.errors, other.errors, test_share=self.test_share)
        return found.difference < 0 and found.p_value < LEVEL


def compare_methods(
    problem: Problem,
    *,
    n_hidden: int | None = None,
    n_splits: int = 10,
    test: float = 0.3,
    seed: int = 0,
    rules: Sequence[str] | None = None,
    published: bool = True,
    progress: StageProgress = silent,
) -> Comparison:
    """Compare on `n_splits` random splits; the rules share one hidden layer on each split.

    Without `n_hidden` it has the library's default size; without `rules` all are compared. Methods of the literature
    use their own defaults, including the number of units. A linear model and gradient boosting are trained on at most
    50,000 of the same rows. Errors are RMSE, or the share of misclassified rows.
    """
    size = PinvRegressor().n_hidden if n_hidden is None else n_hidden
    if n_splits < 2:
        raise ValueError(f"n_splits={n_splits} must be at least 2: one split does not show the spread of the error.")
    found: dict[str, list[float]] = {}
    reasons: dict[str, str] = {}
    for split in range(n_splits):
        progress("Comparing", split, n_splits)
        for name, error, reason in _on_one_split(problem, size, test, seed + split, rules, published):
            found.setdefault(name, []).append(error)
            reasons[name] = reason or reasons.get(name, "")
    complete = {name: values for name, values in found.items() if np.isfinite(values).all()}
    missing = {name: reasons[name] or "Its error is not finite." for name in found if name not in complete}
    return Comparison(_judged(complete, test), missing, n_splits, test)


def _on_one_split(
    problem: Problem, n_hidden: Any, test: float, seed: int, rules: Sequence[str] | None, published: bool
) -> Iterator[tuple[str, float, str]]:
    """Yield name, test error (NaN if the method cannot be applied) and the reason for that."""
    X, y, X_test, y_test = prepare(problem, test=test, seed=seed)
    chosen = {"rules": rules, "n_hidden": n_hidden, "task": problem.task, "random_state": seed}
    with as_data_errors():
        table = compare_rules(X, y, test=(X_test, y_test), details=True, **chosen)
    for name, line in table.iterrows():
        yield str(name), float(line["test_error"]), line["reason"] if isinstance(line["reason"], str) else ""
    for name, model in simple_models(X, y, labels=problem.task == "classification", boosting=True, seed=seed).items():
        yield name, _error(problem.task, model.predict(X_test), y_test), ""
    for name, kind in (_LITERATURE[problem.task] if published else {}).items():
        try:
            predicted = kind(random_state=seed).fit(X, y).predict(X_test)
        except ValueError as reason:
            yield name, math.nan, str(reason)
        else:
            yield name, _error(problem.task, predicted, y_test), ""


def _error(task: Task, predicted: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((predicted - y) ** 2)) if task == "regression" else np.mean(predicted != y))


def _judged(found: dict[str, list[float]], test: float) -> tuple[Method, ...]:
    others = [name for name in found if name != REFERENCE]
    tests = {name: corrected_paired_t_test(found[name], found[REFERENCE], test_share=test) for name in found}
    adjusted = dict(zip(others, holm([tests[name].p_value for name in others]), strict=True))
    methods = []
    for name, values in found.items():
        mean = float(np.mean(values))
        deviation = float(np.std(values, ddof=1))
        methods.append(Method(name, tuple(values), mean, deviation, tests[name].difference, adjusted.get(name, 1.0)))
    return tuple(sorted(methods, key=lambda method: method.mean))


def holm(p_values: list[float]) -> list[float]:
    """Adjust p-values so that the probability of any false rejection is at most the level of the tests.

    Holm (1979): the k-th smallest of m is multiplied by m − k + 1; no adjusted value is smaller than the one before.
    """
    given = np.asarray(p_values, dtype=float)
    order = np.argsort(given, kind="stable")
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(np.arange(len(given), 0, -1) * given[order]))
    return adjusted.tolist()
