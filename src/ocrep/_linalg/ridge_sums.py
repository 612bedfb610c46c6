"""Ridge regression from sums over rows: the held-out errors of a layer, fast enough to try many layers.

For the rows of each fold v let S_v be the sums Σw, Σw·z and Σw·zzᵀ of z = [h | t] about a common shift. Sums add up, so
those of all rows but the fold are Σ_{u≠v} S_u. About their mean they give A = CᵀC and B = CᵀT, and the weights fitted
without the fold are W = (A + γI)⁻¹B, from one Cholesky factor for each γ: M³/3 multiplications, a tenth of what
eigenvalues and vectors cost. The squared error on the fold is a quadratic form of its own sums,

    Σw‖t − hW − b‖² = Σ_q z_qᵀ S_v z_q,  z_q = (−W_q, e_q) and its constant.

Which digits this costs. A is rounded by about ε·tr(A), which acts as a change of γ by that much would. So γ stays above
10⁻¹²·tr(A), where it is wrong by 10⁻⁴ at most. The quadratic form is rounded by ε·tr(S_v)·‖z_q‖²; it only chooses γ.
Errors that are shown come from predictions of the rows themselves, and output weights that are kept get a step of
refinement against the rows where γ is that small and the sample holds all rows (`refined`). It squares what their
error was: 10⁻⁴ becomes 10⁻⁸. Models that need every digit of the spectrum are trained by `solve`.

The error as a function of log γ mostly has one minimum, and is flat about it: `best_gamma` walks downhill in
steps of two decades on the first fold, then in steps of one on all of them, and takes the vertex of the parabola
through the three errors about the least.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ocrep._linalg.arrays import EPS, Array, array_namespace, device_of, to_host, with_rows
from ocrep._linalg.parallel import row_slices
from ocrep._linalg.rows import Encoded

# γ is at least this much of tr(A), since A is rounded by ε·tr(A), and at most this much, where weights are nearly 0.
_LEAST = 1e-12
_MOST = 1e2
# Where the search begins, in decades of tr(A).
_START = -5.0
# Entries of H in memory at a time.
_ENTRIES = 2**21
# Sums are kept by so many columns, down to the diagonal: of wide layers, whole matrices are much of what a fit holds.
_COLUMNS = 1_024

Features = Callable[[Any, np.ndarray], np.ndarray]
"""H of some inputs, written into the given memory."""


@dataclass(frozen=True, slots=True, eq=False)
class FoldedRows:
    """Rows in memory, those of one fold next to each other: inputs, targets and weights."""

    X: Any
    T: np.ndarray
    weight: np.ndarray
    starts: np.ndarray
    """Where each fold begins, and where the last one ends."""
    places: np.ndarray
    """Where each row was before the rows were sorted by fold."""
    center: np.ndarray
    scale: np.ndarray
    """The targets as they came are T·scale + center."""

    @classmethod
    def of(
        cls,
        X: Any,
        T: np.ndarray,
        weight: np.ndarray,
        fold: np.ndarray,
        center: np.ndarray,
        scale: np.ndarray,
    ) -> FoldedRows:
        """Sort rows by their fold; folds without rows are left out."""
        places = np.argsort(fold, kind="stable")
        counts = np.bincount(fold)
        starts = np.concatenate([[0], np.cumsum(counts[counts > 0])])
        return cls(X[places], T[places], weight[places], starts, places, center, scale)

    @property
    def numbers(self) -> np.ndarray:
        """The fold of each row."""
        return np.repeat(np.arange(self.n_folds), np.diff(self.starts))

    def without(self, v: int) -> FoldedRows:
        """All rows but those of fold v, as one fold."""
        held = self.fold(v)
        return self._as_one_fold(np.concatenate([np.arange(held.start), np.arange(held.stop, len(self))]))

    def of_fewer_folds(self, most: int) -> FoldedRows:
        """The same rows with folds joined, so that there are at most so many."""
        if self.n_folds <= most:
            return self
        return replace(self, starts=self.starts[np.arange(most + 1) * self.n_folds // most])

    def only(self, v: int) -> FoldedRows:
        """The rows of fold v."""
        return self._as_one_fold(np.arange(len(self))[self.fold(v)])

    def _as_one_fold(self, rows: np.ndarray) -> FoldedRows:
        starts = np.array([0, len(rows)])
        return FoldedRows(
            self.X[rows], self.T[rows], self.weight[rows], starts, self.places[rows], self.center, self.scale
        )

    def held(self, v: int, features: Features, n_features: int) -> Encoded:
        """The rows of fold v with their features."""
        rows = self.fold(v)
        H = features(self.X[rows], np.empty((rows.stop - rows.start, n_features)))
        return Encoded(H, self.T[rows], self.weight[rows])

    def __len__(self) -> int:
        return len(self.T)

    @property
    def n_folds(self) -> int:
        return len(self.starts) - 1

    def fold(self, v: int) -> slice:
        """The rows of a fold."""
        return slice(int(self.starts[v]), int(self.starts[v + 1]))

    def blocks(self, rows: slice, features: Features, n_features: int) -> Iterator[tuple[slice, np.ndarray]]:
        """H of some rows, block by block, each in the same memory."""
        height = max(1, _ENTRIES // max(1, n_features))
        memory = np.empty((min(height, max(0, rows.stop - rows.start)), n_features))
        for start in range(rows.start, rows.stop, height):
            part = slice(start, min(start + height, rows.stop))
            yield part, features(self.X[part], memory)[: part.stop - part.start]

    def outputs(self, rows: slice, features: Features, W: np.ndarray, b: np.ndarray) -> np.ndarray:
        """HW + b of some rows."""
        found = np.empty((rows.stop - rows.start, W.shape[1]))
        for part, H in self.blocks(rows, features, len(W)):
            found[part.start - rows.start : part.stop - rows.start] = H @ W + b
        return found

    def sums(self, features: Features, n_features: int) -> list[RidgeSums]:
        """The sums of each fold, about the mean of the first rows."""
        found: list[RidgeSums] = []
        for v in range(self.n_folds):
            of_fold = RidgeSums(found[0].shift, n_features) if found else None
            for part, H in self.blocks(self.fold(v), features, n_features):
                if of_fold is None:
                    of_fold = RidgeSums(mean_of(H, self.T[part], self.weight[part]), n_features)
                of_fold = of_fold.add(H, self.T[part], self.weight[part])
            assert of_fold is not None
            found.append(of_fold)
        return found


def _parts(width: int) -> list[slice]:
    """Even parts of at most `_COLUMNS` columns."""
    n_parts = max(1, math.ceil(width / _COLUMNS))
    return list(row_slices(width, math.ceil(width / n_parts)))


def _plus(A: Array, rows: slice, more: Array) -> Array:
    """A with more in some rows, which is overwritten; A itself is changed where the library allows it."""
    more += A[rows, ...]
    return with_rows(A, rows, more)


def mean_of(H: Array, T: Array, weight: Array) -> Array:
    """The mean of the rows [h | t]."""
    xp = array_namespace(H)
    return xp.concat([weight @ H, weight @ T]) / xp.sum(weight)


@dataclass(frozen=True, slots=True, eq=False)
class RidgeSums:
    """Σw, Σw·z and Σw·zzᵀ of some rows z = [h | t] about a shift; sums about the same shift merge."""

    shift: Array
    n_features: int
    weight: float = 0.0
    first: Array | float = 0.0
    second: tuple[Array, ...] = ()
    """Σw·zzᵀ by `_COLUMNS` columns, each down to the diagonal: below it is the same again."""

    def add(self, H: Array, T: Array, weight: Array | None) -> RidgeSums:
        """The sums with some more rows; this object is not used again."""
        Z = array_namespace(H).concat([H, T], axis=1)
        Z -= self.shift
        return self.add_shifted(Z, weight)

    def add_shifted(self, Z: Array, weight: Array | None) -> RidgeSums:
        """The same of rows [h | t] less the shift, which are overwritten."""
        xp = array_namespace(Z)
        if weight is None:
            total, first = float(Z.shape[0]), xp.sum(Z, axis=0)
        else:
            total, first = float(xp.sum(weight)), weight @ Z
            Z *= xp.sqrt(weight)[:, None]
        parts = _parts(len(self.shift))
        found = list(self.second) or [
            xp.zeros((p.stop, p.stop - p.start), dtype=Z.dtype, device=device_of(Z)) for p in parts
        ]
        for number, part in enumerate(parts):
            own = Z[:, part]
            above = slice(0, part.start)
            if part.start:
                found[number] = _plus(found[number], above, Z[:, above].T @ own)
            found[number] = _plus(found[number], slice(part.start, part.stop), own.T @ own)
        return replace(self, weight=self.weight + total, first=self.first + first, second=tuple(found))

    def merge(self, other: RidgeSums) -> RidgeSums:
        """The sums over the rows of both, which must be about the same shift."""
        return replace(
            self,
            weight=self.weight + other.weight,
            first=self.first + other.first,
            second=tuple(a + b for a, b in zip(self.second, other.second, strict=True)),
        )

    def to_host(self) -> RidgeSums:
        """The same in NumPy's arrays."""
        second = tuple(map(to_host, self.second))
        return replace(self, shift=to_host(self.shift), first=to_host(self.first), second=second)

    def problem(self, *, intercept: bool) -> RidgeProblem:
        """A = CᵀC and B = CᵀT with the features about their mean, or as they are without an intercept."""
        M = self.n_features
        shift, first = np.asarray(self.shift), np.asarray(self.first)
        about = self._whole_second()
        squares = np.diag(about).copy()
        if intercept:
            mean = first / self.weight
            for part in _parts(len(mean)):
                about[part] -= np.outer(mean[part], first)
            mean = mean + shift
            # Features whose squares are only rounding are constant in these rows: a γ as small would take them for a
            # direction, and weights would be huge.
            rounding = 8.0 * EPS * squares + self.weight * (4.0 * EPS * mean) ** 2
            constant = np.flatnonzero(np.diag(about)[:M] <= rounding[:M])
            about[constant, :] = 0.0
            about[:, constant] = 0.0
        else:  # back to sums about zero
            mean = np.zeros_like(first)
            moved = np.outer(shift, first)
            about = about + moved + moved.T + self.weight * np.outer(shift, shift)
        return RidgeProblem(about[:M, :M], about[:M, M:], mean[:M], mean[M:])

    def _whole_second(self) -> np.ndarray:
        width = len(self.shift)
        whole = np.empty((width, width))
        for part, own in zip(_parts(width), self.second, strict=True):
            whole[: part.stop, part] = own
            whole[part, : part.start] = own[: part.start].T
        return whole

    def _second_times(self, Z: np.ndarray) -> np.ndarray:
        found = np.zeros_like(Z)
        for part, own in zip(_parts(len(Z)), self.second, strict=True):
            found[: part.stop] += own @ Z[part]
            found[part] += own[: part.start].T @ Z[: part.start]
        return found

    def squared_error(self, W: np.ndarray, b: np.ndarray) -> float:
        """Σw‖t − hW − b‖² over the rows and targets."""
        M = self.n_features
        Z = np.vstack([-W, np.eye(W.shape[1])])
        constant = self.shift[M:] - self.shift[:M] @ W - b
        squares = np.sum(Z * self._second_times(Z), axis=0) + 2.0 * constant * (self.first @ Z)
        return float(np.sum(np.maximum(squares + self.weight * constant**2, 0.0)))


