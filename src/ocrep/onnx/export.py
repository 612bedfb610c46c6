"""A fitted model as an ONNX file: computed in double, with inputs and outputs of the precision that is asked for."""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.utils.validation import check_is_fitted

from ocrep._choices import pick
from ocrep._files.atomic import replacing
from ocrep.onnx.converters import ESTIMATORS, parser, register, require_skl2onnx
from ocrep.onnx.imputer import convert_imputer, set_imputer_shape
from ocrep.onnx.inputs import Input, inputs_of
from ocrep.onnx.network import OnnxExportError

# The newest operators are not needed, and runtimes that know these have been around since 2023.
_OPSETS = {"": 18, "ai.onnx.ml": 3}


def to_onnx(model: Any, *, dtype: str = "float32", example: Any = None) -> Any:
    """Write a fitted model as an ONNX graph, alone or at the end of a scikit-learn pipeline.

    The graph computes in double. A model fitted on an array or on a data frame of numbers takes one input "X",
    (n_samples, n_features); a pipeline that begins with a `ColumnTransformer` on a data frame takes one input per
    column it uses, (n_samples, 1), named as the column: numbers, or text. Regressors give "variable", (n_samples,
    n_targets); classifiers "label", "scores" as `decision_function` gives them, and "probabilities" if calibrated.

    Parameters
    ----------
    model : estimator
        Fitted.
    dtype : {"float32", "float64"}, default="float32"
        Type of the numbers that go in and come out.
    example : data frame, default=None
        Some rows that the model could be given, to tell text columns from numbers where the fitted steps do not.

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
    """Write what `to_onnx` gives to a file; an interrupted save leaves an older file whole."""
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
    except Exception as error:  # skl2onnx raises whatever its converters stumble over
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise OnnxExportError(
            f"skl2onnx cannot write a step of this {type(model).__name__}, for it says: {reason}"
        ) from error


def _prepare_ends(graph: Any, inputs: list[Input], single: bool) -> None:
    """Give inputs the columns' own names, leave out those that nothing reads, and make numbers single if asked for."""
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
    """Declare an input or output as single precision, if it is double now."""
    from onnx import TensorProto

    number = value.type.tensor_type
    if number.elem_type != TensorProto.DOUBLE:
        return False
    number.elem_type = TensorProto.FLOAT
    return True


def _as_double(name: str) -> str:
    # skl2onnx uses no colons, so that this is no other value's name.
    return f"{name}:double"


def _rename(graph: Any, old: str, new: str) -> None:
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [new if name == old else name for name in names]


def _describe(graph: Any, model: Any) -> None:
    """Say in the file what it came from."""
    from onnx import helper

    graph.producer_name, graph.producer_version = "ocrep", version("ocrep")
    names = getattr(model, "feature_names_in_", None)
    about = {} if names is None else {"feature_names": json.dumps([str(name) for name in names])}
    helper.set_model_props(graph, {"model": type(model).__name__, **about})
