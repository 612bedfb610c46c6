"""The four figures along γ: errors, condition number, singular values and gain."""

from __future__ import annotations

import math

import numpy as np

from ocrep.report.diagnosis import Diagnosis
from ocrep.report.drawing import SYMBOLS, Curve, Figure, Key, Mark, level, path, points
from ocrep.report.scales import SMALL, Scale
from ocrep.report.verdict import RuleLine
from ocrep.report.wording import readable

MAIN_RULES = ("ocrep", "ocrep_cv", "kfold", "gcv", "loo", "none")
"""The rules with their own button and symbol; the other rules share one symbol."""
BEYOND = 5.0
"""The axis of errors ends at this many times the least one: a huge error at one end must not flatten the curves."""
FINE = 160


def main_rules(d: Diagnosis) -> list[RuleLine]:
    """The rules with their own button: the usual ones, that of the estimator, and the recommended one."""
    wanted = (*MAIN_RULES, d.chosen_rule, d.verdict.recommended)
    return sorted((line for line in d.rules if line.rule in wanted), key=lambda line: wanted.index(line.rule))


def gamma_places(d: Diagnosis) -> list[float]:
    """The grid as it is drawn: a logarithmic axis has no zero, so γ = 0 lies to the left of the other γ."""
    return [d.gammas[1] / 8.0, *d.gammas[1:]]


def gamma_figures(d: Diagnosis, start: int) -> list[Figure]:
    """The four figures along γ, drawn at the place `start` of the grid."""
    return [errors(d), condition(d), spectrum(d, start), gain(d, start)]


def errors(d: Diagnosis) -> Figure:
    """Errors against γ, with the γ of every rule."""
    lines = [
        ("training", "train_error", "train"),
        ("cross-validation", "cv_error", "cv"),
        ("test", "test_error", "test"),
    ]
    lines = [line for line in lines if getattr(d, line[1]) is not None]
    x, y, places = _gamma_scale(d), _error_scale(d), gamma_places(d)
    main = main_rules(d)
    symbols = dict(zip((line.rule for line in main), _cycle(len(main)), strict=True))
    others = [line for line in d.rules if line not in main]

    def mark(line: RuleLine) -> Mark:
        look = ("plus", "other") if line.rule not in symbols else (symbols[line.rule], "choice")
        told = f"{line.rule}: γ = {readable(line.gamma)}, cross-validation error {d.error_text(line.cv_error)}"
        return Mark(*look, x.place(places[line.index]), min(y.place(line.cv_error), 100.0), told)

    legend = [Key(name, look) for name, _, look in lines]
    legend += [Key(rule, "choice", symbol) for rule, symbol in symbols.items()]
    legend += [Key("other rules", "other", "plus")] if others else []
    return Figure(
        "errors",
        "Error against γ",
        _errors_caption(d),
        "regularization γ",
        x,
        d.error_name,
        y,
        [Curve(look, path(x, y, places, getattr(d, key))) for _, key, look in lines],
        legend,
        [mark(line) for line in (*others, *main) if math.isfinite(line.cv_error)],
        [(key, look) for _, key, look in lines],
        places[0],
    )


def condition(d: Diagnosis) -> Figure:
    """The condition number against γ."""
    x, places = _gamma_scale(d), gamma_places(d)
    y = Scale.around([*d.condition, d.condition_number], "log", margin=0.04)
    curves, legend = [Curve("cv", path(x, y, places, d.condition))], [Key("condition number", "cv")]
    if math.isfinite(d.condition_number):
        curves.append(level(y, d.condition_number, "plain dotted"))
        legend.append(Key("without regularization", "plain dotted"))
    caption = f"The condition number μ(Hʳᵉᵍ) against γ. Without regularization it is {readable(d.condition_number)}"
    marks = []
    ocrep = next((line for line in d.rules if line.rule == "ocrep"), None)
    if ocrep is not None and math.isfinite(ocrep.condition):
        told = f"ocrep: γ = {readable(ocrep.gamma)}, condition number {readable(ocrep.condition)}"
        marks.append(Mark("circle", "choice", x.place(places[ocrep.index]), y.place(ocrep.condition), told))
        legend.append(Key("ocrep", "choice", "circle"))
        caption += f"; OCReP reduces it to {readable(ocrep.condition)} at γ = {readable(ocrep.gamma)}"
    return Figure(
        "condition",
        "Condition number against γ",
        f"{caption}.",
        "regularization γ",
        x,
        "condition number μ(Hʳᵉᵍ)",
        y,
        curves,
        legend,
        marks,
        [("condition", "cv")],
        places[0],
    )


