"""Is the model good: its scores on held-out rows next to those of simple models, and predictions to look at."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import roc_auc_score, roc_curve

from ocrep._documentation import shown_in_short
from ocrep._rows.block import on_device
from ocrep.analysis.assessment import NETWORK, Advice, Assessment, assess, assess_alone
from ocrep.estimators.base import ClosedForm
from ocrep.report.verdict import Finding
from ocrep.report.wording import percent, readable

MOST_SHOWN = 1000
"""The most held-out rows whose predictions are drawn."""
MOST_CURVES = 6
MOST_POINTS = 200
"""The most points of an ROC curve."""


@dataclass(frozen=True, slots=True, repr=False)
class Goodness:
    """Scores on held-out rows, predictions to look at, and what to change.

    Parameters
    ----------
    finding : Finding
        The answer in words.
    n_test : int
        Number of held-out rows.
    models : dict of str to dict
        The scores by model: the network, a constant, a linear model and gradient boosting.
    advice : list of Advice
        What seems wrong, and what to change.
    true, predicted : list of float
        Targets and predictions of at most 1,000 held-out rows of a regression.
    classes : list of str
        The labels of a classification.
    confusion : list of list of int
        Held-out rows by true class, then by predicted class.
    roc : list of dict
        The ROC curves of at most six classes: label, area, false_positive and true_positive.
    """

    finding: Finding = field(repr=False)
    n_test: int
    models: dict[str, dict[str, float]]
    advice: list[Advice] = field(repr=False)
    true: list[float] = field(default_factory=list, repr=False)
    predicted: list[float] = field(default_factory=list, repr=False)
    classes: list[str] = field(default_factory=list, repr=False)
    confusion: list[list[int]] = field(default_factory=list, repr=False)
    roc: list[dict[str, Any]] = field(default_factory=list, repr=False)

    __repr__ = shown_in_short


def goodness(
    model: ClosedForm, X: Any, y: Any, X_test: Any, y_test: Any, assessed: Assessment | None = None
) -> Goodness | None:
    """Assess a fitted model, unless that is done; None for rows on a device and for several targets.

    Without the training rows, X and y, it is compared with the best constant for the test rows alone.
    """
    if on_device(X_test) or np.ndim(y_test) > 1:
        return None
    # The simple models need arrays, in which columns have no names: the model must not miss them either.
    bare = copy(model)
    bare.__dict__.pop("feature_names_in_", None)
    X_test, y_test = _array(X_test), np.asarray(y_test)
    if assessed is not None:
        found = assessed
    elif X is None:
        found = assess_alone(bare, X_test, y_test)
    else:
        found = assess(bare, _array(X), y, X_test, y_test, boosting=True)
    if found.task == "regression":
        shown = np.arange(len(y_test))
        if len(y_test) > MOST_SHOWN:
            shown = np.sort(np.random.default_rng(0).choice(len(y_test), MOST_SHOWN, replace=False))
        pictures: dict[str, Any] = {
            "true": y_test[shown].astype(float).tolist(),
            "predicted": np.asarray(bare.predict(X_test[shown]), dtype=float).tolist(),
        }
    else:
        roc = roc_curves(bare, X_test, y_test)
        own = found.models[NETWORK]
        if math.isnan(own["roc_auc"]) and roc:  # without probabilities the outputs rank rows too
            area = float(np.mean([curve["area"] for curve in roc]))
            found = replace(found, models={**found.models, NETWORK: {**own, "roc_auc": area}})
        pictures = {
            "classes": [str(label) for label in found.classes or ()],
            "confusion": [list(row) for row in found.confusion or ()],
            "roc": roc[:MOST_CURVES],
        }
    return Goodness(judged(found), found.n_test, found.models, list(found.advice), **pictures)


def _array(rows: Any) -> Any:
    return rows.tocsr() if sparse.issparse(rows) else np.asarray(rows)


def judged(found: Assessment) -> Finding:
    """The scores in words."""
    labels = found.task == "classification"
    measure = "error" if labels else "rmse"
    errors = {name: scores[measure] for name, scores in found.models.items()}
    scores = found.models[NETWORK]
    error = errors[NETWORK]
    verdict = found.verdict
    write = percent if labels else readable
    kind = "share of misclassified rows" if labels else "RMSE"
    others = ", ".join(f"{name} {write(errors[name])}" for name in errors if name != NETWORK)
    score = f"balanced accuracy {scores['balanced_accuracy']:.3f}" if labels else f"R² {scores['r2']:.3f}"
    detail = f"The {kind} on {found.n_test:,} held-out rows is {write(error)} ({score}). For comparison: {others}."
    return Finding("goodness", verdict.code, verdict.level, "Is it good?", verdict.answer, detail)


def roc_curves(model: ClosedForm, X: Any, y: np.ndarray) -> list[dict[str, Any]]:
    """One curve for two classes, else one per class against all others, the most frequent first.

    There is none of a classifier that only names classes.
    """
    if not hasattr(model, "predict_proba") and not hasattr(model, "decision_function"):
        return []
    scores = model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)
    scores = np.asarray(scores)
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    counts = [int(np.sum(y == label)) for label in model.classes_]
    both = [k for k, count in enumerate(counts) if 0 < count < len(y)]  # a curve needs rows of the class, and others
    chosen = both[1:] if len(model.classes_) == 2 else sorted(both, key=lambda k: -counts[k])
    curves = []
    for k in chosen:
        own = y == model.classes_[k]
        false_positive, true_positive, _ = roc_curve(own, scores[:, k])
        some = np.unique(np.linspace(0, len(false_positive) - 1, MOST_POINTS).round().astype(int))
        curves.append(
            {
                "label": str(model.classes_[k]),
                "area": float(roc_auc_score(own, scores[:, k])),
                "false_positive": false_positive[some].tolist(),
                "true_positive": true_positive[some].tolist(),
            }
        )
    return curves
