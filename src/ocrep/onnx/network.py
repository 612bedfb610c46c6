"""Converters that skl2onnx calls: a fitted estimator as arrays, and the arrays as ONNX nodes; and `SimpleImputer`.

skl2onnx walks through a model, and asks for each step which results it has (a parser), what their shapes are, and for
the nodes that compute them. All arithmetic is in double, whatever goes in and comes out. In single precision the result
would usually be accurate to 2e-5 of the target's standard deviation, but only to 4e-4 for an input such as 10⁴ ± 1,
whose mid-range needs more digits, and not at all where large output weights cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Real
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import ClassifierMixin, is_classifier
from sklearn.impute import SimpleImputer
from sklearn.utils.validation import check_is_fitted

from ocrep import literature
from ocrep._layers.activations import ACTIVATIONS
from ocrep._layers.columns import SATURATED
from ocrep._layers.hidden_map import HiddenMap, JoinedMap
from ocrep._layers.random_layer import RandomLayer
from ocrep.estimators import NETWORKS, TikhonovClassifier, TikhonovRegressor
from ocrep.literature.base import MixedMap

Hidden: TypeAlias = HiddenMap | MixedMap | None  # None if the features are the inputs themselves
_ON_NETWORK = (literature.ELMClassifier, literature.ELMRegressor, literature.RELMClassifier, literature.RELMRegressor)
_WITH_MAP = (RandomLayer, literature.OPELMRegressor, literature.PrunedELMRegressor, literature.TROPELMRegressor)
_HIDDEN: dict[type, Callable[[Any], Hidden]] = {
    **dict.fromkeys(_WITH_MAP, attrgetter("map_")),
    **dict.fromkeys(NETWORKS, attrgetter("layer_.map_")),
    **dict.fromkeys((TikhonovClassifier, TikhonovRegressor), lambda model: None),
}
ESTIMATORS: tuple[type, ...] = (*_HIDDEN, *_ON_NETWORK)
"""All estimators that `network_of` can read."""


class OnnxExportError(ValueError):
    """A model cannot be written as an ONNX graph; the message says why and what to do.

    See Also
    --------
    to_onnx : Raises it.

    Examples
    --------
    >>> from ocrep import PinvRegressor, onnx
    >>> model = PinvRegressor(5, activation=lambda x: x**3, random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0])
    >>> try:
    ...     onnx.to_onnx(model)
    ... except onnx.OnnxExportError:
    ...     print("a function of your own has no operator in ONNX")
    a function of your own has no operator in ONNX
    """


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A fitted estimator as arrays."""

    hidden: Hidden
    stages: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    """Weights (n_features_out, n_targets) and intercept of the output, then of the calibration if scores follow it;
    empty for a layer alone."""
    labels: np.ndarray | None = None
    """The classes of a classifier, as text or whole numbers."""
    factor: float | None = None
    """What scores are multiplied by to become the logits of probabilities; None if there are none."""

    @property
    def results(self) -> tuple[str, ...]:
        """The names of the graph's results."""
        if self.labels is None:
            return ("variable",)
        return ("label", "scores") if self.factor is None else ("label", "probabilities", "scores")

    @property
    def width(self) -> int | None:
        """Columns of the result; None for a layer alone, whose inputs may be part of it."""
        return self.stages[-1][0].shape[1] if self.stages else None


def network_of(model: Any) -> Network:
    """Read a fitted estimator of this library."""
    check_is_fitted(model)
    if isinstance(model, _ON_NETWORK):
        return network_of(model.network_)
    hidden_of = next((read for kind, read in _HIDDEN.items() if isinstance(model, kind)), None)
    if hidden_of is None:
        raise OnnxExportError(f"{type(model).__name__} is not an estimator of ocrep.")
    hidden = hidden_of(model)
    if isinstance(model, RandomLayer):
        return Network(hidden)
    weights = model.output_coef_ if hasattr(model, "output_coef_") else model.coef_
    output = np.atleast_2d(weights).T.astype(np.float64), np.atleast_1d(model.intercept_)
    if not is_classifier(model):
        return Network(hidden, (output,))
    if model.multilabel_:
        raise OnnxExportError(
            f"This {type(model).__name__} gives several labels per row, and a graph gives one: export one "
            "classifier for each label."
        )
    labels = _plain_labels(model.classes_)
    if not getattr(model, "_calibrates", model.calibrate is not None):
        calibrator = getattr(model, "calibrator_", None)
        return Network(hidden, (output,), labels, None if calibrator is None else float(calibrator.slope[0, 0]))
    advice = "call fit with this gamma and calibrate='loo', or set calibrate=None."
    check_is_fitted(model, "calibrator_", msg=f"This γ is not calibrated: {advice}")
    return Network(hidden, (output, (model.calibrator_.slope, model.calibrator_.offset)), labels, 1.0)


