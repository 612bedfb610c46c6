"""Rules that estimate the error of prediction and minimise it over γ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ocrep.rules.base import Choice, FlooredRule
from ocrep.rules.search import minimise
from ocrep.spectrum import Spectrum


@dataclass(frozen=True, slots=True)
class GCV(FlooredRule):
    """Generalised cross-validation: minimise V(γ) = n·‖(I − A(γ))T‖² / tr(I − A(γ))² (paper, eq. 7).

    Reference: Golub, Heath, Wahba, Technometrics 21 (1979). It needs no estimate of the noise, and assumes
    that the noise is independent with one variance. Several targets share one γ: their residuals are summed.
    (The paper prints ‖I − A(λ)Y‖ for the numerator and means ‖(I − A(λ))Y‖; its λ is γ/n.)
    """

    name: ClassVar[str] = "gcv"

    def choose(self, spectrum: Spectrum) -> Choice:
        """Search the criterion over γ."""
        return minimise(
            self, spectrum, lambda gamma: spectrum.n * spectrum.rss(gamma) / spectrum.residual_dof(gamma) ** 2
        )
