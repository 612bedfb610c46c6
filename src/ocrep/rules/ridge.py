"""Rules of the ridge-regression literature: closed formulas in the canonical coordinates α̂ = UᵀT/σ.

They are written for one target, with s² the noise variance, λ = σ², and p the rank. The originals assume columns
of unit length; where that matters the formula here is the one that agrees with them there and scales with H.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from scipy.optimize import brentq

from ocrep._linalg.arrays import Array, array_namespace
from ocrep._linalg.spectrum import Spectrum
from ocrep.rules.base import Choice, Evidence, FlooredRule, NotApplicable
from ocrep.rules.search import searched_range
from ocrep.rules.variance import noise_variance

MANY_TARGETS = "'ocrep', 'gcv', 'loo', 'kfold', 'ocrep_cv', 'evidence' or 'lcurve'"


@dataclass(frozen=True, slots=True, eq=False)
class Canonical:
    """The problem as the formulas see it."""

    spectrum: Spectrum
    s2: float
    alpha2: Array
    """α̂_j²."""

    @property
    def n(self) -> int:
        """Observations."""
        return self.spectrum.n

    @property
    def p(self) -> int:
        """Rank."""
        return self.spectrum.rank

    @property
    def lambda_max(self) -> float:
        """σ₁²."""
        return self.spectrum.largest**2

    @property
    def ratios(self) -> Array:
        """s²/α̂_j²."""
        if not float(array_namespace(self.alpha2).min(self.alpha2)) > 0.0:
            raise ZeroDivisionError
        return self.s2 / self.alpha2

    @property
    def size(self) -> float:
        """Σ α̂² = ‖β̂‖²."""
        return float(array_namespace(self.alpha2).sum(self.alpha2))


@dataclass(frozen=True, slots=True, kw_only=True)
class RidgeRule(FlooredRule):
    """A formula of the literature; `besides` sets the variance estimate rss/(n − p − besides), 1 as in the paper."""

    besides: int = 1

    def _choose(self, evidence: Evidence) -> Choice:
        spectrum = evidence.spectrum
        if spectrum.UtT.shape[1] != 1:
            raise NotApplicable(
                f"The rule {self.name!r} is defined for one target, and there are {spectrum.UtT.shape[1]}: "
                f"use {MANY_TARGETS}, or fit one model per target."
            )
        if not spectrum.rank:
            return Choice(self.name, 0.0)
        s2 = noise_variance(spectrum, besides=self.besides)
        alpha2 = (spectrum.UtT[:, 0] / spectrum.sigma) ** 2
        try:
            gamma = self.formula(Canonical(spectrum, s2, alpha2))
        except (ZeroDivisionError, OverflowError):
            gamma = math.inf
        if not math.isfinite(gamma):
            raise NotApplicable(
                f"The formula of {self.name!r} divides by zero here: a weight or the noise variance is exactly 0. "
                f"Use {MANY_TARGETS}."
            )
        return self.answer(gamma, spectrum)

    @abstractmethod
    def formula(self, c: Canonical) -> float:
        """γ before the floor; infinite or a division by zero where it is not defined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoerlKennard(RidgeRule):
    """γ = s²/max α̂² (paper, eq. 31). Reference: Hoerl, Kennard, Technometrics 12 (1970)."""

    name: ClassVar[str] = "hoerl_kennard"

    def formula(self, c: Canonical) -> float:
        """s²/max α̂²."""
        return c.s2 / largest(c.alpha2)


@dataclass(frozen=True, slots=True, kw_only=True)
class HoerlKennardBaldwin(RidgeRule):
    """γ = p·s²/Σα̂². Reference: Hoerl, Kennard, Baldwin, Communications in Statistics 4 (1975)."""

    name: ClassVar[str] = "hoerl_kennard_baldwin"

    def formula(self, c: Canonical) -> float:
        """p·s²/Σα̂²."""
        return c.p * c.s2 / c.size


