"""Predictions for the rows of a file, block by block in constant memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas
import pyarrow

from ocrep._files.convert import as_kind
from ocrep._files.formats import DataError, FilePath, check_columns, format_of, nearest
from ocrep._files.readers import PLAIN, NotNumbersError, table_reader
from ocrep._files.reading import Reading
from ocrep._files.writing import STANDARD_OUTPUT, table_writer
from ocrep._rows.checks import MANY_LABELS
from ocrep.tables.estimators import TableClassifier, TableRegressor
from ocrep.tables.frames import Frame, Kind, Words, is_missing, values_of, whole_array
from ocrep.tables.rows import Progress, silent
from ocrep.tables.training import UsageError, as_data_errors

CSV_DIGITS = 6
_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
_SEVERAL = "The model predicts several targets, and a file has one column for them: predict in Python."


@dataclass(slots=True)
class Predicted:
    """What was predicted, and what deserves attention."""

    n_rows: int = 0
    unlike: dict[str, int] = field(default_factory=dict)
    """Rows with a value that training had no like of, by column: an unknown text, or a number far outside."""
    n_unlike: int = 0
    """Rows with such a value in any column."""


def predict_file(
    model: Any,
    source: FilePath,
    out: FilePath,
    *,
    ids: Sequence[str] | None = None,
    proba: bool | None = None,
    interval: float | None = None,
    reading: Mapping[str, Any] | None = None,
    digits: int | None = None,
    progress: Progress = silent,
) -> Predicted:
    """Write the kept columns and a column `prediction` for each row.

    `ids` are the columns to copy; None copies the model's id columns that the file has. `proba` adds the probability of
    each class (None: if the model has them, and classes are few), `interval` the ends of an interval that holds the
    target with this probability. The file is read as the one of training was, but for the fields of `Reading` that
    `reading` has. Numbers are rounded to `digits` significant digits: None stands for 6 in CSV files, which people
    read, and for all in others. The suffixes give the formats; "-" is CSV on standard output.
    """
    needed = _needed(model)
    if proba is None:
        proba = hasattr(model, "predict_proba") and len(model.classes_) <= MANY_LABELS
    _check_request(model, proba=proba, interval=interval)
    if digits is None and (os.fspath(out) == STANDARD_OUTPUT or format_of(out).kind == "csv"):
        digits = CSV_DIGITS
    how = _how(model, reading)
    kept = _kept(source, list(needed), getattr(model, "source_", {}).get("ids", ()), ids, how)
    found = Predicted()
    with table_writer(out) as write:
        for start, frame, own in _blocks(source, needed, kept, how, progress):
            rows: Any = frame
            if isinstance(model, TableRegressor | TableClassifier):
                _count_unlike(model, frame, start, found)
            else:
                rows = pandas.DataFrame({name: as_kind(frame.column(name), "number", name, start) for name in needed})
            write(_predicted(model, rows, own, start, proba=proba, interval=interval, digits=digits))
            found.n_rows += frame.n_rows
    return found


class Told(NamedTuple):
    """Rows of a file that a model can be explained on."""

    frame: Frame
    """The columns that the model needs."""
    y: np.ndarray
    """Their targets."""
    numbers: np.ndarray
    """Their numbers in the file, from 0."""
    n_rows: int
    """Rows of the file."""
    n_dropped: int
    """Rows without a target."""


def rows_with_targets(
    model: Any,
    source: FilePath,
    target: str | None,
    *,
    most: int,
    reading: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> Told:
    """Read the inputs and targets of a file, or of at most so many of its rows, drawn at random.

    `target` None is the column that the model was trained on.
    """
    needed, how = _needed(model), _how(model, reading)
    name = target or getattr(model, "source_", {}).get("target")
    if name is None:
        raise UsageError("The model does not know the name of its target: give --target COLUMN, or --row NUMBER.")
    if name in needed:
        raise UsageError(f"Column {name!r} is an input of the model: give another --target.")
    names = table_reader(source, reading=how).column_names()
    _kept(source, list(needed), (), (), how)
    if name not in names:
        raise DataError(
            f"{source} has no column {name!r}, the target, by which columns are ranked: give --target COLUMN, or --row "
            "NUMBER to explain one prediction."
        )
    random = np.random.default_rng(0)
    kind: Kind = "text" if hasattr(model, "classes_") else "number"
    parts: list[tuple[np.ndarray, np.ndarray, Frame]] = []
    n_rows = n_known = 0
    for start, frame, _ in _blocks(source, {**needed, name: kind}, [], how, progress):
        known = np.flatnonzero(~is_missing(values_of(frame.columns[name], kind, name, start=start)))
        n_rows, n_known = start + frame.n_rows, n_known + len(known)
        parts.append((random.random(len(known)), start + known, frame.take(known)))
        if sum(len(keys) for keys, *_ in parts) > 2 * most:
            parts = [_fewer(parts, most)]
    if not n_known:
        raise DataError(f"{source} has no row with a target in column {name!r}.")
    _, numbers, frame = _fewer(parts, most)
    target_column = frame.columns.pop(name)
    return Told(frame, _targets(model, target_column, name), numbers, n_rows, n_rows - n_known)


def row_of(
    model: Any, source: FilePath, row: int, *, reading: Mapping[str, Any] | None = None, progress: Progress = silent
) -> Frame:
    """One row of a file by its number, from 1."""
    needed, how = _needed(model), _how(model, reading)
    _kept(source, list(needed), (), (), how)
    start = 0
    for start, frame, _ in _blocks(source, needed, [], how, progress):
        if start < row <= start + frame.n_rows:
            return frame.take(np.array([row - 1 - start]))
        start += frame.n_rows
    raise DataError(f"{source} has {start:,} {'row' if start == 1 else 'rows'}, and no row {row:,}: rows count from 1.")


def _needed(model: Any) -> dict[str, str]:
    needed = columns_of(model)
    if needed is None:
        raise UsageError("The model does not know the names of its columns: use one that `ocrep fit` has made.")
    return needed


def _how(model: Any, reading: Mapping[str, Any] | None) -> Reading:
    return Reading.from_json(getattr(model, "source_", {}).get("reading", {}), **(reading or {}))


def _fewer(parts: list[tuple[np.ndarray, np.ndarray, Frame]], most: int) -> tuple[np.ndarray, np.ndarray, Frame]:
    """One part of those rows whose keys are smallest, in the order of the file."""
    keys = np.concatenate([key for key, *_ in parts])
    kept = np.sort(np.argsort(keys, kind="stable")[:most])
    numbers = np.concatenate([numbers for _, numbers, _ in parts])
    frames = [frame for *_, frame in parts]
    columns = {
        name: whole_array(pyarrow.chunked_array([frame.columns[name] for frame in frames]))
        for name in frames[0].columns
    }
    return keys[kept], numbers[kept], Frame(columns, len(keys), named=True).take(kept)


def _targets(model: Any, column: Any, name: str) -> np.ndarray:
    """The targets as the model has them: numbers, or its labels; a label that it does not know stays as it is."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        return np.asarray(values_of(column, "number", name))
    words = values_of(column, "text", name)
    assert isinstance(words, Words)
    texts = [words.texts[code] for code in words.codes.tolist()]
    if classes.dtype.kind in "iuf":
        try:
            numbers = np.array([float(text) for text in texts])
        except ValueError:
            raise DataError(f"Column {name!r} must hold the labels of training, which are numbers.") from None
        with np.errstate(invalid="ignore"):
            labels = numbers.astype(classes.dtype)
        return labels if np.array_equal(labels, numbers) else numbers  # 1.5 is not the label 1
    if classes.dtype.kind == "b":
        other = next((text for text in texts if text.lower() not in (*_TRUE, *_FALSE)), None)
        if other is not None:
            raise DataError(f"Column {name!r} must hold True or False, the labels of training, and not {other!r}.")
        return np.array([text.lower() in _TRUE for text in texts])
    return np.array(texts, dtype=object if classes.dtype.kind == "O" else None)


