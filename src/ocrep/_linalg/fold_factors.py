"""Exact k-fold cross-validation without a second reading of the rows: one factor per fold, merged in all but one.

Complements. The rows outside fold v have the merge of the other factors as their factor. Merges of the folds before v
and behind v are running ones (prefixes and suffixes), so all k complements cost 3k − 6 merges, and not k(k − 2); they
are merged, never subtracted, since a difference would lose the digits that cancel.

Held-out errors. With R_v and Q_vᵀT of fold v and the weights W that the complement gives,

    Σ w‖t − hW‖² over fold v = ‖Q_vᵀT − R_v·W‖² + (the residual lengths of fold v)²,

exactly, since orthogonal matrices keep lengths: as if each of the k models had been fitted and had predicted its fold,
for any γ. The spectrum of the complement turns every further γ into a few products of size M (`Factor.held_out`). Where
all rows together are fewer than the features, the same is done with their inner products (`wide.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, reduce
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import lapack

from ocrep._linalg.arrays import EPS, SMALLEST, Array, array_namespace
from ocrep._linalg.factor import Factor, root_about
from ocrep._linalg.folds import SPLITS, FoldPlan, without_each
from ocrep._linalg.parallel import Item, Result, at_once
from ocrep._linalg.rows import Counts, Encoder
from ocrep._linalg.spectrum import HeldOut, Spectrum, StoredVectors, spectrum_of, squared_errors, summed_as
from ocrep._linalg.triangle import RESIDUAL_SHARE, are_varying, rank_tolerance, without_constants
from ocrep._linalg.wide import fits_of_folds

# Where each fold costs more products than this, it gets a thread of its own.
_MANY_PRODUCTS = 2**24


@dataclass(frozen=True, eq=False, repr=False)
class FoldFactors:
    """One factor per fold; a fold without rows has None."""

    plan: FoldPlan
    factors: tuple[Factor | None, ...]
    n_read: int = 0
    """Rows seen, with the rows of zero weight."""
    encoders: tuple[Encoder, ...] = ()
    """How rows become H, T and weights for each filled fold, where a layer was drawn anew without it: such factors do
    not merge, and are not stored."""

    def __repr__(self) -> str:
        return f"FoldFactors(n_folds={self.plan.n_folds}, seed={self.plan.seed}, n_rows={self.n_read})"

    def merge(self, other: FoldFactors) -> FoldFactors:
        factors = tuple(a.merge(b) if a and b else a or b for a, b in zip(self.factors, other.factors, strict=True))
        return FoldFactors(self.plan, factors, self.n_read + other.n_read)

    def to_arrays(self) -> dict[str, np.ndarray]:
        named = {
            f"fold{v}.{name}": array for v, f in enumerate(self.factors) if f for name, array in f.to_arrays().items()
        }
        plan = self.plan
        numbers = (plan.n_folds, plan.seed, SPLITS.index(plan.split), plan.block_length or 0, self.n_read)
        return {"plan": np.array(numbers), **named}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> FoldFactors:
        n_folds, seed, split, length, n_read = (int(value) for value in arrays["plan"])
        factors = []
        for v in range(n_folds):
            prefix = f"fold{v}."
            mine = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            factors.append(Factor.from_arrays(mine) if mine else None)
        return cls(FoldPlan(n_folds, seed, SPLITS[split], length or None), tuple(factors), n_read)

    def merged(self) -> Factor:
        if "_merged" not in self.__dict__:
            # Without a row of positive weight, the factors still say how many rows were seen.
            self.__dict__["_merged"] = reduce(Factor.merge, self._filled or tuple(filter(None, self.factors)))
        return self.__dict__["_merged"]

    @cached_property
    def _wide_fits(self) -> tuple[HeldOut, ...] | None:
        """Each fold as the others predict it, where all rows together are fewer than the features; else None."""
        filled = self._filled
        kept = [(factor.rows, factor.counts) for factor in filled if factor.rows]
        n_rows = sum(rows.n_rows for rows, _ in kept)
        if not len(filled) == len(kept) > 1 or n_rows >= filled[0].n_features:
            return None
        problem = self.merged().problem
        return None if problem is None else fits_of_folds(problem, kept)

    def leading(self, n_features: int) -> FoldFactors:
        """The same folds for the first `n_features` features; the complements are cut, not merged anew."""
        cut = replace(self, factors=tuple(f and f.leading(n_features) for f in self.factors))
        cut.__dict__["_whole"] = self
        return cut

    @cached_property
    def training(self) -> tuple[Factor, ...]:
        """For each fold that can be held out, the factor of the others."""
        filled = self._filled
        whole = self.__dict__.get("_whole")
        if len(filled) < 2:
            return ()
        if whole is not None:
            return tuple(factor.leading(filled[0].n_features) for factor in whole.training)
        return tuple(without_each(filled, Factor.merge))

    @cached_property
    def spectra(self) -> tuple[Spectrum, ...]:
        """For each fold that can be held out, the spectrum of the others."""
        if self._wide_fits is not None:
            return tuple(fit.spectrum for fit in self._wide_fits)
        return tuple(factor.spectrum() for factor in self.training)

    @property
    def n_targets(self) -> int:
        return self._filled[0].counts.n_targets

    @property
    def weight_sums(self) -> tuple[float, ...]:
        """Total weight of each held-out fold."""
        return tuple(factor.counts.weight_sum for factor in self._filled)

    @cached_property
    def fits(self) -> tuple[HeldOut, ...]:
        """Each fold as the others predict it."""
        if self._wide_fits is not None:
            return self._wide_fits
        one = self._filled[0]
        return _for_each(lambda pair: pair[0].held_out(pair[1]), list(held_out(self)), one, one.n_features)

    def squared_errors(self, gamma: Array) -> Array:
        """Σ w‖t − prediction‖² over each held-out fold, folds × γ, as if the weights had been refitted without it."""
        xp = array_namespace(gamma)
        columns = gamma.shape[0] * self.n_targets
        # Added up within each fold, so that the errors of many targets are held for a few folds only.
        errors = _for_each(
            lambda fit: xp.sum(fit.squared_errors(gamma[:, None]), axis=1), self.fits, self._filled[0], columns
        )
        return xp.stack(errors)

    def solutions(self, gamma: float | np.ndarray) -> list[tuple[Array, Array]]:
        """Weights and constants fitted without each fold that holds rows, of one γ or one for each target."""
        return [spectrum.solution(gamma) for spectrum in self.spectra]

    @property
    def filled(self) -> tuple[int, ...]:
        """The numbers of the folds that hold rows of positive weight."""
        return tuple(v for v, factor in enumerate(self.factors) if factor is not None and factor.counts.n_rows)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out of pickles and copies what can be computed again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def _filled(self) -> tuple[Factor, ...]:
        """The factors of the folds that hold rows of positive weight."""
        return tuple(factor for factor in self.factors if factor is not None and factor.counts.n_rows)


def _for_each(
    function: Callable[[Item], Result], items: Sequence[Item], like: Factor, columns: int
) -> tuple[Result, ...]:
    """function(item) of each fold's item, on threads if a product of `columns` columns with M × M is worth one."""
    large = isinstance(like.counts.shift, np.ndarray) and columns * like.n_features**2 > _MANY_PRODUCTS
    return tuple(at_once(function, items) if large else map(function, items))


