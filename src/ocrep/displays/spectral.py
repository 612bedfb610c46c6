"""Displays of the spectrum: singular values, their gain, and the condition number against γ.

With the SVD H = UΣVᵀ, regularization replaces the pseudo-inverse's 1/σ by the gain D(σ) = σ/(σ² + γ), which rises up
to σ = √γ, where it is 1/(2√γ), and falls beyond. The condition number of the regularized problem is μ(γ) = max D/min
D over the singular values σ₁ ≥ … ≥ σ_p; at γ = 0 it is σ₁/σ_p. As long as γ ≤ σ₁σ_p, the least gain is D(σ₁), and
every quotient D(σ)/D(σ₁) falls as γ grows. Beyond, the least gain is D(σ_p), and every quotient D(σ)/D(σ_p) rises. So
μ is least at γ = σ₁σ_p, which is OCReP's γ.

The interactive page (`ocrep.report`) shows the same curves in another medium, and takes their numbers from here and
from `Spectrum.condition`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ocrep._linalg.factor import rank_tolerance
from ocrep._linalg.spectrum import Spectrum
from ocrep.analysis.evaluator import check_one_gamma, gamma_grid
from ocrep.displays.base import BLACK, BLUE, GREY, VERMILION, Display, network_of
from ocrep.estimators.base import ClosedForm
from ocrep.rules import OCReP

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.pipeline import Pipeline

FINE = 300  # points of a smooth curve


class _SpectralDisplay(Display):
    @classmethod
    def from_estimator(cls, model: ClosedForm | Pipeline, *, ax: Axes | None = None, **line_kwargs: Any) -> Self:
        """Draw a fitted model.

        Parameters
        ----------
        model : estimator or Pipeline
            A fitted estimator of this library, or a Pipeline that ends with one.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **line_kwargs : dict
            Options of matplotlib's `plot`.

        Returns
        -------
        Display
            The picture, drawn.
        """
        network = network_of(model)
        check_is_fitted(network)
        check_one_gamma(network.gamma_)
        if not network.rank_:
            raise ValueError("All features are zero, so H has no singular values to draw: fit on other features.")
        return cls._of(network, network.spectrum_).plot(ax, **line_kwargs)

    @classmethod
    @abstractmethod
    def _of(cls, model: ClosedForm, spectrum: Spectrum) -> Self: ...


@dataclass(eq=False, repr=False)
class SpectrumDisplay(_SpectralDisplay):
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

    Examples
    --------
    >>> from ocrep import SpectrumDisplay, PinvRegressor
    >>> from ocrep.datasets import load
    >>> model = PinvRegressor(50, random_state=0).fit(*load("housing", return_X_y=True))
    >>> display = SpectrumDisplay.from_estimator(model)
    >>> display.figure_.savefig("spectrum.png")
    >>> _ = display.plot(color="black")  # again, on axes of its own
    """

    singular_values: np.ndarray
    _: KW_ONLY
    gamma: float
    floor: float
    tolerance: float

    @classmethod
    def _of(cls, model: ClosedForm, spectrum: Spectrum) -> Self:
        floor, tolerance = levels(spectrum)
        return cls(np.asarray(model.singular_values_), gamma=model.gamma_, floor=floor, tolerance=tolerance)

    def _draw(self, ax: Axes, line_kwargs: dict[str, Any]) -> None:
        style = {"color": BLUE, "marker": ".", "linestyle": "", "label": "σ"} | line_kwargs
        numbers = np.arange(1, len(self.singular_values) + 1)
        (self.line_,) = ax.plot(numbers, self.singular_values, **style)
        ax.set(xlabel="index of the singular value", ylabel="singular value σ of H", yscale="log")
        if self.gamma > 0.0:  # a logarithmic axis has no place for 0
            root = math.sqrt(self.gamma)
            ax.axhline(root, color=VERMILION, label=f"√γ = {root:.2g}")
        ax.axhline(self.floor, color=GREY, linestyle="--", label="precision floor √ε·σ₁")
        ax.axhline(self.tolerance, color=GREY, linestyle=":", label="rank tolerance")


