"""The inputs of a graph: one array of numbers, or one input per column where columns are selected by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline

from ocrep.onnx.imputer import fills_text
from ocrep.onnx.network import OnnxExportError


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a graph."""

    name: str
    width: int
    text: bool = False


def inputs_of(model: Any, example: Any = None) -> list[Input]:
    """The inputs that a fitted model needs; the example says which columns are text, or else the fitted steps do."""
    if sparse.issparse(example):
        raise OnnxExportError("A graph takes dense arrays, and the example is sparse: give example.toarray().")
    first = _first_step(model)
    if not hasattr(first, "n_features_in_"):
        raise OnnxExportError(f"A graph takes columns of numbers or text, and the model begins with {first!r}.")
    if not isinstance(first, ColumnTransformer):
        return [Input("X", first.n_features_in_)]
    names = getattr(first, "feature_names_in_", None)
    text = _text_columns(first) if example is None else _text_in(example, first.n_features_in_)
    if names is not None:
        return [Input(str(name), 1, place in text) for place, name in enumerate(names)]
    if text:
        raise OnnxExportError(
            "The model selects text columns by position, and one ONNX input holds one type: "
            "fit it on a data frame, with columns selected by name."
        )
    return [Input("X", first.n_features_in_)]


def _first_step(model: Any) -> Any:
    while isinstance(model, Pipeline):
        model = model.steps[0][1]
    return model


def _text_in(example: Any, n_columns: int) -> set[int]:
    """The columns of a data frame that hold something else than numbers."""
    if getattr(example, "ndim", 0) != 2 or not hasattr(example, "dtypes") or example.shape[1] != n_columns:
        raise OnnxExportError(f"The example must be a data frame with the {n_columns} columns the model was fitted on.")
    return {place for place, kind in enumerate(example.dtypes) if getattr(kind, "kind", "O") not in "iufb"}


def _text_columns(columns: ColumnTransformer) -> set[int]:
    text = set()
    for name, step, _ in columns.transformers_:
        places = columns._transformer_to_input_indices[name]  # scikit-learn offers no public way to resolve columns
        if not isinstance(step, str):
            text |= {place for place, is_text in zip(places, _takes_text(_first_step(step)), strict=False) if is_text}
    return text


def _takes_text(step: Any) -> Iterator[bool]:
    """For each column of a fitted step, whether it holds text."""
    if isinstance(step, SimpleImputer):
        yield from [fills_text(step)] * len(step.statistics_)
    for categories in getattr(step, "categories_", ()):
        yield any(isinstance(value, str) for value in np.asarray(categories).tolist())
