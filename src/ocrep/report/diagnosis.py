"""The numbers of a report: one network, its spectrum, and its errors along γ and under every rule."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ocrep import rules as all_rules
from ocrep._linalg.spectrum import Spectrum
from ocrep.analysis.gamma_path import GammaPath, Landing, gamma_grid
from ocrep.displays.spectral import levels
from ocrep.report.verdict import Facts, RuleLine, Verdict, judge

DEFAULT_TITLE = "Conditioning and regularization"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A rule that does not apply here, and why."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Plain numbers, all that a report shows.

    The lists from `gammas` on run along one grid of γ, which begins with γ = 0 and holds the γ of every rule, so that
    nothing shown is interpolated. Errors are RMSE, or the share of misclassified rows for a classifier.
    """

    title: str
    estimator: str
    task: str
    error_name: str
    inputs: list[str]
    n_train: int
    n_test: int
    n_folds: int
    n_columns: int
    n_hidden: int | None
    rank: int
    floor: float
    tolerance: float
    condition_number: float
    chosen_rule: str
    chosen_gamma: float
    singular_values: list[float]
    gammas: list[float]
    train_error: list[float]
    cv_error: list[float]
    test_error: list[float] | None
    condition: list[float]
    dof: list[float]
    norm: list[float]
    rules: list[RuleLine]
    not_applicable: list[Skipped]
    verdict: Verdict

    def to_json(self) -> str:
        """All of it as strict JSON; what is not finite becomes null."""
        return json.dumps(finite(asdict(self)), ensure_ascii=False, allow_nan=False)


def diagnose(
    estimator: Any,
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    title: str = DEFAULT_TITLE,
    rules: Iterable[Any] | None = None,
) -> Diagnosis:
    """Look at one problem under every γ, for the price of one fit.

    Parameters
    ----------
    estimator : PinvRegressor, PinvClassifier, TikhonovRegressor or TikhonovClassifier
        Not fitted; it stays as it is. Its own rule is always among those compared.
    X, y : array-like
        Training rows.
    X_test, y_test : array-like, default=None
        Rows to test on; the verdict does not look at them.
    title : str
        Heading of the report.
    rules : iterable of names, rules or numbers, default=None
        What may be given as `gamma`; all names if None.

    Returns
    -------
    Diagnosis
    """
    model = _fitted(estimator, X, y)
    path = GammaPath.of(model, X, y, X_test, y_test)
    landings = [path.land(rule) for rule in _asked(estimator.gamma, rules)]
    landed = [landing for landing in landings if landing.gamma is not None]
    spectrum = path.spectrum
    gammas = _grid(spectrum, landed)
    curves = _Curves.along(path, gammas)
    best = int(np.nanargmin(curves.cv_error)) if np.isfinite(curves.cv_error).any() else 0
    noise = path.cv_noise(gammas, float(gammas[best]))
    lines = [curves.line(landing, noise) for landing in landed]
    floor, rank_tolerance = levels(spectrum)
    facts = _facts(path, curves, best, lines, floor)
    return Diagnosis(
        title=title,
        estimator=repr(estimator),
        task="classification" if path.labels else "regression",
        error_name="share misclassified" if path.labels else "RMSE",
        inputs=[str(name) for name in getattr(model, "feature_names_in_", range(1, model.n_features_in_ + 1))],
        n_train=len(y),
        n_test=0 if y_test is None else len(y_test),
        n_folds=path.folds.plan.n_folds,
        n_columns=facts.n_columns,
        n_hidden=getattr(model, "n_hidden_", None),
        rank=spectrum.rank,
        floor=floor,
        tolerance=rank_tolerance,
        condition_number=facts.condition_number,
        chosen_rule=_name(estimator.gamma),
        chosen_gamma=model.gamma_,
        singular_values=np.asarray(model.singular_values_).tolist(),
        **curves.as_lists(),
        rules=sorted(lines, key=lambda line: line.cv_error if math.isfinite(line.cv_error) else math.inf),
        not_applicable=[Skipped(landing.rule, landing.reason) for landing in landings if landing.gamma is None],
        verdict=judge(facts),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Curves:
    """Everything that runs along the grid."""

    gammas: np.ndarray
    train_error: np.ndarray
    cv_error: np.ndarray
    test_error: np.ndarray | None
    condition: np.ndarray
    dof: np.ndarray
    norm: np.ndarray

    @classmethod
    def along(cls, path: GammaPath, gammas: np.ndarray) -> _Curves:
        """Compute them all."""
        spectrum = path.spectrum
        return cls(
            gammas=gammas,
            train_error=path.training_errors(gammas),
            cv_error=path.cv_errors(gammas),
            test_error=path.test_errors(gammas),
            condition=np.asarray(spectrum.condition(gammas)),
            dof=np.asarray(spectrum.dof(gammas)),
            norm=np.asarray(spectrum.norm(gammas)),
        )

    def line(self, landing: Landing, noise: np.ndarray) -> RuleLine:
        """Read one rule's line off the curves; its γ is in the grid, or nearest to it."""
        assert landing.gamma is not None
        at = int(np.argmin(np.abs(self.gammas - landing.gamma)))
        return RuleLine(
            rule=landing.rule,
            gamma=landing.gamma,
            index=at,
            train_error=float(self.train_error[at]),
            cv_error=float(self.cv_error[at]),
            cv_noise=float(noise[at]),
            test_error=None if self.test_error is None else float(self.test_error[at]),
            dof=float(self.dof[at]),
            norm=float(self.norm[at]),
            condition=float(self.condition[at]),
            edge=landing.edge,
            floored=landing.floored,
        )

    def as_lists(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: None if array is None else array.tolist() for name, array in values.items()}


def _fitted(estimator: Any, X: Any, y: Any) -> Any:
    """The estimator fitted with folds; without calibration, which no number here reads."""
    model = clone(estimator)
    model.set_params(store_folds=all_rules.resolve(model.gamma).folds or model.store_folds or True)
    if "calibrate" in model.get_params(deep=False):
        model.set_params(calibrate=None)
    return model.fit(X, y)


def _asked(own: Any, rules: Iterable[Any] | None) -> list[Any]:
    """The rules to compare, the estimator's own first if it is not among them."""
    asked: list[Any] = list(all_rules.names() if rules is None else [rules] if isinstance(rules, str) else rules)
    return asked if _name(own) in map(_name, asked) else [own, *asked]


def _name(rule: Any) -> str:
    return rule if isinstance(rule, str) else repr(rule)


def _grid(spectrum: Spectrum, landed: list[Landing]) -> np.ndarray:
    return np.concatenate([[0.0], gamma_grid(spectrum, [landing.gamma for landing in landed])])


def _facts(path: GammaPath, curves: _Curves, best: int, lines: list[RuleLine], floor: float) -> Facts:
    spectrum = path.spectrum
    n_columns = spectrum.Vt.shape[1]
    return Facts(
        labels=path.labels,
        n_rows=spectrum.n_rows,
        n_columns=n_columns,
        n_resolved=int(np.sum(np.asarray(spectrum.sigma) > floor)),
        rank=spectrum.rank,
        most_directions=min(n_columns, spectrum.n_rows - int(spectrum.intercept_fitted)),
        condition_number=float(spectrum.condition()),
        floor_condition=spectrum.largest / floor if floor else math.inf,
        best_cv_error=float(curves.cv_error[best]),
        best_cv_gamma=float(curves.gammas[best]),
        rules=lines,
    )


def finite(value: Any) -> Any:
    """The same value with null in place of each number that is not finite."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
