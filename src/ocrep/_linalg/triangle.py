"""`Triangle`: rows [F | T] reduced by reflections to the triangle of F, QᵀT, and a length per target.

QR by Householder reflections. F = QR with Q orthogonal and R upper triangular. Then ‖t − Fw‖² = ‖Qᵀt − [R; 0]w‖², so R,
the first k entries of Qᵀt and the length of the others say all that least squares with any penalty can ask of the rows.
Q is a product of reflections I − τvvᵀ, each of which makes one column zero below its diagonal. It is never formed:
LAPACK's `geqrf` leaves the v below R, and QᵀT is computed from them in panels of 128, each as three matrix products and
a small solve (the compact WY form I − VSVᵀ: Schreiber, Van Loan, SIAM J. Sci. Stat. Comput. 10, 1989). That is 2nk²
flops for R, and 4nkq for q targets. The computed R is exact for rows that differ from F by about ε of each column's
length (Higham, Accuracy and Stability, 2002, chapter 19), so σ_p is right to ε·κ, where a Gram matrix gives it to
ε·κ²/2.

Cholesky. Where FᵀF is known and squaring is harmless (`gram.py`), the same triangle is `root`: R of FᵀF = RᵀR, RᵀZ =
FᵀT, and the length of what is left of a target, the root of ‖t‖² − ‖z‖². That difference cancels, so it counts only as
far as it exceeds its own rounding error.

SVD and rank. R has the σ and V of F. On the host this is LAPACK's SVD; on a GPU, where that is many times slower, the
polar decomposition by products and QR, which certifies itself. Singular values up to max(M, 64)·ε·σ₁ are rounding noise
(`rank_tolerance`, the only place that says so), and so are centred columns of length up to 4·ε·|mean|·√Σw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import current_thread, main_thread
from typing import TypeAlias

import numpy as np
from array_api_compat import is_torch_namespace
from scipy.linalg import get_lapack_funcs

from ocrep._linalg.arrays import EPS, SMALLEST, Array, array_namespace, cholesky, device_of, times_inverse

# Reflections that are applied to the targets at a time, as one panel I − VSVᵀ.
_PANEL = 128
# The polar iteration ends after six steps from any σ_p/σ₁ ≥ ε; a few more are a safeguard.
_MOST_STEPS = 12
# Above this weight a step through XᵀX would square too large a condition number.
_LARGEST_SOLVED_WEIGHT = 100.0
# Below this size a direct SVD takes no time that matters, on a GPU too.
SMALL = 512
# The rank tolerance is not less than for this many columns: merging block after block leaves about 20·ε·σ₁ in a
# duplicated column however few there are.
FEWEST_COLUMNS = 64

# rss = ‖T‖² − … is not read off a difference smaller than this share of ‖T‖².
RESIDUAL_SHARE = 1e-4

# Features F, as arrays of columns side by side, and targets.
DesignRows: TypeAlias = tuple[tuple[Array, ...], Array]


@dataclass(frozen=True, slots=True, eq=False)
class Triangle:
    """R of F = QR next to QᵀT, and the length of the residual of each target, ‖t − QQᵀt‖.

    Nothing reads the products of the residuals of two targets, so they are not kept: time and memory are linear in
    the number of targets.
    """

    R: Array
    """Upper trapezoidal, with as many rows as features, or as rows if they are fewer."""
    QtT: Array
    """QᵀT, with as many rows as R."""
    left: Array
    """A length for each target."""

    @classmethod
    def of(cls, F: Array, T: Array, *lefts: Array) -> Triangle:
        """Reduce rows [F | T]; `lefts` are lengths of residuals of the same targets over other rows."""
        return cls.of_parts([((F,), T)], *lefts)

    @classmethod
    def of_parts(cls, parts: Sequence[DesignRows], *lefts: Array) -> Triangle:
        """Reduce the rows of several parts, one below the other."""
        xp = array_namespace(parts[0][1])
        with np.errstate(over="ignore", invalid="ignore"):
            R, QtT, rest = _reduced(_stacked([F for F, _ in parts]), _stacked([(T,) for _, T in parts]))
            # Squared lengths add up over rows, so an earlier residual is one more entry of the column.
            left = column_lengths(xp.concat([rest, *(left[None, :] for left in lefts)]))
        _check_sizes(QtT, left)
        return cls(R, QtT, left)

    def times(self, other: Triangle) -> Triangle:
        """The product of both as matrices [R QtT; 0 diag(left)]."""
        matmul = array_namespace(self.R).matmul
        QtT = matmul(self.R, other.QtT) + self.QtT * other.left
        return Triangle(matmul(self.R, other.R), QtT, self.left * other.left)

    def scaled(self, by: float) -> Triangle:
        """The triangle of rows times a number."""
        return Triangle(by * self.R, by * self.QtT, by * self.left)

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"R": np.asarray(self.R), "QtT": np.asarray(self.QtT), "left": np.asarray(self.left)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Triangle:
        return cls(arrays["R"], arrays["QtT"], arrays["left"])


def column_lengths(A: Array) -> Array:
    """√Σa² of each column, also where the squares underflow, so that no column looks like zero."""
    xp = array_namespace(A)
    lengths = xp.sqrt(xp.sum(A * A, axis=0))
    if not A.shape[0] or bool(xp.all(lengths > SMALLEST)):
        return lengths
    largest = xp.max(xp.abs(A), axis=0)
    scale = xp.where(largest > 0.0, largest, xp.ones_like(largest))
    return xp.where(largest < SMALLEST, scale * xp.sqrt(xp.sum((A / scale) ** 2, axis=0)), lengths)


def _check_sizes(*parts: Array) -> None:
    """Raise if the squares of numbers overflow, or if they are NaN."""
    for part in parts:
        xp = array_namespace(part)
        if not bool(xp.all(xp.abs(part) < 1.0 / SMALLEST)):
            raise ValueError("The rows hold numbers so large that their squares overflow: rescale the columns.")


def _stacked(parts: Sequence[tuple[Array, ...]]) -> Array:
    """Parts one below the other, the columns of each side by side; in NumPy a copy that LAPACK may overwrite."""
    first = parts[0][0]
    if not isinstance(first, np.ndarray):
        xp = array_namespace(first)
        rows = [part[0] if len(part) == 1 else xp.concat(list(part), axis=1) for part in parts]
        return rows[0] if len(rows) == 1 else xp.concat(rows)
    n_rows = sum(part[0].shape[0] for part in parts)
    n_columns = sum(columns.shape[1] for columns in parts[0])
    out = np.empty((n_rows, n_columns), order="F")
    top = 0
    for part in parts:
        bottom = top + part[0].shape[0]
        left = 0
        for columns in part:
            right = left + columns.shape[1]
            out[top:bottom, left:right] = columns
            left = right
        top = bottom
    return out


def _reduced(F: Array, T: Array) -> tuple[Array, Array, Array]:
    """R of F = QR, QᵀT, and rows with the lengths of the columns of T − QQᵀT; NumPy arrays are overwritten."""
    xp = array_namespace(F)
    m = min(F.shape)
    if m == 0:
        return F[:0, :], T[:0, :], T
    if isinstance(F, np.ndarray) and current_thread() is main_thread():
        # NumPy's BLAS, as everywhere else: SciPy brings another one, and the threads of both would compete.
        reflectors, tau = np.linalg.qr(F, mode="raw")
        R = np.tril(reflectors[:, : len(tau)]).T
        _check_sizes(R)
        Z = _reflect(reflectors, tau, T)
    elif isinstance(F, np.ndarray):
        # In a worker: NumPy's QR holds the interpreter for 500 columns or fewer, and the others would wait.
        geqrf, geqrf_lwork, ormqr = get_lapack_funcs(("geqrf", "geqrf_lwork", "ormqr"), (F,))
        reflectors, tau, *_ = geqrf(F, lwork=int(geqrf_lwork(*F.shape)[0]), overwrite_a=True)
        R = np.triu(reflectors[: len(tau)])
        _check_sizes(R)
        Z, *_ = ormqr("L", "T", reflectors[:, : len(tau)], tau, T, _PANEL * max(1, T.shape[1]), overwrite_c=True)
    elif is_torch_namespace(xp):
        reflectors, tau = xp.geqrf(F)
        R = xp.triu(reflectors[:m, :])
        _check_sizes(R)
        Z = xp.ormqr(reflectors[:, :m], tau, T, transpose=True)
    else:
        Q, R = xp.linalg.qr(F, mode="reduced")
        _check_sizes(R)
        explained = xp.matmul(xp.matrix_transpose(Q), T)
        return R, explained, T - xp.matmul(Q, explained)
    return R, Z[:m, :], Z[m:, :]


def _reflect(reflectors: np.ndarray, tau: np.ndarray, T: np.ndarray) -> np.ndarray:
    """QᵀT of LAPACK's reflections I − τvvᵀ, whose v are rows here; T is overwritten.

    A panel of reflections is Q = I − VSVᵀ, where S⁻¹ has the upper part of VᵀV, and 1/τ on its diagonal.
    """
    for start in range(0, len(tau), _PANEL):
        panel = tau[start : start + _PANEL]
        diagonal = np.arange(len(panel))
        Vt = np.triu(reflectors[start : start + len(panel), start:])
        Vt[diagonal, diagonal] = 1.0
        Vt[panel == 0.0] = 0.0  # LAPACK's way to say that this reflection is the identity
        inverse_S = np.triu(Vt @ Vt.T, 1)
        inverse_S[diagonal, diagonal] = 1.0 / np.where(panel == 0.0, 1.0, panel)
        T[start:] -= Vt.T @ np.linalg.solve(inverse_S.T, Vt @ T[start:])
    return T


# ------------------------------------------------------------------------------
# The triangular root of the products of features and targets.


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """FᵀF, FᵀT and the squared length of each target, for features F and targets T; products of parts add up."""

    FF: Array
    FT: Array
    TT: Array

    @classmethod
    def of(cls, F: Array, T: Array) -> Products:
        xp = array_namespace(F)
        Ft = xp.matrix_transpose(F)
        return cls(xp.matmul(Ft, F), xp.matmul(Ft, T), xp.sum(T * T, axis=0))

    def merge(self, other: Products) -> Products:
        return Products(self.FF + other.FF, self.FT + other.FT, self.TT + other.TT)

    @property
    def squares(self) -> Array:
        """The squared length of each feature."""
        return array_namespace(self.FF).linalg.diagonal(self.FF)

    @property
    def representable(self) -> bool:
        """Whether no square over- or underflowed, and no feature is zero."""
        xp = array_namespace(self.FF)
        parts = (self.FF, self.FT, self.TT)
        bounded = all(bool(xp.all(xp.abs(part) < 1.0 / SMALLEST**2)) for part in parts)
        return bounded and bool(xp.all(self.squares > SMALLEST**2))

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"FF": np.asarray(self.FF), "FT": np.asarray(self.FT), "TT": np.asarray(self.TT)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Products:
        return cls(arrays["FF"], arrays["FT"], arrays["TT"])


def root(products: Products) -> Triangle | None:
    """The triangle with these products, by Cholesky; a residual smaller than its own rounding error becomes zero.

    None where FᵀF is not positive definite to working precision.
    """
    xp = array_namespace(products.FF)
    R = cholesky(products.FF)
    if R is None:
        return None
    Zt = transposed_root(products.FT, R)
    rest = products.TT - xp.sum(Zt * Zt, axis=1)
    certain = rest > EPS * rounding_over_eps(products, R, Zt)
    left = xp.sqrt(xp.where(certain, rest, xp.zeros_like(rest)))
    return Triangle(R, xp.matrix_transpose(Zt), left)


def transposed_root(FT: Array, R: Array) -> Array:
    """Zᵀ of RᵀZ = FᵀT."""
    xp = array_namespace(R)
    return times_inverse(xp.asarray(xp.matrix_transpose(FT), copy=True), R)


def rounding_over_eps(products: Products, R: Array, Zt: Array) -> Array:
    """The rounding error of each target's squared residual, over ε: products are wrong by ε of what was summed."""
    xp = array_namespace(R)
    return products.TT + xp.matmul(least_squares_weights(R, Zt) ** 2, products.squares)


