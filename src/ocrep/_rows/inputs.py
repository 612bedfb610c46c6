"""Inputs without targets, as `transform` and `predict` get them: in memory or on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ocrep._linalg.arrays import Array, array_namespace, device_of
from ocrep._rows.block import Block
from ocrep._rows.checks import check_counts, check_inputs, check_shape, check_weights
from ocrep._rows.device import as_real, beside, host_array, on_device


def checked_inputs(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """Check inputs as scikit-learn does, those on a device without copying them to the host."""
    if not on_device(X):
        return validate_data(estimator, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset)
    X = as_real(X, "X")
    check_shape(X.shape)
    check_counts(X.shape[0], X.shape[0])
    check_inputs(Block(X, None, None))
    if reset:
        estimator.n_features_in_ = X.shape[1]
        estimator.__dict__.pop("feature_names_in_", None)
    elif estimator.n_features_in_ != X.shape[1]:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return X


def checked_weights(sample_weight: Any, X: Any) -> Array | None:
    """Weights as float64 where X is: finite, ≥ 0 and not all zero; a number stands for the weight of each row."""
    if sample_weight is None:
        return None
    weight = as_weights(sample_weight, X)
    checked = check_weights(Block(X, None, weight))
    assert checked is not None
    check_counts(X.shape[0], float(array_namespace(checked).sum(checked)))
    return checked


def as_weights(sample_weight: Any, X: Any) -> Array:
    """One weight per row, in the library and on the device of X."""
    if not on_device(X):
        return (
            np.full(X.shape[0], sample_weight) if np.isscalar(sample_weight) else np.asarray(host_array(sample_weight))
        )
    if isinstance(sample_weight, int | float):
        xp = array_namespace(X)
        return xp.full((X.shape[0],), float(sample_weight), dtype=xp.float64, device=device_of(X))
    return beside("sample_weight", sample_weight, X)
