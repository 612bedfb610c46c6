"""What a rule for γ is, what it reads and what it returns; and the rules that need no search.

A rule is a frozen dataclass: its fields are its options, and two rules with the same options are equal. `Rule.choose`
is what callers use. It checks that everything the rule reads is there, and calls `_choose`, the one method in which
rules differ.

Inside, γ is always an array with an entry for each column: one column if all targets share a γ, and one for each
target if each has its own. Criteria, searches and choices are written for columns, and what differs between the two
is only what belongs to a column: the sum or the mean over all targets, or one target. `Rule.choose` gives users a
number in the first case.
"""

from __future__ import annotations

import inspect
import math
import re
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np

from ocrep._documentation import Documented
from ocrep._linalg.arrays import EPS, SMALLEST, Array, array_namespace, to_host
from ocrep._linalg.folds import FoldPlan
from ocrep._linalg.spectrum import Spectrum

if TYPE_CHECKING:  # what a rule is handed
    from _typeshed import DataclassInstance

    from ocrep._linalg.fold_factors import FoldFactors
    from ocrep._linalg.rows import EncodedRows

# A number for users, if all targets share one γ, or else an array with an entry for each column: no static type says
# which without two classes of each.
Columns: TypeAlias = Any

_SHORT = reprlib.Repr()
_SHORT.maxtuple = 4
_SHORT.maxstring = 200
_SHORT.maxother = 200


def short_repr(value: DataclassInstance) -> str:
    """Show the class with the fields that differ from their defaults, long sequences shortened."""
    given = ((each.name, getattr(value, each.name), each.default) for each in fields(value) if each.repr)
    shown = ", ".join(f"{name}={_shown(actual)}" for name, actual, default in given if _differs(actual, default))
    return f"{type(value).__name__}({shown})"


def _differs(actual: Any, default: Any) -> bool:
    return bool(actual.any()) if isinstance(actual, np.ndarray) and not default else bool(np.any(actual != default))


def _shown(value: Any) -> str:
    """Many numbers by how many they are and their range, or how many of them say something."""
    if not isinstance(value, np.ndarray):
        return _SHORT.repr(value)
    if value.dtype.kind == "f":
        return f"<{len(value)} γ from {value.min():.3g} to {value.max():.3g}>"
    return f"<{np.count_nonzero(value)} of {len(value)}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Curve:
    """The criterion of a rule on the grid of γ that was searched.

    Parameters
    ----------
    gammas : array of shape (n_gammas,)
        The grid, increasing.
    criterion : array of shape (n_gammas,), or (n_gammas, n_targets) with one γ per target
        The quantity to minimise, at each γ.

    See Also
    --------
    Choice : What holds it.

    Examples
    --------
    >>> import numpy as np
    >>> from ocrep.rules import Curve
    >>> curve = Curve(np.array([0.1, 1.0, 10.0]), np.array([3.0, 2.0, 5.0]))
    >>> curve.best, curve.best_gamma
    (1, 1.0)
    """

    gammas: Array
    criterion: Array

    @property
    def best(self) -> int | np.ndarray:
        """Index of the smallest criterion, for each target if γ is; NaN counts as infinite."""
        xp = array_namespace(self.criterion)
        index = xp.argmin(xp.where(xp.isnan(self.criterion), xp.inf, self.criterion), axis=0)
        return int(index) if self.criterion.ndim == 1 else to_host(index)

    @property
    def best_gamma(self) -> float | np.ndarray:
        """The γ of the grid with the smallest criterion, for each target if γ is."""
        return float(self.gammas[self.best]) if isinstance(self.best, int) else to_host(self.gammas)[self.best]

    def __repr__(self) -> str:
        first, last = (float(self.gammas[i]) for i in (0, -1))
        range = f"{len(self.gammas)} γ from {first:.3g} to {last:.3g}"
        if not isinstance(self.best, int):
            return f"Curve({range}, for {self.criterion.shape[1]} targets)"
        least, at = float(self.criterion[self.best]), float(self.gammas[self.best])
        return f"Curve({range}, minimum {least:.4g} at γ={at:.3g})"


