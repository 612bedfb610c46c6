"""The paper's figures: gain and condition number from a spectrum, test error against γ and against hidden size.

Every figure is written as PNG for the screen and as SVG for print, and the same records give the same SVG bytes.
Methods differ in colour, marker and line style.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

import numpy as np

from ocrep._linalg.factor import Factor
from ocrep._linalg.spectrum import Spectrum
from ocrep.displays.base import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILION, load_matplotlib
from ocrep.study.protocol import FULL, REFERENCE_SPLIT, REGRESSION

Record = dict[str, Any]

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GAMMA_RANGE = (1e-10, 1e5)  # what the paper's figures show
# The vertical axis of a panel ends at this many times the least error; for classification also at least so many
# percentage points above the least error, which may be zero.
BEYOND, POINTS = 2.5, 10.0
STYLE = {
    **dict.fromkeys(("font.size", "axes.titlesize", "legend.fontsize"), 9),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), 8),
    **{"lines.linewidth": 1.4, "axes.axisbelow": True, "svg.hashsalt": "ocrep"},
}
LINES: dict[str, dict[str, Any]] = {
    "unregularized": {"label": "unregularized", "linestyle": (0, (4, 1.5)), "linewidth": 1.4},
    "cv": {"label": "cross-validation", "linestyle": "-.", "linewidth": 0.8},
    "ocrep": {"label": "OCReP", "linestyle": "-", "linewidth": 1.6},
}
MARKS: dict[str, dict[str, Any]] = {
    "unregularized": {"color": VERMILION, "marker": "^", "markerfacecolor": VERMILION},
    "cv": {"color": BLACK, "marker": "s", "markerfacecolor": "none"},
    "ocrep": {"color": BLUE, "marker": "o", "markerfacecolor": BLUE},
}


def draw_figures(records: list[Record], folder: Path) -> list[str]:
    """Draw every figure that the records allow into `folder`/figures; return the PNG paths, relative to `folder`.

    Errors of classification are in percent. The first two figures need no records; the others take the records of
    the reference split, of kind "curve" (error against γ) and of kind "path" (error against hidden size).
    """
    matplotlib = load_matplotlib()
    reference = [record for record in records if record.get("split") == REFERENCE_SPLIT]
    curves = [record for record in reference if record["kind"] == "curve"]
    # The paper shows the largest hidden layer of each data set.
    largest = {one["data"]: max(r["n_hidden"] for r in curves if r["data"] == one["data"]) for one in curves}
    curves = [record for record in curves if record["n_hidden"] == largest[record["data"]]]
    paths = [record for record in reference if record["kind"] == "path" and record["method"] in LINES]
    figures: dict[str, Callable[[], Figure]] = {
        "gain": lambda: _single(_gain),
        "condition": lambda: _single(_condition),
    }
    if curves:
        figures["error_against_gamma"] = lambda: _panels(curves, _gamma_panel, "regularization γ")
    if paths:
        figures["error_against_size"] = lambda: _panels(paths, _size_panel, "hidden units M")
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        for name, draw in figures.items():
            figure = draw()
            # Leave out the date and matplotlib's version: the same figure gives the same bytes.
            figure.savefig(folder / "figures" / f"{name}.png", dpi=150, metadata={"Software": None})
            figure.set_layout_engine("none")  # the SVG keeps the layout of the PNG
            figure.savefig(folder / "figures" / f"{name}.svg", metadata={"Date": None, "Creator": None})
    return [f"figures/{name}.png" for name in figures]


def illustration() -> Spectrum:
    """Return twelve singular values between 10 and 0.05, few enough to see the effect of γ on each."""
    return Factor.of(np.diag(np.geomspace(10.0, 0.05, 12)), np.ones(12)).spectrum()


def _single(draw: Callable[[Axes, Spectrum, float], None]) -> Figure:
    from matplotlib.figure import Figure

    figure, spectrum = Figure(figsize=(5.2, 3.4), layout="constrained"), illustration()
    axis = figure.add_subplot(xscale="log", yscale="log")
    axis.grid(alpha=0.25)
    draw(axis, spectrum, spectrum.largest * spectrum.smallest)
    return figure


def _gain(axis: Axes, spectrum: Spectrum, balanced: float) -> None:
    """D(σ) for three γ (the paper's figure 1): at γ = σ₁σ_p the largest and the smallest σ have the same gain."""
    fine = np.geomspace(1.3 * spectrum.largest, spectrum.smallest / 1.3, 300)
    curve = Factor.of(np.diag(fine), np.ones(fine.size)).spectrum()
    axis.plot(fine, 1.0 / fine, color=GREY, linestyle=":", label="γ = 0:  D = 1/σ")
    for beta, color, marker, linestyle in ((0.1, ORANGE, "s", "--"), (1.0, BLUE, "o", "-"), (10.0, GREEN, "^", "-.")):
        factor = "" if beta == 1.0 else f"{beta:g} "
        axis.plot(fine, curve.gain(beta * balanced), color=color, linestyle=linestyle)
        axis.plot(spectrum.sigma, spectrum.gain(beta * balanced), color=color, marker=marker, linestyle="")
        axis.plot([], [], color=color, marker=marker, linestyle=linestyle, label=f"γ = {factor}σ₁σ$_p$")
    level = float(spectrum.gain(balanced)[0])
    axis.plot([spectrum.smallest, spectrum.largest], [level, level], color=BLUE, linewidth=1.0)
    axis.annotate("γ = σ₁σ$_p$:\nthe same gain at both ends", (2.4, level), (0, -4), **_under(BLUE))
    axis.set_ylim(spectrum.gain(10.0 * balanced).min() / 1.5, 2.0 * float(spectrum.gain(0.1 * balanced).max()))
    axis.set(xlabel="singular value σ of H", ylabel="singular value of H$^{reg}$:  D = σ/(σ² + γ)")
    axis.set_title("12 singular values between 10 and 0.05")
    axis.legend(loc="upper right")


def _condition(axis: Axes, spectrum: Spectrum, balanced: float) -> None:
    """μ(H^reg) against β (the paper's figure 2); at each kink D_max moves from one σ to the next."""
    betas = np.geomspace(1e-4, 1e4, 401)
    least, plain = float(spectrum.condition(balanced)), float(spectrum.condition())
    axis.plot(betas, spectrum.condition(betas * balanced), color=BLUE)
    axis.axhline(plain, color=GREY, linestyle=":")
    axis.annotate(f"without regularization: σ₁/σ$_p$ = {plain:.0f}", (1.0, plain), (0, -4), **_under(GREY))
    axis.plot([1.0], [least], color=BLUE, marker="o", markersize=7)
    axis.annotate(f"OCReP, β = 1: {least:.1f}", (1.0, least), (0, -8), **_under(BLUE))
    axis.set_ylim(least / 2.0, 1.4 * plain)
    axis.set_title("12 singular values; at each kink D$_{max}$ moves to the next one")
    axis.set(xlabel="β, where γ = β σ₁σ$_p$", ylabel="condition number μ(H$^{reg}$)")


def _under(color: str) -> dict[str, Any]:
    return {"textcoords": "offset points", "ha": "center", "va": "top", "color": color}


def _panels(records: list[Record], draw: Callable[[Axes, list[Record], str], None], x_label: str) -> Figure:
    """One panel per data set: regression in the first row, classification in the second, one legend below."""
    from matplotlib.figure import Figure

    names = sorted({record["data"] for record in records})
    names.sort(key=[*FULL.data_sets, *names].index)  # the paper's order, then any others by name
    rows = [[name for name in names if (name in REGRESSION) is regression] for regression in (True, False)]
    rows = [row for row in rows if row]
    columns = max(map(len, rows))
    narrow = columns < 3
    size = max(2.75 * columns, 4.2), 2.4 * len(rows) + (0.8 if narrow else 0.4)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(rows), columns, squeeze=False)
    legend: dict[str, Any] = {}
    for line, row in zip(axes, rows, strict=True):
        line[0].set_ylabel("test RMSE" if row[0] in REGRESSION else "% misclassified (test)")
        for axis, name in zip(line, row, strict=False):
            draw(axis, [record for record in records if record["data"] == name], name.replace("_", " ").title())
            axis.grid(alpha=0.25)
            axis.set_xlabel(x_label)
            axis.ticklabel_format(axis="y", scilimits=(-2, 4))
            handles, labels = axis.get_legend_handles_labels()
            legend |= dict(zip(labels, handles, strict=True))
        for axis in line[len(row) :]:
            axis.remove()
    legend = dict(sorted(legend.items()))
    ncols = columns if narrow else len(legend)
    figure.legend(legend.values(), legend.keys(), loc="outside lower center", ncols=ncols, frameon=False)
    return figure