@dataclass(frozen=True, slots=True, kw_only=True)
class HoerlKennardIterative(RidgeRule):
    """γ ← p·s²/‖W(γ)‖² from the Hoerl–Kennard–Baldwin γ on, until it moves by less than 20·T^−1.3 of itself.

    T = tr((HᵀH)⁻¹)·tr(HᵀH)/p², which is their tr((XᵀX)⁻¹)/p for columns of unit length. Where weights shrink for
    ever the sequence diverges; it is stopped at the end of the searched range.
    Reference: Hoerl, Kennard, Communications in Statistics A 5 (1976).
    """

    name: ClassVar[str] = "hoerl_kennard_iterative"

    def formula(self, c: Canonical) -> float:
        """The fixed point."""
        xp, sigma = array_namespace(c.spectrum.sigma), c.spectrum.sigma
        spread = float(xp.sum(sigma**-2.0)) * float(xp.sum(sigma**2)) / c.p**2
        highest = searched_range(self, c.spectrum)[1]
        gamma = min(c.p * c.s2 / c.size, highest)
        for _ in range(1000):
            following = min(c.p * c.s2 / float(c.spectrum.norm(gamma)) ** 2, highest)
            if following - gamma <= 20.0 * spread**-1.3 * gamma:
                return following
            gamma = following
        return gamma


@dataclass(frozen=True, slots=True, kw_only=True)
class Thisted(RidgeRule):
    """γ = max(p − 2, 0)·s²/Σα̂². Reference: Thisted (1976), Stanford University."""

    name: ClassVar[str] = "thisted"

    def formula(self, c: Canonical) -> float:
        """(p − 2)·s²/Σα̂²."""
        return max(c.p - 2, 0) * c.s2 / c.size


@dataclass(frozen=True, slots=True, kw_only=True)
class LawlessWang(RidgeRule):
    """γ = p·s²/Σλα̂². Reference: Lawless, Wang, Communications in Statistics A 5 (1976).

    Σλα̂² = ‖UUᵀT‖² does not change when H is scaled, and so γ does not: it assumes columns of unit length.
    """

    name: ClassVar[str] = "lawless_wang"
    degree: ClassVar[int | None] = 0

    def formula(self, c: Canonical) -> float:
        """p·s²/Σλα̂²."""
        return c.p * c.s2 / float(array_namespace(c.alpha2).sum(c.spectrum.UtT**2))


@dataclass(frozen=True, slots=True, kw_only=True)
class DwivediSrivastava(RidgeRule):
    """γ = s²/Σα̂². Reference: Dwivedi, Srivastava (1978)."""

    name: ClassVar[str] = "dwivedi_srivastava"

    def formula(self, c: Canonical) -> float:
        """s²/Σα̂²."""
        return c.s2 / c.size


@dataclass(frozen=True, slots=True, kw_only=True)
class McDonaldGalarneau(RidgeRule):
    """γ with ‖W(γ)‖² = ‖β̂‖² − s²·Σ1/λ, an unbiased estimate of the true ‖β‖²; 0 where that is not positive.

    Reference: McDonald, Galarneau, Journal of the American Statistical Association 70 (1975).
    """

    name: ClassVar[str] = "mcdonald_galarneau"

    def formula(self, c: Canonical) -> float:
        """The root, by bisection in log γ."""
        xp = array_namespace(c.alpha2)
        goal = c.size - c.s2 * float(xp.sum(c.spectrum.sigma**-2.0))
        if goal <= 0.0:
            return 0.0
        low, high = searched_range(self, c.spectrum)

        def excess(log_gamma: float) -> float:
            return float(c.spectrum.norm(math.exp(log_gamma))) ** 2 - goal

        if excess(math.log(low)) <= 0.0:
            return 0.0
        if excess(math.log(high)) >= 0.0:
            return high
        return math.exp(brentq(excess, math.log(low), math.log(high), xtol=1e-12))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kibria(RidgeRule):
    """γ = mean(s²/α̂²), the arithmetic mean (paper, eq. 30). Reference: Kibria, Comm. Statist. Simul. 32 (2003)."""

    name: ClassVar[str] = "kibria"

    def formula(self, c: Canonical) -> float:
        """mean(s²/α̂²)."""
        return mean(c.ratios)


