"""`advice_on`: what a user should know about a γ at an end of its range, or an error no better than the mean's.

A γ is at an end if the search stopped there and the criterion would go on falling. A held-out error is compared with
the error of predicting the mean. What is worth a word is found for each column, all targets together or each by
itself, and said if half of the columns have it.
"""

from __future__ import annotations

import numpy as np

from ocrep._linalg.arrays import EPS, array_namespace, to_host
from ocrep._linalg.spectrum import Spectrum
from ocrep.rules.base import Choice, Curve, Rule
from ocrep.rules.search import POINTS_PER_DECADE

# A criterion falls towards the end of its range if the last decade lowers it by more than this part of itself.
_FALLS = 0.01
# Below this part of the mean's error the targets have no noise to speak of, and γ may well be as small as it can be.
_NOISELESS = 1e-6
# Fewer rows than this say next to nothing about other rows.
_FEWEST = 10


def advice_on(rule: Rule, choice: Choice, spectrum: Spectrum, *, network: bool) -> str | None:
    """What to tell the user of a γ that a rule searched for: one sentence on what it means, and one on what to try.

    `network` says whether the features are a hidden layer, which can be drawn otherwise.
    """
    if spectrum.n_rows < _FEWEST:
        return None
    # The mean squared error of the mean, or of zero without an intercept; 0 for targets that are constant.
    xp = array_namespace(spectrum.UtT)
    of_mean = to_host(xp.sum(spectrum.UtT**2, axis=0) + spectrum.residual) / spectrum.weight_sum
    if not isinstance(choice.gamma, np.ndarray):
        of_mean = of_mean.mean(keepdims=True)
    # The error on held-out rows over that of the mean; NaN where either is unknown or zero.
    relative_error = np.full(of_mean.shape, np.nan)
    if choice.held_out_error is not None:
        np.divide(choice.held_out_error, of_mean, out=relative_error, where=of_mean > 0.0)
    than = "the mean" if spectrum.intercept_fitted else "zero"
    useless = relative_error >= 1.0
    if _many(useless):
        other = "another hidden layer (PinvRegressorCV and PinvClassifierCV choose one)" if network else "a network"
        return (
            f"On rows held out the error{_where(useless)} is {float(np.nanmax(relative_error)):.4g} times that of "
            f"predicting {than}: nothing was learned that holds for other rows. Check that inputs and targets belong "
            f"together, then try more rows, other inputs, or {other}."
        )
    # γ is as large as it may be; only a given grid can have an end at which a larger γ would do better.
    high = (np.atleast_1d(choice.edge) == "high") & (of_mean > 0.0)
    if rule.grid is not None:
        high = high & _falls(rule, choice.curve, first=False)
    if _many(high):
        if rule.grid is not None:
            return f"The best γ{_where(high)} is the largest of the grid: add larger ones, or leave the grid out."
        return (
            f"The rule {rule.name!r} puts γ{_where(high)} at the upper end of its range, where little more than "
            f"{than} is predicted: by this rule the features tell nothing about the targets. Check that inputs and "
            f"targets belong together, then try {'another hidden layer or ' if network else ''}another rule such as "
            "'kfold'."
        )
    # γ is as small as it may be, and a smaller one would do better, by more than a little.
    low = (np.atleast_1d(choice.edge) == "low") | np.atleast_1d(choice.floored)
    low = low & _falls(rule, choice.curve, first=True) & ~(relative_error < _NOISELESS) & (of_mean > 0.0)
    if not _many(low):
        return None
    if rule.grid is not None:
        return f"The best γ{_where(low)} is the smallest of the grid: add smaller ones, or leave the grid out."
    least = float(np.min(choice.gamma))
    more = "more hidden units, weight_init='pairs' or PinvRegressorCV" if network else "more features"
    if least > 4.0 * EPS * spectrum.largest**2:
        return (
            f"The rule {rule.name!r} would choose γ{_where(low)} below its floor, {least:.3g}: it asks for less "
            f"regularization than this floor allows. Try gamma='kfold' or 'ocrep_cv', whose floor is lower, or {more}."
        )
    return (
        f"The rule {rule.name!r} puts γ{_where(low)} at the lower end of its range, {least:.3g}, and the error still "
        f"falls there: the targets have little noise, and a richer model may follow them more closely. Try {more}."
    )


def _falls(rule: Rule, curve: Curve | None, *, first: bool) -> np.ndarray:
    """Whether the criterion falls towards the first, or the last, of the γ searched."""
    if curve is None:  # a root was searched for, and lies beyond the end
        return np.ones(1, dtype=bool)
    values = to_host(curve.criterion)
    values = (values if first else values[::-1]).reshape(len(values), -1)
    step = min(POINTS_PER_DECADE if rule.grid is None else 1, len(values) - 1)
    with np.errstate(invalid="ignore"):  # a criterion may be infinite where the rule cannot be used
        size = np.minimum(np.abs(values[0]), np.nanmax(values, axis=0) - np.nanmin(values, axis=0))
        return values[step] - values[0] > _FALLS * size


def _many(targets: np.ndarray) -> bool:
    """Whether half of the targets are concerned: among many with a γ each, some are noise as a rule."""
    return bool(2 * np.count_nonzero(targets) >= len(targets))


def _where(targets: np.ndarray) -> str:
    """Which targets are meant, if each has its own γ."""
    if len(targets) == 1:
        return ""
    numbers = np.flatnonzero(targets)
    shown = ", ".join(map(str, numbers[:5])) + (", …" if len(numbers) > 5 else "")
    return f" of target {shown}" if len(numbers) == 1 else f" of targets {shown}"
