"""What a rule for γ is, what it answers, and the precision floor that the rules share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from ocrep.kernels import EPS, Array
from ocrep.spectrum import Spectrum

Edge: TypeAlias = Literal["low", "high"]


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """What a search looked at: the criterion on its grid of γ."""

    gammas: Array
    criterion: Array


@dataclass(frozen=True, slots=True)
class Choice:
    """A rule's answer."""

    rule: str
    gamma: float
    floored: bool = False
    """Whether the precision floor decided, not the rule."""
    curve: Curve | None = None
    edge: Edge | None = None
    """The end of the searched range at which the optimum sits, if it does."""


class Rule(ABC):
    """One way to choose γ."""

    name: ClassVar[str]
    needs: ClassVar[Literal["spectrum", "folds", "rows"]] = "spectrum"
    """What the rule reads."""
    degree: ClassVar[int | None] = 2
    """γ goes with c to this power when H is scaled by c; None if it does not follow H."""

    @abstractmethod
    def choose(self, spectrum: Spectrum) -> Choice:
        """Choose γ for this problem."""


@dataclass(frozen=True, slots=True)
class FlooredRule(Rule):
    """A rule that never goes below `floor`·σ₁².

    "precision" stands for √ε: a direction with σ < √ε·σ₁ lies below the precision of any measured input,
    so γ is chosen as if σ_p were at least that. 0.0 turns the floor off.
    """

    floor: float | Literal["precision"] = "precision"

    def __post_init__(self) -> None:
        if self.floor != "precision" and not (
            isinstance(self.floor, int | float) and math.isfinite(self.floor) and self.floor >= 0
        ):
            raise ValueError(f"floor must be 'precision' or a finite number ≥ 0 (relative to σ₁²); got {self.floor!r}.")

    def least_gamma(self, spectrum: Spectrum) -> float:
        """The floor for this problem."""
        relative = math.sqrt(EPS) if self.floor == "precision" else float(self.floor)
        return relative * spectrum.largest**2
