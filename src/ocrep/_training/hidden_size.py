"""Choose the number of hidden units: the factors of all smaller layers are leading blocks of the largest one's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ocrep._linalg.arrays import array_namespace, device_of
from ocrep._linalg.factor import Factor
from ocrep._linalg.folds import FoldFactors
from ocrep.rules import NotApplicable, Rule
from ocrep.rules.base import check_usable
from ocrep.rules.cross_validation import mean_squared_error


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
    gamma = rule.choose(factor.leading(m).spectrum(), folds=cut).gamma
    return Size(n_hidden, gamma, cv_error_of(rule, cut, gamma))


def choose_size(factor: Factor, folds: FoldFactors, rule: Rule, *, n_fixed: int = 0) -> int:
    """The size with the least exact cross-validation error, the smaller one of equals."""

    reasons: list[NotApplicable] = []

    def error(n_hidden: int) -> float:
        try:
            return at_size(factor, folds, rule, n_hidden, n_fixed).cv_error
        except NotApplicable as reason:  # the rule does not apply at this size; it may at others
            reasons.append(reason)
            return math.inf

    best = search(error, factor.n_features - n_fixed)
    if len(reasons) and error(best) == math.inf:
        raise reasons[0]
    return best


def search(error: Callable[[int], float], largest: int) -> int:
    """Minimise over 1, …, `largest`: sizes in steps of √2 first, then four times as fine around the best."""
    seen: dict[int, float] = {}

    def look(exponents: Iterable[float]) -> int:
        for exponent in exponents:
            size = max(1, round(largest * 2.0**-exponent))
            if size not in seen:
                seen[size] = error(size)
        return min(seen, key=lambda size: (seen[size], size))

    steps = 2 * math.ceil(math.log2(largest)) if largest > 1 else 0
    best = math.log2(largest / look(k / 2 for k in range(steps + 1)))
    return look(max(0.0, best + k / 8) for k in range(-3, 4))


def cv_error_of(rule: Rule, folds: FoldFactors, gamma: float) -> float:
    """Exact cross-validation mean squared error of a rule that chose `gamma` on all rows.

    A rule that cross-validates gets the error of the γ it chose, as in the paper's joint search; any other
    chooses anew on each training part.
    """
    check_usable(folds)
    xp, device = array_namespace(folds.spectra[0].sigma), device_of(folds.spectra[0].sigma)
    if rule.folds is not None:
        return float(mean_squared_error(folds, xp.asarray([gamma], dtype=xp.float64, device=device))[0])
    total = 0.0
    for held_out, spectrum in folds.held_out():
        chosen = rule.choose(spectrum).gamma
        total += float(held_out.squared_error(spectrum.weights(chosen), spectrum.intercept(chosen)))
    return total / (sum(folds.weight_sums) * folds.n_targets)
