"""Problems with fewer rows than features: they are solved in as many dimensions as there are rows.

Let A = √w·(H − s) be n × M with n < M, and A = UΣVᵀ. The regularized weights lie in the space of the rows,

    w = (AᵀA + γI)⁻¹Aᵀt = Aᵀ(AAᵀ + γI)⁻¹t,

so the dual problem, with the n × n inner products K = AAᵀ = UΣ²Uᵀ, gives σ, U and UᵀT for n²M + O(n³) flops instead of
the O(M³) of the primal problem. V = AᵀUΣ⁻¹ is kept as U and the rows (`RowVectors`) and multiplied only where weights
are needed. A fold and its complement are rows and columns of the same K, so k-fold cross-validation never looks at the
features again (kernel ridge regression: Saunders, Gammerman, Vovk, ICML 1998).

Centring. With root weights r = √w, the reflection P = I − vvᵀ that turns r into a multiple of e₁ turns the rows PA into
the mean (the first row) and centred data (the others, orthogonal to r), with the same singular values as A − r·meanᵀ.
So PKP without its first row and column holds the products of the centred rows. Nothing is subtracted, and a part of the
rows is centred about its own mean although K is about one common shift s.

Proof. K squares the condition number, and σ_p, residuals and held-out errors lose about ε·κ². That is accepted up to κ
= 10³, where it costs 2·10⁻¹⁰ of ‖T‖: the eigenvalues of K must show λ_n·10⁶ > λ₁ + ‖mean part‖², and rounding left in
columns that are constant must be less than 10⁻¹⁰ of λ_n. Otherwise A = LQᵀ by reflections, which is always right, costs
2n²M, and gives n coordinates L for each row that take the place of the features; Q is then held, n × M.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod

import numpy as np
import scipy.linalg

from ocrep._linalg.arrays import (
    EPS,
    SMALLEST,
    Array,
    array_namespace,
    as_float64,
    cholesky,
    device_of,
    times_inverse,
    with_rows,
)
from ocrep._linalg.parallel import PIECE_ENTRIES, at_once, row_slices
from ocrep._linalg.rows import Counts, Encoded, averages
from ocrep._linalg.spectrum import HeldOut, LeftVectors, Spectrum, spectrum_of
from ocrep._linalg.triangle import least_squares_weights, svd_and_rank, without_constants

# More blocks than this are joined: each is a step of every loop over the rows.
MOST_BLOCKS = 64
# Squaring costs residuals and held-out errors about ε·κ² of ‖T‖: 2·10⁻¹⁰ at this κ, so that nothing need be verified.
KERNEL_CONDITION = 1e3
# Columns that are constant but for rounding may add this much of the smallest eigenvalue.
_NOISE_SHARE = 1e-10


# ------------------------------------------------------------------------------
# `WideRows`: rows fewer than features, kept as they came; they merge without being factored or copied.


@dataclass(frozen=True, slots=True, eq=False)
class WideRows:
    """Rows of positive weight; A = √w·(H − s) is formed piece by piece, in float64, where it is used."""

    blocks: tuple[Array, ...]
    """The rows of H in order, each block in its own type: float32 stays float32."""
    T: Array
    root_weight: Array

    @classmethod
    def of(cls, rows: Encoded, *, copy: bool) -> WideRows:
        """Keep checked rows; without `copy`, H must not be changed by anybody else."""
        H = rows.H
        T = rows.T
        xp = array_namespace(H)
        weight = xp.ones((H.shape[0],), dtype=xp.float64, device=device_of(H)) if rows.weight is None else rows.weight
        if rows.weight is not None and not bool(xp.all(weight > 0.0)):
            (index,) = xp.nonzero(weight > 0.0)
            H, T, weight = (xp.take(part, index, axis=0) for part in (H, T, weight))
        elif copy:
            H = xp.asarray(H, copy=True)
            T = xp.asarray(T, copy=True)
        root = xp.sqrt(weight)
        for part in (H, T):
            if part.shape[0] == 0 or part.shape[1] == 0:
                continue
            largest = max(float(xp.max(part)), -float(xp.min(part))) * float(xp.max(root))
            # Inner products sum as many squares as there are rows or columns.
            if not largest * max(part.shape) ** 0.5 < 1.0 / SMALLEST:
                raise ValueError("The rows hold numbers so large that their squares overflow: rescale the columns.")
        return cls((H,), T, root)

    @property
    def n_rows(self) -> int:
        return int(self.T.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.blocks[0].shape[1])

    def merge(self, other: WideRows) -> WideRows:
        """The rows of both."""
        xp = array_namespace(self.T)
        T = xp.concat([self.T, other.T])
        root = xp.concat([self.root_weight, other.root_weight])
        blocks = tuple(H for H in self.blocks + other.blocks if H.shape[0]) or self.blocks
        if len(blocks) > MOST_BLOCKS:
            blocks = (xp.concat(list(blocks)),)
        return WideRows(blocks, T, root)

    def leading(self, n_features: int) -> WideRows:
        """The rows of the first features."""
        return WideRows(tuple(H[:, :n_features] for H in self.blocks), self.T, self.root_weight)

    def averages(self, weights: Array) -> Array:
        """weights·[H | T], for rows of weights, (k, n)."""
        xp = array_namespace(self.T)
        total: Array = 0.0
        start = 0
        for H in self.blocks:
            stop = start + H.shape[0]
            total = total + averages(weights[:, start:stop], H)
            start = stop
        return xp.concat([total, xp.matmul(weights, self.T)], axis=1)

    def pieces(self, shift: Array | None) -> Iterator[tuple[slice, Array]]:
        """A by rows, about the shift of the features; None for no shift. A piece may be a view: not to be changed."""
        xp = array_namespace(self.T)
        start = 0
        for H in self.blocks:
            needs_no_copy = shift is None and H.dtype == xp.float64
            size = H.shape[0] if needs_no_copy else PIECE_ENTRIES // max(1, H.shape[1])
            for rows in row_slices(H.shape[0], max(1, size)):
                piece = slice(start + rows.start, start + rows.stop)
                A = as_float64(H[rows, :])
                yield piece, self._scaled(A if shift is None else A - shift, piece)
            start += H.shape[0]

    def columns(self, shift: Array | None) -> Iterator[tuple[slice, Array]]:
        """A by columns: at least n at a time, so that adding up n × n products costs less than forming them."""
        xp = array_namespace(self.T)
        n = max(self.n_rows, 1)
        for columns in row_slices(self.n_features, max(PIECE_ENTRIES // n, n)):
            A = xp.concat([as_float64(H[:, columns]) for H in self.blocks])
            if shift is not None:
                A -= shift[columns]
            yield columns, self._scaled(A, slice(None))

    def inner_products(self, shift: Array | None) -> Array:
        """AAᵀ."""
        xp = array_namespace(self.T)
        total = None
        for _, A in self.columns(shift):
            product = xp.matmul(A, xp.matrix_transpose(A))
            if total is None:
                total = product
            else:
                total += product
        return total

    def features(self, shift: Array | None) -> Array:
        """A as one array."""
        xp = array_namespace(self.T)
        whole = xp.empty((self.n_rows, self.n_features), dtype=xp.float64, device=device_of(self.T))
        for rows, A in self.pieces(shift):
            whole = with_rows(whole, rows, A)
        return whole

    def _scaled(self, A: Array, rows: slice) -> Array:
        """√w·A, and A itself where all weights are 1."""
        root = self.root_weight[rows]
        return A if bool(array_namespace(root).all(root == 1.0)) else root[:, None] * A


# ------------------------------------------------------------------------------
# The problem in as many dimensions as rows, for all of them or for the complement of a fold.


@dataclass(frozen=True, slots=True, eq=False)
class RowVectors:
    """V = AᵀBD⁻¹: right singular vectors as combinations of rows."""

    rows: WideRows
    shift: Array | None
    B: Array
    """n × p."""
    D: Array
    """A number for each vector."""

    @property
    def n_features(self) -> int:
        return self.rows.n_features

    def transposed(self) -> Array:
        xp = array_namespace(self.B)
        parts = [xp.matmul(xp.matrix_transpose(A), self.B) for _, A in self.rows.columns(self.shift)]
        return xp.matrix_transpose(xp.concat(parts) / self.D)

    def squared_columns(self, sigma: Array) -> Array:
        xp = array_namespace(self.B)
        scaled = self.B * (sigma / self.D)
        total = []
        for _, A in self.rows.columns(self.shift):
            At = xp.matrix_transpose(A)
            squares: Array = 0
            # A few vectors at a time, so that little is held.
            for some in row_slices(scaled.shape[1], 16):
                products = xp.matmul(At, scaled[:, some])
                squares = squares + xp.vecdot(products, products)
            total.append(squares)
        return xp.concat(total)

    def times(self, x: Array) -> Array:
        xp = array_namespace(x)
        *several, _, k = x.shape
        combined = xp.matmul(self.B, x / self.D[:, None])
        # The leading axes become columns, so that the rows are read once for all of them.
        flat = xp.reshape(xp.moveaxis(combined, -2, 0), (self.B.shape[0], prod(several) * k))
        total = xp.zeros((self.n_features, flat.shape[1]), dtype=xp.float64, device=device_of(flat))
        for rows, A in self.rows.pieces(self.shift):
            total = total + xp.matmul(xp.matrix_transpose(A), flat[rows, :])
        return xp.moveaxis(xp.reshape(total, (self.n_features, *several, k)), 0, -2)

    def coordinates(self, H: Array) -> Array:
        xp = array_namespace(H)
        products = [xp.matmul(H, xp.matrix_transpose(A)) for _, A in self.rows.pieces(self.shift)]
        return xp.matmul(xp.concat(products, axis=1), self.B) / self.D


@dataclass(frozen=True, slots=True, eq=False)
class Complement:
    """Some rows of a problem, which are fitted, and the rows held out, which the fit predicts."""

    rows: WideRows
    counts: Counts
    index: Array | None
    """The places of the fitted rows among all rows; None if they are all."""
    held_out: slice
    """The places of the rows held out."""


@dataclass(frozen=True, eq=False)
class WideProblem:
    """A fit on fewer rows than features; what its parts share is computed once."""

    rows: WideRows
    counts: Counts

    @cached_property
    def inner_products(self) -> Array:
        """AAᵀ of all rows about the common shift."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.rows.inner_products(self._shift)

    @cached_property
    def coordinates(self) -> tuple[Array, WideRows]:
        """L of A = LQᵀ, and Qᵀ as rows; features that are constant up to rounding are set to zero first."""
        xp = array_namespace(self.rows.T)
        varies = []
        if self.counts.intercept:
            mean = _means(self._all)
            centring = _Centring.of(self.rows.root_weight, intercept=True)
            for columns, some in self.rows.columns(self._shift):
                centred = without_constants(centring.rows(some), mean[columns], self.counts.weight_sum)
                varies.append(xp.astype(xp.any(centred != 0.0, axis=0), xp.float64))
            del some, centred  # the columns are large, and A is about to be formed
        A = self.rows.features(self._shift)
        if varies:
            A *= xp.concat(varies)
        if isinstance(A, np.ndarray):  # overwritten by Q, so that no second matrix of its size is needed
            Q, R = scipy.linalg.qr(A.T, mode="economic", overwrite_a=True, check_finite=False)
        else:
            Q, R = xp.linalg.qr(xp.matrix_transpose(A), mode="reduced")
        ones = xp.ones_like(self.rows.root_weight)
        return xp.matrix_transpose(R), WideRows((xp.matrix_transpose(Q),), self.rows.T[:, :0], ones)

    @property
    def _shift(self) -> Array | None:
        return self.counts.shift[: self.counts.n_features] if self.counts.intercept else None

    def spectrum(self) -> Spectrum:
        """The spectrum of all rows."""
        return (self.by_inner_products(self._all) or self.by_coordinates(self._all)).spectrum

    @property
    def _all(self) -> Complement:
        return Complement(self.rows, self.counts, None, slice(0))

    def by_inner_products(self, part: Complement) -> HeldOut | None:
        """Through the eigenvalues of AAᵀ; None unless they prove that squaring cost nothing that matters."""
        root = part.rows.root_weight
        counts = part.counts
        M = counts.n_features
        K, X = self._of_part(self.inner_products, part)
        xp = array_namespace(K)
        if part.index is not None:
            K = xp.take(K, part.index, axis=1)
            X = xp.take(X, part.index, axis=1)
        mean = _means(part)
        centring = _Centring.of(root, counts.intercept)
        # What rounding may leave in columns that are constant, all of them together.
        noise = 4.0 * EPS * counts.weight_sum**0.5 * float(xp.linalg.vector_norm(mean[:M]))
        found = _proved_eigenvalues(centring.both(K), int(counts.intercept), noise)
        if found is None:
            return None
        sigma, centred_U = found
        U = centring.undone(centred_U)
        T = root[:, None] * (part.rows.T - mean[M:])
        spectrum = spectrum_of(
            counts,
            mean,
            sigma=sigma,
            right=RowVectors(part.rows, self._shift, U, sigma),
            UtT=xp.matmul(xp.matrix_transpose(U), T),
            residual=0.0 * T[0, :],  # as many directions as rows explain all targets
            discarded=sigma[:0],
            left=LeftVectors(U, part.rows.T, root),
        )
        # Held-out rows about the mean of the fitted rows A, times V = AᵀU/σ; their products with A are part of K.
        return self._fit(part, spectrum, X - self._held_out_root(part) * _mean_of(K, part), U / sigma)

    def by_coordinates(self, part: Complement) -> HeldOut:
        """Through L of A = LQᵀ: always right."""
        root = part.rows.root_weight
        counts = part.counts
        M = counts.n_features
        L, X = self._of_part(self.coordinates[0], part)
        xp = array_namespace(L)
        mean = _means(part)
        mean_L = _mean_of(L, part)
        centring = _Centring.of(root, counts.intercept)
        C = centring.rows(L)
        varying = without_constants(C, mean_L, counts.weight_sum) if counts.intercept else C
        U, sigma, Vt, p = svd_and_rank(varying, M)
        UtT = xp.matmul(xp.matrix_transpose(U), centring.rows(root[:, None] * (part.rows.T - mean[M:])))
        B = xp.matrix_transpose(Vt[:p, :])
        spectrum = spectrum_of(
            counts,
            mean,
            sigma=sigma[:p],
            right=RowVectors(self.coordinates[1], None, B, xp.ones_like(sigma[:p])),
            UtT=UtT[:p, :],
            residual=xp.sum(UtT[p:, :] ** 2, axis=0),
            discarded=sigma[p:],
            left=LeftVectors(centring.undone(U[:, :p]), part.rows.T, root),
        )
        return self._fit(part, spectrum, X - self._held_out_root(part) * mean_L, B)

    def _of_part(self, X: Array, part: Complement) -> tuple[Array, Array]:
        """The rows of a part, and those held out, in coordinates X of all rows."""
        chosen = X if part.index is None else array_namespace(X).take(X, part.index, axis=0)
        return chosen, X[part.held_out, :]

    def _held_out_root(self, part: Complement) -> Array:
        return self.rows.root_weight[part.held_out, None]

    def _fit(self, part: Complement, spectrum: Spectrum, X: Array, B: Array) -> HeldOut:
        T = self._held_out_root(part) * (self.rows.T[part.held_out, :] - spectrum.mean_T)
        return HeldOut(spectrum, array_namespace(X).matmul(X, B), T, 0.0 * spectrum.residual)


