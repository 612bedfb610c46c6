"""A fitted model as an ONNX graph or file, with inputs and outputs in the precision that the caller wants."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ocrep import __version__
from ocrep._choices import pick
from ocrep._files.atomic import replacing
from ocrep.onnx.converters import (
    convert_imputer,
    fills_text,
    parser,
    register,
    require_skl2onnx,
    set_imputer_shape,
)
from ocrep.onnx.network import ESTIMATORS, OnnxExportError

# Runtimes have supported these operator sets since 2023, and newer operators are not needed.
_OPSETS = {"": 18, "ai.onnx.ml": 3}


@dataclass(frozen=True, slots=True)
class _Input:
    """One input of a graph."""

    name: str
    width: int
    text: bool = False


def to_onnx(model: Any, *, dtype: str = "float32", example: Any = None) -> Any:
    """Convert a fitted model, alone or at the end of a scikit-learn pipeline, to an ONNX graph.

    The graph computes in double. A model fitted on an array or on a data frame of numbers takes one input "X",
    (n_samples, n_features); a pipeline that begins with a `ColumnTransformer` on a data frame takes one input per
    column that it uses, (n_samples, 1), with the column's name: numbers or text. Regressors return "variable",
    (n_samples, n_targets); classifiers return "label", "scores" as in `decision_function`, and "probabilities" if
    calibrated.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library, or a fitted pipeline or search that contains one.
    dtype : {"float32", "float64"}, default="float32"
        Type of the numbers in inputs and results.
    example : data frame, default=None
        Some rows of input, to distinguish columns of text from columns of numbers where the fitted steps do not.

    Returns
    -------
    onnx.ModelProto
    """
    skl2onnx = require_skl2onnx()
    single = pick("dtype", dtype, {"float32": True, "float64": False})
    model = getattr(model, "best_estimator_", model)  # what a search over parameters found
    check_is_fitted(model)
    register()
    inputs = _inputs_of(model, example)
    graph = _double_graph(skl2onnx, model, inputs)
    _prepare_ends(graph.graph, inputs, single)
    _describe(graph, model)
    return graph


def save_onnx(model: Any, path: str | os.PathLike[str], *, dtype: str = "float32", example: Any = None) -> None:
    """Write the graph of `to_onnx` to a file; an interrupted save keeps an older file intact."""
    graph = to_onnx(model, dtype=dtype, example=example)
    with replacing(path) as part:
        part.write_bytes(graph.SerializeToString())


def _inputs_of(model: Any, example: Any = None) -> list[_Input]:
    """The inputs that a fitted model needs; the example says which columns are text, or else the fitted steps do."""
    if sparse.issparse(example):
        raise OnnxExportError("A graph takes dense arrays, and the example is sparse: give example.toarray().")
    first = _first_step(model)
    if not hasattr(first, "n_features_in_"):
        raise OnnxExportError(f"A graph takes columns of numbers or text, and the model begins with {first!r}.")
    if not isinstance(first, ColumnTransformer):
        return [_Input("X", first.n_features_in_)]
    names = getattr(first, "feature_names_in_", None)
    text = _text_columns(first) if example is None else _text_in(example, first.n_features_in_)
    if names is not None:
        return [_Input(str(name), 1, place in text) for place, name in enumerate(names)]
    if text:
        raise OnnxExportError(
            "The model selects text columns by position, and one ONNX input holds one type: "
            "fit it on a data frame, with columns selected by name."
        )
    return [_Input("X", first.n_features_in_)]


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


def _double_graph(skl2onnx: Any, model: Any, inputs: list[_Input]) -> Any:
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType

    types = [(one.name, (StringTensorType if one.text else DoubleTensorType)([None, one.width])) for one in inputs]
    try:
        return skl2onnx.convert_sklearn(
            model,
            name=type(model).__name__,
            initial_types=types,
            target_opset=_OPSETS,
            custom_parsers={kind: parser(DoubleTensorType) for kind in ESTIMATORS},
            custom_conversion_functions={SimpleImputer: convert_imputer},
            custom_shape_calculators={SimpleImputer: set_imputer_shape},
        )
    except (OnnxExportError, NotFittedError):
        raise
    except Exception as error:  # skl2onnx's converters raise errors of any type
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise OnnxExportError(
            f"skl2onnx cannot write a step of this {type(model).__name__}, for it says: {reason}"
        ) from error


def _prepare_ends(graph: Any, inputs: list[_Input], single: bool) -> None:
    """Rename inputs as the columns, drop those that no node reads, and cast numbers if single precision is wanted."""
    from onnx import TensorProto, helper

    read = {name for node in graph.node for name in node.input}
    first, last = [], []
    for value, wanted in zip(list(graph.input), inputs, strict=True):
        if value.name not in read:
            graph.input.remove(value)
            continue
        inner, value.name = value.name, wanted.name
        if single and _make_single(value):
            first.append(helper.make_node("Cast", [wanted.name], [_as_double(inner)], to=TensorProto.DOUBLE))
            _rename(graph, inner, _as_double(inner))
        else:
            _rename(graph, inner, wanted.name)
    for value in graph.output:
        if single and _make_single(value):
            _rename(graph, value.name, _as_double(value.name))
            last.append(helper.make_node("Cast", [_as_double(value.name)], [value.name], to=TensorProto.FLOAT))
    nodes = [*first, *graph.node, *last]
    del graph.node[:]
    graph.node.extend(nodes)


def _make_single(value: Any) -> bool:
    """Declare an input or output of type double as single; return whether it was double."""
    from onnx import TensorProto

    number = value.type.tensor_type
    if number.elem_type != TensorProto.DOUBLE:
        return False
    number.elem_type = TensorProto.FLOAT
    return True


def _as_double(name: str) -> str:
    # skl2onnx puts no colons into names, so this name is unique.
    return f"{name}:double"


def _rename(graph: Any, old: str, new: str) -> None:
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [new if name == old else name for name in names]


def _describe(graph: Any, model: Any) -> None:
    """Add the producer, the type of model and the names of its features to the graph."""
    from onnx import helper

    graph.producer_name, graph.producer_version = "ocrep", __version__
    names = getattr(model, "feature_names_in_", None)
    about = {} if names is None else {"feature_names": json.dumps([str(name) for name in names])}
    helper.set_model_props(graph, {"model": type(model).__name__, **about})
