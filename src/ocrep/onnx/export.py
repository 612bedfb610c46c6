"""A fitted model as an ONNX graph or file, with inputs and outputs in the precision that the caller wants."""

from __future__ import annotations

import json
import os
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.utils.validation import check_is_fitted

from ocrep import __version__
from ocrep._choices import pick
from ocrep._files.atomic import replacing
from ocrep.onnx.converters import parser, register, require_skl2onnx
from ocrep.onnx.imputer import convert_imputer, set_imputer_shape
from ocrep.onnx.inputs import Input, inputs_of
from ocrep.onnx.network import ESTIMATORS, OnnxExportError

# Runtimes have supported these operator sets since 2023, and newer operators are not needed.
_OPSETS = {"": 18, "ai.onnx.ml": 3}


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
    inputs = inputs_of(model, example)
    graph = _double_graph(skl2onnx, model, inputs)
    _prepare_ends(graph.graph, inputs, single)
    _describe(graph, model)
    return graph


def save_onnx(model: Any, path: str | os.PathLike[str], *, dtype: str = "float32", example: Any = None) -> None:
    """Write the graph of `to_onnx` to a file; an interrupted save keeps an older file intact."""
    graph = to_onnx(model, dtype=dtype, example=example)
    with replacing(path) as part:
        part.write_bytes(graph.SerializeToString())


def _double_graph(skl2onnx: Any, model: Any, inputs: list[Input]) -> Any:
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


def _prepare_ends(graph: Any, inputs: list[Input], single: bool) -> None:
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
