"""Surveys as arrays of plain types, for files that are read without running code, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from ocrep._rows.sample import RowSample
from ocrep._rows.survey import Survey

Arrays = Mapping[str, np.ndarray]
_OBJECT = ".object"


def survey_to_arrays(survey: Survey) -> dict[str, np.ndarray]:
    """A survey of rows on the host."""
    held: dict[str, Any] = {
        "n_rows": survey.n_rows,
        "weight_sum": survey.weight_sum,
        "low": survey.low,
        "high": survey.high,
        "dtype": survey.dtype.name,
        "target_shape": np.array(survey.target_shape, dtype=np.int64),
    }
    optional = {"totals": survey.totals, "groups": survey.groups}
    held.update({name: values for name, values in optional.items() if values is not None})
    held.update(_plain("labels", survey.labels))
    held.update(_plain("columns", None if survey.columns is None else np.array(survey.columns)))
    if survey.sample is not None:
        held.update({f"sample.{name}": values for name, values in _sample_to_arrays(survey.sample).items()})
    return {name: np.asarray(values) for name, values in held.items()}


def survey_from_arrays(arrays: Arrays) -> Survey:
    """The survey that `survey_to_arrays` wrote."""
    columns = arrays.get("columns")
    sample = {name.removeprefix("sample."): array for name, array in arrays.items() if name.startswith("sample.")}
    return Survey(
        n_rows=int(arrays["n_rows"]),
        weight_sum=float(arrays["weight_sum"]),
        low=arrays["low"],
        high=arrays["high"],
        dtype=np.dtype(np.float32 if str(arrays["dtype"]) == "float32" else np.float64),
        labels=_restored("labels", arrays),
        totals=arrays.get("totals"),
        groups=arrays.get("groups"),
        target_shape=tuple(arrays["target_shape"].tolist()),
        columns=None if columns is None else tuple(columns.tolist()),
        sample=_sample_from_arrays(sample) if sample else None,
    )


def _sample_to_arrays(sample: RowSample) -> dict[str, Any]:
    held = {"size": sample.size, "hashes": sample.hashes, "weight": sample.weight, "labels": sample.labels}
    held.update(_plain("y", sample.y))
    if not sparse.issparse(sample.X):
        return {**held, "X": sample.X}
    X = sparse.csr_array(sample.X)
    return {**held, "X.data": X.data, "X.indices": X.indices, "X.indptr": X.indptr, "X.shape": np.array(X.shape)}


def _sample_from_arrays(arrays: Arrays) -> RowSample:
    X: Any = arrays.get("X")
    if X is None:
        parts = arrays["X.data"], arrays["X.indices"], arrays["X.indptr"]
        X = sparse.csr_matrix(parts, shape=tuple(arrays["X.shape"].tolist()))
    y = _restored("y", arrays)
    return RowSample(int(arrays["size"]), arrays["hashes"], X, y, arrays["weight"], bool(arrays["labels"]))


def _plain(name: str, values: np.ndarray | None) -> dict[str, np.ndarray]:
    """Texts of objects as texts; what is neither text nor number raises."""
    if values is None:
        return {}
    if values.dtype.kind != "O":
        return {name: values}
    plain = np.array(values.tolist())
    if plain.dtype.kind not in "biufU" or plain.tolist() != values.tolist():
        raise ValueError(f"{name} such as {values[0]!r} cannot be written: use texts or whole numbers.")
    return {name + _OBJECT: plain}


def _restored(name: str, arrays: Arrays) -> np.ndarray | None:
    objects = arrays.get(name + _OBJECT)
    return arrays.get(name) if objects is None else objects.astype(object)
