"""Models to and from files with skops: loading builds only types on a list, and runs no code from the file."""

from __future__ import annotations

import io
import json
import os
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import sklearn
from sklearn.base import BaseEstimator

from ocrep import literature, rules
from ocrep._features.hidden_map import ACTIVATIONS, Activation, HiddenMap
from ocrep._features.random_layer import RandomLayer
from ocrep._files.atomic import replacing
from ocrep._linalg.factor import Factor
from ocrep._linalg.folds import FoldFactors, FoldPlan
from ocrep._linalg.spectrum import Spectrum
from ocrep._rows.device import lies_elsewhere
from ocrep._training.calibration import Calibrator
from ocrep.estimators.pinv import PinvClassifier, PinvRegressor, TikhonovClassifier, TikhonovRegressor
from ocrep.literature.units import MixedMap

FORMAT = 1
"""Raised when files of today could no longer be read as they are."""

_RECORD = "ocrep.json"
_LOADING_TOO_MUCH = tuple(f"sklearn.externals.array_api_compat.{name}" for name in ("torch", "dask", "cupy"))
_VERSION = version("ocrep")
_MOST_UNPACKED = 100
"""How many times its size a file may unpack to: ours are not packed at all, and a small file must not fill memory."""

# All of ours that a model may consist of; loading builds these and what skops itself trusts, nothing else.
_OWN_TYPES: tuple[type, ...] = (
    *(PinvClassifier, PinvRegressor, TikhonovClassifier, TikhonovRegressor, RandomLayer),
    *(getattr(literature, name) for name in literature.__all__),
    *(kind for kind in vars(rules).values() if isinstance(kind, type) and issubclass(kind, rules.Rule)),
    *(rules.Choice, rules.Curve, Factor, FoldFactors, FoldPlan, Spectrum),
    *(HiddenMap, Activation, MixedMap, Calibrator),
)
_TRUSTED = (
    *(f"{kind.__module__}.{kind.__name__}" for kind in _OWN_TYPES),
    *(f"{known.function.__module__}.{known.function.__name__}" for known in ACTIVATIONS.values()),
    "numpy.dtype",  # scikit-learn's imputers keep one
    "sklearn.utils._bunch.Bunch",  # a dict with attributes: voting and stacking keep one
    *(f"sklearn.feature_selection._univariate_selection.{name}" for name in ("f_classif", "f_regression")),
)


