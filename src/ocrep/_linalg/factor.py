"""`Factor`: the triangular factor of [1 | H | T], all that training needs to know about the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ocrep._linalg.arrays import EPS, SMALLEST, Array, array_namespace, device_of, triangle
from ocrep._linalg.qdwh import svd_of_triangle
from ocrep._linalg.row_block import RowBlock
from ocrep._linalg.spectrum import Spectrum, rank_tolerance


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Factor:
    """The R of √w·[1 | H − s | T − s] = QR, and the counts that the rows leave behind.

    Factors merge: the factor of all rows is the factor of the stacked factors, in any order. The ones
    column is there only with an intercept; the block behind it is then the factor of the centred data.
    The shift s, the mean of the first rows seen, changes nothing in exact arithmetic, but a column such
    as 10⁶ ± 1 would otherwise lose six digits before it is centred. Without an intercept s is zero.
    """

    R: Array
    """Upper trapezoidal, with at most as many rows as rows were seen."""
    shift: Array
    n_targets: int
    intercept: bool
    n_rows: int
    """Rows of positive weight."""
    weight_sum: float
    whole_weights: bool
    """Whether every weight was a whole number."""

    @classmethod
    def of(cls, H: Any, T: Any, *, sample_weight: Any = None, intercept: bool = False) -> Factor:
        """Factor the rows of H (n × M) with their targets T, (n,) or (n × Q)."""
        rows = RowBlock.of(H, T, sample_weight)
        return cls.empty(rows, intercept)._absorb(rows)

    @classmethod
    def empty(cls, rows: RowBlock, intercept: bool) -> Factor:
        """The factor of no rows, with columns such as these."""
        xp = array_namespace(rows.H)
        shift = rows.zeros()
        return cls(
            R=xp.zeros((0, shift.shape[0] + int(intercept)), dtype=xp.float64, device=device_of(rows.H)),
            shift=shift,
            n_targets=rows.T.shape[1],
            intercept=intercept,
            n_rows=0,
            weight_sum=0.0,
            whole_weights=True,
        )

    @classmethod
    def fold(
        cls, blocks: Iterable[tuple[Any, ...]], *, intercept: bool | None = None, start: Factor | None = None
    ) -> Factor:
        """Factor row blocks `(H, T)` or `(H, T, sample_weight)` one after the other, holding one at a time.

        With `start`, the rows are added to those of that factor, and `intercept` is its own.
        """
        factor = start
        if start is not None and intercept is not None:
            _check_same_intercept(start.intercept, intercept)
        for H, T, *weight in blocks:
            sample_weight = weight[0] if weight else None
            if factor is None:
                factor = cls.of(H, T, sample_weight=sample_weight, intercept=bool(intercept))
            else:
                factor = factor.absorb(H, T, sample_weight=sample_weight)
        if factor is None:
            raise ValueError("There are no row blocks to factor: give at least one (H, T) pair.")
        return factor

    def absorb(self, H: Any, T: Any, *, sample_weight: Any = None) -> Factor:
        """The factor of the rows so far and these: `merge(of(H, T))` for the price of one triangularization."""
        return self._absorb(RowBlock.of(H, T, sample_weight))

    def merge(self, other: Factor) -> Factor:
        """The factor of the rows of both, R = qr([R₁; R₂])."""
        self._check_same_columns(other.n_features, other.n_targets)
        _check_same_intercept(self.intercept, other.intercept)
        if self.weight_sum == 0.0:
            return other  # whose shift is the better one
        counted = replace(
            self,
            n_rows=self.n_rows + other.n_rows,
            weight_sum=self.weight_sum + other.weight_sum,
            whole_weights=self.whole_weights and other.whole_weights,
        )
        return counted._stack(other._shifted_to(self.shift).R)

    def spectrum(self) -> Spectrum:
        """The SVD of H (centred with an intercept), from the small R alone."""
        xp = array_namespace(self.R)
        M = self.n_features
        R = self.centred()
        k = min(R.shape[0], M)
        U, sigma, Vt = svd_of_triangle(R[:k, :M])
        UtT = xp.matmul(xp.matrix_transpose(U), R[:k, M:])
        tolerance = rank_tolerance(M, float(sigma[0]) if k else 0.0)
        p = int(xp.sum(xp.astype(sigma > tolerance, xp.int64)))
        unexplained = xp.concat([UtT[p:, :], R[k:, M:]])
        residual = xp.sum(unexplained * unexplained, axis=0)
        return self.with_svd(sigma[:p], Vt[:p, :], UtT[:p, :], residual, discarded=sigma[p:])

    def with_svd(self, sigma: Array, Vt: Array, UtT: Array, residual: Array, *, discarded: Array) -> Spectrum:
        """The spectrum made of this SVD and what the factor knows of the rows."""
        mean, M = self.means(), self.n_features
        return Spectrum(
            sigma=sigma,
            Vt=Vt,
            UtT=UtT,
            residual=residual,
            n=self.n,
            n_rows=self.n_rows,
            weight_sum=self.weight_sum,
            discarded=discarded,
            mean_H=mean[:M],
            mean_T=mean[M:],
            intercept_fitted=self.intercept,
        )

    def leading(self, n_features: int) -> Factor:
        """The factor for the first `n_features` features: the leading block of R, nothing is factored anew."""
        first, M = int(self.intercept), self.n_features
        if not 1 <= n_features <= M:
            raise ValueError(f"There are {M} features: n_features={n_features} is not among 1, …, {M}.")
        xp = array_namespace(self.R)
        m = first + n_features
        rows = min(m, self.R.shape[0])
        top = xp.concat([self.R[:rows, :m], self.R[:rows, first + M :]], axis=1)
        # Below the block only targets are left; their few columns are triangularized again.
        rest = triangle(self.R[rows:, first + M :])
        below = xp.concat([xp.zeros((rest.shape[0], m), dtype=rest.dtype, device=device_of(rest)), rest], axis=1)
        return replace(
            self,
            R=xp.concat([top, below]),
            shift=xp.concat([self.shift[:n_features], self.shift[M:]]),
        )

    def select(self, features: Sequence[int] | np.ndarray) -> Factor:
        """The factor for some of the features in a new order, triangularized from R alone."""
        xp = array_namespace(self.R)
        first, M = int(self.intercept), self.n_features
        kept = np.asarray(features, dtype=np.intp)
        targets = np.arange(M, M + self.n_targets)
        columns = np.concatenate([kept, targets])
        index = xp.asarray(np.concatenate([np.arange(first), first + columns]), device=device_of(self.R))
        shift = xp.take(self.shift, xp.asarray(columns, device=device_of(self.R)), axis=0)
        return replace(self, R=triangle(xp.take(self.R, index, axis=1)), shift=shift)

    def squared_error(self, weights: Array, intercept: Array) -> Array:
        """Σ w‖t − hW − b‖² over the rows of this factor, for weights (…, M, Q) and constants (…, Q)."""
        return array_namespace(self.R).sum(self.squared_error_by_target(weights, intercept), axis=-1)

    def squared_error_by_target(self, weights: Array, intercept: Array) -> Array:
        """The same for each target, (…, Q)."""
        xp = array_namespace(self.R)
        first, M = int(self.intercept), self.n_features
        left = self.R[:, first + M :] - xp.matmul(self.R[:, first : first + M], weights)
        if first:
            about_shift = intercept - self.shift[M:] + xp.matmul(self.shift[:M], weights)
            left = left - self.R[:, :1] * about_shift[..., None, :]
        return xp.sum(left * left, axis=-2)

    @property
    def n_features(self) -> int:
        """Columns of H."""
        return self.shift.shape[0] - self.n_targets

    @property
    def n(self) -> int:
        """Observations: rows of positive weight, each counted as often as its weight says if all are whole.

        Whole weights are frequencies, so weights and repeated rows give the same answer under every rule;
        other weights only say how precise a row is, and rescaling them must not change the count.
        """
        return round(self.weight_sum) if self.whole_weights else self.n_rows

    def __repr__(self) -> str:
        return (
            f"Factor(n_rows={self.n_rows}, n_features={self.n_features}, "
            f"n_targets={self.n_targets}, intercept={self.intercept})"
        )

    def counting(self, rows: RowBlock) -> Factor:
        """The same R with the counts of `rows` added, whatever R they will lead to."""
        self._check_same_columns(rows.H.shape[1], rows.T.shape[1])
        # While no row counted yet, R is zero about any shift: take that of the first rows that do.
        fresh = self.intercept and self.weight_sum == 0.0
        return replace(
            self,
            shift=rows.mean() if fresh else self.shift,
            n_rows=self.n_rows + rows.n_positive,
            weight_sum=self.weight_sum + rows.weight_sum,
            whole_weights=self.whole_weights and rows.whole_weights,
        )

    def _absorb(self, rows: RowBlock) -> Factor:
        rows.refuse_nan()
        counted = self.counting(rows)
        return counted._stack(rows.design(counted.shift, self.intercept))

    def _stack(self, below: Array) -> Factor:
        xp = array_namespace(self.R)
        R = triangle(xp.concat([self.R, below]))
        # Written so that NaN fails too.
        if not bool(xp.all(xp.abs(R) < 1.0 / SMALLEST)):
            raise ValueError("The rows hold numbers so large that their squares overflow: rescale the columns.")
        return replace(self, R=R)

    def _shifted_to(self, shift: Array) -> Factor:
        """The same rows about another shift: only the row that belongs to the ones column changes."""
        if not self.intercept or self.R.shape[0] == 0:
            return self
        xp = array_namespace(self.R)
        top = xp.concat([self.R[0, :1], self.R[0, 1:] + self.R[0, 0] * (self.shift - shift)])
        return replace(self, R=xp.concat([top[None, :], self.R[1:, :]]), shift=shift)

    def means(self) -> Array:
        """Weighted column means of [H | T]; zeros without an intercept."""
        if not self.intercept or self.weight_sum == 0.0:
            return self.shift
        return self.shift + self.R[0, 1:] / self.R[0, 0]

    def centred(self) -> Array:
        """The block behind the ones column; columns that are constant up to rounding become exactly zero.

        What is left of them is noise of size ε·|mean|·√Σw, and the rank tolerance, relative to σ₁, cannot see that
        when all columns are constant.
        """
        if not self.intercept:
            return self.R
        xp = array_namespace(self.R)
        R = self.R[1:, 1:]
        noise = 4.0 * EPS * self.weight_sum**0.5 * xp.abs(self.means())
        varies = xp.sqrt(xp.sum(R * R, axis=0)) > noise
        return xp.where(varies, R, xp.zeros((), dtype=R.dtype, device=device_of(R)))

    def _check_same_columns(self, n_features: int, n_targets: int) -> None:
        if (n_features, n_targets) != (self.n_features, self.n_targets):
            raise ValueError(
                f"These rows have {n_features} features and {n_targets} targets, but the factor has "
                f"{self.n_features} and {self.n_targets}: all blocks must have the same columns."
            )


def _check_same_intercept(one: bool, other: bool) -> None:
    if one != other:
        raise ValueError("One factor has an intercept and the other has none: they cannot be merged.")
