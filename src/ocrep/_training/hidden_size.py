"""Choose the number of hidden units: the factors of all smaller layers are leading blocks of the largest one's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ocrep._linalg.factor import Factor
from ocrep._linalg.folds import FoldFactors
from ocrep._linalg.quick_folds import quick_folds
from ocrep._training.held_out import cv_error_of
from ocrep.rules import NotApplicable, Rule


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
