"""The one-dimensional search that the rules with a criterion share: a log grid, then a refinement."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import minimize_scalar

from ocrep.kernels import EPS, Array, array_namespace, device_of
from ocrep.rules.base import Choice, Curve, Edge, FlooredRule
from ocrep.spectrum import Spectrum

POINTS_PER_DECADE = 8
# Beyond 1000·σ₁² every weight is within 0.1 % of nothing: no criterion has more to say there.
HIGHEST = 1e3


def minimise(rule: FlooredRule, spectrum: Spectrum, criterion: Callable[[Array], Array]) -> Choice:
    """Minimise `criterion` over γ, from the rule's floor to 1000·σ₁²; deterministic.

    Without a floor the range begins at (M·ε·σ₁)²: no σ in the spectrum is smaller than M·ε·σ₁, so below
    that γ changes nothing.
    """
    if not spectrum.rank:
        return Choice(rule.name, 0.0)
    unit = spectrum.largest**2
    least = rule.least_gamma(spectrum)
    gammas = _grid(max(least, (spectrum.Vt.shape[1] * EPS) ** 2 * unit), HIGHEST * unit)
    xp, device = array_namespace(spectrum.sigma), device_of(spectrum.sigma)
    grid = xp.asarray(gammas, dtype=xp.float64, device=device)
    values = criterion(grid)
    best = int(xp.argmin(values))
    edge: Edge | None = {0: "low", len(gammas) - 1: "high"}.get(best)  # type: ignore[assignment]
    gamma = gammas[best]
    if edge is None:

        def at(log_gamma: float) -> float:
            return float(criterion(xp.asarray([math.exp(log_gamma)], dtype=xp.float64, device=device))[0])

        bounds = (math.log(gammas[best - 1]), math.log(gammas[best + 1]))
        found = minimize_scalar(at, bounds=bounds, method="bounded", options={"xatol": 1e-6})
        if found.fun < float(values[best]):
            gamma = math.exp(found.x)
    return Choice(rule.name, gamma, edge == "low" and least > 0.0, Curve(grid, values), edge)


def _grid(low: float, high: float) -> list[float]:
    steps = max(1, math.ceil(POINTS_PER_DECADE * math.log10(high / low)))
    return [low * (high / low) ** (i / steps) for i in range(steps + 1)]
