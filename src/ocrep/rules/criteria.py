"""Rules that need nothing but the spectrum: estimates of the error of prediction, and rules for inverse problems.

Each minimises a function of γ that is a sum over the directions of H (`direction_sums`), so that a γ costs O(p) for
each target. If all targets share one γ, their functions become one: some rules know a function of the sums of squares
of all targets (`pools`), the others take the mean of the functions of each.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import ClassVar

import numpy as np

from ocrep._linalg.arrays import Array, array_namespace, real_part, to_device_of, to_host
from ocrep._linalg.spectrum import Spectrum, direction_sums, of_targets, pooled
from ocrep.rules.base import Choice, FlooredRule, NotApplicable, choice_of
from ocrep.rules.search import minimise, root, searched_range


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CriterionRule(FlooredRule):
    """A rule that minimises a function of the spectrum over γ."""

    pools: ClassVar[bool] = False
    """Whether several targets count as one with the sums of their squares; else their criteria are averaged."""

    def _choose(self, spectrum: Spectrum, *_: object, per_target: bool) -> Choice:
        return minimise(
            self,
            spectrum,
            partial(self._by_column, spectrum, per_target),
            n_columns=spectrum.n_targets if per_target else 1,
            between=self.searched(spectrum),
        )

    def searched(self, spectrum: Spectrum) -> tuple[float, float]:
        """The least and the largest γ that are considered."""
        return searched_range(self, spectrum)

    def criterion(self, spectrum: Spectrum, gamma: Array) -> Array:
        """The quantity to minimise for all targets together, at each γ of an array."""
        return self._by_column(spectrum, False, gamma[:, None])[:, 0]

    def _by_column(
        self, spectrum: Spectrum, per_target: bool, gamma: Array, columns: np.ndarray | None = None
    ) -> Array:
        """The quantity to minimise, γ × columns: for all targets together, or for each (or those in `columns`)."""
        if not per_target and self.pools:
            return self.by_target(pooled(spectrum), gamma)
        values = self.by_target(spectrum if columns is None else of_targets(spectrum, columns), gamma)
        xp = array_namespace(values)
        missing = xp.isnan(values)
        if not per_target:
            counted = xp.sum(xp.astype(~missing, xp.float64), axis=1, keepdims=True)
            if not bool(xp.all(counted > 0.0)):
                raise _no_residual(self.name, "the target")
            return xp.sum(xp.where(missing, xp.zeros_like(values), values), axis=1, keepdims=True) / counted
        without = np.flatnonzero(to_host(xp.all(missing, axis=0)))
        if len(without):
            raise _no_residual(self.name, f"target {without[0] if columns is None else columns[without[0]]}")
        return values

    @abstractmethod
    def by_target(self, spectrum: Spectrum, gamma: Array) -> Array:
        """The quantity to minimise for each target, γ × targets, at γ of shape (G, 1) or (G, Q); NaN where it has none.

        It must be an analytic function of γ, which may be complex.
        """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GCV(CriterionRule):
    """Generalised cross-validation: minimise V(γ) = n·‖(I − A(γ))T‖² / tr(I − A(γ))² (paper, eq. 7).

    It needs no estimate of the noise, and assumes independent noise of one variance. Several targets share one γ:
    their residuals are summed. (The paper prints ‖I − A(λ)Y‖ for the numerator and means ‖(I − A(λ))Y‖; its λ is γ/n.)
    Reference: Golub, Heath, Wahba, Technometrics 21 (1979).

    Examples
    --------
    >>> from ocrep import TikhonovRegressor, rules
    >>> from ocrep.datasets import load
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = TikhonovRegressor(rules.GCV()).fit(X, y)
    >>> f"{model.gamma_:.3g}"
    '8.13e+03'
    """

    name = "gcv"
    pools = True

    def by_target(self, spectrum: Spectrum, gamma: Array) -> Array:
        """V(γ) of each target."""
        return spectrum.n * spectrum.rss_by_target(gamma) / spectrum.residual_dof(gamma) ** 2


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Mallows(CriterionRule):
    """Mallows' C_L: minimise rss(γ)/σ̂² + 2·dof(γ), averaged over targets.

    It assumes independent noise of one variance per target, and needs more rows than directions (n > p + 1) to
    estimate that variance. Reference: Mallows, Technometrics 15 (1973).

    Examples
    --------
    >>> from ocrep import TikhonovRegressor, rules
    >>> from ocrep.datasets import load
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = TikhonovRegressor(rules.Mallows()).fit(X, y)
    >>> f"{model.gamma_:.3g}"
    '8.13e+03'
    """

    name = "mallows"

    def by_target(self, spectrum: Spectrum, gamma: Array) -> Array:
        """C_L(γ) of each target, without its constant."""
        variances = noise_variances(spectrum)
        if not bool(array_namespace(variances).all(variances > 0.0)):
            raise NotApplicable("The rule 'mallows' divides by the noise variance, which is zero here: use 'gcv'.")
        return spectrum.rss_by_target(gamma) / variances + 2.0 * spectrum.dof(gamma)


def fit_and_dof(spectrum: Spectrum, gamma: Array) -> tuple[Array, Array]:
    """What information criteria are made of: n·log(rss(γ)/n) of each target, without its constant, and dof(γ)."""
    fit = spectrum.n * log_or_nan(spectrum.rss_by_target(gamma))
    return fit, spectrum.dof(gamma) + int(spectrum.intercept_fitted)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AIC(CriterionRule):
    """Akaike's criterion: minimise n·log(rss(γ)/n) + 2·dof(γ).

    It assumes Gaussian noise.
    References: Akaike (1973); effective degrees of freedom after Hastie, Tibshirani (1990).

    Examples
    --------
    >>> from ocrep import TikhonovRegressor, rules
    >>> from ocrep.datasets import load
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = TikhonovRegressor(rules.AIC()).fit(X, y)
    >>> f"{model.gamma_:.3g}"
    '7.96e+03'
    """

    name = "aic"

    def by_target(self, spectrum: Spectrum, gamma: Array) -> Array:
        """The criterion of each target, without its constant."""
        fit, dof = fit_and_dof(spectrum, gamma)
        return fit + 2.0 * dof


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AICc(CriterionRule):
    """Akaike's criterion corrected for small samples: minimise n·log(rss/n) + 2(dof + 1)·n/(n − dof − 2).

    It assumes Gaussian noise; γ with n ≤ dof + 2 are not considered.
    Reference: Hurvich, Tsai, Biometrika 76 (1989), in the form of Hurvich, Simonoff, Tsai (1998).

    Examples
    --------
    >>> from ocrep import TikhonovRegressor, rules
    >>> from ocrep.datasets import load
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = TikhonovRegressor(rules.AICc()).fit(X, y)
    >>> f"{model.gamma_:.3g}"
    '8.38e+03'
    """

    name = "aicc"

    def by_target(self, spectrum: Spectrum, gamma: Array) -> Array:
        """The criterion of each target, without its constant."""
        fit, dof = fit_and_dof(spectrum, gamma)
        xp = array_namespace(dof)
        n = spectrum.n
        left = n - dof - 2.0
        possible = real_part(left) > 0.0
        if not bool(xp.any(possible)):
            raise NotApplicable(f"The rule 'aicc' needs more than three rows, and there are {n}: use 'ocrep'.")
        return fit + xp.where(possible, 2.0 * (dof + 1.0) * n / xp.where(possible, left, xp.ones_like(left)), xp.inf)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BIC(CriterionRule):
    """Schwarz's criterion: minimise n·log(rss(γ)/n) + log(n)·dof(γ).

    It assumes Gaussian noise.
    Reference: Schwarz, Annals of Statistics 6 (1978), with effective degrees of freedom.

    Examples
    --------
    >>> from ocrep import TikhonovRegressor, rules
    >>> from ocrep.datasets import load
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = TikhonovRegressor(rules.BIC()).fit(X, y)
    >>> f"{model.gamma_:.3g}"
    '1.57e+04'
    """

    name = "bic"

    def by_target(self, spectrum: Spectrum, gamma: Array) -> Array:
        """The criterion of each target, without its constant."""
        fit, dof = fit_and_dof(spectrum, gamma)
        return fit + math.log(spectrum.n) * dof


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MarginalLikelihood(CriterionRule):
    """Evidence: maximise the marginal likelihood of T ~ N(0, s²(I + HHᵀ/γ)), s² at its own maximum for each γ.

    It assumes Gaussian noise and independent Gaussian weights of variance s²/γ; an intercept has a flat prior
    (restricted likelihood). Each target has its own s². Reference: MacKay, Neural Computation 4 (1992).

    Examples
    --------
    >>> from ocrep import TikhonovRegressor, rules
    >>> from ocrep.datasets import load
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = TikhonovRegressor(rules.MarginalLikelihood()).fit(X, y)
    >>> f"{model.gamma_:.3g}"
    '8.56e+03'
    """

    name = "evidence"

    def by_target(self, spectrum: Spectrum, gamma: Array) -> Array:
        """−2·log evidence of each target without constants, n'·log s²(γ) + Σ log(1 + σ²/γ)."""
        # Tᵀ(I + HHᵀ/γ)⁻¹T = Σ z²·γ/(σ² + γ) + ‖T − UUᵀT‖²
        explained = direction_sums(spectrum, gamma, lambda _, r: r, spectrum.UtT**2)
        log_s2 = log_or_nan(explained + spectrum.residual)
        log_det = direction_sums(spectrum, gamma, lambda f, r: array_namespace(r).log1p(f / r))
        return (spectrum.n - int(spectrum.intercept_fitted)) * log_s2 + log_det