def spectrum(d: Diagnosis, start: int) -> Figure:
    """The singular values, with √γ."""
    sigma = d.singular_values
    x = Scale("linear", 0.5, len(sigma) + 0.5)
    tallest = max([d.tolerance, *sigma[:1], SMALL])
    # Rounding noise may reach down to zero: 18 orders of magnitude are enough to see that.
    y = Scale.around([tallest, *(value for value in [d.tolerance, *sigma] if value > 1e-18 * tallest)], "log")
    numbers = list(range(1, len(sigma) + 1))
    levels = [level(y, math.sqrt(d.gammas[start]), "choice", "root"), level(y, d.floor, "plain dashed")]
    caption = (
        f"The {len(sigma)} singular values of H, from {readable(max(sigma, default=0.0))} down to "
        f"{readable(min(sigma, default=0.0))}. The precision floor is {readable(d.floor)}; values up to "
        f"{readable(d.tolerance)} are rounding noise. Singular values above √γ are kept, those below are damped."
    )
    return Figure(
        "spectrum",
        "Singular values",
        caption,
        "direction",
        x,
        "singular value σ",
        y,
        [Curve("cv points", points(x, y, numbers, sigma)), *levels, level(y, d.tolerance, "plain dotted")],
        [
            Key("singular values", "dot", "dot"),
            Key("√γ: values below are damped", "choice"),
            Key("precision floor", "plain dashed"),
            Key("rank tolerance", "plain dotted"),
        ],
    )


def gain(d: Diagnosis, start: int) -> Figure:
    """The gain, which replaces 1/σ."""
    sigma, fine = np.asarray(d.singular_values[: d.rank]), np.asarray(fine_sigma(d))
    x = Scale("log", float(fine[0]), float(fine[-1]))
    y = Scale("log", float(1.0 / fine[-1]) / 200.0, float(1.0 / fine[0]) * 2.0)
    gamma = d.gammas[start]
    # Written as the sum of quotients so that σ² cannot underflow.
    curve, dots = (1.0 / (values + gamma / values) for values in (fine, sigma))
    caption = (
        "The gain D(σ) = σ/(σ² + γ), which replaces 1/σ, with the singular values of H as points on it. Its maximum, "
        f"1/(2√γ), is at σ = √γ; without regularization it would reach {readable(1.0 / sigma[-1] if d.rank else 0.0)}."
    )
    return Figure(
        "gain",
        "Gain",
        caption,
        "singular value σ",
        x,
        "gain D(σ)",
        y,
        [
            Curve("plain dotted", path(x, y, fine, 1.0 / fine)),
            Curve("cv", path(x, y, fine, curve), "gain"),
            Curve("cv points", points(x, y, sigma, dots), "gains"),
        ],
        [
            Key("D(σ) = σ/(σ² + γ)", "cv"),
            Key("singular values of H", "dot", "dot"),
            Key("without regularization, 1/σ", "plain dotted"),
        ],
    )


def fine_sigma(d: Diagnosis) -> list[float]:
    """The σ at which the gain is drawn."""
    sigma = d.singular_values[: d.rank] or [1.0, 0.1]
    low, high = sigma[-1] / 1.5, 1.5 * sigma[0]
    return [low * (high / low) ** (k / FINE) for k in range(FINE + 1)]


def _cycle(count: int) -> list[str]:
    own = [name for name in SYMBOLS if name not in ("plus", "dot")]
    return [own[k % len(own)] for k in range(count)]


def _gamma_scale(d: Diagnosis) -> Scale:
    return Scale.around(gamma_places(d), "log", margin=0.02)


def _error_scale(d: Diagnosis) -> Scale:
    judged = [[e for e in curve if math.isfinite(e)] for curve in (d.cv_error, d.test_error or [])]
    all_errors = [e for e in (*d.train_error, *judged[0], *judged[1]) if math.isfinite(e)]
    most, least = max([SMALL, *all_errors]), max([SMALL, *(min(curve) for curve in judged if curve)])
    if d.task == "classification":
        high = min(1.06 * most, max(4.0 * least, least + 0.25))
        return Scale("linear", -0.02 * high, high, percent=True)
    low = max(0.9 * min(all_errors, default=1.0), least / 3.0, SMALL)
    return Scale("log", low, max(min(1.1 * most, BEYOND * least), 1.5 * low))


def _errors_caption(d: Diagnosis) -> str:
    known = [(error, gamma) for error, gamma in zip(d.cv_error, d.gammas, strict=True) if error == error]
    caption = f"Training, cross-validation{' and test' if d.test_error else ''} error ({d.error_name}) against γ. "
    if known:
        least, gamma = min(known)
        caption += f"The cross-validation error is least, {d.error_text(least)}, at γ = {readable(gamma)}. "
    return caption + f"The γ of {len(d.rules)} rules are marked on the cross-validation curve."
