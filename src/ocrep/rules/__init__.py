"""The rules that choose γ.

The imports below are the one list of rules: `names()`, `resolve()`, `__all__` and docs/rules.md are made from them.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from ocrep._errors import pick
from ocrep.rules.base import Choice as Choice
from ocrep.rules.base import Curve as Curve
from ocrep.rules.base import Fixed as Fixed
from ocrep.rules.base import NotApplicable as NotApplicable
from ocrep.rules.base import OCReP as OCReP
from ocrep.rules.base import Rule as Rule
from ocrep.rules.base import Unregularized as Unregularized
from ocrep.rules.criteria import AIC as AIC
from ocrep.rules.criteria import BIC as BIC
from ocrep.rules.criteria import GCV as GCV
from ocrep.rules.criteria import AICc as AICc
from ocrep.rules.criteria import Discrepancy as Discrepancy
from ocrep.rules.criteria import LCurve as LCurve
from ocrep.rules.criteria import Mallows as Mallows
from ocrep.rules.criteria import MarginalLikelihood as MarginalLikelihood
from ocrep.rules.criteria import QuasiOptimality as QuasiOptimality
from ocrep.rules.cross_validation import LOO as LOO
from ocrep.rules.cross_validation import KFold as KFold
from ocrep.rules.cross_validation import OCRePCV as OCRePCV
from ocrep.rules.ridge import RidgeFormula as RidgeFormula
from ocrep.rules.search import GRIDS as GRIDS

_CLASSES = [kind for kind in [*globals().values()] if isinstance(kind, type) and kind.__module__.startswith(__name__)]
_REGISTRY = {rule.name: rule for kind in _CLASSES if issubclass(kind, Rule) for rule in kind.named()}

__all__ = sorted([*(kind.__name__ for kind in _CLASSES), "GRIDS", "names", "resolve"])


def names() -> list[str]:
    """Give the names that `gamma=` takes.

    Returns
    -------
    list of str
        The names, in alphabetical order.

    See Also
    --------
    resolve : The rule of a name.

    Examples
    --------
    >>> from ocrep import rules
    >>> rules.names()[:4]
    ['aic', 'aicc', 'bic', 'discrepancy']
    """
    return sorted(_REGISTRY)


def resolve(gamma: Any) -> Rule:
    """Make a rule of what a user may pass as `gamma`.

    Parameters
    ----------
    gamma : str, Rule, float, or sequence of float
        A name, a rule, a number ≥ 0, or one number for each target.

    Returns
    -------
    Rule
        The rule.

    See Also
    --------
    names : All names.

    Examples
    --------
    >>> from ocrep import rules
    >>> rules.resolve("kfold"), rules.resolve(0.5)
    (KFold(), Fixed(value=0.5))
    """
    if isinstance(gamma, Rule):
        return gamma
    if isinstance(gamma, Real) and not isinstance(gamma, bool):
        return Fixed(float(gamma))
    if isinstance(gamma, list | tuple | np.ndarray):
        return Fixed(gamma)
    if isinstance(gamma, str) and gamma in _REGISTRY:
        return _REGISTRY[gamma]
    return pick(
        "gamma rule",
        gamma,
        _REGISTRY,
        also=", a rule object such as rules.OCReP(), a number ≥ 0, or one for each target",
    )
