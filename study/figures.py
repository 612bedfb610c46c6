"""The figures: the paper's own, where its numbers lie among ours, and how stable predictions are.

Every figure is written as PNG for the screen and as SVG for print, and the same results give the same SVG bytes.
Methods differ in colour, marker and line style; OCReP is vermilion in all figures of the library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ocrep import Factor, Spectrum
from study.judgement import INSIDE, Study
from study.protocol import REGRESSION, SHOWN_RANGE
from study.published import NAMES, UNITS, title
from study.results import Along, on_reference_split

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLACK, GREY, BLUE, VERMILION, GREEN, ORANGE = "#000000", "#767676", "#0072B2", "#D55E00", "#009E73", "#E69F00"
# The vertical axis of a panel ends at this many times the least error; for classification also at least this many
# percentage points above the least error, which may be zero.
BEYOND = 2.5
POINTS = 10.0
STYLE: dict[Any, Any] = {
    **dict.fromkeys(("font.size", "axes.titlesize", "legend.fontsize"), 9),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), 8),
    **{"lines.linewidth": 1.4, "axes.axisbelow": True, "svg.hashsalt": "ocrep"},
}
LINES: dict[str, dict[str, Any]] = {
    "unregularized": {"label": "unregularized", "color": GREY, "linestyle": (0, (4, 1.5)), "marker": "^"},
    "cv": {"label": "cross-validation", "color": BLACK, "linestyle": "-.", "marker": "s", "markerfacecolor": "none"},
    "ocrep": {"label": "OCReP", "color": VERMILION, "linestyle": "-", "marker": "o"},
}
LOOKS: dict[str, dict[str, Any]] = {
    "ocrep": {"color": VERMILION, "marker": "o"},
    "cv": {"color": BLACK, "marker": "s", "markerfacecolor": "none"},
    "gcv": {"color": BLUE, "marker": "D"},
    "kibria": {"color": GREEN, "marker": "v"},
    "hoerl_kennard": {"color": ORANGE, "marker": "P"},
    "unregularized": {"color": GREY, "marker": "^"},
}
MISPRINT: dict[str, Any] = {"marker": "x", "color": "#AA0000", "markersize": 8, "linestyle": ""}


def draw_figures(study: Study, folder: Path) -> dict[str, str]:
    """Draw every figure that the results allow into `folder`/figures; return their paths, relative to `folder`."""
    figures: dict[str, Callable[[], Figure | None]] = {
        "overview": lambda: _overview(study),
        "gain": lambda: _single(_gain),
        "condition": lambda: _single(_condition),
        "error_against_gamma": lambda: _panels(study, _gamma_panel, "regularization γ"),
        "error_against_size": lambda: _panels(study, _size_panel, "hidden units M"),
        "stability": lambda: _panels(study, _stability_panel, "γ / (σ₁σ$_p$)"),
    }
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    drawn = {}
    with matplotlib.rc_context(STYLE):
        for name, draw in figures.items():
            figure = draw()
            if figure is None:
                continue
            # Leave out the date and matplotlib's version: the same figure gives the same bytes.
            figure.savefig(folder / "figures" / f"{name}.png", dpi=150, metadata={"Software": None})
            figure.set_layout_engine("none")  # the SVG keeps the layout of the PNG
            figure.savefig(folder / "figures" / f"{name}.svg", metadata={"Date": None, "Creator": None})
            drawn[name] = f"figures/{name}.png"
    return drawn


def _overview(study: Study) -> Figure | None:
    """Where the published numbers lie among ours: errors on the left, ratios to OCReP on the right."""
    own = [one for one in study.judged if not one.cell.quoted and not one.cell.repeated]
    placed = [one for one in own if one.percentile is not None]
    names = [name for name in study.data_sets if any(one.cell.data == name for one in placed)]
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
        ends: list[float] = []  # the last point of each line of points
        for place, method, odd in own:
            line = next((k for k, last in enumerate(ends) if place - last > 2.2), len(ends))
            ends[line : line + 1] = [place]
            offset = 0.11 * ((line + 1) // 2) * (1 if line % 2 else -1)
            axis.plot(place, row + offset, linestyle="", markersize=5, clip_on=False, **LOOKS[method])
            if odd:
                axis.plot(place, row + offset, clip_on=False, **MISPRINT)
        if row:
            axis.axhline(row - 0.5, color=GREY, linewidth=0.4)
    axis.set(xlim=(0, 100), ylim=(len(names) - 0.45, -0.55), xlabel="percentile among our splits (grey: 1 to 99)")
    axis.set_yticks(range(len(names)), [title(name) for name in names])
    axis.tick_params(left=False)


def illustration() -> Spectrum:
    """Return twelve singular values between 10 and 0.05, few enough to see the effect of γ on each."""
    return Factor.of(np.diag(np.geomspace(10.0, 0.05, 12)), np.ones(12)).spectrum()


def _single(draw: Callable[[Axes, Spectrum, float], None]) -> Figure:
    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    spectrum = illustration()
    axis = figure.add_subplot(xscale="log", yscale="log")
    axis.grid(alpha=0.25)
    draw(axis, spectrum, spectrum.largest * spectrum.smallest)
    return figure


def _gain(axis: Axes, spectrum: Spectrum, balanced: float) -> None:
    """D(σ) for three γ (the paper's figure 1): at γ = σ₁σ_p the largest and the smallest σ have the same gain."""
    fine = np.geomspace(1.3 * spectrum.largest, spectrum.smallest / 1.3, 300)
    curve = Factor.of(np.diag(fine), np.ones(fine.size)).spectrum()
    axis.plot(fine, 1.0 / fine, color=GREY, linestyle=":", label="γ = 0:  D = 1/σ")
    for beta, color, marker, style in ((0.1, BLUE, "s", "--"), (1.0, VERMILION, "o", "-"), (10.0, GREEN, "^", "-.")):
        factor = "" if beta == 1.0 else f"{beta:g} "
        axis.plot(fine, curve.gain(beta * balanced), color=color, linestyle=style)
        axis.plot(spectrum.sigma, spectrum.gain(beta * balanced), color=color, marker=marker, linestyle="")
        axis.plot([], [], color=color, marker=marker, linestyle=style, label=f"γ = {factor}σ₁σ$_p$")
    level = float(spectrum.gain(balanced)[0])
    axis.plot([spectrum.smallest, spectrum.largest], [level, level], color=VERMILION, linewidth=1.0)
    axis.annotate("γ = σ₁σ$_p$:\nthe same gain at both ends", (2.4, level), (0, -4), **_under(VERMILION))
    axis.set_ylim(spectrum.gain(10.0 * balanced).min() / 1.5, 2.0 * float(spectrum.gain(0.1 * balanced).max()))
    axis.set(xlabel="singular value σ of H", ylabel="singular value of H$^{reg}$:  D = σ/(σ² + γ)")
    axis.set_title("12 singular values between 10 and 0.05")
    axis.legend(loc="upper right")


def _condition(axis: Axes, spectrum: Spectrum, balanced: float) -> None:
    """μ(H^reg) against β (the paper's figure 2); at each kink D_max moves from one σ to the next."""
    betas = np.geomspace(1e-4, 1e4, 401)
    least = float(spectrum.condition(balanced))
    plain = float(spectrum.condition())
    axis.plot(betas, spectrum.condition(betas * balanced), color=BLUE)
    axis.axhline(plain, color=GREY, linestyle=":")
    axis.annotate(f"without regularization: σ₁/σ$_p$ = {plain:.0f}", (1.0, plain), (0, -4), **_under(GREY))
    axis.plot([1.0], [least], color=VERMILION, marker="o", markersize=7)
    axis.annotate(f"OCReP, β = 1: {least:.1f}", (1.0, least), (0, -8), **_under(VERMILION))
    axis.set_ylim(least / 2.0, 1.4 * plain)
    axis.set_title("12 singular values; at each kink D$_{max}$ moves to the next one")
    axis.set(xlabel="β, where γ = β σ₁σ$_p$", ylabel="condition number μ(H$^{reg}$)")


def _under(color: str) -> dict[str, Any]:
    return {"textcoords": "offset points", "ha": "center", "va": "top", "color": color}


def _panels(study: Study, draw: Callable[[Axes, Study, str], bool], x_label: str) -> Figure | None:
    """One panel per data set: regression in the first row, classification in the second, one legend below."""
    scratch = Figure().subplots()
    names = [name for name in study.data_sets if draw(scratch, study, name)]
    if not names:
        return None
    rows = [[name for name in names if (name in REGRESSION) is regression] for regression in (True, False)]
    rows = [row for row in rows if row]
    columns = max(map(len, rows))
    narrow = columns < 3
    height = 2.4 * len(rows) + (1.3 if narrow else 0.4)
    figure = Figure(figsize=(max(2.75 * columns, 4.6), height), layout="constrained")
    axes = figure.subplots(len(rows), columns, squeeze=False)
    legend: dict[str, Any] = {}
    for line, row in zip(axes, rows, strict=True):
        for axis, name in zip(line, row, strict=False):
            draw(axis, study, name)
            axis.grid(alpha=0.25)
            axis.set_xlabel(x_label)
            handles, labels = axis.get_legend_handles_labels()
            legend |= dict(zip(labels, handles, strict=True))
        for axis in line[len(row) :]:
            axis.remove()
    legend = dict(sorted(legend.items()))
    ncols = 1 if narrow else 2 if columns < 4 else len(legend)
    figure.legend(legend.values(), legend.keys(), loc="outside lower center", ncols=ncols, frameon=False)
    return figure


def _error_label(data: str) -> str:
    unit = ", 10⁻⁴" if data in UNITS else ""
    return f"test RMSE{unit}" if data in REGRESSION else "% misclassified (test)"


def _scaled(curve: Along, data: str) -> Along:
    unit = UNITS.get(data, 1.0)
    return Along(curve.at, curve.mean / unit, curve.std / unit, curve.n_draws)


def _gamma_panel(axis: Axes, study: Study, data: str) -> bool:
    """Mean test error over the draws for each γ of the grid, with the γ of the two rules marked."""
    n_hidden = study.sizes_of(data)[-1]
    curve = study.results.along_gamma(data, study.variant, n_hidden)
    if curve is None:
        return False
    curve = _scaled(curve, data)
    found = {m: study.results.chosen_gamma(data, study.variant, n_hidden, m) for m in ("cv", "ocrep")}
    gammas = {method: gamma for method, gamma in found.items() if gamma is not None}
    low = min([SHOWN_RANGE[0], *gammas.values()])
    high = max([SHOWN_RANGE[1], *gammas.values()])
    errors = {m: float(np.interp(np.log(gamma), np.log(curve.at), curve.mean)) for m, gamma in gammas.items()}
    top = _top(data, [curve], errors.values())
    style: dict[str, Any] = {"color": GREY, "marker": ".", "linewidth": 0.8, "elinewidth": 0.8, "capsize": 1.5}
    label = "mean ± standard deviation over draws of the hidden layer"
    axis.errorbar(curve.at, curve.mean, curve.std, label=label, **style)
    for method, error in errors.items():
        # If both rules choose the same γ, the square frames the circle; errors off the scale sit on the upper edge.
        look = {**LINES[method], "linestyle": "", "label": f"γ by {LINES[method]['label']} (geometric mean)"}
        size = 9 if method == "cv" else 6
        axis.plot(gammas[method], min(error, top), zorder=4, clip_on=False, markersize=size, **look)
    bottom = _bottom([curve], top)
    axis.set(xscale="log", xlim=(low / 2.0, high * 2.0), ylim=(bottom, top), ylabel=_error_label(data))
    axis.set_title(f"{title(data)}, M = {n_hidden}")
    return True


def _size_panel(axis: Axes, study: Study, data: str) -> bool:
    """Mean test error over the draws for each hidden size, with a band of ± one deviation, and OCReP's M̄."""
    known = {m: study.results.along_sizes(data, study.variant, m) for m in LINES}
    curves = {method: _scaled(curve, data) for method, curve in known.items() if curve is not None}
    if not curves:
        return False
    for method, curve in curves.items():
        every = max(1, len(curve.at) // 8)
        axis.plot(curve.at, curve.mean, markersize=4, markevery=every, **LINES[method])
        low = np.maximum(curve.mean - curve.std, 0.0)
        color = LINES[method]["color"]
        label = "band: ± standard deviation over draws" if method == "ocrep" and curve.n_draws > 1 else None
        axis.fill_between(curve.at, low, curve.mean + curve.std, color=color, alpha=0.2, linewidth=0, label=label)
    sizes = on_reference_split(study.results.numbers("chosen", data, study.variant, 0, "ocrep", "n_hidden"))
    if len(sizes):
        axis.axvline(sizes.iloc[0], color=VERMILION, linestyle=":", label="M̄ of OCReP in the table")
    top = _top(data, curves.values())
    axis.set(ylim=(_bottom(curves.values(), top), top), xlim=(0.0, None), title=title(data), ylabel=_error_label(data))
    return True


def _stability_panel(axis: Axes, study: Study, data: str) -> bool:
    """Change of predictions without one row, and the leave-one-out error, against γ in units of OCReP's."""
    curves = study.results.stability(data)
    if curves is None:
        return False
    for name, color, style, label in (
        ("error", BLUE, "-", "change of predictions when one row is left out (RMS)"),
        ("cv_error", BLACK, "-.", "leave-one-out error"),
    ):
        curve = curves[name]
        axis.plot(curve.at, curve.mean, color=color, linestyle=style, label=label)
        at = int(np.argmin(np.abs(np.log(curve.at))))
        axis.plot(1.0, curve.mean[at], color=VERMILION, marker="o", linestyle="", label="OCReP: γ = σ₁σ$_p$", zorder=4)
    axis.set(xscale="log", yscale="log", title=title(data), ylabel="in standard deviations of T")
    return True


def _top(data: str, curves: Iterable[Along], marks: Iterable[float] = ()) -> float:
    """The upper end of the vertical axis: room for the least error, its deviation and marks, not for huge errors."""
    listed = list(curves)
    least, deviation = min((float(c.mean[c.best]), float(c.std[c.best])) for c in listed)
    room = max(BEYOND * least, least + 3.0 * deviation, 0.0 if data in REGRESSION else least + POINTS)
    room = max([room, *(1.1 * mark for mark in marks if mark < 4.0 * room)])
    return min(room, 1.05 * max(float((c.mean + c.std).max()) for c in listed)) or 1.0


def _bottom(curves: Iterable[Along], top: float) -> float:
    """The lower end: below the least error and its deviation, but never below zero."""
    least, deviation = min((float(c.mean[c.best]), float(c.std[c.best])) for c in curves)
    return max(0.0, min(0.9 * least, least - 1.5 * deviation, least - 0.05 * top))
