"""The one-dimensional search that the rules with a criterion share, and what to say of where it ended.

First a log grid, then a refinement.

A criterion is searched for all columns at once, where a column is all targets together or one of them (see `base`).
On a grid of eight γ per decade the columns share the γ, so that a criterion of many targets costs a few matrix
products; after that, each column has its own γ.

Near its minimum a criterion is flat, and rounding moves the minimum by √ε. The zero of its slope by log γ is right to
far more digits, so that equal problems, such as weighted and repeated rows, get equal γ. The slope comes from a
complex step: for an analytic f, Im f(x + ih)/h = f'(x) − h²f'''(x)/6 + …, in which nothing cancels, so that h may be
so small that its square is below rounding (Squire, Trapp, SIAM Review 40, 1998). Its zero is found by a bracketing
method between the neighbours of the best grid point, where the slope rises from below zero to above; where it does
not, the criterion has several minima there, and a finer look between the neighbours finds closer ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ocrep._errors import pick
from ocrep._linalg.arrays import EPS, Array, array_namespace, to_device_of, to_host
from ocrep._linalg.spectrum import Spectrum
from ocrep.rules.base import Choice, Curve, FlooredRule, Rule, choice_of

POINTS_PER_DECADE = 8
# Beyond 1000·σ₁² every weight is below 0.1 % of its unregularized value, and no criterion changes.
HIGHEST = 1e3
# The complex step in log γ: its square is below rounding, and nothing underflows.
_STEP = 2.0**-30
# A bracket around an optimum becomes four times as narrow with each look inside.
_LOOKS = 8
_TOLERANCE = 1e-11
_STEPS = 60

# The fixed grids of the literature, which do not depend on the scale of H.
GRIDS: dict[str, tuple[float, ...]] = {
    "ocrep_paper": tuple(10.0**e for e in range(-25, 26)),
    "elm": tuple(2.0**e for e in range(-24, 26)),
    "relm": tuple(2.0**e for e in range(-50, 51)),
}


# criterion(gamma, columns=None): what a rule minimises over γ, for one column (all targets together) or several (each
# target by itself). It gives values, γ × columns, at γ of shape (G, 1), or (G, columns) for one each; `columns` are the
# numbers of some. γ may be complex: the criterion must be an analytic function, unless it is not refined.
Criterion: TypeAlias = Callable[..., Array]


@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """A criterion on a grid of γ, and the columns whose best γ lies inside it."""

    criterion: Criterion
    gammas: np.ndarray
    values: np.ndarray
    """γ × columns."""
    columns: np.ndarray
    like: Array
    """An array of the library and device of the criterion."""

    def neighbours(self) -> tuple[np.ndarray, np.ndarray]:
        """log γ at the best point of each column with those before and after it, 3 × columns, and the values there."""
        index = best_of(self.values[:, self.columns]) + np.array([[-1], [0], [1]])
        return np.log(self.gammas)[index], self.values[index, self.columns]

    def at(self, gamma: np.ndarray, some: np.ndarray) -> np.ndarray:
        """The criterion, points × some of the columns."""
        numbers = None if len(some) == self.values.shape[1] else self.columns[some]
        return to_host(self.criterion(to_device_of(self.like, gamma), numbers))

    def slope(self, x: np.ndarray, some: np.ndarray) -> np.ndarray:
        """Its derivative by log γ at log γ = x, by a complex step."""
        return self.at(np.exp(x)[None, :] * (1.0 + 1j * _STEP), some)[0].imag / _STEP


Refinement: TypeAlias = Callable[[Searched], np.ndarray]


def check_grid(grid: str | Sequence[float] | None, name: str = "grid") -> tuple[float, ...] | None:
    """Return a named grid, or the user's own, as increasing numbers; `name` is the parameter in error messages."""
    if grid is None:
        return None
    if isinstance(grid, str):
        return pick("grid", grid, GRIDS, also=", or a sequence of numbers > 0")
    try:
        values = tuple(np.unique(np.asarray(list(grid) if np.iterable(grid) else grid, dtype=np.float64)).tolist())
    except (TypeError, ValueError):
        values = ()
    if not values or not all(math.isfinite(g) and g > 0 for g in values):
        raise ValueError(f"{name} needs at least one number, all of them finite and > 0; got {grid!r}.")
    return values