def _gamma_panel(axis: Axes, records: list[Record], name: str) -> None:
    """Mean test error over the draws for each γ of the grid, with the γ of the two rules marked."""
    gammas = np.asarray(records[0]["gammas"], dtype=float)
    mean, spread = _over_draws(record["errors"] for record in records)
    chosen = {method: [r["chosen"][method] for r in records if r["chosen"].get(method)] for method in ("cv", "ocrep")}
    positions = {method: geometric_mean(by_draw) for method, by_draw in chosen.items() if by_draw}
    low, high = min([GAMMA_RANGE[0], *positions.values()]), max([GAMMA_RANGE[1], *positions.values()])
    seen = (gammas >= low / 3.0) & (gammas <= high * 3.0) & np.isfinite(mean)
    gammas, mean, spread = gammas[seen], mean[seen], spread[seen]
    at = positions.items() if gammas.size else ()
    errors = {method: float(np.interp(math.log(gamma), np.log(gammas), mean)) for method, gamma in at}
    bottom, top = _limits(records[0]["data"], mean, spread, errors.values())
    style: dict[str, Any] = {"color": GREY, "marker": ".", "linewidth": 0.8, "elinewidth": 0.8, "capsize": 1.5}
    axis.errorbar(gammas, mean, spread, label="mean ± standard deviation over draws", **style)
    for method, error in errors.items():
        # If both rules choose the same γ, the square frames the circle; errors off the scale sit on the upper edge.
        look = {**MARKS[method], "markersize": 9 if method == "cv" else 6, "label": f"γ by {LINES[method]['label']}"}
        axis.plot(positions[method], min(error, top), linestyle="", zorder=4, clip_on=False, **look)
    title = f"{name}, M = {records[0]['n_hidden']}"
    axis.set(xscale="log", xlim=(low / 2.0, high * 2.0), ylim=(bottom, top), title=title)


