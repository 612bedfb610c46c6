"""Tables from one factorisation: all rules side by side, and all hidden sizes side by side (needs pandas)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ocrep import rules as all_rules
from ocrep._choices import pick
from ocrep._features.random_layer import RandomLayer
from ocrep._linalg.arrays import Array
from ocrep._linalg.folds import plan_of
from ocrep._linalg.leave_one_out import Rows
from ocrep._training.hidden_size import at_size
from ocrep.estimators.pinv import PinvClassifier, PinvRegressor, TikhonovClassifier, TikhonovRegressor
from ocrep.rules.cross_validation import mean_squared_error, misclassified, same_class

MANY_LABELS = 20

if TYPE_CHECKING:
    import pandas as pd


def compare_rules(
    X: Any,
    y: Any,
    *,
    n_hidden: int | None = 200,
    rules: Iterable[Any] | None = None,
    test: tuple[Any, Any] | None = None,
    n_folds: int = 3,
    task: str = "auto",
    sample_weight: Any = None,
    **options: Any,
) -> pd.DataFrame:
    """Compare rules for γ on one network, for the price of one fit.

    Parameters
    ----------
    X, y : array-like
        Training rows.
    n_hidden : int or None, default=200
        Hidden units; None compares on the features in X themselves.
    rules : iterable of names, rules or numbers, default=None
        What may be given as `gamma`; all names if None.
    test : pair (X, y), default=None
        Rows to test on.
    n_folds : int, default=3
        Folds of the exact cross-validation; rules that cross-validate must ask for as many.
    task : {"auto", "regression", "classification"}, default="auto"
        "auto" takes text, booleans and few different whole numbers for labels, other numbers for a regression.
    sample_weight : array-like, default=None
        Weights of the training rows.
    **options
        Passed on to the estimator: `random_state`, `activation`, `fit_intercept`, …

    Returns
    -------
    DataFrame
        One row per rule, the best `cv_error` first unless `rules` are given: `rule`, `gamma`, `condition` (μ(H^reg)),
        `dof`, `train_error`, `cv_error` (exact k-fold, of the γ that was chosen on all rows), `test_error`, `edge`
        (where the optimum sits at an end of its search), `floored`, `seconds` to choose γ, and `reason` where a rule
        does not apply. Errors are RMSE, or the share of misclassified rows; class weights play no part in them.
    """
    pandas = _pandas()
    model = _estimator(y, task, n_hidden, options, store_folds=n_folds).fit(X, y, sample_weight=sample_weight)
    trained, plain = (model.rows(X, y, sample_weight, as_trained=as_trained) for as_trained in (True, False))
    asked = all_rules.names() if rules is None else [rules] if isinstance(rules, str) else rules
    table = [_apply(model, rule, trained) for rule in asked]
    chosen = [line for line in table if "gamma" in line]
    if chosen:
        gammas = np.array([line["gamma"] for line in chosen])
        errors = {"train_error": _errors(model, plain, gammas), "cv_error": _cv_errors(model, plain, gammas)}
        if test is not None:
            errors["test_error"] = _errors(model, _test_rows(model, test), gammas)
        for name, values in errors.items():
            for line, value in zip(chosen, values, strict=True):
                line[name] = float(value)
    columns = [
        "rule",
        "gamma",
        "condition",
        "dof",
        "train_error",
        "cv_error",
        *([] if test is None else ["test_error"]),
    ]
    frame = pandas.DataFrame(table, columns=[*columns, "edge", "floored", "seconds", "reason"])
    return frame if rules is not None else frame.sort_values("cv_error", ignore_index=True)


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
    """Errors, γ and condition numbers for many hidden sizes, from one factor.

    The first m units of a layer of M are the layer of m for the same seed, and their factor is the leading block
    of R, so each row of the table equals a fit of that size.

    Parameters
    ----------
    X, y : array-like
        Training rows.
    sizes : sequence of int, default=None
        Hidden sizes; 1, 2, …, 300 if None.
    gamma : name, rule or number, default="ocrep"
        Any rule that needs no rows.
    test : pair (X, y), default=None
        Rows to test on.
    n_folds : int or None, default=None
        Folds of the exact cross-validation: those of the rule, or three, if None; 0 leaves it out.
    task, sample_weight, **options
        As in `compare_rules`.

    Returns
    -------
    DataFrame
        One row per size: `n_hidden`, `gamma`, `condition`, `regularized_condition`, `cv_error` (RMSE of the coded
        targets; a rule that needs no folds chooses anew on each training part), `test_error` (RMSE, or the share of
        misclassified rows), and `reason` where the rule cannot judge a size.
    """
    pandas = _pandas()
    rule = all_rules.resolve(gamma)
    if rule.needs == "rows":
        raise all_rules.NotApplicable(
            f"A path over hidden sizes reads no rows, and {rule.name!r} needs them: use 'kfold'."
        )
    chosen = _checked_sizes(range(1, 301) if sizes is None else sizes)
    folds = (rule.folds or 3) if n_folds is None else n_folds
    if rule.folds is not None and plan_of(folds) != rule.folds:
        raise ValueError(f"The rule asks for {rule.folds}, and n_folds={n_folds} for another: leave n_folds out.")
    model = _estimator(y, task, chosen[-1], options, store_folds=folds)
    RandomLayer(weight_init=model.weight_init, weight_scale=model.weight_scale).refuse_unnested()
    model.fit(X, y, sample_weight=sample_weight)
    test_rows = None if test is None else _test_rows(model, test)
    table = [_size_line(model, rule, n_hidden, chosen[-1], test_rows) for n_hidden in chosen]
    columns = ["n_hidden", "gamma", "condition", "regularized_condition", "cv_error", "test_error", "reason"]
    return pandas.DataFrame(table, columns=columns)


def _size_line(model: Any, rule: Any, n_hidden: int, largest: int, test_rows: Rows | None) -> dict[str, Any]:
    """One line of the path."""
    n_fixed = model.factor_.n_features - largest
    try:
        size = at_size(model.factor_, model.folds_, rule, n_hidden, n_fixed)
    except all_rules.NotApplicable as reason:
        return {"n_hidden": n_hidden, "reason": str(reason)}
    line = {
        "n_hidden": n_hidden,
        "gamma": size.gamma,
        "condition": size.condition,
        "regularized_condition": size.regularized_condition,
        "cv_error": None if size.cv_error is None else size.cv_error**0.5,
    }
    if test_rows is not None:
        solution = size.spectrum.weights([size.gamma]), size.spectrum.intercept([size.gamma])
        line["test_error"] = float(row_errors(test_rows, *solution)[0])
    return line


def _checked_sizes(sizes: Any) -> list[int]:
    values = np.ravel(np.asarray(list(sizes) if isinstance(sizes, Iterable) else sizes))
    if not values.size or values.dtype.kind not in "iu" or values.min() < 1:
        raise ValueError("sizes needs at least one number, all of them whole and ≥ 1.")
    return sorted({int(size) for size in values})


def _test_rows(model: Any, test: Any) -> Rows:
    if not (isinstance(test, tuple | list) and len(test) == 2):
        raise ValueError("test must be a pair (X, y).")
    return model.rows(*test, as_trained=False)


def _estimator(y: Any, task: str, n_hidden: int | None, options: dict[str, Any], *, store_folds: Any) -> Any:
    for taken in {"gamma", "store_folds", "calibrate"} & set(options):
        raise ValueError(f"{taken}= has no place here: rules and folds are given by the function's own arguments.")
    if task == "auto":
        values = np.asarray(y)
        task = "regression" if values.dtype.kind == "f" else "classification"
        if values.dtype.kind in "iu" and len(np.unique(values)) > MANY_LABELS:
            raise ValueError(
                f"y holds more than {MANY_LABELS} different whole numbers, labels or counts: say task='regression' or "
                "task='classification'."
            )
    estimators = {
        "regression": (PinvRegressor, TikhonovRegressor),
        "classification": (PinvClassifier, TikhonovClassifier),
    }
    network, own_features = pick("task", task, estimators, also=", or 'auto'")
    fixed = {"gamma": "none", "store_folds": store_folds, **options}
    return own_features(**fixed) if n_hidden is None else network(n_hidden, **fixed)


def _apply(model: Any, rule: Any, rows: Rows) -> dict[str, Any]:
    """One line of the table: a rule's choice, or why it has none."""
    name = rule if isinstance(rule, str) else repr(rule)
    start = perf_counter()
    try:
        choice = all_rules.resolve(rule).choose(model.spectrum_, folds=model.folds_, rows=rows)
    except all_rules.NotApplicable as reason:
        return {"rule": name, "reason": str(reason)}
    return {
        "rule": name,
        "gamma": choice.gamma,
        "edge": choice.edge,
        "floored": choice.floored,
        "condition": float(model.spectrum_.condition(choice.gamma)),
        "dof": float(model.spectrum_.dof(choice.gamma)),
        "seconds": perf_counter() - start,
    }


