"""`select`: train every candidate on the same rows, judge each by its exact held-out error, and keep the best."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np

from ocrep._linalg.fold_plan import FoldPlan
from ocrep._linalg.parallel import at_once
from ocrep._linalg.quick_folds import QuickFolds, quick_folds
from ocrep._linalg.solve import Solved
from ocrep._rows.rows import Rows
from ocrep._rows.survey import Survey, needs_of_all
from ocrep._training.held_out import log_losses_of, outputs_without, squared_errors_of
from ocrep._training.learned import Learned
from ocrep._training.recipe import Recipe
from ocrep._training.train import Training, factor_rows, finish
from ocrep.rules.cross_validation import is_confirmed


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A network to try: the parameters that tell it from the others, and how it is trained."""

    parameters: dict[str, Any]
    recipe: Recipe


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
    failure: Exception | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The trials of all candidates, and the training of the best."""

    trials: tuple[Trial, ...]
    best: int
    training: Training


# γ by a rough spectrum and by the exact one are the same if they differ by no more: then the errors are too.
_SAME_GAMMA = 1e-11

Report = Callable[[int, Trial], None]


def select(candidates: Sequence[Candidate], rows: Rows, report: Report) -> Selection:
    """Try all candidates; those that fail are named in a warning, and the others go on.

    `report(number, trial)` is called after each.
    """
    survey = rows.survey(needs_of_all([candidate.recipe.needs for candidate in candidates]))
    best = _Best()

    def attempt(number: int) -> Trial:
        start = perf_counter()
        try:
            tried = _Tried.of(candidates[number].recipe, rows, survey)
            trial = tried.judged(rows, tried.gamma, perf_counter() - start)
            best.offer(number, trial.loss, tried)
        except Exception as failure:  # whatever is wrong with one candidate, the others may do
            trial = Trial(perf_counter() - start, failure=failure)
        report(number, trial)
        return trial

    numbers = range(len(candidates))
    trials = list(at_once(attempt, numbers) if rows.shared else map(attempt, numbers))
    _warn_of_failures(candidates, trials)
    assert best.tried is not None
    training, seconds = best.tried.trained(rows), trials[best.number].seconds
    if abs(training.choice.gamma - best.tried.gamma) <= _SAME_GAMMA * best.tried.gamma:
        trials[best.number] = replace(trials[best.number], gamma=training.choice.gamma)
    else:
        trials[best.number] = best.tried.judged(rows, training.choice.gamma, seconds)
    return Selection(tuple(trials), best.number, training)


@dataclass(frozen=True, slots=True, eq=False)
class _Tried:
    """A candidate with all that was learned of the rows to judge it."""

    recipe: Recipe
    learned: Learned
    solved: Solved
    gamma: float
    quick: QuickFolds | None = None
    training: Training | None = None

    @classmethod
    def of(cls, recipe: Recipe, rows: Rows, survey: Survey) -> _Tried:
        recipe = replace(recipe, folds=recipe.folds or FoldPlan())
        learned = Learned.of(recipe, survey, rows.n_rows)
        solved = factor_rows(recipe, learned, rows)
        folds, rule = solved.folds, recipe.rule
        assert folds is not None
        if len(folds.filled) < 2:
            raise ValueError(
                f"Candidates are compared on rows held out, and {folds.n_read} sample(s) are too few or too alike for "
                f"{folds.plan}: give more rows, or train one network without cross-validation."
            )
        quick = quick_folds(folds) if rule.needs == "folds" and not recipe.auto_size else None
        rough = None if quick is None else quick.rough_spectrum()
        if quick is not None and rough is not None:
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
            squares = squared_errors_of(folds, outputs)
        weights = np.array(folds.weight_sums)
        losses = squared = np.array(squares) / folds.n_targets
        if self.recipe.targets.labels:
            learned = self.learned if self.training is None else self.training.factored.learned
            losses = log_losses_of(learned, self.recipe.needs, rows, folds, outputs)
        loss = float(losses.sum() / weights.sum())
        if not math.isfinite(loss):
            raise ValueError("the held-out error is not finite: rescale the inputs or the targets.")
        return Trial(seconds, gamma, loss, tuple((losses / weights).tolist()), float(squared.sum() / weights.sum()))

    def trained(self, rows: Rows) -> Training:
        """The candidate as if it had been trained alone."""
        if self.training is not None and self.recipe.calibrate is None:
            return self.training
        return finish(self.recipe, self.learned, self.solved, rows, quick=self.quick)


class _Best:
    """The best candidate so far; what was learned for the others need not be held."""

    def __init__(self) -> None:
        self._lock, self._error = Lock(), math.inf
        self.number = -1
        self.tried: _Tried | None = None

    def offer(self, number: int, error: float, tried: _Tried) -> None:
        """Keep a candidate if it is better, or as good and earlier."""
        with self._lock:
            if (error, number) < (self._error, self.number) or self.tried is None:
                self.number, self._error, self.tried = number, error, tried


def _warn_of_failures(candidates: Sequence[Candidate], trials: Sequence[Trial]) -> None:
    failed = [(c.parameters, t.failure) for c, t in zip(candidates, trials, strict=True) if t.failure is not None]
    if len(failed) == len(trials):
        parameters, failure = failed[0]
        if len({str(f) for _, f in failed}) == 1:  # then it does not lie in what tells them apart
            raise failure
        raise ValueError(f"All {len(failed)} candidates failed, the first, {parameters}: {failure}") from failure
    for parameters, failure in failed:
        warnings.warn(f"The candidate {parameters} was left out: {failure}", stacklevel=5)