def _size_panel(axis: Axes, records: list[Record], name: str) -> None:
    """Mean test error over the draws for each hidden size, one line per method with a band of ± one deviation."""
    drawn: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for method in LINES:
        own = [record for record in records if record["method"] == method]
        if not own:
            continue
        sizes, color = np.asarray(own[0]["sizes"], dtype=float), MARKS[method]["color"]
        mean, spread = drawn[method] = _over_draws(record["test_errors"] for record in own)
        axis.plot(sizes, mean, markersize=4, markevery=max(1, sizes.size // 8), **LINES[method], **MARKS[method])
        axis.fill_between(sizes, mean - spread, mean + spread, color=color, alpha=0.2, linewidth=0)
        if method == "ocrep":
            chosen = float(np.mean([record["n_hidden"] for record in own]))
            axis.axvline(chosen, color=color, linestyle=":", label="mean size chosen with OCReP")
    means, spreads = (np.concatenate(parts) for parts in zip(*drawn.values(), strict=True))
    axis.set(ylim=_limits(records[0]["data"], means, spreads), xlim=(0.0, None), title=name)


def _over_draws(errors: Iterable[Sequence[float | None]]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation over the draws with a finite error; NaN and 0 without enough such draws."""
    values = np.ma.masked_invalid(np.array([list(draw) for draw in errors], dtype=float))
    with np.errstate(over="ignore"):
        return np.ma.filled(values.mean(axis=0), np.nan), np.ma.filled(values.std(axis=0, ddof=1), 0.0)


def _limits(data: str, mean: np.ndarray, spread: np.ndarray, marks: Iterable[float] = ()) -> tuple[float, float]:
    """Ends of the vertical axis: room for the least error, its deviation and the marks, but not for huge errors."""
    known = np.isfinite(mean)
    if not known.any():
        return 0.0, 1.0
    mean, spread = mean[known], np.nan_to_num(spread[known])
    best = int(np.argmin(mean))
    least, deviation = float(mean[best]), float(spread[best])
    room = max(BEYOND * least, least + 3.0 * deviation, 0.0 if data in REGRESSION else least + POINTS)
    room = max([room, *(1.1 * mark for mark in marks if mark < 4.0 * room)])
    top = min(room, 1.05 * float(np.max(mean + spread))) or 1.0
    bottom = min(0.9 * least, least - 1.5 * deviation)
    return (bottom if bottom > 0.0 else -0.04 * top), top  # keeps a line along zero off the frame
