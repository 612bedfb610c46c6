"""The figures of the page, with every place worked out: axes and ticks, figures along γ, figures of held-out rows.

A figure is drawn as SVG that stretches with the page, so places are relative: marks and ticks in percent of the axis,
curves in thousandths of the plot, from its upper left corner. The template (`figure.html`) only writes them down, and
`report.js` moves what depends on γ; it reads the ends of an axis from the figure, and places values as `Scale.place`
does.

The page and matplotlib's displays (`ocrep.displays`) show the same curves: their numbers are computed there and in
`Spectrum`.

A figure is a dict: name, heading, caption, axes with titles and ticks, and

- curves, each (look, path, key), where the look is a class of `report.css`, and the key names a curve that follows γ;
- legend, each (name, look, symbol), the symbol "" for a line;
- marks, each (symbol, look, x, y, text), the text shown when pointed at;
- dots, each (key, look): a curve along γ, on which the slider shows a dot.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ocrep.displays.spectral import gain, sigma_grid
from ocrep.report.diagnosis import Diagnosis
from ocrep.report.examination import ColumnEffect, ErrorsAlong, Examination, Ranking, day_text
from ocrep.report.goodness import Goodness
from ocrep.report.verdict import RuleLine
from ocrep.report.wording import are_years, minus, percent, readable, scientific, short, values_text, with_error

MAIN_RULES = ("ocrep", "ocrep_cv", "kfold", "gcv", "loo", "none")
"""The rules with their own button and symbol; the other rules share one symbol."""
BEYOND = 5.0
"""The axis of errors ends at this many times the least one: a huge error at one end must not flatten the curves."""
FINE = 161  # points of a smooth curve
MOST_TICKS = 6
MOST_TEXTS = 10  # of a column
NEAR = 7.0
"""No tick is closer than this, in percent of the axis, to that of γ = 0."""
SMALL = 1e-300
LOOKS = ("cv", "test", "choice", "other", "plain", "cv dotted")
"""The looks of curves that differ by nothing but their class."""
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

Kind = Literal["linear", "log"]
Figure = dict[str, Any]


# --- Axes ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear or logarithmic axis from `low` to `high`; `percent` labels shares, and `dates` days since 1970."""

    kind: Kind
    low: float
    high: float
    percent: bool = False
    dates: bool = False

    @classmethod
    def around(cls, values: Iterable[float], kind: Kind = "linear", *, margin: float = 0.05) -> Scale:
        """The axis that holds all finite values (on a logarithmic axis the positive ones), and a margin."""
        known = [value for value in values if math.isfinite(value) and (kind == "linear" or value > SMALL)]
        low, high = (min(known), max(known)) if known else (1.0, 1.0)
        if kind == "linear":
            reach = margin * ((high - low) or abs(high) or 1.0)
            return cls(kind, low - reach, high + reach)
        # Of at least four decades, so that values that are almost equal do not fill the whole axis.
        factor = 10.0 ** (margin * max(math.log10(high / low), 4.0))
        return cls(kind, low / factor, high * factor)

    def place(self, value: float) -> float:
        """The place of a value in percent of the axis; NaN for what a logarithmic axis cannot show."""
        if self.kind == "linear":
            return 100.0 * (value - self.low) / (self.high - self.low)
        if not value > 0.0:
            return math.nan
        return 100.0 * math.log(value / self.low) / math.log(self.high / self.low)

    def ticks(self) -> list[tuple[float, str]]:
        """About six ticks at round values: their places and labels."""
        if self.dates:
            return [(self.place(value), label) for value, label in self._days().items()]
        labels = self._even() if self.kind == "linear" or self.high <= 8.0 * self.low else self._powers()
        return [(self.place(value), label) for value, label in labels.items() if self.low <= value <= self.high]

    def _even(self) -> dict[float, str]:
        """Multiples of a round step."""
        step = round_step((self.high - self.low) / MOST_TICKS)
        values = [step * k for k in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]
        unit, sign = (100.0, "\u00a0%") if self.percent else (1.0, "")
        return {value: tick_label(unit * value, unit * step) + sign for value in values}

    def _days(self) -> dict[float, str]:
        """The first days of years or months where the axis is long enough, else days or hours."""
        for step, label in (("Y", 4), ("M", 7)):
            first = np.datetime64(math.floor(self.low), "D").astype(f"datetime64[{step}]")
            last = np.datetime64(math.floor(self.high), "D").astype(f"datetime64[{step}]")
            count = int((last - first).astype(int))
            if count >= 3:
                every = max(1, math.ceil(count / 3))
                starts = first + np.arange(1, count + 1, every)
                return {float(s.astype("datetime64[D]").astype(int)): str(s)[:label] for s in starts}
        step_days = round_step((self.high - self.low) / 3)
        values = [step_days * k for k in range(math.ceil(self.low / step_days), math.floor(self.high / step_days) + 1)]
        return {value: day_text(value) for value in values}

    def _powers(self) -> dict[float, str]:
        """Powers of ten; within two of them also 2 and 5 times a power."""
        low = math.log10(self.low)
        high = math.log10(self.high)
        step = max(1, math.ceil((high - low) / MOST_TICKS))
        powers = [10.0**k for k in range(math.floor(low), math.floor(high) + 1) if k % step == 0]
        if high - low > 2.0:
            return {power: scientific(power) for power in powers}
        return {digit * power: tick_label(digit * power, power) for power in powers for digit in (1, 2, 5)}


