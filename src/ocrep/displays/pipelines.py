"""What displays take from a Pipeline: its last step, and rows as the steps before it make them."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted


def network_of(model: Any) -> Any:
    """The estimator that is drawn: the last step of a Pipeline, or the model itself."""
    return model[-1] if isinstance(model, Pipeline) else model


def rows_for(model: Any, X: Any, y: Any = None) -> Any:
    """Rows as the network in a Pipeline sees them; steps that are not fitted are fitted to X, y, as copies."""
    if X is None or not isinstance(model, Pipeline) or len(model) == 1:
        return X
    before = model[:-1]
    try:
        check_is_fitted(before)
    except NotFittedError:
        return clone(before).fit_transform(X, y)
    return before.transform(X)
