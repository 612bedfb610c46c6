"""What a model file says about itself: who wrote it, when, and in which format."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

import sklearn

from ocrep import __version__
from ocrep.serialization.names import name_of, path_of

FORMAT = 1
"""The layout of model files; a new number means that older versions cannot read them."""


class ModelFileError(ValueError):
    """A model cannot be written, or a file cannot be read as a model; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a model file says about itself."""

    type_name: str
    """The model's class by its public name, such as "ocrep.PinvRegressor"."""
    ocrep_version: str
    sklearn_version: str
    created: str
    """When it was written, in UTC (ISO 8601)."""
    format: int


def record_of(model: Any) -> dict[str, Any]:
    """The record for a file with this model, written now."""
    info = ModelInfo(
        type_name=name_of(path_of(type(model))),
        ocrep_version=__version__,
        sklearn_version=sklearn.__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        format=FORMAT,
    )
    return asdict(info)


def info_from(record: dict[str, Any], path: str | os.PathLike[str]) -> ModelInfo:
    """Read a record; raise if an entry is missing or of the wrong type."""
    try:
        info = ModelInfo(**{field.name: record[field.name] for field in fields(ModelInfo)})
        _release(info.ocrep_version)
        if [type(value) for value in asdict(info).values()] != [str, str, str, str, int]:
            raise TypeError("an entry of the wrong type")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{path} is damaged: its record does not say how it was written ({error}).") from None
    return info


def check_not_newer(info: ModelInfo, path: str | os.PathLike[str]) -> None:
    """Raise if the file comes from a newer release or has a newer format."""
    if info.format > FORMAT or _release(info.ocrep_version) > _release(__version__):
        raise ModelFileError(
            f"{path} has format {info.format} and was written by ocrep {info.ocrep_version}, and this is ocrep "
            f"{__version__}, which reads formats up to {FORMAT}: upgrade with pip install -U ocrep."
        )


def _release(name: str) -> tuple[int, int]:
    major, minor = name.split(".")[:2]
    return int(major), int(minor)