def round_step(least: float) -> float:
    """The least of 1, 2, 2.5, 5 and 10 times a power of ten that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(max(least, SMALL)))
    return next(m * power for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * power >= least * (1.0 - 1e-9))


def tick_label(value: float, step: float) -> str:
    """A multiple of a round step with as many digits as that needs."""
    exponent = math.floor(math.log10(step) + 1e-9)
    # A step of 2.5 times a power of ten needs one digit more.
    decimals = max(0, -exponent + (0.2 < step / 10.0**exponent - 2.0 < 0.8))
    if decimals > 4 or (value and abs(value) >= 1e6):
        return scientific(value, 3 + max(0, math.ceil(math.log10((abs(value) or step) / step))))
    return minus(f"{value + 0.0:,.{decimals}f}")


# --- Curves ----------------------------------------------------------------------------------------------------------


def path(x: Scale, y: Scale, xs: Iterable[float], ys: Iterable[float]) -> str:
    """A line through points; what is not known leaves a gap."""
    steps = []
    pen = "M"
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
        across = 10.0 * x.place(one)
        down = 1000.0 - 10.0 * y.place(other)
        # Far outside the plot a number would only be long.
        known = math.isfinite(across) and math.isfinite(down)
        found.append(f"{across:.1f} {min(max(down, -9999.0), 9999.0):.1f}" if known else "")
    return found


def _level(y: Scale, value: float) -> str:
    """A horizontal line at a value."""
    down = 1000.0 - 10.0 * y.place(value)
    return f"M0 {down:.1f}H1000" if math.isfinite(down) else ""


def _figure(
    name: str,
    heading: str,
    caption: str,
    *,
    x: Scale,
    x_title: str,
    y: Scale,
    y_title: str,
    curves: Sequence[tuple[str, str, str]],
    legend: Sequence[tuple[str, str, str]],
    marks: Sequence[tuple[str, str, float, float, str]] = (),
    dots: Sequence[tuple[str, str]] = (),
    zero: float | None = None,
) -> Figure:
    """One figure; if γ is on the horizontal axis, `zero` is where γ = 0 is drawn."""
    x_ticks = x.ticks()
    if zero is not None:
        first = x.place(zero)
        x_ticks = [(first, "0"), *((place, label) for place, label in x_ticks if place > first + NEAR)]
    return {
        "name": name,
        "heading": heading,
        "caption": caption,
        "x": x,
        "x_title": x_title,
        "x_ticks": x_ticks,
        "y": y,
        "y_title": y_title,
        "y_ticks": y.ticks(),
        "curves": curves,
        "legend": legend,
        "marks": marks,
        "dots": dots,
        "follows": zero is not None,
    }


# --- The figures along γ ---------------------------------------------------------------------------------------------


def main_rules(d: Diagnosis) -> list[RuleLine]:
    """The rules with their own button: the usual ones, that of the estimator, and the recommended one."""
    wanted = (*MAIN_RULES, d.chosen_rule, d.verdict.recommended)
    return sorted((line for line in d.rules if line.rule in wanted), key=lambda line: wanted.index(line.rule))


def gamma_places(d: Diagnosis) -> list[float]:
    """The grid as it is drawn: a logarithmic axis has no zero, so γ = 0 lies to the left of the other γ."""
    return [d.gammas[1] / 8.0, *d.gammas[1:]]


def gamma_figures(d: Diagnosis, start: int) -> list[Figure]:
    """Errors, condition number, singular values and gain, drawn at the place `start` of the grid of γ."""
    return [_errors(d), _condition(d), _spectrum(d, start), _gain(d, start)]


def _errors(d: Diagnosis) -> Figure:
    """Errors against γ, with the γ of every rule."""
    lines = [
        ("training", "train_error", "train"),
        ("cross-validation", "cv_error", "cv"),
        ("test", "test_error", "test"),
    ]
    lines = [line for line in lines if getattr(d, line[1]) is not None]
    places = gamma_places(d)
    x = _gamma_scale(d)
    y = _error_scale(d)
    main = main_rules(d)
    own = [name for name in SYMBOLS if name not in ("plus", "dot")]
    symbols = {line.rule: own[k % len(own)] for k, line in enumerate(main)}
    others = [line for line in d.rules if line not in main]
    marks = []
    for line in (*others, *main):
        if math.isfinite(line.cv_error):
            symbol, look = (symbols[line.rule], "choice") if line.rule in symbols else ("plus", "other")
            text = f"{line.rule}: γ = {readable(line.gamma)}, cross-validation error {d.error_text(line.cv_error)}"
            marks.append((symbol, look, x.place(places[line.index]), min(y.place(line.cv_error), 100.0), text))
    known = [(error, gamma) for error, gamma in zip(d.cv_error, d.gammas, strict=True) if error == error]
    caption = f"Training, cross-validation{' and test' if d.test_error else ''} error ({d.error_name}) against γ. "
    if known:
        least, gamma = min(known)
        caption += f"The cross-validation error is least, {d.error_text(least)}, at γ = {readable(gamma)}. "
    return _figure(
        "errors",
        "Error against γ",
        caption + f"The γ of {len(d.rules)} rules are marked on the cross-validation curve.",
        x=x,
        x_title="regularization γ",
        y=y,
        y_title=d.error_name,
        curves=[(look, path(x, y, places, getattr(d, key)), "") for _, key, look in lines],
        legend=[
            *((name, look, "") for name, _, look in lines),
            *((rule, "choice", symbol) for rule, symbol in symbols.items()),
            *([("other rules", "other", "plus")] if others else []),
        ],
        marks=marks,
        dots=[(key, look) for _, key, look in lines],
        zero=places[0],
    )


def _gamma_scale(d: Diagnosis) -> Scale:
    return Scale.around(gamma_places(d), "log", margin=0.02)


def _error_scale(d: Diagnosis) -> Scale:
    judged = [[e for e in curve if math.isfinite(e)] for curve in (d.cv_error, d.test_error or [])]
    all_errors = [e for e in (*d.train_error, *judged[0], *judged[1]) if math.isfinite(e)]
    most = max([SMALL, *all_errors])
    least = max([SMALL, *(min(curve) for curve in judged if curve)])
    if d.task == "classification":
        high = min(1.06 * most, max(4.0 * least, least + 0.25))
        return Scale("linear", -0.02 * high, high, percent=True)
    low = max(0.9 * min(all_errors, default=1.0), least / 3.0, SMALL)
    return Scale("log", low, max(min(1.1 * most, BEYOND * least), 1.5 * low))


def _condition(d: Diagnosis) -> Figure:
    """The condition number against γ."""
    places = gamma_places(d)
    x = _gamma_scale(d)
    y = Scale.around([*d.condition, d.condition_number], "log", margin=0.04)
    curves = [("cv", path(x, y, places, d.condition), "")]
    legend = [("condition number", "cv", "")]
    if math.isfinite(d.condition_number):
        curves.append(("plain dotted", _level(y, d.condition_number), ""))
        legend.append(("without regularization", "plain dotted", ""))
    caption = f"The condition number μ(Hʳᵉᵍ) against γ. Without regularization it is {readable(d.condition_number)}"
    marks = []
    ocrep = next((line for line in d.rules if line.rule == "ocrep"), None)
    if ocrep is not None and math.isfinite(ocrep.condition):
        text = f"ocrep: γ = {readable(ocrep.gamma)}, condition number {readable(ocrep.condition)}"
        marks.append(("circle", "choice", x.place(places[ocrep.index]), y.place(ocrep.condition), text))
        legend.append(("ocrep", "choice", "circle"))
        caption += f"; OCReP reduces it to {readable(ocrep.condition)} at γ = {readable(ocrep.gamma)}"
    return _figure(
        "condition",
        "Condition number against γ",
        f"{caption}.",
        x=x,
        x_title="regularization γ",
        y=y,
        y_title="condition number μ(Hʳᵉᵍ)",
        curves=curves,
        legend=legend,
        marks=marks,
        dots=[("condition", "cv")],
        zero=places[0],
    )


def _spectrum(d: Diagnosis, start: int) -> Figure:
    """The singular values, with √γ."""
    sigma = d.singular_values
    x = Scale("linear", 0.5, len(sigma) + 0.5)
    tallest = max([d.tolerance, *sigma[:1], SMALL])
    # Rounding noise may reach down to zero: 18 orders of magnitude are enough to see that.
    y = Scale.around([tallest, *(value for value in [d.tolerance, *sigma] if value > 1e-18 * tallest)], "log")
    caption = (
        f"The {len(sigma)} singular values of H, from {readable(max(sigma, default=0.0))} down to "
        f"{readable(min(sigma, default=0.0))}. The precision floor is {readable(d.floor)}; values up to "
        f"{readable(d.tolerance)} are rounding noise. Singular values above √γ are kept, those below are damped."
    )
    return _figure(
        "spectrum",
        "Singular values",
        caption,
        x=x,
        x_title="direction",
        y=y,
        y_title="singular value σ",
        curves=[
            ("cv points", points(x, y, range(1, len(sigma) + 1), sigma), ""),
            ("choice", _level(y, math.sqrt(d.gammas[start])), "root"),
            ("plain dashed", _level(y, d.floor), ""),
            ("plain dotted", _level(y, d.tolerance), ""),
        ],
        legend=[
            ("singular values", "dot", "dot"),
            ("√γ: values below are damped", "choice", ""),
            ("precision floor", "plain dashed", ""),
            ("rank tolerance", "plain dotted", ""),
        ],
    )


def _gain(d: Diagnosis, start: int) -> Figure:
    """The gain, which replaces 1/σ."""
    sigma = np.asarray(d.singular_values[: d.rank])
    fine = fine_sigma(d)
    x = Scale("log", float(fine[0]), float(fine[-1]))
    y = Scale("log", float(1.0 / fine[-1]) / 200.0, float(1.0 / fine[0]) * 2.0)
    gamma = d.gammas[start]
    caption = (
        "The gain D(σ) = σ/(σ² + γ), which replaces 1/σ, with the singular values of H as points on it. Its maximum, "
        f"1/(2√γ), is at σ = √γ; without regularization it would reach {readable(1.0 / sigma[-1] if d.rank else 0.0)}."
    )
    return _figure(
        "gain",
        "Gain",
        caption,
        x=x,
        x_title="singular value σ",
        y=y,
        y_title="gain D(σ)",
        curves=[
            ("plain dotted", path(x, y, fine, 1.0 / fine), ""),
            ("cv", path(x, y, fine, gain(fine, gamma)), "gain"),
            ("cv points", points(x, y, sigma, gain(sigma, gamma)), "gains"),
        ],
        legend=[
            ("D(σ) = σ/(σ² + γ)", "cv", ""),
            ("singular values of H", "dot", "dot"),
            ("without regularization, 1/σ", "plain dotted", ""),
        ],
    )


def fine_sigma(d: Diagnosis) -> np.ndarray:
    """The σ at which the gain is drawn; any will do if all features are zero."""
    return sigma_grid(np.asarray(d.singular_values[: d.rank] or [1.0, 0.1]), FINE)


# --- The figures of held-out rows ------------------------------------------------------------------------------------


def goodness_figures(found: Goodness | None) -> list[Figure]:
    """Predictions and residuals of a regression, or ROC curves of classes; none without held-out rows."""
    if found is None:
        return []
    return [_predictions(found), _residuals(found)] if found.true else [_roc(found)] if found.roc else []


def _predictions(found: Goodness) -> Figure:
    """Predicted against true values."""
    both = Scale.around([*found.true, *found.predicted])
    least, most = values_text([min(found.true), max(found.true)])
    ends = [both.low, both.high]
    caption = (
        f"Predicted against true values of {len(found.true):,} held-out rows. On the line they are equal; the true "
        f"values run from {least} to {most}."
    )
    return _figure(
        "predictions",
        "Predicted against true",
        caption,
        x=both,
        x_title="true value",
        y=both,
        y_title="predicted value",
        curves=[
            ("plain dashed", path(both, both, ends, ends), ""),
            ("cv points faint", points(both, both, found.true, found.predicted), ""),
        ],
        legend=[("a held-out row", "dot", "dot"), ("predicted = true", "plain dashed", "")],
    )


def _residuals(found: Goodness) -> Figure:
    """True minus predicted values, against the predicted ones."""
    residuals = np.subtract(found.true, found.predicted)
    x = Scale.around(found.predicted)
    y = Scale.around([*residuals, 0.0])
    lower, upper = (readable(float(np.quantile(residuals, q))) for q in (0.25, 0.75))
    caption = (
        "Residuals, true minus predicted, of the same rows. "
        f"Their mean is {readable(float(residuals.mean()))}, and half of them lie between {lower} and {upper}. "
        "A bend or a funnel shows what the model misses."
    )
    return _figure(
        "residuals",
        "Residuals",
        caption,
        x=x,
        x_title="predicted value",
        y=y,
        y_title="true − predicted",
        curves=[
            ("plain dashed", path(x, y, [x.low, x.high], [0.0, 0.0]), ""),
            ("cv points faint", points(x, y, found.predicted, residuals), ""),
        ],
        legend=[("a held-out row", "dot", "dot"), ("no error", "plain dashed", "")],
    )


def _roc(found: Goodness) -> Figure:
    """True against false positives of each class."""
    both = Scale("linear", -0.01, 1.01, percent=True)
    lines = list(zip(found.roc, LOOKS, strict=False))
    areas = ", ".join(f"{curve['label']} {curve['area']:.3f}" for curve in found.roc)
    caption = (
        "The ROC curve: the share of the rows of a class that is found (true positive rate), against the share of the "
        f"other rows that is given its label (false positive rate). Its area is 1 at best and 0.5 for guesses: {areas}."
    )
    return _figure(
        "roc",
        "ROC curve",
        caption,
        x=both,
        x_title="false positive rate",
        y=both,
        y_title="true positive rate",
        curves=[
            ("plain dashed", path(both, both, [0.0, 1.0], [0.0, 1.0]), ""),
            *((look, path(both, both, curve["false_positive"], curve["true_positive"]), "") for curve, look in lines),
        ],
        legend=[*((curve["label"], look, "") for curve, look in lines), ("guesses", "plain dashed", "")],
    )


# --- The figures of columns ------------------------------------------------------------------------------------------


Bars = dict[str, Any]
"""Bars beside their names: rows, each (name, start, width, text), in percent of the longest; and where zero is."""


def importance_bars(ranking: Ranking) -> Bars:
    """The columns by how much the score falls without them."""
    tallest = max([*ranking.importance, SMALL])
    rows = [
        (
            short(name, 80),
            0.0,
            100.0 * max(0.0, fall) / tallest,
            with_error(fall, error).replace(" ", "\u00a0"),
        )
        for name, fall, error in zip(ranking.columns, ranking.importance, ranking.std_error, strict=True)
    ]
    return {"heading": "Column", "value": "The score falls by", "rows": rows, "zero": None, "ranges": False}


def effect_figures(found: Examination) -> list[Figure]:
    """What each column does: a curve with a band for numbers and dates, bars for texts."""
    return [_effect(number, one) for number, one in enumerate(found.effects)]


def _effect(number: int, one: ColumnEffect) -> Figure:
    of_what = f"the probability of {one.output}" if one.scale == "probability" else "the prediction"
    if one.scale == "log-odds":
        of_what = f"the log-odds of {one.output}"
    if one.kind == "category":  # the bars are in order, and need no sentence on their ends
        frequent = sorted(range(len(one.values)), key=lambda place: -one.n_rows[place])[:MOST_TEXTS]
        caption = f"The {MOST_TEXTS} most frequent values." if len(one.values) > MOST_TEXTS else ""
        low, high = (end(0.0, *(one.effect[place] for place in frequent)) for end in (min, max))
        reach = (high - low) or 1.0
        rows = []
        for place in sorted(frequent, key=lambda place: -one.effect[place]):
            value = one.effect[place]
            start = 100.0 * (min(0.0, value) - low) / reach
            rows.append((short(one.values[place], 60), start, 100.0 * abs(value) / reach, one.effect_text(place)))
        bars = {"heading": "value", "value": "adds", "rows": rows, "zero": -100.0 * low / reach, "ranges": False}
        named = {"name": f"effect-{number}", "heading": short(one.column, 80), "caption": caption}
        return {**named, "y_title": f"adds to {of_what}", "bars": bars}
    caption = f"{one.sentence()[0].upper()}{one.sentence()[1:]}."
    x = Scale.around(one.values, margin=0.02)
    x = Scale("linear", x.low, x.high, dates=one.kind == "date")
    y = Scale.around([*one.low, *one.high, 0.0])
    y = Scale("linear", y.low, y.high, percent=one.scale == "probability")
    figure = _figure(
        f"effect-{number}",
        short(one.column, 80),
        caption,
        x=x,
        x_title=short(one.column),
        y=y,
        y_title=f"adds to {of_what}",
        curves=[
            ("area rows", _density(x, one), ""),
            ("area band", _band(x, y, one), ""),
            ("plain dashed", _level(y, 0.0), ""),
            ("cv", path(x, y, one.values, one.effect), ""),
        ],
        legend=[],
    )
    if one.kind == "number" and are_years(one.values):
        figure["x_ticks"] = [(place, label.replace(",", "")) for place, label in figure["x_ticks"]]
    return figure


def _band(x: Scale, y: Scale, one: ColumnEffect) -> str:
    """The area between the ends of the band."""
    places = [*zip(one.values, one.high, strict=True), *zip(one.values[::-1], one.low[::-1], strict=True)]
    known = [(value, end) for value, end in places if math.isfinite(end)]
    line = path(x, y, [value for value, _ in known], [end for _, end in known])
    return f"{line}z" if line else ""


def _density(x: Scale, one: ColumnEffect) -> str:
    """How many rows lie about each value, as bars at the foot of the plot."""
    places = [10.0 * x.place(value) for value in one.values]
    middles = [0.5 * (a + b) for a, b in itertools.pairwise(places)]
    ends = [places[0], *middles, places[-1]]
    widths = [max(b - a, 1.0) for a, b in itertools.pairwise(ends)]
    dense = [n / width for n, width in zip(one.n_rows, widths, strict=True)]
    tallest = max([*dense, SMALL])
    bars = zip(ends, widths, dense, strict=False)
    return "".join(f"M{at:.1f} 1000V{1000.0 - 130.0 * n / tallest:.1f}h{width:.1f}V1000z" for at, width, n in bars if n)


def along_bars(found: Examination, one: ErrorsAlong) -> Bars:
    """The error of each group of rows."""
    tallest = max([*one.error, SMALL])
    rows = [
        (name, 0.0, 100.0 * error / tallest, f"{found.error_text(error)}\u00a0±\u00a0{found.error_text(noise)} ({n:,})")
        for name, error, noise, n in zip(_groups(one), one.error, one.std_error, one.n_rows, strict=True)
    ]
    zero = 100.0 * found.error / tallest
    ranges = one.kind != "category"
    return {"heading": "value", "value": "error (rows)", "rows": rows, "zero": min(zero, 100.0), "ranges": ranges}


def _groups(one: ErrorsAlong) -> list[str]:
    """The name of each group of rows: its text, or its two ends."""
    ends = [end for group in one.groups if not isinstance(group, str) for end in group]
    told = iter([day_text(math.floor(end)) for end in ends] if one.kind == "date" else values_text(ends))
    names = []
    for group in one.groups:
        if isinstance(group, str):
            names.append(short(group, 60))
            continue
        low, high = next(told), next(told)
        names.append(low if low == high else f"{low} to {high}")
    return names


def calibration_figure(found: Examination) -> Figure:
    """The share of right labels against the probability that the model gave them."""
    groups = found.calibration
    likely, right = ([one[key] for one in groups] for key in ("predicted", "right"))
    lowest = [_share(one["right"] - 2.0 * one["std_error"]) for one in groups]
    both = Scale.around([*likely, *lowest, 1.0])
    both = Scale("linear", both.low, both.high, percent=True)
    ends = [both.low, both.high]
    furthest = max(groups, key=lambda one: abs(one["predicted"] - one["right"]))
    caption = (
        f"Rows in {len(groups)} groups by the probability of their predicted label. On the line, as many labels are "
        f"right as the probabilities say; the furthest group has {percent(furthest['right'])} right where they say "
        f"{percent(furthest['predicted'])}. The bars reach two standard errors to each side."
    )
    noise = "".join(
        path(
            both,
            both,
            [one["predicted"]] * 2,
            [_share(one["right"] + 2.0 * sign * one["std_error"]) for sign in (-1, 1)],
        )
        for one in groups
    )
    return _figure(
        "calibration",
        "Calibration",
        caption,
        x=both,
        x_title="probability of the predicted label",
        y=both,
        y_title="share of right labels",
        curves=[
            ("plain dashed", path(both, both, ends, ends), ""),
            ("cv", noise, ""),
            ("cv points", points(both, both, likely, right), ""),
        ],
        legend=[("a group of rows", "dot", "dot"), ("as many are right as predicted", "plain dashed", "")],
    )


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)
