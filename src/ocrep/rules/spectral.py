"""Rules that need no search: OCReP, the plain pseudoinverse, and a γ given by the user."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ocrep.rules.base import Choice, Evidence, FlooredRule, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class OCReP(FlooredRule):
    """γ = σ₁·σ_p, which minimises the condition number of H^reg (paper, eq. 29).

    Reference: Cancelliere, Gai, Gallinari, Rubini, Neural Networks 2015 (arXiv:1508.06095). It assumes nothing
    about the targets and does not look at them. p is the numerical rank. `floor=0.0` is the formula to the letter;
    where H is numerically singular σ_p is rounding noise, and the default floor gives γ = σ₁·max(σ_p, √ε·σ₁).
    """

    name: ClassVar[str] = "ocrep"

    def _choose(self, evidence: Evidence) -> Choice:
        spectrum = evidence.spectrum
        return self.answer(spectrum.largest * spectrum.smallest, spectrum)


@dataclass(frozen=True, slots=True)
class Unregularized(Rule):
    """γ = 0: the plain pseudoinverse W = H⁺T of numerical rank p (paper, eq. 10)."""

    name: ClassVar[str] = "none"

    def _choose(self, evidence: Evidence) -> Choice:
        return Choice(self.name, 0.0)


@dataclass(frozen=True, slots=True)
class Fixed(Rule):
    """The γ the user gave, untouched by any floor."""

    name: ClassVar[str] = "fixed"
    degree: ClassVar[int | None] = None
    value: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and self.value >= 0.0):
            raise ValueError(
                f"gamma={self.value} cannot regularize: give a finite number ≥ 0, or the name of a rule such as "
                "'ocrep' (ocrep.rules.names() lists them)."
            )

    def _choose(self, evidence: Evidence) -> Choice:
        return Choice(self.name, self.value)
