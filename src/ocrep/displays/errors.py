"""Displays of errors: against γ with the rules' choices, and against the number of hidden units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import is_classifier

from ocrep.analysis.compare import hidden_size_path
from ocrep.analysis.evaluator import Evaluator, RuleOutcome, both_or_none, gamma_grid
from ocrep.displays.base import BLACK, BLUE, GREEN, GREY, VERMILION, Display, network_of, rows_for
from ocrep.estimators import PinvClassifierCV, PinvRegressorCV
from ocrep.estimators.base import ClosedForm

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.pipeline import Pipeline

MARKERS = "oDs^vP*X<>phd"
SHOWN_RULES = ("ocrep", "ocrep_cv", "kfold", "gcv")
"""The rules that `GammaPathDisplay` marks by default."""
MOST_SIZES = 60
BEYOND = 4.0
"""The vertical axis ends at this many times the least error."""


@dataclass(eq=False, repr=False)
class GammaPathDisplay(Display):
    """Training, cross-validation and test error against γ, with the γ of some rules marked.

    γ = 0 is shown at the left end.

    Parameters
    ----------
    gammas : ndarray
        The grid of γ.
    errors : dict of str to ndarray
        Curves by name: "training", "cross-validation", "test".
    choices : sequence of RuleOutcome
        The γ of each rule to mark.
    choice_errors : sequence of float
        The cross-validation error at each of them.
    error_name : str
        Label of the vertical axis.

    Attributes
    ----------
    lines_ : dict of str to matplotlib Line2D
        The curves.

    Examples
    --------
    >>> from ocrep import GammaPathDisplay, PinvRegressor
    >>> from ocrep.datasets import load
    >>> X, y = load("housing", return_X_y=True)
    >>> model = PinvRegressor(50, random_state=0).fit(X, y)
    >>> sorted(GammaPathDisplay.from_estimator(model, X, y).lines_)
    ['cross-validation', 'training']
    """

    gammas: np.ndarray
    errors: dict[str, np.ndarray]
    _: KW_ONLY
    choices: Sequence[RuleOutcome] = ()
    choice_errors: Sequence[float] = ()
    error_name: str = "error"

    @classmethod
    def from_estimator(
        cls,
        model: ClosedForm | Pipeline,
        X: Any,
        y: Any,
        *,
        rules: Iterable[Any] | None = None,
        X_test: Any = None,
        y_test: Any = None,
        ax: Axes | None = None,
        **line_kwargs: Any,
    ) -> Self:
        """Draw the errors of a fitted model.

        Nothing is trained again: the errors come from the model's factor, and from one factor per fold.

        Parameters
        ----------
        model : estimator or Pipeline
            A fitted estimator of this library, or a Pipeline that ends with one.
        X, y : array-like
            The rows it was trained on, without sample weights.
        rules : iterable of str, Rule or float, default=None
            The rules to mark; those that do not apply are left out. None marks ocrep, ocrep_cv, kfold and gcv.
        X_test, y_test : array-like, default=None
            Rows for the test error.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **line_kwargs : dict
            Options of matplotlib's `plot`.

        Returns
        -------
        GammaPathDisplay
            The picture, drawn.
        """
        X = rows_for(model, X)
        X_test = rows_for(model, X_test)
        network = Evaluator.of(network_of(model), (X, y), test=both_or_none(X_test, y_test)).with_folds(len(y))
        choices = [network.apply(rule) for rule in (SHOWN_RULES if rules is None else rules)]
        choices = [choice for choice in choices if choice.gamma is not None]
        chosen = np.array([choice.gamma for choice in choices], dtype=float)
        gammas = gamma_grid(network.spectrum, chosen)
        errors = {"training": network.training_errors(gammas), "cross-validation": network.cv_errors(gammas)}
        if network.test is not None:
            errors["test"] = network.test_errors(gammas)
        choice_errors = network.cv_errors(chosen).tolist() if choices else []
        display = cls(gammas, errors, choices=choices, choice_errors=choice_errors, error_name=network.error_name)
        return display.plot(ax, **line_kwargs)

    def _draw(self, ax: Axes, line_kwargs: dict[str, Any]) -> None:
        # In print and to colour-blind readers the dashes tell the curves apart.
        looks = {"training": (GREY, ":"), "cross-validation": (BLUE, "-"), "test": (GREEN, "--")}
        self.lines_ = {}
        for name, values in self.errors.items():
            color, dashes = looks.get(name, (BLACK, "-"))
            style = {"color": color, "linestyle": dashes, "label": name} | line_kwargs
            (self.lines_[name],) = ax.plot(self.gammas, values, **style)
        top = self._top()
        for k, (choice, error) in enumerate(zip(self.choices, self.choice_errors, strict=True)):
            ax.plot(
                max(choice.gamma or 0.0, float(self.gammas[0])),  # a logarithmic axis has no place for γ = 0
                min(error, top),
                color=VERMILION,
                linestyle="",
                marker=MARKERS[k % len(MARKERS)],
                markersize=8,
                markerfacecolor="none",
                clip_on=False,
                zorder=4,
                label=choice.rule,
            )
        ax.set(xlabel="regularization γ", ylabel=self.error_name, xscale="log")
        ax.set_ylim(max(ax.get_ylim()[0], -0.04 * top), top)

    def _top(self) -> float:
        """Upper end of the vertical axis: a huge error at one end of the grid must not flatten the curves."""
        curves = [values[np.isfinite(values)] for name, values in self.errors.items() if name != "training"]
        curves = [values for values in curves if values.size] or [np.ones(1)]
        least = max(float(values.min()) for values in curves)
        return min(1.05 * max(float(values.max()) for values in curves), BEYOND * least or 1.0)


@dataclass(eq=False, repr=False)
class HiddenSizeDisplay(Display):
    """Cross-validation error against the number of hidden units.

    Parameters
    ----------
    sizes, cv_error : ndarray
        The curve; NaN where the rule does not apply.
    error_name : str
        Label of the vertical axis.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The cross-validation error.

    Examples
    --------
    >>> from ocrep import HiddenSizeDisplay, PinvRegressor
    >>> from ocrep.datasets import load
    >>> display = HiddenSizeDisplay.from_estimator(PinvRegressor(20, random_state=0), *load("housing", return_X_y=True))
    >>> len(display.sizes)
    20
    """

    sizes: np.ndarray
    cv_error: np.ndarray
    _: KW_ONLY
    error_name: str = "RMSE"

    @classmethod
    def from_estimator(
        cls,
        model: ClosedForm | Pipeline,
        X: Any,
        y: Any,
        *,
        sizes: Sequence[int] | None = None,
        ax: Axes | None = None,
        **line_kwargs: Any,
    ) -> Self:
        """Draw the error of every size up to that of a model, from one factor.

        Parameters
        ----------
        model : PinvRegressor, PinvClassifier, PinvRegressorCV, PinvClassifierCV or Pipeline
            The network, or a Pipeline that ends with it; fitted or not.
        X, y : array-like
            Training rows.
        sizes : sequence of int, default=None
            The sizes to draw; None draws all up to 60 units, and beyond that some, evenly spaced in the logarithm.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **line_kwargs : dict
            Options of matplotlib's `plot`.

        Returns
        -------
        HiddenSizeDisplay
            The picture, drawn.
        """
        X = rows_for(model, X, y)
        network = network_of(model)
        if isinstance(network, PinvRegressorCV | PinvClassifierCV):
            network = network.best_estimator_
        options = network.get_params(deep=False)
        if "n_hidden" not in options:
            raise ValueError(f"{type(network).__name__} has no hidden units: use PinvRegressor or PinvClassifier.")
        for name in ("store_folds", "calibrate"):  # the path stores its own folds, and predicts nothing
            options.pop(name, None)
        n_hidden = options.pop("n_hidden")
        gamma = options.pop("gamma")
        task = "classification" if is_classifier(network) else "regression"
        if sizes is None:
            # Beyond a few dozen units, one more changes little: spaced in the logarithm, the picture costs no more.
            largest = options["max_hidden"] if n_hidden == "auto" else n_hidden
            some = np.geomspace(1, largest, MOST_SIZES).round().astype(int)
            sizes = range(1, largest + 1) if largest <= MOST_SIZES else np.unique(some).tolist()
        table = hidden_size_path(X, y, sizes=sizes, gamma=gamma, task=task, **options)
        name = "RMSE of the ±1 codes" if task == "classification" else "RMSE"
        display = cls(
            table["n_hidden"].to_numpy(),
            table["cv_error"].to_numpy(dtype=float),
            error_name=f"cross-validation {name}",
        )
        return display.plot(ax, **line_kwargs)

    def _draw(self, ax: Axes, line_kwargs: dict[str, Any]) -> None:
        ax.set(xlabel="hidden units M", ylabel=self.error_name)
        (self.line_,) = ax.plot(self.sizes, self.cv_error, **({"color": BLUE, "marker": "."} | line_kwargs))
        if np.isfinite(self.cv_error).any():
            best = int(np.nanargmin(self.cv_error))
            label = f"least at {self.sizes[best]} units"
            ax.plot(self.sizes[best], self.cv_error[best], color=VERMILION, marker="o", linestyle="", label=label)
