"""Rows that lie on another device or in another array library: checked without NumPy, left where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj, is_numpy_array

from ocrep._linalg.arrays import Array, array_namespace, device_of


def lies_elsewhere(X: Any) -> bool:
    """Whether X is an array of another library than NumPy, so that scikit-learn's own checks would fetch it."""
    if is_array_api_obj(X):
        return not is_numpy_array(X) and hasattr(array_namespace(X), "float64")
    if hasattr(X, "__cuda_array_interface__"):
        raise TypeError(
            f"X lies on a GPU as a {type(X).__name__}, which is no array of torch or CuPy: install torch and give "
            "torch.as_tensor(X), or copy X to the host as a NumPy array."
        )
    return False


def check_inputs(estimator: Any, X: Array, *, reset: bool) -> Array:
    """Check n × n_features_in_ finite numbers of float32 or float64; whole numbers become float64."""
    xp = array_namespace(X)
    X = _as_real(X, "X")
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: give rows × features.")
    if 0 in X.shape:
        raise ValueError(f"Found array with {X.shape[0]} sample(s) and {X.shape[1]} feature(s): at least 1 is needed.")
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError("Input X contains NaN or infinity: remove or impute such rows.")
    if reset:
        estimator.n_features_in_ = X.shape[1]
        estimator.__dict__.pop("feature_names_in_", None)
    elif estimator.n_features_in_ != X.shape[1]:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return X


def check_targets(y: Any, X: Array, *, labels: bool) -> Array:
    """Check that the targets lie beside X, one row each: finite numbers, or whole numbers as labels."""
    refuse_elsewhere("y", y, X)
    xp = array_namespace(X)
    y = _as_real(y, "y")
    if y.ndim not in ((1,) if labels else (1, 2)) or y.shape[0] != X.shape[0]:
        raise ValueError(f"y must have one entry per row of X: got shapes {X.shape} and {y.shape}.")
    if not bool(xp.all(xp.isfinite(y))):
        raise ValueError("Input y contains NaN or infinity: remove such rows.")
    if not labels:
        return y
    if not bool(xp.all(y == xp.floor(y))):
        raise ValueError("y holds numbers that are not whole: labels on a device must be whole numbers.")
    return xp.astype(y, xp.int64)


def check_weights_beside(sample_weight: Any, X: Array) -> Array | None:
    """Give weights as float64 beside X: finite, ≥ 0 and not all zero; a number stands for each row's weight."""
    if sample_weight is None:
        return None
    xp = array_namespace(X)
    if isinstance(sample_weight, int | float):
        sample_weight = xp.full((X.shape[0],), float(sample_weight), dtype=xp.float64, device=device_of(X))
    refuse_elsewhere("sample_weight", sample_weight, X)
    weight = xp.astype(sample_weight, xp.float64)
    if weight.shape != (X.shape[0],):
        raise ValueError(f"sample_weight must have one entry per row, shape ({X.shape[0]},); got {weight.shape}.")
    if not bool(xp.all((weight >= 0.0) & xp.isfinite(weight))):
        raise ValueError("sample_weight holds negative, NaN or infinite entries: weights must be finite and ≥ 0.")
    if not bool(xp.any(weight > 0.0)):
        raise ValueError("All sample weights are zero: at least one row must count.")
    return weight


def range_beside(X: Array, weight: Array | None) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value of each input among rows of positive weight, on the host."""
    xp = array_namespace(X)
    if weight is not None:
        X = xp.take(X, xp.nonzero(weight > 0.0)[0], axis=0)
    return to_host(xp.min(X, axis=0)), to_host(xp.max(X, axis=0))


def distinct_labels(y: Array) -> np.ndarray:
    """The labels that occur, in order, on the host."""
    return np.sort(np.asarray([int(label) for label in array_namespace(y).unique_values(y)], dtype=np.int64))


def codes_of(y: Array, classes: np.ndarray) -> tuple[Array, np.ndarray]:
    """The place of each label among the classes, and the labels that are not among them."""
    xp = array_namespace(y)
    known = beside(classes, y)
    codes = xp.searchsorted(known, y)
    codes = xp.where(codes < known.shape[0], codes, xp.zeros_like(codes))
    return codes, distinct_labels(y[xp.take(known, codes, axis=0) != y])


def label_totals(codes: Array, weight: Array | None, n_classes: int) -> np.ndarray:
    """The weight of the rows of each class, on the host."""
    xp = array_namespace(codes)
    weight = xp.ones(codes.shape, dtype=xp.float64, device=device_of(codes)) if weight is None else weight
    return np.asarray([float(xp.sum(weight[codes == code])) for code in range(n_classes)])


def to_host(values: Array) -> np.ndarray:
    """A few numbers as float64 of NumPy, from any device."""
    return np.asarray([float(value) for value in values], dtype=np.float64)


def beside(values: Any, X: Array) -> Array:
    """A small NumPy array in the library and on the device of X."""
    if is_numpy_array(X) or not is_array_api_obj(X):
        return values
    xp = array_namespace(X)
    return xp.asarray(np.asarray(values).tolist(), dtype=_kind_of(values, xp), device=device_of(X))


def refuse_elsewhere(name: str, values: Any, X: Array) -> None:
    """Raise unless `values` lie beside X: same library, same device."""
    here = is_array_api_obj(values) and array_namespace(values) == array_namespace(X)
    if not here or device_of(values) != device_of(X):
        where = f"on {device_of(values)}" if here else f"a {type(values).__module__}.{type(values).__name__}"
        mine = f"a {type(X).__module__}.{type(X).__name__} on {device_of(X)}"
        raise ValueError(f"X is {mine}, but {name} is {where}: move it beside X.")


def _as_real(values: Array, name: str) -> Array:
    """Whole numbers as float64; refuse float16, whose eleven bits no answer here could honour, and complex."""
    xp = array_namespace(values)
    if xp.isdtype(values.dtype, ("bool", "integral")):
        return xp.astype(values, xp.float64)
    if values.dtype not in (xp.float32, xp.float64):
        raise ValueError(f"{name} has dtype {values.dtype}: convert it to float32 or float64.")
    return values


def _kind_of(values: Any, xp: Any) -> Any:
    return xp.float64 if np.asarray(values).dtype.kind == "f" else xp.int64
