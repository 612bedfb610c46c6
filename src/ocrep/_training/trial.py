"""`Tried`: one candidate on some rows, judged by its exact held-out error before a spectrum of all rows is needed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ocrep._linalg.fold_plan import FoldPlan
from ocrep._linalg.folds import FoldFactors
from ocrep._linalg.quick_folds import QuickFolds, quick_folds
from ocrep._linalg.solve import Solved
from ocrep._rows.rows import Rows
from ocrep._rows.survey import Survey
from ocrep._training.held_out import log_losses_of, outputs_without, squared_errors_of
from ocrep._training.learned import Learned
from ocrep._training.recipe import Recipe
from ocrep._training.train import Training, factor_rows, finish
from ocrep.rules.fold_rule import is_confirmed


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A network to try: the parameters that tell it from the others, and how it is trained."""

    parameters: dict[str, Any]
    recipe: Recipe

    def memory(self, n_inputs: int, n_rows: int) -> int:
        """About how many bytes it takes: a matrix for each fold and a few more, and some rows of H."""
        layer, plan = self.recipe.layer, self.recipe.folds or FoldPlan()
        assert layer is not None
        width = layer.n_hidden + (n_inputs if layer.direct_link else 0)
        k = min(width, n_rows)
        return 8 * ((plan.n_folds + 4) * k * k + 4 * min(n_rows, 4 * width) * width)


def too_few(n_rows: int, plan: FoldPlan) -> ValueError:
    """The error for rows that cannot be divided into folds."""
    return ValueError(
        f"Candidates are compared on rows held out, and {n_rows} sample(s) are too few or too alike for {plan}: give "
        "more rows, or train one network without cross-validation."
    )


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """What became of one candidate."""

    seconds: float
    gamma: float = math.nan
    loss: float = math.nan
    """What the candidates are judged by, over all rows, each held out once: for numbers the mean squared error, for
    labels the mean log-loss."""
    by_fold: tuple[float, ...] = ()
    """The same for each fold."""
    squared_error: float = math.nan
    """Mean over all rows and targets, each row held out once."""
    n_rows: int = 0
    """How many rows it was judged on."""
    failure: Exception | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """A candidate with all that was learned of the rows to judge it."""

    recipe: Recipe
    learned: Learned
    solved: Solved
    gamma: float
    quick: QuickFolds | None = None
    training: Training | None = None

    @classmethod
    def of(cls, recipe: Recipe, rows: Rows, survey: Survey) -> Tried:
        """Factor the rows, and choose γ."""
        recipe = replace(recipe, folds=recipe.folds or FoldPlan())
        learned = Learned.of(recipe, survey, rows.n_rows)
        solved = factor_rows(recipe, learned, rows)
        folds, rule = solved.folds, recipe.rule
        assert folds is not None
        if len(folds.filled) < 2:
            raise too_few(folds.n_read, folds.plan)
        quick = quick_folds(folds) if rule.needs == "folds" and not recipe.auto_size else None
        rough = None if quick is None else quick.rough_spectrum()
        if quick is None or rough is None:
            quick = None  # of features that are all zero, eigenvalues tell nothing
        else:
            choice = rule.choose(rough.spectrum, folds=quick)
            if not is_confirmed(choice, quick):
                quick = None
            elif choice.gamma >= rough.certain_from:
                return cls(recipe, learned, solved, choice.gamma, quick)
        training = finish(replace(recipe, calibrate=None), learned, solved, rows, quick=quick)
        return cls(recipe, learned, solved, training.choice.gamma, quick, training)

    def judged(self, rows: Rows, gamma: float, seconds: float) -> Trial:
        """The exact held-out errors at γ."""
        folds = self.solved.folds if self.training is None else self.training.factored.folds
        assert folds is not None
        if self.quick is not None:
            refined = self.quick.refined(gamma)
            outputs, squares = [(r.weights, r.intercept) for r in refined], [r.squared_error for r in refined]
        else:
            outputs = outputs_without(self.recipe.rule, folds, gamma)
            squares = self._verified(squared_errors_of(folds, outputs), folds, gamma)
        weights = np.array(folds.weight_sums)
        losses = squared = np.array(squares) / folds.n_targets
        if self.recipe.targets.labels:
            learned = self.learned if self.training is None else self.training.factored.learned
            losses = log_losses_of(learned, self.recipe.needs, rows, folds, outputs)
        loss = float(losses.sum() / weights.sum())
        if not math.isfinite(loss):
            raise ValueError("the held-out error is not finite: rescale the inputs or the targets.")
        by_fold, squared_error = tuple((losses / weights).tolist()), float(squared.sum() / weights.sum())
        return Trial(seconds, gamma, loss, by_fold, squared_error, folds.n_read)

    def _verified(self, squares: list[float], folds: FoldFactors, gamma: float) -> list[float]:
        """The errors of the folds, so that their sum is the one that the training verified."""
        choice, total = None if self.training is None else self.training.choice, sum(squares)
        if choice is None or choice.held_out_error is None or choice.gamma != gamma or not total > 0.0:
            return squares
        right = choice.held_out_error * sum(folds.weight_sums) * folds.n_targets
        return [square * (right / total) for square in squares]

    def trained(self, rows: Rows) -> Training:
        """The candidate as if it had been trained alone."""
        if self.training is not None and self.recipe.calibrate is None:
            return self.training
        return finish(self.recipe, self.learned, self.solved, rows, quick=self.quick)
