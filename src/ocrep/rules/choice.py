"""`Choice`: the γ that a rule chose and how, for all targets or for each; and the `Curve` that it searched."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ocrep._linalg.arrays import Array, array_namespace, to_host

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Edge: TypeAlias = Literal["low", "high"]
# A value for all targets, or an array with one for each: no static type says which without two classes of each.
OneOrEach: TypeAlias = Any

_SHORT = reprlib.Repr()
_SHORT.maxtuple, _SHORT.maxstring, _SHORT.maxother = 4, 200, 200


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
    gamma: OneOrEach
    floored: OneOrEach = False
    curve: Curve | None = None
    edge: OneOrEach = None
    held_out_error: OneOrEach = None
    advice: str | None = field(default=None, repr=False)

    def with_some(self, targets: np.ndarray, other: Choice) -> Choice:
        """The choice for each target, with that for some of them taken from another."""
        chosen = {name: getattr(self, name).copy() for name in ("gamma", "floored", "edge", "held_out_error")}
        for name, values in chosen.items():
            values[targets] = getattr(other, name)
        curve = self.curve
        if curve is not None and other.curve is not None:
            criterion = curve.criterion.copy()
            criterion[:, targets] = other.curve.criterion
            curve = Curve(curve.gammas, criterion)
        return Choice(self.rule, **chosen, curve=curve)

    __repr__ = short_repr


def one_or_each(
    rule: str,
    gamma: np.ndarray,
    floored: np.ndarray | None = None,
    curve: Curve | None = None,
    edge: np.ndarray | None = None,
    *,
    per_target: bool,
) -> Choice:
    """The choice made of arrays with an entry per target, or with a single one for all targets."""
    floored = np.zeros(len(gamma), dtype=bool) if floored is None else floored
    edge = np.full(len(gamma), "", dtype="<U4") if edge is None else edge
    if per_target:
        return Choice(rule, gamma, floored, curve, edge)
    return Choice(rule, float(gamma[0]), bool(floored[0]), curve, str(edge[0]) or None)


def repeated(choice: Choice, times: int) -> Choice:
    """The same choice for several targets; one that is for each target already stays as it is."""
    if isinstance(choice.gamma, np.ndarray):
        return choice
    gamma, floored, edge = (np.repeat(value, times) for value in (choice.gamma, choice.floored, choice.edge or ""))
    return one_or_each(choice.rule, gamma, floored, edge=edge.astype("<U4"), per_target=True)


def joined(choices: list[Choice]) -> Choice:
    """The choices for targets, one after the other, as one."""
    gamma, floored = (np.asarray([getattr(choice, name) for choice in choices]) for name in ("gamma", "floored"))
    edge = np.asarray([choice.edge or "" for choice in choices], dtype="<U4")
    curves = [choice.curve for choice in choices if choice.curve is not None]
    curve = None
    if len(curves) == len(choices):
        stack = array_namespace(curves[0].criterion).stack
        curve = Curve(curves[0].gammas, stack([curve.criterion for curve in curves], axis=1))
    return one_or_each(choices[0].rule, gamma, floored, curve, edge, per_target=True)
