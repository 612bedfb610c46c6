"""The rules that choose γ, in one registry by name."""

from __future__ import annotations

import math
from numbers import Real

from ocrep.choices import pick
from ocrep.rules.analytic import Fixed, OCReP, Unregularized
from ocrep.rules.base import Choice, Curve, Rule
from ocrep.rules.prediction import GCV

_REGISTRY: dict[str, type[Rule]] = {rule.name: rule for rule in (OCReP, GCV, Unregularized)}


def names() -> list[str]:
    """The names that `gamma=` takes."""
    return sorted(_REGISTRY)


def resolve(gamma: str | float | Rule) -> Rule:
    """Make a rule of what a user may pass as `gamma`: a name, a rule, or a number ≥ 0."""
    if isinstance(gamma, Rule):
        return gamma
    if isinstance(gamma, Real) and not isinstance(gamma, bool):
        value = float(gamma)
        if not (math.isfinite(value) and value >= 0.0):
            raise ValueError(
                f"gamma={value} cannot regularize: give a finite number ≥ 0, "
                f"or the name of a rule ({', '.join(names())})."
            )
        return Fixed(value)
    return pick("gamma rule", gamma, _REGISTRY, also=", a rule object such as rules.OCReP(), or a number ≥ 0")()


__all__ = ["GCV", "Choice", "Curve", "Fixed", "OCReP", "Rule", "Unregularized", "names", "resolve"]
