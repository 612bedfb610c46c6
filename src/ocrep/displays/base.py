"""The base of all displays: the axis, the colours, the import of matplotlib when drawing, and what a Pipeline gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ocrep._documentation import Documented
from ocrep._files.formats import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLACK = "#000000"
GREY = "#767676"
BLUE = "#0072B2"
VERMILION = "#D55E00"
GREEN = "#009E73"


_MOST_LETTERS = 60


def label(name: Any) -> str:
    """A name of the data as a label: on one line, of a bounded length, without characters that have no picture."""
    text = visible(" ".join(str(name).split()))
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}…"


class Display(Documented, ABC):
    """A picture on one axis.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it is drawn.

    See Also
    --------
    ocrep.report.write_report : An interactive page with these pictures and a verdict.
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def plot(self, ax: Axes | None = None, **line_kwargs: Any) -> Self:
        """Draw on axes, or on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **line_kwargs : dict
            Options of matplotlib's `plot`.

        Returns
        -------
        Display
            This display.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from ocrep import PinvRegressor, SpectrumDisplay
        >>> from ocrep.datasets import load
        >>> model = PinvRegressor(50, random_state=0).fit(*load("housing", return_X_y=True))
        >>> display = SpectrumDisplay.from_estimator(model)
        >>> figure, ax = plt.subplots()
        >>> display.plot(ax=ax, color="black").ax_ is ax
        True
        """
        if ax is None:
            ax = load_matplotlib("matplotlib.pyplot").subplots()[1]
        self.ax_ = ax
        self.figure_ = ax.figure
        ax.grid(alpha=0.25)
        self._draw(ax, line_kwargs)
        if ax.get_legend_handles_labels()[1]:
            ax.legend()
        return self

    @abstractmethod
    def _draw(self, ax: Axes, line_kwargs: dict[str, Any]) -> None: ...


def load_matplotlib(module: str = "matplotlib") -> Any:
    """Import matplotlib or one of its modules; if it is missing, say how to install it."""
    try:
        import_module("matplotlib")
        return import_module(module)
    except ImportError as exc:
        raise ImportError('Figures need matplotlib: pip install "ocrep[plot]".') from exc


def network_of(model: Any) -> Any:
    """The estimator that is drawn: the last step of a Pipeline, or the model itself."""
    return model[-1] if isinstance(model, Pipeline) else model


def rows_for(model: Any, X: Any, y: Any = None) -> Any:
    """Rows as the network in a Pipeline sees them; steps that are not fitted are fitted to X, y, as copies."""
    if X is None or not isinstance(model, Pipeline) or len(model) == 1:
        return X
    before = model[:-1]
    try:
        check_is_fitted(before)
    except NotFittedError:
        return clone(before).fit_transform(X, y)
    return before.transform(X)
