"""One picture of the comparison: where each published error lies among ours, by data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ocrep.displays.base import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILION
from ocrep.study.wording import NAMES, title
from ocrep.study.yardsticks import INSIDE, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOKS: dict[str, dict[str, Any]] = {
    "ocrep": {"color": VERMILION, "marker": "o"},
    "cv": {"color": BLACK, "marker": "s", "markerfacecolor": "none"},
    "gcv": {"color": BLUE, "marker": "D"},
    "kibria": {"color": GREEN, "marker": "v"},
    "hoerl_kennard": {"color": ORANGE, "marker": "P"},
    "unregularized": {"color": GREY, "marker": "^"},
}
MISPRINT: dict[str, Any] = {"marker": "x", "color": "#AA0000", "markersize": 8, "linestyle": ""}


def draw_overview(study: Study) -> Figure | None:
    """Return the picture: errors on the left, ratios to OCReP on the right; None if nothing can be placed."""
    from matplotlib.figure import Figure

    own = [one for one in study.judged if not one.cell.quoted and not one.cell.repeated]
    placed = [one for one in own if one.percentile is not None]
    names = [name for name in study.about["protocol"]["data_sets"] if any(one.cell.data == name for one in placed)]
    if not names:
        return None
    figure = Figure(figsize=(10.5, 0.62 * len(names) + 1.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    _strip(left, names, [(one.cell.data, one.cell.method, one.percentile, one.cell.misprint) for one in placed])
    pairs = [pair for pair in study.pairs if pair.percentile is not None and not pair.rivalry.rival.quoted]
    points = [
        (cell.data, cell.method, pair.percentile, cell.misprint or pair.rivalry.ocrep.misprint)
        for pair in pairs
        for cell in (pair.rivalry.rival,)
    ]
    _strip(right, names, points)
    left.set_title("published errors: all points of a row share the paper's unknown split")
    right.set_title("published ratios of rival to OCReP: nearly free of the split")
    handles = [left.plot([], [], linestyle="", label=NAMES[m], **look)[0] for m, look in LOOKS.items()]
    handles.append(left.plot([], [], label="suspected misprint", **MISPRINT)[0])
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    return figure


def _strip(axis: Axes, names: list[str], points: list[tuple[str, str, float | None, bool]]) -> None:
    """One row per data set; points that would cover each other are set apart."""
    axis.axvspan(*INSIDE, color=GREY, alpha=0.12, linewidth=0)
    axis.axvline(50.0, color=GREY, linewidth=0.8, linestyle=":")
    for row, name in enumerate(names):
        own = sorted((p, method, odd) for data, method, p, odd in points if data == name and p is not None)
        lanes: list[float] = []
        for place, method, odd in own:
            lane = next((k for k, last in enumerate(lanes) if place - last > 2.2), len(lanes))
            lanes[lane : lane + 1] = [place]
            offset = 0.11 * ((lane + 1) // 2) * (1 if lane % 2 else -1)
            axis.plot(place, row + offset, linestyle="", markersize=5, clip_on=False, **LOOKS[method])
            if odd:
                axis.plot(place, row + offset, clip_on=False, **MISPRINT)
        if row:
            axis.axhline(row - 0.5, color=GREY, linewidth=0.4)
    axis.set(xlim=(0, 100), ylim=(len(names) - 0.45, -0.55), xlabel="percentile among our splits (grey: 1 to 99)")
    axis.set_yticks(range(len(names)), [title(name) for name in names])
    axis.tick_params(left=False)
