"""The error of exact cross-validation of a rule on folds."""

from __future__ import annotations

from ocrep._linalg.folds import FoldFactors
from ocrep.rules import Rule
from ocrep.rules.base import check_usable
from ocrep.rules.search import array_like


def squared_errors_of(rule: Rule, folds: FoldFactors, gamma: float) -> list[float]:
    """Σ w‖t − prediction‖² over each held-out fold, for a rule that chose `gamma` on all rows.

    A rule that holds rows out itself gets the error of the γ it chose, as in the paper's joint search; any other
    chooses anew on each training part.
    """
    check_usable(folds)
    if rule.folds is not None or rule.needs == "rows":
        gammas = array_like(folds.spectra[0].sigma, [gamma])
        return [float(error) for error in folds.squared_errors(gammas)[:, 0]]
    errors = []
    for held_out, spectrum in folds.held_out():
        chosen = rule.choose(spectrum).gamma
        errors.append(float(held_out.squared_error(spectrum.weights(chosen), spectrum.intercept(chosen))))
    return errors


def cv_error_of(rule: Rule, folds: FoldFactors, gamma: float) -> float:
    """The mean over all rows and targets, each row held out once."""
    return sum(squared_errors_of(rule, folds, gamma)) / (sum(folds.weight_sums) * folds.n_targets)
