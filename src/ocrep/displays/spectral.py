"""Displays of the spectrum: singular values, their gain, and the condition number against γ."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ocrep._linalg.factor import rank_tolerance
from ocrep._linalg.spectrum import Spectrum
from ocrep.analysis.evaluator import gamma_grid
from ocrep.displays.base import BLUE, GREEN, GREY, VERMILION, Display
from ocrep.estimators.base import ClosedForm
from ocrep.rules import OCReP

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FINE = 300


@dataclass(eq=False, repr=False)
class SpectrumDisplay(Display):
    """The singular values of H, with the precision floor, the rank tolerance and √γ.

    Directions with σ well above √γ are kept; those with σ well below √γ are damped.

    Parameters
    ----------
    singular_values : ndarray
        σ₁ ≥ σ₂ ≥ …, those below the rank tolerance included.
    gamma : float
        The regularization.
    floor : float
        The precision floor √ε·σ₁; measured inputs do not resolve directions below it.
    tolerance : float
        The rank tolerance: singular values up to it are rounding noise.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The singular values.
    ax_, figure_ : matplotlib Axes and Figure
        Where they are drawn.
    """

    singular_values: np.ndarray
    _: KW_ONLY
    gamma: float
    floor: float
    tolerance: float

    @classmethod
    def from_estimator(cls, model: ClosedForm, *, ax: Axes | None = None, **line_kwargs: Any) -> Self:
        """Draw the spectrum of a fitted model; `line_kwargs` go to matplotlib's `plot`."""
        spectrum = _spectrum(model)
        floor, tolerance = levels(spectrum)
        display = cls(np.asarray(model.singular_values_), gamma=model.gamma_, floor=floor, tolerance=tolerance)
        return display.plot(ax, **line_kwargs)

    def plot(self, ax: Axes | None = None, **line_kwargs: Any) -> Self:
        """Draw on `ax`, or on a new figure."""
        ax = self._begin(ax, "index of the singular value", "singular value σ of H")
        style = {"color": BLUE, "marker": ".", "linestyle": "", "label": "σ"} | line_kwargs
        numbers = np.arange(1, len(self.singular_values) + 1)
        (self.line_,) = ax.plot(numbers, self.singular_values, **style)
        ax.set_yscale("log")
        if self.gamma > 0.0:
            root = math.sqrt(self.gamma)
            ax.axhline(root, color=VERMILION, label=f"√γ = {root:.2g}")
        ax.axhline(self.floor, color=GREY, linestyle="--", label="precision floor √ε·σ₁")
        ax.axhline(self.tolerance, color=GREY, linestyle=":", label="rank tolerance")
        ax.legend()
        return self


@dataclass(eq=False, repr=False)
class GainDisplay(Display):
    """The gain D(σ) = σ/(σ² + γ), which replaces 1/σ, with the singular values of H as points.

    Parameters
    ----------
    sigma : ndarray
        The singular values above the rank tolerance, decreasing.
    gain : ndarray
        D at `sigma`.
    gamma : float
        The regularization.

    Attributes
    ----------
    line_, points_ : matplotlib Line2D
        The curve, and the singular values of H on it.
    ax_, figure_ : matplotlib Axes and Figure
        Where they are drawn.
    """

    sigma: np.ndarray
    gain: np.ndarray
    _: KW_ONLY
    gamma: float

    @classmethod
    def from_estimator(cls, model: ClosedForm, *, ax: Axes | None = None, **line_kwargs: Any) -> Self:
        """Draw the gain of a fitted model; `line_kwargs` go to matplotlib's `plot`."""
        spectrum = _spectrum(model)
        display = cls(np.asarray(spectrum.sigma), np.asarray(spectrum.gain(model.gamma_)), gamma=model.gamma_)
        return display.plot(ax, **line_kwargs)

    def plot(self, ax: Axes | None = None, **line_kwargs: Any) -> Self:
        """Draw on `ax`, or on a new figure."""
        ax = self._begin(ax, "singular value σ of H", "gain D(σ) = σ/(σ² + γ)")
        fine = np.geomspace(self.sigma[-1] / 1.5, self.sigma[0] * 1.5, FINE)
        ax.plot(fine, 1.0 / fine, color=GREY, linestyle=":", label="γ = 0: 1/σ")
        style = {"color": BLUE, "label": f"γ = {self.gamma:.2g}"} | line_kwargs
        (self.line_,) = ax.plot(fine, 1.0 / (fine + self.gamma / fine), **style)
        (self.points_,) = ax.plot(self.sigma, self.gain, color=self.line_.get_color(), marker=".", linestyle="")
        ax.set(xscale="log", yscale="log")
        ax.legend()
        return self


@dataclass(eq=False, repr=False)
class ConditionDisplay(Display):
    """The condition number μ(H^reg) against γ, with the chosen γ and the minimum at OCReP's γ.

    Parameters
    ----------
    gammas, condition : ndarray
        The curve.
    chosen : pair of floats
        The model's γ and its μ.
    best : pair of floats
        γ = σ₁σ_p, where μ is least, and its μ.
    plain : float
        μ without regularization.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The curve.
    ax_, figure_ : matplotlib Axes and Figure
        Where it is drawn.
    """

    gammas: np.ndarray
    condition: np.ndarray
    _: KW_ONLY
    chosen: tuple[float, float]
    best: tuple[float, float]
    plain: float

    @classmethod
    def from_estimator(cls, model: ClosedForm, *, ax: Axes | None = None, **line_kwargs: Any) -> Self:
        """Draw the conditioning of a fitted model; `line_kwargs` go to matplotlib's `plot`."""
        spectrum = _spectrum(model)
        best = OCReP(floor=0.0).choose(spectrum).gamma
        gammas = gamma_grid(spectrum, [best, model.gamma_])
        display = cls(
            gammas,
            np.asarray(spectrum.condition(gammas)),
            chosen=(model.gamma_, model.regularized_condition_number_),
            best=(best, float(spectrum.condition(best))),
            plain=model.condition_number_,
        )
        return display.plot(ax, **line_kwargs)

    def plot(self, ax: Axes | None = None, **line_kwargs: Any) -> Self:
        """Draw on `ax`, or on a new figure."""
        ax = self._begin(ax, "regularization γ", "condition number μ(H$^{reg}$)")
        (self.line_,) = ax.plot(self.gammas, self.condition, **({"color": BLUE, "label": "μ(H$^{reg}$)"} | line_kwargs))
        ax.axhline(self.plain, color=GREY, linestyle=":", label="without regularization")
        ax.plot(*self.best, color=GREEN, marker="D", markersize=9, linestyle="", label="least: γ = σ₁σ$_p$")
        if self.chosen[0] > 0.0:
            ax.plot(*self.chosen, color=VERMILION, marker="o", linestyle="", label="chosen γ")
        ax.set(xscale="log", yscale="log")
        ax.legend()
        return self


def levels(spectrum: Spectrum) -> tuple[float, float]:
    """Return the precision floor √ε·σ₁ and the rank tolerance, in units of σ."""
    largest = spectrum.largest
    floor = OCReP().least_gamma(spectrum) / largest if largest else 0.0
    return floor, rank_tolerance(spectrum.Vt.shape[1], largest)


def _spectrum(model: ClosedForm) -> Spectrum:
    check_is_fitted(model)
    spectrum: Spectrum = model.spectrum_
    if not spectrum.rank:
        raise ValueError("All features are zero, so H has no singular values to draw: fit on other features.")
    return spectrum
