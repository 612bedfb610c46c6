"""The rules that choose γ, in one registry by name."""

from __future__ import annotations

from numbers import Real

from ocrep._choices import pick
from ocrep.rules.base import Choice, Curve, NotApplicable, Rule
from ocrep.rules.criteria import AIC, BIC, GCV, AICc, Mallows, MarginalLikelihood
from ocrep.rules.cross_validation import LOO, KFold, OCRePCV
from ocrep.rules.inverse_problems import Discrepancy, LCurve, QuasiOptimality
from ocrep.rules.muniz import (
    MunizKibriaGM,
    MunizKibriaGMInverse,
    MunizKibriaMax,
    MunizKibriaMaxInverse,
    MunizKibriaMedianInverse,
    MunizShukurGM,
    MunizShukurGMInverse,
    MunizShukurMax,
    MunizShukurMaxInverse,
    MunizShukurMedianInverse,
)
from ocrep.rules.ridge import (
    Dorugade,
    DorugadeKashid,
    DwivediSrivastava,
    HoerlKennard,
    HoerlKennardBaldwin,
    HoerlKennardIterative,
    KhalafShukur,
    Kibria,
    KibriaGM,
    KibriaMedian,
    LawlessWang,
    McDonaldGalarneau,
    Thisted,
)
from ocrep.rules.search import GRIDS
from ocrep.rules.spectral import Fixed, OCReP, Unregularized

_RULES: tuple[type[Rule], ...] = (
    *(OCReP, OCRePCV, Unregularized),
    *(GCV, LOO, KFold, Mallows, AIC, AICc, BIC, MarginalLikelihood),
    *(LCurve, QuasiOptimality, Discrepancy),
    *(HoerlKennard, HoerlKennardBaldwin, HoerlKennardIterative, Thisted, LawlessWang, DwivediSrivastava),
    *(McDonaldGalarneau, Kibria, KibriaGM, KibriaMedian, KhalafShukur, DorugadeKashid, Dorugade),
    *(MunizKibriaMaxInverse, MunizKibriaMax, MunizKibriaGMInverse, MunizKibriaGM, MunizKibriaMedianInverse),
    *(MunizShukurMaxInverse, MunizShukurMax, MunizShukurGMInverse, MunizShukurGM, MunizShukurMedianInverse),
)
_REGISTRY: dict[str, type[Rule]] = {rule.name: rule for rule in _RULES}


def names() -> list[str]:
    """The names that `gamma=` takes."""
    return sorted(_REGISTRY)


def resolve(gamma: str | float | Rule) -> Rule:
    """Make a rule of what a user may pass as `gamma`: a name, a rule, or a number ≥ 0."""
    if isinstance(gamma, Rule):
        return gamma
    if isinstance(gamma, Real) and not isinstance(gamma, bool):
        return Fixed(float(gamma))
    return pick("gamma rule", gamma, _REGISTRY, also=", a rule object such as rules.OCReP(), or a number ≥ 0")()


__all__ = [
    "AIC",
    "BIC",
    "GCV",
    "GRIDS",
    "LOO",
    "AICc",
    "Choice",
    "Curve",
    "Discrepancy",
    "Dorugade",
    "DorugadeKashid",
    "DwivediSrivastava",
    "Fixed",
    "HoerlKennard",
    "HoerlKennardBaldwin",
    "HoerlKennardIterative",
    "KFold",
    "KhalafShukur",
    "Kibria",
    "KibriaGM",
    "KibriaMedian",
    "LCurve",
    "LawlessWang",
    "Mallows",
    "MarginalLikelihood",
    "McDonaldGalarneau",
    "MunizKibriaGM",
    "MunizKibriaGMInverse",
    "MunizKibriaMax",
    "MunizKibriaMaxInverse",
    "MunizKibriaMedianInverse",
    "MunizShukurGM",
    "MunizShukurGMInverse",
    "MunizShukurMax",
    "MunizShukurMaxInverse",
    "MunizShukurMedianInverse",
    "NotApplicable",
    "OCReP",
    "OCRePCV",
    "QuasiOptimality",
    "Rule",
    "Thisted",
    "Unregularized",
    "names",
    "resolve",
]
