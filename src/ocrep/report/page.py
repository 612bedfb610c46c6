"""One HTML page from a diagnosis: jinja2 writes text and table, the inlined plotly.js and report.js the figures."""

from __future__ import annotations

import os
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from ocrep._files.atomic import replacing
from ocrep.report.diagnosis import Diagnosis, finite
from ocrep.report.verdict import RuleLine
from ocrep.report.wording import percent, readable

MAIN_RULES = ("ocrep", "ocrep_cv", "kfold", "gcv", "loo", "none")
"""The rules with their own button and symbol; the other rules share one symbol."""
CURVES = ("gammas", "train_error", "cv_error", "test_error", "condition", "dof", "norm")
COLUMNS = (
    ("rule", "Rule"),
    ("gamma", "γ"),
    ("train_error", "Training error"),
    ("cv_error", "CV error"),
    ("test_error", "Test error"),
    ("dof", "Degrees of freedom"),
    ("norm", "Norm of weights"),
    ("condition", "Condition number"),
)


def write_report(diagnosis: Diagnosis, path: str | os.PathLike[str]) -> None:
    """Write one self-contained HTML file that works offline.

    Parameters
    ----------
    diagnosis : Diagnosis
        The result of `diagnose`.
    path : path
        The file to write. An interrupted write leaves an existing file unchanged.

    Examples
    --------
    >>> from ocrep import PinvRegressor
    >>> from ocrep.datasets import load
    >>> from ocrep.report import diagnose, write_report
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> diagnosis = diagnose(PinvRegressor(20, random_state=0), X, y, rules=["ocrep", "ocrep_cv", "gcv"])
    >>> write_report(diagnosis, "report.html")
    """
    page = render(diagnosis)
    with replacing(path) as part:
        part.write_text(page, encoding="utf-8")


def render(diagnosis: Diagnosis) -> str:
    """Return the page as text."""
    try:
        import jinja2
        from plotly.offline import get_plotlyjs
    except ImportError as exc:
        raise ImportError('Reports need jinja2 and plotly: pip install "ocrep[report]".') from exc
    names = ("template.html", "report.css", "report.js")
    template, style, script = (files("ocrep.report").joinpath(name).read_text(encoding="utf-8") for name in names)
    strict: dict[str, Any] = {"autoescape": True, "undefined": jinja2.StrictUndefined}
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, **strict)
    return environment.from_string(template).render(
        d=diagnosis,
        columns=[column for column in COLUMNS if column[0] != "test_error" or diagnosis.test_error is not None],
        finite=finite,
        words=partial(_words, diagnosis),
        readable=readable,
        captions=_captions(diagnosis),
        main_rules=_main_rules(diagnosis),
        view=_view(diagnosis),
        version=version("ocrep"),
        style=style,
        script=script,
        plotly_js=get_plotlyjs(),
    )


def _view(d: Diagnosis) -> dict[str, Any]:
    """The input of report.js: numbers to draw, and the same numbers as text."""
    curves = {name: getattr(d, name) for name in CURVES if getattr(d, name) is not None}
    words = {name: [_words(d, name, value) for value in values] for name, values in curves.items()}
    main = _main_rules(d)
    keys = ("rule", "gamma", "index", "cv_error")
    lines = [*main, *(line for line in d.rules if line not in main)]
    rules = [{key: getattr(line, key) for key in keys} | {"main": line in main} for line in lines]
    spectrum = {name: getattr(d, name) for name in ("singular_values", "rank", "floor", "tolerance")}
    start = next((line.index for line in d.rules if line.rule == d.verdict.recommended), 0)
    view = {"curves": curves, "words": words, "rules": rules, "start": start, "percent": d.task == "classification"}
    return finite(view | spectrum | {"error_name": d.error_name, "condition_number": d.condition_number})


def _main_rules(d: Diagnosis) -> list[RuleLine]:
    wanted = (*MAIN_RULES, d.chosen_rule, d.verdict.recommended)
    return sorted((line for line in d.rules if line.rule in wanted), key=lambda line: wanted.index(line.rule))


def _words(d: Diagnosis, name: str, value: float) -> str:
    if name.endswith("_error") and d.task == "classification" and value == value:
        return percent(value)
    return readable(value, 4 if name.endswith("_error") else 3)


def _captions(d: Diagnosis) -> dict[str, str]:
    """A description of each figure with its numbers, for readers who cannot see it."""
    ocrep = next((line for line in d.rules if line.rule == "ocrep"), None)
    known = [(error, gamma) for error, gamma in zip(d.cv_error, d.gammas, strict=True) if error == error]
    errors = f"Training, cross-validation{' and test' if d.test_error else ''} error ({d.error_name}) against γ. "
    if known:
        least, gamma = min(known)
        errors += f"The cross-validation error is least, {_words(d, 'cv_error', least)}, at γ = {readable(gamma)}. "
    errors += f"The γ of {len(d.rules)} rules are marked on the cross-validation curve."
    condition = f"The condition number μ(Hʳᵉᵍ) against γ. Without regularization it is {readable(d.condition_number)}"
    if ocrep is not None:
        condition += f"; OCReP reduces it to {readable(ocrep.condition)} at γ = {readable(ocrep.gamma)}"
    sigma = d.singular_values
    largest, smallest = (sigma[0], sigma[-1]) if sigma else (0.0, 0.0)
    spectrum = (
        f"The {len(sigma)} singular values of H, from {readable(largest)} down to {readable(smallest)}. "
        f"The precision floor is {readable(d.floor)}; values up to {readable(d.tolerance)} are rounding noise. "
        "Singular values above √γ are kept, those below are damped."
    )
    steepest = 1.0 / sigma[d.rank - 1] if d.rank else 0.0
    gain = (
        "The gain D(σ) = σ/(σ² + γ), which replaces 1/σ, with the singular values of H as points on it. "
        f"Its maximum, 1/(2√γ), is at σ = √γ; without regularization it would reach {readable(steepest)}."
    )
    return {"errors": errors, "condition": f"{condition}.", "spectrum": spectrum, "gain": gain}
