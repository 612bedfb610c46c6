"""Choose the number of hidden units: the factors of all smaller layers are leading blocks of the largest one's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ocrep._linalg.factor import Factor
from ocrep._linalg.folds import FoldFactors
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
                return cv_error_of(rule, folds.leading(n_fixed + n_hidden), math.nan)
            return at_size(factor, folds, rule, n_hidden, n_fixed).cv_error
        except NotApplicable as reason:  # the rule does not apply at this size; it may at others
            reasons.append(reason)
            return math.inf

    best = search(error, factor.n_features - n_fixed)
    if len(reasons) and error(best) == math.inf:
        raise reasons[0]
    return best


def search(error: Callable[[int], float], largest: int) -> int:
    """Minimise over 1, …, `largest`: sizes in steps of √2 first, then in steps half and a quarter as large."""
    seen: dict[int, float] = {}

    def look(exponents: Iterable[float]) -> int:
        for exponent in exponents:
            size = max(1, round(largest * 2.0 ** -max(0.0, exponent)))
            if size not in seen:
                seen[size] = error(size)
        return min(seen, key=lambda size: (seen[size], size))

    steps = 2 * math.ceil(math.log2(largest)) if largest > 1 else 0
    best = look(k / 2 for k in range(steps + 1))
    for step in (1 / 4, 1 / 8):
        exponent = math.log2(largest / best)
        best = look((exponent - step, exponent + step))
    return best
