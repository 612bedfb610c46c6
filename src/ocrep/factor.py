"""`Factor`: the triangular factor of [1 | H | T], all that training needs to know about the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ocrep.kernels import EPS, SMALLEST, Array, array_namespace, as_float64, device_of, triangle
from ocrep.spectrum import Spectrum, rank_tolerance


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
        rows = _Rows.of(H, T, sample_weight)
        xp = array_namespace(rows.HT)
        width = rows.HT.shape[1] + int(intercept)
        empty = cls(
            R=xp.zeros((0, width), dtype=xp.float64, device=device_of(rows.HT)),
            shift=rows.zeros(),
            n_targets=rows.n_targets,
            intercept=intercept,
            n_rows=0,
            weight_sum=0.0,
            whole_weights=True,
        )
        return empty._absorb(rows)

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
        return self._absorb(_Rows.of(H, T, sample_weight))

    def merge(self, other: Factor) -> Factor:
        """The factor of the rows of both, R = qr([R₁; R₂])."""
        self._check_same_columns(other.n_features, other.n_targets)
        _check_same_intercept(self.intercept, other.intercept)
        if self.weight_sum == 0.0:
            return other  # whose shift is the better one
        return self._stack(other._shifted_to(self.shift).R, other.n_rows, other.weight_sum, other.whole_weights)

    def spectrum(self) -> Spectrum:
        """The SVD of H (centred with an intercept), from the small R alone."""
        xp = array_namespace(self.R)
        M = self.n_features
        R = self.centred()
        k = min(R.shape[0], M)
        U, sigma, Vt = xp.linalg.svd(R[:k, :M], full_matrices=False)
        UtT = xp.matmul(xp.matrix_transpose(U), R[:k, M:])
        tolerance = rank_tolerance(M, float(sigma[0]) if k else 0.0)
        p = int(xp.sum(xp.astype(sigma > tolerance, xp.int64)))
        unexplained = xp.concat([UtT[p:, :], R[k:, M:]])
        mean = self.means()
        return Spectrum(
            sigma=sigma[:p],
            Vt=Vt[:p, :],
            UtT=UtT[:p, :],
            residual=xp.sum(unexplained * unexplained, axis=0),
            n=self.n,
            n_rows=self.n_rows,
            weight_sum=self.weight_sum,
            discarded=sigma[p:],
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
        top = xp.concat([self.R[:m, :m], self.R[:m, first + M :]], axis=1)
        # Below the block only targets are left; their few columns are triangularized again.
        rest = triangle(self.R[m:, first + M :])
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

    def _absorb(self, rows: _Rows) -> Factor:
        self._check_same_columns(rows.HT.shape[1] - rows.n_targets, rows.n_targets)
        # While no row counted yet, R is zero about any shift: take that of the first rows that do.
        base = replace(self, shift=rows.mean()) if self.intercept and self.weight_sum == 0.0 else self
        return base._stack(
            rows.design(base.shift, self.intercept), rows.n_positive, rows.weight_sum, rows.whole_weights
        )

    def _stack(self, below: Array, n_rows: int, weight_sum: float, whole_weights: bool) -> Factor:
        xp = array_namespace(self.R)
        R = triangle(xp.concat([self.R, below]))
        # Written so that NaN fails too.
        if not bool(xp.all(xp.abs(R) < 1.0 / SMALLEST)):
            raise ValueError("The rows hold numbers so large that their squares overflow: rescale the columns.")
        return replace(
            self,
            R=R,
            n_rows=self.n_rows + n_rows,
            weight_sum=self.weight_sum + weight_sum,
            whole_weights=self.whole_weights and whole_weights,
        )

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


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """One checked block of rows [H | T] with its weights."""

    HT: Array
    n_targets: int
    weight: Array | None

    @classmethod
    def of(cls, H: Any, T: Any, sample_weight: Any) -> _Rows:
        H, T = as_float64(H), as_float64(T)
        T = T[:, None] if T.ndim == 1 else T
        if H.ndim != 2 or T.ndim != 2 or H.shape[0] != T.shape[0]:
            raise ValueError(
                f"H must be rows × features and T rows × targets with as many rows; got shapes {H.shape} and {T.shape}."
            )
        weight = None if sample_weight is None else as_float64(sample_weight)
        if weight is not None:
            _check_weights(weight, H.shape[0])
        xp = array_namespace(H, T)
        HT = xp.concat([H, T], axis=1)
        if not bool(xp.all(xp.isfinite(HT))):
            raise ValueError("H or T holds NaN or infinity: remove or impute such rows.")
        return cls(HT, T.shape[1], weight)

    @property
    def n_positive(self) -> int:
        if self.weight is None:
            return self.HT.shape[0]
        xp = array_namespace(self.weight)
        return int(xp.sum(xp.astype(self.weight > 0, xp.int64)))

    @property
    def weight_sum(self) -> float:
        if self.weight is None:
            return float(self.HT.shape[0])
        return float(array_namespace(self.weight).sum(self.weight))

    @property
    def whole_weights(self) -> bool:
        if self.weight is None:
            return True
        xp = array_namespace(self.weight)
        # Beyond 2³¹ every float64 is nearly a whole number, and none is a frequency.
        return bool(xp.all((self.weight == xp.floor(self.weight)) & (self.weight < 2.0**31)))

    def mean(self) -> Array:
        """Weighted column means, zeros when no row counts."""
        xp = array_namespace(self.HT)
        if self.weight_sum == 0.0:
            return self.zeros()
        if self.weight is None:
            return xp.mean(self.HT, axis=0)
        return xp.matmul(self.weight / self.weight_sum, self.HT)

    def zeros(self) -> Array:
        xp = array_namespace(self.HT)
        return xp.zeros((self.HT.shape[1],), dtype=xp.float64, device=device_of(self.HT))

    def design(self, shift: Array, intercept: bool) -> Array:
        """√w·[1 | H − s | T − s]."""
        xp = array_namespace(self.HT)
        rows = self.HT
        if intercept:
            ones = xp.ones((rows.shape[0], 1), dtype=xp.float64, device=device_of(rows))
            rows = xp.concat([ones, rows - shift], axis=1)
        return rows if self.weight is None else xp.sqrt(self.weight)[:, None] * rows


def _check_same_intercept(one: bool, other: bool) -> None:
    if one != other:
        raise ValueError("One factor has an intercept and the other has none: they cannot be merged.")


def _check_weights(weight: Array, n_rows: int) -> None:
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight must have one entry per row, shape ({n_rows},); got {weight.shape}.")
    xp = array_namespace(weight)
    if not bool(xp.all((weight >= 0.0) & (weight < 1.0 / SMALLEST))):
        raise ValueError("sample_weight holds negative, NaN or infinite entries: weights must be ≥ 0 and below 1e145.")
