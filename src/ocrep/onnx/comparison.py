"""Compare a graph with its model on a few rows in onnxruntime, before it is handed out."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from ocrep._features.hidden_map import HiddenMap
from ocrep.onnx.network import OnnxExportError

N_ROWS = 24
TOLERANCE = {True: 1e-4, False: 1e-9}
"""The largest difference in single and in double precision, relative to the largest output."""


def check_graph(graph: Any, model: Any, inputs: list[tuple[str, Any]], *, single: bool, example: Any = None) -> None:
    """Raise unless onnxruntime can load the graph and gives what the model predicts."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are raised, and need not be printed too
    try:
        session = onnxruntime.InferenceSession(graph.SerializeToString(), options, ["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises errors of its own types
        raise OnnxExportError(
            f"skl2onnx wrote a graph of this {type(model).__name__} that onnxruntime cannot load: a step has no right "
            f"ONNX form ({_first_line(error)})."
        ) from error
    rows = _rows(model, inputs, example, np.float32 if single else np.float64)
    wanted = {value.name for value in session.get_inputs()}
    feed = {name: values for name, values in _feed(rows, inputs, single).items() if name in wanted}
    try:
        found = dict(zip([value.name for value in session.get_outputs()], session.run(None, feed), strict=True))
    except Exception as error:
        raise OnnxExportError(f"onnxruntime cannot run the graph: {_first_line(error)}") from error
    _compare(model, rows, found, single)


def _compare(model: Any, rows: Any, found: dict[str, np.ndarray], single: bool) -> None:
    name = "scores" if "scores" in found else "variable"
    if name not in found or not hasattr(model, "predict"):  # labels of another library's classifier, or a layer alone
        return
    expected = np.asarray(model.decision_function(rows) if name == "scores" else model.predict(rows), dtype=np.float64)
    if found[name].size != expected.size:
        gives = f"gives {found[name].size} numbers where the model gives {expected.size}"
        raise OnnxExportError(f"The graph {gives}: a step has no right ONNX form.")
    difference = np.abs(found[name].reshape(expected.shape) - expected).max() / max(
        np.abs(expected).max(), np.spacing(0)
    )
    if not difference <= TOLERANCE[single]:
        dtype, advice = ("float32", "") if single else ("float64", ", and dtype='float32' may do")
        raise OnnxExportError(
            f"The graph differs from the model by {difference:.0e} of its largest output, and {TOLERANCE[single]:.0e} "
            f"is promised for {dtype}: a step has no exact ONNX form{advice}."
        )


def _rows(model: Any, inputs: list[tuple[str, Any]], example: Any, dtype: Any) -> Any:
    """The example, or rows like those of the training as far as the fitted steps tell."""
    if example is not None:
        return example[:N_ROWS]
    first = model
    while isinstance(first, Pipeline):
        first = first.steps[0][1]
    rng = np.random.default_rng(0)
    center, spread = _typical(first)
    numbers = center + spread * rng.uniform(-1.0, 1.0, (N_ROWS, first.n_features_in_))
    for column, edges in enumerate(getattr(first, "bin_edges_", ())):  # graphs go wrong where bins meet
        numbers[: len(edges), column] = edges[:N_ROWS]
    numbers = numbers.astype(dtype).astype(np.float64)
    if not hasattr(first, "feature_names_in_"):
        return numbers
    import pandas

    frame = pandas.DataFrame(numbers, columns=first.feature_names_in_)
    for place, (name, kind) in enumerate(inputs):
        if "String" in type(kind).__name__:
            frame[first.feature_names_in_[place]] = rng.choice(_words(first, name), N_ROWS)
    return frame


def _typical(step: Any) -> tuple[Any, Any]:
    """The middle and the spread of the inputs that a fitted step has seen; 0 and 1 if it does not tell."""
    hidden = getattr(getattr(step, "layer_", step), "map_", None)
    if isinstance(hidden, HiddenMap):
        return hidden.center, 1.0 / np.where(hidden.scale > 0, hidden.scale, 1.0)
    if hasattr(step, "data_min_"):
        return (step.data_min_ + step.data_max_) / 2, (step.data_max_ - step.data_min_) / 2
    if getattr(step, "mean_", None) is not None and getattr(step, "scale_", None) is not None:
        return step.mean_, step.scale_
    return 0.0, 1.0


def _words(columns: ColumnTransformer, name: str) -> list[str]:
    """Categories that a column of text had in training."""
    for _, step, chosen in columns.transformers_:
        for part in step.named_steps.values() if isinstance(step, Pipeline) else (step,):
            known = dict(zip(map(str, chosen), getattr(part, "categories_", ()), strict=False))
            if name in known:
                return [str(word) for word in known[name] if isinstance(word, str)] or [""]
    return [""]


def _feed(rows: Any, inputs: list[tuple[str, Any]], single: bool) -> dict[str, np.ndarray]:
    number = np.float32 if single else np.float64
    if (len(inputs) == 1 and inputs[0][1].shape[1] != 1) or not hasattr(rows, "columns"):
        return {"X": np.asarray(rows, dtype=number)}
    feed = {}
    for place, (name, kind) in enumerate(inputs):
        values = np.asarray(rows.iloc[:, place] if hasattr(rows, "iloc") else rows[:, place])
        is_text = "String" in type(kind).__name__
        texts = np.array(["" if value is None or value != value else str(value) for value in values], dtype=object)
        feed[name] = (texts if is_text else values.astype(number)).reshape(-1, 1)
    return feed


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