def fits_of_folds(problem: WideProblem, folds: Sequence[tuple[WideRows, Counts]]) -> tuple[HeldOut, ...]:
    """For each fold of a problem, the fit of the others, which predicts it without a look at the features."""
    T = problem.rows.T
    parts = []
    stop = 0
    for v, (fold, _) in enumerate(folds):
        start = stop
        stop = start + fold.n_rows
        others = [*folds[:v], *folds[v + 1 :]]
        rows = reduce(WideRows.merge, [some for some, _ in others])
        counts = reduce(Counts.merge, [some for _, some in others])
        index = np.concatenate([np.arange(start), np.arange(stop, T.shape[0])])
        parts.append(
            Complement(rows, counts, array_namespace(T).asarray(index, device=device_of(T)), slice(start, stop))
        )
    problem.inner_products  # noqa: B018 - computed once, before the threads ask for it
    tried = at_once(problem.by_inner_products, parts)
    return tuple(fit or problem.by_coordinates(part) for fit, part in zip(tried, parts, strict=True))


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
        # Root weights are positive, so the sum does not cancel.
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
    xp = array_namespace(K)
    C = K[first:, first:]
    diagonal = xp.linalg.diagonal(K)
    if not C.shape[0] or not bool(xp.all(diagonal < 1.0 / SMALLEST**2)):  # NaN fails too
        return None
    if not bool(xp.all(diagonal[first:] > SMALLEST**2)):
        return None
    R = cholesky(C)
    # Eigenvalues take many times as long as a triangle: most problems that cannot be proved end here.
    if R is None or not _condition_bound(C, R) < KERNEL_CONDITION:
        return None
    lam, U = xp.linalg.eigh(C)
    # Rounding is relative to what was summed, the part of the mean included.
    scale = float(lam[-1]) + float(xp.sum(diagonal[:first]))
    least = float(lam[0])
    if not (least * KERNEL_CONDITION**2 > scale and least > SMALLEST**2 and _NOISE_SHARE * least >= noise**2):
        return None
    return xp.flip(xp.sqrt(lam)), xp.flip(U, axis=1)


