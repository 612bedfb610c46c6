"""Rules that cross-validate exactly: leave-one-out, k-fold, and k-fold with the best conditioning.

Errors on held-out rows need no refits for each γ. k folds leave k factors; the factors of all folds but one are
merged, and their spectrum predicts the fold that was held out under every γ at once (`HeldOut` in
`_linalg.spectrum`). Where the folds are small, eigenvalues of Gram matrices are faster still (`QuickFolds` in
`_linalg.fold_factors`): a γ is chosen by them, and then either confirmed or chosen again by the factors. Leave-one-out
follows from residuals and leverages (`_linalg.leave_one_out`).
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from ocrep._linalg.arrays import Array, array_namespace, as_float64, to_device_of, to_host
from ocrep._linalg.fold_factors import FoldFactors, QuickFolds, held_out, quick_folds
from ocrep._linalg.folds import FoldPlan, Split, split_by_fold
from ocrep._linalg.leave_one_out import press_by_target
from ocrep._linalg.parallel import slices_of
from ocrep._linalg.rows import EncodedRows
from ocrep._linalg.spectrum import Spectrum, row_of
from ocrep.rules.base import (
    Choice,
    Curve,
    FlooredRule,
    NotApplicable,
    Reads,
    Rule,
    Targets,
    check_usable,
    choice_of,
)
from ocrep.rules.criteria import GCV
from ocrep.rules.search import (
    check_grid,
    do_not_refine,
    minimise,
    refine_by_parabola,
    searched_range,
)


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutErrors:
    """Σ w(t − prediction)² over held-out folds under many γ, for all targets together or for each of them."""

    folds: FoldFactors
    per_target: bool
    targets: np.ndarray | None = None
    """The numbers of the targets that are columns, if each is one; None for all."""

    @property
    def n_columns(self) -> int:
        """One for all targets, or as many as there are targets."""
        if not self.per_target:
            return 1
        return self.folds.n_targets if self.targets is None else len(self.targets)

    def of_folds(self, gamma: Array, columns: np.ndarray | None = None) -> Array:
        """Of each fold, folds × γ × columns, at γ of shape (G, 1), or (G, columns) for one each."""
        if not self.per_target:
            return self.folds.squared_errors(gamma[:, 0])[:, :, None]
        targets = self.targets
        if columns is not None:
            targets = columns if targets is None else targets[columns]
        return array_namespace(gamma).stack([fit.squared_errors(gamma, targets) for fit in self.folds.fits])

    def mean(self, gamma: Array, columns: np.ndarray | None = None) -> Array:
        """The mean over all rows, each held out once, and over the targets of a column: γ × columns."""
        errors = self.of_folds(gamma, columns)
        targets_each = 1 if self.per_target else self.folds.n_targets
        return array_namespace(errors).sum(errors, axis=0) / (sum(self.folds.weight_sums) * targets_each)

    def mean_of_folds(self, gamma: Array) -> Array:
        """The mean over the rows of each fold, folds × γ × columns."""
        errors = self.of_folds(gamma)
        return errors / to_device_of(errors, np.array(self.folds.weight_sums))[:, None, None]


@dataclass(frozen=True, kw_only=True, repr=False)
class FoldRule(FlooredRule):
    """A rule that reads one factor per fold.

    The floor is low, since rows held out of the fit show themselves when γ is too small.

    Parameters
    ----------
    floor : float, "precision" or "rounding", default="rounding"
        γ is at least `floor`·σ₁²; "precision" stands for √ε, "rounding" for ε.
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

    floor: float | str = "rounding"
    n_folds: int = 3
    seed: int = 0
    split: Split = "content"
    block_length: int | None = None
    reads = "folds"

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.folds  # its options are checked there

    @property
    def folds(self) -> FoldPlan:  # type: ignore[override]
        """The division of the rows."""
        return FoldPlan(self.n_folds, self.seed, self.split, self.block_length)

    def _choose(
        self, spectrum: Spectrum, folds: FoldFactors, rows: EncodedRows | None, /, *, per_target: bool
    ) -> Choice:
        """Choose by quick folds, and once more by exact ones for the columns whose errors these do not confirm.

        GCV takes the place of folds of which fewer than two hold rows.
        """
        if len(folds.filled) < 2:
            if self.split != "content":
                raise NotApplicable(
                    f"gamma={self!r} needs rows of positive weight in at least two folds, and all of them fell into "
                    "one: give more groups or shorter blocks, or another seed."
                )
            warnings.warn(
                f"gamma={self!r} needs rows in at least two folds, and {folds.n_read} sample(s) are too few or too "
                "alike: gamma='gcv' was used instead. Give more rows, or set gamma='gcv'.",
                stacklevel=3,
            )
            return GCV()._choose(spectrum, None, None, per_target=per_target)
        quick = quick_folds(folds) if self.reads == "folds" else None
        if quick is None:
            return self._judged(spectrum, HeldOutErrors(folds, per_target), rows)
        choice = self._by_folds(spectrum, HeldOutErrors(quick, per_target), rows)
        doubtful = np.flatnonzero(~are_confirmed(choice, quick))
        # Where H is zero, there is no curve, and eigenvalues tell nothing of the errors.
        if choice.curve is None or len(doubtful) == len(choice.gamma):
            return self._judged(spectrum, HeldOutErrors(quick.exact, per_target), rows)
        # A γ of zero is doubtful, and what is computed in its place is not used.
        refined = quick.refined(np.where(choice.gamma > 0.0, choice.gamma, 1.0))
        choice = with_error(choice, [errors for _, _, errors in refined], folds)
        if not len(doubtful):
            return choice
        exact = self._judged(spectrum, HeldOutErrors(quick.exact, per_target, doubtful), rows)
        return _with_columns(choice, doubtful, exact)

    @abstractmethod
    def _by_folds(self, spectrum: Spectrum, errors: HeldOutErrors, rows: EncodedRows | None) -> Choice:
        """Choose γ for each column of the errors."""

    def _judged(self, spectrum: Spectrum, errors: HeldOutErrors, rows: EncodedRows | None) -> Choice:
        """The choice with its error on held-out rows."""
        choice = self._by_folds(spectrum, errors, rows)
        row = row_of(spectrum, choice.gamma)
        found = [fit.squared_errors(row, errors.targets)[0, :] for fit in errors.folds.fits]
        return with_error(choice, found, errors.folds)