@dataclass(frozen=True, slots=True, repr=False)
class Choice:
    """The γ that a rule chose, and how; with one γ per target, arrays with an entry for each.

    Parameters
    ----------
    rule : str
        The rule's name.
    gamma : float or ndarray of shape (n_targets,)
        The chosen γ.
    floored : bool or ndarray of shape (n_targets,)
        Whether the precision floor set γ, not the rule's own formula or search.
    curve : Curve or None
        The searched criterion, for rules that search.
    edge : {"low", "high"}, None, or ndarray of shape (n_targets,)
        The end of the searched range at which the optimum lies, if it lies at one; "" in an array if it does not.
    held_out_error : float, None, or ndarray of shape (n_targets,)
        Mean squared error at γ over all rows and targets, each row held out once, for rules that cross-validate. Where
        Gram matrices do not prove it to 10⁻¹⁰ of the mean square of the targets, `fit` computes it from the rows.
    advice : str or None
        What γ at an end of its range means, or an error on held-out rows no better than the mean's, and what to try;
        `fit` warns with it (`ocrep.exceptions.RuleEdgeWarning`).

    See Also
    --------
    Curve : The criterion that was searched.

    Examples
    --------
    >>> from ocrep import PinvRegressor
    >>> from ocrep.datasets import load
    >>> model = PinvRegressor(20, random_state=0).fit(*load("machine_cpu", return_X_y=True))
    >>> model.choice_.rule, model.choice_.gamma == model.gamma_, model.choice_.edge
    ('ocrep_cv', True, None)
    """

    rule: str
    gamma: Columns
    floored: Columns = False
    curve: Curve | None = None
    edge: Columns = None
    held_out_error: Columns = None
    advice: str | None = field(default=None, repr=False)

    __repr__ = short_repr


def choice_of(rule: str, gamma: Any, *, floored: Any = False, edge: Any = "", curve: Curve | None = None) -> Choice:
    """The choice for each column, as rules make it: arrays with an entry for each γ."""
    gamma = np.atleast_1d(np.asarray(gamma, dtype=np.float64))
    floored = np.array(np.broadcast_to(floored, gamma.shape), dtype=bool)
    return Choice(rule, gamma, floored, curve, np.array(np.broadcast_to(edge, gamma.shape), dtype="<U4"))


# ------------------------------------------------------------------------------
# Rules.


Reads: TypeAlias = Literal["spectrum", "folds", "rows"]
Targets: TypeAlias = Literal["each", "given", "none", "together"]


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
    reads: Reads = "spectrum"
    """What the rule reads: the spectrum alone, one factor per fold, or the rows themselves."""
    folds: FoldPlan | None = None
    """How the rule divides the rows into folds; None without cross-validation."""
    degree: int | None = 2
    """The power of c by which γ changes when H is scaled by c; None if γ does not depend on H."""
    targets: Targets = "each"
    """Whether the rule can choose a γ for each target ("each"), gives all of them the same because it does not read
    them ("none"), judges them only "together", or was "given" one for each."""
    grid: str | Sequence[float] | None = None
    """The γ to try, or a name in `GRIDS`, for rules that search a given grid; None otherwise."""
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
        """Give the same rule for another division of the rows into folds.

        Parameters
        ----------
        plan : FoldPlan
            The division, such as `folds_.plan` of a fitted model.

        Returns
        -------
        Rule
            A new rule; a rule without folds is returned as it is.

        Examples
        --------
        >>> from ocrep import rules
        >>> rules.KFold().with_folds(rules.KFold(n_folds=5, split="groups").folds)
        KFold(n_folds=5, split='groups')
        """
        if self.folds is None:
            return self
        options: Any = {name: getattr(plan, name) for name in ("n_folds", "seed", "split", "block_length")}
        return replace(self, **options)  # type: ignore[type-var]

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
        if self.reads == "rows" and rows is None:
            raise NotApplicable(
                f"The rule {self.name!r} reads the rows, which are available only during fit: "
                f"call fit with gamma={self!r}, or use a rule that needs no rows, such as 'gcv' or rules.KFold()."
            )
        if self.folds is not None:
            if folds is None:
                raise NotApplicable(
                    f"The rule {self.name!r} needs one factor per fold, and none were stored: "
                    "fit with store_folds=True, or use a rule that needs no folds, such as 'gcv'."
                )
            # Of folds that are given, there are as many as the rows have.
            given = self.folds.split == "given"
            if self.folds != (replace(folds.plan, n_folds=self.folds.n_folds) if given else folds.plan):
                raise NotApplicable(
                    f"The rule {self.name!r} needs {self.folds}, but {folds.plan} was stored: call fit with "
                    f"gamma={self!r}."
                )
        if spectrum.rank:  # γ goes with σ₁², and the criteria with T²
            xp = array_namespace(spectrum.UtT)
            targets = float(xp.max(xp.abs(spectrum.UtT)))
            sizes = {"features": spectrum.largest, "targets": targets, "weights": targets / spectrum.smallest}
            for name, size in sizes.items():
                if size and not SMALLEST < size < 1.0 / SMALLEST:
                    raise NotApplicable(
                        f"The {name} have size {size:.0e}, which float64 cannot square: rescale the data."
                    )
        if not (per_target or self.targets == "given"):
            choice = self._choose(spectrum, folds, rows, per_target=False)
            curve = choice.curve
            error = choice.held_out_error
            return replace(
                choice,
                gamma=float(choice.gamma[0]),
                floored=bool(choice.floored[0]),
                edge=str(choice.edge[0]) or None,
                curve=None if curve is None else Curve(curve.gammas, curve.criterion[:, 0]),
                held_out_error=None if error is None else float(error[0]),
            )
        self.check_per_target()
        choice = self._choose(spectrum, folds, rows, per_target=True)
        if self.targets != "none":
            return choice
        return choice_of(choice.rule, np.repeat(choice.gamma, spectrum.n_targets), floored=choice.floored)

    def check_per_target(self) -> None:
        """Raise `NotApplicable` if the rule cannot choose a γ for each target."""
        if self.targets == "together":
            raise NotApplicable(
                f"gamma={self!r} judges all targets together and cannot choose a γ for each: use "
                "gamma_per_target=False, or a rule such as 'kfold' or 'gcv'."
            )

    @abstractmethod
    def _choose(self, spectrum: Spectrum, folds: Any, rows: Any, /, *, per_target: bool) -> Choice:
        """Choose γ for one column, or with `per_target` for one of each target; see `choice_of`.

        `folds` and `rows` are not None if the rule needs them. A rule that does not read the targets chooses one γ.
        """


