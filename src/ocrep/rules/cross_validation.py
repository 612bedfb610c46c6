"""Rules that cross-validate exactly: leave-one-out, k-fold, and k-fold with the best conditioning."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from ocrep._linalg.arrays import Array, array_namespace, as_float64
from ocrep._linalg.blocks import RowBlocks, slices_of
from ocrep._linalg.fold_plan import FoldPlan, Split, split_by_fold
from ocrep._linalg.folds import FoldFactors
from ocrep._linalg.leave_one_out import press
from ocrep._linalg.quick_folds import QuickFolds, quick_folds
from ocrep._linalg.spectrum import Spectrum
from ocrep.rules.base import Choice, Edge, FlooredRule, Needs, NotApplicable
from ocrep.rules.criteria import GCV
from ocrep.rules.search import array_like, check_grid, do_not_refine, minimise, refine_by_parabola, searched_range


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HeldOutRule(FlooredRule):
    """A rule that judges γ by rows held out of the fit, which show themselves when γ is too small.

    Parameters
    ----------
    floor : float, "precision" or "rounding", default="rounding"
        γ is at least `floor`·σ₁²; "precision" stands for √ε, "rounding" for ε.
    """

    floor: float | str = "rounding"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GridRule(HeldOutRule):
    """A rule whose `grid` replaces the search over all γ.

    Parameters
    ----------
    grid : str, sequence of float or None, default=None
        The γ to try, or a name in `rules.GRIDS`. None searches a log grid and refines its optimum.
    """

    grid: str | Sequence[float] | None = None

    def __post_init__(self) -> None:
        FlooredRule.__post_init__(self)
        values = check_grid(self.grid)
        if not isinstance(self.grid, str):
            # A tuple can be compared and read again; the user's own grid may be an array or an iterator.
            object.__setattr__(self, "grid", values)

    @property
    def degree(self) -> int | None:  # type: ignore[override]
        """2; None for a given grid, which does not depend on H."""
        return None if self.grid is not None else 2


@dataclass(frozen=True, kw_only=True, repr=False)
class FoldRule(HeldOutRule):
    """A rule that reads one factor per fold.

    Parameters
    ----------
    n_folds : int, default=3
        Number of folds.
    seed : int, default=0
        Seed of the division of the rows, or groups, into folds.
    split : {"content", "groups", "blocks", "given"}, default="content"
        What decides the fold of a row. "content": its inputs, so that equal rows share a fold. "groups": its group,
        given as `fit(X, y, groups=…)`; rows of a group share a fold, and folds get as many groups (in streams and
        beyond 1,024 groups only nearly as many). "blocks": its number, for time series; each fold
        is one block of consecutive rows, or takes turns with the others every `block_length` rows. "given": its group
        is the fold, and `n_folds` and `seed` have no part in it.
    block_length : int or None, default=None
        Consecutive rows of a block with `split="blocks"`; streams and `partial_fit`, which do not know the number of
        all rows, need it.
    """

    n_folds: int = 3
    seed: int = 0
    split: Split = "content"
    block_length: int | None = None
    needs = "folds"

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.folds  # its options are checked there

    @property
    def folds(self) -> FoldPlan:  # type: ignore[override]
        """The division of the rows."""
        return FoldPlan(self.n_folds, self.seed, self.split, self.block_length)

    def choose(self, spectrum: Spectrum, *, folds: FoldFactors | None = None, rows: RowBlocks | None = None) -> Choice:
        """Choose γ by the folds, or by GCV where fewer than two of them hold rows."""
        if folds is not None and self.folds.divides_as(folds.plan) and len(folds.filled) < 2:
            if self.split != "content":
                raise NotApplicable(
                    f"gamma={self!r} needs rows of positive weight in at least two folds, and all of them fell into "
                    "one: give more groups or shorter blocks, or another seed."
                )
            warnings.warn(
                f"gamma={self!r} needs rows in at least two folds, and {folds.n_read} sample(s) are too few or too "
                "alike: gamma='gcv' was used instead. Give more rows, or set gamma='gcv'.",
                stacklevel=2,
            )
            return GCV().choose(spectrum)
        quick = quick_folds(folds) if folds is not None and self.needs == "folds" else None
        if quick is not None:
            choice = super().choose(spectrum, folds=quick)
            if is_confirmed(choice, quick):
                return _with_error(choice, spectrum, quick if choice.gamma > 0.0 else quick.plain())
            folds = quick.plain()
        choice = super().choose(spectrum, folds=folds, rows=rows)
        return choice if folds is None else _with_error(choice, spectrum, folds)


def _with_error(choice: Choice, spectrum: Spectrum, folds: FoldFactors) -> Choice:
    """The same choice with its error on held-out rows."""
    if isinstance(folds, QuickFolds):
        errors = [fold.squared_error for fold in folds.refined(choice.gamma)]
    else:
        errors = [float(error) for error in folds.squared_errors(array_like(spectrum.sigma, [choice.gamma]))[:, 0]]
    return replace(choice, held_out_error=sum(errors) / (sum(folds.weight_sums) * folds.n_targets))


def is_confirmed(choice: Choice, quick: QuickFolds) -> bool:
    """Whether a choice by quick folds is that by exact ones."""
    return choice.curve is None or quick.confirms(min(choice.gamma, choice.curve.best_gamma))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LOO(GridRule):
    """Leave-one-out: minimise PRESS(γ) = Σ (residual_i/(1 − h_i))², which equals n refits without one row each.

    The intercept is refitted too; a weighted row counts as one row. The rows are read once more, for all γ together,
    so the optimum is refined by a parabola through the best grid points. Reference: Allen, Technometrics 16 (1974).
    """

    name = "loo"
    needs = "rows"  # their leverages are not in the spectrum

    def _choose(self, spectrum: Spectrum, _: object, rows: RowBlocks, /) -> Choice:
        criterion = partial(press, spectrum, rows)
        return minimise(self, spectrum, criterion, grid=check_grid(self.grid), refine=refine_by_parabola)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class KFold(FoldRule, GridRule):
    """k-fold cross-validation: minimise the squared error on rows held out of the fit.

    It is exact: the factors of the other folds are merged, and the error follows from the held-out factor. This equals
    refitting the output weights without each fold; the hidden layer and the input range are those of all rows.
    Reference: Stone, JRSS B 36 (1974).

    Parameters
    ----------
    scoring : {"squared", "error"}, default="squared"
        "error" counts misclassified rows instead; it is for classifiers only, and reads the rows once more.
    """

    scoring: Literal["squared", "error"] = "squared"
    name = "kfold"

    def __post_init__(self) -> None:
        FoldRule.__post_init__(self)
        if self.scoring not in ("squared", "error"):
            raise ValueError(f"scoring={self.scoring!r} must be 'squared' or 'error'.")

    @property
    def needs(self) -> Needs:  # type: ignore[override]
        """The folds' factors, and the rows too if misclassified rows are counted."""
        return "rows" if self.scoring == "error" else "folds"

    def _choose(self, spectrum: Spectrum, folds: FoldFactors, rows: RowBlocks, /) -> Choice:
        grid = check_grid(self.grid)
        if self.scoring == "squared":
            return minimise(self, spectrum, partial(mean_squared_error, folds), grid=grid)
        if not rows.labels:
            raise NotApplicable("scoring='error' counts misclassified rows, and this is a regression: use 'squared'.")
        return minimise(self, spectrum, partial(misclassified, folds, rows), grid=grid, refine=do_not_refine)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OCRePCV(FoldRule):
    """OCReP among the γ that cross-validation cannot tell from its best: the least μ(H^reg) within one standard error.

    For each γ the exact k-fold error minus that of the best γ is averaged over the folds. γ is admissible if that mean
    is within its standard error; the differences are paired, so a fold that is hard for every γ does not count.
    OCReP alone regularizes too much where H is well conditioned, and cross-validation alone sometimes too little; this
    rule keeps the best conditioning that the data allow. It is new in this library.
    """

    name = "ocrep_cv"

    def _choose(self, spectrum: Spectrum, folds: FoldFactors, _: object, /) -> Choice:
        best = minimise(self, spectrum, partial(mean_squared_error, folds))
        if best.curve is None:
            return best
        low, high = searched_range(self, spectrum)
        ocrep = min(max(spectrum.largest * spectrum.smallest, low), high)
        grid = [float(g) for g in best.curve.gammas]
        gamma = _best_conditioned(spectrum, folds, best.gamma, [ocrep, *grid])
        # The limit of what is admissible lies between grid points: search once more around the result.
        ratio = grid[1] / grid[0]
        finer = [min(max(gamma * ratio ** (k / 16), low), high) for k in range(-16, 17)]
        gamma = _best_conditioned(spectrum, folds, best.gamma, [gamma, *finer])
        edge: Edge | None = "low" if gamma <= grid[0] else "high" if gamma >= grid[-1] else None
        floored = edge == "low" and self.least_gamma(spectrum) > 0.0
        return Choice(self.name, gamma, floored, best.curve, edge)


