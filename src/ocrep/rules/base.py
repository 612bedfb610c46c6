"""What a rule for γ is, what it reads and returns, and the precision floor that most rules share."""

from __future__ import annotations

import inspect
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, Self, TypeAlias

from ocrep._documentation import Documented
from ocrep._linalg.arrays import EPS, SMALLEST, array_namespace
from ocrep._linalg.folds import FoldFactors, FoldPlan
from ocrep._linalg.rows import EncodedRows
from ocrep._linalg.some_targets import of_targets
from ocrep._linalg.spectrum import Spectrum, sizes_of
from ocrep.rules.choice import Choice, joined, repeated, short_repr

Needs: TypeAlias = Literal["spectrum", "folds", "rows"]
Targets: TypeAlias = Literal["each", "none", "together"]


class NotApplicable(ValueError):  # noqa: N818 - it is read in tables, not only in tracebacks
    """A rule cannot choose γ for this problem; the message says why and what to use instead.

    See Also
    --------
    Rule.choose : Raises it.

    Examples
    --------
    >>> import numpy as np
    >>> from ocrep import Factor, rules
    >>> spectrum = Factor.of(np.eye(2), np.eye(2)).spectrum()  # two targets
    >>> try:
    ...     rules.resolve("hoerl_kennard").choose(spectrum)
    ... except rules.NotApplicable as error:
    ...     print(str(error)[:54])
    The rule 'hoerl_kennard' is defined for one target, an
    """


class Rule(Documented, ABC):
    """One way to choose γ.

    See Also
    --------
    ocrep.compare_rules : A table of all rules on one network.
    ocrep.rules.resolve : A rule by its name.

    Examples
    --------
    >>> import numpy as np
    >>> from ocrep import Factor, rules
    >>> spectrum = Factor.of(np.diag([4.0, 1.0]), np.array([4.0, 1.0])).spectrum()
    >>> rules.OCReP().choose(spectrum)
    Choice(rule='ocrep', gamma=4.0)
    """

    name: str
    needs: Needs = "spectrum"
    """What the rule reads: the spectrum alone, one factor per fold, or the rows themselves."""
    folds: FoldPlan | None = None
    """How the rule divides the rows into folds; None without cross-validation."""
    degree: int | None = 2
    """The power of c by which γ changes when H is scaled by c; None if γ does not depend on H."""
    targets: Targets = "each"
    """Whether the rule can choose a γ for each target ("each"), gives all of them the same because it does not read
    them ("none"), or judges them only "together"."""
    grid: str | Sequence[float] | None = None
    """The γ to try, or a name in `GRIDS`, for rules that can be told; None otherwise."""
    searches: bool = True
    """Whether γ is the optimum, or the root, of something; False for formulas and for γ given by the user."""

    @property
    def description(self) -> str:
        """Formula, assumptions and reference, as the documentation prints them."""
        return re.split(r"\n\n[A-Z][A-Za-z ]+\n-{3,}\n", inspect.cleandoc(type(self).__doc__ or ""))[0]

    def for_own_features(self) -> Self:
        """The same rule for features that the user brings, whose columns may have any units."""
        return self

    def with_folds(self, plan: FoldPlan) -> Self:
        """The same rule with another division of the rows; a rule without folds stays as it is."""
        del plan
        return self

    @classmethod
    def named(cls) -> tuple[Self, ...]:
        """The rules of this class that `gamma=` takes by name, with their default options."""
        return () if inspect.isabstract(cls) else (cls(),)

    def choose(
        self,
        spectrum: Spectrum,
        *,
        folds: FoldFactors | None = None,
        rows: EncodedRows | None = None,
        per_target: bool = False,
    ) -> Choice:
        """Choose γ for a problem.

        Parameters
        ----------
        spectrum : Spectrum
            The spectrum of H with the targets.
        folds : FoldFactors or None, default=None
            One factor per fold, for rules that cross-validate.
        rows : EncodedRows or None, default=None
            The training rows, for rules that read them.
        per_target : bool, default=False
            Whether each target gets a γ of its own.

        Returns
        -------
        Choice
            γ, and how it was chosen.

        Raises
        ------
        NotApplicable
            If the rule cannot choose γ here; it is a ValueError.

        Examples
        --------
        >>> import numpy as np
        >>> from ocrep import Factor, rules
        >>> rng = np.random.default_rng(0)
        >>> H, t = rng.normal(size=(50, 3)), rng.normal(size=50)
        >>> spectrum = Factor.of(H, t).spectrum()
        >>> [name for name in ("gcv", "bic", "none") if rules.resolve(name).choose(spectrum).gamma > 0]
        ['gcv', 'bic']
        """
        self._check_needs(folds, rows)
        for name, size in sizes_of(spectrum).items():  # γ goes with σ₁², and the criteria with T²
            if size and not SMALLEST < size < 1.0 / SMALLEST:
                raise NotApplicable(f"The {name} have size {size:.0e}, which float64 cannot square: rescale the data.")
        if not per_target:
            return self._choose(spectrum, folds, rows)
        self.check_per_target()
        if self.targets == "none":
            return repeated(self._choose(spectrum, folds, rows), spectrum.UtT.shape[1])
        return self._choose_each(spectrum, folds, rows)

    def check_per_target(self) -> None:
        """Raise `NotApplicable` if the rule cannot choose a γ for each target."""
        if self.targets == "together":
            raise NotApplicable(
                f"gamma={self!r} judges all targets together and cannot choose a γ for each: use "
                "gamma_per_target=False, or a rule such as 'kfold' or 'gcv'."
            )

    @abstractmethod
    def _choose(self, spectrum: Spectrum, folds: Any, rows: Any, /) -> Choice:
        """Choose γ from the spectrum, `FoldFactors` and `EncodedRows`; those that the rule needs are not None."""

    def _choose_each(self, spectrum: Spectrum, folds: Any, rows: Any, /) -> Choice:
        """Choose a γ for each target: one after the other, unless a rule knows a faster way."""
        choices = []
        for q in range(spectrum.UtT.shape[1]):
            one = slice(q, q + 1)
            try:
                choices.append(self._choose(*(of_targets(known, one) for known in (spectrum, folds, rows))))
            except NotApplicable as reason:
                raise NotApplicable(f"Target {q}: {reason}") from reason
        return joined(choices)

    def _check_needs(self, folds: FoldFactors | None, rows: EncodedRows | None) -> None:
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


