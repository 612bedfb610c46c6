"""`select`: try every candidate on the same rows, keep the best by its held-out error, and train it on all rows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np

from ocrep._linalg.folds import FoldFactors, FoldPlan
from ocrep._linalg.parallel import at_once, available_memory
from ocrep._linalg.quick_folds import QuickFolds, quick_folds
from ocrep._linalg.solve import Solved
from ocrep._rows.memory import Compared, LocalRows, Rows, rows_to_compare
from ocrep._rows.survey import Survey, needs_of_all
from ocrep._training.recipe import Learned, Recipe, check_candidates
from ocrep._training.train import (
    Training,
    calibrated,
    factor_rows,
    finish,
    log_losses_of,
    outputs_without,
    squared_errors_of,
    train,
)
from ocrep.rules.fold_rule import is_confirmed

# ------------------------------------------------------------------------------
# `Tried`: one candidate on some rows, judged by its exact held-out error before a spectrum of all rows is needed.


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


# ------------------------------------------------------------------------------

# Where there are four times as many rows, all candidates are tried on so many first.
FIRST_ROUND = 3_000
# The candidates whose loss there is within this factor of the best go on, but no more than so many.
_NEAR, _MOST_LEFT = 1.03, 2
# γ by a rough spectrum and by the exact one are the same if they differ by no more: then the errors are too.
_SAME_GAMMA = 1e-11

Report = Callable[[int, Trial], None]


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The trials of all candidates, and the training of the best."""

    trials: tuple[Trial, ...]
    best: int
    training: Training


def select(candidates: Sequence[Candidate], rows: Rows, most_rows: int, report: Report) -> Selection:
    """Try all candidates on at most `most_rows` rows; those that fail are named in a warning, and the others go on.

    `report(number, trial)` is called after each.
    """
    recipes = [candidate.recipe for candidate in candidates]
    by_content = all(recipe.folds is None or recipe.folds.split == "content" for recipe in recipes)
    check_candidates(recipes, rows, sampled=by_content)
    needs = needs_of_all([recipe.needs for recipe in recipes])
    rounds = rows_to_compare(rows, needs, most_rows, FIRST_ROUND, by_content=by_content)
    last = rounds[-1]
    if by_content and np.array_equal(last.survey.low, last.survey.high):  # then all would fail, each for its own reason
        raise too_few(last.n_rows, recipes[0].folds or FoldPlan())
    check_memory(candidates, last.survey.n_inputs, last.n_rows)
    race = _Race(candidates, report)
    for compared in rounds:
        if compared.whole or len(race.left) > 1 or race.tried is None:
            race.run(compared)
    recipe = recipes[race.best]
    if race.on_all_rows:
        training = race.trained()
        return Selection(tuple(race.trials), race.best, training)
    training = train(replace(recipe, calibrate=None), rows)
    if recipe.calibrate is not None:
        learned = training.factored.learned
        part = rows if learned.on_device else last.rows
        assert isinstance(part, LocalRows)
        training = calibrated(training, learned.row_blocks(part), None if learned.on_device else last.stand_for)
    return Selection(tuple(race.trials), race.best, training)


class _Race:
    """Candidates on more and more rows; what was learned of those that are behind need not be held."""

    def __init__(self, candidates: Sequence[Candidate], report: Report) -> None:
        self._candidates, self._report, self._lock = candidates, report, Lock()
        self.trials = [Trial(0.0) for _ in candidates]
        self.left = list(range(len(candidates)))
        """The candidates that may still win, the best first."""
        self.tried: Tried | None = None
        """The best on the rows of the last round."""
        self._best = (math.inf, 0)
        self._on: Compared | None = None

    def run(self, compared: Compared) -> None:
        """Try those that are left on these rows, and leave out those that are clearly worse than the best."""
        self.tried, self._best, self._on = None, (math.inf, 0), compared
        numbers = sorted(self.left)
        found = at_once(self._attempt, numbers) if compared.rows.shared else list(map(self._attempt, numbers))
        for number, trial in zip(numbers, found, strict=True):
            self.trials[number] = trial
        _warn_of_failures([(self._candidates[n].parameters, self.trials[n].failure) for n in numbers])
        ranked = sorted((self.trials[n].loss, n) for n in numbers if self.trials[n].failure is None)
        self.left = [n for loss, n in ranked if loss <= _NEAR * ranked[0][0]][:_MOST_LEFT]

    @property
    def best(self) -> int:
        return self.left[0]

    @property
    def on_all_rows(self) -> bool:
        """Whether the best has seen all rows."""
        return self._on is not None and self._on.whole

    def trained(self) -> Training:
        """The best as if it had been trained alone; its trial gets the γ of this training."""
        assert self.tried is not None
        assert self._on is not None
        rows, trial, training = self._on.rows, self.trials[self.best], self.tried.trained(self._on.rows)
        gamma = training.choice.gamma
        same = abs(gamma - trial.gamma) <= _SAME_GAMMA * trial.gamma
        self.trials[self.best] = replace(trial, gamma=gamma) if same else self.tried.judged(rows, gamma, trial.seconds)
        return training

    def _attempt(self, number: int) -> Trial:
        assert self._on is not None
        rows, survey, start = self._on.rows, self._on.survey, perf_counter()
        try:
            tried = Tried.of(self._candidates[number].recipe, rows, survey)
            trial = tried.judged(rows, tried.gamma, perf_counter() - start)
            with self._lock:
                if (trial.loss, number) < self._best:
                    self._best, self.tried = (trial.loss, number), tried
        except Exception as failure:  # whatever is wrong with one candidate, the others may do
            trial = Trial(perf_counter() - start, failure=failure)
        self._report(number, trial)
        return trial


def _warn_of_failures(tried: Sequence[tuple[dict[str, Any], Exception | None]]) -> None:
    failed = [(parameters, failure) for parameters, failure in tried if failure is not None]
    if len(failed) == len(tried):
        parameters, failure = failed[0]
        if len({str(f) for _, f in failed}) == 1:  # then it does not lie in what tells them apart
            raise failure
        raise ValueError(f"All {len(failed)} candidates failed, the first, {parameters}: {failure}") from failure
    for parameters, failure in failed:
        warnings.warn(f"The candidate {parameters} was left out: {failure}", stacklevel=6)


def check_memory(candidates: Sequence[Candidate], n_inputs: int, n_rows: int) -> None:
    """Raise before work begins if a candidate is too large for this machine."""
    available = available_memory()
    for candidate in candidates:
        needed = candidate.memory(n_inputs, n_rows)
        if available is not None and needed > available:
            raise ValueError(
                f"The candidate {candidate.parameters} would take about {needed / 1e9:.1f} GB of memory, and "
                f"{available / 1e9:.1f} GB are available: give it fewer hidden units."
            )
