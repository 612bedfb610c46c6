"""What a rule for γ is, what it reads and answers, and the precision floor that the rules share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, Literal, TypeAlias

from ocrep._linalg.arrays import EPS, SMALLEST, Array, array_namespace
from ocrep._linalg.folds import FoldFactors, FoldPlan
from ocrep._linalg.leave_one_out import Rows
from ocrep._linalg.spectrum import Spectrum

Edge: TypeAlias = Literal["low", "high"]


class NotApplicable(ValueError):  # noqa: N818 - it is read in tables, not only in tracebacks
    """A rule cannot choose γ for this problem; the message says why and what to use instead."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """All that a rule may read of a problem."""

    spectrum: Spectrum
    folds: FoldFactors | None = None
    rows: Rows | None = None


class Rule(ABC):
    """One way to choose γ."""

    name: ClassVar[str]
    needs: ClassVar[Literal["spectrum", "folds", "rows"]] = "spectrum"
    """What the rule reads: the spectrum alone, one factor per fold, or the rows once more."""
    degree: ClassVar[int | None] = 2
    """γ goes with c to this power when H is scaled by c; None if it does not follow H."""
    folds: FoldPlan | None = None
    """How the rule wants the rows divided, if it does."""

    def choose(self, spectrum: Spectrum, *, folds: FoldFactors | None = None, rows: Rows | None = None) -> Choice:
        """Choose γ for this problem; a rule that cannot raises `NotApplicable`, a ValueError."""
        self._check_needs(folds, rows)
        _check_scale(spectrum)
        return self._choose(Evidence(spectrum, folds, rows))

    @abstractmethod
    def _choose(self, evidence: Evidence) -> Choice:
        """Choose γ; what the rule needs is there."""

    def _check_needs(self, folds: FoldFactors | None, rows: Rows | None) -> None:
        if self.needs == "rows" and rows is None:
            raise NotApplicable(
                f"The rule {self.name!r} reads the rows once more, and they are not at hand here: "
                f"call fit with gamma={self!r}, or use a rule that needs no rows, such as 'gcv' or rules.KFold()."
            )
        if self.folds is None:
            return
        if folds is None:
            raise NotApplicable(
                f"The rule {self.name!r} needs one factor per fold, and they were not kept: "
                "fit with store_folds=True, or use a rule that needs no folds, such as 'gcv'."
            )
        if folds.plan != self.folds:
            raise NotApplicable(
                f"The rule {self.name!r} asks for {self.folds}, but {folds.plan} was kept: "
                "fit with store_folds set to the rule's plan."
            )
        check_usable(folds)


def check_usable(folds: FoldFactors) -> None:
    """Refuse folds of which fewer than two hold rows."""
    if not folds.usable:
        raise NotApplicable(
            f"Cross-validation needs rows in at least two folds, and {folds.n_read} sample(s) are too few for "
            f"{folds.plan}: use 'gcv' or 'ocrep'."
        )


def _check_scale(spectrum: Spectrum) -> None:
    """γ goes with σ₁² and the criteria with T²: refuse what float64 cannot square."""
    xp = array_namespace(spectrum.sigma)
    size_T = float(xp.max(xp.abs(spectrum.UtT))) if spectrum.rank else 0.0
    size_W = size_T / spectrum.smallest if spectrum.rank else 0.0
    for name, size in (("features", spectrum.largest), ("targets", size_T), ("weights", size_W)):
        if size and not SMALLEST < size < 1.0 / SMALLEST:
            raise NotApplicable(
                f"The {name} are of size {size:.0e}, whose square float64 cannot hold: rescale the data."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class FlooredRule(Rule):
    """A rule that never goes below `floor`·σ₁².

    "precision" stands for √ε: a direction with σ < √ε·σ₁ lies below the precision of any measured input,
    so γ is chosen as if σ_p were at least that. 0.0 turns the floor off.
    """

    floor: float | Literal["precision"] = "precision"

    def __post_init__(self) -> None:
        if self.floor != "precision" and not (
            isinstance(self.floor, Real) and not isinstance(self.floor, bool) and 0 <= float(self.floor) < math.inf
        ):
            raise ValueError(f"floor must be 'precision' or a finite number ≥ 0 (relative to σ₁²); got {self.floor!r}.")

    def least_gamma(self, spectrum: Spectrum) -> float:
        """The floor for this problem."""
        relative = math.sqrt(EPS) if self.floor == "precision" else float(self.floor)
        return relative * spectrum.largest**2

    def answer(self, gamma: float, spectrum: Spectrum) -> Choice:
        """γ by formula, or the floor if that is larger."""
        least = self.least_gamma(spectrum)
        return Choice(self.name, max(gamma, least), floored=gamma < least)