def _plain_labels(classes: np.ndarray) -> np.ndarray:
    """Labels as one of the two types that a graph can return."""
    labels = classes.tolist()
    if all(isinstance(label, str) for label in labels):
        return classes.astype(object)
    if all(isinstance(label, int | float) and label == int(label) for label in labels):
        return classes.astype(np.int64)
    raise OnnxExportError(
        f"A graph returns labels as text or whole numbers, and these are {labels}: encode them before fitting."
    )


class Graph:
    """Adds nodes and constants to the graph that skl2onnx is building; a value is referred to by its name."""

    def __init__(self, scope: Any, container: Any) -> None:
        from onnx import TensorProto, helper

        self.types = TensorProto
        self._helper = helper
        self._scope = scope
        self._container = container

    def __call__(self, kind: str, *inputs: str, to_name: str | None = None, **attributes: Any) -> str:
        """Add a node, and return the name of its result."""
        name = to_name or self._scope.get_unique_variable_name(kind.lower())
        node = self._scope.get_unique_operator_name(kind)
        self._container.add_node(kind, list(inputs), [name], name=node, **attributes)
        return name

    def constant(self, value: Any) -> str:
        """Add an array, and return its name."""
        array = np.asarray(value)
        name = self._scope.get_unique_variable_name("constant")
        kind = self.types.STRING if array.dtype == object else self._helper.np_dtype_to_tensor_dtype(array.dtype)
        flat = [text.encode() for text in array] if array.dtype == object else array.ravel()
        self._container.add_initializer(name, kind, array.shape, flat)
        return name

    def squeezed(self, name: str) -> str:
        """Turn an (n, 1) array into a vector."""
        return self("Squeeze", name, self.constant(np.array([1])))

    def double(self, name: str) -> str:
        """Cast to double."""
        return self("Cast", name, to=self.types.DOUBLE)

    def joined(self, names: Iterable[str]) -> str:
        """Put arrays next to each other."""
        first, *more = names
        return self("Concat", first, *more, axis=1) if more else first

    def give(self, value: str, result: Any) -> None:
        """Cast a value to the type that a result declares, under its name."""
        self("Cast", value, to=result.type.to_onnx_type().tensor_type.elem_type, to_name=result.full_name)


def features(graph: Graph, hidden: Hidden, X: str) -> str:
    """The network's features for inputs X."""
    if hidden is None:
        return X
    if isinstance(hidden, MixedMap):
        linear = graph("Gather", _scaled(graph, hidden.maps[0], X), graph.constant(hidden.inputs), axis=1)
        return graph.joined([linear, *(features(graph, part, X) for part in hidden.maps)])
    if isinstance(hidden, JoinedMap):
        return graph.joined([features(graph, part, X) for part in hidden.maps])
    scaled = _scaled(graph, hidden, X)
    units = _units(graph, hidden, scaled) if hidden.trees is None else _leaves(graph, hidden, scaled)
    return graph.joined([scaled, units]) if hidden.direct_link else units


def outputs(graph: Graph, network: Network, X: str) -> str:
    """HW + b, (n_samples, n_targets); the logits if scores follow a calibration; H for a layer alone."""
    H = features(graph, network.hidden, X)
    for weights, intercept in network.stages:
        H = graph("Add", graph("MatMul", H, graph.constant(weights)), graph.constant(intercept))
    return H


def label(graph: Graph, labels: np.ndarray, scores: str, *, to_name: str) -> None:
    """The label of the largest score, the first one in a tie; with a single score, the second label if it is > 0."""
    if len(labels) == 2:
        positive = graph("Greater", graph.squeezed(scores), graph.constant(np.zeros(1)))
        index = graph("Cast", positive, to=graph.types.INT64)
    else:
        index = graph("ArgMax", scores, axis=1, keepdims=0)
    graph("Gather", graph.constant(labels), index, axis=0, to_name=to_name)


def _scaled(graph: Graph, hidden: HiddenMap, X: str) -> str:
    Z = _times(graph, graph("Sub", X, graph.constant(hidden.center)), hidden.scale)
    if hidden.squash is None:
        return Z
    far = np.full(1, SATURATED)
    Z = graph("Max", graph("Min", Z, graph.constant(far)), graph.constant(-far))
    root = graph(
        "Sqrt",
        graph("Add", graph("Mul", Z, graph("Div", Z, graph.constant(np.full(1, 9.0)))), graph.constant(np.ones(1))),
    )
    mean, inverse_deviation = hidden.squash
    return _times(graph, graph("Sub", graph("Div", Z, root), graph.constant(mean)), inverse_deviation)


