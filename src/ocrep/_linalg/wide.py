"""Problems with fewer rows than features: all of them is solved in as many dimensions as there are rows.

The inner products K = AAᵀ of the rows A = √w·(H − s) are n × n and hold all that folds and leave-one-out need. Their
eigenvalues square the condition number, so they must prove themselves. Where they cannot, A = LQᵀ by reflections, and
the n coordinates L take the place of the features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import scipy.linalg

from ocrep._linalg.arrays import EPS, SMALLEST, Array, array_namespace, cholesky, device_of
from ocrep._linalg.blocks import slices_of
from ocrep._linalg.counts import Counts
from ocrep._linalg.parallel import at_once
from ocrep._linalg.spectrum import LeftVectors, Spectrum, spectrum_of
from ocrep._linalg.svd import numerical_rank, wide_svd, without_constants
from ocrep._linalg.triangular_root import diagonal_ratio
from ocrep._linalg.wide_rows import WideRows

# Squaring costs residuals and held-out errors about ε·κ² of ‖T‖: 2·10⁻¹⁰ at this κ, so that nothing need be verified.
KERNEL_CONDITION = 1e3
# Columns that are constant but for rounding may add this much of the smallest eigenvalue.
_NOISE_SHARE = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class RowVectors:
    """V = AᵀB: right singular vectors as combinations of rows."""

    rows: WideRows
    shift: Array
    B: Array
    """n × p."""

    @property
    def n_features(self) -> int:
        return self.rows.n_features

    def transposed(self) -> Array:
        xp = array_namespace(self.B)
        parts = [xp.matmul(xp.matrix_transpose(A), self.B) for _, A in self.rows.columns(self.shift)]
        return xp.matrix_transpose(xp.concat(parts))

    def times(self, x: Array) -> Array:
        xp = array_namespace(x)
        combined = xp.matmul(self.B, x)  # (…, n, k): the leading axes become columns
        flat = xp.reshape(xp.moveaxis(combined, -2, 0), (combined.shape[-2], -1))
        found = xp.reshape(self.rows.transposed_times(flat, self.shift), (-1, *x.shape[:-2], x.shape[-1]))
        return xp.moveaxis(found, 0, -2)

    def coordinates(self, H: Array) -> Array:
        return array_namespace(H).matmul(self.rows.products_with(H, self.shift), self.B)


@dataclass(frozen=True, slots=True, eq=False)
class WideFit:
    """The spectrum of some of the rows, and what it takes to predict the others: the rows X·B in its basis."""

    spectrum: Spectrum
    X: Array
    """All rows in some coordinates, n × d."""
    B: Array
    """From those coordinates to the right singular vectors, d × p."""
    mean: Array
    """The mean of the rows of the fit in those coordinates; zero without an intercept."""


@dataclass(frozen=True, eq=False)
class WideProblem:
    """Fewer rows than features."""

    rows: WideRows
    counts: Counts

    @cached_property
    def inner_products(self) -> Array:
        """AAᵀ of all rows about the common shift."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.rows.inner_products(self._shift)

    @cached_property
    def coordinates(self) -> tuple[Array, WideRows]:
        """L of A = LQᵀ, and Qᵀ as rows."""
        xp, mean = array_namespace(self.rows.T), self._means(self.rows, self.counts)
        A = self.rows.features(self._shift)
        if self.counts.intercept:
            centred = _Centring.of(self.rows.root_weight, True).rows(A)
            varies = xp.any(without_constants(centred, mean[: A.shape[1]], self.counts.weight_sum) != 0.0, axis=0)
            del centred
            A *= xp.astype(varies, xp.float64)
        L, Qt = _lq(A)
        ones = xp.ones_like(self.rows.root_weight)
        return L, WideRows((Qt,), self.rows.T[:, :0], ones)

    @property
    def _shift(self) -> Array:
        return self.counts.shift[: self.counts.n_features]

    def spectrum(self) -> Spectrum:
        """The spectrum of all rows."""
        return self.fit(None, self.rows, self.counts).spectrum

    def fit(self, chosen: Array | None, rows: WideRows, counts: Counts) -> WideFit:
        """The spectrum of `rows`, which are the chosen ones among all."""
        return self.by_inner_products(chosen, rows, counts) or self.by_coordinates(chosen, rows, counts)

    def by_inner_products(self, chosen: Array | None, rows: WideRows, counts: Counts) -> WideFit | None:
        """Through the eigenvalues of AAᵀ; None unless they prove that squaring cost nothing that matters."""
        X, root = self.inner_products, rows.root_weight
        xp = array_namespace(X)
        if chosen is not None:
            X = xp.take(X, chosen, axis=1)
        K = X if chosen is None else xp.take(X, chosen, axis=0)
        centring, mean = _Centring.of(root, counts.intercept), self._means(rows, counts)
        noise = 4.0 * EPS * counts.weight_sum**0.5 * float(xp.linalg.vector_norm(mean[: counts.n_features]))
        found = _proved_eigenvalues(centring.both(K), int(counts.intercept), noise)
        if found is None:
            return None
        sigma, U = found[0], centring.undone(found[1])
        T = root[:, None] * (rows.T - mean[counts.n_features :])
        B = U / sigma
        spectrum = spectrum_of(
            counts,
            mean,
            sigma=sigma,
            right=RowVectors(rows, self._shift, B),
            UtT=xp.matmul(xp.matrix_transpose(U), T),
            residual=0.0 * T[0, :],  # as many directions as rows explain all targets
            discarded=sigma[:0],
            left=LeftVectors(U, rows.T, root),
        )
        return WideFit(spectrum, X, B, _mean_of(K, root, counts))

    def by_coordinates(self, chosen: Array | None, rows: WideRows, counts: Counts) -> WideFit:
        """Through L of A = LQᵀ: always right."""
        X, basis = self.coordinates
        xp, root, M = array_namespace(X), rows.root_weight, counts.n_features
        L = X if chosen is None else xp.take(X, chosen, axis=0)
        centring, mean = _Centring.of(root, counts.intercept), self._means(rows, counts)
        C = centring.rows(L)
        mean_L = _mean_of(L, root, counts)
        if counts.intercept:
            C = without_constants(C, mean_L, counts.weight_sum)
        U, sigma, Vt = wide_svd(C)
        p = numerical_rank(sigma, M)
        UtT = xp.matmul(xp.matrix_transpose(U), centring.rows(root[:, None] * (rows.T - mean[M:])))
        B = xp.matrix_transpose(Vt[:p, :])
        spectrum = spectrum_of(
            counts,
            mean,
            sigma=sigma[:p],
            right=RowVectors(basis, 0.0 * self._shift, B),
            UtT=UtT[:p, :],
            residual=xp.sum(UtT[p:, :] ** 2, axis=0),
            discarded=sigma[p:],
            left=LeftVectors(centring.undone(U[:, :p]), rows.T, root),
        )
        return WideFit(spectrum, X, B, mean_L)

    def _means(self, rows: WideRows, counts: Counts) -> Array:
        """Weighted means of [H | T]; zeros without an intercept."""
        if not counts.intercept or counts.weight_sum == 0.0:
            return 0.0 * counts.shift
        return rows.averages((rows.root_weight**2 / counts.weight_sum)[None, :])[0, :]


