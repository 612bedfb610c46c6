"""The SVD of a triangle through its polar decomposition, for GPUs, where a direct SVD is many times slower.

A = QP with P symmetric by the dynamically weighted Halley iteration (QDWH: Nakatsukasa, Bai, Gygi, SIAM J. Matrix
Anal. Appl. 31, 2010), then P = VΣVᵀ: products, factorizations and one symmetric eigenvalue problem, all of which a
GPU does fast, and as backward stable as the SVD itself.
"""

from __future__ import annotations

from ocrep._linalg.arrays import EPS, Array, array_namespace, device_of

# The iteration ends after six steps from any σ_p/σ₁ ≥ ε; a few more are a safeguard.
_MOST_STEPS = 12
# Above this weight a step through XᵀX would square too large a condition number.
_LARGEST_SOLVED_WEIGHT = 100.0
# Below this size a direct SVD takes no time that matters.
SMALL = 512


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
    sigma, V = xp.flip(sigma), xp.flip(V, axis=1)
    return V, xp.maximum(sigma, xp.zeros_like(sigma)), xp.matrix_transpose(xp.matmul(Q, V))


def _nearest_orthogonal(A: Array) -> Array:
    """The orthogonal factor Q of A = QP."""
    xp = array_namespace(A)
    size = float(xp.sqrt(xp.max(xp.sum(xp.abs(A), axis=0)) * xp.max(xp.sum(xp.abs(A), axis=1))))  # ≥ σ₁
    X = A / size
    eye = xp.eye(A.shape[0], dtype=A.dtype, device=device_of(A))
    # A lower bound of the smallest singular value of X; too small a one costs a step, no accuracy.
    least = EPS
    for _ in range(_MOST_STEPS):
        if abs(1.0 - least) <= 8.0 * EPS:
            break
        a, b, c = _weights(least)
        step = _step_by_solving if c <= _LARGEST_SOLVED_WEIGHT else _step_by_qr
        X = step(X, eye, a, b, c)
        least = min(1.0, least * (a + b * least**2) / (1.0 + c * least**2))
    return X


def _weights(least: float) -> tuple[float, float, float]:
    """The a, b, c for which x(a + bx²)/(1 + cx²) lifts the interval [least, 1] most."""
    square = least * least
    d = (4.0 * (1.0 - square) / square**2) ** (1.0 / 3.0)
    root = (1.0 + d) ** 0.5
    a = root + 0.5 * (8.0 - 4.0 * d + 8.0 * (2.0 - square) / (square * root)) ** 0.5
    b = (a - 1.0) ** 2 / 4.0
    return a, b, a + b - 1.0


def _step_by_qr(X: Array, eye: Array, a: float, b: float, c: float) -> Array:
    xp = array_namespace(X)
    k = X.shape[0]
    Q, _ = xp.linalg.qr(xp.concat([c**0.5 * X, eye]), mode="reduced")
    return (b / c) * X + ((a - b / c) / c**0.5) * xp.matmul(Q[:k, :], xp.matrix_transpose(Q[k:, :]))


def _step_by_solving(X: Array, eye: Array, a: float, b: float, c: float) -> Array:
    """X(aI + bXᵀX)(I + cXᵀX)⁻¹: with c ≤ 100 and ‖X‖ ≤ 1 the matrix has κ ≤ 101."""
    xp = array_namespace(X)
    Xt = xp.matrix_transpose(X)
    return (b / c) * X + (a - b / c) * xp.matrix_transpose(xp.linalg.solve(eye + c * xp.matmul(Xt, X), Xt))
