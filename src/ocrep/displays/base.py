"""What all displays share: the axis given or made, the colours, and matplotlib loaded only when drawing."""

from __future__ import annotations

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
        """Give the axis to draw on, labelled."""
        if ax is None:
            ax = _pyplot().subplots()[1]
        self.ax_, self.figure_ = ax, ax.figure
        ax.set(xlabel=x_label, ylabel=y_label)
        ax.grid(alpha=0.25)
        return ax


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as exc:
        raise ImportError('Displays need matplotlib: pip install "ocrep[cli]".') from exc
    return pyplot