def held_out(folds: FoldFactors) -> Iterator[tuple[Factor, Spectrum]]:
    """Each fold that holds rows, with the spectrum of the others."""
    yield from zip((folds.factors[v] for v in folds.filled), folds.spectra, strict=True)


def known_folds(folds: FoldFactors, training: Sequence[tuple[Factor, Spectrum]]) -> FoldFactors:
    """Folds with their complements and spectra, where these came with them: they are not merged again."""
    folds = replace(folds)
    folds.__dict__["training"] = tuple(factor for factor, _ in training)
    folds.__dict__["spectra"] = tuple(spectrum for _, spectrum in training)
    folds.__dict__["_wide_fits"] = None  # which would compute them from the rows
    return folds


# ------------------------------------------------------------------------------
# Summaries of the same rows with all weights multiplied by a number, as if the rows had come with those weights.


def reweighted(factor: Factor, by: float) -> Factor:
    """√by·R, or the rows themselves with √by·√w; weights that were frequencies no longer are."""
    root = by**0.5
    rows = factor.rows
    return Factor(
        None if factor.triangular is None else factor.triangular.scaled(root),
        replace(factor.counts, weight_sum=by * factor.counts.weight_sum, whole_weights=False),
        None if rows is None else replace(rows, root_weight=root * rows.root_weight),
    )


