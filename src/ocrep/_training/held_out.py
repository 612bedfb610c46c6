"""The errors of exact cross-validation: of squares from the factors alone, of probabilities by one more pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import add
from typing import Any

import numpy as np

from ocrep._linalg.arrays import Array, array_namespace, as_float64, to_host
from ocrep._linalg.fold_plan import FoldPlan, split_by_fold
from ocrep._linalg.folds import FoldFactors, held_out
from ocrep._rows.rows import Part, Rows
from ocrep._rows.survey import Needs
from ocrep._training.learned import Learned
from ocrep.rules import Rule
from ocrep.rules.base import check_usable

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

    def __call__(self, part: Part) -> np.ndarray | None:
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
