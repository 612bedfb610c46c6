"""The few kernels where array libraries differ; all other code is plain array API."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from array_api_compat import (
    array_namespace,
    is_array_api_obj,
    is_numpy_namespace,
    is_torch_namespace,
)
from array_api_compat import device as device_of

# An array of whichever library the user brought: no static type covers them all.
Array: TypeAlias = Any

EPS = float(np.finfo(np.float64).eps)
# Numbers below this, and above its inverse, have squares that float64 cannot hold to full precision.
SMALLEST = 1e-145


def as_float64(values: Any) -> Array:
    """Give `values` as a float64 array of its own library; lists and data frames become NumPy arrays."""
    array = values if is_array_api_obj(values) else np.asarray(values, dtype=np.float64)
    xp = array_namespace(array)
    return xp.astype(array, xp.float64, copy=False)


def take_rows(A: Array, index: np.ndarray) -> Array:
    """Rows of A by a host index, on A's device."""
    xp = array_namespace(A)
    return xp.take(A, xp.asarray(index, device=device_of(A)), axis=0)


def triangle(A: Array) -> Array:
    """R of A = QR: min(A.shape) rows, upper trapezoidal, by Householder reflections.

    The array API only knows `qr` with Q; NumPy and torch can leave Q out, which halves the work.
    """
    xp = array_namespace(A)
    if A.shape[0] == 0:
        return A
    if is_numpy_namespace(xp):
        return np.linalg.qr(A, mode="r")
    if is_torch_namespace(xp):
        return xp.linalg.qr(A, mode="r")[1]
    return xp.linalg.qr(A, mode="reduced")[1]


__all__ = ["EPS", "SMALLEST", "Array", "array_namespace", "as_float64", "device_of", "take_rows", "triangle"]
