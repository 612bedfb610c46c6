"""Converters that skl2onnx calls for our estimators: the results, their shapes, and the nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import ClassifierMixin

from ocrep.onnx.graph import Graph, label, outputs, probabilities
from ocrep.onnx.network import ESTIMATORS, network_of


def register() -> None:
    """Register our estimators with skl2onnx, alone and as steps of a pipeline; calling it twice is harmless."""
    skl2onnx = require_skl2onnx()
    for kind in ESTIMATORS:
        # Our graphs always return plain arrays; skl2onnx passes the option to every classifier in a pipeline.
        options = {"zipmap": [True, False]} if issubclass(kind, ClassifierMixin) else None
        skl2onnx.update_registered_converter(
            kind, f"Ocrep{kind.__name__}", set_shapes, convert, parser=parser(), options=options
        )


def require_skl2onnx() -> Any:
    """`skl2onnx`, or an ImportError that says how to install it."""
    try:
        import skl2onnx
    except ImportError:
        raise ImportError('ONNX export needs skl2onnx and onnxruntime: pip install "ocrep[onnx]".') from None
    return skl2onnx


def parser(number: type | None = None) -> Callable[..., Any]:
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


def set_shapes(operator: Any) -> None:
    """Tell skl2onnx the shapes of the results."""
    network = network_of(operator.raw_operator)
    rows = operator.inputs[0].get_first_dimension()
    shapes = {"variable": [rows, network.width]}
    if network.labels is not None:
        scores = [rows] if network.width == 1 else [rows, network.width]
        shapes = {"label": [rows], "scores": scores, "probabilities": [rows, len(network.labels)]}
    for name, result in zip(network.results, operator.outputs, strict=True):
        result.type.shape = shapes[name]


def convert(scope: Any, operator: Any, container: Any) -> None:
    """Turn a fitted estimator into nodes that compute in double, with results cast to their declared types."""
    network = network_of(operator.raw_operator)
    graph = Graph(scope, container)
    results = dict(zip(network.results, operator.outputs, strict=True))
    inputs = [graph.double(variable.full_name) for variable in operator.inputs]
    Z = outputs(graph, network, graph("Concat", *inputs, axis=1) if len(inputs) > 1 else inputs[0])

    def give(name: str, value: str) -> None:
        kind = results[name].type.to_onnx_type().tensor_type.elem_type
        graph("Cast", value, to=kind, to_name=results[name].full_name)

    if network.labels is None:
        give("variable", Z)
        return
    label(graph, network.labels, Z, to_name=results["label"].full_name)
    give("scores", graph.squeezed(Z) if network.width == 1 else Z)
    if network.calibrated:
        give("probabilities", probabilities(graph, Z, len(network.labels)))
