"""`train`: learn from rows of every kind; the only function that does, for all estimators."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ocrep._linalg.blocks import RowBlocks
from ocrep._linalg.factor import Factor
from ocrep._linalg.fold_plan import FoldPlan
from ocrep._linalg.folds import FoldFactors
from ocrep._linalg.held_out import Route, are_proved, errors_from_rows
from ocrep._linalg.passes import LocalPasses, Passes
from ocrep._linalg.quick_folds import QuickFolds
from ocrep._linalg.reweighted import reweighted, reweighted_folds
from ocrep._linalg.solve import Solved, reflections, solve
from ocrep._linalg.spectrum import Solution, Spectrum
from ocrep._rows.checks import check_counts
from ocrep._rows.rows import LocalRows, Rows
from ocrep._training.calibration import Calibrator, LabelCalibrator, LeftOutErrors
from ocrep._training.checkpoint import FileCheckpoint
from ocrep._training.hidden_size import choose_size
from ocrep._training.learned import Learned
from ocrep._training.passes import OnPart, PartsPasses
from ocrep._training.recipe import Recipe, check_rows, check_stream
from ocrep.rules import Choice, Rule
from ocrep.rules.advice import advice_on
from ocrep.rules.fold_rule import with_error


@dataclass(frozen=True, slots=True, eq=False)
class Factored:
    """A training before γ is chosen: all that later choices read."""

    learned: Learned
    factor: Factor
    folds: FoldFactors | None
    spectrum: Spectrum
    route: Route = "reflections"
    """How the factors came about."""


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """All that a fit found; estimators store and present it."""

    factored: Factored
    choice: Choice
    solution: Solution
    calibrator: Calibrator | LabelCalibrator | LeftOutErrors | None = None


def train(recipe: Recipe, rows: Rows) -> Training:
    """Learn from all rows."""
    if rows.once or not rows.local or rows.checkpoint is not None:  # rows in memory can give all that a recipe asks for
        check_rows(recipe, rows)
    survey = rows.survey(recipe.needs)
    learned = Learned.of(recipe, survey, rows.n_rows)
    checkpoint = None if rows.checkpoint is None else FileCheckpoint.of(recipe, learned, rows)
    training = finish(recipe, learned, factor_rows(recipe, learned, rows, checkpoint), rows)
    if checkpoint is not None:
        checkpoint.remove()
    return training


def factor_rows(recipe: Recipe, learned: Learned, rows: Rows, checkpoint: FileCheckpoint | None = None) -> Solved:
    """The factors of all rows."""
    solver = "qr" if rows.once else recipe.solver
    passes = _passes(recipe, learned, rows, checkpoint)
    return solve(passes, intercept=recipe.intercept, solver=solver, folds=_fold_plan(recipe, learned))


def part_step(recipe: Recipe, learned: Learned) -> OnPart[Any]:
    """What is learned of a part by itself, wherever it lies: a factor, or one per fold."""
    return OnPart(learned, recipe.needs, reflections(recipe.intercept, _fold_plan(recipe, learned)))


def finish(
    recipe: Recipe, learned: Learned, solved: Solved, rows: Rows | None = None, *, quick: QuickFolds | None = None
) -> Training:
    """What follows from the factors; `quick` saves time where they were made already."""
    factored = _factored(learned, solved, recipe.rule if recipe.auto_size else None)
    training = decide(factored, recipe.rule, recipe.calibrate, _again(factored, rows), quick)
    if rows is None or rows.once or factored.route == "reflections":
        return training
    return _verified(training, recipe, rows)


def _verified(training: Training, recipe: Recipe, rows: Rows) -> Training:
    """The same training with its error on held-out rows from the rows, where the sums of the folds do not prove it."""
    factored, choice, folds = training.factored, training.choice, training.factored.folds
    if choice.held_out_error is None or folds is None or are_proved(folds, choice.gamma, factored.route):
        return training
    errors = errors_from_rows(folds, choice.gamma, _passes(recipe, factored.learned, rows))
    return replace(training, choice=with_error(choice, errors, folds))


def _passes(recipe: Recipe, learned: Learned, rows: Rows, checkpoint: FileCheckpoint | None = None) -> Passes:
    if isinstance(rows, LocalRows):
        return LocalPasses(learned.row_blocks(rows), checkpoint)
    return PartsPasses(learned, rows, recipe.needs)


def extend(recipe: Recipe, rows: LocalRows, so_far: Factored | None) -> Training:
    """Learn from rows that come once, in addition to those of an earlier training, which lose some of their weight."""
    check_stream(recipe, first=so_far is None)
    survey = rows.survey(recipe.needs if so_far is None else replace(recipe.needs, range=False, sample=0))
    if so_far is None:
        learned, factor = Learned.of(recipe, replace(survey, groups=None)), None
        folds = None if recipe.folds is None else FoldFactors.empty(recipe.folds)
    else:
        learned, factor, folds = so_far.learned, so_far.factor, so_far.folds
        if learned.division is not None:
            learned.division.check_endless(True)
        if recipe.forgetting < 1.0:
            factor, folds = reweighted(factor, recipe.forgetting), folds and reweighted_folds(folds, recipe.forgetting)
    blocks = learned.row_blocks(rows)
    if folds is not None:
        folds = folds.absorb(blocks.read(), intercept=recipe.intercept, encode=blocks.encode)
        solved = Solved(None, folds)
    else:
        solved = Solved(Factor.fold(blocks.blocks(), intercept=recipe.intercept, start=factor))
    return decide(_factored(learned, solved), recipe.rule, recipe.calibrate)


def decide(
    factored: Factored,
    rule: Rule,
    calibrate: str | None,
    rows: RowBlocks | None = None,
    quick: QuickFolds | None = None,
) -> Training:
    """Choose γ by a rule, from the stored factors; `rows` only if they can be read again."""
    spectrum, network = factored.spectrum, factored.learned.layer is not None
    rule = rule if network else rule.for_own_features()
    choice = rule.choose(spectrum, folds=quick or factored.folds, rows=rows)
    if rule.searches:
        choice = replace(choice, advice=advice_on(rule, choice, spectrum, network=network))
    training = Training(factored, choice, spectrum.solution(choice.gamma))
    return training if calibrate is None else calibrated(training, rows)


def calibrated(training: Training, rows: RowBlocks | None, stand_for: np.ndarray | None = None) -> Training:
    """The same training with what left-out rows tell, from the rows that it was trained on.

    For a sample of them, `stand_for` says how many rows each of its rows stands for.
    """
    if rows is None:
        return training
    known = training.factored.spectrum, rows, training.choice.gamma
    if not rows.labels:
        return replace(training, calibrator=LeftOutErrors.on_left_out_rows(*known))
    kind = LabelCalibrator if rows.several else Calibrator
    return replace(training, calibrator=kind.on_left_out_rows(*known, stand_for))


def _again(factored: Factored, rows: Rows | None) -> RowBlocks | None:
    """The rows once more, where they can be read again."""
    return factored.learned.row_blocks(rows) if isinstance(rows, LocalRows) and not rows.once else None


def _fold_plan(recipe: Recipe, learned: Learned) -> FoldPlan | None:
    return recipe.folds if learned.division is None else learned.division.plan


def _factored(learned: Learned, solved: Solved, size_by: Rule | None = None) -> Factored:
    """A training before γ is chosen; `size_by` is a rule that first chooses the number of hidden units."""
    factor = solved.whole if solved.whole is not None or solved.folds is None else solved.folds.merged()
    assert factor is not None
    if not factor.counts.weight_sum > 0.0:
        check_counts(factor.counts.n_seen, 0.0)
    if size_by is None:
        return Factored(learned, factor, solved.folds, solved.spectrum or factor.spectrum(), solved.route)
    learned, factor, folds = _cut_to_size(size_by, learned, factor, solved.folds)
    return Factored(learned, factor, folds, factor.spectrum(), solved.route)


def _cut_to_size(
    rule: Rule, learned: Learned, factor: Factor, folds: FoldFactors | None
) -> tuple[Learned, Factor, FoldFactors]:
    """Choose the number of hidden units along the nested path, and cut layer and factors down to it."""
    assert learned.layer is not None
    assert folds is not None
    n_fixed = learned.n_features - learned.layer.map_.biases.shape[0]
    n_hidden = choose_size(factor, folds, rule, n_fixed=n_fixed)
    n_features = n_fixed + n_hidden
    return learned.leading(n_hidden), factor.leading(n_features), folds.leading(n_features)
