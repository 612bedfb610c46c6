"""One HTML page from a diagnosis or an examination: jinja2 writes all of it, and report.js moves it."""

from __future__ import annotations

import os
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from typing import Any, Literal

from ocrep._files.formats import visible
from ocrep._files.writing import replacing
from ocrep.analysis.assessment import NETWORK
from ocrep.report.diagnosis import Diagnosis
from ocrep.report.examination import Examination
from ocrep.report.figures import (
    SYMBOLS,
    along_bars,
    calibration_figure,
    effect_figures,
    fine_sigma,
    gamma_figures,
    gamma_places,
    goodness_figures,
    importance_bars,
    main_rules,
)
from ocrep.report.goodness import Goodness
from ocrep.report.wording import finite, minus, percent, readable, short

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
QUESTIONS = (
    ("good", "How good is it?"),
    ("columns", "Which columns matter?"),
    ("effects", "What does each do?"),
    ("wrong", "Where is it wrong?"),
    ("trust", "Can I trust it?"),
    ("made", "How was it made?"),
)

Cell = tuple[str, float, bool]
"""A number as text, its share of the row, which shades it, and whether it counts rows that are predicted right."""


def write_report(diagnosis: Diagnosis | Examination, path: str | os.PathLike[str]) -> None:
    """Write one self-contained HTML file that works offline.

    Parameters
    ----------
    diagnosis : Diagnosis or Examination
        The result of `diagnose` or of `examine`.
    path : path
        The file to write. An interrupted write leaves an existing file unchanged.

    See Also
    --------
    examine : Looks at a fitted model on rows that it was not trained on.
    diagnose : The same, and one network under many γ.

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


def render(found: Diagnosis | Examination) -> str:
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
    d = found if isinstance(found, Diagnosis) else None
    e = found if isinstance(found, Examination) else found.examined
    good = found.goodness
    pictures = {figure["name"]: figure for figure in goodness_figures(good)}
    residuals = pictures.pop("residuals", None)
    return environment.get_template("template.html").render(
        d=d,
        e=e,
        title=found.title,
        lead=_lead(d, e),
        questions=[
            *(QUESTIONS[:1] if e is None else QUESTIONS),
            *([] if d is None else [("laboratory", "The laboratory of γ")]),
        ],
        goodness=good,
        scores=score_table(good),
        confusion=confusion_table(good),
        pictures=list(pictures.values()),
        residuals=residuals,
        advice=_advice(d, e),
        symbols=SYMBOLS,
        readable=readable,
        version=version("ocrep"),
        style=texts["report.css"],
        **({} if e is None else _examined(e, residuals)),
        **({} if d is None else _laboratory(d)),
        script=texts["report.js"],
    )


def _lead(d: Diagnosis | None, e: Examination | None) -> str:
    """What was learned from what, in one paragraph."""
    rows, n_inputs = [], len(d.table["inputs"] if d is not None else e.inputs if e is not None else ())
    n_train = d.n_train if d is not None else e.n_train if e is not None else None
    n_test = d.n_test if d is not None else e.n_rows if e is not None else 0
    if n_train:
        rows.append(f"{n_train:,} training rows")
    if n_test:
        rows.append(f"{'tested on ' if n_train else ''}{n_test:,}{'' if n_train else ' rows'}")
    task = (d or e).task.capitalize()  # type: ignore[union-attr]
    said = f"{task} on {', '.join(rows)}: {n_inputs} {'input' if n_inputs == 1 else 'inputs'}"
    if d is not None and d.n_hidden is not None and not d.table["examined"]:
        said += f", {d.n_hidden} hidden units"
    sentences = [f"{said}."]
    about = {} if d is None else d.table
    if about.get("n_dropped"):
        one = about["n_dropped"] == 1
        sentences.append(
            f"{about['n_dropped']:,} {'row' if one else 'rows'} without a target {'was' if one else 'were'} dropped."
        )
    left_out = about.get("left_out") or ({} if e is None else e.left_out)
    if left_out:
        sentences.append(f"Not used: {', '.join(f'{name} ({reason})' for name, reason in left_out.items())}.")
    if d is None and not n_train:
        sentences.append("Rows that the model was trained on would make it look better than it is.")
    elif n_test:
        sentences.append("What is said of errors and columns comes from rows that the model was not trained on.")
    return " ".join(sentences)


def _examined(e: Examination, residuals: Any) -> dict[str, Any]:
    """What the template shows of columns, mistakes and trust."""
    labels = e.task == "classification"
    mistakes = [] if residuals is None else [residuals]
    if e.calibration:
        mistakes.append(calibration_figure(e))
    outputs = {f"{one.scale} of {one.output}" for one in e.effects} if labels else {"prediction"}
    points = ", in percentage points," if any(one.scale == "probability" for one in e.effects) else ""
    return {
        "ranked": None if e.ranking is None else importance_bars(e.ranking),
        "scoring": "" if e.ranking is None else e.ranking.in_words(),
        "effects": effect_figures(e),
        "adds_to": f"the {next(iter(outputs), 'prediction')}{points}",
        "mistakes": mistakes,
        "along": [(short(one.column, 80), along_bars(e, one)) for one in e.along],
        "worst": [
            {
                "row": f"{row.row:,}",
                "true": row.true if labels else plain(row.true),
                "predicted": row.predicted if labels else plain(row.predicted),
                "error": percent(row.error) if labels and row.error == row.error else plain(row.error),
                "reasons": [
                    f"{short(name, 60)} = {short(value, 60)}: {signed(added)}" for name, value, added in row.reasons
                ],
            }
            for row in e.worst
        ],
    }


def plain(value: float) -> str:
    """A target as people write it, without powers of ten up to a thousand million."""
    return minus(f"{value:,.0f}") if 1e4 <= abs(value) < 1e9 else readable(value, 4)


def signed(value: float) -> str:
    """A number with its sign."""
    text = plain(value) if abs(value) >= 1e4 else readable(value)
    return f"+{text}" if value > 0.0 else text


def _laboratory(d: Diagnosis) -> dict[str, Any]:
    """What the template shows of γ."""
    start = next((line.index for line in d.rules if line.rule == d.verdict.recommended), 0)
    return {
        "columns": [column for column in COLUMNS if column[0] != "test_error" or d.test_error is not None],
        "finite": finite,
        "words": partial(_words, d),
        "figures": gamma_figures(d, start),
        "main_rules": main_rules(d),
        "view": _view(d, start),
    }


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


def _advice(d: Diagnosis | None, e: Examination | None) -> list[str]:
    """What to change, as options of the program if the reader came from there, else as parameters."""
    command = d.table["command"] if d is not None else e.command if e is not None else ""
    how: Literal["command", "python"] = "command" if command else "python"
    good = d.goodness if d is not None else e.goodness if e is not None else None
    of_model = () if good is None else good.advice
    of_columns = () if d is None else d.table["advice"]
    return [advice.sentence(how) for advice in (*of_model, *of_columns)]


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