@dataclass(frozen=True, slots=True, eq=False)
class RidgeProblem:
    """min ‖CW − T‖² + γ‖W‖² as far as it depends on W: A = CᵀC, B = CᵀT, and the means that were subtracted."""

    A: np.ndarray
    B: np.ndarray
    mean_H: np.ndarray
    mean_T: np.ndarray

    @property
    def trace(self) -> float:
        return float(np.trace(self.A))

    def solved(self, gamma: float, right: np.ndarray) -> np.ndarray:
        """(A + γI)⁻¹ of the right side."""
        A = self.A.copy()
        while True:
            A[np.diag_indices(len(A))] = np.diag(self.A) + gamma
            try:
                # A is symmetric, so its transpose is the same matrix in Fortran's order. Otherwise SciPy would make a
                # copy in that order itself, which takes twice as long as the factor.
                factor = cho_factor(A.T, lower=True, overwrite_a=True, check_finite=False)
                return np.asarray(cho_solve(factor, right, check_finite=False))
            except LinAlgError:  # rounding made A indefinite: γ is far below what A is right to
                gamma = max(10.0 * gamma, _LEAST * self.trace, np.finfo(float).tiny)
                A[...] = self.A

    def weights(self, gamma: float) -> tuple[np.ndarray, np.ndarray]:
        """W and b."""
        W = self.solved(gamma, self.B)
        return W, self.mean_T - self.mean_H @ W