FLOORS = {"precision": math.sqrt(EPS), "columns": math.sqrt(EPS), "rounding": EPS}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FlooredRule(Rule):
    """A rule that never goes below `floor`·σ₁².

    "precision" stands for √ε. It damps every direction with σ < ε^¼·σ₁, four digits below the largest, which a rule
    that looks only at σ₁ and σ_p, or trusts the training error, needs where H is singular: there σ_p is rounding noise.
    "rounding" stands for ε, below which γ cannot be told from the rounding of HᵀH. 0.0 turns the floor off.

    "columns" is √ε times the square of the shortest column of H over the longest, and at least ε, since a floor
    relative to the longest column silently ignores short ones. "precision" means this for features that you bring
    (`TikhonovRegressor`, `TikhonovClassifier`), whose columns may have any units.

    Parameters
    ----------
    floor : float, "precision", "columns" or "rounding", default="precision"
        γ is at least `floor`·σ₁²; "precision" stands for √ε, "rounding" for ε.
    """

    floor: float | str = "precision"

    def __post_init__(self) -> None:
        if self.floor not in FLOORS and not (
            isinstance(self.floor, Real) and not isinstance(self.floor, bool) and 0 <= float(self.floor) < math.inf
        ):
            raise ValueError(
                "floor must be 'precision', 'columns', 'rounding' or a finite number ≥ 0 (relative to σ₁²); "
                f"got {self.floor!r}."
            )

    __repr__ = short_repr

    def least_gamma(self, spectrum: Spectrum) -> float:
        """The floor times σ₁²."""
        relative = FLOORS[self.floor] if isinstance(self.floor, str) else float(self.floor)
        if self.floor == "columns":
            relative = max(FLOORS["rounding"], relative * _ratio_of_columns(spectrum))
        return relative * spectrum.largest**2

    def for_own_features(self) -> Self:
        """The same rule with a floor that does not ignore short columns."""
        return replace(self, floor="columns") if self.floor == "precision" else self

    def at_least_floor(self, gamma: float, spectrum: Spectrum) -> Choice:
        """Choose γ, or the floor if it is larger."""
        least = self.least_gamma(spectrum)
        return Choice(self.name, max(gamma, least), floored=gamma < least)


def _ratio_of_columns(spectrum: Spectrum) -> float:
    """The squared length of the shortest column of H, of those that are not zero, over that of the longest."""
    if not spectrum.rank:
        return 1.0
    xp = array_namespace(spectrum.sigma)
    squares = spectrum.right.squared_columns(spectrum.sigma)
    longest = float(xp.max(squares))
    smallest = (spectrum.right.n_features * EPS) ** 2 * longest
    return float(xp.min(xp.where(squares > smallest, squares, longest))) / longest