# ------------------------------------------------------------------------------
# `QuickFolds`: held-out errors through eigenvalues of Gram matrices, confirmed where γ was chosen.
#
# Let A be the rows of all folds but one, about their means, with targets T, and X those of that fold, about the same
# means. One eigendecomposition of the smaller of AᵀA and AAᵀ, which is far faster than an SVD of A, gives the weights
# of every γ:
#
#     AᵀA = VΛVᵀ:  W = V(Λ + γI)⁻¹VᵀAᵀT,      AAᵀ = UΛUᵀ:  W = AᵀU(Λ + γI)⁻¹UᵀT,
#
# and the predictions of the fold are XV, or XAᵀU, times the rest.
#
# Squaring costs: the weights are wrong by about ε·σ₁²/γ of themselves. So the errors are confirmed at the γ that was
# chosen. There the weights are refined with A itself, W ← W + (AᵀA + γI)⁻¹(Aᵀ(T − AW) − γW), until they are as good as
# those by reflections; each step leaves ε·σ₁²/γ of the error before it. They give the exact error, and its difference
# from the quick one shows how good the curve is from this γ on, because squaring costs less where γ is larger. A γ that
# is not confirmed is chosen again by the exact folds.

# 64 MB of float64: more rows than that are not copied. Where there are more than eight times as many features as rows,
# the limit is 2 MB.
_MOST_ENTRIES = 2**23
_MOST_ENTRIES_WIDE = 2**18
_WIDE = 8
# The largest difference from the exact error, at the γ that was chosen.
_CONFIRMED = 1e-7
# From this ε·σ₁²/γ on, one step of refinement is needed, and then two.
_ONE_STEP = 1e-13
_TWO_STEPS = 1e-8
# Eigenvalues below this many times ε·λ₁ are rounding.
_NOISE = 16.0
# γ = σ₁·σ_p is right to 10⁻⁶ if λ_p, refined, is above this share of λ₁.
_CERTAIN_SHARE = 1e-11
# σ_p = ‖Av‖ is right to 10⁻⁶ from this share of λ₁ on, v its eigenvector: an error of v counts only by its square.
_CLEAR_SHARE = 1e-12


_Roots: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""√w·[1 | H − s] and √w·(T − s) of some rows, or the triangle in their place, and what no weights can explain of each
target in addition to these rows, squared."""


def _joined(roots: Sequence[_Roots]) -> _Roots:
    """The rows of several parts."""
    F, T, left = zip(*roots, strict=True)
    return np.concatenate(F), np.concatenate(T), np.sum(left, axis=0)


def _centred(F: np.ndarray, T: np.ndarray, shift: np.ndarray, *, intercept: bool) -> tuple[np.ndarray, ...]:
    """H and T about their own means, and these, about the shift; without an intercept they are 0.

    Columns of H that are constant up to rounding become exactly zero.
    """
    if not intercept:
        return F, T, np.zeros(F.shape[1]), np.zeros(T.shape[1])
    ones = F[:, :1]
    weight_sum = np.sum(ones**2)
    weights = ones[:, 0] / weight_sum
    mean_H = weights @ F[:, 1:]
    mean_T = weights @ T
    A = F[:, 1:] - ones * mean_H
    return without_constants(A, shift[: A.shape[1]] + mean_H, float(weight_sum)), T - ones * mean_T, mean_H, mean_T


class QuickFit:
    """All folds but one, by the eigenvalues of AAᵀ or AᵀA, whichever is smaller, and the fold that they predict."""

    def __init__(self, training: _Roots, held_out: _Roots, shift: np.ndarray, *, intercept: bool) -> None:
        F, T, self._unexplained = training
        self._A, self._T, mean_H, mean_T = _centred(F, T, shift, intercept=intercept)
        M = self._A.shape[1]
        self._mean_H = shift[:M] + mean_H
        self._mean_T = shift[M:] + mean_T
        self._X, self._Y, self._left = held_out
        if intercept:
            ones = self._X[:, :1]
            self._X = self._X[:, 1:] - ones * mean_H
            self._Y = self._Y - ones * mean_T
        self._wide = self._A.shape[0] < self._A.shape[1]
        A = self._A
        values, self._vectors = np.linalg.eigh(A @ A.T if self._wide else A.T @ A)
        self._values = np.maximum(values, 0.0)
        self._z = self._vectors.T @ (self._T if self._wide else A.T @ self._T)

    @cached_property
    def _rotated(self) -> np.ndarray:
        """The rows held out in terms of the eigenvectors; one γ can do without."""
        return (self._X @ self._A.T if self._wide else self._X) @ self._vectors

    def spectrum(self, counts: Counts) -> Spectrum | None:
        """The SVD of training rows no fewer than features; None where squaring costs σ_p or the residual too much."""
        if not self._values[0] > _CLEAR_SHARE * self._values[-1]:
            return None
        sigma = np.sqrt(self._values)[::-1]
        Vt = self._vectors.T[::-1]
        sigma[-1] = np.linalg.norm(self._A @ Vt[-1])
        UtT = self._z[::-1] / sigma[:, None]
        total = np.sum(self._T * self._T, axis=0) + self._unexplained
        residual = total - np.sum(UtT * UtT, axis=0)
        varying = are_varying(np.sqrt(total), self._mean_T, counts.weight_sum)  # else it is zero up to rounding
        if not np.all(varying & (residual > RESIDUAL_SHARE * total)):
            return None
        return spectrum_of(
            counts,
            np.concatenate([self._mean_H, self._mean_T]),
            sigma=sigma,
            right=StoredVectors(Vt),
            UtT=UtT,
            residual=residual,
            discarded=sigma[:0],
        )

    def squared_errors(self, gamma: np.ndarray, targets: np.ndarray | None = None) -> np.ndarray:
        """Σ w(t − prediction)² of each target over the rows held out, or of some by their numbers, γ × targets.

        γ has the shape (G, 1), or (G, targets) for one each.
        """
        some = slice(None) if targets is None else targets
        known = self._rotated, self._z[:, some], self._Y[:, some]
        errors = squared_errors(*known, gamma, lambda gamma: 1.0 / (self._values + gamma[..., None]))
        return errors + self._left[some]

    def refined(self, gamma: float | np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights, features × targets, and constants of one γ, or one for each target, and the error of each target.

        They are refined until squaring costs nothing; the error is Σ w(t − prediction)² over the rows held out.
        """
        A = self._A
        V = self._vectors
        gamma = np.broadcast_to(gamma, self._T.shape[1:])
        scale = self._values[:, None] + gamma
        W = V @ (self._z / scale)
        W = A.T @ W if self._wide else W
        lost = EPS * np.max(self._values, initial=0.0) / gamma
        for limit in (_ONE_STEP, _TWO_STEPS):
            some = np.flatnonzero(lost >= limit)
            if not len(some):
                break
            # What is missing from the weights, by the slope at the rows themselves.
            slope = A.T @ (self._T[:, some] - A @ W[:, some]) - gamma[some] * W[:, some]
            if self._wide:  # (AᵀA + γ)⁻¹ = (I − Aᵀ(AAᵀ + γ)⁻¹A)/γ
                W[:, some] += (slope - A.T @ (V @ (V.T @ (A @ slope) / scale[:, some]))) / gamma[some]
            else:
                W[:, some] += V @ (V.T @ slope / scale[:, some])
        error = self._Y - self._X @ W
        return W, self._mean_T - self._mean_H @ W, np.sum(error * error, axis=0) + self._left


