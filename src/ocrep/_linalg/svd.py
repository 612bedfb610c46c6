"""The SVD of small triangles and of matrices wider than tall, and which singular values are rounding noise."""

from __future__ import annotations

from array_api_compat import is_torch_namespace

from ocrep._linalg.arrays import EPS, Array, array_namespace, device_of
from ocrep._linalg.qdwh import SMALL, svd_by_polar
from ocrep._linalg.triangle import column_lengths

FEWEST_COLUMNS = 64


def rank_tolerance(n_columns: int, sigma_1: float) -> float:
    """Singular values up to this size are rounding noise.

    It grows with the columns of R, not with the rows: R carries the same spectrum however many rows
    went into it, and a rank that fell when rows were added would be absurd. Not less than for 64 columns: merging
    block after block leaves about 20·ε·σ₁ in a duplicated column however few there are.
    """
    return max(n_columns, FEWEST_COLUMNS) * EPS * sigma_1


def numerical_rank(sigma: Array, n_columns: int) -> int:
    """How many of the descending singular values lie above the tolerance."""
    xp = array_namespace(sigma)
    tolerance = rank_tolerance(n_columns, float(sigma[0]) if sigma.shape[0] else 0.0)
    return int(xp.sum(xp.astype(sigma > tolerance, xp.int64)))


def svd_and_rank(R: Array, n_columns: int) -> tuple[Array, Array, Array, int]:
    """U, σ (descending), Vᵀ and the numerical rank of a matrix that stands for `n_columns` columns."""
    U, sigma, Vt = svd(R)
    return U, sigma, Vt, numerical_rank(sigma, n_columns)


def svd(R: Array) -> tuple[Array, Array, Array]:
    """U, σ (descending) and Vᵀ of an upper triangle, or of a matrix with fewer rows than columns.

    On a GPU a triangle is decomposed many times faster than anything else, and so other matrices become one first.
    """
    xp = array_namespace(R)
    on_gpu = is_torch_namespace(xp) and R.is_cuda
    if on_gpu and SMALL <= R.shape[0] < R.shape[1]:
        Q, L = xp.linalg.qr(xp.matrix_transpose(R), mode="reduced")
        X, sigma, Ut = svd(L)
        return xp.matrix_transpose(Ut), sigma, xp.matrix_transpose(xp.matmul(Q, X))
    found = svd_by_polar(R) if on_gpu and R.shape[0] == R.shape[1] >= SMALL else None
    return found or xp.linalg.svd(R, full_matrices=False)


def without_constants(C: Array, mean: Array, weight_sum: float) -> Array:
    """Centred columns; those that are constant up to rounding become exactly zero."""
    xp = array_namespace(C)
    varies = are_varying(column_lengths(C), mean, weight_sum)
    return xp.where(varies, C, xp.zeros((), dtype=C.dtype, device=device_of(C)))


def are_varying(lengths: Array, mean: Array, weight_sum: float) -> Array:
    """Which centred columns of these lengths are not constant up to rounding.

    Rounding leaves noise of size ε·|mean|·√Σw in them, and the rank tolerance, relative to σ₁, cannot see that
    when all columns are constant.
    """
    return lengths > 4.0 * EPS * weight_sum**0.5 * array_namespace(mean).abs(mean)
