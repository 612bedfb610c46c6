"""Rules of the ridge-regression literature: closed formulas in the canonical coordinates α̂ = UᵀT/σ, in one table.

They are written for one target, with s² the noise variance, λ = σ², and p the rank. The originals assume columns
of unit length; where that matters the formula here agrees with them for such columns and scales with H.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from ocrep._errors import pick
from ocrep._linalg.arrays import EPS, to_host
from ocrep._linalg.spectrum import Spectrum, of_targets
from ocrep.rules.base import Choice, FlooredRule, NotApplicable
from ocrep.rules.criteria import noise_variances
from ocrep.rules.search import root, searched_range

MANY_TARGETS = "'ocrep', 'gcv', 'loo', 'kfold', 'ocrep_cv', 'evidence' or 'lcurve'"
# Fits without noise leave a few ε of each target.
_ROUNDING = 100.0


class _Problem:
    """A problem with one target, in the symbols of the formulas; a search for γ stays within `range`."""

    def __init__(self, spectrum: Spectrum, s2: float, range: tuple[float, float]) -> None:
        self.spectrum = spectrum
        self.s2 = s2
        self.range = range
        self.n = spectrum.n
        self.p = spectrum.rank
        self.lambda_max = spectrum.largest**2
        self.sigma = to_host(spectrum.sigma)
        self.alpha2 = (to_host(spectrum.UtT)[:, 0] / self.sigma) ** 2
        self.size: float = _total(self.alpha2)  # ‖β̂‖²

    @property
    def ratios(self) -> np.ndarray:
        """s²/α̂_j²."""
        return self.s2 / _positive(self.alpha2)

    @property
    def noise_free(self) -> bool:
        """Whether the residual is rounding of the targets: 1/s² would then be a number without meaning."""
        explained = _total(to_host(self.spectrum.UtT) ** 2)
        return self.s2 * self.n <= (_ROUNDING * max(self.n, self.p) ** 0.5 * EPS) ** 2 * explained


@dataclass(frozen=True, slots=True)
class Formula:
    """One row of the table."""

    text: str
    source: str
    gamma: Callable[[_Problem], float]  # infinite, or an error of division by zero, where it is not defined
    degree: int = 2  # γ goes with c to this power when H is scaled by c
    note: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class RidgeFormula(FlooredRule):
    """A formula of the ridge-regression literature, for one target.

    Parameters
    ----------
    name : str
        Which formula, such as "hoerl_kennard" or "kibria"; `ocrep.rules.names()` lists them among others.
    ddof : int, default=1
        The noise variance is estimated as s² = rss/(n − p − `ddof`); 1 is the OCReP paper's choice.

    Examples
    --------
    >>> from ocrep import TikhonovRegressor, rules
    >>> from ocrep.datasets import load
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = TikhonovRegressor(rules.RidgeFormula("hoerl_kennard")).fit(X, y)
    >>> f"{model.gamma_:.3g}"
    '2.66e+03'
    """

    name: str
    ddof: int = field(default=1, kw_only=True)
    searches = False

    def __post_init__(self) -> None:
        FlooredRule.__post_init__(self)
        pick("ridge formula", self.name, FORMULAS)

    @property
    def degree(self) -> int:  # type: ignore[override]
        """As the table says: formulas for columns of unit length may have another degree than 2."""
        return FORMULAS[self.name].degree

    @property
    def description(self) -> str:
        """The formula, its source and a note from the table."""
        formula = FORMULAS[self.name]
        return f"γ = {formula.text}.\n\n" + f"{formula.note} Reference: {formula.source}.".lstrip()

    @classmethod
    def named(cls) -> tuple[Self, ...]:
        """One rule for each formula."""
        return tuple(cls(name) for name in FORMULAS)

    def _choose(self, spectrum: Spectrum, *_: object, per_target: bool) -> Choice:
        if not per_target:
            return self.at_least_floor(self._gamma(spectrum), spectrum)
        gammas = []
        for q in range(spectrum.n_targets):
            try:
                gammas.append(self._gamma(of_targets(spectrum, slice(q, q + 1))))
            except NotApplicable as reason:
                raise NotApplicable(f"Target {q}: {reason}") from reason
        return self.at_least_floor(gammas, spectrum)

    def _gamma(self, spectrum: Spectrum) -> float:
        """The γ of the formula."""
        if spectrum.n_targets != 1:
            raise NotApplicable(
                f"The rule {self.name!r} is defined for one target, and there are {spectrum.n_targets}: "
                f"use {MANY_TARGETS}, or fit one model per target."
            )
        if not spectrum.rank:
            return 0.0
        s2 = float(noise_variances(spectrum, ddof=self.ddof)[0])
        try:
            gamma = FORMULAS[self.name].gamma(_Problem(spectrum, s2, searched_range(self, spectrum)))
        except (ZeroDivisionError, OverflowError):
            gamma = math.inf
        if not math.isfinite(gamma):
            raise NotApplicable(
                f"The formula of {self.name!r} divides by zero here: a weight or the noise variance is 0 up to "
                f"rounding. Use {MANY_TARGETS}."
            )
        return gamma


def _as_float(reduction: Callable[..., Any]) -> Callable[[np.ndarray], float]:
    """Give Python's number, whose division by zero raises an error."""
    return lambda values: float(reduction(values))


