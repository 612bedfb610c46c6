"""Rules that cross-validate exactly: leave-one-out, k-fold, and k-fold with the best conditioning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from ocrep._linalg.arrays import Array, array_namespace, as_float64, to_host
from ocrep._linalg.folds import FoldFactors, FoldPlan, Split, split_by_fold
from ocrep._linalg.leave_one_out import press, press_by_target
from ocrep._linalg.parallel import RowBlocks, slices_of
from ocrep._linalg.quick_folds import QuickFolds, quick_folds
from ocrep._linalg.some_targets import of_targets
from ocrep._linalg.spectrum import Spectrum, row_of
from ocrep.rules.base import Choice, FlooredRule, Needs, NotApplicable, Targets, one_or_each
from ocrep.rules.criteria import GCV
from ocrep.rules.search import (
    Criterion,
    array_like,
    check_grid,
    do_not_refine,
    minimise,
    refine_by_parabola,
    searched_range,
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HeldOutRule(FlooredRule):
    """A rule that judges γ by rows held out of the fit, which show themselves when γ is too small.

    Parameters
    ----------
    floor : float, "precision" or "rounding", default="rounding"
        γ is at least `floor`·σ₁²; "precision" stands for √ε, "rounding" for ε.
    """

    floor: float | str = "rounding"


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
        given as `fit(X, y, groups=…)`; rows of a group share a fold, and all folds get the same number of groups
        (nearly the same in streams and beyond 1,024 groups). "blocks": its position, for time series; each fold is
        one block of consecutive rows, or with `block_length` the folds take turns after so many rows. "given": its
        group is its fold; `n_folds` and `seed` are ignored.
    block_length : int or None, default=None
        Rows in a block with `split="blocks"`. Streams and `partial_fit` need it, because they do not know the number
        of all rows.
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

    def choose(
        self,
        spectrum: Spectrum,
        *,
        folds: FoldFactors | None = None,
        rows: RowBlocks | None = None,
        per_target: bool = False,
    ) -> Choice:
        """Choose γ by the folds, or by GCV where fewer than two of them hold rows.

        Parameters
        ----------
        spectrum : Spectrum
            The spectrum of H with the targets.
        folds : FoldFactors or None, default=None
            One factor per fold.
        rows : RowBlocks or None, default=None
            The training rows, if misclassified rows are counted.
        per_target : bool, default=False
            Whether each target gets a γ of its own.

        Returns
        -------
        Choice
            γ, how it was chosen, and its error on held-out rows.

        Examples
        --------
        >>> from ocrep import PinvRegressor, rules
        >>> from ocrep.datasets import load
        >>> model = PinvRegressor(20, store_folds=True, random_state=0).fit(*load("housing", return_X_y=True))
        >>> rules.OCRePCV().choose(model.spectrum_, folds=model.folds_).gamma == model.gamma_
        True
        """
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
            return GCV().choose(spectrum, per_target=per_target)
        more: dict[str, Any] = {"rows": rows, "per_target": per_target}
        quick = quick_folds(folds) if folds is not None and self.needs == "folds" else None
        if quick is None:
            choice = super().choose(spectrum, folds=folds, **more)
            return choice if folds is None else _judged(choice, folds)
        choice = super().choose(spectrum, folds=quick, **more)
        doubtful = np.flatnonzero(~are_confirmed(choice, quick))
        if not len(doubtful):
            return _judged(choice, quick)
        exact = quick.plain()
        if not per_target:
            return _judged(super().choose(spectrum, folds=exact, **more), exact)
        spectrum, exact = of_targets(spectrum, doubtful), of_targets(exact, doubtful)
        again = _judged(super().choose(spectrum, folds=exact, per_target=True), exact)
        return _judged(choice, quick).with_some(doubtful, again)


def _judged(choice: Choice, folds: FoldFactors) -> Choice:
    """The same choice with its error on held-out rows."""
    gamma = choice.gamma
    if isinstance(folds, QuickFolds):
        if choice.curve is None:  # H is zero
            folds = folds.plain()
        else:
            return with_error(choice, [fold.squared_errors for fold in folds.refined(_positive(gamma))], folds)
    return with_error(choice, [fit.squared_errors(row_of(fit.spectrum, gamma))[0, :] for fit in folds.fits], folds)


def with_error(choice: Choice, errors: list[Array], folds: FoldFactors) -> Choice:
    """The same choice with its error on held-out rows, from the sums of squares of each fold and target."""
    mean = to_host(sum(errors)) / sum(folds.weight_sums)
    each = isinstance(choice.gamma, np.ndarray)
    return replace(choice, held_out_error=mean if each else float(np.sum(mean)) / folds.n_targets)


def _positive(gamma: Any) -> Any:
    """γ, where it is positive; others were not confirmed, and what is computed for them is not used."""
    return np.where(gamma > 0.0, gamma, 1.0) if isinstance(gamma, np.ndarray) else gamma


def is_confirmed(choice: Choice, quick: QuickFolds) -> bool:
    """Whether a choice by quick folds is that by exact ones."""
    return bool(np.all(are_confirmed(choice, quick)))


def are_confirmed(choice: Choice, quick: QuickFolds) -> np.ndarray:
    """The same for each target that has a γ of its own."""
    if choice.curve is None:
        return np.ones(np.size(choice.gamma), dtype=bool)
    # The best γ of the grid is next to the chosen one, or smaller.
    best = choice.curve.best_gamma
    gamma = np.where(choice.gamma <= 2.0 * best, choice.gamma, best)
    return quick.confirms_each(gamma) if gamma.ndim else np.array([quick.confirms(float(gamma))])


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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LOO(GridRule):
    """Leave-one-out: minimise PRESS(γ) = Σ (residual_i/(1 − h_i))², which equals n refits without one row each.

    The intercept is refitted too; a weighted row counts as one row. One more pass over the rows judges all γ of the
    grid, and a parabola through the best of them gives the optimum. Where 1 − h_i is only rounding noise, as in rows
    with a sentinel of 10¹⁰ or with a category of their own, one more fit of the other rows gives the errors of all of
    these (of the 256 with the most noise).
    Reference: Allen, Technometrics 16 (1974).

    Examples
    --------
    >>> from ocrep import TikhonovRegressor, rules
    >>> from ocrep.datasets import load
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = TikhonovRegressor(rules.LOO()).fit(X, y)
    >>> f"{model.gamma_:.3g}"
    '2.68e+04'
    """

    name = "loo"
    needs = "rows"  # their leverages are not in the spectrum

    def _choose(self, spectrum: Spectrum, _: object, rows: RowBlocks, /) -> Choice:
        return self._searched(spectrum, lambda gamma, _=None: press(spectrum, rows, gamma[:, 0])[:, None])

    def _choose_each(self, spectrum: Spectrum, _: object, rows: RowBlocks, /) -> Choice:
        return self._searched(spectrum, lambda gamma, _=None: press_by_target(spectrum, rows, gamma), True)

    def _searched(self, spectrum: Spectrum, criterion: Criterion, per_target: bool = False) -> Choice:
        grid = check_grid(self.grid)
        return minimise(self, spectrum, criterion, grid=grid, refine=refine_by_parabola, per_target=per_target)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class KFold(FoldRule, GridRule):
    """Cross-validation in k folds: minimise the squared error on rows held out of the fit.

    It is exact: the factors of the other folds are merged, and the error follows from the held-out factor. This equals
    refitting the output weights without each fold; the hidden layer and the input range are those of all rows.
    Reference: Stone, JRSS B 36 (1974).

    Parameters
    ----------
    scoring : {"squared", "error"}, default="squared"
        "error" counts misclassified rows instead; it is for classifiers only, and reads the rows once more.

    Examples
    --------
    >>> from ocrep import TikhonovRegressor, rules
    >>> from ocrep.datasets import load
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = TikhonovRegressor(rules.KFold(n_folds=5)).fit(X, y)
    >>> f"{model.gamma_:.3g}"
    '1.77e+04'
    >>> rules.KFold(n_folds=5).choose(model.spectrum_, folds=model.folds_).rule  # as `fit` does
    'kfold'
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

    @property
    def targets(self) -> Targets:  # type: ignore[override]
        """A row is misclassified by all targets together; its squared error is the sum of theirs."""
        return "together" if self.scoring == "error" else "each"

    def _choose(self, spectrum: Spectrum, folds: FoldFactors, rows: RowBlocks, /) -> Choice:
        grid = check_grid(self.grid)
        if self.scoring == "squared":
            return minimise(self, spectrum, _together(partial(mean_squared_error, folds)), grid=grid)
        if not rows.labels:
            raise NotApplicable("scoring='error' counts misclassified rows, and this is a regression: use 'squared'.")
        wrong = _together(partial(misclassified, folds, rows))
        return minimise(self, spectrum, wrong, grid=grid, refine=do_not_refine)

    def _choose_each(self, spectrum: Spectrum, folds: FoldFactors, _: object, /) -> Choice:
        criterion = partial(errors_by_target, folds)
        return minimise(self, spectrum, criterion, grid=check_grid(self.grid), per_target=True)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OCRePCV(FoldRule):
    """OCReP among the γ that cross-validation cannot tell from its best: the least μ(H^reg) within one standard error.

    For each γ, the exact k-fold error minus that of the best γ is averaged over the folds. γ is admissible if this mean
    is at most its standard error. The differences are paired, so a fold that is hard for every γ does not count.
    OCReP alone regularizes too much where H is well conditioned, and cross-validation alone sometimes too little; this
    rule keeps the best conditioning that the data allow. It is new in this library.

    Examples
    --------
    >>> from ocrep import TikhonovRegressor, rules
    >>> from ocrep.datasets import load
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = TikhonovRegressor(rules.OCRePCV()).fit(X, y)
    >>> f"{model.gamma_:.3g}"
    '1.22e+07'
    """

    name = "ocrep_cv"

    def _choose(self, spectrum: Spectrum, folds: FoldFactors, _: object, /) -> Choice:
        best = minimise(self, spectrum, _together(partial(mean_squared_error, folds)))
        return self._best_conditioned(best, spectrum, lambda gamma: fold_errors(folds, gamma[:, 0])[:, :, None])

    def _choose_each(self, spectrum: Spectrum, folds: FoldFactors, _: object, /) -> Choice:
        best = minimise(self, spectrum, partial(errors_by_target, folds), per_target=True)
        return self._best_conditioned(best, spectrum, partial(fold_errors_by_target, folds))

    def _best_conditioned(self, best: Choice, spectrum: Spectrum, errors: Callable[[Array], Array]) -> Choice:
        """The choice of the best conditioning, from that of the least error; `errors` are folds × γ × columns."""
        if best.curve is None:
            return best
        low, high = searched_range(self, spectrum)
        ocrep = min(max(spectrum.largest * spectrum.smallest, low), high)
        grid = to_host(best.curve.gammas)
        least = np.atleast_1d(best.gamma)
        gamma = _admissible(spectrum, errors, least, np.append(ocrep, grid)[:, None])
        # The limit of what is admissible lies between grid points: search once more around the result.
        finer = np.clip(gamma * (grid[1] / grid[0]) ** (np.arange(-16, 17)[:, None] / 16), low, high)
        gamma = _admissible(spectrum, errors, least, np.concatenate([gamma[None, :], finer]))
        edge = np.where(gamma <= grid[0], "low", np.where(gamma >= grid[-1], "high", ""))
        floored = (edge == "low") & (self.least_gamma(spectrum) > 0.0)
        return one_or_each(self.name, gamma, floored, best.curve, edge, per_target=isinstance(best.gamma, np.ndarray))


