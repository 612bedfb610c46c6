"""What a rule for γ is, what it reads and returns, and the precision floor that most rules share."""

from __future__ import annotations

import inspect
import math
import reprlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from ocrep._documentation import Documented
from ocrep._linalg.arrays import EPS, SMALLEST, Array, array_namespace
from ocrep._linalg.blocks import RowBlocks
from ocrep._linalg.fold_plan import FoldPlan
from ocrep._linalg.folds import FoldFactors
from ocrep._linalg.spectrum import Spectrum, sizes_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Edge: TypeAlias = Literal["low", "high"]
Needs: TypeAlias = Literal["spectrum", "folds", "rows"]

_SHORT = reprlib.Repr()
_SHORT.maxtuple, _SHORT.maxstring, _SHORT.maxother = 4, 200, 200


class NotApplicable(ValueError):  # noqa: N818 - it is read in tables, not only in tracebacks
    """A rule cannot choose γ for this problem; the message says why and what to use instead."""


def short_repr(value: DataclassInstance) -> str:
    """Show the class with the fields that differ from their defaults, long sequences shortened."""
    given = ((field.name, getattr(value, field.name), field.default) for field in fields(value))
    shown = ", ".join(f"{name}={_SHORT.repr(actual)}" for name, actual, default in given if actual != default)
    return f"{type(value).__name__}({shown})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Curve:
    """The criterion of a rule on the grid of γ that was searched.

    Attributes
    ----------
    gammas : array of shape (n_gammas,)
        The grid, increasing.
    criterion : array of shape (n_gammas,)
        The quantity to minimise, at each γ.
    """

    gammas: Array
    criterion: Array

    @property
    def best(self) -> int:
        """Index of the smallest criterion; NaN counts as infinite."""
        xp = array_namespace(self.criterion)
        return int(xp.argmin(xp.where(xp.isnan(self.criterion), xp.inf, self.criterion)))

    @property
    def best_gamma(self) -> float:
        """The γ of the grid with the smallest criterion."""
        return float(self.gammas[self.best])

    def __repr__(self) -> str:
        first, last, at = (float(self.gammas[i]) for i in (0, -1, self.best))
        least = float(self.criterion[self.best])
        return f"Curve({len(self.gammas)} γ from {first:.3g} to {last:.3g}, minimum {least:.4g} at γ={at:.3g})"


@dataclass(frozen=True, slots=True, repr=False)
class Choice:
    """The γ that a rule chose, and how.

    Attributes
    ----------
    rule : str
        The rule's name.
    gamma : float
        The chosen γ.
    floored : bool
        Whether the precision floor set γ, not the rule's own formula or search.
    curve : Curve or None
        The searched criterion, for rules that search.
    edge : {"low", "high"} or None
        The end of the searched range at which the optimum lies, if it lies at one.
    held_out_error : float or None
        Mean squared error at γ over all rows and targets, each row held out once, for rules that cross-validate. Where
        Gram matrices do not prove it to 10⁻¹⁰ of the mean square of the targets, `fit` computes it from the rows.
    """

    rule: str
    gamma: float
    floored: bool = False
    curve: Curve | None = None
    edge: Edge | None = None
    held_out_error: float | None = None

    __repr__ = short_repr


