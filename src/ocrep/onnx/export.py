"""A fitted model as an ONNX graph or file, with inputs and outputs in the precision that the caller wants."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ocrep import __version__
from ocrep._errors import pick
from ocrep._files.writing import replacing
from ocrep._layers.hidden_map import HiddenMap, JoinedMap
from ocrep.onnx import table
from ocrep.onnx.network import ESTIMATORS, OnnxExportError, conversion_options, fills_text, register, require_skl2onnx

# Runtimes have supported these operator sets since 2023, and newer operators are not needed.
_OPSETS = {"": 18, "ai.onnx.ml": 3}
# The check of a graph: the number of rows, and the largest difference in single (True) and in double precision,
# relative to the largest output.
N_ROWS = 24
TOLERANCE = {True: 1e-4, False: 1e-9}


def to_onnx(model: Any, *, dtype: str = "float32", example: Any = None) -> Any:
    """Convert a fitted model, alone or at the end of a scikit-learn pipeline, to an ONNX graph.

    The graph computes in double, and is compared with the model on a few rows before it is returned. A model
    fitted on an array or on a data frame of numbers takes one input "X", (n_samples, n_features); a pipeline
    that begins with a `ColumnTransformer` on a data frame takes one input per column that it uses, (n_samples,
    1), with the column's name: numbers or text. Regressors return "variable", (n_samples, n_targets);
    classifiers return "label", "scores" as in `decision_function`, and "probabilities" if they have them.

    `TableRegressor` and `TableClassifier` take one input per column that they use, too: categories as text, "" in
    gaps; all else as numbers, NaN in gaps. Durations are seconds, times are hours since midnight, and dates are days
    since 1970-01-01 UTC with the time of day as a fraction, in double whatever `dtype` is. Text of many values, which
    they read by its letters, is refused.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library, or a fitted pipeline or search that contains one.
    dtype : {"float32", "float64"}, default="float32"
        Type of the numbers in inputs and results.
    example : data frame, default=None
        Some rows of input, to distinguish columns of text from columns of numbers where the fitted steps do not;
        models of tables need none.

    Returns
    -------
    onnx.ModelProto
        The graph.

    See Also
    --------
    save_onnx : Writes the graph to a file.
    register : Lets skl2onnx convert our estimators.

    Examples
    --------
    >>> from ocrep import PinvRegressor, onnx
    >>> model = PinvRegressor(5, random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0])
    >>> [value.name for value in onnx.to_onnx(model).graph.output]
    ['variable']
    """
    skl2onnx = require_skl2onnx()
    single = pick("dtype", dtype, {"float32": True, "float64": False})
    if not isinstance(model, ESTIMATORS):
        model = getattr(model, "best_estimator_", model)  # what a search over parameters found
    check_is_fitted(model)
    register()
    steps = table.unfolded(model)
    inputs = _inputs_of(steps, example)
    graph = _double_graph(skl2onnx, steps, inputs, type(model).__name__)
    coder = _coder_of(steps)
    _prepare_ends(graph.graph, [name for name, _ in inputs], single, table.dates_of(coder) if coder else set())
    _describe(graph, model, table.units_of(coder) if coder else {})
    check_graph(graph, steps, inputs, single=single, example=example)
    return graph


def save_onnx(model: Any, path: str | os.PathLike[str], *, dtype: str = "float32", example: Any = None) -> None:
    """Write the graph of `to_onnx` to a file; an interrupted save keeps an older file intact.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library, or a fitted pipeline or search that contains one.
    path : path
        The file.
    dtype : {"float32", "float64"}, default="float32"
        Type of the numbers in inputs and results.
    example : data frame, default=None
        Some rows of input, as in `to_onnx`.

    See Also
    --------
    to_onnx : Gives the graph instead of a file.
    ocrep.save_model : A file that becomes the same model again.

    Examples
    --------
    >>> from ocrep import PinvRegressor, onnx
    >>> model = PinvRegressor(5, random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0])
    >>> onnx.save_onnx(model, "model.onnx")
    """
    graph = to_onnx(model, dtype=dtype, example=example)
    with replacing(path) as part:
        part.write_bytes(graph.SerializeToString())


def _inputs_of(model: Any, example: Any = None) -> list[tuple[str, Any]]:
    """The names and types of the inputs; the example says which columns are text, or else the fitted steps do."""
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType

    if sparse.issparse(example):
        raise OnnxExportError("A graph takes dense arrays, and the example is sparse: give example.toarray().")
    coder = _coder_of(model)
    if coder is not None:
        return table.inputs_of(coder)
    first = _first_step(model)
    if not hasattr(first, "n_features_in_"):
        raise OnnxExportError(f"A graph takes columns of numbers or text, and the model begins with {first!r}.")
    numbers = [("X", DoubleTensorType([None, first.n_features_in_]))]
    if not isinstance(first, ColumnTransformer):
        return numbers
    text = _text_columns(first) if example is None else _text_in(example, first.n_features_in_)
    if hasattr(first, "feature_names_in_"):
        kinds = [StringTensorType if place in text else DoubleTensorType for place in range(first.n_features_in_)]
        return [(str(name), kind([None, 1])) for name, kind in zip(first.feature_names_in_, kinds, strict=True)]
    if text:
        raise OnnxExportError(
            "The model selects text columns by position, and one ONNX input holds one type: "
            "fit it on a data frame, with columns selected by name."
        )
    return numbers


def _steps_of(model: Any) -> list[Any]:
    """The steps of a pipeline and of the pipelines in it; a model alone is its only step."""
    return [part for _, step in model.steps for part in _steps_of(step)] if isinstance(model, Pipeline) else [model]


def _first_step(model: Any) -> Any:
    return _steps_of(model)[0]


def _coder_of(model: Any) -> Any:
    """The coder of a table before an estimator; None if there is none."""
    first, *others = _steps_of(model)
    return first if others and table.is_coder(first) else None


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


def _double_graph(skl2onnx: Any, model: Any, inputs: list[tuple[str, Any]], name: str) -> Any:
    options = conversion_options()
    coder, last = _coder_of(model), _steps_of(model)[-1]
    if coder is not None:
        options = {kind: {**known, **table.conversion_options(coder)[kind]} for kind, known in options.items()}
        # A coder takes its inputs in their order, so that skl2onnx need not know names that results may have too.
        inputs = [(f"column{place}", kind) for place, (_, kind) in enumerate(inputs)]
    if hasattr(last, "predict_proba") and not isinstance(last, ESTIMATORS):
        options["options"] = {id(last): {"zipmap": False}}  # probabilities as an array, as ours are
    try:
        return skl2onnx.convert_sklearn(model, name, inputs, target_opset=_OPSETS, **options)
    except (OnnxExportError, NotFittedError):
        raise
    except Exception as error:  # skl2onnx's converters raise errors of any type
        raise OnnxExportError(
            f"skl2onnx cannot write a step of this {name}, for it says: {_first_line(error.__cause__ or error)}"
        ) from error


def _prepare_ends(graph: Any, names: list[str], single: bool, double: set[str]) -> None:
    """Name inputs as the columns, drop those that no node reads, and cast numbers if single precision is wanted.

    The inputs in `double` stay in double.
    """
    from onnx import TensorProto, helper

    read = {name for node in graph.node for name in node.input}
    made = {name for node in graph.node for name in node.output} | {array.name for array in graph.initializer}
    taken = {*names, *made, *(value.name for value in graph.input)}

    def unused(name: str) -> str:
        while name in taken:
            name += ":"
        taken.add(name)
        return name

    renamed = {name: unused(name) for name in made & set(names)}
    first, last = [], []
    for value, name in zip(list(graph.input), names, strict=True):
        if value.name not in read:
            graph.input.remove(value)
            continue
        number = value.type.tensor_type
        inner = value.name
        value.name = name
        renamed[inner] = name
        if single and name not in double and number.elem_type == TensorProto.DOUBLE:
            number.elem_type = TensorProto.FLOAT
            renamed[inner] = unused(f"{inner}:double")
            first.append(helper.make_node("Cast", [name], [renamed[inner]], to=TensorProto.DOUBLE))
    for value in graph.output:
        number = value.type.tensor_type
        inner = value.name
        while value.name in names:
            value.name = f"output_{value.name}"
        renamed[inner] = value.name
        if single and number.elem_type == TensorProto.DOUBLE:
            number.elem_type = TensorProto.FLOAT
            renamed[inner] = unused(f"{inner}:double")
            last.append(helper.make_node("Cast", [renamed[inner]], [value.name], to=TensorProto.FLOAT))
    for node in graph.node:
        for ends in (node.input, node.output):
            ends[:] = [renamed.get(name, name) for name in ends]
    for array in graph.initializer:
        array.name = renamed.get(array.name, array.name)
    nodes = [*first, *graph.node, *last]
    del graph.node[:]
    graph.node.extend(nodes)


def _describe(graph: Any, model: Any, units: dict[str, str]) -> None:
    """Add the producer, the type of model, the names of its features and what they hold to the graph."""
    from onnx import helper

    graph.producer_name = "ocrep"
    graph.producer_version = __version__
    names = getattr(model, "feature_names_in_", None)
    about = {} if names is None else {"feature_names": json.dumps([str(name) for name in names])}
    if units:
        about["inputs"] = json.dumps(units)
    helper.set_model_props(graph, {"model": type(model).__name__, **about})


# ------------------------------------------------------------------------------
# Compare a graph with its model on a few rows in onnxruntime, before it is handed out.


def check_graph(graph: Any, model: Any, inputs: list[tuple[str, Any]], *, single: bool, example: Any = None) -> None:
    """Raise unless onnxruntime can load the graph and gives what the model predicts."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are raised, and need not be printed too
    try:
        session = onnxruntime.InferenceSession(graph.SerializeToString(), options, ["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises errors of its own types
        raise OnnxExportError(
            "skl2onnx wrote a graph that onnxruntime cannot load: a step has no right ONNX form "
            f"({_first_line(error)})."
        ) from error
    coder = _coder_of(model)
    if coder is None:
        rows = _rows(model, inputs, example, np.float32 if single else np.float64)
        feed = _feed(rows, inputs, single)
    else:
        rows, feed = table.example_of(coder, _typical(_steps_of(model)[1])[1], N_ROWS, single=single)
    wanted = {value.name for value in session.get_inputs()}
    feed = {name: values for name, values in feed.items() if name in wanted}
    try:
        found = dict(zip([value.name for value in session.get_outputs()], session.run(None, feed), strict=True))
    except Exception as error:
        raise OnnxExportError(f"onnxruntime cannot run the graph: {_first_line(error)}") from error
    _compare(model, rows, found, single)


def _compare(model: Any, rows: Any, found: dict[str, np.ndarray], single: bool) -> None:
    """Raise unless the graph gives the scores, the numbers or the probabilities of the model."""
    methods = {"scores": "decision_function", "probabilities": "predict_proba", "variable": "predict"}
    # A result has another name where a column has its own; of a layer alone, nothing is compared.
    given = {name.split("output_")[-1]: values for name, values in found.items()}
    name = next((name for name, method in methods.items() if name in given and hasattr(model, method)), None)
    if name is None:
        return
    expected = np.asarray(getattr(model, methods[name])(rows), dtype=np.float64)
    if given[name].size != expected.size:
        gives = f"gives {given[name].size} numbers where the model gives {expected.size}"
        raise OnnxExportError(f"The graph {gives}: a step has no right ONNX form.")
    largest = max(np.abs(expected).max(), np.spacing(0))
    difference = np.abs(given[name].reshape(expected.shape) - expected).max() / largest
    if not difference <= TOLERANCE[single]:
        dtype, advice = ("float32", "") if single else ("float64", ", and dtype='float32' may do")
        raise OnnxExportError(
            f"The graph differs from the model by {difference:.0e} of its largest output, and {TOLERANCE[single]:.0e} "
            f"is promised for {dtype}: a step has no exact ONNX form{advice}."
        )


def _rows(model: Any, inputs: list[tuple[str, Any]], example: Any, dtype: Any) -> Any:
    """The example, or rows like the training rows, as far as the fitted steps know these."""
    if example is not None:
        return example[:N_ROWS]
    first = _first_step(model)
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
    """The middle and the spread of the inputs that a fitted step has seen; 0 and 1 if it does not know."""
    hidden = getattr(getattr(step, "layer_", step), "map_", None)
    hidden = hidden.maps[0] if isinstance(hidden, JoinedMap) else hidden
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


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