def columns_of(model: Any) -> dict[str, str] | None:
    """The columns that a model needs, with their kinds; None if it does not know them.

    For a model that was not trained on a table, they are its `feature_names_in_`, all taken as numbers.
    """
    if isinstance(model, TableRegressor | TableClassifier):
        return {column.name: column.kind for column in model.coder_.columns_}
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else dict.fromkeys(map(str, names), "number")


def _check_request(model: Any, *, proba: bool, interval: float | None) -> None:
    labels = hasattr(model, "classes_")
    if np.ndim(getattr(model, "intercept_", 0.0)) > 0 and not labels:
        raise UsageError(_SEVERAL)
    if interval is not None and labels:
        raise UsageError("--interval needs a regression, and this model classifies: use --proba instead.")
    if interval is not None and not hasattr(model, "predict_interval"):
        raise UsageError(f"--interval needs a model with intervals, and a {type(model).__name__} has none.")
    if proba and not labels:
        raise UsageError("--proba needs a classifier, and this model is a regression: use --interval instead.")
    if proba and not hasattr(model, "predict_proba"):
        raise UsageError("--proba needs a classifier with probabilities, and this one has none.")


def _kept(
    source: FilePath, needed: list[str], own: Sequence[str], ids: Sequence[str] | None, reading: Reading
) -> list[str]:
    """The columns to copy, after checking that the file has them and the model's inputs."""
    names = table_reader(source, reading=reading).column_names()
    known = set(names)
    lacking = [name for name in needed if name not in known]
    if lacking:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        near = nearest(lacking[0], names)
        raise DataError(f"{source} has no column {lacking[0]!r}{more}, which the model needs: {near}")
    check_columns(source, ids or (), names)
    return [name for name in own if name in known] if ids is None else list(dict.fromkeys(ids))


