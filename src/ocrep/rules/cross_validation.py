"""Rules that cross-validate exactly: leave-one-out, k-fold, and k-fold with the best conditioning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ocrep.folds import FoldFactors, FoldPlan
from ocrep.kernels import Array, array_namespace, as_float64, device_of, take_rows
from ocrep.leave_one_out import Rows, press
from ocrep.rules.base import Choice, Curve, Evidence, FlooredRule, NotApplicable
from ocrep.rules.search import check_grid, minimise, refine_by_parabola, searched_range


@dataclass(frozen=True, slots=True)
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
        check_grid(self.grid)

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


@dataclass(frozen=True, slots=True)
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
        check_grid(self.grid)
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


@dataclass(frozen=True, slots=True)
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
        xp, device = array_namespace(spectrum.sigma), device_of(spectrum.sigma)
        own = max(spectrum.largest * spectrum.smallest, self.least_gamma(spectrum))
        low, high = searched_range(self, spectrum)
        extra = xp.asarray([best.gamma, min(max(own, low), high)], dtype=xp.float64, device=device)
        gammas = xp.concat([extra, best.curve.gammas])
        errors = fold_errors(folds, gammas)
        differences = errors - errors[:, :1]
        mean = xp.mean(differences, axis=0)
        standard_error = xp.std(differences, axis=0, correction=1.0) / errors.shape[0] ** 0.5
        conditions = xp.where(mean <= standard_error, spectrum.condition(gammas), xp.inf)
        chosen = int(xp.argmin(conditions))
        gamma = float(gammas[chosen])
        least = self.least_gamma(spectrum)
        return Choice(self.name, gamma, 0.0 < gamma <= least, Curve(best.curve.gammas, best.curve.criterion), best.edge)


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
    held_out = [v for v, factor in enumerate(folds.factors) if factor is not None and factor.n_rows]
    wrong, start = 0.0 * gamma, 0
    for H, T, weight in rows.blocks():
        fold = folds.plan.of_rows(start, H.shape[0])
        start += H.shape[0]
        for v, (W, b) in zip(held_out, solutions, strict=True):
            mine = (fold == v).nonzero()[0]
            h, t = as_float64(take_rows(H, mine)), as_float64(take_rows(T, mine))
            outputs = xp.matmul(h, W) + b[:, None, :]
            miss = xp.astype(~same_class(outputs, t), xp.float64)
            wrong = wrong + xp.sum(miss if weight is None else miss * take_rows(weight, mine), axis=1)
    return wrong / sum(folds.weight_sums)


def same_class(outputs: Array, T: Array) -> Array:
    """Whether outputs (γ × rows × Q) and ±1 codes (rows × Q) name the same class."""
    xp = array_namespace(T)
    if T.shape[1] == 1:
        return (outputs[..., 0] > 0.0) == (T[:, 0] > 0.0)
    return xp.argmax(outputs, axis=-1) == xp.argmax(T, axis=-1)
