"""What the page's template draws: figures of scales, curves, marks and legends, with places worked out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ocrep.report.scales import Scale, Tick

NEAR = 7.0
"""No tick is closer than this, in percent of the axis, to that of γ = 0."""
SYMBOLS = {
    "circle": "M-6 0a6 6 0 1 0 12 0a6 6 0 1 0 -12 0z",
    "diamond": "M0 -7L6 0L0 7L-6 0z",
    "square": "M-5 -5H5V5H-5z",
    "up": "M0 -6.5L6.5 5H-6.5z",
    "star": "M0 -7L2 -2.2L7 -2.2L3 1L4.6 6L0 3L-4.6 6L-3 1L-7 -2.2L-2 -2.2z",
    "down": "M0 6.5L6.5 -5H-6.5z",
    "pentagon": "M0 -6.5L6.2 -2L3.8 5.3H-3.8L-6.2 -2z",
    "hexagon": "M-3.3 -5.8H3.3L6.6 0L3.3 5.8H-3.3L-6.6 0z",
    "dot": "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z",
    "plus": "M-4.5 0H4.5M0 -4.5V4.5",
}
"""The symbols as paths around the origin, in pixels."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A line, or dots, through points in thousandths of the plot; `key` names a curve that follows γ."""

    look: str
    path: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A symbol at a place in percent of the plot, with what it says when pointed at."""

    symbol: str
    look: str
    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of a legend: a look, and a symbol unless it is a line."""

    name: str
    look: str
    symbol: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. If γ is on the horizontal axis, `zero` is where γ = 0 is drawn, and `dots` are curves marked at γ."""

    name: str
    heading: str
    caption: str
    x_title: str
    x: Scale
    y_title: str
    y: Scale
    curves: Sequence[Curve]
    legend: Sequence[Key] = ()
    marks: Sequence[Mark] = ()
    dots: Sequence[tuple[str, str]] = ()
    zero: float | None = None

    @property
    def x_ticks(self) -> list[Tick]:
        """The ticks of the horizontal axis, that of γ = 0 among them."""
        if self.zero is None:
            return self.x.ticks()
        first = Tick(self.x.place(self.zero), "0")
        return [first, *(tick for tick in self.x.ticks() if tick.place > first.place + NEAR)]


def path(x: Scale, y: Scale, xs: Iterable[float], ys: Iterable[float]) -> str:
    """A line through points; what is not known leaves a gap."""
    steps, pen = [], "M"
    for place in _places(x, y, xs, ys):
        steps.append(f"{pen}{place}" if place else "")
        pen = "L" if place else "M"
    return "".join(steps)


def points(x: Scale, y: Scale, xs: Iterable[float], ys: Iterable[float]) -> str:
    """Dots at points: lines of no length, which round ends make visible."""
    return "".join(f"M{place}h0" for place in _places(x, y, xs, ys) if place)


def _places(x: Scale, y: Scale, xs: Iterable[float], ys: Iterable[float]) -> list[str]:
    """Points in thousandths of the plot, from its upper left corner; "" where one is not known."""
    found = []
    for one, other in zip(xs, ys, strict=True):
        across, down = 10.0 * x.place(one), 1000.0 - 10.0 * y.place(other)
        # Far outside the plot a number would only be long.
        known = math.isfinite(across) and math.isfinite(down)
        found.append(f"{across:.1f} {min(max(down, -9999.0), 9999.0):.1f}" if known else "")
    return found


def level(y: Scale, value: float, look: str, key: str = "") -> Curve:
    """A horizontal line at a value."""
    height = 1000.0 - 10.0 * y.place(value)
    return Curve(look, f"M0 {height:.1f}H1000" if math.isfinite(height) else "", key)
