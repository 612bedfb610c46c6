"""`FoldRule`: what rules that read one factor per fold share, and how choices by quick folds are confirmed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ocrep._linalg.arrays import Array, to_host
from ocrep._linalg.folds import FoldFactors, FoldPlan, Split
from ocrep._linalg.quick_folds import QuickFolds, quick_folds
from ocrep._linalg.rows import EncodedRows
from ocrep._linalg.some_targets import of_targets
from ocrep._linalg.spectrum import Spectrum, row_of
from ocrep.rules.base import FlooredRule, NotApplicable
from ocrep.rules.choice import Choice
from ocrep.rules.criteria import GCV


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

    def with_folds(self, plan: FoldPlan) -> Self:
        """The same rule with another division of the rows."""
        return replace(self, n_folds=plan.n_folds, seed=plan.seed, split=plan.split, block_length=plan.block_length)

    def choose(
        self,
        spectrum: Spectrum,
        *,
        folds: FoldFactors | None = None,
        rows: EncodedRows | None = None,
        per_target: bool = False,
    ) -> Choice:
        """Choose γ by the folds, or by GCV where fewer than two of them hold rows.

        Parameters
        ----------
        spectrum : Spectrum
            The spectrum of H with the targets.
        folds : FoldFactors or None, default=None
            One factor per fold.
        rows : EncodedRows or None, default=None
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
