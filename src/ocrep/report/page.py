"""One HTML page from a diagnosis: jinja2 writes text, table and figures; report.js moves them with the slider."""

from __future__ import annotations

import os
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from typing import Any, Literal

from ocrep._files.formats import visible
from ocrep._files.writing import replacing
from ocrep.report.diagnosis import Diagnosis, finite
from ocrep.report.drawing import SYMBOLS
from ocrep.report.gamma_figures import fine_sigma, gamma_figures, gamma_places, main_rules
from ocrep.report.goodness_figures import goodness_figures
from ocrep.report.score_tables import confusion_table, score_table
from ocrep.report.wording import readable

FILES = ("template.html", "figure.html", "report.css", "report.js")
CURVES = ("gammas", "train_error", "cv_error", "test_error", "condition", "dof", "norm")
COLUMNS = (
    ("rule", "Rule"),
    ("gamma", "γ"),
    ("cv_error", "CV error"),
    ("test_error", "Test error"),
    ("train_error", "Training error"),
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

    See Also
    --------
    diagnose : Computes the numbers.

    Examples
    --------
    >>> from ocrep import PinvRegressor
    >>> from ocrep.datasets import load
    >>> from ocrep.report import diagnose, write_report
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> diagnosis = diagnose(PinvRegressor(20, random_state=0), X, y, rules=["ocrep", "ocrep_cv", "gcv"])
    >>> write_report(diagnosis, "report.html")
    """
    page = visible(render(diagnosis))  # names of columns may hold control characters
    with replacing(path) as part:
        part.write_text(page, encoding="utf-8")


def render(diagnosis: Diagnosis) -> str:
    """Return the page as text."""
    try:
        import jinja2
    except ImportError as exc:
        raise ImportError('Reports need jinja2: pip install "ocrep[report]".') from exc
    texts = {name: files("ocrep.report").joinpath(name).read_text(encoding="utf-8") for name in FILES}
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(texts),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    start = next((line.index for line in diagnosis.rules if line.rule == diagnosis.verdict.recommended), 0)
    return environment.get_template("template.html").render(
        d=diagnosis,
        columns=[column for column in COLUMNS if column[0] != "test_error" or diagnosis.test_error is not None],
        finite=finite,
        words=partial(_words, diagnosis),
        readable=readable,
        figures=gamma_figures(diagnosis, start),
        pictures=goodness_figures(diagnosis.goodness),
        scores=score_table(diagnosis.goodness),
        confusion=confusion_table(diagnosis.goodness),
        advice=_advice(diagnosis),
        symbols=SYMBOLS,
        main_rules=main_rules(diagnosis),
        view=_view(diagnosis, start),
        version=version("ocrep"),
        style=texts["report.css"],
        script=texts["report.js"],
    )


def _view(d: Diagnosis, start: int) -> dict[str, Any]:
    """The input of report.js: numbers to draw along γ, and the same numbers as text."""
    curves = {name: getattr(d, name) for name in CURVES if getattr(d, name) is not None}
    words = {name: [_words(d, name, value) for value in values] for name, values in curves.items()}
    rules = [{"rule": line.rule, "index": line.index} for line in d.rules]
    gain = {"sigma": d.singular_values[: d.rank], "fine": fine_sigma(d)}
    return finite({"curves": curves, "words": words, "rules": rules, "start": start, "places": gamma_places(d), **gain})


def _advice(d: Diagnosis) -> list[str]:
    """What to change, as options of the program if the reader came from there, else as parameters."""
    how: Literal["command", "python"] = "command" if d.table.command else "python"
    of_model = () if d.goodness is None else d.goodness.advice
    return [advice.sentence(how) for advice in (*of_model, *d.table.advice)]


def _words(d: Diagnosis, name: str, value: float) -> str:
    return d.error_text(value) if name.endswith("_error") else readable(value)
