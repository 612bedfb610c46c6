"""Rules that need no search: OCReP, the plain pseudoinverse, and a γ given by the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, Self

import numpy as np

from ocrep._linalg.spectrum import Spectrum
from ocrep.rules.base import FlooredRule, NotApplicable, Rule
from ocrep.rules.choice import Choice, one_or_each


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

    def _choose(self, spectrum: Spectrum, *_: object) -> Choice:
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

    def _choose(self, spectrum: Spectrum, *_: object) -> Choice:
        return Choice(self.name, 0.0)


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
    targets = "none"
    searches = False

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

    def _choose(self, spectrum: Spectrum, *_: object) -> Choice:
        gamma, n_targets = np.asarray(self.value), spectrum.UtT.shape[1]
        if gamma.shape not in ((), (n_targets,)):
            raise NotApplicable(
                f"gamma has {gamma.size} entries, and there are {n_targets} targets: give one γ for each target, or a "
                "single number."
            )
        return one_or_each(self.name, np.atleast_1d(gamma), per_target=gamma.ndim == 1)


def _as_numbers(values: Any) -> tuple[float, ...]:
    """One γ for each target as a tuple, which can be compared and hashed."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"gamma={values!r:.80} must be one number ≥ 0 for each target, in one dimension.")
    return tuple(array.tolist())
