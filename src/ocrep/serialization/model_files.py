"""`save_model` and `load_model`, with skops: loading builds only listed types, and runs no code from the file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from copy import copy
from operator import is_
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj, is_numpy_array
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ocrep._layers.activations import ACTIVATIONS
from ocrep.estimators.base import ClosedForm
from ocrep.serialization import archive
from ocrep.serialization.archive import ModelFileError, ModelInfo
from ocrep.serialization.tree import NAMES, OTHERS, OWN, TABLES, check_tree, from_file, path_of, to_file

_SLOW_TO_IMPORT = tuple(f"sklearn.externals.array_api_compat.{name}" for name in ("torch", "dask", "cupy"))


def save_model(model: BaseEstimator, path: str | os.PathLike[str], *, for_prediction: bool = False) -> None:
    """Write a model, alone or inside a scikit-learn pipeline, with everything that it learned.

    The file is written under a temporary name and then renamed, so an interrupted save keeps an older file intact.

    Parameters
    ----------
    model : estimator
        Any estimator of this library, or a scikit-learn estimator that contains some. A model whose activation is a
        user-defined function cannot be written, because loading it would have to run code.
    path : path-like
        Where to write; the usual suffix is ".skops".
    for_prediction : bool, default=False
        Whether to keep only what predictions need, packed, which is a fraction of the size. The loaded model predicts
        the same bit for bit, with probabilities and intervals. What reads the training, such as `with_gamma`,
        `partial_fit`, `spectrum_`, `summary` and `best_estimator_`, says then that it is not there. The model in memory
        stays as it is.

    Raises
    ------
    ModelFileError
        If the model holds something that a file cannot keep.

    See Also
    --------
    load_model : Reads such files.
    ocrep.onnx.save_onnx : Writes a graph that runs without Python.

    Examples
    --------
    >>> import tempfile
    >>> from ocrep import PinvRegressor, load_model, save_model
    >>> model = PinvRegressor(5, random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/model.skops")
    ...     same = load_model(f"{folder}/model.skops")
    >>> bool((same.predict([[1.5]]) == model.predict([[1.5]])).all())
    True
    """
    skops_io = require_skops()
    _check_saveable(model)
    if for_prediction:
        model = _for_prediction(model)
    try:
        data = skops_io.dumps(model)
    except TypeError as error:
        raise ModelFileError(f"This {type(model).__name__} cannot be written, for skops says: {error}") from error
    tree = to_file(archive.tree(data, archive.SKOPS_TREE))
    type_path = path_of(type(model))
    archive.write(path, data, tree=tree, type_name=NAMES.get(type_path, type_path), packed=for_prediction)


def load_model(path: str | os.PathLike[str], *, trusted: Iterable[str | type] = ()) -> Any:
    """Read a model written by `save_model`; no code from the file is run.

    Parameters
    ----------
    path : path-like
        The file.
    trusted : iterable of str or type, default=()
        Further types that may be built, such as transformers from other libraries, by name ("module.Class") or
        themselves. Name only what you know: building an object runs the code of its class.

    Returns
    -------
    estimator
        Its predictions are those of the saved one, bit for bit.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, holds types that are not trusted, or was written by a newer
        version, or in an older format.

    See Also
    --------
    save_model : Writes such files.
    ocrep.onnx.save_onnx : Writes a graph that runs without Python.

    Examples
    --------
    >>> from ocrep import TikhonovRegressor, load_model, save_model
    >>> save_model(TikhonovRegressor(0.0).fit([[0.0], [1.0]], [1.0, 3.0]), "line.skops")
    >>> load_model("line.skops").predict([[2.0]]).round(6)
    array([5.])
    """
    skops_io = require_skops()
    data, info = archive.read(path)
    archive.check_format(info, path)
    with archive.blaming(path):
        tree = archive.tree(data)
        check_tree(tree)
        tree = from_file(tree, f"{path} was written by ocrep {info.ocrep_version}")
        data = archive.with_skops_tree(data, tree)
        further = [trusted] if isinstance(trusted, str | type) else trusted
        named = (kind if isinstance(kind, str) else path_of(kind) for kind in further)
        allowed = {*map(path_of, OWN.values()), *TABLES.values(), *OTHERS, *named}
        unknown = sorted(set(skops_io.get_untrusted_types(data=data)) - allowed)
        if unknown:
            raise ModelFileError(
                f"{path} holds types that are not trusted: {', '.join(unknown)}. If you know each of them and where "
                "the file comes from, name them in load_model(..., trusted=[...])."
            )
        model = skops_io.loads(data, trusted=sorted(allowed))
        if not isinstance(model, BaseEstimator):
            raise ValueError(f"it holds a {type(model).__name__}, not a model.")
        _try_prediction(model, most_inputs=len(data))
    return model


def model_info(path: str | os.PathLike[str]) -> ModelInfo:
    """What a model file says about itself; the model is not built."""
    return archive.read(path)[1]


def require_skops() -> Any:
    """`skops.io`, or an ImportError that says how to install it."""
    # Importing skops imports all of scikit-learn, including these modules, which load torch and dask where they are
    # installed: seconds and 200 MB. None makes Python skip them; what is loaded already stays.
    modules: dict[str, Any] = sys.modules
    hidden = [name for name in _SLOW_TO_IMPORT if name not in modules]
    modules.update(dict.fromkeys(hidden))
    try:
        import skops.io
    except ImportError:
        raise ImportError('Model files need skops: pip install "ocrep[models]".') from None
    finally:
        for name in hidden:
            modules.pop(name, None)
    return skops.io


def _try_prediction(model: Any, most_inputs: int) -> None:
    """Predict one row, so that a model that cannot predict is noticed when it is loaded and not when it is needed.

    Only networks of this library are tried, alone or at the end of a pipeline: which rows a step before them takes is
    not known. The row lies in the middle of the training range, where no input is extreme.
    """
    while isinstance(model, Pipeline):
        model = model.steps[-1][1]
    model = getattr(model, "model_", model)  # behind the coder of a table
    if not type(model).__module__.startswith("ocrep.") or not hasattr(model, "predict"):
        return
    try:
        check_is_fitted(model)
    except NotFittedError:
        return
    n_inputs = model.n_features_in_
    if n_inputs > most_inputs:  # a number in the file must not decide how much memory is taken
        raise ValueError("it has more inputs than the file has bytes.")
    layer = getattr(model, "layer_", None)
    row = np.zeros((1, n_inputs)) if layer is None else np.reshape(layer.center_, (1, n_inputs))
    names = model.__dict__.pop("feature_names_in_", None)  # or scikit-learn would warn that the row has no names
    try:
        model.predict(row)
    finally:
        if names is not None:
            model.feature_names_in_ = names


def _for_prediction(part: Any) -> Any:
    """The same with networks that keep only what predictions need; what holds no network is not copied."""
    if isinstance(part, ClosedForm):
        return part._only_for_prediction()
    if isinstance(part, BaseEstimator):
        own = {name: _for_prediction(value) for name, value in vars(part).items()}
        if all(value is vars(part)[name] for name, value in own.items()):
            return part
        other = copy(part)
        vars(other).update(own)
        return other
    if isinstance(part, dict):
        items = {key: _for_prediction(value) for key, value in part.items()}
        if all(value is part[key] for key, value in items.items()):
            return part
        found = copy(part)
        found.update(items)
        return found
    if type(part) in (list, tuple):
        values = [_for_prediction(value) for value in part]
        return part if all(map(is_, values, part)) else type(part)(values)
    return part


def _check_saveable(model: Any) -> None:
    """Raise before any work if something would be lost or could not be read again."""
    if not isinstance(model, BaseEstimator):
        raise TypeError(f"save_model writes scikit-learn estimators, and this is a {type(model).__name__}.")
    parameters = model.get_params(deep=True)
    for part in (model, *parameters.values()):
        weights = getattr(part, "output_coef_", getattr(part, "coef_", None))
        if is_array_api_obj(weights) and not is_numpy_array(weights):
            raise ModelFileError(
                "The model was trained on arrays of another library or device, and a model file holds NumPy arrays "
                "only: fit it on NumPy arrays, or pickle it."
            )
    for name, value in parameters.items():
        if name.split("__")[-1] == "activation" and callable(value):
            raise ModelFileError(
                f"{name}={value!r} is a function of your own, and a model file holds no code: "
                f"use one of the named activations, {', '.join(sorted(ACTIVATIONS))}."
            )
        if isinstance(value, dict) and any(isinstance(key, bool) for key in value):
            # JSON turns the key into "false", and bool("false") is True.
            raise ModelFileError(
                f"{name}={value!r} has True or False as a key, which a model file cannot keep: use 0 and 1."
            )