def least_squares_weights(R: Array, Zt: Array) -> Array:
    """Wᵀ of RW = Z, by back substitution."""
    xp = array_namespace(R)
    upside_down = 1.0 * xp.flip(Zt, axis=1)
    return xp.flip(times_inverse(upside_down, xp.flip(xp.matrix_transpose(R))), axis=1)


def diagonal_ratio(R: Array) -> float:
    """The largest over the smallest diagonal entry: a lower bound of the condition number of a triangle."""
    xp = array_namespace(R)
    entries = xp.abs(xp.linalg.diagonal(R))
    least = float(xp.min(entries))
    return float(xp.max(entries)) / least if least > 0.0 else float("inf")


# ------------------------------------------------------------------------------
# The SVD of a triangle through its polar decomposition, for GPUs, where a direct SVD is many times slower.
#
# A = QP with P symmetric by the dynamically weighted Halley iteration (QDWH: Nakatsukasa, Bai, Gygi, SIAM J. Matrix
# Anal. Appl. 31, 2010), then P = VΣVᵀ: products, factorizations and one symmetric eigenvalue problem, all of which a
# GPU does fast, and as backward stable as the SVD itself.


def svd_by_polar(R: Array) -> tuple[Array, Array, Array] | None:
    """U, σ (descending) and Vᵀ of a square upper triangular R = (QP)ᵀ; None if Q was not found to full precision.

    The transpose of a triangle from QR has columns graded by size, and the iteration, which has no pivoting, is then
    stable; P as symmetric as rounding allows is the certificate.
    """
    xp = array_namespace(R)
    L = xp.matrix_transpose(R)
    Q = _nearest_orthogonal(L)
    P = xp.matmul(xp.matrix_transpose(Q), L)
    skew = xp.max(xp.abs(P - xp.matrix_transpose(P)))
    if not float(skew) <= 100.0 * EPS * R.shape[0] ** 0.5 * float(xp.max(xp.abs(P))):
        return None
    sigma, V = xp.linalg.eigh(0.5 * (P + xp.matrix_transpose(P)))
    sigma = xp.flip(sigma)
    V = xp.flip(V, axis=1)
    return V, xp.maximum(sigma, xp.zeros_like(sigma)), xp.matrix_transpose(xp.matmul(Q, V))


