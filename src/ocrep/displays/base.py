"""The base of all displays and figures: the axis, the colours, and the import of matplotlib when drawing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLACK, GREY, BLUE, VERMILION, GREEN, ORANGE = "#000000", "#767676", "#0072B2", "#D55E00", "#009E73", "#E69F00"


class Display:
    """A picture on one axis."""

    ax_: Axes
    figure_: Figure | SubFigure

    def _begin(self, ax: Axes | None, x_label: str, y_label: str) -> Axes:
        """Label `ax`, or a new axis, and return it."""
        if ax is None:
            ax = load_matplotlib("matplotlib.pyplot").subplots()[1]
        self.ax_, self.figure_ = ax, ax.figure
        ax.set(xlabel=x_label, ylabel=y_label)
        ax.grid(alpha=0.25)
        return ax


def load_matplotlib(module: str = "matplotlib") -> Any:
    """Import matplotlib or one of its modules; if it is missing, say how to install it."""
    try:
        import_module("matplotlib")
        return import_module(module)
    except ImportError as exc:
        raise ImportError('Figures need matplotlib: pip install "ocrep[cli]".') from exc
