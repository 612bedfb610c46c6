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

from ocrep._linalg.fold_plan import FoldPlan
from ocrep._linalg.memory import available_memory
from ocrep._linalg.parallel import at_once
from ocrep._rows.compared import Compared, rows_to_compare
from ocrep._rows.rows import LocalRows, Rows
from ocrep._rows.survey import needs_of_all
from ocrep._training.recipe import check_candidates
from ocrep._training.train import Training, calibrated, train
from ocrep._training.trial import Candidate, Trial, Tried, too_few

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
