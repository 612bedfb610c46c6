"""`train`: from a recipe and rows to a `Training`; the one learn loop for rows of every kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ocrep._linalg.blocks import RowBlocks
from ocrep._linalg.factor import Factor
from ocrep._linalg.folds import FoldFactors, FoldPlan
from ocrep._linalg.solve import solve, solve_folds
from ocrep._linalg.spectrum import Solution, Spectrum
from ocrep._rows.checks import check_counts
from ocrep._rows.rows import LocalRows, Part, Rows
from ocrep._rows.survey import Needs
from ocrep._training.calibration import Calibrator
from ocrep._training.checkpoint import FileCheckpoint
from ocrep._training.hidden_size import choose_size
from ocrep._training.learned import Learned
from ocrep._training.recipe import Recipe, check_rows, check_stream
from ocrep.rules import Choice, Rule


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """What the rows leave behind: their factor, or one factor per fold; summaries merge."""

    factor: Factor | None
    folds: FoldFactors | None = None
    spectrum: Spectrum | None = None
    """The spectrum of the factor, where the route to it had to compute it."""

    def merge(self, other: Summary) -> Summary:
        """The summary of the rows of both."""
        if self.folds is not None and other.folds is not None:
            return Summary(None, self.folds.merge(other.folds))
        assert self.factor is not None
        assert other.factor is not None
        return Summary(self.factor.merge(other.factor))


@dataclass(frozen=True, slots=True, eq=False)
class Factored:
    """A training before γ is chosen: all that later choices read."""

    learned: Learned
    factor: Factor
    folds: FoldFactors | None
    spectrum: Spectrum


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """All that a fit found; estimators store and present it."""

    factored: Factored
    choice: Choice
    solution: Solution
    calibrator: Calibrator | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Summarise:
    """The step of every backend: the rows of one part in, their summary out; small, and sent to every worker."""

    learned: Learned
    needs: Needs
    folds: FoldPlan | None
    intercept: bool
    solver: str
    with_spectrum: bool = True
    checkpoint: FileCheckpoint | None = None

    def __call__(self, part: Part) -> Summary | None:
        """The summary of a part; None if it has no rows."""
        if part.check(self.needs) == 0:
            return None
        rows = self.learned.row_blocks(part)
        options: dict[str, Any] = {"intercept": self.intercept, "checkpoint": self.checkpoint}
        if self.folds is not None:
            return Summary(None, solve_folds(rows, self.folds, start=part.start, **options))
        factor, spectrum = solve(rows, solver=self.solver, **options)
        return Summary(factor, spectrum=spectrum if self.with_spectrum else None)


def train(recipe: Recipe, rows: Rows) -> Training:
    """Learn from all rows."""
    check_rows(recipe, rows)
    learned = Learned.of(recipe, rows.survey(recipe.needs))
    checkpoint = None if rows.checkpoint is None else FileCheckpoint.of(recipe, learned, rows)
    solver = "qr" if rows.once else recipe.solver
    step = Summarise(learned, recipe.needs, recipe.folds, recipe.intercept, solver, rows.local, checkpoint)
    factored = _factored(learned, rows.accumulate(step, Summary.merge))
    if recipe.auto_size:
        factored = _cut_to_size(recipe.rule, factored)
    again = factored.learned.row_blocks(rows) if isinstance(rows, LocalRows) and not rows.once else None
    training = decide(factored, recipe.rule, recipe.calibrate, again)
    if checkpoint is not None:
        checkpoint.remove()
    return training


def extend(recipe: Recipe, rows: LocalRows, so_far: Factored | None) -> Training:
    """Learn from rows that come once, in addition to those of an earlier training."""
    check_stream(recipe, first=so_far is None)
    survey = rows.survey(recipe.needs)
    if so_far is None:
        learned, factor = Learned.of(recipe, survey), None
        folds = None if recipe.folds is None else FoldFactors.empty(recipe.folds)
    else:
        learned, factor, folds = so_far.learned, so_far.factor, so_far.folds
    blocks = learned.row_blocks(rows).blocks()
    if folds is not None:
        summary = Summary(None, folds.absorb(blocks, intercept=recipe.intercept))
    else:
        summary = Summary(Factor.fold(blocks, intercept=recipe.intercept, start=factor))
    return decide(_factored(learned, summary), recipe.rule, recipe.calibrate)


def decide(factored: Factored, rule: Rule, calibrate: str | None, rows: RowBlocks | None = None) -> Training:
    """Choose γ by a rule, from the stored factors; `rows` only if they can be read again."""
    spectrum = factored.spectrum
    choice = rule.choose(spectrum, folds=factored.folds, rows=rows)
    calibrator = None
    if calibrate is not None:
        if not isinstance(spectrum.sigma, np.ndarray):
            raise ValueError("calibrate='loo' works on NumPy arrays only: copy the rows to the host, or set None.")
        if rows is not None:
            calibrator = Calibrator.on_left_out_rows(spectrum, rows, choice.gamma)
    return Training(factored, choice, spectrum.solution(choice.gamma), calibrator)


def _factored(learned: Learned, summary: Summary) -> Factored:
    factor = summary.factor if summary.folds is None else summary.folds.merged()
    assert factor is not None
    check_counts(1, factor.counts.weight_sum)
    return Factored(learned, factor, summary.folds, summary.spectrum or factor.spectrum())


def _cut_to_size(rule: Rule, factored: Factored) -> Factored:
    """Choose the number of hidden units along the nested path, and cut layer and factors down to it."""
    learned, factor, folds = factored.learned, factored.factor, factored.folds
    assert learned.layer is not None
    assert folds is not None
    n_fixed = learned.n_features - learned.layer.map_.biases.shape[0]
    n_hidden = choose_size(factor, folds, rule, n_fixed=n_fixed)
    cut = factor.leading(n_fixed + n_hidden)
    return Factored(learned.leading(n_hidden), cut, folds.leading(n_fixed + n_hidden), cut.spectrum())