def _admissible(
    spectrum: Spectrum, errors: Callable[[Array], Array], best: np.ndarray, candidates: np.ndarray
) -> np.ndarray:
    """For each column the γ with the least μ(H^reg) among those that the folds cannot tell from the best one.

    Candidates have the shape (γ, 1) or (γ, columns), as in `errors`.
    """
    at_best, found = (to_host(errors(array_like(spectrum.sigma, gamma))) for gamma in (best[None, :], candidates))
    level = at_best.max(axis=0)
    # Relative to the best γ's error, so that squares neither overflow nor vanish.
    differences = (found - at_best) / np.where(level > 0.0, level, 1.0)
    standard_error = differences.std(axis=0, ddof=1) / len(differences) ** 0.5
    conditions, least = (to_host(spectrum.condition(array_like(spectrum.sigma, g))) for g in (candidates, best))
    conditions = np.where(differences.mean(axis=0) <= standard_error, conditions, np.inf)
    place = conditions.argmin(axis=0), np.arange(conditions.shape[1])
    chosen = np.broadcast_to(candidates, conditions.shape)[place]
    # Far below σ_p² all γ have the same condition but for rounding.
    return np.where(conditions[place] < (1.0 - 1e-9) * least, chosen, best)


def _together(criterion: Callable[[Array], Array]) -> Criterion:
    """A criterion of all targets as one column."""
    return lambda gamma, _=None: criterion(gamma[:, 0])[:, None]


