"""`Factor`: the triangular factor of [1 | H | T], all that training needs to know about the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import is_torch_namespace

from ocrep._linalg.arrays import EPS, SMALLEST, Array, array_namespace, device_of, triangle
from ocrep._linalg.counts import Counts, counted
from ocrep._linalg.qdwh import SMALL, svd_by_polar
from ocrep._linalg.spectrum import Spectrum, StoredVectors

FEWEST_COLUMNS = 64


def rank_tolerance(n_columns: int, sigma_1: float) -> float:
    """Singular values up to this size are rounding noise.

    It grows with the columns of R, not with the rows: R carries the same spectrum however many rows
    went into it, and a rank that fell when rows were added would be absurd. Not less than for 64 columns: merging
    block after block leaves about 20·ε·σ₁ in a duplicated column however few there are.
    """
    return max(n_columns, FEWEST_COLUMNS) * EPS * sigma_1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Factor:
    """The R of √w·[1 | H − s | T − s] = QR, and the counts of the rows.

    Factors merge: the factor of all rows is the factor of the stacked factors, in any order. The ones
    column is there only with an intercept; the block behind it is then the factor of the centred data.
    """

    R: Array
    """Upper trapezoidal, with at most as many rows as rows were seen."""
    counts: Counts

    @classmethod
    def of(cls, H: Any, T: Any, *, sample_weight: Any = None, intercept: bool = False) -> Factor:
        """Factor the rows of H (n × M) with their targets T, (n,) or (n × Q)."""
        return cls.fold([(H, T, sample_weight)], intercept=intercept)

    @classmethod
    def fold(
        cls, blocks: Iterable[tuple[Any, ...]], *, intercept: bool | None = None, start: Factor | None = None
    ) -> Factor:
        """Factor row blocks `(H, T)` or `(H, T, sample_weight)` one after the other, holding one at a time.

        With `start`, the rows are added to those of that factor, and `intercept` is its own.
        """
        factor = start
        if start is not None and intercept not in (None, start.counts.intercept):
            raise ValueError(
                f"The factor has intercept={start.counts.intercept}, and intercept={intercept} is asked for."
            )
        for block in blocks:
            design, counts = counted(block, None if factor is None else factor.counts, bool(intercept))
            factor = Factor(_checked_triangle(design if factor is None else _stacked(factor.R, design)), counts)
        if factor is None:
            raise ValueError("There are no row blocks to factor: give at least one (H, T) pair.")
        return factor

    def absorb(self, H: Any, T: Any, *, sample_weight: Any = None) -> Factor:
        """The factor of the rows so far and these: `merge(of(H, T))` for the price of one triangularization."""
        return self.fold([(H, T, sample_weight)], start=self)

    def merge(self, other: Factor) -> Factor:
        """The factor of the rows of both, R = qr([R₁; R₂])."""
        counts = self.counts.merge(other.counts)
        if self.counts.weight_sum == 0.0:
            return other
        return Factor(_checked_triangle(_stacked(self.R, other._shifted_to(counts.shift).R)), counts)

    def spectrum(self) -> Spectrum:
        """The SVD of H (centred with an intercept), from the small R alone."""
        xp = array_namespace(self.R)
        M = self.n_features
        R = self.centred()
        k = min(R.shape[0], M)
        U, sigma, Vt = _svd(R[:k, :M])
        UtT = xp.matmul(xp.matrix_transpose(U), R[:k, M:])
        tolerance = rank_tolerance(M, float(sigma[0]) if k else 0.0)
        p = int(xp.sum(xp.astype(sigma > tolerance, xp.int64)))
        unexplained = xp.concat([UtT[p:, :], R[k:, M:]])
        residual = xp.sum(unexplained * unexplained, axis=0)
        return self.with_svd(sigma[:p], Vt[:p, :], UtT[:p, :], residual, discarded=sigma[p:])

    def with_svd(self, sigma: Array, Vt: Array, UtT: Array, residual: Array, *, discarded: Array) -> Spectrum:
        """The spectrum made of this SVD and the counts of the rows."""
        mean, M = self.means(), self.n_features
        return Spectrum(
            sigma=sigma,
            right=StoredVectors(Vt),
            UtT=UtT,
            residual=residual,
            n=self.counts.n,
            n_rows=self.counts.n_rows,
            weight_sum=self.counts.weight_sum,
            discarded=discarded,
            mean_H=mean[:M],
            mean_T=mean[M:],
            intercept_fitted=self.counts.intercept,
        )

    def leading(self, n_features: int) -> Factor:
        """The factor for the first `n_features` features: the leading block of R, nothing is factored anew."""
        first, M = int(self.counts.intercept), self.n_features
        if not 1 <= n_features <= M:
            raise ValueError(f"There are {M} features: n_features={n_features} is not among 1, …, {M}.")
        xp = array_namespace(self.R)
        m = first + n_features
        rows = min(m, self.R.shape[0])
        top = xp.concat([self.R[:rows, :m], self.R[:rows, first + M :]], axis=1)
        # Below the block only targets remain; their few columns are triangularized again.
        rest = triangle(self.R[rows:, first + M :])
        below = xp.concat([xp.zeros((rest.shape[0], m), dtype=rest.dtype, device=device_of(rest)), rest], axis=1)
        shift = xp.concat([self.counts.shift[:n_features], self.counts.shift[M:]])
        return Factor(xp.concat([top, below]), self.counts.about(shift))

    def select(self, features: Sequence[int] | np.ndarray) -> Factor:
        """The factor for some of the features in a new order, triangularized from R alone."""
        xp, counts = array_namespace(self.R), self.counts
        first, M = int(counts.intercept), self.n_features
        columns = np.concatenate([np.asarray(features, dtype=np.intp), np.arange(M, M + counts.n_targets)])
        index = xp.asarray(np.concatenate([np.arange(first), first + columns]), device=device_of(self.R))
        shift = xp.take(counts.shift, xp.asarray(columns, device=device_of(self.R)), axis=0)
        return Factor(triangle(xp.take(self.R, index, axis=1)), counts.about(shift))

    def squared_error(self, weights: Array, intercept: Array) -> Array:
        """Σ w‖t − hW − b‖² over the rows of this factor, for weights (…, M, Q) and constants (…, Q)."""
        return array_namespace(self.R).sum(self.squared_error_by_target(weights, intercept), axis=-1)

    def squared_error_by_target(self, weights: Array, intercept: Array) -> Array:
        """The same for each target, (…, Q)."""
        xp, shift = array_namespace(self.R), self.counts.shift
        first, M = int(self.counts.intercept), self.n_features
        error = self.R[:, first + M :] - xp.matmul(self.R[:, first : first + M], weights)
        if first:
            about_shift = intercept - shift[M:] + xp.matmul(shift[:M], weights)
            error = error - self.R[:, :1] * about_shift[..., None, :]
        return xp.sum(error * error, axis=-2)

    @property
    def n_features(self) -> int:
        return self.counts.shift.shape[0] - self.counts.n_targets

    def __repr__(self) -> str:
        counts = self.counts
        return (
            f"Factor(n_rows={counts.n_rows}, n_features={counts.n_features}, "
            f"n_targets={counts.n_targets}, intercept={counts.intercept})"
        )

    def _shifted_to(self, shift: Array) -> Factor:
        """The same rows about another shift: only the row that belongs to the ones column changes."""
        if not self.counts.intercept or self.R.shape[0] == 0:
            return self
        xp = array_namespace(self.R)
        top = xp.concat([self.R[0, :1], self.R[0, 1:] + self.R[0, 0] * (self.counts.shift - shift)])
        return Factor(xp.concat([top[None, :], self.R[1:, :]]), self.counts.about(shift))

    def means(self) -> Array:
        """Weighted column means of [H | T]; zeros without an intercept."""
        counts = self.counts
        if not counts.intercept or counts.weight_sum == 0.0:
            return counts.shift
        return counts.shift + self.R[0, 1:] / self.R[0, 0]

    def centred(self) -> Array:
        """The block behind the ones column; columns that are constant up to rounding become exactly zero.

        Rounding leaves noise of size ε·|mean|·√Σw in them, and the rank tolerance, relative to σ₁, cannot see that
        when all columns are constant.
        """
        if not self.counts.intercept:
            return self.R
        xp = array_namespace(self.R)
        R = self.R[1:, 1:]
        noise = 4.0 * EPS * self.counts.weight_sum**0.5 * xp.abs(self.means())
        varies = xp.sqrt(xp.sum(R * R, axis=0)) > noise
        return xp.where(varies, R, xp.zeros((), dtype=R.dtype, device=device_of(R)))

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"R": np.asarray(self.R), **self.counts.to_arrays()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Factor:
        return cls(arrays["R"], Counts.from_arrays(arrays))


def _stacked(above: Array, below: Array) -> Array:
    return array_namespace(above).concat([above, below])


def _checked_triangle(rows: Array) -> Array:
    R = triangle(rows)
    # Written so that NaN fails too.
    if not bool(array_namespace(R).all(array_namespace(R).abs(R) < 1.0 / SMALLEST)):
        raise ValueError("The rows hold numbers so large that their squares overflow: rescale the columns.")
    return R


def _svd(R: Array) -> tuple[Array, Array, Array]:
    """U, σ (descending) and Vᵀ of an upper trapezoidal R, by whatever its device does fast."""
    xp = array_namespace(R)
    large = R.shape[0] == R.shape[1] >= SMALL
    found = svd_by_polar(R) if large and is_torch_namespace(xp) and R.is_cuda else None
    return found or xp.linalg.svd(R, full_matrices=False)