def searched_range(rule: FlooredRule, spectrum: Spectrum) -> tuple[float, float]:
    """From the rule's floor to 1000·σ₁².

    Without a floor it begins at (M·ε·σ₁)²: no σ in the spectrum is smaller than M·ε·σ₁, so a smaller γ changes
    nothing.
    """
    unit = spectrum.largest**2
    low = max(rule.least_gamma(spectrum), (spectrum.right.n_features * EPS) ** 2 * unit)
    return low, max(HIGHEST * unit, 10.0 * low)


def minimise(
    rule: FlooredRule,
    spectrum: Spectrum,
    criterion: Criterion,
    *,
    n_columns: int,
    grid: Sequence[float] | None = None,
    between: tuple[float, float] | None = None,
    refine: Refinement | None = None,
) -> Choice:
    """Minimise `criterion` over γ, for each of its columns; deterministic.

    A given `grid` is searched as it is, and the floor applies to the result. Otherwise a log grid is searched, and
    the optimum is refined between its neighbours.
    """
    if not spectrum.rank:  # H is zero: so are the weights, whatever γ
        return choice_of(rule.name, np.zeros(n_columns))
    if grid is None:
        low, high = between or searched_range(rule, spectrum)
        steps = max(2, math.ceil(POINTS_PER_DECADE * math.log10(high / low)))
        gammas = np.asarray([low * (high / low) ** (i / steps) for i in range(steps + 1)])
    else:
        gammas = np.array(grid, dtype=np.float64)
    array = to_device_of(spectrum.sigma, gammas)
    found = criterion(array[:, None])
    values = to_host(found)
    best = best_of(values)
    edge = np.where(best == 0, "low", np.where(best == len(gammas) - 1, "high", ""))
    gamma = gammas[best]
    inside = np.flatnonzero(edge == "")
    if grid is None and len(inside):
        gamma[inside] = (refine or refine_by_slope)(Searched(criterion, gammas, values, inside, spectrum.sigma))
    least = rule.least_gamma(spectrum)
    floored = (gamma < least) | ((edge == "low") & (gamma == least) & (grid is None))
    return choice_of(rule.name, np.maximum(gamma, least), floored=floored, edge=edge, curve=Curve(array, found))


