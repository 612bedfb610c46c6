"""Rules that estimate the error of prediction from the spectrum and minimise it over γ."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial

from ocrep._linalg.arrays import Array, array_namespace
from ocrep._linalg.spectrum import Spectrum
from ocrep.rules.base import Choice, FlooredRule, NotApplicable
from ocrep.rules.search import minimise


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CriterionRule(FlooredRule):
    """A rule that minimises a function of the spectrum over γ."""

    def _choose(self, spectrum: Spectrum, *_: object) -> Choice:
        return minimise(self, spectrum, partial(self.criterion, spectrum))

    @abstractmethod
    def criterion(self, spectrum: Spectrum, gamma: Array) -> Array:
        """The quantity to minimise, at each γ of an array."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GCV(CriterionRule):
    """Generalised cross-validation: minimise V(γ) = n·‖(I − A(γ))T‖² / tr(I − A(γ))² (paper, eq. 7).

    It needs no estimate of the noise, and assumes independent noise of one variance. Several targets share one γ:
    their residuals are summed. (The paper prints ‖I − A(λ)Y‖ for the numerator and means ‖(I − A(λ))Y‖; its λ is γ/n.)
    Reference: Golub, Heath, Wahba, Technometrics 21 (1979).
    """

    name = "gcv"

    def criterion(self, spectrum: Spectrum, gamma: Array) -> Array:
        """V(γ), at each γ of an array."""
        return spectrum.n * spectrum.rss(gamma) / spectrum.residual_dof(gamma) ** 2


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Mallows(CriterionRule):
    """Mallows' C_L: minimise rss(γ)/σ̂² + 2·dof(γ), averaged over targets.

    It assumes independent noise of one variance per target, and needs more rows than directions (n > p + 1) to
    estimate that variance. Reference: Mallows, Technometrics 15 (1973).
    """

    name = "mallows"

    def criterion(self, spectrum: Spectrum, gamma: Array) -> Array:
        """C_L(γ) without its constant, at each γ of an array."""
        variances = [noise_variance(spectrum, target) for target in range(spectrum.UtT.shape[1])]
        if not all(v > 0.0 for v in variances):
            raise NotApplicable("The rule 'mallows' divides by the noise variance, which is zero here: use 'gcv'.")
        rss = spectrum.rss_by_target(gamma)
        scaled = sum(rss[:, q] / variance for q, variance in enumerate(variances))
        return scaled / len(variances) + 2.0 * spectrum.dof(gamma)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class InformationCriterion(CriterionRule):
    """n·log(rss(γ)/n), averaged over targets, plus a penalty for the effective degrees of freedom."""

    def criterion(self, spectrum: Spectrum, gamma: Array) -> Array:
        """The criterion without its constant, at each γ of an array."""
        fit = spectrum.n * mean_log(spectrum.rss_by_target(gamma), self.name)
        return fit + self._penalty(spectrum.dof(gamma) + int(spectrum.intercept_fitted), spectrum.n)

    @abstractmethod
    def _penalty(self, dof: Array, n: int) -> Array: ...


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AIC(InformationCriterion):
    """Akaike's criterion: minimise n·log(rss(γ)/n) + 2·dof(γ).

    It assumes Gaussian noise.
    References: Akaike (1973); effective degrees of freedom after Hastie, Tibshirani (1990).
    """

    name = "aic"

    def _penalty(self, dof: Array, n: int) -> Array:
        return 2.0 * dof


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AICc(InformationCriterion):
    """Akaike's criterion corrected for small samples: minimise n·log(rss/n) + 2(dof + 1)·n/(n − dof − 2).

    It assumes Gaussian noise; γ with n ≤ dof + 2 are not considered.
    Reference: Hurvich, Tsai, Biometrika 76 (1989), in the form of Hurvich, Simonoff, Tsai (1998).
    """

    name = "aicc"

    def _penalty(self, dof: Array, n: int) -> Array:
        xp = array_namespace(dof)
        left = n - dof - 2.0
        possible = left > 0.0
        if not bool(xp.any(possible)):
            raise NotApplicable(f"The rule 'aicc' needs more than three rows, and there are {n}: use 'ocrep'.")
        return xp.where(possible, 2.0 * (dof + 1.0) * n / xp.where(possible, left, xp.ones_like(left)), xp.inf)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BIC(InformationCriterion):
    """Schwarz's criterion: minimise n·log(rss(γ)/n) + log(n)·dof(γ).

    It assumes Gaussian noise.
    Reference: Schwarz, Annals of Statistics 6 (1978), with effective degrees of freedom.
    """

    name = "bic"

    def _penalty(self, dof: Array, n: int) -> Array:
        return math.log(n) * dof


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MarginalLikelihood(CriterionRule):
    """Evidence: maximise the marginal likelihood of T ~ N(0, s²(I + HHᵀ/γ)), s² at its own maximum for each γ.

    It assumes Gaussian noise and independent Gaussian weights of variance s²/γ; an intercept has a flat prior
    (restricted likelihood). Each target has its own s². Reference: MacKay, Neural Computation 4 (1992).
    """

    name = "evidence"

    def criterion(self, spectrum: Spectrum, gamma: Array) -> Array:
        """−2·log evidence per target without constants, n'·log s²(γ) + Σ log(1 + σ²/γ), at each γ of an array."""
        xp = array_namespace(spectrum.sigma)
        # Tᵀ(I + HHᵀ/γ)⁻¹T = Σ z²·γ/(σ² + γ) + ‖T − UUᵀT‖²
        explained = xp.matmul(spectrum.shrinkage(gamma), spectrum.UtT**2)
        log_s2 = mean_log(explained + spectrum.residual, self.name)
        log_det = xp.sum(xp.log1p(spectrum.sigma**2 / gamma[:, None]), axis=1)
        return (spectrum.n - int(spectrum.intercept_fitted)) * log_s2 + log_det


def mean_log(sums: Array, rule: str) -> Array:
    """The mean over targets of the logarithm of sums of squares (γ × targets); targets of zeros are left out."""
    xp = array_namespace(sums)
    columns = [sums[:, q] for q in range(sums.shape[1]) if float(xp.max(sums[:, q])) > 0.0]
    if not columns:
        raise NotApplicable(f"The rule {rule!r} takes the log of the residual, and the target is zero: use 'ocrep'.")
    tiny = xp.finfo(xp.float64).smallest_normal
    return sum(xp.log(xp.where(c > tiny, c, tiny * xp.ones_like(c))) for c in columns) / len(columns)


def noise_variance(spectrum: Spectrum, target: int = 0, *, ddof: int = 1) -> float:
    """σ̂² = rss/(n − p − `ddof`) of the unregularized fit (paper, eq. 6, divides by n − p − 1)."""
    left = spectrum.n - spectrum.rank - ddof
    if left <= 0:
        raise NotApplicable(
            f"The noise variance cannot be estimated from {spectrum.n} observations and {spectrum.rank} directions: "
            f"more than {spectrum.rank + ddof} observations are needed. Use fewer hidden units, or a rule that "
            "needs no variance, such as 'ocrep', 'gcv' or 'kfold'."
        )
    return float(spectrum.residual[target]) / left
