"""The model that `ocrep fit` saves beside other models over random splits, with tests of the differences.

All models learn from the same coded rows. Simple models, and LightGBM and CatBoost where they are installed, have their
defaults. On request the rules for γ, on one hidden layer for all of them, and methods of the literature are added.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from ocrep import literature
from ocrep.analysis.assessment import NETWORK, simple_models
from ocrep.analysis.compare import compare_rules
from ocrep.analysis.significance import corrected_paired_t_test
from ocrep.tables.estimators import Coded
from ocrep.tables.rows import Progress, silent
from ocrep.tables.training import Problem, Task, UsageError, as_data_errors, divided, fit_quietly, read_of

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
    """One method's test errors, and whether they differ significantly from those of the model of `ocrep fit`."""

    name: str
    errors: tuple[float, ...]  # one per split
    mean: float
    deviation: float
    difference: float  # mean difference from the network; positive where the method is worse
    p_value: float  # of the corrected paired t-test, adjusted for the number of methods (Holm)

    @property
    def verdict(self) -> str:
        """ "better" or "worse"; "" if the difference is not significant."""
        if self.name == NETWORK or self.p_value >= LEVEL:
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
        """Whether another method does better than the model of `ocrep fit`."""
        best = self.methods[0]
        network = next(method for method in self.methods if method.name == NETWORK)
        better = [method for method in self.methods if method.verdict == "better"]
        if better:
            less = f"{100 * (1 - better[0].mean / network.mean):.0f} % below that of the network"
            return f"{better[0].name} is better here: its error is {less}."
        if best is network:
            return "The network, which ocrep fit trains, has the least error."
        return "No method is significantly better than the network, which ocrep fit trains."


def compare_methods(
    problem: Problem,
    *,
    n_splits: int = 5,
    test: float = 0.3,
    rules: Sequence[str] | None = (),
    published: bool = False,
    progress: Progress = silent,
) -> Comparison:
    """Compare on `n_splits` random splits. Errors are RMSE, or the share of misclassified rows.

    `rules` are rules for γ, None for all: they share one hidden layer of the default size on each split. Methods of the
    literature use their own defaults.
    """
    if n_splits < 2:
        raise ValueError(f"n_splits={n_splits} must be at least 2: one split does not show the spread of the error.")
    if not problem.table.in_memory:
        raise UsageError("A comparison holds all rows in memory, and there are too many: take a sample of the file.")
    left_out = read_of(problem)[0].left_out  # as `ocrep fit` decides, and the same on each split
    found: dict[str, list[float]] = {}
    reasons: dict[str, str] = {}
    for split in range(n_splits):
        progress("Comparing", split, n_splits)
        settings = replace(problem.settings, seed=problem.settings.seed + split)
        for name, error, reason in _on_one_split(replace(problem, settings=settings), left_out, test, rules, published):
            found.setdefault(name, []).append(error)
            reasons[name] = reason or reasons.get(name, "")
    complete = {name: values for name, values in found.items() if np.isfinite(values).all()}
    missing = {name: reasons[name] or "Its error is not finite." for name in found if name not in complete}
    return Comparison(_judged(complete, test), missing, n_splits, test)


def _on_one_split(
    problem: Problem, left_out: Mapping[str, str], test: float, rules: Sequence[str] | None, published: bool
) -> Iterator[tuple[str, float, str]]:
    """Yield name, test error (NaN if the method cannot be applied) and the reason for that."""
    training, (held_out,) = divided(problem, test)
    model = problem.model()
    coded, _ = fit_quietly(model, training, left_out)
    frame, y_test, _, _ = model._rows(held_out, whole=False)
    X_test = model.coder_.transform(frame)
    seed, labels = problem.settings.seed, problem.labels
    yield NETWORK, _error(problem, model.model_.predict(X_test), y_test), ""
    others = simple_models(coded.inputs, coded.y, labels=labels, boosting=True, seed=seed)
    others |= _installed(coded, labels=labels, seed=seed)
    for name, other in others.items():
        yield name, _error(problem, np.asarray(other.predict(X_test)).reshape(len(y_test)), y_test), ""
    if rules is None or len(rules):
        chosen: dict[str, Any] = {"rules": rules, "task": problem.task, "random_state": seed}
        known = np.isin(y_test, coded.y) if labels else np.ones(len(y_test), dtype=bool)
        share = known.mean()  # the others are wrong, whatever is predicted
        with as_data_errors():
            table = compare_rules(coded.inputs, coded.y, test=(X_test[known], y_test[known]), details=True, **chosen)
        for name, line in table.iterrows():
            reason = line["reason"] if isinstance(line["reason"], str) else ""
            yield f"γ by {name}", float(share * line["test_error"] + (1.0 - share)), reason
    for name, kind in (_LITERATURE[problem.task] if published else {}).items():
        try:
            predicted = kind(random_state=seed).fit(coded.inputs, coded.y).predict(X_test)
        except ValueError as reason:
            yield name, math.nan, str(reason)
        else:
            yield name, _error(problem, predicted, y_test), ""


def _installed(coded: Coded, *, labels: bool, seed: int) -> dict[str, Any]:
    """LightGBM and CatBoost as their users run them, where they are installed."""
    models: dict[str, Any] = {}
    if find_spec("lightgbm") is not None:
        import lightgbm

        kind = lightgbm.LGBMClassifier if labels else lightgbm.LGBMRegressor
        models["LightGBM"] = kind(random_state=seed, verbose=-1)
    if find_spec("catboost") is not None:
        import catboost

        kind = catboost.CatBoostClassifier if labels else catboost.CatBoostRegressor
        models["CatBoost"] = kind(random_seed=seed, verbose=0, allow_writing_files=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: model.fit(coded.inputs, coded.y) for name, model in models.items()}


def _error(problem: Problem, predicted: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(predicted != y) if problem.labels else np.sqrt(np.mean((predicted - y) ** 2)))


def _judged(found: dict[str, list[float]], test: float) -> tuple[Method, ...]:
    others = [name for name in found if name != NETWORK]
    tests = {name: corrected_paired_t_test(found[name], found[NETWORK], test_share=test) for name in found}
    adjusted = dict(zip(others, holm([tests[name].p_value for name in others]), strict=True))
    methods = []
    for name, values in found.items():
        mean = float(np.mean(values))
        deviation = float(np.std(values, ddof=1))
        methods.append(Method(name, tuple(values), mean, deviation, tests[name].difference, adjusted.get(name, 1.0)))
    return tuple(sorted(methods, key=lambda method: method.mean))


def holm(p_values: list[float]) -> list[float]:
    """Adjust p-values so that the probability of any false rejection is at most the level of the tests.

    Holm (1979): the k-th smallest of m is multiplied by m − k + 1; no adjusted value is smaller than the one before. A
    p-value that is not known counts as 1.
    """
    given = np.nan_to_num(np.asarray(p_values, dtype=float), nan=1.0)
    order = np.argsort(given, kind="stable")
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(np.arange(len(given), 0, -1) * given[order]))
    return adjusted.tolist()
