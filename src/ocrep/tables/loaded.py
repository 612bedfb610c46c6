"""A model of a table that was read from a file: whether it can predict rows of such a table."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas
from sklearn.pipeline import Pipeline

from ocrep._files.reading import Reading
from ocrep.serialization.annotations import check_annotated
from ocrep.tables.choice import LayerChoice
from ocrep.tables.training import ATTRIBUTE, Description, describe, example_rows, known_texts


def check_description(model: Any) -> None:
    """Raise an error unless a model of a table predicts finite numbers, or labels, for a row of such a table."""
    about = describe(model)
    if about is None:
        return
    for part in (about, Reading.from_json(about.reading)):
        check_annotated(part)
    if not about.kinds:
        raise ValueError("it has no columns.")
    _check_scores(about)
    choice = LayerChoice.of(model[-1] if isinstance(model, Pipeline) else model)
    if choice is not None:
        choice.sentences()  # its numbers are numbers
    rows = _rows(model)
    for n_rows in (1, len(rows)):  # so that an array of any other length is noticed
        _check_predictions(model, rows[:n_rows])


def _rows(model: Any) -> pandas.DataFrame:
    """A row such as those of training, and another: with all its values missing, if the model was made for tables."""
    row, texts = example_rows(model), known_texts(model)
    if not set(texts) <= set(row):
        raise ValueError("it does not know the names of its columns.")
    for name, known in texts.items():  # a name may be any text, so it is no keyword
        row[name] = known[:1]
    return row.reindex([0, 1]) if hasattr(model, ATTRIBUTE) else row.loc[[0, 0]]


def _check_scores(about: Description) -> None:
    numbers = [about.n_rows, *about.scores.values()]
    if not all(isinstance(number, float) or (isinstance(number, int) and abs(number) < 2**63) for number in numbers):
        raise ValueError("its scores are not numbers.")
    error, other = ("rmse", "error") if about.task == "regression" else ("error", "rmse")
    if about.scores and (other in about.scores or not {error, f"baseline_{error}"} <= set(about.scores)):
        raise ValueError("its scores are not those of its task.")


def _check_predictions(model: Any, rows: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs = [model.predict_proba(rows)] if hasattr(model, "predict_proba") else []
        outputs += [np.atleast_1d(model.predict(rows))]
    if len(outputs) == 2 and outputs[0].shape != (len(rows), len(model.classes_)):
        raise ValueError("its probabilities are not those of its classes.")
    for values in outputs:
        if len(values) != len(rows) or (values.dtype.kind == "f" and not np.isfinite(values).all()):
            raise ValueError("its predictions are not finite.")
