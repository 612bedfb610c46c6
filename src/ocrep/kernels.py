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


# Below this width a triangle is solved as a general matrix: the wasted work is small, and no library lacks that.
_NARROW = 32


def times_inverse(B: Array, R: Array) -> Array:
    """B R⁻¹ for an upper triangular R, by substitution.

    SciPy has this, but on a second BLAS, whose threads fight with NumPy's; so the triangle is halved until it is
    narrow, and all the rest are matrix products.
    """
    xp = array_namespace(B)
    if is_torch_namespace(xp):
        return xp.linalg.solve_triangular(R, B, upper=True, left=False)
    Y = xp.asarray(B, copy=True)
    _solve_halves(Y, R)
    return Y


def _solve_halves(Y: Array, R: Array) -> None:
    xp = array_namespace(Y)
    k = R.shape[0]
    if k <= _NARROW:
        Y[...] = xp.matrix_transpose(xp.linalg.solve(xp.matrix_transpose(R), xp.matrix_transpose(Y)))
        return
    half = k // 2
    _solve_halves(Y[:, :half], R[:half, :half])
    Y[:, half:] -= xp.matmul(Y[:, :half], R[:half, half:])
    _solve_halves(Y[:, half:], R[half:, half:])


__all__ = [
    "EPS",
    "SMALLEST",
    "Array",
    "array_namespace",
    "as_float64",
    "cholesky",
    "device_of",
    "overwritten",
    "take_rows",
    "times_inverse",
    "triangle",
]
