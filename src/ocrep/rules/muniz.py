"""The Muniz family: a statistic of m_j = √(s²/α̂_j²) or of q_j = √(λ₁s²/((n − p)s² + λ₁α̂_j²)), or of their inverses.

References: Muniz, Kibria, Comm. Statist. Simul. 38 (2009) for m, their K2 to K6; Muniz, Kibria, Månsson, Shukur, SORT
36 (2012) for q, their K8 to K12. γ goes with the first power of H, or with the inverse: they assume columns of unit
length. The names say which quantity (`muniz_kibria` m, `muniz_shukur` q), which statistic, and whether inverted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ocrep._linalg.arrays import Array, array_namespace
from ocrep.rules.ridge import Canonical, RidgeRule, geometric_mean, largest, median


def _m(c: Canonical) -> Array:
    return array_namespace(c.alpha2).sqrt(c.ratios)


def _q(c: Canonical) -> Array:
    below = (c.n - c.p) * c.s2 + c.lambda_max * c.alpha2
    if not float(array_namespace(below).min(below)) > 0.0:
        raise ZeroDivisionError
    return array_namespace(below).sqrt(c.lambda_max * c.s2 / below)


@dataclass(frozen=True, slots=True, kw_only=True)
class MunizRule(RidgeRule):
    """A statistic of one of the family's quantities."""

    quantity: ClassVar[Callable[[Canonical], Array]]
    statistic: ClassVar[Callable[[Array], float]]
    inverted: ClassVar[bool] = False
    degree: ClassVar[int | None] = 1

    def formula(self, c: Canonical) -> float:
        """statistic(quantity), or statistic(1/quantity) for the inverted rules."""
        values = type(self).quantity(c)
        if self.inverted:
            if not float(array_namespace(values).min(values)) > 0.0:
                raise ZeroDivisionError
            values = 1.0 / values
        return type(self).statistic(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class MunizKibriaMaxInverse(MunizRule):
    """γ = max(1/m), their K2."""

    name: ClassVar[str] = "muniz_kibria_max_inverse"
    quantity, statistic, inverted, degree = _m, largest, True, -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MunizKibriaMax(MunizRule):
    """γ = max(m), their K3."""

    name: ClassVar[str] = "muniz_kibria_max"
    quantity, statistic = _m, largest


@dataclass(frozen=True, slots=True, kw_only=True)
class MunizKibriaGMInverse(MunizRule):
    """γ = GM(1/m), their K4."""

    name: ClassVar[str] = "muniz_kibria_gm_inverse"
    quantity, statistic, inverted, degree = _m, geometric_mean, True, -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MunizKibriaGM(MunizRule):
    """γ = GM(m), their K5."""

    name: ClassVar[str] = "muniz_kibria_gm"
    quantity, statistic = _m, geometric_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class MunizKibriaMedianInverse(MunizRule):
    """γ = median(1/m), their K6."""

    name: ClassVar[str] = "muniz_kibria_median_inverse"
    quantity, statistic, inverted, degree = _m, median, True, -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MunizShukurMaxInverse(MunizRule):
    """γ = max(1/q), their K8."""

    name: ClassVar[str] = "muniz_shukur_max_inverse"
    quantity, statistic, inverted, degree = _q, largest, True, -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MunizShukurMax(MunizRule):
    """γ = max(q), their K9."""

    name: ClassVar[str] = "muniz_shukur_max"
    quantity, statistic = _q, largest


@dataclass(frozen=True, slots=True, kw_only=True)
class MunizShukurGMInverse(MunizRule):
    """γ = GM(1/q), their K10."""

    name: ClassVar[str] = "muniz_shukur_gm_inverse"
    quantity, statistic, inverted, degree = _q, geometric_mean, True, -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MunizShukurGM(MunizRule):
    """γ = GM(q), their K11."""

    name: ClassVar[str] = "muniz_shukur_gm"
    quantity, statistic = _q, geometric_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class MunizShukurMedianInverse(MunizRule):
    """γ = median(1/q), their K12."""

    name: ClassVar[str] = "muniz_shukur_median_inverse"
    quantity, statistic, inverted, degree = _q, median, True, -1
