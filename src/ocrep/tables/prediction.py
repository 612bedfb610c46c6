"""Predictions for the rows of a file, block by block in constant memory."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ocrep._files.formats import DataError, FilePath, check_columns, format_of, nearest
from ocrep._files.reading import Reading
from ocrep._files.row_file import TableBlock, column_names, count_rows, read_blocks
from ocrep._files.writing import STANDARD_OUTPUT, table_writer
from ocrep._rows.checks import MANY_LABELS
from ocrep.tables.coding import MISSING
from ocrep.tables.problem import StageProgress, UsageError, silent
from ocrep.tables.training import Description, describe, known_texts

CSV_DIGITS = 6


def predict_file(
    model: Any,
    source: FilePath,
    out: FilePath,
    *,
    ids: Sequence[str] | None = None,
    proba: bool | None = None,
    std: bool = False,
    allow_unseen: bool = False,
    reading: Mapping[str, Any] | None = None,
    digits: int | None = None,
    progress: StageProgress = silent,
) -> int:
    """Write the kept columns and a column `prediction` for each row, and return the number of rows.

    `ids` are the columns to copy; None copies the model's id columns that the file has. `proba` adds the probability of
    each class (None: if the model has them, and classes are few), `std` the standard deviation of each prediction. A
    text that was not seen in training raises a `DataError`, or counts as the most frequent text of its column if
    `allow_unseen`. The file is read as the one of training was, but for the fields of `Reading` that `reading` has.
    Numbers are rounded to `digits` significant digits: None stands for 6 in CSV files, which people read, and for all
    in others. The suffixes give the formats; "-" is CSV on standard output.
    """
    about = describe(model)
    if about is None:
        raise UsageError("The model does not know the names of its columns: use one that `ocrep fit` has made.")
    if proba is None:
        proba = hasattr(model, "predict_proba") and len(model.classes_) <= MANY_LABELS
    _check_request(model, about, proba=proba, std=std)
    if digits is None and (os.fspath(out) == STANDARD_OUTPUT or format_of(out).kind == "csv"):
        digits = CSV_DIGITS
    how = Reading.from_json(about.reading, **(reading or {}))
    kept = _kept(source, about, ids, how)
    known = {} if allow_unseen else {name: set(texts) for name, texts in known_texts(model).items()}
    total = count_rows(source)
    done = 0
    with table_writer(out) as write, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Found unknown categories")  # as `allow_unseen` says
        for block in read_blocks(source, about.kinds, keep=kept, reading=how):
            _check_texts(block, known)
            write(_predicted(model, block, proba=proba, std=std, digits=digits))
            done += len(block.inputs)
            progress("Predicting", done, total)
    return done


def _check_request(model: Any, about: Description, *, proba: bool, std: bool) -> None:
    if std and about.task != "regression":
        raise UsageError("--std needs a regression, and this model classifies: use --proba instead.")
    last = model[-1] if isinstance(model, Pipeline) else model
    if std and "return_std" not in signature(last.predict).parameters:
        raise UsageError(f"--std needs a model that knows its deviations, and a {type(last).__name__} does not.")
    if proba and not hasattr(model, "predict_proba"):
        if about.task == "classification":
            raise UsageError("--proba needs a classifier with probabilities: train it without --no-calibrate.")
        raise UsageError("--proba needs a classifier, and this model is a regression: use --std instead.")


def _kept(source: FilePath, about: Description, ids: Sequence[str] | None, reading: Reading) -> list[str]:
    """The columns to copy, after checking that the file has them and the model's inputs."""
    names = column_names(source, reading)
    known = set(names)
    lacking = [name for name in about.kinds if name not in known]
    if lacking:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        near = nearest(lacking[0], names)
        raise DataError(f"{source} has no column {lacking[0]!r}{more}, which the model needs: {near}")
    check_columns(source, ids or (), names)
    return [name for name in about.ids if name in known] if ids is None else list(dict.fromkeys(ids))


def _check_texts(block: TableBlock, known: dict[str, set[str]]) -> None:
    for name, texts in known.items():
        values = block.inputs[name].fillna(MISSING)
        if set(values.unique()) <= texts:
            continue
        row = int(np.flatnonzero(~values.isin(list(texts)).to_numpy())[0])
        what = "no text" if values.iloc[row] == MISSING else repr(values.iloc[row])
        raise DataError(
            f"Column {name!r} holds {what} in row {block.start + row + 1}, which was not seen in training: "
            "correct it, or use --allow-unseen to take the most frequent text in its place."
        )


def _predicted(model: Any, block: TableBlock, *, proba: bool, std: bool, digits: int | None) -> Any:
    predicted = model.predict(block.inputs, return_std=True) if std else [model.predict(block.inputs)]
    if np.ndim(predicted[0]) != 1:
        raise UsageError("The model predicts several targets, and a file has one column for them: predict in Python.")
    added: dict[str, np.ndarray] = dict(zip(("prediction", "std"), predicted, strict=False))
    if proba:
        names = [f"probability_{label}" for label in model.classes_]
        added |= dict(zip(names, model.predict_proba(block.inputs).T, strict=True))
    for name, values in added.items():
        _check_finite(name, values, block.start)
    for taken in (name for name in added if name in block.kept.columns):
        raise DataError(f"The id column {taken!r} has the name of an output column: rename it.")
    if digits is not None:
        added = {name: _rounded(values, digits) for name, values in added.items()}
    return block.kept.assign(**added)


def _check_finite(name: str, values: np.ndarray, start: int) -> None:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = start + int(np.flatnonzero(~np.isfinite(values))[0]) + 1
        raise DataError(f"Row {row} is so far from those of training that its {name} is no finite number: correct it.")


def _rounded(values: np.ndarray, digits: int) -> np.ndarray:
    """Numbers with at most `digits` significant digits; labels as they are."""
    if values.dtype.kind != "f":
        return values
    return np.array([float(f"{value:.{digits}g}") for value in values.tolist()])