def _best_conditioned(spectrum: Spectrum, folds: FoldFactors, best: float, candidates: list[float]) -> float:
    """The candidate with the least μ(H^reg) among those that the folds cannot tell from the best γ."""
    gammas = array_like(spectrum.sigma, [best, *candidates])
    xp, errors = array_namespace(gammas), fold_errors(folds, gammas)
    level = float(xp.max(errors[:, 0]))
    # Relative to the best γ's error, so that squares neither overflow nor vanish.
    differences = (errors - errors[:, :1]) / (level if level > 0.0 else 1.0)
    mean = xp.mean(differences, axis=0)
    standard_error = xp.std(differences, axis=0, correction=1.0) / errors.shape[0] ** 0.5
    conditions = xp.where(mean <= standard_error, spectrum.condition(gammas), xp.inf)
    return float(gammas[int(xp.argmin(conditions))])


def fold_errors(folds: FoldFactors, gamma: Array) -> Array:
    """Mean squared error of each held-out fold, folds × γ."""
    errors = folds.squared_errors(gamma)
    return errors / array_like(errors, folds.weight_sums)[:, None]


def mean_squared_error(folds: FoldFactors, gamma: Array) -> Array:
    """Mean squared error over all rows and targets, each row held out once."""
    errors = folds.squared_errors(gamma)
    return array_namespace(errors).sum(errors, axis=0) / (sum(folds.weight_sums) * folds.n_targets)