def fold_errors(folds: FoldFactors, gamma: Array) -> Array:
    """Mean squared error of each held-out fold, folds × γ."""
    errors = folds.squared_errors(gamma)
    return errors / array_like(errors, folds.weight_sums)[:, None]


def fold_errors_by_target(folds: FoldFactors, gamma: Array) -> Array:
    """The same of each target, folds × γ × targets, at γ of shape (G, 1) or (G, Q)."""
    errors = [fit.squared_errors(gamma) / w for fit, w in zip(folds.fits, folds.weight_sums, strict=True)]
    return array_namespace(gamma).stack(errors)


def mean_squared_error(folds: FoldFactors, gamma: Array) -> Array:
    """Mean squared error over all rows and targets, each row held out once."""
    errors = folds.squared_errors(gamma)
    return array_namespace(errors).sum(errors, axis=0) / (sum(folds.weight_sums) * folds.n_targets)


def errors_by_target(folds: FoldFactors, gamma: Array, targets: np.ndarray | None = None) -> Array:
    """The same of each target, or of some, γ × targets, at γ of shape (G, 1) or (G, targets)."""
    fits = folds.fits if targets is None else [of_targets(fit, targets) for fit in folds.fits]
    return sum(fit.squared_errors(gamma) for fit in fits) / sum(folds.weight_sums)


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
            right = partial(same_class, several=rows.several)
            errors = xp.concat([_wrong(H, T, weight, W[part, ...], b[part, ...], right) for part in parts])
            wrong[place[v]] = wrong[place[v]] + errors
    return xp.stack(wrong), total


def _wrong(
    H: Array, T: Array, weight: Array | None, W: Array, b: Array, right: Callable[[Array, Array], Array]
) -> Array:
    """The weight of misclassified rows, for each γ."""
    xp = array_namespace(H)
    miss = xp.astype(~right(xp.matmul(H, W) + b[:, None, :], T), xp.float64)
    return xp.sum(miss if weight is None else miss * weight, axis=1)


def same_class(outputs: Array, T: Array, *, several: bool = False) -> Array:
    """Whether outputs (γ × rows × Q) and ±1 codes (rows × Q) name the same class, or all of several labels."""
    xp = array_namespace(T)
    if several or T.shape[1] == 1:
        return xp.all((outputs > 0.0) == (T > 0.0), axis=-1)
    return xp.argmax(outputs, axis=-1) == xp.argmax(T, axis=-1)
