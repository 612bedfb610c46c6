"""Our estimators made known to skl2onnx: what they give, in which shapes, and how they become nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ocrep import literature
from ocrep._features.random_layer import RandomLayer
from ocrep.estimators.pinv import PinvClassifier, PinvRegressor, TikhonovClassifier, TikhonovRegressor
from ocrep.onnx.graph import Graph, label, outputs, probabilities
from ocrep.onnx.network import network_of

ESTIMATORS: tuple[type, ...] = (
    *(PinvRegressor, PinvClassifier, TikhonovRegressor, TikhonovClassifier, RandomLayer),
    *(getattr(literature, name) for name in literature.__all__),
)


def register() -> None:
    """Make all estimators of this library known to skl2onnx, alone and as steps of a pipeline; again does no harm."""
    skl2onnx = require_skl2onnx()
    for kind in ESTIMATORS:
        # Graphs give plain arrays always; the option exists so that pipelines may pass it on.
        options = {"zipmap": [True, False]} if hasattr(kind, "decision_function") else None
        skl2onnx.update_registered_converter(
            kind, f"Ocrep{kind.__name__}", set_shapes, convert, parser=parser(), options=options
        )


def require_skl2onnx() -> Any:
    """skl2onnx, or a sentence that says how to get it."""
    try:
        import skl2onnx
    except ImportError:
        raise ImportError('ONNX export needs skl2onnx and onnxruntime: pip install "ocrep[onnx]".') from None
    return skl2onnx


def parser(number: type | None = None) -> Callable[..., Any]:
    """What declares an estimator's results; they are of the type `number`, or of the inputs' own."""

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
            # A column may have the same name, and then skl2onnx would make an invalid graph.
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
    """Turn a fitted estimator into nodes: in double inside, cast to what the results are declared as."""
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