def log_or_nan(sums: Array) -> Array:
    """The logarithm of sums of squares (γ × targets); NaN for targets of zeros."""
    xp = array_namespace(sums)
    tiny = xp.finfo(xp.float64).smallest_normal
    size = real_part(sums)
    logs = xp.log(xp.where(size > tiny, sums, tiny * xp.ones_like(sums)))
    return xp.where(xp.max(size, axis=0) > 0.0, logs, xp.nan * xp.ones_like(logs))


def _no_residual(rule: str, which: str) -> NotApplicable:
    return NotApplicable(f"The rule {rule!r} takes the log of the residual, and {which} is zero: use 'ocrep'.")


def noise_variances(spectrum: Spectrum, *, ddof: int = 1) -> Array:
    """σ̂² = rss/(n − p − `ddof`) of the unregularized fit to each target (paper, eq. 6, divides by n − p − 1)."""
    left = spectrum.n - spectrum.rank - ddof
    if left <= 0:
        raise NotApplicable(
            f"The noise variance cannot be estimated from {spectrum.n} observations and {spectrum.rank} directions: "
            f"more than {spectrum.rank + ddof} observations are needed. Use fewer hidden units, or a rule that "
            "needs no variance, such as 'ocrep', 'gcv' or 'kfold'."
        )
    return spectrum.residual / left