def root(
    increasing: Callable[[np.ndarray, np.ndarray], np.ndarray], low: float, high: float, n_columns: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The γ at which increasing functions of γ are zero, one for each column.

    `increasing(gamma, columns)` gives the values of some columns. Where the zero lies outside the range, γ is the
    nearer end, and the second result says which: "low" or "high".
    """
    every = np.arange(n_columns)
    at_low = increasing(np.full(n_columns, low), every)
    at_high = increasing(np.full(n_columns, high), every)
    edge = np.where(at_low >= 0.0, "low", np.where(at_high <= 0.0, "high", ""))
    gamma = np.where(edge == "low", low, high)
    inside = np.flatnonzero(edge == "")
    if len(inside):
        ends = np.full(len(inside), math.log(low)), np.full(len(inside), math.log(high))
        values = at_low[inside], at_high[inside]
        gamma[inside] = np.exp(_zeros(lambda x, some: increasing(np.exp(x), inside[some]), *ends, *values))
    return gamma, edge


def refine_by_slope(searched: Searched) -> np.ndarray:
    """The zero of the slope between the neighbours of the best grid point, for all columns at once."""
    x, values = searched.neighbours()
    every = np.arange(x.shape[1])
    slopes = np.stack([searched.slope(x[0], every), searched.slope(x[2], every)])
    for _ in range(_LOOKS):
        unsure = np.flatnonzero(~((slopes[0] < 0.0) & (slopes[1] > 0.0)))
        if not len(unsure):
            break
        _look_closer(searched, x, values, unsure)
        slopes[:, unsure] = [searched.slope(x[0, unsure], unsure), searched.slope(x[2, unsure], unsure)]
    falls_and_rises = np.flatnonzero((slopes[0] < 0.0) & (slopes[1] > 0.0))
    roots = x[1].copy()
    if len(falls_and_rises):
        ends = (x[0, falls_and_rises], x[2, falls_and_rises], *slopes[:, falls_and_rises])
        roots[falls_and_rises] = _zeros(lambda x, some: searched.slope(x, falls_and_rises[some]), *ends)
    better = searched.at(np.exp(roots)[None, :], every)[0] <= values[1]
    return np.exp(np.where(better, roots, x[1]))


def _look_closer(searched: Searched, x: np.ndarray, values: np.ndarray, some: np.ndarray) -> None:
    """Replace the neighbours of the best point of some columns by those on a grid four times as fine, in place."""
    fine = x[0, some] + (x[2, some] - x[0, some]) * np.linspace(0.0, 1.0, 9)[1:-1, None]
    inside = searched.at(np.exp(fine), some)
    best = best_of(inside), np.arange(len(some))
    x[:, some] = fine[best] + (fine[1] - fine[0]) * np.array([[-1], [0], [1]])
    values[1, some] = inside[best]


def _zeros(
    function: Callable[[np.ndarray, np.ndarray], np.ndarray],
    low: np.ndarray,
    high: np.ndarray,
    below: np.ndarray,
    above: np.ndarray,
) -> np.ndarray:
    """Where functions are zero that are `below` zero at `low` and `above` it at `high`, by Chandrupatla's method.

    It takes inverse quadratic steps where they are safe and halves the bracket elsewhere. `function(x, some)` gives
    the values of some of them. Reference: Chandrupatla, Advances in Engineering Software 28 (1997).
    """
    # `scipy.optimize.elementwise.find_root` is the same method. Its loop is more general and takes 1.3 ms more, which
    # doubles the time of a search in a small problem.
    found = np.empty_like(low)
    some = np.arange(len(low))
    x1, f1 = high, above
    x2, f2 = low, below
    t = above / (above - below)
    for _ in range(_STEPS):
        x = x1 + t * (x2 - x1)
        f = function(x, some)
        same = (f > 0.0) == (f1 > 0.0)
        x3, f3 = np.where(same, x1, x2), np.where(same, f1, f2)
        x2, f2 = np.where(same, x2, x1), np.where(same, f2, f1)
        x1, f1 = x, f
        found[some] = np.where(np.abs(f1) < np.abs(f2), x1, x2)
        least = _TOLERANCE / np.abs(x2 - x1)
        go_on = (least < 0.5) & (f1 != 0.0)
        if not go_on.any():
            break
        x1, f1, x2, f2, x3, f3, least, some = (part[go_on] for part in (x1, f1, x2, f2, x3, f3, least, some))
        with np.errstate(divide="ignore", invalid="ignore"):  # equal values have no quadratic, and halving is safe
            xi, phi = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
            quadratic = f1 / (f2 - f1) * f3 / (f2 - f3) + (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
            safe = (phi**2 < xi) & ((1.0 - phi) ** 2 < 1.0 - xi)
        t = np.clip(np.where(safe, quadratic, 0.5), least, 1.0 - least)
    return found


def refine_by_parabola(searched: Searched) -> np.ndarray:
    """The vertex of the parabola through the best grid point and its neighbours; the rows are not read again."""
    x, (a, b, c) = searched.neighbours()
    bend = a - 2.0 * b + c
    with np.errstate(invalid="ignore", divide="ignore"):
        step = np.where(bend > 0.0, 0.5 * (a - c) / bend, 0.0)
    return np.exp(x[1] + step * (x[2] - x[1]))


def do_not_refine(searched: Searched) -> np.ndarray:
    """The best grid point, for a criterion that counts: it is a step function."""
    return searched.gammas[best_of(searched.values[:, searched.columns])]


def best_of(values: np.ndarray) -> np.ndarray:
    """The index of the least value of each column; NaN counts as infinite."""
    return np.argmin(np.where(np.isnan(values), np.inf, values), axis=0)


# ------------------------------------------------------------------------------
# What a user should know about a γ at an end of its range, or an error no better than the mean's.
#
# A γ is at an end if the search stopped there and the criterion would go on falling. A held-out error is compared with
# the error of predicting the mean. What is worth a word is found for each column, all targets together or each by
# itself, and said if half of the columns have it.

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
