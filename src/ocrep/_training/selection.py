"""`select`: fit every candidate on the same rows, keep the best by its held-out error, and train it on all rows.

A candidate is a fit like any other, with one factor per fold. Its held-out error follows from these factors alone: γ
comes from fold errors through eigenvalues (`quick_folds`) where they are certain, and the spectrum of all rows is
computed for the winner only.

Candidates are dropped by successive halving. Beyond `selection_rows` rows they are compared on a sample of that size.
Where there are more than four times 3,000 rows to compare, 3,000 of them decide first which candidates are within 3 %
of the best, and at most two of these go on. Samples are drawn by a hash of what rows hold, and each row of a sample is
in the fold that it has among all rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import add
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np

from ocrep._linalg.arrays import Array, to_host
from ocrep._linalg.fold_factors import FoldFactors, QuickFolds, quick_folds
from ocrep._linalg.folds import FoldPlan, split_by_fold
from ocrep._linalg.parallel import at_once, available_memory
from ocrep._linalg.rows import EncodedRows, Encoder
from ocrep._linalg.solve import MANY_FOLDS, Factored
from ocrep._rows.memory import MemoryRows, Rows
from ocrep._rows.survey import Needs, Survey, needs_of_all
from ocrep._training.recipe import Learned, Recipe, check_candidates
from ocrep._training.train import Training, calibrated, factor_rows, learn, train, train_from_factors
from ocrep.rules.cross_validation import Output, are_confirmed, outputs_without, squared_errors_of

# With more than four times as many rows to compare, a first round tries all candidates on this many.
FIRST_ROUND = 3_000
_FEWER = 4
# The candidates whose loss there is within this factor of the best go on, but no more than two.
_NEAR = 1.03
_MOST_LEFT = 2
# γ by a rough spectrum and by the exact one are the same if they differ by no more: then the errors are too.
_SAME_GAMMA = 1e-11

Candidate = tuple[dict[str, Any], Recipe]
"""The parameters that distinguish a candidate from the others, and how it is trained."""


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """How good one candidate is on rows held out."""

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
    judged: str = ""
    """"nested" if the layer was learned anew without each fold, "exact" if its output weights were fitted anew."""


Report = Callable[[int, int, dict[str, Any], Score], None]
"""Called with the number of a candidate, how many there are, its parameters and its score."""


def select(
    candidates: Sequence[Candidate], rows: Rows, most_rows: int, report: Report
) -> tuple[list[Score], int, Training]:
    """Compare all candidates on at most `most_rows` rows: their scores, the number of the best, and its training.

    Those that fail are named in a warning, and the others go on. `report` is called after each.
    """
    # A row of a sample does not know its number among all rows.
    sampled = all(recipe.folds is None or recipe.folds.split != "blocks" for _, recipe in candidates)
    check_candidates([recipe for _, recipe in candidates], rows, sampled=sampled)
    candidates = [(parameters, recipe.for_rows(rows)) for parameters, recipe in candidates]
    recipes = [recipe for _, recipe in candidates]
    plans = [recipe.folds or FoldPlan() for recipe in recipes]
    rounds = _rounds(rows, needs_of_all([recipe.needs for recipe in recipes]), most_rows, sampled=sampled)
    compared, survey, stand_for = rounds[-1]
    alike = np.array_equal(survey.low, survey.high)
    if alike and all(plan.split == "content" for plan in plans):  # all would fail, each for a reason of its own
        raise too_few(survey.n_rows, plans[0])
    check_memory(candidates, survey, survey.n_rows)
    scores = [Score(0.0) for _ in candidates]
    left = list(range(len(candidates)))
    fit = None
    for some, of_some, _ in rounds:
        if some is rows or len(left) > 1 or fit is None:
            fit = None  # the factors of the round before need not be held
            left, fit = _compare(candidates, left, some, of_some, scores, report)
    assert fit is not None
    best = left[0]
    if compared is rows:
        training = fit.trained(rows)
        gamma = training.choice.gamma
        known = scores[best]
        same = abs(gamma - known.gamma) <= _SAME_GAMMA * known.gamma
        scores[best] = replace(known, gamma=gamma) if same else fit.score(rows, gamma, known.seconds)
        return scores, best, training
    recipe = recipes[best]
    training = train(replace(recipe, calibrate=None), rows)
    if recipe.calibrate is not None:
        on_device = training.learned.on_device
        again = EncodedRows(rows if on_device else compared, training.learned.encoder)
        training = calibrated(training, again, None if on_device else stand_for)
    return scores, best, training


# ------------------------------------------------------------------------------
# The rows of each round: all of them in memory if they are few, else a sample in memory.


Round = tuple[Rows, Survey, np.ndarray | None]
"""Rows with their survey; for a sample, how many rows each of its rows stands for: more for those of common labels,
since of rare ones a few are always there."""


def _rounds(rows: Rows, needs: Needs, most_rows: int, *, sampled: bool) -> tuple[Round, ...]:
    """The only round, or two of which the first has fewer rows; all rows if they cannot be `sampled`."""
    n_rows = rows.check(needs) if isinstance(rows, MemoryRows) else None
    few = n_rows is not None and n_rows <= min(most_rows, _FEWER * FIRST_ROUND)
    if few or not sampled:
        return (_all_rows(rows, rows.survey(needs), needs),)
    whole = n_rows is not None and n_rows <= most_rows
    size = FIRST_ROUND if whole else most_rows
    survey = rows.survey(replace(needs, sample=max(needs.sample, size), totals=needs.labels, every_label=needs.labels))
    last = _all_rows(rows, survey, needs) if whole else _sample(survey, size, needs)
    if last[1].n_rows <= _FEWER * FIRST_ROUND:
        return (last,)
    return _sample(survey, FIRST_ROUND, needs), last


def _all_rows(rows: Rows, survey: Survey, needs: Needs) -> Round:
    sample = survey.sample.first(needs.sample) if survey.sample is not None and needs.sample else None
    return rows, replace(survey, sample=sample), None


def _sample(survey: Survey, size: int, needs: Needs) -> Round:
    """A sample of the rows that were surveyed, with all their labels and groups."""
    assert survey.sample is not None
    sample = survey.sample.first(size, every_label=needs.labels)
    weight = None if bool((sample.weight == 1.0).all()) else sample.weight
    rows = MemoryRows.of_block(replace(sample.block, X=sample.X.astype(survey.dtype), weight=weight))
    own = replace(rows.survey(replace(needs, totals=needs.labels)), groups=survey.groups, columns=survey.columns)
    if own.labels is not None and own.totals is not None:
        assert survey.labels is not None  # a class of no weight has no row in the sample, but is a class
        totals = np.zeros(len(survey.labels))
        totals[np.searchsorted(survey.labels, own.labels)] = own.totals
        own = replace(own, labels=survey.labels, totals=totals)
    return rows, own, sample.stand_for() if needs.labels else None


# ------------------------------------------------------------------------------
# One candidate on some rows.


@dataclass(frozen=True, slots=True, eq=False)
class CandidateFit:
    """A candidate fitted as far as is needed to judge it: a spectrum of all rows may not be known yet."""

    recipe: Recipe
    learned: Learned
    factored: Factored
    gamma: float
    quick: QuickFolds | None = None
    training: Training | None = None

    @classmethod
    def of(cls, recipe: Recipe, rows: Rows, survey: Survey) -> CandidateFit:
        """Factor the rows, and choose γ."""
        recipe = replace(recipe, folds=recipe.folds or FoldPlan())
        rule = recipe.rule
        learned = learn(recipe, survey, rows.n_rows)
        factored = factor_rows(recipe, learned, survey, rows)
        folds = factored.folds
        assert folds is not None
        if len(folds.filled) < 2:
            raise too_few(folds.n_read, folds.plan)
        quick = quick_folds(folds) if rule.reads == "folds" and not recipe.auto_size else None
        rough = None if quick is None else quick.rough_spectrum()
        if quick is None or rough is None:
            quick = None  # of features that are all zero, eigenvalues say nothing
        else:
            spectrum, certain_from = rough
            choice = rule.choose(spectrum, folds=quick)
            if not np.all(are_confirmed(choice, quick)):
                quick = None
            elif choice.gamma >= certain_from:
                return cls(recipe, learned, factored, choice.gamma, quick)
        training = train_from_factors(replace(recipe, calibrate=None), learned, factored, rows, quick=quick)
        return cls(recipe, learned, factored, training.choice.gamma, quick, training)

    def score(self, rows: Rows, gamma: float, seconds: float) -> Score:
        """The exact held-out errors at γ."""
        folds = None if self.training is None else self.training.factored.folds
        folds = self.factored.folds if folds is None else folds
        assert folds is not None
        if self.quick is not None:
            outputs = self.quick.solutions(gamma)
            squares = [float(np.sum(errors)) for _, _, errors in self.quick.refined(gamma)]
        else:
            outputs = outputs_without(self.recipe.rule, folds, gamma)
            squares = self._scaled_to_verified_total(squared_errors_of(folds, outputs), folds, gamma)
        weights = np.array(folds.weight_sums)
        squared = np.array(squares) / folds.n_targets
        losses = squared
        if self.recipe.targets.labels:
            learned = self.learned if self.training is None else self.training.learned
            losses = _log_losses_of(learned, rows, folds, outputs)
        loss = float(losses.sum() / weights.sum())
        if not math.isfinite(loss):
            raise ValueError("The held-out error is not finite: rescale the inputs or the targets.")
        by_fold = tuple((losses / weights).tolist())
        judged = "nested" if self.recipe.learns_layer else "exact"
        return Score(seconds, gamma, loss, by_fold, float(squared.sum() / weights.sum()), folds.n_read, judged=judged)

    def _scaled_to_verified_total(self, squares: list[float], folds: FoldFactors, gamma: float) -> list[float]:
        """The errors of the folds, scaled so that their sum is the one that the training verified from the rows."""
        choice = None if self.training is None else self.training.choice
        total = sum(squares)
        if choice is None or choice.held_out_error is None or choice.gamma != gamma or not total > 0.0:
            return squares
        right = choice.held_out_error * sum(folds.weight_sums) * folds.n_targets
        return [square * (right / total) for square in squares]

    def trained(self, rows: Rows) -> Training:
        """The candidate as if it had been trained alone."""
        if self.training is not None and self.recipe.calibrate is None:
            return self.training
        return train_from_factors(self.recipe, self.learned, self.factored, rows, quick=self.quick)


def _compare(
    candidates: Sequence[Candidate],
    numbers: Sequence[int],
    rows: Rows,
    survey: Survey,
    scores: list[Score],
    report: Report,
) -> tuple[list[int], CandidateFit | None]:
    """Try some of the candidates, by their numbers: those that may still win, the best first, and the fit of the best.

    Their scores are put into `scores`. What was learned of those that are behind is not held.
    """
    lock = Lock()
    best: tuple[float, int] = (math.inf, 0)
    best_fit: CandidateFit | None = None

    def attempt(number: int) -> Score:
        nonlocal best, best_fit
        parameters, recipe = candidates[number]
        start = perf_counter()
        try:
            fit = CandidateFit.of(recipe, rows, survey)
            score = fit.score(rows, fit.gamma, perf_counter() - start)
            with lock:
                if (score.loss, number) < best:
                    best = score.loss, number
                    best_fit = fit
        except Exception as failure:  # whatever is wrong with one candidate, the others may do
            score = Score(perf_counter() - start, failure=failure)
        report(number, len(candidates), parameters, score)
        return score

    numbers = sorted(numbers)
    found = at_once(attempt, numbers) if rows.shared else list(map(attempt, numbers))
    for number, score in zip(numbers, found, strict=True):
        scores[number] = score
    warn_of_failures([(candidates[n][0], scores[n].failure) for n in numbers])
    ranked = sorted((scores[n].loss, n) for n in numbers if scores[n].failure is None)
    return [n for loss, n in ranked if loss <= _NEAR * ranked[0][0]][:_MOST_LEFT], best_fit


def warn_of_failures(tried: Sequence[tuple[dict[str, Any], Exception | None]]) -> None:
    failed = [(parameters, failure) for parameters, failure in tried if failure is not None]
    if len(failed) == len(tried):
        parameters, failure = failed[0]
        if len({str(f) for _, f in failed}) == 1:  # then the candidates' own parameters are not the cause
            raise failure
        raise ValueError(f"All {len(failed)} candidates failed, the first, {parameters}: {failure}") from failure
    for parameters, failure in failed:
        warnings.warn(f"The candidate {parameters} was left out: {failure}", stacklevel=6)


def too_few(n_rows: int, plan: FoldPlan) -> ValueError:
    """The error for rows that cannot be divided into folds."""
    return ValueError(
        f"Candidates are compared on rows held out, and {n_rows} sample(s) are too few or too alike for "
        f"{plan.n_folds} folds: give more rows, or train one network without cross-validation."
    )


def check_memory(candidates: Sequence[Candidate], survey: Survey, n_rows: int) -> None:
    """Raise before work begins if a candidate is too large for this machine."""
    available = available_memory()
    if available is None:
        return
    for parameters, recipe in candidates:
        layer = recipe.layer
        assert layer is not None
        plan = recipe.folds or FoldPlan()
        n_folds = len(survey.groups) if plan.split == "given" and survey.groups is not None else plan.n_folds
        width = layer.n_hidden + (survey.n_inputs if layer.direct_link else 0)
        k = min(width, n_rows)
        # A matrix for each fold and a few more, and some rows of H. Of many folds, the factors of all others, their
        # spectra and what the held-out errors need are about nine matrices each.
        n_matrices = n_folds + 4 if n_folds <= MANY_FOLDS else 9 * n_folds
        needed = 8 * (n_matrices * k * k + 4 * min(n_rows, 4 * width) * width)
        if needed > available:
            raise ValueError(
                f"The candidate {parameters} would take about {needed / 1e9:.1f} GB of memory, and "
                f"{available / 1e9:.1f} GB are available: give it fewer hidden units."
            )


# ------------------------------------------------------------------------------
# The held-out losses of probabilities, which need one more pass over the rows; those of squares do not.


# What outputs may be multiplied by to become the logits of probabilities, in steps of √2.
_LOGIT_SCALES = 2.0 ** (np.arange(-2, 11) / 2.0)


def _log_losses_of(learned: Learned, rows: Rows, folds: FoldFactors, outputs: Sequence[Output]) -> Array:
    """Σ w·(−log probability of the true class) over each held-out fold.

    The probabilities are the softmax of the outputs times a factor, the one of `_LOGIT_SCALES` with the least loss.
    """
    by_fold = dict(zip(folds.filled, outputs, strict=True))
    own = dict(zip(folds.filled, folds.encoders, strict=True)) if folds.encoders else {}
    losses = rows.accumulate(partial(_log_losses_of_part, learned, folds.plan, by_fold, own), add)
    return losses[:, int(np.argmin(losses.sum(axis=0)))]


def _log_losses_of_part(
    learned: Learned, plan: FoldPlan, outputs: dict[int, Output], own: dict[int, Encoder], part: Rows
) -> np.ndarray:
    """The losses of the rows of a part, folds × scales; `own` are the encoders of folds with layers of their own."""
    rows = EncodedRows(part, learned.encoder)
    place = {v: k for k, v in enumerate(outputs)}
    losses = np.zeros((len(place), len(_LOGIT_SCALES)))
    for block in rows.read():
        for v, mine in split_by_fold(block, plan):
            if v not in place:  # all its rows have zero weight
                continue
            encoded = own[v].encode(mine) if own else rows.encoder.encode(mine)
            weight = None if encoded.weight is None else to_host(encoded.weight)
            each = log_losses(to_host(encoded.outputs(*outputs[v])), to_host(encoded.T), several=rows.encoder.several)
            losses[place[v]] += each.sum(axis=0) if weight is None else weight @ each
    return losses


def log_losses(outputs: np.ndarray, T: np.ndarray, *, several: bool) -> np.ndarray:
    """−log probability of the true class of each row, rows × scales; the mean over several labels."""
    if several:
        return np.stack([np.mean(np.logaddexp(0.0, -2.0 * t * T * outputs), axis=1) for t in _LOGIT_SCALES], axis=1)
    if T.shape[1] == 1:  # two classes: the second has the output, and the first its negative
        outputs, T = np.hstack([-outputs, outputs]), np.hstack([-T, T])
    # The output of each class less that of the true one.
    beyond = outputs - np.sum(outputs * (T > 0.0), axis=1, keepdims=True)
    most = np.max(beyond, axis=1, keepdims=True)
    losses = np.empty((len(T), len(_LOGIT_SCALES)))
    for k, temperature in enumerate(_LOGIT_SCALES):
        sums = np.sum(np.exp(temperature * (beyond - most)), axis=1)
        losses[:, k] = temperature * most[:, 0] + np.log(sums)
    return losses
