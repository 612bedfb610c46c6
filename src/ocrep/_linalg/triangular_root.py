"""The triangular root R of a Gram matrix G = RᵀR of features and targets."""

from __future__ import annotations

from ocrep._linalg.arrays import EPS, Array, array_namespace, cholesky, device_of, times_inverse, triangle


def root(G: Array, n_targets: int) -> Array | None:
    """An upper R with RᵀR = G: Cholesky for the features, Cholesky with pivots for the residuals of the targets.

    Targets may depend on each other (class codes sum to a constant), and then their residuals are singular. None where
    the features are not positive definite to working precision.
    """
    xp = array_namespace(G)
    k = G.shape[0] - n_targets
    R = cholesky(G[:k, :k])
    if R is None:
        return None
    Zt = times_inverse(xp.asarray(G[k:, :k], copy=True), R)
    rest = G[k:, k:] - xp.matmul(Zt, xp.matrix_transpose(Zt))
    below = xp.zeros((n_targets, k), dtype=G.dtype, device=device_of(G))
    left = triangle(_pivoted_root(rest, EPS * rounding_over_eps(G, R, Zt)))
    return xp.concat([xp.concat([R, xp.matrix_transpose(Zt)], axis=1), xp.concat([below, left], axis=1)])


def rounding_over_eps(G: Array, R: Array, Zt: Array) -> Array:
    """The rounding error of each target's squared residual, over ε: entries of G are wrong by ε of what was summed."""
    xp = array_namespace(G)
    squares, k = xp.linalg.diagonal(G), R.shape[0]
    return squares[k:] + xp.matmul(least_squares_weights(R, Zt) ** 2, squares[:k])


def least_squares_weights(R: Array, Zt: Array) -> Array:
    """Wᵀ of RW = Z, by back substitution."""
    xp = array_namespace(R)
    upside_down = 1.0 * xp.flip(Zt, axis=1)
    return xp.flip(times_inverse(upside_down, xp.flip(xp.matrix_transpose(R))), axis=1)


def _pivoted_root(S: Array, noise: Array) -> Array:
    """A square B with BᵀB = S, each diagonal entry right to its own noise.

    The most certain column comes first, so that the rounding of a target that fits never reaches one that does not.
    Eigenvalues would mix them, whichever way they are scaled.
    """
    xp = array_namespace(S)
    one = xp.ones_like(noise)
    noise = xp.where(noise > 0.0, noise, one)
    rows = []
    for _ in range(S.shape[0]):
        certainty = xp.linalg.diagonal(S) / noise
        pivot = int(xp.argmax(certainty))
        if not float(certainty[pivot]) > 1.0:
            break
        row = S[pivot, :] / S[pivot, pivot] ** 0.5
        rows.append(row)
        S = S - row * row[:, None]
    return xp.stack(rows + [0.0 * one] * (S.shape[0] - len(rows)))


def diagonal_ratio(R: Array) -> float:
    """The largest over the smallest diagonal entry: a lower bound of the condition number of a triangle."""
    xp = array_namespace(R)
    entries = xp.abs(xp.linalg.diagonal(R))
    least = float(xp.min(entries))
    return float(xp.max(entries)) / least if least > 0.0 else float("inf")
