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
from scipy.linalg.blas import dsyrk, dtrsm

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


def overwritten(function: str, Z: Array, *others: Array) -> Array:
    """function(Z, …) of each entry, in the memory of Z where the library can: new memory costs more than a tanh."""
    xp = array_namespace(Z)
    if is_numpy_namespace(xp) or is_torch_namespace(xp):
        return getattr(xp, function)(Z, *others, out=Z)
    return getattr(xp, function)(Z, *others)


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


def cholesky(A: Array) -> Array | None:
    """The upper R of A = RᵀR, or None where A is not positive definite to working precision."""
    xp = array_namespace(A)
    try:
        R = xp.linalg.cholesky(A, upper=True)
    except (np.linalg.LinAlgError, RuntimeError):  # the second is torch's
        return None
    return R if bool(xp.all(xp.isfinite(R))) else None


def times_inverse(B: Array, R: Array) -> Array:
    """B R⁻¹ for an upper triangular R, by substitution; B is overwritten where the library can."""
    xp = array_namespace(B)
    if is_numpy_namespace(xp):
        return dtrsm(1.0, R.T, B.T, lower=1, overwrite_b=1).T
    if is_torch_namespace(xp):
        return xp.linalg.solve_triangular(R, B, upper=True, left=False)
    return xp.matrix_transpose(xp.linalg.solve(xp.matrix_transpose(R), xp.matrix_transpose(B)))


def add_gram(G: Array, Y: Array) -> Array:
    """G + YᵀY; of NumPy's G only the lower triangle, in place.

    For the pass that also divides by R: SciPy's wheel brings a BLAS of its own, whose threads fight with those of
    NumPy's, so that both steps had better use the same.
    """
    xp = array_namespace(Y)
    if is_numpy_namespace(xp):
        return dsyrk(1.0, Y.T, beta=1.0, c=G.T, lower=0, overwrite_c=1).T
    G += xp.matmul(xp.matrix_transpose(Y), Y)
    return G


__all__ = [
    "EPS",
    "SMALLEST",
    "Array",
    "add_gram",
    "array_namespace",
    "as_float64",
    "cholesky",
    "device_of",
    "overwritten",
    "take_rows",
    "times_inverse",
    "triangle",
]