class Rule(Documented, ABC):
    """One way to choose γ."""

    name: str
    needs: Needs = "spectrum"
    """What the rule reads: the spectrum alone, one factor per fold, or the rows themselves."""
    folds: FoldPlan | None = None
    """How the rule divides the rows into folds; None without cross-validation."""
    degree: int | None = 2
    """The power of c by which γ changes when H is scaled by c; None if γ does not depend on H."""

    @property
    def description(self) -> str:
        """Formula, assumptions and reference, as the documentation prints them."""
        return inspect.cleandoc(type(self).__doc__ or "").partition("\n\nParameters\n")[0]

    @classmethod
    def named(cls) -> tuple[Self, ...]:
        """The rules of this class that `gamma=` takes by name, with their default options."""
        return () if inspect.isabstract(cls) else (cls(),)

    def choose(self, spectrum: Spectrum, *, folds: FoldFactors | None = None, rows: RowBlocks | None = None) -> Choice:
        """Choose γ for a problem.

        Parameters
        ----------
        spectrum : Spectrum
            The spectrum of H with the targets.
        folds : FoldFactors or None, default=None
            One factor per fold, for rules that cross-validate.
        rows : RowBlocks or None, default=None
            The training rows, for rules that read them.

        Returns
        -------
        Choice

        Raises
        ------
        NotApplicable
            If the rule cannot choose γ here; it is a ValueError.
        """
        self._check_needs(folds, rows)
        for name, size in sizes_of(spectrum).items():  # γ goes with σ₁², and the criteria with T²
            if size and not SMALLEST < size < 1.0 / SMALLEST:
                raise NotApplicable(f"The {name} have size {size:.0e}, which float64 cannot square: rescale the data.")
        return self._choose(spectrum, folds, rows)

    @abstractmethod
    def _choose(self, spectrum: Spectrum, folds: Any, rows: Any, /) -> Choice:
        """Choose γ from the spectrum, `FoldFactors` and `RowBlocks`; those that the rule needs are not None."""

    def _check_needs(self, folds: FoldFactors | None, rows: RowBlocks | None) -> None:
        if self.needs == "rows" and rows is None:
            raise NotApplicable(
                f"The rule {self.name!r} reads the rows, which are available only during fit: "
                f"call fit with gamma={self!r}, or use a rule that needs no rows, such as 'gcv' or rules.KFold()."
            )
        if self.folds is None:
            return
        if folds is None:
            raise NotApplicable(
                f"The rule {self.name!r} needs one factor per fold, and none were stored: "
                "fit with store_folds=True, or use a rule that needs no folds, such as 'gcv'."
            )
        if not self.folds.divides_as(folds.plan):
            raise NotApplicable(
                f"The rule {self.name!r} needs {self.folds}, but {folds.plan} was stored: call fit with gamma={self!r}."
            )
        check_usable(folds)


def check_usable(folds: FoldFactors) -> None:
    """Raise `NotApplicable` unless at least two folds hold rows."""
    if len(folds.filled) < 2:
        raise NotApplicable(
            f"Cross-validation needs rows in at least two folds, and {folds.n_read} sample(s) are too few for "
            f"{folds.plan}: use 'gcv' or 'ocrep'."
        )


FLOORS = {"precision": math.sqrt(EPS), "rounding": EPS}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FlooredRule(Rule):
    """A rule that never goes below `floor`·σ₁².

    "precision" stands for √ε. It damps every direction with σ < ε^¼·σ₁, four digits below the largest, which a rule
    that looks only at σ₁ and σ_p, or trusts the training error, needs where H is singular: there σ_p is rounding noise.
    "rounding" stands for ε, below which γ cannot be told from the rounding of HᵀH. 0.0 turns the floor off.

    Parameters
    ----------
    floor : float, "precision" or "rounding", default="precision"
        γ is at least `floor`·σ₁²; "precision" stands for √ε, "rounding" for ε.
    """

    floor: float | str = "precision"

    def __post_init__(self) -> None:
        if self.floor not in FLOORS and not (
            isinstance(self.floor, Real) and not isinstance(self.floor, bool) and 0 <= float(self.floor) < math.inf
        ):
            raise ValueError(
                f"floor must be 'precision', 'rounding' or a finite number ≥ 0 (relative to σ₁²); got {self.floor!r}."
            )

    __repr__ = short_repr

    def least_gamma(self, spectrum: Spectrum) -> float:
        """The floor times σ₁²."""
        relative = FLOORS[self.floor] if isinstance(self.floor, str) else float(self.floor)
        return relative * spectrum.largest**2

    def at_least_floor(self, gamma: float, spectrum: Spectrum) -> Choice:
        """Choose γ, or the floor if it is larger."""
        least = self.least_gamma(spectrum)
        return Choice(self.name, max(gamma, least), floored=gamma < least)
