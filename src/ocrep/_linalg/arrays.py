"""The few kernels where array libraries differ; all other code is written against the array API standard.

Rows may be arrays of NumPy, torch, CuPy or JAX, on the host or on a device, and every result stays where the rows are.
`array_namespace(A)` gives the functions of A's library (https://data-apis.org/array-api). Here is what the standard
leaves out, or what some library does far better in a way of its own:

- conversion to float64, to the host and back to a device,
- rows and columns by their numbers, on the device of the array,
- assignment to rows, which JAX does not have,
- Cholesky's factor, with None in place of the errors that each library raises in its own way,
- B·R⁻¹ by substitution. R⁻¹ itself is never formed: the product with an explicit inverse is not backward stable
  (Higham, Accuracy and Stability of Numerical Algorithms, 2002, chapter 14).
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import (
    array_namespace,
    is_array_api_obj,
    is_jax_namespace,
    is_numpy_array,
    is_numpy_namespace,
    is_torch_namespace,
    to_device,
)
from array_api_compat import device as device_of

# An array of whichever library the user brought: no static type covers them all.
Array: TypeAlias = Any

EPS = float(np.finfo(np.float64).eps)
# Numbers below this, and above its inverse, have squares that float64 cannot hold to full precision.
SMALLEST = 1e-145
# Triangles up to this width are solved by one call of LAPACK.
_NARROW = 128


def as_float64(values: Any) -> Array:
    """Give `values` as a float64 array of its own library; lists and data frames become NumPy arrays."""
    array = values if is_array_api_obj(values) else np.asarray(values, dtype=np.float64)
    xp = array_namespace(array)
    return xp.astype(array, xp.float64, copy=False)


def as_columns(values: Any) -> Array:
    """Numbers as float64, one column if they have one axis."""
    array = as_float64(values)
    return array[:, None] if array.ndim == 1 else array


def take_rows(A: Any, index: Any) -> Any:
    """Rows of an array, on its device, or of a sparse matrix."""
    if not is_array_api_obj(A):
        return A[index]
    xp = array_namespace(A)
    return xp.take(A, xp.asarray(index, device=device_of(A)), axis=0)


def real_part(A: Array) -> Array:
    """The real part of a real or complex array."""
    xp = array_namespace(A)
    return xp.real(A) if A.dtype == xp.complex128 else A


def take_columns(A: Array, columns: Any) -> Array:
    """Entries along the last axis, by a slice or an array of numbers."""
    if isinstance(columns, slice):
        return A[..., columns]
    xp = array_namespace(A)
    return xp.take(A, xp.asarray(columns, device=device_of(A)), axis=-1)


def with_rows(A: Array, rows: slice, values: Array) -> Array:
    """A with other values in some rows; A itself is changed where the library allows it."""
    if is_jax_namespace(array_namespace(A)):
        return A.at[rows].set(values)
    A[rows, ...] = values
    return A


def cholesky(A: Array) -> Array | None:
    """The upper R of A = RᵀR, or None where A is not positive definite to working precision."""
    xp = array_namespace(A)
    try:
        R = xp.linalg.cholesky(A, upper=True)
    except (np.linalg.LinAlgError, RuntimeError):  # the second is torch's
        return None
    return R if bool(xp.all(xp.isfinite(R))) else None


def matmul_each(A: Array, B: Array) -> Array:
    """A @ B for a matrix A (m × k) and a stack B (… × k × q), as one product instead of one per matrix."""
    xp = array_namespace(A)
    if B.ndim == 2:
        return xp.matmul(A, B)
    n, k, q = B.shape
    product = xp.matmul(A, xp.reshape(xp.permute_dims(B, (1, 0, 2)), (k, n * q)))
    return xp.permute_dims(xp.reshape(product, (A.shape[0], n, q)), (1, 0, 2))


def times_inverse(B: Array, R: Array) -> Array:
    """B R⁻¹ for an upper triangular R, by substitution; B is overwritten where the library can."""
    xp = array_namespace(B)
    if is_numpy_namespace(xp):
        _substitute(B, R)
        return B
    if is_torch_namespace(xp):
        return xp.linalg.solve_triangular(R, B, upper=True, left=False)
    return xp.matrix_transpose(xp.linalg.solve(xp.matrix_transpose(R), xp.matrix_transpose(B)))


def _substitute(B: np.ndarray, R: np.ndarray) -> None:
    """B ← B R⁻¹ by halves: [B₁ B₂][R₁ S; 0 R₂]⁻¹ = [X₁  (B₂ − X₁S)R₂⁻¹] with X₁ = B₁R₁⁻¹.

    Nearly all of the work are NumPy's matrix products. SciPy's substitution would do, but it runs on a BLAS of its
    own, whose threads compete with NumPy's, and it holds the interpreter, so that workers wait for each other.
    """
    k = R.shape[0]
    if k <= _NARROW:
        # Rᵀ with rows and columns reversed is upper triangular, and LU of an upper triangle is the triangle itself:
        # so a general solve is plain back substitution here.
        B[...] = np.linalg.solve(R[::-1, ::-1].T, B[:, ::-1].T)[::-1].T
        return
    half = k // 2
    _substitute(B[:, :half], R[:half, :half])
    B[:, half:] -= B[:, :half] @ R[:half, half:]
    _substitute(B[:, half:], R[half:, half:])


def to_host(values: Array) -> np.ndarray:
    """The array as NumPy's, from any device."""
    if isinstance(values, np.ndarray):
        return values
    xp = array_namespace(values)
    # JAX copies from its devices by itself, and shares what it has on the host, which nobody may change.
    return np.array(values) if is_jax_namespace(xp) else np.from_dlpack(to_device(values, _host_of(xp)))


@cache
def _host_of(xp: Any) -> Any:
    """The device of an array library that NumPy can read."""
    info = getattr(xp, "__array_namespace_info__", None)
    # Torch is not asked for its devices: it would warn of some that it no longer has.
    if is_torch_namespace(xp) or info is None or "cpu" in map(str, info().devices()):
        return "cpu"
    return info().default_device()


def to_device_of(X: Any, values: np.ndarray) -> Array:
    """A NumPy array in the library and on the device of X; as it is where X is no array of another library, or None."""
    if is_numpy_array(X) or not is_array_api_obj(X):
        return values
    xp = array_namespace(X)
    if is_jax_namespace(xp):
        return xp.asarray(values, device=device_of(X), copy=True)
    # A copy: DLPack shares memory, and the array may be read-only or be changed by its owner.
    return to_device(xp.from_dlpack(np.array(values)), device_of(X))


__all__ = [
    "EPS",
    "SMALLEST",
    "Array",
    "array_namespace",
    "as_columns",
    "as_float64",
    "cholesky",
    "device_of",
    "matmul_each",
    "real_part",
    "take_columns",
    "take_rows",
    "times_inverse",
    "to_device_of",
    "to_host",
    "with_rows",
]
