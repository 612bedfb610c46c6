"""The numbers of a report: one network, its spectrum, and its errors along γ and under every rule."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

import numpy as np
from sklearn.base import clone

from ocrep.analysis.evaluator import Evaluator, RuleOutcome, both_or_none, gamma_grid, rule_name, rules_to_compare
from ocrep.displays.spectral import levels
from ocrep.estimators.base import ClosedForm, fit_silently
from ocrep.report.goodness import Goodness, goodness
from ocrep.report.table import Table
from ocrep.report.verdict import Facts, RuleLine, Verdict, judge
from ocrep.report.wording import percent, readable
from ocrep.rules import resolve

DEFAULT_TITLE = "Conditioning and regularization"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A rule that does not apply here, and why."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All numbers of a report.

    The errors, `condition`, `dof` and `norm` run along the grid `gammas`, which begins with γ = 0 and holds the γ of
    every rule: no number is interpolated. Errors are RMSE, or the share of misclassified rows for a classifier.

    Parameters
    ----------
    title, estimator : str
        Heading, and the network as text.
    task, error_name : str
        "regression" or "classification", and the name of the error.
    table : Table
        The columns, what was left out, and the command of the reader.
    n_train, n_test, n_folds, n_columns : int
        Rows, folds of the cross-validation and columns of H.
    n_hidden : int or None
        Hidden units; None without a hidden layer.
    rank : int
        Numerical rank of H.
    floor, tolerance : float
        Precision floor and rank tolerance, in units of σ.
    condition_number : float
        μ(H).
    chosen_rule, chosen_gamma : str and float
        What the network itself uses.
    singular_values : list of float
        Those of H.
    gammas : list of float
        The grid.
    train_error, cv_error, condition, dof, norm : list of float
        Along the grid.
    rules : list of RuleLine
        The rules that apply, by cross-validation error.
    not_applicable : list of Skipped
        The others, and why.
    verdict : Verdict
        The findings in words.
    advised : str
        The line of Python, or the command, that trains with the recommended rule.
    test_error : list of float or None
        Along the grid, if there are test rows.
    goodness : Goodness or None
        Scores beside those of simple models, if there are test rows.

    See Also
    --------
    write_report : Makes a page of it.

    Examples
    --------
    >>> from ocrep import PinvRegressor
    >>> from ocrep.datasets import load
    >>> from ocrep.report import diagnose, write_report
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> diagnosis = diagnose(PinvRegressor(20, random_state=0), X, y, rules=["ocrep", "ocrep_cv", "gcv"])
    >>> len(diagnosis.rules), diagnosis.rank
    (3, 26)
    >>> diagnosis.to_json()[:8]
    '{"title"'
    >>> diagnosis.error_text(12.345)
    '12.35'
    """

    title: str
    estimator: str = field(repr=False)
    task: str
    error_name: str
    table: Table = field(repr=False)
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
    singular_values: list[float] = field(repr=False)
    gammas: list[float] = field(repr=False)
    train_error: list[float] = field(repr=False)
    cv_error: list[float] = field(repr=False)
    condition: list[float] = field(repr=False)
    dof: list[float] = field(repr=False)
    norm: list[float] = field(repr=False)
    rules: list[RuleLine] = field(repr=False)
    not_applicable: list[Skipped] = field(repr=False)
    verdict: Verdict
    advised: str = field(repr=False)
    test_error: list[float] | None = field(default=None, repr=False)
    goodness: Goodness | None = field(default=None, repr=False)

    def error_text(self, error: float) -> str:
        """Format an error for readers: shares of misclassified rows as percentages.

        Parameters
        ----------
        error : float
            An RMSE, or a share of misclassified rows.

        Returns
        -------
        str
            A few digits.
        """
        return percent(error) if self.task == "classification" and error == error else readable(error, 4)

    def _repr_html_(self) -> str:
        """The questions and answers, for notebooks."""
        good = [] if self.goodness is None else [self.goodness.finding]
        rows = "".join(
            f"<tr><th style='text-align: left'>{escape(finding.question)}</th><td>{escape(finding.answer)}</td></tr>"
            for finding in (*good, *self.verdict.findings)
        )
        return f"<table><caption><b>{escape(self.title)}</b></caption>{rows}</table>"

    def to_json(self) -> str:
        """Return all numbers as strict JSON; infinity and NaN become null.

        Returns
        -------
        str
            One JSON object.
        """
        return json.dumps(finite(asdict(self)), ensure_ascii=False, allow_nan=False)


