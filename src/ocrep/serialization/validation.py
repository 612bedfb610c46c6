"""Bounds on a model file before anything is built from it, and checks of the model that was built."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ocrep import Spectrum
from ocrep._layers.hidden_map import HiddenMap
from ocrep.rules import Curve
from ocrep.serialization.annotations import check_annotated

MOST_NODES = 1_000_000
DEEPEST = 200
"""Models of this library have some hundred nodes, at most 30 deep; a forest in a pipeline has some ten thousand."""

# The criterion of penalties that leave too few rows to judge them; nothing is predicted from it.
_MAY_BE_INFINITE = ("bic_",)
# Each writing gives objects and arrays that are made on the way another number.
_NUMBERS = ("__id__", "file")


def check_tree(tree: Any) -> None:
    """Raise a ValueError if the tree of a file is too large, or if two of its nodes contradict each other.

    skops builds a node once and uses it again wherever its id is repeated, whatever stands there. A few kilobytes could
    thus stand for billions of nodes. In an honest file each repetition is written in full, and no array belongs to two
    objects; then the work is bounded by the size of the file.
    """
    _Walk().digest(tree, 0)


class _Walk:
    def __init__(self) -> None:
        self._n_nodes = 0
        self._seen: dict[Any, bytes] = {}
        self._owner: dict[Any, Any] = {}

    def digest(self, part: Any, depth: int) -> bytes:
        """A hash of a part of the tree; parts that differ only in the numbers of objects have equal ones."""
        self._n_nodes += 1
        if self._n_nodes > MOST_NODES or depth > DEEPEST:
            raise ValueError("its tree is far larger than that of a model.")
        if isinstance(part, dict):
            known = sorted(key for key in part if key not in _NUMBERS)
            content = [(key.encode(), self.digest(part[key], depth + 1)) for key in known]
        elif isinstance(part, list):
            content = [(b"", self.digest(child, depth + 1)) for child in part]
        else:
            return hashlib.blake2b(repr(part).encode(errors="backslashreplace"), digest_size=16).digest()
        kind = type(part).__name__.encode()
        found = hashlib.blake2b(kind + b"".join(map(b"=".join, content)), digest_size=16).digest()
        if isinstance(part, dict) and isinstance(part.get("__loader__"), str):
            self._check_node(part, found)
        return found

    def _check_node(self, node: dict[str, Any], found: bytes) -> None:
        number = repr(node.get("__id__"))
        if "__id__" in node and self._seen.setdefault(number, found) != found:
            raise ValueError("two objects in it have the same number.")
        if "file" in node and self._owner.setdefault(repr(node["file"]), number) != number:
            raise ValueError("two objects in it share one array.")


def check_model(model: Any) -> None:
    """Raise a ValueError unless a loaded object is an estimator whose networks predict finite numbers."""
    if not isinstance(model, BaseEstimator):
        raise ValueError(f"it holds a {type(model).__name__}, not a model.")
    if isinstance(model, Pipeline) and not all(len(step) == 2 for step in model.steps):
        raise ValueError("its steps are not pairs of a name and an estimator.")
    found = list(_parts(model))
    for part in found:
        _check_inputs(part)
    parts = [part for part in found if _is_ours(part) and not isinstance(part, Curve)]
    for part in parts:
        if isinstance(part, BaseEstimator):  # of ours; those of another scikit-learn may lack newer parameters
            part.get_params(deep=False)
        for name, value in _own_values(part):
            if isinstance(value, np.ndarray) and name not in _MAY_BE_INFINITE:
                _check_array(f"{type(part).__name__}.{name}", value)
        check_annotated(part)
        if isinstance(part, Spectrum):
            _check_spectrum(part)
        if isinstance(part, HiddenMap) and part.weights.dtype.kind != "f":
            raise ValueError("the weights of its hidden units are not floating-point numbers.")
    for part in parts:
        if hasattr(part, "predict") and _is_fitted(part):
            _try(part)


def _check_inputs(part: Any) -> None:
    """An estimator knows how many inputs it has seen, which a converter to ONNX relies on."""
    n_inputs = getattr(part, "__dict__", {}).get("n_features_in_", 1)
    if isinstance(n_inputs, bool) or not isinstance(n_inputs, int | np.integer) or n_inputs < 0:
        raise ValueError("its number of inputs is not a whole number.")


def _check_array(name: str, values: np.ndarray) -> None:
    if values.dtype.kind == "c":
        raise ValueError(f"{name} holds complex numbers.")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(f"{name} holds NaN or infinity.")


def _check_spectrum(spectrum: Spectrum) -> None:
    """Its arrays belong together, so that whatever is read from them later is a number."""
    rank, n_targets, n_features = len(spectrum.sigma), len(spectrum.residual), spectrum.right.n_features
    shapes = {"UtT": (rank, n_targets), "mean_H": (n_features,), "mean_T": (n_targets,)}
    shapes |= {"sigma": (rank,), "residual": (n_targets,), "discarded": np.shape(spectrum.discarded)[:1]}
    for name, shape in shapes.items():
        values = getattr(spectrum, name)
        if np.shape(values) != shape or values.dtype.kind != "f":
            raise ValueError(f"Spectrum.{name} has another shape or type than the rest of it.")
    if not (
        np.all(spectrum.sigma > 0.0) and np.all(np.diff(spectrum.sigma) <= 0.0) and np.all(spectrum.residual >= 0.0)
    ):
        raise ValueError("its singular values or residuals are not those of a matrix.")
    if not (spectrum.n_rows >= 1 and spectrum.n >= 1 and 0.0 < spectrum.weight_sum < np.inf):
        raise ValueError("it was trained on no rows.")
    with np.errstate(all="ignore"):
        inside, outside = spectrum.right.coordinates(np.ones((2, n_features))), spectrum.right.times(np.ones((rank, 1)))
    if (inside.shape, outside.shape) != ((2, rank), (n_features, 1)) or not np.isfinite(inside).all():
        raise ValueError("its singular vectors are not those of its singular values.")


def _try(model: Any) -> None:
    """Predict one row in the middle of the training range, and two, so that an array of any other length is noticed."""
    n_inputs = model.n_features_in_
    layer = getattr(model, "layer_", None)
    row = np.zeros((1, n_inputs)) if layer is None else np.reshape(layer.center_, (1, n_inputs))
    names = model.__dict__.pop("feature_names_in_", None)
    try:
        for n_rows in (1, 2):
            _check_predictions(model, np.repeat(row, n_rows, axis=0))
    finally:
        if names is not None:
            model.feature_names_in_ = names


def _check_predictions(model: Any, rows: np.ndarray) -> None:
    outputs = model.decision_function(rows) if hasattr(model, "decision_function") else model.predict(rows)
    if not np.isfinite(np.asarray(outputs, dtype=np.float64)).all():
        raise ValueError("its predictions are not finite.")
    if np.shape(model.predict(rows))[0] != len(rows) or np.ndim(getattr(model, "classes_", [])) != 1:
        raise ValueError("its predictions have another shape than its rows.")
    if "return_std" in signature(model.predict).parameters:
        with np.errstate(all="ignore"):
            predicted, deviations = model.predict(rows, return_std=True)
        if deviations.shape != predicted.shape or np.isnan(deviations).any():  # infinite where no freedom remains
            raise ValueError("the deviations of its predictions are not numbers.")


def _parts(model: Any) -> Iterator[Any]:
    """Every estimator and every object of ours inside a model, each once."""
    seen: set[int] = set()
    left = [model]
    while left:
        part = left.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, dict):
            left += part.values()
        elif isinstance(part, list | tuple | set):
            left += part
        elif isinstance(part, BaseEstimator) or _is_ours(part):
            left += [value for _, value in _own_values(part)]
            yield part


def _own_values(part: Any) -> list[tuple[str, Any]]:
    named = {field.name for field in fields(part)} if is_dataclass(part) else ()
    values = [(name, getattr(part, name, None)) for name in named]
    return values + [(name, value) for name, value in getattr(part, "__dict__", {}).items() if name not in named]


def _is_ours(part: Any) -> bool:
    return type(part).__module__.startswith("ocrep.")


def _is_fitted(model: Any) -> bool:
    try:
        check_is_fitted(model)
    except Exception:
        return False
    return True
