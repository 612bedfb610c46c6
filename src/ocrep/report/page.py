"""One HTML page from a diagnosis: jinja2 writes text, tables and figures; report.js moves them with the slider."""

from __future__ import annotations

import os
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from typing import Any, Literal

from ocrep._files.formats import visible
from ocrep._files.writing import replacing
from ocrep.analysis.assessment import NETWORK
from ocrep.report.diagnosis import Diagnosis, finite
from ocrep.report.figures import SYMBOLS, fine_sigma, gamma_figures, gamma_places, goodness_figures, main_rules
from ocrep.report.goodness import Goodness
from ocrep.report.wording import minus, percent, readable

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
SCORES = {
    "r2": "R²",
    "rmse": "RMSE",
    "mae": "Mean absolute error",
    "error": "Misclassified",
    "balanced_accuracy": "Balanced accuracy",
    "roc_auc": "ROC AUC",
    "log_loss": "Log-loss",
}
MOST_CLASSES = 12

Cell = tuple[str, float, bool]
"""A number as text, its share of the row, which shades it, and whether it counts rows that are predicted right."""


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
        undefined=jinja2.StrictUndefined,  # a misspelled name is an error, not an empty text
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
    return finite(
        {
            "curves": curves,
            "words": words,
            "rules": [{"rule": line.rule, "index": line.index} for line in d.rules],
            "start": start,
            "places": gamma_places(d),
            "sigma": d.singular_values[: d.rank],
            "fine": fine_sigma(d).tolist(),
        }
    )


def _advice(d: Diagnosis) -> list[str]:
    """What to change, as options of the program if the reader came from there, else as parameters."""
    how: Literal["command", "python"] = "command" if d.table["command"] else "python"
    of_model = () if d.goodness is None else d.goodness.advice
    return [advice.sentence(how) for advice in (*of_model, *d.table["advice"])]


def _words(d: Diagnosis, name: str, value: float) -> str:
    return d.error_text(value) if name.endswith("_error") else readable(value)


def score_table(found: Goodness | None) -> dict[str, Any] | None:
    """All scores of all models, the network first."""
    if found is None:
        return None
    names = [name for name in SCORES if name in found.models[NETWORK]]
    rows = [
        (model, [(_score(name, scores[name]), 0.0, False) for name in names]) for model, scores in found.models.items()
    ]
    return {
        "caption": f"Scores on {found.n_test:,} held-out rows",
        "heading": "Model",
        "columns": [SCORES[name] for name in names],
        "rows": rows,
    }


def _score(name: str, value: float) -> str:
    if name == "error":
        return percent(value)
    # A negative R² near zero is zero, and one far below it is of no size that matters.
    return minus(f"{value:.3f}").replace("−0.000", "0.000") if name == "r2" and value == value else readable(value)


def confusion_table(found: Goodness | None) -> dict[str, Any] | None:
    """Rows by true and predicted class; of many classes only the pairs that are confused most."""
    if found is None or not found.classes:
        return None
    classes = found.classes
    rows: list[tuple[str, list[Cell]]] = []
    if len(classes) <= MOST_CLASSES:
        for k, counts in enumerate(found.confusion):
            n = max(1, sum(counts))
            rows.append((classes[k], [(f"{count:,}", count / n, j == k) for j, count in enumerate(counts)]))
        caption = "Held-out rows: the true class down, the predicted class across"
        return {"caption": caption, "heading": "True class", "columns": classes, "rows": rows}
    pairs = [
        (count, true, predicted)
        for true, counts in enumerate(found.confusion)
        for predicted, count in enumerate(counts)
        if predicted != true and count
    ]
    worst = sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2]))[:MOST_CLASSES]
    for count, true, predicted in worst:
        rows.append((classes[true], [(classes[predicted], 0.0, False), (f"{count:,}", 0.0, False)]))
    return {
        "caption": "The classes that are confused most",
        "heading": "True class",
        "columns": ["Predicted as", "Held-out rows"],
        "rows": rows,
    }