def for_stored_folds(rule: Rule, folds: FoldFactors | None) -> Rule:
    """The rule for the folds that a fit has stored.

    A rule with the default division, as one given by its name has, reads whatever folds there are. A rule with a
    division of its own reads them if `fit` only replaced what decides the folds by the groups that it was given.
    """
    if folds is None or rule.folds is None:
        return rule
    adapts = rule.folds == FoldPlan() or replace(rule.folds, split="groups") == folds.plan
    return rule.with_folds(folds.plan) if adapts and rule.folds.block_length is None else rule


def check_usable(folds: FoldFactors) -> None:
    """Raise `NotApplicable` unless at least two folds hold rows."""
    if len(folds.filled) < 2:
        raise NotApplicable(
            f"Cross-validation needs rows in at least two folds, and {folds.n_read} sample(s) are too few or "
            f"too alike for {folds.plan.n_folds} folds: give more rows, or use gamma='gcv' and a number as n_hidden."
        )


@dataclass(frozen=True)
class PerTarget(Rule):
    """A rule that chooses γ for each target, as if it were the only one: what `gamma_per_target=True` stands for.

    Parameters
    ----------
    rule : Rule
        A rule that can: its `targets` are not "together".
    """

    rule: Rule

    def __post_init__(self) -> None:
        self.rule.check_per_target()
        for name in ("name", "reads", "folds", "degree", "targets", "grid", "searches"):
            object.__setattr__(self, name, getattr(self.rule, name))

    @classmethod
    def named(cls) -> tuple[Self, ...]:
        """Return no rule: `gamma_per_target=True` takes the place of a name."""
        return ()

    def for_own_features(self) -> Self:
        """The same with the rule for features that the user brings."""
        return replace(self, rule=self.rule.for_own_features())

    def with_folds(self, plan: FoldPlan) -> Self:
        """The same with the rule for other folds."""
        return replace(self, rule=self.rule.with_folds(plan))

    def choose(self, spectrum: Spectrum, **more: Any) -> Choice:
        """Choose a γ for each target."""
        return self.rule.choose(spectrum, **{**more, "per_target": True})

    def _choose(self, spectrum: Spectrum, folds: Any, rows: Any, /, *, per_target: bool) -> Choice:
        return self.rule._choose(spectrum, folds, rows, per_target=True)


