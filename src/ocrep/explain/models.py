"""`Opened`: a fitted model with rows to explain it on, as the numbers that its network reads.

A table model is a coder before a network: each column becomes one number or several, and is explained as a whole. A
network by itself reads its columns as they are. For a Pipeline the last step is explained, in the columns that it
reads.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ocrep._files.formats import DataError, nearest
from ocrep._linalg.arrays import to_host
from ocrep._linalg.parallel import slices_of
from ocrep.estimators.base import ClosedForm, calibration_of
from ocrep.tables import TableClassifier, TableRegressor
from ocrep.tables.coder import CodedColumn, TableCoder
from ocrep.tables.frames import Kind, Values


@dataclass(frozen=True, eq=False)
class Column:
    """A column as the user knows it."""

    name: str
    kind: Kind
    values: Values
    """Of the rows: numbers, days, ranks or texts."""
    places: np.ndarray
    """Which of the network's inputs are made of it."""
    coded: CodedColumn | None
    """How they are made; None for numbers that are used as they are."""

    def inputs(self, values: Values) -> np.ndarray:
        """The network's inputs for other values: rows × places."""
        if self.coded is None:
            return np.asarray(values)[:, None]
        return np.column_stack([part(cast(Any, values)) for part in self.coded.parts])


@dataclass(frozen=True, eq=False)
class Opened:
    """A model and rows."""

    network: Any
    """The estimator that reads `inputs`: a network, or an estimator of scikit-learn behind a coder of tables."""
    columns: list[Column]
    inputs: np.ndarray
    index: Any
    """The names of the rows, if they have some."""
    left_out: dict[str, str]
    """Columns that the model does not use, with the reason."""
    logarithm: bool = False
    """Whether the network has learned the logarithm of the target."""

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.inputs)

    def column(self, name: Any) -> Column:
        """A column by its name, which may be a number in pandas, or by its place."""
        names = [column.name for column in self.columns]
        if str(name) in (*names, *self.left_out):
            name = str(name)
        if isinstance(name, int | np.integer) and not isinstance(name, bool):
            if not 0 <= int(name) < len(names):
                raise DataError(f"Column {int(name)} is not there: the model has {len(names)} columns, from 0.")
            return self.columns[int(name)]
        if name in names:
            return self.columns[names.index(name)]
        if isinstance(name, str) and name in self.left_out:
            reason = self.left_out[name].replace("ignored", "is ignored")
            raise DataError(f"Column {name!r} is not used by the model: it {reason}.")
        raise DataError(f"The model knows no column {name!r}: {nearest(str(name), names)}")


def opened(model: Any, X: Any) -> Opened:
    """Read rows as the model does."""
    index = getattr(X, "index", None) if hasattr(X, "iloc") else None
    if isinstance(model, Pipeline):
        check_is_fitted(model)
        before, last = model[:-1], model[-1]
        rows = before.transform(X) if len(model) > 1 else X
        found = opened(last, rows)
        if hasattr(rows, "columns") or isinstance(last, TableRegressor | TableClassifier) or not len(before):
            names = [column.name for column in found.columns]
        else:
            names = _names_out(before, len(found.columns))
        columns = [
            Column(name, own.kind, own.values, own.places, own.coded)
            for name, own in zip(names, found.columns, strict=True)
        ]
        return Opened(found.network, columns, found.inputs, index, found.left_out, found.logarithm)
    check_is_fitted(model)
    if isinstance(model, TableRegressor | TableClassifier):
        return _opened_table(model, X, index)
    if isinstance(model, ClosedForm):
        checked = model._check_new_rows(X, "explain")
        dense = checked.toarray() if sparse.issparse(checked) else to_host(checked)
        inputs = dense.astype(np.float64, copy=False)
        names = getattr(model, "feature_names_in_", [f"x{i}" for i in range(inputs.shape[1])])
        columns = [Column(str(name), "number", inputs[:, i], np.array([i]), None) for i, name in enumerate(names)]
        return Opened(model, columns, inputs, index, {})
    raise TypeError(
        f"ocrep.explain reads networks, stacks and table models of ocrep, and {type(model).__name__} is none: use "
        "sklearn.inspection for it."
    )