def _nearest_orthogonal(A: Array) -> Array:
    """The orthogonal factor Q of A = QP: X(aI + bXᵀX)(I + cXᵀX)⁻¹ again and again, which lifts each σ to 1."""
    xp = array_namespace(A)
    k = A.shape[0]
    size = float(xp.sqrt(xp.max(xp.sum(xp.abs(A), axis=0)) * xp.max(xp.sum(xp.abs(A), axis=1))))  # ≥ σ₁
    X = A / size
    eye = xp.eye(k, dtype=A.dtype, device=device_of(A))
    # A lower bound of the smallest singular value of X; too small a one costs a step, no accuracy.
    least = EPS
    for _ in range(_MOST_STEPS):
        if abs(1.0 - least) <= 8.0 * EPS:
            break
        a, b, c = _halley_weights(least)
        if c <= _LARGEST_SOLVED_WEIGHT:  # with ‖X‖ ≤ 1 the matrix I + cXᵀX has κ ≤ 101, and solving with it is cheaper
            Xt = xp.matrix_transpose(X)
            solved = xp.linalg.solve(eye + c * xp.matmul(Xt, X), Xt)
            X = (b / c) * X + (a - b / c) * xp.matrix_transpose(solved)
        else:  # the same through [√c·X; I] = QR, which does not square κ(X)
            Q, _ = xp.linalg.qr(xp.concat([c**0.5 * X, eye]), mode="reduced")
            X = (b / c) * X + ((a - b / c) / c**0.5) * xp.matmul(Q[:k, :], xp.matrix_transpose(Q[k:, :]))
        least = min(1.0, least * (a + b * least**2) / (1.0 + c * least**2))
    return X