def misclassified(folds: FoldFactors, rows: RowBlocks, gamma: Array) -> Array:
    """The weighted share of rows that a fit without their fold puts into the wrong class; the rows are read once."""
    wrong, total = misclassified_by_fold(folds, rows, gamma)
    return array_namespace(gamma).sum(wrong, axis=0) / total


def misclassified_by_fold(folds: FoldFactors, rows: RowBlocks, gamma: Array) -> tuple[Array, float]:
    """The weight of the misclassified rows of each held-out fold, folds × γ, and the weight of all rows."""
    xp = array_namespace(gamma)
    solutions = [(s.weights(gamma), s.intercept(gamma)) for s in folds.spectra]
    wrong, total = [0.0 * gamma for _ in solutions], 0.0
    place = {v: k for k, v in enumerate(folds.filled)}
    for block in rows.read():
        for v, mine in split_by_fold(block, folds.plan):
            H, T, weight = rows.encode(mine)
            total += float(H.shape[0] if weight is None else xp.sum(weight))
            if v not in place:  # all its rows have zero weight
                continue
            W, b = solutions[place[v]]
            H, T = as_float64(H), as_float64(T)
            parts = slices_of(gamma.shape[0], T.shape[0] * T.shape[1])
            errors = xp.concat([_wrong(H, T, weight, W[part, ...], b[part, ...]) for part in parts])
            wrong[place[v]] = wrong[place[v]] + errors
    return xp.stack(wrong), total


def _wrong(H: Array, T: Array, weight: Array | None, W: Array, b: Array) -> Array:
    """The weight of misclassified rows, for each γ."""
    xp = array_namespace(H)
    miss = xp.astype(~same_class(xp.matmul(H, W) + b[:, None, :], T), xp.float64)
    return xp.sum(miss if weight is None else miss * weight, axis=1)


def same_class(outputs: Array, T: Array) -> Array:
    """Whether outputs (γ × rows × Q) and ±1 codes (rows × Q) name the same class."""
    xp = array_namespace(T)
    if T.shape[1] == 1:
        return (outputs[..., 0] > 0.0) == (T[:, 0] > 0.0)
    return xp.argmax(outputs, axis=-1) == xp.argmax(T, axis=-1)