@dataclass(frozen=True, slots=True, kw_only=True)
class KibriaGM(RidgeRule):
    """γ = s²/GM(α̂²), by the geometric mean. Reference: Kibria, Comm. Statist. Simul. 32 (2003)."""

    name: ClassVar[str] = "kibria_gm"

    def formula(self, c: Canonical) -> float:
        """GM(s²/α̂²), the same."""
        return geometric_mean(c.ratios)


@dataclass(frozen=True, slots=True, kw_only=True)
class KibriaMedian(RidgeRule):
    """γ = median(s²/α̂²). Reference: Kibria, Comm. Statist. Simul. 32 (2003)."""

    name: ClassVar[str] = "kibria_median"

    def formula(self, c: Canonical) -> float:
        """median(s²/α̂²)."""
        return median(c.ratios)


@dataclass(frozen=True, slots=True, kw_only=True)
class KhalafShukur(RidgeRule):
    """γ = λ₁s²/((n − p)s² + λ₁·max α̂²). Reference: Khalaf, Shukur, Comm. Statist. Theory 34 (2005)."""

    name: ClassVar[str] = "khalaf_shukur"

    def formula(self, c: Canonical) -> float:
        """λ₁s²/((n − p)s² + λ₁·max α̂²)."""
        return c.lambda_max * c.s2 / ((c.n - c.p) * c.s2 + c.lambda_max * largest(c.alpha2))


@dataclass(frozen=True, slots=True, kw_only=True)
class DorugadeKashid(RidgeRule):
    """γ = max(0, p·s²/Σα̂² − 1/(n·max_j ((HᵀH)⁻¹)_jj)). Reference: Dorugade, Kashid, Appl. Math. Sci. 4 (2010).

    For columns of unit length ((HᵀH)⁻¹)_jj are the variance inflation factors of the original.
    """

    name: ClassVar[str] = "dorugade_kashid"

    def formula(self, c: Canonical) -> float:
        """max(0, p·s²/Σα̂² − 1/(n·VIF))."""
        inflation = largest(array_namespace(c.alpha2).sum((c.spectrum.Vt / c.spectrum.sigma[:, None]) ** 2, axis=0))
        return max(0.0, c.p * c.s2 / c.size - 1.0 / (c.n * inflation))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dorugade(RidgeRule):
    """γ = (2p/λ₁)·Σ s²/α̂². Reference: Dorugade, J. Assoc. Arab Univ. Basic Appl. Sci. 15 (2014).

    It does not change when H is scaled: it assumes columns of unit length.
    """

    name: ClassVar[str] = "dorugade"
    degree: ClassVar[int | None] = 0

    def formula(self, c: Canonical) -> float:
        """(2p/λ₁)·Σ s²/α̂²."""
        return 2.0 * c.p**2 / c.lambda_max * mean(c.ratios)


def largest(values: Array) -> float:
    """max."""
    return float(array_namespace(values).max(values))


def mean(values: Array) -> float:
    """The arithmetic mean."""
    return float(array_namespace(values).mean(values))


def median(values: Array) -> float:
    """The median (the array API has none)."""
    ordered, n = array_namespace(values).sort(values), values.shape[0]
    return 0.5 * (float(ordered[(n - 1) // 2]) + float(ordered[n // 2]))


def geometric_mean(values: Array) -> float:
    """GM, 0 as soon as one value is 0."""
    xp = array_namespace(values)
    return math.exp(float(xp.mean(xp.log(values)))) if float(xp.min(values)) > 0.0 else 0.0
