"""Rules that need no search: OCReP, the plain pseudoinverse, and a γ given by the user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ocrep.rules.base import Choice, FlooredRule, Rule
from ocrep.spectrum import Spectrum


@dataclass(frozen=True, slots=True)
class OCReP(FlooredRule):
    """γ = σ₁·σ_p, which minimises the condition number of H^reg (paper, eq. 29).

    Reference: Cancelliere, Gai, Gallinari, Rubini, Neural Networks 2015 (arXiv:1508.06095). It assumes nothing
    about the targets and does not look at them. p is the numerical rank. `floor=0.0` is the formula to the letter;
    where H is numerically singular σ_p is rounding noise, and the default floor gives γ = σ₁·max(σ_p, √ε·σ₁).
    """

    name: ClassVar[str] = "ocrep"

    def choose(self, spectrum: Spectrum) -> Choice:
        """Read γ off the two ends of the spectrum."""
        gamma, least = spectrum.largest * spectrum.smallest, self.least_gamma(spectrum)
        return Choice(self.name, max(gamma, least), floored=gamma < least)


@dataclass(frozen=True, slots=True)
class Unregularized(Rule):
    """γ = 0: the plain pseudoinverse W = H⁺T of numerical rank p (paper, eq. 10)."""

    name: ClassVar[str] = "none"

    def choose(self, spectrum: Spectrum) -> Choice:
        """Do not regularize."""
        return Choice(self.name, 0.0)


@dataclass(frozen=True, slots=True)
class Fixed(Rule):
    """The γ the user gave, untouched by any floor."""

    name: ClassVar[str] = "fixed"
    degree: ClassVar[int | None] = None
    value: float

    def choose(self, spectrum: Spectrum) -> Choice:
        """Take the given γ."""
        return Choice(self.name, self.value)
