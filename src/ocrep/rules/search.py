"""The one-dimensional search that the rules with a criterion share: a log grid, then a refinement."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from ocrep._errors import pick
from ocrep._linalg.arrays import EPS, Array, array_namespace, device_of
from ocrep._linalg.spectrum import Spectrum
from ocrep.rules.base import Choice, Curve, Edge, FlooredRule

POINTS_PER_DECADE = 8
# Beyond 1000·σ₁² every weight is below 0.1 % of its unregularized value, and no criterion changes.
HIGHEST = 1e3
# The slope of a criterion is taken over twice this step in log γ.
_STEP = 1e-3

# The fixed grids of the literature, which do not depend on the scale of H.
GRIDS: dict[str, tuple[float, ...]] = {
    "ocrep_paper": tuple(10.0**e for e in range(-25, 26)),
    "elm": tuple(2.0**e for e in range(-24, 26)),
    "relm": tuple(2.0**e for e in range(-50, 51)),
}

Criterion: TypeAlias = Callable[[Array], Array]
Refinement: TypeAlias = Callable[[Curve, Criterion], float]


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
    grid: Sequence[float] | None = None,
    between: tuple[float, float] | None = None,
    refine: Refinement | None = None,
) -> Choice:
    """Minimise `criterion` over γ; deterministic.

    A given `grid` is searched as it is, and the floor applies to the result. Otherwise a log grid is searched, and
    the optimum is refined between its neighbours.
    """
    if not spectrum.rank:
        return Choice(rule.name, 0.0)  # H is zero: so are the weights, whatever γ
    low, high = between or searched_range(rule, spectrum)
    gammas = list(grid) if grid is not None else _log_grid(low, high)
    array = array_like(spectrum.sigma, gammas)
    curve = Curve(array, criterion(array))
    best = curve.best
    edge: Edge | None = "low" if best == 0 else "high" if best == len(gammas) - 1 else None
    gamma = gammas[best]
    if grid is None and edge is None:
        gamma = (refine or refine_by_brent)(curve, criterion)
    least = rule.least_gamma(spectrum)
    floored = gamma < least or (grid is None and edge == "low" and gamma == least)
    return Choice(rule.name, max(gamma, least), floored, curve, edge)


def root(increasing: Callable[[float], float], low: float, high: float) -> tuple[float, Edge | None]:
    """The γ at which an increasing function is zero, by Brent's method in log γ.

    If its zero lies outside the range, the nearer end is returned, and which one it is.
    """

    def at(log_gamma: float) -> float:
        return increasing(math.exp(log_gamma))

    ends = math.log(low), math.log(high)
    if at(ends[0]) >= 0.0:
        return low, "low"
    if at(ends[1]) <= 0.0:
        return high, "high"
    return math.exp(brentq(at, *ends, xtol=1e-12)), None


def refine_by_brent(curve: Curve, criterion: Criterion) -> float:
    """The minimum between the neighbours of the best grid point, by Brent's bounded method in log γ.

    Near its minimum a criterion is flat, and rounding moves the minimum by √ε. The zero of its slope is right to far
    more digits, so that equal problems, such as weighted and repeated rows, get equal γ.
    """
    best = curve.best

    def at(*log_gammas: float) -> list[float]:
        return [float(value) for value in criterion(array_like(curve.gammas, [math.exp(x) for x in log_gammas]))]

    def slope(log_gamma: float) -> float:
        before, after = at(log_gamma - _STEP, log_gamma + _STEP)
        return after - before

    bounds = tuple(math.log(float(curve.gammas[i])) for i in (best - 1, best + 1))
    found = minimize_scalar(lambda x: at(x)[0], bounds=bounds, method="bounded", options={"xatol": 1e-6})
    if not found.fun < float(curve.criterion[best]):
        return float(curve.gammas[best])
    ends = max(bounds[0], found.x - 5.0 * _STEP), min(bounds[1], found.x + 5.0 * _STEP)
    falls_and_rises = slope(ends[0]) < 0.0 < slope(ends[1])
    return math.exp(brentq(slope, *ends, xtol=1e-12) if falls_and_rises else found.x)


def refine_by_parabola(curve: Curve, criterion: Criterion) -> float:
    """The vertex of the parabola through the best grid point and its neighbours; the rows are not read again."""
    best = curve.best
    a, b, c = (float(curve.criterion[i]) for i in (best - 1, best, best + 1))
    bend = a - 2.0 * b + c
    step = 0.5 * (a - c) / bend if bend > 0.0 else 0.0
    ratio = float(curve.gammas[best + 1]) / float(curve.gammas[best])
    return float(curve.gammas[best]) * ratio**step


def do_not_refine(curve: Curve, criterion: Criterion) -> float:
    """The best grid point, for a criterion that counts: it is a step function."""
    return float(curve.gammas[curve.best])


def array_like(array: Array, values: Sequence[float]) -> Array:
    """Numbers as a float64 array of the same library and device as `array`."""
    xp = array_namespace(array)
    return xp.asarray(list(values), dtype=xp.float64, device=device_of(array))


def _log_grid(low: float, high: float) -> list[float]:
    steps = max(2, math.ceil(POINTS_PER_DECADE * math.log10(high / low)))
    return [low * (high / low) ** (i / steps) for i in range(steps + 1)]
