"""`SimpleImputer` as nodes, because skl2onnx's converter rounds to single precision and omits indicators."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer

from ocrep.onnx.graph import Graph
from ocrep.onnx.network import OnnxExportError


def fills_text(imputer: SimpleImputer) -> bool:
    """Whether the columns are text."""
    return any(isinstance(value, str) for value in imputer.statistics_)


def set_imputer_shape(operator: Any) -> None:
    """Declare the width: the columns that have values, and the indicators."""
    width = len(_kept(operator.raw_operator)) + len(_flagged(operator.raw_operator))
    operator.outputs[0].type.shape = [operator.inputs[0].get_first_dimension(), width]


def convert_imputer(scope: Any, operator: Any, container: Any) -> None:
    """Replace missing entries by the learned values.

    ONNX has no missing strings, so the empty string counts as missing, and so does the missing value as text ("nan").
    """
    imputer = operator.raw_operator
    graph = Graph(scope, container)
    names = [variable.full_name for variable in operator.inputs]
    X = graph("Concat", *names, axis=1) if len(names) > 1 else names[0]
    kept, flagged = _kept(imputer), _flagged(imputer)
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
    parts = [graph("Gather", filled, graph.constant(kept), axis=1)]
    if len(flagged):
        parts.append(graph.double(graph("Gather", missing, graph.constant(flagged), axis=1)))
    kind = operator.outputs[0].type.to_onnx_type().tensor_type.elem_type
    graph("Cast", graph("Concat", *parts, axis=1), to=kind, to_name=operator.outputs[0].full_name)


def _kept(imputer: SimpleImputer) -> np.ndarray:
    if imputer.keep_empty_features:
        return np.arange(len(imputer.statistics_))
    return np.flatnonzero([not _is_nan(value) for value in imputer.statistics_])


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