def diagnose(
    estimator: ClosedForm,
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    title: str = DEFAULT_TITLE,
    rules: Iterable[Any] | None = None,
    table: Table | None = None,
) -> Diagnosis:
    """Evaluate one network under many γ, at the cost of one fit.

    Parameters
    ----------
    estimator : PinvRegressor, PinvClassifier, TikhonovRegressor or TikhonovClassifier
        The network; a copy is fitted, and the estimator is not changed. Its own rule is always compared.
    X, y : array-like
        Training rows.
    X_test, y_test : array-like, default=None
        Test rows, on which the network, a linear model, gradient boosting and a constant are scored; the choice of a
        rule does not use them.
    title : str
        Heading of the report.
    rules : iterable of str, Rule or float, default=None
        Values for the parameter `gamma`; None compares all names in `ocrep.rules.names()`.
    table : Table, default=None
        Where the rows come from; None takes the names of the columns of X.

    Returns
    -------
    Diagnosis
        The numbers; `write_report` makes a page of them.

    See Also
    --------
    write_report : Makes a page of the result.
    ocrep.compare_rules : A table of all rules only.

    Examples
    --------
    >>> from ocrep import PinvRegressor
    >>> from ocrep.datasets import load
    >>> from ocrep.report import diagnose, write_report
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> diagnosis = diagnose(PinvRegressor(20, random_state=0), X, y, rules=["ocrep", "ocrep_cv", "gcv"])
    >>> len(diagnosis.rules), diagnosis.rank
    (3, 26)
    """
    model = _fitted(estimator, X, y)
    network = Evaluator.of(model, (X, y), test=both_or_none(X_test, y_test))
    asked, own = rules_to_compare(rules), estimator.gamma
    if rule_name(own) not in map(rule_name, asked):
        asked = [own, *asked]
    outcomes = [network.apply(rule) for rule in asked]
    curves = _curves(network, np.append(0.0, gamma_grid(network.spectrum, [outcome.gamma for outcome in outcomes])))
    best = int(np.nanargmin(curves["cv_error"])) if np.isfinite(curves["cv_error"]).any() else 0
    noise = network.cv_noise(curves["gammas"], float(curves["gammas"][best]))
    lines = [_line(outcome, curves, noise) for outcome in outcomes if outcome.gamma is not None]
    facts = _facts(network, curves, best, lines)
    verdict = judge(facts)
    return Diagnosis(
        title=title,
        **_about(estimator, model, network),
        table=_table_of(model) if table is None else table,
        n_train=len(y),
        n_test=0 if y_test is None else len(y_test),
        n_columns=facts.n_columns,
        rank=facts.rank,
        condition_number=facts.condition_number,
        **{name: values.tolist() for name, values in curves.items()},
        rules=sorted(lines, key=lambda line: line.cv_error if math.isfinite(line.cv_error) else math.inf),
        not_applicable=[Skipped(outcome.rule, outcome.reason) for outcome in outcomes if outcome.gamma is None],
        verdict=verdict,
        advised=_advised(estimator, verdict.recommended, table),
        goodness=None if y_test is None else goodness(model, X, y, X_test, y_test),
    )


def _table_of(model: ClosedForm) -> Table:
    return Table([str(name) for name in getattr(model, "feature_names_in_", range(1, model.n_features_in_ + 1))])


def _advised(estimator: ClosedForm, rule: str | None, table: Table | None) -> str:
    """The line that trains with the recommended rule: of Python, or the command if there is one."""
    if rule is None:
        return ""
    if table is not None and table.command:
        return f"{table.command} --gamma {rule}"
    # The estimator's own rule may be an object or a number, which its name describes but is not.
    gamma = estimator.gamma if rule == rule_name(estimator.gamma) else rule
    return repr(clone(estimator).set_params(gamma=gamma))


def _about(estimator: ClosedForm, model: ClosedForm, network: Evaluator) -> dict[str, Any]:
    """The estimator as given and what its copy learned, by the names of `Diagnosis`."""
    floor, tolerance = levels(network.spectrum)
    return {
        "estimator": repr(estimator),
        "task": "classification" if network.labels else "regression",
        "error_name": network.error_name,
        "n_folds": network.folds.plan.n_folds if network.folds else 0,
        "n_hidden": getattr(model, "n_hidden_", None),
        "chosen_rule": rule_name(estimator.gamma),
        "chosen_gamma": model.gamma_,
        "singular_values": np.asarray(model.singular_values_).tolist(),
        "floor": floor,
        "tolerance": tolerance,
    }


def _curves(network: Evaluator, gammas: np.ndarray) -> dict[str, np.ndarray]:
    """All quantities along the grid of γ; `test_error` only if there are test rows."""
    curves = {
        "gammas": gammas,
        "train_error": network.training_errors(gammas),
        "cv_error": network.cv_errors(gammas),
        **{name: np.asarray(getattr(network.spectrum, name)(gammas)) for name in ("condition", "dof", "norm")},
    }
    return curves if network.test is None else {**curves, "test_error": network.test_errors(gammas)}


def _line(outcome: RuleOutcome, curves: dict[str, np.ndarray], noise: np.ndarray) -> RuleLine:
    """Read one rule's line off the curves; its γ is in the grid."""
    assert outcome.gamma is not None
    at = int(np.argmin(np.abs(curves["gammas"] - outcome.gamma)))
    values = {name: float(values[at]) for name, values in curves.items() if name != "gammas"}
    return RuleLine(outcome.rule, outcome.gamma, at, outcome.edge, outcome.floored, float(noise[at]), **values)


def _fitted(estimator: ClosedForm, X: Any, y: Any) -> ClosedForm:
    """The estimator fitted with folds."""
    model = clone(estimator)
    model.set_params(store_folds=resolve(model.gamma).folds is not None or model.store_folds or True)
    fit_silently(model, X, y)
    return model


def _facts(network: Evaluator, curves: dict[str, np.ndarray], best: int, lines: list[RuleLine]) -> Facts:
    spectrum = network.spectrum
    floor, _ = levels(spectrum)
    n_columns = spectrum.right.n_features
    return Facts(
        labels=network.labels,
        n_rows=spectrum.n_rows,
        n_columns=n_columns,
        n_resolved=int(np.sum(np.asarray(spectrum.sigma) > floor)),
        rank=spectrum.rank,
        most_directions=min(n_columns, spectrum.n_rows - int(spectrum.intercept_fitted)),
        condition_number=float(spectrum.condition()),
        floor_condition=spectrum.largest / floor if floor else math.inf,
        best_cv_error=float(curves["cv_error"][best]),
        best_cv_gamma=float(curves["gammas"][best]),
        rules=lines,
    )


def finite(value: Any) -> Any:
    """Return the value with None in place of each number that is not finite."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
