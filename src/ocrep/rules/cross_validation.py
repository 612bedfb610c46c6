"""Rules that cross-validate exactly: leave-one-out, k-fold, and k-fold with the best conditioning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ocrep._linalg.arrays import Array, array_namespace, as_float64, device_of, take_rows
from ocrep._linalg.blocks import slices_of
from ocrep._linalg.folds import FoldFactors, FoldPlan
from ocrep._linalg.leave_one_out import Rows, press
from ocrep.rules.base import Choice, Edge, Evidence, FlooredRule, NotApplicable
from ocrep.rules.search import check_grid, minimise, refine_by_parabola, searched_range


@dataclass(frozen=True, slots=True, kw_only=True)
class LOO(FlooredRule):
    """Leave-one-out: minimise PRESS(γ) = Σ (residual_i/(1 − h_i))², exactly what n refits would give.

    Reference: Allen, Technometrics 16 (1974). The intercept is refitted too; a weighted row counts as one row.
    It reads the rows once more, for all γ together, so the refinement is a parabola through the best grid points.
    `grid` takes the γ to try, or the name of one of the literature's grids.
    """

    grid: str | Sequence[float] | None = None
    name: ClassVar[str] = "loo"
    needs: ClassVar[Literal["spectrum", "folds", "rows"]] = "rows"

    def __post_init__(self) -> None:
        FlooredRule.__post_init__(self)
        _settle_grid(self)

    @property
    def degree(self) -> int | None:  # type: ignore[override]
        """2, or None for a fixed grid."""
        return None if self.grid is not None else 2

    def _choose(self, evidence: Evidence) -> Choice:
        spectrum, rows = evidence.spectrum, evidence.rows
        assert rows is not None
        return minimise(
            self,
            spectrum,
            lambda gamma: press(spectrum, rows, gamma),
            grid=check_grid(self.grid),
            refine=refine_by_parabola,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KFold(FlooredRule):
    """k-fold cross-validation: minimise the squared error on rows held out of the fit.

    Exact: the factors of the other folds are merged, and the held-out error is read off the held-out factor, which
    equals refitting the output weights on every fold; the hidden layer and the input range are those of all rows.
    Reference: Stone, JRSS B 36 (1974). `scoring="error"` counts misclassified rows instead, which reads the rows
    once more and is for classifiers only. `grid` takes the γ to try, or the name of one of the literature's grids.
    """

    n_folds: int = 3
    seed: int = 0
    scoring: Literal["squared", "error"] = "squared"
    grid: str | Sequence[float] | None = None
    name: ClassVar[str] = "kfold"

    def __post_init__(self) -> None:
        FlooredRule.__post_init__(self)
        _settle_grid(self)
        FoldPlan(self.n_folds, self.seed)
        if self.scoring not in ("squared", "error"):
            raise ValueError(f"scoring={self.scoring!r} must be 'squared' or 'error'.")

    @property
    def needs(self) -> Literal["spectrum", "folds", "rows"]:  # type: ignore[override]
        """The folds' factors, and the rows too if rows are to be counted."""
        return "rows" if self.scoring == "error" else "folds"

    @property
    def degree(self) -> int | None:  # type: ignore[override]
        """2, or None for a fixed grid."""
        return None if self.grid is not None else 2

    @property
    def folds(self) -> FoldPlan:  # type: ignore[override]
        """How the rows are divided."""
        return FoldPlan(self.n_folds, self.seed)

    def _choose(self, evidence: Evidence) -> Choice:
        folds, rows = evidence.folds, evidence.rows
        assert folds is not None
        grid = check_grid(self.grid)
        if self.scoring == "squared":
            return minimise(self, evidence.spectrum, lambda gamma: mean_squared_error(folds, gamma), grid=grid)
        assert rows is not None
        if not rows.labels:
            raise NotApplicable("scoring='error' counts misclassified rows, and this is a regression: use 'squared'.")
        # A count is a staircase: there is nothing to refine between grid points.
        return minimise(
            self,
            evidence.spectrum,
            lambda gamma: misclassified(folds, rows, gamma),
            grid=grid,
            refine=lambda curve, best, _: float(curve.gammas[best]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OCRePCV(FlooredRule):
    """OCReP among the γ that cross-validation cannot tell from its best: the least μ(H^reg) within one standard error.

    For each γ the exact k-fold error minus that of the best γ is averaged over the folds; γ stays if that mean is
    within its standard error (the differences are paired, so what all γ find hard in a fold does not count).
    New here. OCReP alone regularizes too much where H is well conditioned, cross-validation alone now and then
    too little; this keeps the conditioning wherever the data do not object.
    """

    n_folds: int = 3
    seed: int = 0
    name: ClassVar[str] = "ocrep_cv"
    needs: ClassVar[Literal["spectrum", "folds", "rows"]] = "folds"

    def __post_init__(self) -> None:
        FlooredRule.__post_init__(self)
        FoldPlan(self.n_folds, self.seed)

    @property
    def folds(self) -> FoldPlan:  # type: ignore[override]
        """How the rows are divided."""
        return FoldPlan(self.n_folds, self.seed)

    def _choose(self, evidence: Evidence) -> Choice:
        folds, spectrum = evidence.folds, evidence.spectrum
        assert folds is not None
        best = minimise(self, spectrum, lambda gamma: mean_squared_error(folds, gamma))
        if best.curve is None:
            return best
        low, high = searched_range(self, spectrum)
        own = min(max(spectrum.largest * spectrum.smallest, low), high)
        grid = [float(g) for g in best.curve.gammas]
        gamma = self._best_conditioned(evidence, best.gamma, [own, *grid])
        # The boundary of what is admissible lies between grid points: look once more around the answer.
        ratio = grid[1] / grid[0]
        finer = [min(max(gamma * ratio ** (k / 16), low), high) for k in range(-16, 17)]
        gamma = self._best_conditioned(evidence, best.gamma, [gamma, *finer])
        edge: Edge | None = "low" if gamma <= grid[0] else "high" if gamma >= grid[-1] else None
        floored = edge == "low" and self.least_gamma(spectrum) > 0.0
        return Choice(self.name, gamma, floored, best.curve, edge)

    def _best_conditioned(self, evidence: Evidence, best: float, candidates: list[float]) -> float:
        """The candidate with the least μ(H^reg) among those the folds cannot tell from the best."""
        spectrum, folds = evidence.spectrum, evidence.folds
        assert folds is not None
        xp, device = array_namespace(spectrum.sigma), device_of(spectrum.sigma)
        gammas = xp.asarray([best, *candidates], dtype=xp.float64, device=device)
        errors = fold_errors(folds, gammas)
        level = float(xp.max(errors[:, 0]))
        # Relative to the best γ's error, so that squares neither overflow nor vanish.
        differences = (errors - errors[:, :1]) / (level if level > 0.0 else 1.0)
        mean = xp.mean(differences, axis=0)
        standard_error = xp.std(differences, axis=0, correction=1.0) / errors.shape[0] ** 0.5
        conditions = xp.where(mean <= standard_error, spectrum.condition(gammas), xp.inf)
        return float(gammas[int(xp.argmin(conditions))])


def _settle_grid(rule: LOO | KFold) -> None:
    """Check the grid, and keep the user's own as a tuple: it may be an array or an iterator."""
    if rule.grid is not None and not isinstance(rule.grid, str):
        own: Any = rule.grid
        own = [own] if np.isscalar(own) else list(own)
        object.__setattr__(rule, "grid", check_grid(own))
    check_grid(rule.grid)


def fold_errors(folds: FoldFactors, gamma: Array) -> Array:
    """Mean squared error of each held-out fold, folds × γ."""
    errors = folds.squared_errors(gamma)
    xp = array_namespace(errors)
    return errors / xp.asarray(folds.weight_sums, dtype=xp.float64, device=device_of(errors))[:, None]


def mean_squared_error(folds: FoldFactors, gamma: Array) -> Array:
    """Mean squared error over all rows and targets, each row held out once."""
    errors = folds.squared_errors(gamma)
    return array_namespace(errors).sum(errors, axis=0) / (sum(folds.weight_sums) * folds.n_targets)


def misclassified(folds: FoldFactors, rows: Rows, gamma: Array) -> Array:
    """The weighted share of rows that a fit without their fold puts into the wrong class, in one pass."""
    xp = array_namespace(gamma)
    solutions = [(s.weights(gamma), s.intercept(gamma)) for s in folds.spectra]
    wrong, total, start = 0.0 * gamma, 0.0, 0
    for H, T, weight in rows.blocks():
        fold = folds.plan.of_rows(start, H.shape[0])
        start += H.shape[0]
        total += float(H.shape[0] if weight is None else xp.sum(weight))
        for v, (W, b) in zip(folds.filled, solutions, strict=True):
            mine = (fold == v).nonzero()[0]
            h, t = as_float64(take_rows(H, mine)), as_float64(take_rows(T, mine))
            w = None if weight is None else take_rows(weight, mine)
            chunks = slices_of(gamma.shape[0], t.shape[0] * t.shape[1])
            wrong = wrong + xp.concat([_wrong(h, t, w, W[part, ...], b[part, ...]) for part in chunks])
    return wrong / total


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
