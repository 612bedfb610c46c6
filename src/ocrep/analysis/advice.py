"""`Advice`: sentences about what seems wrong with a fitted model, each with the parameters that help."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ocrep.analysis.evaluator import Evaluator
from ocrep.analysis.scores import LINEAR, MAJORITY, MEAN, NETWORK
from ocrep.estimators.base import ClosedForm
from ocrep.rules import resolve
from ocrep.rules.advice import advice_on

# By how much another γ or another model must be better to be named.
CLEARLY = 0.05
_NOISE = 2.0
WEAK_RANKING = 0.6
_MOST_NAMED = 3
_EXACT = 0.999  # R² of a model that needs no advice


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
            told = ", ".join(f"{name}={_python(value)}" for name, value in self.change.items())
            return f"{self.problem}: try {told}."
        # An option with several values is repeated.
        each = [(name, value if isinstance(value, tuple) else (value,)) for name, value in self.change.items()]
        words = [f"--{name.replace('_', '-')} {shlex.quote(str(one))}" for name, values in each for one in values]
        return f"{self.problem}: try {' '.join(words)}"


def _python(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_python, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def advice_of(
    model: Any,
    models: dict[str, dict[str, float]],
    classes: tuple[Any, ...] | None,
    confusion: tuple[tuple[int, ...], ...] | None,
    n_test: int,
) -> Iterator[Advice]:
    """What the scores of a model, those of simple models by name, and the model itself tell."""
    own, linear = models[NETWORK], models.get(LINEAR)
    name = MEAN if classes is None else MAJORITY
    nearly_exact = own.get("r2", 0.0) > _EXACT
    of_gamma = list(_of_gamma(model, nearly_exact=nearly_exact)) if isinstance(model, ClosedForm) else []
    if any(advice.code == "rule" for advice in of_gamma):
        pass  # another γ may be all that is missing
    elif linear is not None and not nearly_exact and _clearly_worse(own, linear, n_test, models[name]):
        hint = "it may be all that these rows need"
        yield Advice("linear", "A plain linear model is better on the held-out rows", _more_layers(model), hint)
    elif _no_better(own, models[name]):
        hint = "the inputs may not tell the target, or it may depend on columns that are not used"
        yield Advice("baseline", f"The model is no better than the {name}", hint=hint)
        of_gamma = []
    if classes is not None and confusion is not None:
        yield from _of_classes(classes, confusion, getattr(model, "class_weight", None))
    yield from of_gamma


def _of_classes(
    classes: tuple[Any, ...], confusion: tuple[tuple[int, ...], ...], class_weight: Any
) -> Iterator[Advice]:
    """Classes that some rows have and none is predicted as; or rare ones whose rows are mostly not found."""
    counts = np.array(confusion)
    change = {"class_weight": "balanced"} if class_weight is None else {}
    hint = "more rows of such classes would help"
    n_rows, found, told = counts.sum(axis=1), counts.diagonal(), counts.sum(axis=0)
    never = [f"{classes[i]!s} ({_rows(n_rows[i])})" for i in np.flatnonzero((n_rows > 0) & (told == 0))]
    if never:
        more = f" and {len(never) - _MOST_NAMED} more" if len(never) > _MOST_NAMED else ""
        problem = f"No held-out row is predicted as {', '.join(never[:_MOST_NAMED])}{more}"
        yield Advice("never_predicted", problem, change, hint)
        return
    rare = np.flatnonzero((n_rows < n_rows.sum() / (2 * len(classes))) & (found < n_rows / 2))
    if len(rare) and class_weight is None:
        i = rare[np.argmin(found[rare] / n_rows[rare])]
        problem = f"Only {found[i]:,} of {_rows(n_rows[i])} of the rare class {classes[i]!s} are predicted as such"
        yield Advice("seldom_predicted", problem, change)


def _rows(n: int) -> str:
    return f"{n:,} {'row' if n == 1 else 'rows'}"


def _no_better(own: dict[str, float], baseline: dict[str, float]) -> bool:
    if "rmse" in own:
        return own["rmse"] >= baseline["rmse"]
    # A model of rare classes may rank rows well although it misclassifies as many as the baseline.
    ranks = own["roc_auc"]
    return own["error"] >= baseline["error"] and not ranks >= WEAK_RANKING


def _clearly_worse(own: dict[str, float], other: dict[str, float], n_test: int, baseline: dict[str, float]) -> bool:
    if _no_better(other, baseline):
        return False
    if "rmse" in own:
        return own["rmse"] > (1.0 + CLEARLY) * other["rmse"]
    noise = math.sqrt(own["error"] * (1.0 - own["error"]) / n_test)
    return own["error"] - other["error"] > _NOISE * noise


def _of_gamma(model: ClosedForm, *, nearly_exact: bool) -> Iterator[Advice]:
    gamma, choice = model.gamma_, model.choice_
    if isinstance(gamma, np.ndarray):
        return
    edge = choice.edge if advice_on(resolve(model.gamma), choice, model.spectrum_, network=True) else None
    better = _better_rule(model)
    if better is not None:
        yield better
    elif edge == "high":
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
    mine, best = network.cv_errors(gammas)
    excess, noise = mine - best, network.cv_noise(gammas, other)[0]
    if not excess > max(CLEARLY * best, _NOISE * noise):
        return None
    gain = f"{100 * excess / mine:.0f} % smaller"
    problem = f"In cross-validation the error would be {gain} with γ = {other:.3g} than with γ = {model.gamma_:.3g}"
    return Advice("rule", problem, {"gamma": "ocrep_cv"})