def _halley_weights(least: float) -> tuple[float, float, float]:
    """The a, b, c for which x(a + bx²)/(1 + cx²) lifts the interval [least, 1] most."""
    square = least * least
    d = (4.0 * (1.0 - square) / square**2) ** (1.0 / 3.0)
    root = (1.0 + d) ** 0.5
    a = root + 0.5 * (8.0 - 4.0 * d + 8.0 * (2.0 - square) / (square * root)) ** 0.5
    b = (a - 1.0) ** 2 / 4.0
    return a, b, a + b - 1.0


# ------------------------------------------------------------------------------
# The SVD of small triangles and of matrices wider than tall, and which singular values are rounding noise.


def rank_tolerance(n_columns: int, sigma_1: float) -> float:
    """Singular values up to this size are rounding noise.

    It grows with the columns of R, not with the rows: R carries the same spectrum however many rows went into it, and a
    rank that fell when rows were added would be absurd.
    """
    return max(n_columns, FEWEST_COLUMNS) * EPS * sigma_1


def svd_and_rank(R: Array, n_columns: int) -> tuple[Array, Array, Array, int]:
    """U, σ (descending), Vᵀ and the numerical rank of a matrix that stands for `n_columns` columns."""
    U, sigma, Vt = svd(R)
    xp = array_namespace(sigma)
    tolerance = rank_tolerance(n_columns, float(sigma[0]) if sigma.shape[0] else 0.0)
    return U, sigma, Vt, int(xp.sum(xp.astype(sigma > tolerance, xp.int64)))


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
    """Centred columns C, where a column that is constant up to rounding becomes exactly zero."""
    xp = array_namespace(C)
    varies = are_varying(column_lengths(C), mean, weight_sum)
    return xp.where(varies, C, xp.zeros((), dtype=C.dtype, device=device_of(C)))


def are_varying(lengths: Array, mean: Array, weight_sum: float) -> Array:
    """Which centred columns of these lengths are not constant up to rounding.

    Rounding leaves noise of size ε·|mean|·√Σw in them, and the rank tolerance, relative to σ₁, cannot see that
    when all columns are constant.
    """
    return lengths > 4.0 * EPS * weight_sum**0.5 * array_namespace(mean).abs(mean)
