"""`train`: learn from rows of every kind; the only function that does, for all estimators."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import add
from typing import Any

import numpy as np

from ocrep._linalg.arrays import Array, array_namespace, as_float64, to_host
from ocrep._linalg.factor import Factor
from ocrep._linalg.folds import FoldFactors, FoldPlan, held_out, reweighted, reweighted_folds, split_by_fold
from ocrep._linalg.held_out import Route, are_proved, errors_from_rows
from ocrep._linalg.parallel import RowBlocks
from ocrep._linalg.passes import LocalPasses, Passes
from ocrep._linalg.quick_folds import QuickFolds, quick_folds
from ocrep._linalg.solve import Solved, reflections, solve
from ocrep._linalg.spectrum import Solution, Spectrum
from ocrep._rows.checks import check_counts
from ocrep._rows.memory import LocalRows, RowPart, Rows
from ocrep._rows.survey import Needs
from ocrep._training.calibration import Calibrator, LabelCalibrator, LeftOutErrors
from ocrep._training.checkpoint import FileCheckpoint
from ocrep._training.recipe import Learned, OnPart, PartsPasses, Recipe, check_rows, check_stream
from ocrep.rules import Choice, NotApplicable, Rule
from ocrep.rules.advice import advice_on
from ocrep.rules.base import check_usable
from ocrep.rules.fold_rule import with_error

# ------------------------------------------------------------------------------
# The errors of exact cross-validation: of squares from the factors alone, of probabilities by one more pass.


# What outputs may be multiplied by to become the logits of probabilities, in steps of √2.
TEMPERATURES = 2.0 ** (np.arange(-2, 11) / 2.0)

Output = tuple[Array, Array]
"""Weights, features × targets, and constants, one per target."""


def outputs_without(rule: Rule, folds: FoldFactors, gamma: Any) -> list[Output]:
    """The output layer fitted without each fold, for a rule that chose `gamma` on all rows.

    A rule that holds rows out itself gets the error of the γ it chose, as in the paper's joint search; any other
    chooses anew on each training part.
    """
    check_usable(folds)
    fixed = rule.folds is not None or rule.needs == "rows"
    solutions = [s.solution(gamma if fixed else rule.choose(s).gamma) for s in folds.spectra]
    return [(solution.weights.T, solution.intercept) for solution in solutions]


def squared_errors_of(folds: FoldFactors, outputs: Sequence[Output]) -> list[float]:
    """Σ w‖t − prediction‖² over each held-out fold."""
    pairs = zip(held_out(folds), outputs, strict=True)
    errors = [fold.squared_error_by_target(*output) for (fold, _), output in pairs]
    return [float(array_namespace(error).sum(error)) for error in errors]


def cv_error_of(rule: Rule, folds: FoldFactors, gamma: Any) -> float:
    """The mean squared error over all rows and targets, each row held out once."""
    total = sum(squared_errors_of(folds, outputs_without(rule, folds, gamma)))
    return total / (sum(folds.weight_sums) * folds.n_targets)


def log_losses_of(learned: Learned, needs: Needs, rows: Rows, folds: FoldFactors, outputs: Sequence[Output]) -> Array:
    """Σ w·(−log probability of the true class) over each held-out fold.

    The probabilities are the softmax of the outputs times a factor, the one of `TEMPERATURES` with the least loss.
    """
    step = _LogLosses(learned, needs, folds.plan, dict(zip(folds.filled, outputs, strict=True)))
    losses = rows.accumulate(step, add)
    return losses[:, int(np.argmin(losses.sum(axis=0)))]


@dataclass(frozen=True, slots=True, eq=False)
class _LogLosses:
    """One pass over the rows of a part; small, and sent to every worker."""

    learned: Learned
    needs: Needs
    plan: FoldPlan
    outputs: dict[int, Output]

    def __call__(self, part: RowPart) -> np.ndarray | None:
        """The losses of the rows of a part, folds × temperatures; None if it has no rows."""
        if part.check(self.needs) == 0:
            return None
        rows, place = self.learned.row_blocks(part), {v: k for k, v in enumerate(self.outputs)}
        losses = np.zeros((len(place), len(TEMPERATURES)))
        for block in rows.read():
            for v, mine in split_by_fold(block, self.plan):
                if v not in place:  # all its rows have zero weight
                    continue
                H, T, weight = rows.encode(mine)
                W, b = self.outputs[v]
                outputs = array_namespace(W).matmul(as_float64(H), W) + b
                weight = None if weight is None else to_host(weight)
                losses[place[v]] += _log_losses(to_host(outputs), to_host(T), weight, several=rows.several)
        return losses


def _log_losses(outputs: np.ndarray, T: np.ndarray, weight: np.ndarray | None, *, several: bool) -> np.ndarray:
    """Σ w·(−log probability of the true class), for each temperature; the mean over several labels."""
    if several:
        each = [np.mean(np.logaddexp(0.0, -2.0 * t * T * outputs), axis=1) for t in TEMPERATURES]
        return np.array([np.sum(loss if weight is None else weight * loss) for loss in each])
    if T.shape[1] == 1:  # two classes: the second has the output, and the first its negative
        outputs, T = np.hstack([-outputs, outputs]), np.hstack([-T, T])
    # The output of each class less that of the true one.
    beyond = outputs - np.sum(outputs * (T > 0.0), axis=1, keepdims=True)
    most = np.max(beyond, axis=1, keepdims=True)
    losses = []
    for temperature in TEMPERATURES:
        sums = np.sum(np.exp(temperature * (beyond - most)), axis=1)
        loss = temperature * most[:, 0] + np.log(sums)
        losses.append(np.sum(loss if weight is None else weight * loss))
    return np.array(losses)


# ------------------------------------------------------------------------------
# Choose the number of hidden units: the factors of all smaller layers are leading blocks of the largest one's.


@dataclass(frozen=True, slots=True)
class Size:
    """A hidden size, the γ that a rule chooses there, and the mean squared error of exact cross-validation."""

    n_hidden: int
    gamma: float
    cv_error: float


def at_size(factor: Factor, folds: FoldFactors | None, rule: Rule, n_hidden: int, n_fixed: int = 0) -> Size:
    """Read one size off the factors; the first `n_fixed` features (a direct link) belong to every size."""
    assert folds is not None
    m = n_fixed + n_hidden
    cut = folds.leading(m)
    choice = rule.choose(factor.leading(m).spectrum(), folds=cut)
    error = cv_error_of(rule, cut, choice.gamma) if choice.held_out_error is None else choice.held_out_error
    return Size(n_hidden, choice.gamma, error)


def choose_size(factor: Factor, folds: FoldFactors, rule: Rule, *, n_fixed: int = 0) -> int:
    """The size with the least exact cross-validation error, the smaller one of equals."""

    reasons: list[NotApplicable] = []

    def error(n_hidden: int) -> float:
        try:
            if rule.folds is None:  # γ is chosen anew on each training part, and that of all rows is not needed
                cut = folds.leading(n_fixed + n_hidden)
                quick = quick_error(rule, cut)
                return cv_error_of(rule, cut, math.nan) if quick is None else quick
            return at_size(factor, folds, rule, n_hidden, n_fixed).cv_error
        except NotApplicable as reason:  # the rule does not apply at this size; it may at others
            reasons.append(reason)
            return math.inf

    best = search(error, factor.n_features - n_fixed)
    if len(reasons) and error(best) == math.inf:
        raise reasons[0]
    return best


def quick_error(rule: Rule, folds: FoldFactors) -> float | None:
    """The error of a rule that reads spectra, from eigenvalues in half the time; None where they may be wrong.

    γ is then that of the exact spectrum to about 10⁻⁶, far less than what tells two sizes apart.
    """
    quick, total = quick_folds(folds) if rule.needs == "spectrum" else None, 0.0
    if quick is None or not quick.tall:
        return None
    for spectrum, fit in quick.spectra_and_fits():
        gamma = 0.0 if spectrum is None else rule.choose(spectrum).gamma
        if not np.all(gamma > 0.0):
            return None
        total += fit.refined(gamma).squared_error
    return total / (sum(folds.weight_sums) * folds.n_targets)


def search(error: Callable[[int], float], largest: int) -> int:
    """Minimise over 1, …, `largest`, from coarse to fine.

    Sizes go down in steps of √2 to an eighth of the largest, then in steps of 2. Smaller steps beside the best follow.
    """
    seen: dict[int, float] = {}

    def look(exponents: Iterable[float]) -> float:
        for exponent in exponents:
            size = max(1, round(largest * 2.0 ** -max(0.0, exponent)))
            if size not in seen:
                seen[size] = error(size)
        return math.log2(largest / min(seen, key=lambda size: (seen[size], size)))

    best = look([*(k / 2 for k in range(7)), *range(4, math.ceil(math.log2(largest)) + 1)])
    for step in (1 / 2, 1 / 4, 1 / 8):
        best = look((best - step, best + step))
    return min(seen, key=lambda size: (seen[size], size))


# ------------------------------------------------------------------------------


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