FLOORS = {"precision": math.sqrt(EPS), "columns": math.sqrt(EPS), "rounding": EPS}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FlooredRule(Rule):
    """A rule that never goes below `floor`·σ₁².

    "precision" stands for √ε. It damps every direction with σ < ε^¼·σ₁, four digits below the largest, which a rule
    that looks only at σ₁ and σ_p, or trusts the training error, needs where H is singular: there σ_p is rounding noise.
    "rounding" stands for ε, below which γ is less than the rounding of HᵀH. 0.0 turns the floor off.

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

    def at_least_floor(self, gamma: Any, spectrum: Spectrum) -> Choice:
        """Choose γ, or the floor if it is larger."""
        least = self.least_gamma(spectrum)
        return choice_of(self.name, np.maximum(gamma, least), floored=np.less(gamma, least))


def _ratio_of_columns(spectrum: Spectrum) -> float:
    """The squared length of the shortest column of H, of those that are not zero, over that of the longest."""
    if not spectrum.rank:
        return 1.0
    xp = array_namespace(spectrum.sigma)
    squares = spectrum.right.squared_columns(spectrum.sigma)
    longest = float(xp.max(squares))
    smallest = (spectrum.right.n_features * EPS) ** 2 * longest
    return float(xp.min(xp.where(squares > smallest, squares, longest))) / longest


# ------------------------------------------------------------------------------
# Rules that need no search.


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OCReP(FlooredRule):
    """OCReP: γ = σ₁·σ_p, which minimises the condition number of H^reg (paper, eq. 29).

    The rule assumes nothing about the targets and does not read them. Where H is numerically singular, the smallest
    singular values are rounding noise; the default floor then gives γ = σ₁·max(σ_p, √ε·σ₁).
    `OCReP(rank="full", floor=0.0)` is the formula to the letter.
    Reference: Cancelliere, Gai, Gallinari, Rubini, Neural Networks 2015 (arXiv:1508.06095).

    Parameters
    ----------
    rank : {"numerical", "full"}, default="numerical"
        p: the numerical rank of H, or min(N, M) as in the paper. They differ where H is numerically singular.

    Examples
    --------
    >>> from ocrep import TikhonovRegressor, rules
    >>> from ocrep.datasets import load
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = TikhonovRegressor(rules.OCReP()).fit(X, y)
    >>> f"{model.gamma_:.3g}"
    '1.22e+07'
    """

    rank: Literal["numerical", "full"] = "numerical"
    name = "ocrep"
    targets = "none"
    searches = False

    def __post_init__(self) -> None:
        FlooredRule.__post_init__(self)
        if self.rank not in ("numerical", "full"):
            raise ValueError(f"rank={self.rank!r} must be 'numerical' or 'full'.")

    def _choose(self, spectrum: Spectrum, *_: object, per_target: bool) -> Choice:
        noise = self.rank == "full" and spectrum.discarded.shape[0] > 0
        last = float(spectrum.discarded[-1]) if noise else spectrum.smallest
        return self.at_least_floor(spectrum.largest * last, spectrum)


@dataclass(frozen=True, slots=True)
class Unregularized(Rule):
    """No regularization, γ = 0: the plain pseudoinverse W = H⁺T of numerical rank p (paper, eq. 10).

    Examples
    --------
    >>> from ocrep import TikhonovRegressor, rules
    >>> from ocrep.datasets import load
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = TikhonovRegressor(rules.Unregularized()).fit(X, y)
    >>> f"{model.gamma_:.3g}"
    '0'
    """

    name = "none"
    targets = "none"
    searches = False

    def _choose(self, spectrum: Spectrum, *_: object, per_target: bool) -> Choice:
        return choice_of(self.name, 0.0)


@dataclass(frozen=True, slots=True)
class Fixed(Rule):
    """The γ given by the user; no floor applies.

    Parameters
    ----------
    value : float or sequence of float
        γ, a finite number ≥ 0, or one for each target.

    Examples
    --------
    >>> from ocrep import TikhonovRegressor, rules
    >>> from ocrep.datasets import load
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = TikhonovRegressor(rules.Fixed(0.5)).fit(X, y)
    >>> f"{model.gamma_:.3g}"
    '0.5'
    """

    value: float | Sequence[float] | np.ndarray
    name = "fixed"
    degree = None
    searches = False

    @property
    def targets(self) -> Targets:  # type: ignore[override]
        """Whether one γ was given for all targets, or one for each."""
        return "none" if isinstance(self.value, Real) else "given"

    def __post_init__(self) -> None:
        if not isinstance(self.value, Real):
            object.__setattr__(self, "value", _as_numbers(self.value))
        for value in np.atleast_1d(self.value):
            if not 0.0 <= value < np.inf:
                raise ValueError(
                    f"gamma={float(value)} cannot regularize: give a finite number ≥ 0, or the name of a rule such as "
                    "'ocrep' (ocrep.rules.names() lists them)."
                )

    @classmethod
    def named(cls) -> tuple[Self, ...]:
        """Return no rule: a number takes the place of a name."""
        return ()

    def _choose(self, spectrum: Spectrum, *_: object, per_target: bool) -> Choice:
        gamma = np.asarray(self.value, dtype=np.float64)
        if gamma.shape not in ((), (spectrum.n_targets,)):
            raise NotApplicable(
                f"gamma has {gamma.size} entries, and there are {spectrum.n_targets} targets: give one γ for each "
                "target, or a single number."
            )
        return choice_of(self.name, gamma)


def _as_numbers(values: Any) -> tuple[float, ...]:
    """One γ for each target as a tuple, which can be compared and hashed."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"gamma={values!r:.80} must be one number ≥ 0 for each target, in one dimension.")
    return tuple(array.tolist())