# ------------------------------------------------------------------------------
# Rules from the theory of inverse problems: the L-curve, quasi-optimality, the discrepancy principle.


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
        xp = array_namespace(spectrum.sigma)
        z2 = spectrum.UtT**2
        if not bool(xp.all(xp.sum(z2, axis=0) > 0.0)):
            raise NotApplicable("The rule 'lcurve' needs nonzero weights, and H explains nothing of T: use 'ocrep'.")
        w2 = z2 / spectrum.sigma[:, None] ** 2
        sums = partial(direction_sums, spectrum, gamma)
        # rss = Σ r²z² + rest and ‖W‖² = Σ f²z²/σ², with dr/dt = rf and df/dt = −rf
        rss = spectrum.rss_by_target(gamma)
        rss_1 = sums(lambda f, r: 2 * r**2 * f, z2)
        rss_2 = sums(lambda f, r: 4 * r**2 * f**2 - 2 * r**3 * f, z2)
        size = sums(lambda f, _: f**2, w2)
        size_1 = -sums(lambda f, r: 2 * r * f**2, w2)
        size_2 = sums(lambda f, r: 4 * r**2 * f**2 - 2 * r * f**3, w2)
        # x = log √rss and y = log ‖W‖
        x_1 = rss_1 / (2 * rss)
        y_1 = size_1 / (2 * size)
        x_2 = rss_2 / (2 * rss) - 2 * x_1**2
        y_2 = size_2 / (2 * size) - 2 * y_1**2
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

    def _choose(self, spectrum: Spectrum, *_: object, per_target: bool) -> Choice:
        if self.noise is None:
            raise NotApplicable(
                "The rule 'discrepancy' needs the standard deviation of the noise: use rules.Discrepancy(noise=...), "
                "or 'gcv' or 'lcurve' if it is not known."
            )
        columns = spectrum if per_target else pooled(spectrum)
        if not spectrum.rank:
            return choice_of(self.name, np.zeros(columns.n_targets))
        goal = spectrum.n * self.noise**2 * (1 if per_target else spectrum.n_targets)

        def excess(gamma: np.ndarray, some: np.ndarray) -> np.ndarray:
            row = to_device_of(spectrum.sigma, gamma)[None, :]
            return to_host(of_targets(columns, some).rss_by_target(row))[0] - goal

        gamma, edge = root(excess, *searched_range(self, spectrum), columns.n_targets)
        return choice_of(self.name, gamma, floored=(edge == "low") & (self.least_gamma(spectrum) > 0.0), edge=edge)
