"""Rules from the theory of inverse problems: the L-curve, quasi-optimality, the discrepancy principle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from numbers import Real

from ocrep._linalg.arrays import Array, array_namespace
from ocrep._linalg.spectrum import Spectrum, direction_sums, rss
from ocrep.rules.base import FlooredRule, NotApplicable
from ocrep.rules.choice import Choice
from ocrep.rules.criteria import CriterionRule
from ocrep.rules.search import root, searched_range


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LCurve(CriterionRule):
    """L-curve: maximise the curvature of (log ‖HW − T‖, log ‖W‖) as γ moves.

    It assumes that the curve has a corner. Well-conditioned problems lack one; then the optimum lies at an edge.
    Derivatives are analytic. Reference: Hansen, O'Leary, SIAM J. Sci. Comput. 14 (1993).

    Examples
    --------
    >>> from ocrep import TikhonovRegressor, rules
    >>> from ocrep.datasets import load
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = TikhonovRegressor(rules.LCurve()).fit(X, y)
    >>> f"{model.gamma_:.3g}"
    '3.09e+09'
    """

    name = "lcurve"
    pools = True

    def by_target(self, spectrum: Spectrum, gamma: Array) -> Array:
        """Minus the curvature with respect to t = log γ, of each target."""
        xp, z2 = array_namespace(spectrum.sigma), spectrum.UtT**2
        if not bool(xp.all(xp.sum(z2, axis=0) > 0.0)):
            raise NotApplicable("The rule 'lcurve' needs nonzero weights, and H explains nothing of T: use 'ocrep'.")
        w2, sums = z2 / spectrum.sigma[:, None] ** 2, partial(direction_sums, spectrum, gamma)
        # rss = Σ r²z² + rest and ‖W‖² = Σ f²z²/σ², with dr/dt = rf and df/dt = −rf
        fit = rss(spectrum, gamma)
        rss_1, rss_2 = (sums(w, z2) for w in (lambda f, r: 2 * r**2 * f, lambda f, r: 4 * r**2 * f**2 - 2 * r**3 * f))
        size, size_1 = sums(lambda f, _: f**2, w2), -sums(lambda f, r: 2 * r * f**2, w2)
        size_2 = sums(lambda f, r: 4 * r**2 * f**2 - 2 * r * f**3, w2)
        x_1, y_1 = rss_1 / (2 * fit), size_1 / (2 * size)
        x_2, y_2 = rss_2 / (2 * fit) - 2 * x_1**2, size_2 / (2 * size) - 2 * y_1**2
        return -(x_1 * y_2 - x_2 * y_1) / (x_1**2 + y_1**2) ** 1.5


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class QuasiOptimality(CriterionRule):
    """Quasi-optimality: minimise ‖γ dW/dγ‖ between σ_p² and σ₁².

    It assumes nothing about the noise. Outside that range the norm falls to zero whatever the data.
    References: Tikhonov, Glasko (1965); Hansen (1998).

    Examples
    --------
    >>> from ocrep import TikhonovRegressor, rules
    >>> from ocrep.datasets import load
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = TikhonovRegressor(rules.QuasiOptimality()).fit(X, y)
    >>> f"{model.gamma_:.3g}"
    '2.89e+08'
    """

    name = "quasi_optimality"
    pools = True

    def by_target(self, spectrum: Spectrum, gamma: Array) -> Array:
        """‖γ dW/dγ‖² of each target."""
        w2 = (spectrum.UtT / spectrum.sigma[:, None]) ** 2
        return direction_sums(spectrum, gamma, lambda f, r: (f * r) ** 2, w2)

    def searched(self, spectrum: Spectrum) -> tuple[float, float]:
        """From σ_p² to σ₁²."""
        low = max(spectrum.smallest**2, searched_range(self, spectrum)[0])
        return min(low, spectrum.largest**2), spectrum.largest**2


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Discrepancy(FlooredRule):
    """Discrepancy principle: the γ at which ‖HW − T‖² = n·Q·noise², the residual that the noise alone would leave.

    It assumes that the noise is known. Reference: Morozov (1966).

    Parameters
    ----------
    noise : float or None, default=None
        Standard deviation of the noise in T. The rule cannot be used without it.

    Examples
    --------
    >>> from ocrep import TikhonovRegressor, rules
    >>> from ocrep.datasets import load
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = TikhonovRegressor(rules.Discrepancy(noise=60.0)).fit(X, y)
    >>> f"{model.gamma_:.3g}"
    '5.08e+04'
    """

    noise: float | None = None
    name = "discrepancy"

    def __post_init__(self) -> None:
        FlooredRule.__post_init__(self)
        if self.noise is not None and not (isinstance(self.noise, Real) and 0 <= float(self.noise) < math.inf):
            raise ValueError(f"noise={self.noise!r} must be a finite standard deviation ≥ 0.")

    def _choose(self, spectrum: Spectrum, *_: object) -> Choice:
        if self.noise is None:
            raise NotApplicable(
                "The rule 'discrepancy' needs the standard deviation of the noise: use rules.Discrepancy(noise=...), "
                "or 'gcv' or 'lcurve' if it is not known."
            )
        if not spectrum.rank:
            return Choice(self.name, 0.0)
        goal = spectrum.n * spectrum.UtT.shape[1] * self.noise**2
        gamma, edge = root(lambda gamma: float(spectrum.rss(gamma)) - goal, *searched_range(self, spectrum))
        return Choice(self.name, gamma, edge == "low" and self.least_gamma(spectrum) > 0.0, edge=edge)
