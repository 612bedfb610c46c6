"""Displays of errors: against γ with the rules' choices, and against the number of hidden units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import is_classifier

from ocrep.analysis.compare import hidden_size_path
from ocrep.analysis.gamma_path import GammaPath, Landing, gamma_grid
from ocrep.displays.base import BLACK, BLUE, GREEN, GREY, VERMILION, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "oDs^vP*X<>phd"
SHOWN_RULES = ("ocrep", "ocrep_cv", "kfold", "gcv")
"""The rules that `GammaPathDisplay` marks unless told."""
MOST_SIZES = 60
BEYOND = 4.0
"""Errors up to this many times the least one are worth the room."""


class GammaPathDisplay(Display):
    """Training, cross-validation and test error against γ, with the γ of some rules marked.

    Parameters
    ----------
    gammas : ndarray
        The grid of γ.
    errors : dict of str to ndarray
        Curves by name: "training", "cross-validation", "test".
    landings : sequence of Landing
        The γ of each rule; a rule without one is left out of the picture.
    landing_errors : sequence of float
        The cross-validation error at each of them.
    error_name : str
        What the errors are.

    Attributes
    ----------
    lines_ : dict of str to matplotlib Line2D
        The curves.
    ax_, figure_ : matplotlib Axes and Figure
        Where they are drawn.
    """

    def __init__(
        self,
        gammas: np.ndarray,
        errors: dict[str, np.ndarray],
        *,
        landings: Sequence[Landing] = (),
        landing_errors: Sequence[float] = (),
        error_name: str = "error",
    ) -> None:
        self.gammas = gammas
        self.errors = errors
        self.landings = landings
        self.landing_errors = landing_errors
        self.error_name = error_name

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        rules: Iterable[Any] | None = None,
        X_test: Any = None,
        y_test: Any = None,
        ax: Axes | None = None,
        **line_kwargs: Any,
    ) -> Self:
        """Draw the errors of a fitted model; X, y are the rows it was trained on, without sample weights.

        Nothing is trained again: the errors come from the model's factor, and from one factor per fold. `rules` may
        hold names, rule objects and numbers; `line_kwargs` go to matplotlib's `plot`.
        """
        path = GammaPath.of(model, X, y, X_test, y_test)
        landings = [path.land(rule) for rule in (SHOWN_RULES if rules is None else rules)]
        landings = [landing for landing in landings if landing.gamma is not None]
        chosen = np.array([landing.gamma for landing in landings], dtype=float)
        gammas = gamma_grid(path.spectrum, chosen)
        errors = {"training": path.training_errors(gammas), "cross-validation": path.cv_errors(gammas)}
        tested = path.test_errors(gammas)
        display = cls(
            gammas,
            errors if tested is None else errors | {"test": tested},
            landings=landings,
            landing_errors=[float(e) for e in path.cv_errors(chosen)] if landings else [],
            error_name="share misclassified" if path.labels else "RMSE",
        )
        return display.plot(ax, **line_kwargs)

    def plot(self, ax: Axes | None = None, **line_kwargs: Any) -> Self:
        """Draw on `ax`, or on a new figure; γ = 0 is shown at the left end."""
        ax = self._begin(ax, "regularization γ", self.error_name)
        looks = {"training": (GREY, ":"), "cross-validation": (BLUE, "-"), "test": (GREEN, "--")}
        self.lines_ = {}
        for name, values in self.errors.items():
            color, dashes = looks.get(name, (BLACK, "-"))
            style = {"color": color, "linestyle": dashes, "label": name} | line_kwargs
            (self.lines_[name],) = ax.plot(self.gammas, values, **style)
        top = self._top()
        for k, (landing, error) in enumerate(zip(self.landings, self.landing_errors, strict=True)):
            where = max(landing.gamma or 0.0, float(self.gammas[0])), min(error, top)
            marker: dict[str, Any] = {"marker": MARKERS[k % len(MARKERS)], "markersize": 8, "markerfacecolor": "none"}
            ax.plot(*where, color=VERMILION, linestyle="", clip_on=False, zorder=4, label=landing.rule, **marker)
        ax.set_xscale("log")
        ax.set_ylim(max(ax.get_ylim()[0], -0.04 * top), top)
        ax.legend()
        return self

    def _top(self) -> float:
        """Room for what matters: a huge error at one end must not flatten the rest."""
        curves = [values[np.isfinite(values)] for name, values in self.errors.items() if name != "training"]
        curves = [values for values in curves if values.size] or [np.ones(1)]
        least = max(float(values.min()) for values in curves)
        return min(1.05 * max(float(values.max()) for values in curves), BEYOND * least or 1.0)


class HiddenSizeDisplay(Display):
    """Cross-validation error against the number of hidden units.

    Parameters
    ----------
    sizes, cv_error : ndarray
        The curve; NaN where the rule cannot judge a size.
    error_name : str
        What the cross-validation errors are.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The cross-validation error.
    ax_, figure_ : matplotlib Axes and Figure
        Where it is drawn.
    """

    def __init__(self, sizes: np.ndarray, cv_error: np.ndarray, *, error_name: str = "RMSE") -> None:
        self.sizes = sizes
        self.cv_error = cv_error
        self.error_name = error_name

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        sizes: Sequence[int] | None = None,
        ax: Axes | None = None,
        **line_kwargs: Any,
    ) -> Self:
        """Draw the error of every size up to that of `model`, fitted or not, from one factor of X, y.

        `line_kwargs` go to matplotlib's `plot`.
        """
        options = model.get_params(deep=False)
        if "n_hidden" not in options:
            raise ValueError(
                f"{type(model).__name__} has no hidden units to count: use PinvRegressor or PinvClassifier."
            )
        for own in ("store_folds", "calibrate"):
            options.pop(own, None)
        n_hidden, gamma = options.pop("n_hidden"), options.pop("gamma")
        task = "classification" if is_classifier(model) else "regression"
        chosen = _sizes(options["max_hidden"] if n_hidden == "auto" else n_hidden) if sizes is None else sizes
        table = hidden_size_path(X, y, sizes=chosen, gamma=gamma, task=task, **options)
        name = "RMSE of the ±1 codes" if task == "classification" else "RMSE"
        columns = table["n_hidden"].to_numpy(), table["cv_error"].to_numpy(dtype=float)
        return cls(*columns, error_name=f"cross-validation {name}").plot(ax, **line_kwargs)

    def plot(self, ax: Axes | None = None, **line_kwargs: Any) -> Self:
        """Draw on `ax`, or on a new figure."""
        ax = self._begin(ax, "hidden units M", self.error_name)
        (self.line_,) = ax.plot(self.sizes, self.cv_error, **({"color": BLUE, "marker": "."} | line_kwargs))
        if np.isfinite(self.cv_error).any():
            best = int(np.nanargmin(self.cv_error))
            where = self.sizes[best], self.cv_error[best]
            ax.plot(*where, color=VERMILION, marker="o", linestyle="", label=f"least at {self.sizes[best]} units")
            ax.legend()
        return self


def _sizes(largest: int) -> list[int]:
    """1, …, `largest`, thinned out evenly in the logarithm if they are many."""
    if largest <= MOST_SIZES:
        return list(range(1, largest + 1))
    return sorted({round(size) for size in np.geomspace(1, largest, MOST_SIZES)})
