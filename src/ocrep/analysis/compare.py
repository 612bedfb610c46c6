"""Tables from one factorization (they need pandas): all rules on one network, and all hidden sizes under one rule.

`compare_rules` fits once with γ = 0 and stored folds. Every rule then reads the same spectrum, folds or rows, and the
errors of all of them come from one evaluation (`Evaluator`). `hidden_size_path` fits the largest network once: the
factor of its first m units is the leading block of R, so each size costs one SVD of a smaller triangle, and only test
rows are read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ocrep._errors import pick
from ocrep._layers.random_layer import RandomLayer, check_nested
from ocrep._linalg.folds import FoldPlan
from ocrep._rows.checks import MANY_LABELS
from ocrep._training.recipe import plan_of
from ocrep.analysis.evaluator import Evaluator, rules_to_compare
from ocrep.estimators import PinvClassifier, PinvRegressor, TikhonovClassifier, TikhonovRegressor
from ocrep.estimators.base import ClosedForm, fit_silently
from ocrep.rules import NotApplicable, Rule, resolve
from ocrep.rules.cross_validation import cv_error_of

if TYPE_CHECKING:
    import pandas as pd


def compare_rules(
    X: Any,
    y: Any,
    *,
    n_hidden: int | None = 500,
    rules: Iterable[Any] | None = None,
    test: tuple[Any, Any] | None = None,
    n_folds: int = 3,
    task: str = "auto",
    sample_weight: Any = None,
    details: bool = False,
    **options: Any,
) -> pd.DataFrame:
    """Compare rules for γ on one network, which is factored once.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Inputs of the training rows.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Targets of the training rows: numbers for a regression, labels for a classification.
    n_hidden : int or None, default=500
        Number of hidden units. None compares the rules on the features in X, without a hidden layer.
    rules : iterable of str, Rule or float, default=None
        Values for the parameter `gamma`; None compares all names in `ocrep.rules.names()`.
    test : tuple (X, y), default=None
        Rows for the test error.
    n_folds : int, default=3
        Number of folds of the exact cross-validation. A rule that cross-validates with another number does not apply.
    task : {"auto", "regression", "classification"}, default="auto"
        "auto": a regression if y holds floating-point numbers; a classification for text, booleans and few integers.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the training rows.
    details : bool, default=False
        Whether to add the columns that do not fit a terminal of 80 characters.
    **options
        Further parameters of the estimator: of `PinvRegressor` or `PinvClassifier` (`activation`, `weight_init`,
        `weight_scale`, `input_scaling`, `direct_link`, `fit_intercept`, `solver`, `random_state`, `class_weight`), or
        of `TikhonovRegressor` or `TikhonovClassifier` if `n_hidden` is None.

    Returns
    -------
    DataFrame
        One row per rule, by its name, in the order of `rules`, or by increasing `cv_error` if `rules` is None. Columns:
        `gamma` (NaN if the rule does not apply), `cv_error` (exact k-fold, at the γ chosen on all rows), `test_error`
        (if `test` is given) and `condition` (μ(H^reg)). With `details` also `train_error`, `dof` (effective degrees of
        freedom), `edge` (the end of the search range at which the optimum lies), `floored` (whether the precision floor
        decided), `seconds` (time to choose γ), and `reason` (why a rule does not apply). Errors are RMSE, or the share
        of misclassified rows; class weights do not affect them.

    See Also
    --------
    hidden_size_path : The same for many hidden sizes under one rule.
    ocrep.report.diagnose : All of this, and a verdict, for an interactive page.

    Examples
    --------
    >>> from ocrep import compare_rules
    >>> from ocrep.datasets import load
    >>> X, y = load("housing", return_X_y=True)
    >>> table = compare_rules(X, y, n_hidden=50, rules=["ocrep", "gcv", 0.1], random_state=0)
    >>> list(table.index), list(table.columns)
    (['ocrep', 'gcv', '0.1'], ['gamma', 'cv_error', 'condition'])
    """
    pandas = _pandas()
    model = _estimator(y, task, n_hidden, options, store_folds=n_folds).fit(X, y, sample_weight=sample_weight)
    evaluator = Evaluator.of(model, (X, y, sample_weight), test=_checked_test(test))
    table = [_rule_line(evaluator, rule) for rule in rules_to_compare(rules)]
    chosen = [line for line in table if "gamma" in line]
    gammas = np.array([line["gamma"] for line in chosen])
    errors = {"cv_error": evaluator.cv_errors}
    if test is not None:
        errors["test_error"] = evaluator.test_errors
    if details:
        errors["train_error"] = evaluator.training_errors
    for name, error in errors.items() if chosen else ():
        for line, value in zip(chosen, error(gammas), strict=True):
            line[name] = float(value)
    columns = ["gamma", "cv_error", *(["test_error"] if test is not None else []), "condition"]
    columns += ["train_error", "dof", "edge", "floored", "seconds", "reason"] if details else []
    frame = pandas.DataFrame(table, columns=["rule", *columns]).set_index("rule")
    return frame if rules is not None else frame.sort_values("cv_error")


def hidden_size_path(
    X: Any,
    y: Any,
    *,
    sizes: Sequence[int] | None = None,
    gamma: Any = "ocrep",
    test: tuple[Any, Any] | None = None,
    n_folds: int | None = None,
    task: str = "auto",
    sample_weight: Any = None,
    **options: Any,
) -> pd.DataFrame:
    """Compute errors, γ and condition numbers for many hidden sizes, from one factor.

    With the same seed, the first m units of a layer of M units are the layer of m units, and their factor is the
    leading block of R. Each row of the table therefore equals a fit of that size.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Inputs of the training rows.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Targets of the training rows: numbers for a regression, labels for a classification.
    sizes : sequence of int, default=None
        Numbers of hidden units; None stands for 1, 2, …, 300.
    gamma : str, Rule or float, default="ocrep"
        A rule's name, a rule object, or a number ≥ 0. Rules that read the rows, such as "loo", are not possible.
    test : tuple (X, y), default=None
        Rows for the test error.
    n_folds : int or None, default=None
        Number of folds of the exact cross-validation. None takes the number of the rule, or three if the rule
        does not cross-validate; 0 omits the cross-validation.
    task : {"auto", "regression", "classification"}, default="auto"
        "auto": a regression if y holds floating-point numbers; a classification for text, booleans and few integers.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the training rows.
    **options
        Further parameters of `PinvRegressor` or `PinvClassifier`: `activation`, `weight_init`, `weight_scale`,
        `input_scaling`, `direct_link`, `fit_intercept`, `solver`, `random_state`, `class_weight`.

    Returns
    -------
    DataFrame
        One row per size. Columns: `n_hidden`, `gamma`, `condition_number` (μ(H)), `condition` (μ(H^reg)),
        `cv_error` (RMSE of the coded targets; a rule that does not cross-validate chooses γ anew on each training
        part), `test_error` (RMSE, or the share of misclassified rows), and `reason` (why the rule does not apply at
        a size).

    See Also
    --------
    compare_rules : All rules for γ at one hidden size.

    Examples
    --------
    >>> from ocrep import hidden_size_path
    >>> from ocrep.datasets import load
    >>> X, y = load("housing", return_X_y=True)
    >>> list(hidden_size_path(X, y, sizes=[10, 20, 40], random_state=0)["n_hidden"])
    [10, 20, 40]
    """
    pandas = _pandas()
    rule = resolve(gamma)
    if rule.reads == "rows":
        raise NotApplicable(
            f"gamma={gamma!r} reads the rows once more, and a path over hidden sizes reads only factors: use 'kfold'."
        )
    chosen = _checked_sizes(range(1, 301) if sizes is None else sizes)
    if n_folds is not None and rule.folds == FoldPlan():  # a rule by its name takes the number of folds
        rule = rule.with_folds(FoldPlan(n_folds))
    if rule.folds is not None and n_folds is not None and plan_of(n_folds) != rule.folds:
        raise ValueError(f"n_folds={n_folds}, but the rule {rule.name!r} asks for {rule.folds}: leave n_folds out.")
    check_nested(RandomLayer(**{name: options[name] for name in ("weight_init", "weight_scale") if name in options}))
    # A rule that cross-validates makes fit compute the folds of its own plan.
    folds = {"gamma": rule} if rule.folds is not None else {"store_folds": 3 if n_folds is None else n_folds}
    model = _estimator(y, task, chosen[-1], options, **folds)
    fit_silently(model, X, y, sample_weight)
    evaluator = Evaluator.of(model, test=_checked_test(test))
    n_fixed = model.factor_.n_features - chosen[-1]
    table = [{"n_hidden": m, **_size_line(evaluator.leading(n_fixed + m), rule)} for m in chosen]
    columns = ["n_hidden", "gamma", "condition_number", "condition", "cv_error", "test_error", "reason"]
    return pandas.DataFrame(table, columns=columns)


def _rule_line(evaluator: Evaluator, rule: Any) -> dict[str, Any]:
    """One line of the table of rules, without the errors."""
    start = perf_counter()
    found = evaluator.apply(rule)
    seconds = perf_counter() - start
    if found.gamma is None:
        return {"rule": found.rule, "reason": found.reason}
    return {
        "rule": found.rule,
        "gamma": found.gamma,
        "edge": found.edge,
        "floored": found.floored,
        "condition": float(evaluator.spectrum.condition(found.gamma)),
        "dof": float(evaluator.spectrum.dof(found.gamma)),
        "seconds": seconds,
    }


def _size_line(size: Evaluator, rule: Rule) -> dict[str, Any]:
    """One line of the path."""
    try:
        gamma = size.choose(rule).gamma
        cv_error = None if size.folds is None else cv_error_of(rule, size.folds, gamma) ** 0.5
    except NotApplicable as reason:
        return {"reason": str(reason)}
    return {
        "gamma": gamma,
        "cv_error": cv_error,
        "test_error": None if size.test is None else float(size.test_errors(np.array([gamma]))[0]),
        "condition_number": float(size.spectrum.condition()),
        "condition": float(size.spectrum.condition(gamma)),
    }


def _checked_sizes(sizes: Any) -> list[int]:
    values = np.ravel(np.asarray(list(sizes) if isinstance(sizes, Iterable) else sizes))
    if not values.size or values.dtype.kind not in "iu" or values.min() < 1:
        raise ValueError(f"sizes={sizes!r} must hold at least one number, all of them whole and ≥ 1.")
    return sorted({int(size) for size in values})


def _checked_test(test: tuple[Any, Any] | None) -> tuple[Any, Any] | None:
    if test is not None and not (isinstance(test, tuple | list) and len(test) == 2):
        raise ValueError(f"test must be a pair (X, y), not {type(test).__name__}.")
    return test


def _estimator(y: Any, task: str, n_hidden: int | None, options: dict[str, Any], **own: Any) -> ClosedForm:
    for taken in {"gamma", "store_folds", "calibrate"} & set(options):
        raise ValueError(f"{taken}= cannot be set here: this function compares rules with folds of its own.")
    if task == "auto":
        values = np.asarray(y)
        task = "regression" if values.dtype.kind == "f" else "classification"
        if values.dtype.kind in "iu" and len(np.unique(values)) > MANY_LABELS:
            raise ValueError(
                f"y holds more than {MANY_LABELS} different integers, which may be labels or counts: "
                "say task='regression' or task='classification'."
            )
    tasks = {"regression": (PinvRegressor, TikhonovRegressor), "classification": (PinvClassifier, TikhonovClassifier)}
    network, own_features = pick("task", task, tasks, also=", or 'auto'")
    parameters = {"gamma": "none", **own, **options}
    return own_features(**parameters) if n_hidden is None else network(n_hidden, **parameters)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as exc:
        raise ImportError('Tables need pandas: pip install "ocrep[data]".') from exc
    return pandas