def _blocks(
    source: FilePath, needed: dict[str, str], kept: list[str], reading: Reading, progress: Progress
) -> Iterator[tuple[int, Frame, Any]]:
    """The rows of a file: the number of rows before, the columns that the model needs, and the columns to copy.

    The latter stay the texts of a CSV file (007 stays 007), or have the types of a Parquet or Arrow file.
    """
    reader = table_reader(source, reading=reading)
    names = list(dict.fromkeys([*needed, *kept]))
    # Numbers that are written as usual are read by Arrow itself, which is fast.
    fast = [name for name, kind in needed.items() if kind == "number" and name not in kept and reading == PLAIN]
    types = {name: pyarrow.float64() if name in fast else pyarrow.string() for name in names}
    start = 0
    with reader.reading():
        total = reader.n_rows()
        try:
            for batch in reader.batches(names, types):
                if batch.num_rows:
                    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                    inputs = {name: reading.column(columns[name]) for name in needed}
                    own = batch.select(kept).replace_schema_metadata(None)  # what pandas left there may be damaged
                    yield (
                        start,
                        Frame(inputs, batch.num_rows, named=True),
                        own.to_pandas(types_mapper=pandas.ArrowDtype),
                    )
                    start += batch.num_rows
                    progress("Predicting", start, total)
        except NotNumbersError as error:
            raise DataError(f"{error} The model was trained on numbers there.") from error
    if start == 0:
        raise DataError(f"{source} has a header but no rows.")


def _count_unlike(model: Any, frame: Frame, start: int, found: Predicted) -> None:
    odd = model.coder_.unlike_training(model.coder_.values(frame, start))
    for name, rows in odd.items():
        found.unlike[name] = found.unlike.get(name, 0) + int(rows.sum())
    if odd:
        found.n_unlike += int(np.logical_or.reduce(list(odd.values())).sum())


def _predicted(
    model: Any, rows: Any, kept: Any, start: int, *, proba: bool, interval: float | None, digits: int | None
) -> Any:
    predicted = model.predict(rows)
    if np.ndim(predicted) != 1:
        raise UsageError(_SEVERAL)
    added: dict[str, np.ndarray] = {"prediction": predicted}
    if interval is not None:
        with as_data_errors():  # few rows of training have no interval of a high coverage
            ends = model.predict_interval(rows, interval)
        added |= dict(zip(("lower", "upper"), ends.T, strict=True))
    if proba:
        names = [f"probability_{label}" for label in model.classes_]
        added |= dict(zip(names, model.predict_proba(rows).T, strict=True))
    for name, values in added.items():
        if name not in ("lower", "upper"):  # the ends of an interval may be infinite where rows are few
            _check_finite(name, values, start)
    for taken in (name for name in added if name in kept.columns):
        raise DataError(f"The id column {taken!r} has the name of an output column: rename it.")
    if digits is not None:
        added = {name: _rounded(values, digits) for name, values in added.items()}
    return kept.assign(**added)


def _check_finite(name: str, values: np.ndarray, start: int) -> None:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = start + int(np.flatnonzero(~np.isfinite(values))[0]) + 1
        raise DataError(f"Row {row} is so far from those of training that its {name} is no finite number: correct it.")


def _rounded(values: np.ndarray, digits: int) -> np.ndarray:
    """Numbers with at most `digits` significant digits; labels as they are."""
    if values.dtype.kind != "f":
        return values
    return np.array([float(f"{value:.{digits}g}") for value in values.tolist()])
