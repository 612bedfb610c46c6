"""`Factor`: the triangular factor of [1 | H | T], all that training needs to know about the rows.

Let A = √w·[1 | H − s] hold the features of some rows, and A = QR. The factor of stacked rows is the factor of the
stacked factors: A₁ = Q₁R₁ and A₂ = Q₂R₂ give

    [A₁; A₂] = diag(Q₁, Q₂)·[R₁; R₂],   [R₁; R₂] = QR,

and the targets √w·(T − s) go along as further columns, of which QᵀT is kept. Whatever the rows are cut into, and in
whichever order the parts are merged, RᵀR = AᵀA. Orthogonal matrices keep lengths, so the errors of merges do not
multiply but add up, ε of each column's length each time (communication-avoiding QR: Demmel, Grigori, Hoemmen, Langou,
SIAM J. Sci. Comput. 34, 2012). Adding n rows to the R of k features costs 2(n + k)k² flops, merging two factors 4k³.

The column of ones comes first. So R = [r₁₁ ρ; 0 C] with r₁₁ = ±√Σw: ρ/r₁₁ is the mean about s, and C is the factor of
the centred data: an intercept costs no second reading of the rows. A merge of factors about different shifts s and s′
first moves one of them: H − s′ = (H − s) + 1·(s − s′) changes the row of the ones alone, ρ ← ρ + r₁₁(s − s′). The
leading m columns of R are the factor of the first m features, and what the other rows of QᵀT hold becomes residual.

With fewer rows than features R would be a dense n × M trapezoid, no smaller than the rows, and cost 2n²M to make. Such
rows are kept as they came (`wide.py`), and triangularized once they are as many as the features, or if R is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from ocrep._linalg.arrays import Array, array_namespace, device_of, matmul_each
from ocrep._linalg.rows import Counts, Encoded
from ocrep._linalg.spectrum import HeldOut, Spectrum, StoredVectors, spectrum_of
from ocrep._linalg.triangle import DesignRows, Triangle, are_varying, column_lengths, svd_and_rank, without_constants
from ocrep._linalg.triangle import rank_tolerance as rank_tolerance
from ocrep._linalg.wide import WideProblem, WideRows


@dataclass(frozen=True, eq=False, repr=False)
class Factor:
    """The R of √w·[1 | H − s] = QR with QᵀT and the length of each target's residual, and the counts of the rows.

    Factors merge: the factor of all rows is the factor of the stacked factors, in any order. The ones column is there
    only with an intercept; the block behind it is then the factor of the centred data. As long as rows are fewer than
    features, they are kept as they came, and R is computed only if it is asked for.

    Parameters
    ----------
    triangular : Triangle or None
        R, where it was computed already.
    counts : Counts
        The counts of the rows.
    rows : WideRows or None
        The rows, as long as they are fewer than the features.

    Examples
    --------
    >>> import numpy as np
    >>> from ocrep import Factor
    >>> H, T = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 3.0]]), np.array([1.0, 3.0, 5.0, 7.0])
    >>> factor = Factor.of(H, T)
    >>> factor.spectrum().weights(0.0)[:, 0].round(6)
    array([1., 2.])
    >>> Factor.fold([(H[:1], T[:1]), (H[1:2], T[1:2])]).absorb(H[2:3], T[2:3]).merge(Factor.of(H[3:], T[3:]))
    Factor(n_rows=4, n_features=2, n_targets=1, intercept=False)
    >>> factor.leading(1).n_features + factor.select([1]).n_features
    2
    """

    triangular: Triangle | None
    counts: Counts
    rows: WideRows | None = None

    @classmethod
    def of(cls, H: Any, T: Any, *, sample_weight: Any = None, intercept: bool = False) -> Factor:
        """Factor rows with their targets.

        Parameters
        ----------
        H, T : array
            Features, (n, M), and targets, (n,) or (n, Q).
        sample_weight : array of shape (n,), default=None
            Weights ≥ 0.
        intercept : bool, default=False
            Whether a ones column comes first.

        Returns
        -------
        Factor
            The factor of the rows.
        """
        return cls.fold([(H, T, sample_weight)], intercept=intercept)

    @classmethod
    def fold(
        cls,
        blocks: Iterable[tuple[Any, ...]],
        *,
        intercept: bool | None = None,
        start: Factor | None = None,
        copy: bool = True,
        scratch: np.ndarray | None = None,
    ) -> Factor:
        """Factor row blocks one after the other, holding one at a time.

        Parameters
        ----------
        blocks : iterable of tuples
            Blocks `(H, T)` or `(H, T, sample_weight)`.
        intercept : bool or None, default=None
            Whether a ones column comes first; with `start`, as in `start`.
        start : Factor or None, default=None
            A factor to which the rows are added.
        copy : bool, default=True
            False promises that nobody changes the arrays later, since rows fewer than features are kept.
        scratch : array or None, default=None
            Memory for a copy of the features of a block.

        Returns
        -------
        Factor
            The factor of all rows.
        """
        factor = start
        if start is not None and intercept not in (None, start.counts.intercept):
            own = start.counts.intercept
            raise ValueError(f"The factor has intercept={own}, and intercept={intercept} is asked for.")
        for block in blocks:
            new = Encoded.of(*block)
            xp = array_namespace(new.H)
            if not all(bool(xp.all(xp.isfinite(part))) for part in (new.H, new.T)):
                raise ValueError("H or T holds NaN or infinity: remove or impute such rows.")
            counts = (Counts.none(new, bool(intercept)) if factor is None else factor.counts).add(new)
            # A few rows are kept as they came, until they are as many as the features; a triangle stays a triangle.
            kept = None if factor is None else factor.rows
            if counts.n_rows < counts.n_features and (factor is None or kept is not None):
                rows = WideRows.of(new, copy=copy)
                factor = Factor(None, counts, rows if kept is None else kept.merge(rows))
            else:
                # Ones and features stay apart: `Triangle` copies both into the matrix that LAPACK overwrites.
                H, rest = new.parts(counts.shift, counts.intercept, scratch)
                part = ((rest[:, :1], H), rest[:, 1:]) if counts.intercept else ((H,), rest)
                so_far = () if factor is None else (factor,)
                factor = Factor(_merged_triangle(counts, *so_far, rows=[part]), counts)
        if factor is None:
            raise ValueError("There are no row blocks to factor: give at least one (H, T) pair.")
        return factor

    def absorb(self, H: Any, T: Any, *, sample_weight: Any = None) -> Factor:
        """Add rows: `merge(of(H, T))` at the cost of one triangularization.

        Parameters
        ----------
        H, T, sample_weight : array
            As in `of`.

        Returns
        -------
        Factor
            The factor of the rows so far and these.
        """
        return self.fold([(H, T, sample_weight)], start=self)

    def merge(self, other: Factor) -> Factor:
        """Join the rows of two factors, R = qr([R₁; R₂]).

        Parameters
        ----------
        other : Factor
            The factor of other rows with the same columns.

        Returns
        -------
        Factor
            The factor of the rows of both.
        """
        counts = self.counts.merge(other.counts)
        if self.counts.weight_sum == 0.0:
            return other
        # Rows are kept as they are as long as both together are fewer than the features.
        if self.rows and other.rows and self.rows.n_rows + other.rows.n_rows < counts.n_features:
            return Factor(None, counts, self.rows.merge(other.rows))
        return Factor(_merged_triangle(counts, self, other), counts)

    @cached_property
    def triangle(self) -> Triangle:
        """The triangle of the rows."""
        return self.triangular or _merged_triangle(self.counts, self)

    @cached_property
    def problem(self) -> WideProblem | None:
        """The rows as a problem of as many dimensions as rows, where they are fewer than the features."""
        return None if self.rows is None else WideProblem(self.rows, self.counts)

    def spectrum(self) -> Spectrum:
        """Decompose H (centred with an intercept), from the small R alone, or from rows fewer than features.

        Returns
        -------
        Spectrum
            The SVD, and all that depends on γ.
        """
        if self.problem is not None:
            return self.problem.spectrum()
        centred = self.centred()
        xp = array_namespace(centred.R)
        U, sigma, Vt, p = svd_and_rank(centred.R, self.n_features)
        UtT = xp.matmul(xp.matrix_transpose(U), centred.QtT)
        return spectrum_of(
            self.counts,
            self.means(),
            sigma=sigma[:p],
            right=StoredVectors(Vt[:p, :]),
            UtT=UtT[:p, :],
            # Directions beyond the rank are rounding noise: what they would explain counts as residual.
            residual=xp.sum(UtT[p:, :] ** 2, axis=0) + centred.left**2,
            discarded=sigma[p:],
        )

    def leading(self, n_features: int) -> Factor:
        """Keep the first features: the leading block of R, nothing is factored anew.

        Parameters
        ----------
        n_features : int
            How many.

        Returns
        -------
        Factor
            The factor for these features.
        """
        M = self.n_features
        if not 1 <= n_features <= M:
            raise ValueError(f"There are {M} features: n_features={n_features} is not among 1, …, {M}.")
        xp = array_namespace(self.counts.shift)
        shift = xp.concat([self.counts.shift[:n_features], self.counts.shift[M:]])
        if self.rows and self.rows.n_rows < n_features:
            return Factor(None, self.counts.about(shift), self.rows.leading(n_features))
        whole = self.triangle
        m = int(self.counts.intercept) + n_features
        n = min(m, whole.R.shape[0])  # rows fewer than features have as many rows in their triangle
        # What only the other features explained is residual now.
        left = xp.sqrt(whole.left**2 + xp.sum(whole.QtT[n:, :] ** 2, axis=0))
        return Factor(Triangle(whole.R[:n, :m], whole.QtT[:n, :], left), self.counts.about(shift))

    def select(self, features: Sequence[int] | np.ndarray) -> Factor:
        """Keep some of the features in a new order, triangularized from R alone.

        Parameters
        ----------
        features : sequence of int
            Their numbers.

        Returns
        -------
        Factor
            The factor for these features.
        """
        whole = self.triangle
        counts = self.counts
        xp = array_namespace(whole.R)
        device = device_of(whole.R)
        chosen = np.asarray(features, dtype=np.intp)
        n_ones = int(counts.intercept)
        columns = np.concatenate([np.arange(n_ones), n_ones + chosen])
        shift_H = xp.take(counts.shift, xp.asarray(chosen, device=device), axis=0)
        shift = xp.concat([shift_H, counts.shift[self.n_features :]])
        R = xp.take(whole.R, xp.asarray(columns, device=device), axis=1)
        return Factor(Triangle.of(R, whole.QtT, whole.left), counts.about(shift))

    def squared_error_by_target(self, weights: Array, intercept: Array) -> Array:
        """Σ w(t − hW − b)² over the rows of this factor for each target, for weights (…, M, Q) and constants (…, Q)."""
        shift = self.counts.shift
        M = self.n_features
        xp = array_namespace(shift)
        total = 0.0 * weights[..., 0, :]
        if self.rows is None:
            total = total + self.triangle.left**2
        about_shift = intercept - shift[M:] + xp.matmul(shift[:M], weights)
        for ones, H, T in _pieces(self):
            # t − hW − b about the shift s: (t − s_T) − (h − s_H)W − (b − s_T + s_H·W).
            error = T - matmul_each(H, weights)
            if self.counts.intercept:
                error = error - ones * about_shift[..., None, :]
            total = total + xp.sum(error * error, axis=-2)
        return total

    def held_out(self, spectrum: Spectrum) -> HeldOut:
        """The rows of this factor as the fit of other rows, whose spectrum this is, predicts them."""
        xp = array_namespace(self.counts.shift)
        M = self.n_features
        mean = xp.concat([spectrum.mean_H, spectrum.mean_T]) - self.counts.shift
        parts = []
        for ones, H, T in _pieces(self):
            if self.counts.intercept:
                H = H - ones * mean[:M]
                T = T - ones * mean[M:]
            parts.append((spectrum.right.coordinates(H), T))
        left = 0.0 * spectrum.residual if self.triangular is None else self.triangular.left
        P, T = (xp.concat(list(columns)) for columns in zip(*parts, strict=True))
        return HeldOut(spectrum, P, T, left)

    @property
    def n_features(self) -> int:
        """The number of features M."""
        return self.counts.n_features

    def __repr__(self) -> str:
        counts = self.counts
        return (
            f"Factor(n_rows={counts.n_rows}, n_features={counts.n_features}, "
            f"n_targets={counts.n_targets}, intercept={counts.intercept})"
        )

    def means(self) -> Array:
        """Weighted column means of [H | T]; zeros without an intercept."""
        counts = self.counts
        if not counts.intercept or counts.weight_sum == 0.0:
            return counts.shift
        if self.rows:
            return self.rows.averages((self.rows.root_weight**2 / counts.weight_sum)[None, :])[0, :]
        # The row of the ones column is √Σw·[1 | means about the shift], up to its sign.
        R = self.triangle.R
        QtT = self.triangle.QtT
        return counts.shift + array_namespace(R).concat([R[0, 1:], QtT[0, :]]) / R[0, 0]

    def centred(self) -> Triangle:
        """The block behind the ones column; columns that are constant up to rounding become exactly zero."""
        whole = self.triangle
        if not self.counts.intercept:
            return whole
        xp = array_namespace(whole.R)
        mean = self.means()
        M = self.n_features
        weight_sum = self.counts.weight_sum
        R = without_constants(whole.R[1:, 1:], mean[:M], weight_sum)
        QtT = whole.QtT[1:, :]
        left = whole.left
        # A target's length about its mean is in QᵀT and in what is left of it.
        varies = are_varying(column_lengths(xp.concat([QtT, left[None, :]])), mean[M:], weight_sum)
        return Triangle(R, xp.where(varies, QtT, xp.zeros_like(QtT)), xp.where(varies, left, xp.zeros_like(left)))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out of pickles and copies what can be computed again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {**self.triangle.to_arrays(), **self.counts.to_arrays()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Factor:
        return cls(Triangle.from_arrays(arrays), Counts.from_arrays(arrays))


def _merged_triangle(counts: Counts, *factors: Factor, rows: Sequence[DesignRows] = ()) -> Triangle:
    """The triangle of the rows of several factors, about the shift of `counts`, and of further rows [F | T]."""
    parts: list[DesignRows] = []
    for factor in factors:
        F, T = root_about(factor, counts.shift)
        parts.append(((F,), T))
    # Rows that are kept as they are have no residual of their own yet.
    lefts = (factor.triangle.left for factor in factors if factor.rows is None)
    return Triangle.of_parts([*parts, *rows], *lefts)


def root_about(factor: Factor, shift: Array) -> tuple[Array, Array]:
    """Rows [F | T] with the inner products of √w·[1 | H − s | T − s] about another shift s.

    In a triangle, only the row that belongs to the ones column changes.
    """
    counts = factor.counts
    rows = factor.rows
    M = counts.n_features
    xp = array_namespace(shift)
    if rows:
        root = rows.root_weight[:, None]
        ones = [root] if counts.intercept else []
        return xp.concat([*ones, rows.features(shift[:M])], axis=1), root * (rows.T - shift[M:])
    R = factor.triangle.R
    QtT = factor.triangle.QtT
    if not counts.intercept or R.shape[0] == 0:
        return R, QtT
    moved = R[0, 0] * (counts.shift - shift)
    top = xp.concat([R[0, :1], R[0, 1:] + moved[:M]])[None, :]
    return xp.concat([top, R[1:, :]]), xp.concat([(QtT[0, :] + moved[M:])[None, :], QtT[1:, :]])


def _pieces(factor: Factor) -> Iterator[tuple[Array, Array, Array]]:
    """√w·1, √w·(H − s) and √w·(T − s) piece by piece, or the triangle in their place, which has their products."""
    rows = factor.rows
    if rows is None:
        triangle = factor.triangular
        assert triangle is not None
        yield triangle.R[:, :1], triangle.R[:, int(factor.counts.intercept) :], triangle.QtT
        return
    shift = factor.counts.shift
    M = factor.n_features
    for part, H in rows.pieces(shift[:M]):
        ones = rows.root_weight[part, None]
        yield ones, H, ones * (rows.T[part, :] - shift[M:])