@dataclass(frozen=True, eq=False, repr=False)
class QuickFolds(FoldFactors):
    """Folds whose held-out errors are found several times faster; good only for a γ that `confirms` accepts."""

    exact: FoldFactors = field(kw_only=True)
    """The same folds by the exact way."""

    @cached_property
    def _roots(self) -> list[_Roots]:
        shift = self._filled[0].counts.shift
        lefts = [np.zeros(self.n_targets) if factor.rows else factor.triangle.left**2 for factor in self._filled]
        return [(*root_about(factor, shift), left) for factor, left in zip(self._filled, lefts, strict=True)]

    @cached_property
    def fits(self) -> tuple[Any, ...]:
        """Each fold as the others predict it."""
        roots = self._roots
        counts = self._filled[0].counts

        def fit(v: int) -> QuickFit:
            others = _joined(roots[:v] + roots[v + 1 :])
            return QuickFit(others, roots[v], counts.shift, intercept=counts.intercept)

        return tuple(at_once(fit, range(len(roots))))

    def refined(self, gamma: float | np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Weights and constants of one γ, or one for each target, without each fold, and the errors there, exact."""
        gamma = np.atleast_1d(gamma)
        known = self.__dict__.get("_refined")
        if known is None or not np.array_equal(known[0], gamma):
            known = self.__dict__["_refined"] = gamma, [part.refined(gamma) for part in self.fits]
        return known[1]

    def solutions(self, gamma: float | np.ndarray) -> list[tuple[Array, Array]]:
        """Weights and constants fitted without each fold that holds rows, of one γ or one for each target."""
        if not np.all(np.greater(gamma, 0.0)):
            return self.exact.solutions(gamma)
        return [(W, b) for W, b, _ in self.refined(gamma)]

    def confirms(self, gamma: np.ndarray) -> np.ndarray:
        """Whether the errors at γ are right, and so those at all larger γ: of all targets, (1,), or of each, (Q,)."""
        positive = np.where(gamma > 0.0, gamma, 1.0)  # nothing can be said of γ = 0
        quick = summed_as(gamma, np.stack([part.squared_errors(positive[None, :])[0] for part in self.fits]))
        exact = summed_as(gamma, np.stack([errors for _, _, errors in self.refined(positive)]))
        return (gamma > 0.0) & np.all(np.abs(quick - exact) <= _CONFIRMED * exact, axis=0)

    @property
    def tall(self) -> bool:
        """Whether no training part has fewer rows than features."""
        lengths = [len(T) for _, T, _ in self._roots]
        return sum(lengths) - max(lengths) >= self._filled[0].n_features

    def spectra_and_fits(self) -> Iterator[tuple[Spectrum | None, QuickFit]]:
        """Each fold as the others predict it, with their spectrum where it is certain."""
        counts = [factor.counts for factor in self._filled]
        for v, fit in enumerate(self.fits):
            yield fit.spectrum(reduce(Counts.merge, counts[:v] + counts[v + 1 :])), fit

    def rough_spectrum(self) -> tuple[Spectrum, float] | None:
        """The singular values of all rows from eigenvalues, without vectors, for rules that read only them.

        Those below √ε·σ₁ are lost to rounding. The spectrum then ends at the rank tolerance, as that of a singular H
        does. From the number beside it on, a γ chosen by the condition number does not depend on what was lost. None
        where H is zero.
        """
        counts = self._filled[0].counts
        F, T, _ = _joined(self._roots)
        A, *_ = _centred(F, T, counts.shift, intercept=counts.intercept)
        # The kernel of centred rows has one eigenvalue that is zero.
        zero = int(counts.intercept and A.shape[0] < A.shape[1])
        A = A.T if A.shape[0] < A.shape[1] else A
        gram = A.T @ A
        values = np.linalg.eigvalsh(gram)[::-1]
        if not values[0] > SMALLEST**2:
            return None
        largest = float(values[0])
        sigma = np.sqrt(values[values > _NOISE * EPS * largest])
        if len(sigma) < len(values) - zero:
            certain = largest**0.5 * float(sigma[-1])  # nothing smaller than σ₁ times the least that was found
            sigma = np.append(sigma, rank_tolerance(counts.n_features, largest**0.5))
        else:
            sigma[-1] = _refined_singular_value(A, gram, float(sigma[-1]))
            certain = 0.0 if sigma[-1] ** 2 > _CERTAIN_SHARE * largest else 2.0 * largest**0.5 * float(sigma[-1])
        # What only vectors would tell is not a number.
        spectrum = spectrum_of(
            counts,
            counts.shift,
            sigma=sigma,
            right=StoredVectors(np.broadcast_to(np.nan, (len(sigma), counts.n_features))),
            UtT=np.zeros((len(sigma), counts.n_targets)),
            residual=np.zeros(counts.n_targets),
            discarded=sigma[:0],
        )
        return spectrum, certain


def _refined_singular_value(A: np.ndarray, gram: np.ndarray, sigma: float) -> float:
    """‖Av‖, v by inverse iteration: an error of v counts only by its square, and nothing is lost by squaring A."""
    largest = float(np.max(np.abs(gram)))
    # Not quite the eigenvalue, since the matrix should not be singular.
    shifted = gram / largest - (1.0 - 1e-6) * sigma**2 / largest * np.eye(len(gram))
    lu, pivots, _ = lapack.dgetrf(shifted, overwrite_a=True)
    # Where σ² is about ε·σ₁², rounding may make it singular all the same, and the last pivot zero. Inverse iteration
    # then wants a pivot of about the size of the rounding.
    diagonal = np.einsum("ii->i", lu)
    diagonal[diagonal == 0.0] = EPS
    v = np.cos(np.arange(len(gram)) ** 2)
    for _ in range(4):
        v, _ = lapack.dgetrs(lu, pivots, v)
        v /= np.linalg.norm(v)
    return float(np.linalg.norm(A @ v))


def quick_folds(folds: FoldFactors) -> QuickFolds | None:
    """The same folds, quick; None where their spectra are known, where they are too large, or on a device."""
    if isinstance(folds, QuickFolds):
        return folds
    filled = folds._filled
    if "spectra" in folds.__dict__ or len(filled) < 2:
        return None
    width = filled[0].n_features
    n_rows = sum(factor.rows.n_rows if factor.rows else width for factor in filled)
    most = _MOST_ENTRIES_WIDE if width > _WIDE * n_rows else _MOST_ENTRIES
    if not isinstance(filled[0].counts.shift, np.ndarray) or n_rows * width > most:
        return None
    return QuickFolds(folds.plan, folds.factors, folds.n_read, exact=folds)