class ModelFileError(ValueError):
    """A model cannot be written, or a file is not a model that can be read; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a model file says of itself."""

    type_name: str
    """The model's class with its module."""
    ocrep_version: str
    sklearn_version: str
    created: str
    """When it was written, in UTC (ISO 8601)."""
    format: int


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model, alone or inside a scikit-learn pipeline, with all that fitting learned.

    The file is written beside its place and then renamed, so an interrupted save leaves an older file whole.

    Parameters
    ----------
    model : estimator
        Any estimator of this library, or a scikit-learn estimator that contains some. An activation that is a
        function of your own cannot be written, since reading it would mean to run code.
    path : path-like
        Where to write; the usual suffix is ".skops".

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
    skops_io = _skops_io()
    _refuse_unsaveable(model)
    try:
        data = skops_io.dumps(model)
    except TypeError as error:
        raise ModelFileError(f"This {type(model).__name__} cannot be written, for skops says: {error}") from error
    names = _types_in(data)
    nameless = sorted(name for name in names if not name.replace(".", "_").isidentifier())
    if nameless:
        raise ModelFileError(
            f"The model holds a function without a name, {', '.join(nameless)}, which no file can keep: "
            "define it with def in a module, and name it in load_model(..., trusted=[...])."
        )
    with replacing(path) as part:
        part.write_bytes(data)
        with zipfile.ZipFile(part, "a") as archive:
            archive.writestr(_RECORD, json.dumps({**asdict(_info_of(model)), "layout": _layout(names)}, indent=2))


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
        It predicts bit for bit what the saved one did.

    Raises
    ------
    ModelFileError
        If the file is no model file, is damaged, holds types that are not trusted, or was written by a newer version.
    """
    skops_io = _skops_io()
    data = _read(path)
    record = _record(data, path)
    _refuse_newer(_info(record, path), path)
    _refuse_other_layout(record, path)
    allowed = [*_TRUSTED, *([trusted] if isinstance(trusted, str | type) else trusted)]
    try:
        unknown = set(skops_io.get_untrusted_types(data=data)) - {_name(kind) for kind in allowed}
        if not unknown:
            return skops_io.loads(data, trusted=allowed)
    except Exception as error:  # whatever goes wrong here comes from what is in the file
        raise ModelFileError(f"{path} is damaged: {type(error).__name__}: {error}") from error
    raise ModelFileError(
        f"{path} holds types that are not trusted: {', '.join(sorted(unknown))}. If you know each of them and where "
        "the file comes from, name them in load_model(..., trusted=[...])."
    )


def model_info(path: str | os.PathLike[str]) -> ModelInfo:
    """What a model file says of itself; the model is not built."""
    return _info(_record(_read(path), path), path)


def _info_of(model: Any) -> ModelInfo:
    return ModelInfo(
        type_name=_name(type(model)),
        ocrep_version=_VERSION,
        sklearn_version=sklearn.__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        format=FORMAT,
    )


def _refuse_unsaveable(model: Any) -> None:
    """Say before any work what would be lost or could not be read again."""
    if not isinstance(model, BaseEstimator):
        raise TypeError(f"save_model writes scikit-learn estimators, and this is a {type(model).__name__}.")
    if any(lies_elsewhere(getattr(part, "coef_", None)) for part in (model, *model.get_params(deep=True).values())):
        raise ModelFileError(
            "The model was trained on arrays of another library or device, and a model file holds NumPy arrays only: "
            "fit it on NumPy arrays, or pickle it."
        )
    for name, value in model.get_params(deep=True).items():
        if name.split("__")[-1] == "activation" and callable(value):
            raise ModelFileError(
                f"{name}={value!r} is a function of your own, and a model file holds no code: "
                f"use one of the named activations, {', '.join(sorted(ACTIVATIONS))}."
            )
        if isinstance(value, dict) and any(isinstance(key, bool) for key in value):
            # JSON makes "false" of it, and bool("false") is True.
            raise ModelFileError(
                f"{name}={value!r} has True or False as a key, which a model file cannot keep: use 0 and 1."
            )


def _read(path: str | os.PathLike[str]) -> bytes:
    file = Path(path)
    if file.is_dir():
        raise ModelFileError(f"{path} is a folder, not a model file.")
    if not file.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    return file.read_bytes()


def _record(data: bytes, path: Any) -> dict[str, Any]:
    """The part of the file that is ours, as a dict; files that are not ours are told from damaged ones."""
    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise ModelFileError(f"{path} is not a model file written by ocrep.save_model: {_look_of(data)}.")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(part.file_size for part in archive.infolist()) > _MOST_UNPACKED * len(data):
                raise ValueError("it would unpack to far more than a model.")
            ours = {_RECORD, "schema.json"} <= set(archive.namelist())
            record = json.loads(archive.read(_RECORD)) if ours else None
    except (zipfile.BadZipFile, zlib.error, ValueError, RuntimeError, EOFError) as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error
    if not isinstance(record, dict):
        raise ModelFileError(f"{path} is a zip file, but not one written by ocrep.save_model.")
    return record


def _look_of(data: bytes) -> str:
    if not data:
        return "it is empty"
    if data.startswith(b"PK"):
        return "it begins like one, but is cut short"
    if data.startswith(b"\x80"):
        return "it looks like a pickle, which could run code and is never opened"
    return "its content is of another kind"


def _info(record: dict[str, Any], path: Any) -> ModelInfo:
    try:
        info = ModelInfo(**{field.name: record[field.name] for field in fields(ModelInfo)})
        _release(info.ocrep_version)
        if [type(value) for value in asdict(info).values()] != [str, str, str, str, int]:
            raise TypeError("a field of another type")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{path} is damaged: its record does not say how it was written ({error}).") from None
    return info


def _refuse_newer(info: ModelInfo, path: Any) -> None:
    if info.format > FORMAT or _release(info.ocrep_version) > _release(_VERSION):
        raise ModelFileError(
            f"{path} was written by ocrep {info.ocrep_version}, and this is {_VERSION}: "
            "upgrade with pip install -U ocrep."
        )


def _release(name: str) -> tuple[int, int]:
    major, minor = name.split(".")[:2]
    return int(major), int(minor)


def _layout(names: Iterable[str]) -> dict[str, list[str]]:
    """The fields of our dataclasses among these types: files keep them by position."""
    own = {_name(kind): kind for kind in _OWN_TYPES if is_dataclass(kind)}
    return {name: [field.name for field in fields(own[name])] for name in sorted(set(names) & set(own))}


def _refuse_other_layout(record: dict[str, Any], path: Any) -> None:
    written = record.get("layout")
    if not isinstance(written, dict):
        raise ModelFileError(f"{path} is damaged: its record does not say how its types are laid out.")
    now = _layout(written)
    changed = sorted(name for name in written if written[name] != now.get(name))
    if changed:
        raise ModelFileError(
            f"{path} was written by ocrep {record['ocrep_version']}, in which {', '.join(changed)} had other fields: "
            f"load it with that version, or fit the model again with {_VERSION}."
        )


def _types_in(data: bytes) -> set[str]:
    """The names of all types and functions in a skops file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return set(_walk(json.loads(archive.read("schema.json"))))


def _walk(node: Any) -> Iterator[str]:
    if isinstance(node, dict) and "__loader__" in node:
        yield f"{node['__module__']}.{node['__class__']}"
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _walk(child)


def _name(kind: str | type) -> str:
    return kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__name__}"


def _skops_io() -> Any:
    # Importing skops walks through all of scikit-learn, and these parts of it load torch and dask where they are
    # installed: seconds and 200 MB for nothing. None lets them be not found; what is loaded already stays.
    modules: dict[str, Any] = sys.modules
    hidden = [name for name in _LOADING_TOO_MUCH if name not in modules]
    modules.update(dict.fromkeys(hidden))
    try:
        import skops.io
    except ImportError:
        raise ImportError('Model files need skops: pip install "ocrep[cli]".') from None
    finally:
        for name in hidden:
            modules.pop(name, None)
    return skops.io