def _opened_table(model: Any, X: Any, index: Any) -> Opened:
    coder: TableCoder = model.coder_
    frame = coder._frame_of(X, type(model).__name__)
    if not frame.n_rows:
        raise DataError("X has no rows.")
    columns, place = [], 0
    for coded, values in zip(coder.columns_, coder.values(frame), strict=True):
        n_outputs = sum(len(part.names) for part in coded.parts)
        columns.append(Column(coded.name, coded.kind, values, np.arange(place, place + n_outputs), coded))
        place += n_outputs
    inputs = np.column_stack([column.inputs(column.values) for column in columns])
    return Opened(model.model_, columns, inputs, index, coder.left_out_, learns_logarithm(model))


def _names_out(before: Pipeline, n_columns: int) -> list[str]:
    try:
        return [str(name) for name in before.get_feature_names_out()]
    except (AttributeError, ValueError, TypeError):  # steps that name nothing
        return [f"x{i}" for i in range(n_columns)]


# ------------------------------------------------------------------------------
# What is explained: a prediction or its logarithm, a probability or log-odds, of one output.


def member_outputs(network: ClosedForm, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """HW + b of each network of a stack by itself, members × rows × outputs, and their weights, which add up to 1.

    Only the stack has an intercept, and all members are given it. A network that is no stack is its only member.
    """
    parts, weights = maps_of(network)
    intercept = np.asarray(to_host_or_number(network.intercept_))
    found = np.empty((len(parts), len(inputs), parts[0][1].shape[1]))
    for number, (features, W) in enumerate(parts):
        for rows in slices_of(len(inputs), W.shape[0] + inputs.shape[1]):
            found[number, rows] = features(inputs[rows]) @ W / weights[number] + intercept
    return found, weights


def maps_of(network: ClosedForm) -> tuple[list[tuple[Any, np.ndarray]], np.ndarray]:
    """The layers of a network, on the host, each with its rows of the output weights; and the weights of a stack."""
    W = to_host(network._output_weights).astype(np.float64, copy=False)
    W = W.reshape(-1, W.shape[-1]).T
    parts: list[tuple[Any, np.ndarray]] = [(own.to_host(), W[columns]) for own, columns in network._learned.maps]
    shares = getattr(network, "weights_", np.ones(1))
    return parts or [(_unchanged, W)], shares[shares > 0.0]


def _unchanged(inputs: np.ndarray) -> np.ndarray:
    return inputs


def to_host_or_number(values: Any) -> Any:
    """An intercept: one number, or an array of them on the host."""
    return values if isinstance(values, float | int) else to_host(values)


def gives_probabilities(network: Any) -> bool:
    """Whether a network, or another estimator, has probabilities."""
    return is_classifier(network) and hasattr(network, "predict_proba")


def answering_method(network: Any) -> str:
    """The method that predicts numbers, or gives each class a probability or a score; "" if there is none."""
    if not is_classifier(network):
        return "predict"
    by_pairs = getattr(network, "decision_function_shape", "ovr") == "ovo"  # scores of pairs of classes, as of SVC
    known = ["predict_proba", *([] if by_pairs else ["decision_function"])]
    return next((method for method in known if hasattr(network, method)), "")


def _answers_of_another(network: Any, inputs: np.ndarray) -> np.ndarray:
    """The answers of an estimator that is no network of ocrep, rows × outputs."""
    method = answering_method(network)
    if not method:
        raise TypeError(
            f"{type(network).__name__} names a class for each row, without a probability or a score for each class: an "
            "effect needs one of them, and importance does not."
        )
    found: np.ndarray = getattr(network, method)(inputs).reshape(len(inputs), -1)
    return np.hstack([-found, found]) if method == "decision_function" and found.shape[1] == 1 else found


def learns_logarithm(model: Any) -> bool:
    """Whether the network of a table model has learned the logarithm of the target."""
    return getattr(model, "target_transform", None) is not None


def exponential(network: Any) -> Any:
    """A network that predicts the target, made of one that has learned its logarithm."""

    def predict(X: Any) -> Any:
        return np.exp(network.predict(X))

    found = copy(network)
    found.predict = predict
    return found


class Answers:
    """What a model predicts, probabilities if it gives some, and what each network of a stack would predict alone.

    A stack keeps the sum of its members' intercepts, and not each of them. But by least squares with an intercept, the
    outputs of each member have the mean of the targets on the training rows, and so do those of the stack. So each
    member is given the constant with which its mean output over the rows is that of the stack. With any other, a member
    could give probabilities of 0 or 1 everywhere. Where outputs are predictions, constants cancel in differences.
    """

    def __init__(self, rows: Opened) -> None:
        self._rows = rows
        self._constants: Any = 0.0
        self.weights = np.ones(1)
        """Of the members; they add up to 1."""
        curved = is_classifier(rows.network) or rows.logarithm
        inputs = rows.inputs if curved else rows.inputs[:1]
        if isinstance(rows.network, ClosedForm):
            outputs, self.weights = member_outputs(rows.network, inputs)
            means = outputs.mean(axis=1, keepdims=True)
            self._constants = np.tensordot(self.weights, means, axes=1) - means
            whole = self._said(np.tensordot(self.weights, outputs, axes=1))
        else:
            whole, _ = self(inputs)
        self.average: np.ndarray = whole.mean(axis=0)
        """The mean of each output over the rows; of numbers, those of the first row."""

    def __call__(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The answers of the model, rows × outputs, and those of its members, members × rows × outputs."""
        network = self._rows.network
        if not isinstance(network, ClosedForm):
            said = _answers_of_another(network, inputs)
            said = np.exp(said) if self._rows.logarithm else said
            return said, said[None]
        outputs, weights = member_outputs(network, inputs)
        whole = np.tensordot(weights, outputs, axes=1)
        said = self._said(whole)
        members = said[None] if len(weights) == 1 else np.stack([self._said(own) for own in outputs + self._constants])
        return said, members

    def _said(self, outputs: np.ndarray) -> np.ndarray:
        network = self._rows.network
        if gives_probabilities(network):
            return np.exp(calibrator_on_host(network).log_probabilities(outputs))
        if is_classifier(network) and outputs.shape[1] == 1:
            return np.concatenate([-outputs, outputs], axis=1)
        return np.exp(outputs) if self._rows.logarithm else outputs


def calibrator_on_host(network: ClosedForm) -> Any:
    """What makes log-odds and probabilities of the outputs."""
    calibrator = calibration_of(network)
    return type(calibrator)(to_host(calibrator.slope), to_host(calibrator.offset))


def chosen_output(network: Any, output: Any, average: np.ndarray) -> tuple[int, Any]:
    """The number and the name of the output that is explained; `average` is the mean of each over the rows."""
    n_outputs = len(average)
    if is_classifier(network):
        labels = np.asarray(network.classes_).tolist()
        if output is None:
            number = 1 if n_outputs == 2 else int(np.argmax(average))
        elif output in labels:
            number = labels.index(output)
        else:
            raise ValueError(
                f"output={output!r} is no class of the model: {nearest(str(output), list(map(str, labels)))}"
            )
        return number, labels[number]
    if output is None:
        return 0, 0
    if isinstance(output, int | np.integer) and 0 <= int(output) < n_outputs:
        return int(output), int(output)
    raise ValueError(f"output={output!r} must be the number of a target, from 0 to {n_outputs - 1}.")
