"""`select`: train every candidate on the same rows, judge each by its exact held-out error, and keep the best."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from time import perf_counter
from typing import Any

from ocrep._linalg.fold_plan import FoldPlan
from ocrep._linalg.parallel import at_once
from ocrep._rows.rows import Rows
from ocrep._rows.survey import Survey, needs_of_all
from ocrep._training.held_out import squared_errors_of
from ocrep._training.learned import Learned
from ocrep._training.recipe import Recipe
from ocrep._training.train import Training, again, calibrated, decide, factor_rows


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
    error: float = math.nan
    """Mean squared error over all rows and targets, each row held out once."""
    by_fold: tuple[float, ...] = ()
    """The same for each fold."""
    failure: Exception | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The trials of all candidates, and the training of the best."""

    trials: tuple[Trial, ...]
    best: int
    training: Training


Report = Callable[[int, Trial], None]


def select(candidates: Sequence[Candidate], rows: Rows, report: Report) -> Selection:
    """Train all candidates; those that fail are named in a warning, and the others go on.

    `report(number, trial)` is called after each.
    """
    survey = rows.survey(needs_of_all([candidate.recipe.needs for candidate in candidates]))
    best = _Best()

    def attempt(number: int) -> Trial:
        start = perf_counter()
        try:
            training, trial = _judged(candidates[number].recipe, rows, survey)
            best.offer(number, trial.error, training)
        except Exception as failure:  # whatever is wrong with one candidate, the others may do
            trial = Trial(0.0, failure=failure)
        trial = replace(trial, seconds=perf_counter() - start)
        report(number, trial)
        return trial

    numbers = range(len(candidates))
    trials = tuple(at_once(attempt, numbers) if rows.shared else map(attempt, numbers))
    _warn_of_failures(candidates, trials)
    training = best.training
    assert training is not None
    if candidates[best.number].recipe.calibrate is not None:
        training = calibrated(training, again(training.factored, rows))
    return Selection(trials, best.number, training)


def _judged(recipe: Recipe, rows: Rows, survey: Survey) -> tuple[Training, Trial]:
    recipe = replace(recipe, folds=recipe.folds or FoldPlan())
    factored = factor_rows(recipe, Learned.of(recipe, survey, rows.n_rows), rows)
    folds = factored.folds
    assert folds is not None
    if len(folds.filled) < 2:
        raise ValueError(
            f"Candidates are compared on rows held out, and {folds.n_read} sample(s) are too few or too alike for "
            f"{folds.plan}: give more rows, or train one network without cross-validation."
        )
    training = decide(factored, recipe.rule, None, again(factored, rows))
    errors, weights = squared_errors_of(recipe.rule, folds, training.choice.gamma), folds.weight_sums
    by_fold = tuple(e / (w * folds.n_targets) for e, w in zip(errors, weights, strict=True))
    trial = Trial(0.0, training.choice.gamma, sum(errors) / (sum(weights) * folds.n_targets), by_fold)
    if not math.isfinite(trial.error):
        raise ValueError("the held-out error is not finite: rescale the inputs or the targets.")
    return training, trial


class _Best:
    """The best training so far; the others need not be held."""

    def __init__(self) -> None:
        self._lock, self._error = Lock(), math.inf
        self.number = -1
        self.training: Training | None = None

    def offer(self, number: int, error: float, training: Training) -> None:
        """Keep a training if it is better, or as good and of an earlier candidate."""
        with self._lock:
            if (error, number) < (self._error, self.number) or self.training is None:
                self.number, self._error, self.training = number, error, training


def _warn_of_failures(candidates: Sequence[Candidate], trials: Sequence[Trial]) -> None:
    failed = [(c.parameters, t.failure) for c, t in zip(candidates, trials, strict=True) if t.failure is not None]
    if len(failed) == len(trials):
        parameters, failure = failed[0]
        if len({str(f) for _, f in failed}) == 1:  # then it does not lie in what tells them apart
            raise failure
        raise ValueError(f"All {len(failed)} candidates failed, the first, {parameters}: {failure}") from failure
    for parameters, failure in failed:
        warnings.warn(f"The candidate {parameters} was left out: {failure}", stacklevel=5)