def with_error(choice: Choice, errors: list[Array], folds: FoldFactors) -> Choice:
    """The same choice with its error on held-out rows, from the sums of squares of each fold and target."""
    mean = to_host(sum(errors)) / sum(folds.weight_sums)
    if np.size(choice.gamma) < len(mean):  # one γ for several targets
        mean = np.mean(mean, keepdims=True)
    return replace(choice, held_out_error=mean if isinstance(choice.gamma, np.ndarray) else float(mean[0]))


def _with_columns(choice: Choice, columns: np.ndarray, other: Choice) -> Choice:
    """The choice with that of some columns taken from another."""
    assert choice.curve is not None
    assert other.curve is not None
    merged = {name: getattr(choice, name).copy() for name in ("gamma", "floored", "edge", "held_out_error")}
    for name, values in merged.items():
        values[columns] = getattr(other, name)
    criterion = choice.curve.criterion.copy()
    criterion[:, columns] = other.curve.criterion
    return replace(choice, **merged, curve=Curve(choice.curve.gammas, criterion))


def are_confirmed(choice: Choice, quick: QuickFolds) -> np.ndarray:
    """Whether a choice by quick folds is that by exact ones, for each column."""
    gamma = np.atleast_1d(choice.gamma)
    if choice.curve is None:
        return np.ones(len(gamma), dtype=bool)
    # The best γ of the grid is next to the chosen one, or smaller.
    best = np.atleast_1d(choice.curve.best_gamma)
    return quick.confirms(np.where(gamma <= 2.0 * best, gamma, best))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GridRule(FlooredRule):
    """A rule that judges γ by rows held out of the fit, and whose `grid` replaces the search over all γ.

    Parameters
    ----------
    floor : float, "precision" or "rounding", default="rounding"
        γ is at least `floor`·σ₁²; "precision" stands for √ε, "rounding" for ε.
    grid : str, sequence of float or None, default=None
        The γ to try, or a name in `rules.GRIDS`. None searches a log grid and refines its optimum.
    """

    floor: float | str = "rounding"
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
    reads = "rows"  # their leverages are not in the spectrum

    def _choose(self, spectrum: Spectrum, _: object, rows: EncodedRows, /, *, per_target: bool) -> Choice:
        def criterion(gamma: Array, _: object = None) -> Array:
            errors = press_by_target(spectrum, rows, gamma)
            return errors if per_target else array_namespace(errors).sum(errors, axis=1, keepdims=True)

        n_columns = spectrum.n_targets if per_target else 1
        grid = check_grid(self.grid)
        return minimise(self, spectrum, criterion, n_columns=n_columns, grid=grid, refine=refine_by_parabola)


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
    def reads(self) -> Reads:  # type: ignore[override]
        """The folds' factors, and the rows too if misclassified rows are counted."""
        return "rows" if self.scoring == "error" else "folds"

    @property
    def targets(self) -> Targets:  # type: ignore[override]
        """A row is misclassified by all targets together; its squared error is the sum of theirs."""
        return "together" if self.scoring == "error" else "each"

    def _by_folds(self, spectrum: Spectrum, errors: HeldOutErrors, rows: EncodedRows | None) -> Choice:
        grid = check_grid(self.grid)
        if self.scoring == "squared":
            return minimise(self, spectrum, errors.mean, n_columns=errors.n_columns, grid=grid)
        assert rows is not None
        if not rows.encoder.labels:
            raise NotApplicable("scoring='error' counts misclassified rows, and this is a regression: use 'squared'.")

        def criterion(gamma: Array, _: object = None) -> Array:
            return misclassified(errors.folds, rows, gamma[:, 0])[:, None]

        return minimise(self, spectrum, criterion, n_columns=1, grid=grid, refine=do_not_refine)


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

    def _by_folds(self, spectrum: Spectrum, errors: HeldOutErrors, rows: EncodedRows | None) -> Choice:
        best = minimise(self, spectrum, errors.mean, n_columns=errors.n_columns)
        if best.curve is None:
            return best
        low, high = searched_range(self, spectrum)
        ocrep = min(max(spectrum.largest * spectrum.smallest, low), high)
        grid = to_host(best.curve.gammas)
        gamma = _admissible(spectrum, errors, best.gamma, np.append(ocrep, grid)[:, None])
        # The limit of what is admissible lies between grid points: search once more around the result.
        finer = np.clip(gamma * (grid[1] / grid[0]) ** (np.arange(-16, 17)[:, None] / 16), low, high)
        gamma = _admissible(spectrum, errors, best.gamma, np.concatenate([gamma[None, :], finer]))
        edge = np.where(gamma <= grid[0], "low", np.where(gamma >= grid[-1], "high", ""))
        floored = (edge == "low") & (self.least_gamma(spectrum) > 0.0)
        return choice_of(self.name, gamma, floored=floored, edge=edge, curve=best.curve)