class WideFolds:
    """Folds of a wide problem: each is predicted by the others without a look at the features."""

    def __init__(self, problem: WideProblem, folds: Sequence[tuple[WideRows, Counts]]) -> None:
        self._problem, self._folds = problem, folds

    @cached_property
    def fits(self) -> list[WideFit]:
        """For each fold, the fit of the others."""
        xp, problem = array_namespace(self._problem.rows.T), self._problem
        device = device_of(problem.rows.T)
        tried = []
        for v, held in enumerate(self._slices()):
            others = [*self._folds[:v], *self._folds[v + 1 :]]
            rows, counts = reduce(WideRows.merge, [r for r, _ in others]), reduce(Counts.merge, [c for _, c in others])
            all_rows = np.arange(problem.rows.n_rows)
            chosen = xp.asarray(np.delete(all_rows, held), device=device)
            tried.append((chosen, rows, counts))
        problem.inner_products  # noqa: B018 - computed once, before the threads ask for it
        found = at_once(lambda part: problem.by_inner_products(*part), tried)
        return [fit or problem.by_coordinates(*part) for fit, part in zip(found, tried, strict=True)]

    def squared_errors(self, gamma: Array) -> Array:
        """Σ w‖t − prediction‖² over each held-out fold, folds × γ."""
        xp, errors = array_namespace(gamma), []
        for fit, held in zip(self.fits, self._slices(), strict=True):
            spectrum, root = fit.spectrum, self._problem.rows.root_weight[held, None]
            P = xp.matmul(fit.X[held, :] - root * fit.mean, fit.B)
            T = root * (self._problem.rows.T[held, :] - spectrum.mean_T)
            parts = []
            for some in slices_of(gamma.shape[0], T.shape[0] * T.shape[1]):
                left = T - xp.matmul(P, spectrum.gain(gamma[some])[..., None] * spectrum.UtT)
                parts.append(xp.sum(left * left, axis=(1, 2)))
            errors.append(xp.concat(parts))
        return xp.stack(errors)

    def _slices(self) -> list[slice]:
        stops = np.cumsum([rows.n_rows for rows, _ in self._folds]).tolist()
        return [slice(stop - rows.n_rows, stop) for stop, (rows, _) in zip(stops, self._folds, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class _Centring:
    """The reflection P that turns √w into a multiple of e₁: the first row of PA is the mean, the others are centred."""

    v: Array | None
    """P = I − vvᵀ; None without an intercept."""

    @classmethod
    def of(cls, root: Array, intercept: bool) -> _Centring:
        if not intercept or not root.shape[0]:
            return cls(None)
        xp = array_namespace(root)
        size = xp.linalg.vector_norm(root)
        v = xp.concat([root[:1] + size, root[1:]])
        return cls(v / xp.sqrt(size * (size + root[0])))

    def rows(self, A: Array) -> Array:
        """PA without its first row."""
        return A if self.v is None else self._reflected(A)[1:, :]

    def both(self, K: Array) -> Array:
        """PKP, the first row and column included."""
        if self.v is None:
            return K
        xp = array_namespace(K)
        return self._reflected(xp.matrix_transpose(self._reflected(K)))

    def undone(self, U: Array) -> Array:
        """P·[0; U], so that `rows` of it is U again."""
        if self.v is None:
            return U
        xp = array_namespace(U)
        return self._reflected(xp.concat([xp.zeros((1, U.shape[1]), dtype=xp.float64, device=device_of(U)), U]))

    def _reflected(self, A: Array) -> Array:
        xp = array_namespace(A)
        assert self.v is not None
        return A - self.v[:, None] * xp.matmul(self.v, A)


def _proved_eigenvalues(K: Array, first: int, noise: float) -> tuple[Array, Array] | None:
    """σ (descending) and U of the centred rows; None where squaring may have cost too much."""
    xp, C = array_namespace(K), K[first:, first:]
    diagonal = xp.linalg.diagonal(K)
    if not C.shape[0] or not bool(xp.all(diagonal < 1.0 / SMALLEST**2)):  # NaN fails too
        return None
    R = cholesky(C)
    if R is None or not diagonal_ratio(R) < KERNEL_CONDITION:  # a lower bound of κ, at a fraction of the price
        return None
    lam, U = xp.linalg.eigh(C)
    # Rounding is relative to what was summed, the part of the mean included.
    scale = float(lam[-1]) + float(xp.sum(diagonal[:first]))
    least = float(lam[0])
    if not (least * KERNEL_CONDITION**2 > scale and least > SMALLEST**2 and _NOISE_SHARE * least >= noise**2):
        return None
    return xp.flip(xp.sqrt(lam)), xp.flip(U, axis=1)


def _mean_of(X: Array, root: Array, counts: Counts) -> Array:
    """The mean of rows √w·x in any coordinates; zero without an intercept."""
    xp = array_namespace(X)
    if not counts.intercept or counts.weight_sum == 0.0:
        return 0.0 * X[0, :] if X.shape[0] else xp.zeros((X.shape[1],), dtype=X.dtype, device=device_of(X))
    return xp.matmul(root, X) / counts.weight_sum


def _lq(A: Array) -> tuple[Array, Array]:
    """L and Qᵀ of A = LQᵀ; NumPy's A is overwritten by Qᵀ, so that no second matrix of its size is needed."""
    xp = array_namespace(A)
    if isinstance(A, np.ndarray):
        Q, R = scipy.linalg.qr(A.T, mode="economic", overwrite_a=True, check_finite=False)
    else:
        Q, R = xp.linalg.qr(xp.matrix_transpose(A), mode="reduced")
    return xp.matrix_transpose(R), xp.matrix_transpose(Q)