def _cv_errors(model: Any, rows: Rows, gammas: np.ndarray) -> np.ndarray:
    if model.folds_ is None or not model.folds_.usable:
        return np.full(len(gammas), np.nan)
    return (
        misclassified(model.folds_, rows, gammas) if rows.labels else np.sqrt(mean_squared_error(model.folds_, gammas))
    )


def _errors(model: Any, rows: Rows, gammas: np.ndarray) -> np.ndarray:
    return row_errors(rows, model.spectrum_.weights(gammas), model.spectrum_.intercept(gammas))


def row_errors(rows: Rows, weights: Array, intercept: Array) -> np.ndarray:
    """RMSE, or the share of misclassified rows, for weights (γ × M × Q), in one pass over the rows."""
    total, count = np.zeros(len(weights)), 0.0
    for H, T, weight in rows.blocks():
        w = np.ones(len(H)) if weight is None else weight
        outputs = H[:, : weights.shape[1]] @ weights + intercept[:, None, :]
        lost = ~same_class(outputs, T) if rows.labels else ((outputs - T) ** 2).mean(axis=2)
        total, count = total + lost @ w, count + w.sum()
    return total / count if rows.labels else np.sqrt(total / count)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as exc:
        raise ImportError("Tables need pandas: install ocrep[data].") from exc
    return pandas