def _admissible(spectrum: Spectrum, errors: HeldOutErrors, best: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """For each column the γ with the least μ(H^reg) among those that the folds cannot tell from the best one.

    Candidates have the shape (γ, 1) or (γ, columns).
    """
    at_best = to_host(errors.mean_of_folds(to_device_of(spectrum.sigma, best[None, :])))
    found = to_host(errors.mean_of_folds(to_device_of(spectrum.sigma, candidates)))
    level = at_best.max(axis=0)
    # Relative to the best γ's error, so that squares neither overflow nor vanish.
    differences = (found - at_best) / np.where(level > 0.0, level, 1.0)
    standard_error = differences.std(axis=0, ddof=1) / len(differences) ** 0.5
    conditions = to_host(spectrum.condition(to_device_of(spectrum.sigma, candidates)))
    least = to_host(spectrum.condition(to_device_of(spectrum.sigma, best)))
    conditions = np.where(differences.mean(axis=0) <= standard_error, conditions, np.inf)
    place = conditions.argmin(axis=0), np.arange(conditions.shape[1])
    chosen = np.broadcast_to(candidates, conditions.shape)[place]
    # Far below σ_p² all γ have the same condition but for rounding.
    return np.where(conditions[place] < (1.0 - 1e-9) * least, chosen, best)


def fold_errors(folds: FoldFactors, gamma: Array) -> Array:
    """Mean squared error of each held-out fold over all targets, folds × γ."""
    return HeldOutErrors(folds, per_target=False).mean_of_folds(gamma[:, None])[:, :, 0]


def misclassified(folds: FoldFactors, rows: EncodedRows, gamma: Array) -> Array:
    """The weighted share of rows that a fit without their fold puts into the wrong class; the rows are read once."""
    wrong, total = misclassified_by_fold(folds, rows, gamma)
    return array_namespace(gamma).sum(wrong, axis=0) / total


def misclassified_by_fold(folds: FoldFactors, rows: EncodedRows, gamma: Array) -> tuple[Array, float]:
    """The weight of the misclassified rows of each held-out fold, folds × γ, and the weight of all rows."""
    xp = array_namespace(gamma)
    solutions = [(s.weights(gamma), s.intercept(gamma)) for s in folds.spectra]
    wrong = [0.0 * gamma for _ in solutions]
    total = 0.0
    place = {v: k for k, v in enumerate(folds.filled)}
    for block in rows.read():
        for v, mine in split_by_fold(block, folds.plan):
            H, T, weight = rows.encoder.encode(mine)
            total += float(H.shape[0] if weight is None else xp.sum(weight))
            if v not in place:  # all its rows have zero weight
                continue
            W, b = solutions[place[v]]
            H, T = as_float64(H), as_float64(T)
            parts = slices_of(gamma.shape[0], T.shape[0] * T.shape[1])
            right = partial(same_class, several=rows.encoder.several)
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


# ------------------------------------------------------------------------------
# The errors of a γ that any rule has chosen, from one factor per fold alone.


Output = tuple[Array, Array]
"""Weights, features × targets, and constants, one per target."""


def outputs_without(rule: Rule, folds: FoldFactors, gamma: Any) -> list[Output]:
    """The output layer fitted without each fold, for a rule that chose `gamma` on all rows.

    A rule that holds rows out itself gets the error of the γ it chose, as in the paper's joint search; any other
    chooses anew on each training part.
    """
    check_usable(folds)
    if rule.folds is not None or rule.reads == "rows":
        return folds.solutions(gamma)
    return [spectrum.solution(rule.choose(spectrum).gamma) for spectrum in folds.spectra]


def squared_errors_of(folds: FoldFactors, outputs: Sequence[Output]) -> list[float]:
    """Σ w‖t − prediction‖² over each held-out fold."""
    pairs = zip(held_out(folds), outputs, strict=True)
    errors = [fold.squared_error_by_target(*output) for (fold, _), output in pairs]
    return [float(array_namespace(error).sum(error)) for error in errors]


def cv_error_of(rule: Rule, folds: FoldFactors, gamma: Any) -> float:
    """The mean squared error over all rows and targets, each row held out once."""
    total = sum(squared_errors_of(folds, outputs_without(rule, folds, gamma)))
    return total / (sum(folds.weight_sums) * folds.n_targets)