def best_gamma(problems: Sequence[RidgeProblem], held: Sequence[RidgeSums | Encoded]) -> float:
    """The γ with the least error on the rows held out, summed over the folds.

    `problems` are those of the rows without each fold, and `held` the sums of the folds. Of a layer that predicts one
    fold only, they are its rows: some products HW cost less than HᵀH, which would be of use once.
    """
    scale = float(np.mean([problem.trace for problem in problems]))
    if not scale > 0.0:  # all features are constant
        return 0.0
    known: dict[tuple[int, float], float] = {}
    low, high = math.log10(_LEAST), math.log10(_MOST)

    def error(exponent: float, n_folds: int) -> float:
        for v in range(n_folds):
            if (v, exponent) not in known:
                known[v, exponent] = held[v].squared_error(*problems[v].weights(scale * 10.0**exponent))
        found = sum(known[v, exponent] for v in range(n_folds))
        return found if math.isfinite(found) else math.inf

    def walked(best: float, step: float, n_folds: int) -> float:
        while True:
            lower, higher = max(best - step, low), min(best + step, high)
            least = min(error(at, n_folds) for at in (best, lower, higher))
            if least == error(best, n_folds):  # of equals the one in the middle
                return best
            best = higher if error(higher, n_folds) == least else lower

    n = len(problems)
    best = walked(walked(_START, 2.0, 1), 1.0, n)
    if error(high, n) < error(best, n):  # there is another minimum, where little more than the mean is predicted
        best = walked(walked(high, 2.0, n), 1.0, n)
    if low < best < high:
        below, here, above = (error(at, n) for at in (best - 1.0, best, best + 1.0))
        curvature = below - 2.0 * here + above
        if 0.0 < curvature < math.inf:
            best += 0.5 * (below - above) / curvature
    return scale * 10.0**best


def refined(
    rows: FoldedRows, features: Features, problem: RidgeProblem, gamma: float, *, intercept: bool
) -> tuple[np.ndarray, np.ndarray]:
    """W and b of all rows, after one step of refinement with residuals that come from the rows."""
    W, b = problem.weights(gamma)
    gradient = -gamma * W
    left = np.zeros_like(b)
    for part, H in rows.blocks(slice(0, len(rows)), features, len(W)):
        residual = rows.weight[part, None] * (rows.T[part] - H @ W - b)
        gradient += (H - problem.mean_H).T @ residual
        left += residual.sum(axis=0)
    step = problem.solved(gamma, gradient)
    constant = left / rows.weight.sum() - problem.mean_H @ step if intercept else 0.0
    return W + step, b + constant