@dataclass(eq=False, repr=False)
class GainDisplay(_SpectralDisplay):
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

    Examples
    --------
    >>> from ocrep import GainDisplay, PinvRegressor
    >>> from ocrep.datasets import load
    >>> model = PinvRegressor(50, random_state=0).fit(*load("housing", return_X_y=True))
    >>> display = GainDisplay.from_estimator(model)
    >>> display.figure_.savefig("gain.png")
    >>> _ = display.plot(color="black")  # again, on axes of its own
    """

    sigma: np.ndarray
    gain: np.ndarray
    _: KW_ONLY
    gamma: float

    @classmethod
    def _of(cls, model: ClosedForm, spectrum: Spectrum) -> Self:
        return cls(np.asarray(spectrum.sigma), gain(np.asarray(spectrum.sigma), model.gamma_), gamma=model.gamma_)

    def _draw(self, ax: Axes, line_kwargs: dict[str, Any]) -> None:
        fine = sigma_grid(self.sigma, FINE)
        ax.plot(fine, 1.0 / fine, color=GREY, linestyle=":", label="γ = 0: 1/σ")
        style = {"color": BLUE, "label": f"γ = {self.gamma:.2g}"} | line_kwargs
        (self.line_,) = ax.plot(fine, gain(fine, self.gamma), **style)
        (self.points_,) = ax.plot(self.sigma, self.gain, color=self.line_.get_color(), marker=".", linestyle="")
        ax.set(xlabel="singular value σ of H", ylabel="gain D(σ) = σ/(σ² + γ)", xscale="log", yscale="log")


@dataclass(eq=False, repr=False)
class ConditionDisplay(_SpectralDisplay):
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

    Examples
    --------
    >>> from ocrep import ConditionDisplay, PinvRegressor
    >>> from ocrep.datasets import load
    >>> model = PinvRegressor(50, random_state=0).fit(*load("housing", return_X_y=True))
    >>> display = ConditionDisplay.from_estimator(model)
    >>> display.figure_.savefig("condition.png")
    >>> _ = display.plot(color="black")  # again, on axes of its own
    """

    gammas: np.ndarray
    condition: np.ndarray
    _: KW_ONLY
    chosen: tuple[float, float]
    best: tuple[float, float]
    plain: float

    @classmethod
    def _of(cls, model: ClosedForm, spectrum: Spectrum) -> Self:
        # Without the precision floor: this is the minimum of μ, and not the γ to use.
        best = OCReP(floor=0.0).choose(spectrum).gamma
        gammas = gamma_grid(spectrum, [best, model.gamma_])
        return cls(
            gammas,
            np.asarray(spectrum.condition(gammas)),
            chosen=(model.gamma_, model.regularized_condition_number_),
            best=(best, float(spectrum.condition(best))),
            plain=model.condition_number_,
        )

    def _draw(self, ax: Axes, line_kwargs: dict[str, Any]) -> None:
        (self.line_,) = ax.plot(self.gammas, self.condition, **({"color": BLUE, "label": "μ(H$^{reg}$)"} | line_kwargs))
        ax.axhline(self.plain, color=GREY, linestyle=":", label="without regularization")
        ax.plot(*self.best, color=VERMILION, marker="D", markersize=9, linestyle="", label="OCReP, least: γ = σ₁σ$_p$")
        if self.chosen[0] > 0.0:
            ax.plot(*self.chosen, color=BLACK, marker="o", linestyle="", label="chosen γ")
        ax.set(xlabel="regularization γ", ylabel="condition number μ(H$^{reg}$)", xscale="log", yscale="log")


def sigma_grid(sigma: np.ndarray, n_points: int) -> np.ndarray:
    """The σ at which the gain is drawn: evenly spaced in the logarithm, a little beyond the singular values."""
    return np.geomspace(sigma[-1] / 1.5, sigma[0] * 1.5, n_points)


def gain(sigma: np.ndarray, gamma: float) -> np.ndarray:
    """D(σ) = σ/(σ² + γ), written so that σ² cannot underflow."""
    return 1.0 / (sigma + gamma / sigma)


def levels(spectrum: Spectrum) -> tuple[float, float]:
    """Return the precision floor √ε·σ₁ and the rank tolerance, in units of σ."""
    largest = spectrum.largest
    # The floor of γ = σ₁σ_p is √ε·σ₁², so the floor of σ_p is that divided by σ₁.
    floor = OCReP().least_gamma(spectrum) / largest if largest else 0.0
    return floor, rank_tolerance(spectrum.right.n_features, largest)