_largest, _total, _mean, _median = (_as_float(reduction) for reduction in (np.max, np.sum, np.mean, np.median))


def _geometric_mean(values: np.ndarray) -> float:
    return math.exp(_mean(np.log(values))) if values.min() > 0.0 else 0.0


def _positive(values: np.ndarray) -> np.ndarray:
    """The values, if all can be divided by."""
    if not values.min() > 0.0:
        raise ZeroDivisionError
    return values


def _iterated(c: _Problem) -> float:
    spread = _total(c.sigma**-2.0) * _total(c.sigma**2) / c.p**2
    highest = c.range[1]
    gamma = min(c.p * c.s2 / c.size, highest)
    for _ in range(1000):
        following = min(c.p * c.s2 / float(c.spectrum.norm(gamma)) ** 2, highest)
        if following - gamma <= 20.0 * spread**-1.3 * gamma:
            return following
        gamma = following
    return gamma


def _matching_length(c: _Problem) -> float:
    goal = c.size - c.s2 * _total(c.sigma**-2.0)
    if goal <= 0.0:
        return 0.0
    gamma, edge = root(lambda gamma, _: goal - to_host(c.spectrum.norm(gamma)) ** 2, *c.range)
    return 0.0 if edge[0] == "low" else float(gamma[0])


def _largest_inflation(c: _Problem) -> float:
    """max_j ((HᵀH)⁻¹)_jj."""
    return _largest(np.sum((to_host(c.spectrum.Vt) / c.sigma[:, None]) ** 2, axis=0))


def _q(c: _Problem) -> np.ndarray:
    return np.sqrt(c.lambda_max * c.s2 / _positive((c.n - c.p) * c.s2 + c.lambda_max * c.alpha2))


_UNIT_LENGTH = "It assumes columns of unit length."
_KIBRIA = "Kibria, Comm. Statist. Simul. 32 (2003)"
_STATISTICS = {"max": _largest, "GM": _geometric_mean, "median": _median}
_QUANTITIES: dict[str, tuple[Callable[[_Problem], np.ndarray], str, str]] = {
    "m": (lambda c: np.sqrt(c.ratios), "m_j = √(s²/α̂_j²)", "Muniz, Kibria, Comm. Statist. Simul. 38 (2009)"),
    "q": (_q, "q_j = √(λ₁s²/((n − p)s² + λ₁α̂_j²))", "Muniz, Kibria, Månsson, Shukur, SORT 36 (2012)"),
}


def _muniz(statistic: str, of: str, number: str) -> Formula:
    """A row of the Muniz family: a statistic of m or q, or of their inverses."""
    values, meaning, source = _QUANTITIES[of[-1]]
    inverse = of.startswith("1/")

    def gamma(c: _Problem) -> float:
        if inverse and c.noise_free:
            raise ZeroDivisionError
        return _STATISTICS[statistic](1.0 / _positive(values(c)) if inverse else values(c))

    text = f"{statistic}({of}), with {meaning}"
    return Formula(text, f"{source}, their {number}", gamma, degree=-1 if inverse else 1, note=_UNIT_LENGTH)