def _condition_bound(C: Array, R: Array) -> float:
    """A lower bound of κ(R), C = RᵀR, at a fraction of the cost of eigenvalues: two steps of the power method."""
    xp = array_namespace(R)
    # A start that is the same each time, and that no matrix of data is likely to be orthogonal to.
    b = xp.cos(xp.arange(R.shape[0], dtype=xp.float64, device=device_of(R)) ** 2)[None, :]
    large = xp.matmul(b, C)
    larger = xp.matmul(large, C)
    small = least_squares_weights(R, times_inverse(b, R))
    smaller = least_squares_weights(R, times_inverse(1.0 * small, R))  # a copy: the first argument is overwritten
    with np.errstate(over="ignore"):  # of rows that are equal but for rounding; then the bound is inf or NaN
        norms = [float(xp.linalg.vector_norm(x)) for x in (larger, large, smaller, small)]
    return (norms[0] / norms[1] * norms[2] / norms[3]) ** 0.5 if min(norms) > 0.0 else 1.0


def _means(part: Complement) -> Array:
    """Weighted means of [H | T]; zeros without an intercept."""
    if not part.counts.intercept or part.counts.weight_sum == 0.0:
        return 0.0 * part.counts.shift
    return part.rows.averages((part.rows.root_weight**2 / part.counts.weight_sum)[None, :])[0, :]


def _mean_of(X: Array, part: Complement) -> Array:
    """The mean of rows √w·x of a part in any coordinates; zeros without an intercept."""
    xp = array_namespace(X)
    if not part.counts.intercept or part.counts.weight_sum == 0.0:
        return xp.zeros((X.shape[1],), dtype=xp.float64, device=device_of(X))
    return xp.matmul(part.rows.root_weight, X) / part.counts.weight_sum
