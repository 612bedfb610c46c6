"""Converters that skl2onnx calls, for our estimators and for `SimpleImputer`: results, their shapes, and the nodes."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.impute import SimpleImputer

from ocrep.onnx.network import ESTIMATORS, Graph, OnnxExportError, label, network_of, outputs


def register() -> None:
    """Register our estimators with skl2onnx, alone and as steps of a pipeline; calling it twice is harmless.

    See Also
    --------
    to_onnx : Converts a model without registering anything.

    Examples
    --------
    >>> import ocrep
    >>> ocrep.onnx.register()
    """
    skl2onnx = require_skl2onnx()
    for kind in ESTIMATORS:
        # Our graphs always return plain arrays; skl2onnx passes the option to every classifier in a pipeline.
        options = {"zipmap": [True, False]} if issubclass(kind, ClassifierMixin) else None
        name = f"Ocrep{kind.__name__}"
        skl2onnx.update_registered_converter(kind, name, _set_shapes, _convert, parser=_parser(), options=options)


def require_skl2onnx() -> Any:
    """`skl2onnx`, or an ImportError that says how to install it."""
    try:
        import skl2onnx
    except ImportError:
        raise ImportError('ONNX export needs skl2onnx and onnxruntime: pip install "ocrep[onnx]".') from None
    return skl2onnx


def conversion_options() -> dict[str, Any]:
    """Options of `convert_sklearn`: results of our estimators in double, and a conversion of `SimpleImputer`."""
    from skl2onnx.common.data_types import DoubleTensorType

    return {
        "custom_parsers": {kind: _parser(DoubleTensorType) for kind in ESTIMATORS},
        "custom_conversion_functions": {SimpleImputer: _convert_imputer},
        "custom_shape_calculators": {SimpleImputer: _set_imputer_shape},
    }


def _parser(number: type | None = None) -> Callable[..., Any]:
    """A function that declares an estimator's results, of the type `number` or of the type of the inputs."""

    def parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
        from skl2onnx.common.data_types import Int64TensorType, StringTensorType, guess_tensor_type

        network = network_of(model)
        operator = scope.declare_local_operator(f"Ocrep{type(model).__name__}", model)
        operator.inputs = inputs
        numbers = number or type(guess_tensor_type(inputs[0].type))
        text = network.labels is not None and network.labels.dtype == object
        taken = {variable.raw_name for variable in scope.input_variables}
        for name in network.results:
            kind = numbers if name != "label" else StringTensorType if text else Int64TensorType
            # skl2onnx would make an invalid graph if an input and a result had the same name.
            unique = f"output_{name}" if name in taken else name
            operator.outputs.append(scope.declare_local_variable(unique, kind()))
        return operator.outputs

    return parse


def _set_shapes(operator: Any) -> None:
    network = network_of(operator.raw_operator)
    rows = operator.inputs[0].get_first_dimension()
    shapes = {"variable": [rows, network.width]}
    if network.labels is not None:
        scores = [rows] if network.width == 1 else [rows, network.width]
        shapes = {"label": [rows], "scores": scores, "probabilities": [rows, len(network.labels)]}
    for name, result in zip(network.results, operator.outputs, strict=True):
        result.type.shape = shapes[name]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Turn a fitted estimator into nodes that compute in double, with results cast to their declared types."""
    network = network_of(operator.raw_operator)
    graph = Graph(scope, container)
    results = dict(zip(network.results, operator.outputs, strict=True))
    Z = outputs(graph, network, graph.joined(graph.double(variable.full_name) for variable in operator.inputs))
    if network.labels is None:
        graph.give(Z, results["variable"])
        return
    label(graph, network.labels, Z, to_name=results["label"].full_name)
    graph.give(graph.squeezed(Z) if network.width == 1 else Z, results["scores"])
    if network.calibrated:
        # Two classes have a single logit, that of the second class.
        logits = graph.joined([graph("Mul", Z, graph.constant(np.zeros(1))), Z]) if network.width == 1 else Z
        graph.give(graph("Softmax", logits, axis=1), results["probabilities"])


def fills_text(imputer: SimpleImputer) -> bool:
    """Whether the columns are text."""
    return any(isinstance(value, str) for value in imputer.statistics_)


def _set_imputer_shape(operator: Any) -> None:
    # The columns that have values, and the indicators.
    width = len(_kept(operator.raw_operator)) + len(_flagged(operator.raw_operator))
    operator.outputs[0].type.shape = [operator.inputs[0].get_first_dimension(), width]


def _convert_imputer(scope: Any, operator: Any, container: Any) -> None:
    """Replace missing entries by the learned values; skl2onnx's own converter rounds to single and omits indicators.

    ONNX has no missing strings, so the empty string counts as missing, and so does the missing value as text ("nan").
    """
    imputer, graph = operator.raw_operator, Graph(scope, container)
    X = graph.joined(variable.full_name for variable in operator.inputs)
    flagged = _flagged(imputer)
    if fills_text(imputer):
        if len(flagged):
            raise OnnxExportError(
                "SimpleImputer(add_indicator=True) cannot be converted for columns of text: use add_indicator=False."
            )
        missing = _missing_text(graph, X, imputer.missing_values)
        values = np.array([value if isinstance(value, str) else "" for value in imputer.statistics_], dtype=object)
    else:
        X = graph.double(X)
        missing = _missing_numbers(graph, X, imputer.missing_values)
        values = np.asarray(imputer.statistics_, dtype=np.float64)
    filled = graph("Where", missing, graph.constant(values), X)
    parts = [graph("Gather", filled, graph.constant(_kept(imputer)), axis=1)]
    if len(flagged):
        parts.append(graph.double(graph("Gather", missing, graph.constant(flagged), axis=1)))
    graph.give(graph.joined(parts), operator.outputs[0])


def _kept(imputer: SimpleImputer) -> np.ndarray:
    return np.flatnonzero([imputer.keep_empty_features or not _is_nan(value) for value in imputer.statistics_])


def _flagged(imputer: SimpleImputer) -> np.ndarray:
    return imputer.indicator_.features_ if imputer.add_indicator else np.arange(0)


def _missing_numbers(graph: Graph, X: str, missing_value: Any) -> str:
    if missing_value is None or _is_nan(missing_value):
        return graph("IsNaN", X)
    return graph("Equal", X, graph.constant(np.full(1, float(missing_value))))


def _missing_text(graph: Graph, X: str, missing_value: Any) -> str:
    known = [missing_value] if isinstance(missing_value, str) else ["", str(missing_value)]
    # Comparing text needs opset 19; a table of two keys does the same in older ones.
    table: dict[str, Any] = {"keys_strings": known, "values_int64s": [1] * len(known), "default_int64": 0}
    found = graph("LabelEncoder", X, op_domain="ai.onnx.ml", op_version=2, **table)
    return graph("Cast", found, to=graph.types.BOOL)


def _is_nan(value: Any) -> bool:
    return isinstance(value, Real) and math.isnan(value)