FORMULAS: dict[str, Formula] = {
    "hoerl_kennard": Formula(
        "s²/max α̂² (paper, eq. 31)", "Hoerl, Kennard, Technometrics 12 (1970)", lambda c: c.s2 / _largest(c.alpha2)
    ),
    "hoerl_kennard_baldwin": Formula(
        "p·s²/Σα̂²", "Hoerl, Kennard, Baldwin, Communications in Statistics 4 (1975)", lambda c: c.p * c.s2 / c.size
    ),
    "hoerl_kennard_iterative": Formula(
        "p·s²/‖W(γ)‖², iterated from the Hoerl–Kennard–Baldwin γ until it changes by at most 20·t^−1.3 of itself",
        "Hoerl, Kennard, Communications in Statistics A 5 (1976)",
        _iterated,
        note="t = tr((HᵀH)⁻¹)·tr(HᵀH)/p², which is their tr((XᵀX)⁻¹)/p for columns of unit length. The sequence may "
        "diverge; it stops at the end of the searched range.",
    ),
    "thisted": Formula(
        "max(p − 2, 0)·s²/Σα̂²", "Thisted (1976), Stanford University", lambda c: max(c.p - 2, 0) * c.s2 / c.size
    ),
    "lawless_wang": Formula(
        "p·s²/Σλα̂²",
        "Lawless, Wang, Communications in Statistics A 5 (1976)",
        lambda c: c.p * c.s2 / _total(to_host(c.spectrum.UtT) ** 2),
        degree=0,
        note=f"Σλα̂² = ‖UUᵀT‖² does not change when H is scaled, and neither does γ. {_UNIT_LENGTH}",
    ),
    "dwivedi_srivastava": Formula("s²/Σα̂²", "Dwivedi, Srivastava (1978)", lambda c: c.s2 / c.size),
    "mcdonald_galarneau": Formula(
        "the root of ‖W(γ)‖² = ‖β̂‖² − s²·Σ1/λ, or 0 where the right side is not positive",
        "McDonald, Galarneau, Journal of the American Statistical Association 70 (1975)",
        _matching_length,
        note="The right side is an unbiased estimate of the true ‖β‖².",
    ),
    "kibria": Formula("mean(s²/α̂²), the arithmetic mean (paper, eq. 30)", _KIBRIA, lambda c: _mean(c.ratios)),
    "kibria_gm": Formula("GM(s²/α̂²), the geometric mean", _KIBRIA, lambda c: _geometric_mean(c.ratios)),
    "kibria_median": Formula("median(s²/α̂²)", _KIBRIA, lambda c: _median(c.ratios)),
    "khalaf_shukur": Formula(
        "λ₁s²/((n − p)s² + λ₁·max α̂²)",
        "Khalaf, Shukur, Comm. Statist. Theory 34 (2005)",
        lambda c: c.lambda_max * c.s2 / ((c.n - c.p) * c.s2 + c.lambda_max * _largest(c.alpha2)),
    ),
    "dorugade_kashid": Formula(
        "max(0, p·s²/Σα̂² − 1/(n·max_j ((HᵀH)⁻¹)_jj))",
        "Dorugade, Kashid, Appl. Math. Sci. 4 (2010)",
        lambda c: max(0.0, c.p * c.s2 / c.size - 1.0 / (c.n * _largest_inflation(c))),
        note="For columns of unit length ((HᵀH)⁻¹)_jj are the variance inflation factors of the original.",
    ),
    "dorugade": Formula(
        "(2p/λ₁)·Σ s²/α̂²",
        "Dorugade, J. Assoc. Arab Univ. Basic Appl. Sci. 15 (2014)",
        lambda c: 2.0 * c.p**2 / c.lambda_max * _mean(c.ratios),
        degree=0,
        note=f"γ does not change when H is scaled. {_UNIT_LENGTH}",
    ),
    "muniz_kibria_max_inverse": _muniz("max", "1/m", "K2"),
    "muniz_kibria_max": _muniz("max", "m", "K3"),
    "muniz_kibria_gm_inverse": _muniz("GM", "1/m", "K4"),
    "muniz_kibria_gm": _muniz("GM", "m", "K5"),
    "muniz_kibria_median_inverse": _muniz("median", "1/m", "K6"),
    "muniz_shukur_max_inverse": _muniz("max", "1/q", "K8"),
    "muniz_shukur_max": _muniz("max", "q", "K9"),
    "muniz_shukur_gm_inverse": _muniz("GM", "1/q", "K10"),
    "muniz_shukur_gm": _muniz("GM", "q", "K11"),
    "muniz_shukur_median_inverse": _muniz("median", "1/q", "K12"),
}