def _times(graph: Graph, X: str, factors: np.ndarray) -> str:
    """Multiply each column by its factor."""
    if len(factors) == 1:
        # onnxruntime would merge a product with one number into the next MatMul, and store it in single precision.
        return graph("MatMul", X, graph.constant(factors[:, None]))
    return graph("Mul", X, graph.constant(factors))


def _in_metric(graph: Graph, X: str, metric: np.ndarray) -> str:
    return _times(graph, X, metric) if metric.ndim == 1 else graph("MatMul", X, graph.constant(metric))


def _units(graph: Graph, hidden: HiddenMap, X: str) -> str:
    name = next((name for name, known in ACTIVATIONS.items() if known == hidden.activation), None)
    if name is None:
        raise OnnxExportError(
            f"The activation {hidden.activation.function!r} is a function of your own, which a graph cannot hold: "
            f"use one of the named activations, {', '.join(sorted(ACTIVATIONS))}."
        )
    if hidden.activation.radial:
        Z = _minus_distances(graph, hidden, X)
    else:
        Z = graph("Add", graph("MatMul", X, graph.constant(hidden.weights)), graph.constant(hidden.biases))
    if name == "hardlimit":
        return graph.double(graph("GreaterOrEqual", Z, graph.constant(np.zeros(1))))
    # The other activations have the names of their operators.
    return graph({"gaussian": "Exp", "laplace": "Exp"}.get(name, name.capitalize()), Z)


def _leaves(graph: Graph, hidden: HiddenMap, X: str) -> str:
    """The walk of `Trees.leaves`, in double as there, and whether each row ended in the leaf of each unit."""
    trees = hidden.trees
    assert trees is not None
    X = X if hidden.metric is None else _in_metric(graph, X, hidden.metric)
    feature, left, right = (graph.constant(array) for array in trees.steps)
    threshold = graph.constant(trees.threshold)
    roots = graph.constant(trees.roots[None])
    first = graph("Gather", X, graph.constant(np.array([0])), axis=1)
    # One True for each row, which spreads the roots over all rows.
    node = graph("Where", graph("Equal", first, first), roots, roots)
    for _ in range(trees.depth):
        values = graph("GatherElements", X, graph("Gather", feature, node), axis=1)
        goes_left = graph("LessOrEqual", values, graph("Gather", threshold, node))
        node = graph("Where", goes_left, graph("Gather", left, node), graph("Gather", right, node))
    reached = graph("Gather", node, graph.constant(trees.unit_tree), axis=1)
    return graph.double(graph("Equal", reached, graph.constant(trees.unit_node[None])))


def _minus_distances(graph: Graph, hidden: HiddenMap, X: str) -> str:
    """−|b|·‖x − c‖², from ‖x‖² − 2x·c + ‖c‖², or its root; Relu, because rounding could make that negative."""
    centers = hidden.centers
    if hidden.metric is not None:
        X = _in_metric(graph, graph("Sub", X, graph.constant(hidden.origin)), hidden.metric)
    products = graph("MatMul", X, graph.constant(centers))
    squares = graph("ReduceSum", graph("Mul", X, X), graph.constant(np.array([1])), keepdims=1)
    if hidden.slack:
        squares = graph("Mul", squares, graph.constant(np.full(1, 1.0 - hidden.slack)))
    distances = graph("Sub", squares, graph("Mul", products, graph.constant(np.full(1, 2.0))))
    keep = 1.0 - hidden.slack
    distances = graph("Add", distances, graph.constant(keep * (centers**2).sum(axis=0)))
    distances = graph("Relu", distances)
    if hidden.activation.power == 1:
        distances = graph("Sqrt", distances)
    return graph("Mul", distances, graph.constant(-np.abs(hidden.biases)))


# ------------------------------------------------------------------------------
# What skl2onnx calls for our estimators


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
    if network.factor is not None:
        Z = Z if network.factor == 1.0 else _times(graph, Z, np.full(network.width or 1, network.factor))
        # Two classes have a single logit, that of the second class.
        logits = graph.joined([graph("Mul", Z, graph.constant(np.zeros(1))), Z]) if network.width == 1 else Z
        graph.give(graph("Softmax", logits, axis=1), results["probabilities"])


# ------------------------------------------------------------------------------
# `SimpleImputer`


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
    imputer = operator.raw_operator
    graph = Graph(scope, container)
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
