"""The zip file around a model: arrays, the tree that refers to them, and the record of who wrote it, when and how."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sklearn

from ocrep import __version__
from ocrep._files.writing import replacing

FORMAT = 2
"""The layout of model files and the names of what a model learned; a new number means that older versions cannot read
them. Format 2 has the output weights of networks under `output_coef_`, format 1 had them under `coef_`."""
OLDEST_FORMAT = 2
"""The oldest format that can be read; later formats keep reading it."""
RECORD = "ocrep.json"
TREE = "model.json"
SKOPS_TREE = "schema.json"
_MAX_EXPANSION = 100
"""Largest ratio of unpacked to packed size: a small file must not fill the memory."""
_LOOKS = {
    b"PK": "it begins like one, but is cut short",
    b"\x80": "it looks like a pickle, which could run code and is never opened",
    b"": "its content is of another kind",
}


class ModelFileError(ValueError):
    """A model cannot be written, or a file cannot be read as a model; the message says why and what to do."""


@contextmanager
def blaming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever goes wrong inside is caused by the content of this file: it is damaged."""
    try:
        yield
    except (ModelFileError, MemoryError):
        raise
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0]
        raise ModelFileError(f"{path} is damaged: {type(error).__name__}: {reason}") from error


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
    digest: str
    """A hash of everything else in the file: what was changed on the way is noticed."""


def write(path: str | os.PathLike[str], skops_data: bytes, *, tree: Any, type_name: str, packed: bool = False) -> None:
    """Write the arrays of a skops file with our tree and record; an existing file is replaced as a whole."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    source = zipfile.ZipFile(io.BytesIO(skops_data))
    members: dict[str, bytes | str] = {name: source.read(name) for name in source.namelist() if name != SKOPS_TREE}
    members[TREE] = json.dumps(tree)
    with replacing(path) as part:
        for compression in (zipfile.ZIP_DEFLATED,) * packed + (zipfile.ZIP_STORED,):
            with zipfile.ZipFile(part, "w", compression) as archive:
                for name, content in members.items():
                    archive.writestr(name, content)
            if sum(map(len, members.values())) < _MAX_EXPANSION * part.stat().st_size:
                break  # otherwise the file would be refused when it is read
        with zipfile.ZipFile(part, "a") as archive:
            info = ModelInfo(type_name, __version__, sklearn.__version__, now, FORMAT, digest_of(archive))
            archive.writestr(RECORD, json.dumps(asdict(info), indent=2))


def digest_of(archive: zipfile.ZipFile) -> str:
    """A hash of the names and the contents of all members but the record."""
    found = hashlib.sha256()
    for name in sorted(set(archive.namelist()) - {RECORD}):
        found.update(json.dumps([name, hashlib.sha256(archive.read(name)).hexdigest()]).encode())
    return found.hexdigest()


def read(path: str | os.PathLike[str]) -> tuple[bytes, ModelInfo]:
    """The bytes of a model file and its record; raise if it is another file or would unpack to too much."""
    if Path(path).is_dir():
        raise ModelFileError(f"{path} is a folder, not a model file.")
    if not Path(path).exists():
        raise FileNotFoundError(f"There is no file {path}.")
    data = Path(path).read_bytes()
    if not zipfile.is_zipfile(io.BytesIO(data)):
        look = next(look for start, look in _LOOKS.items() if data.startswith(start)) if data else "it is empty"
        raise ModelFileError(f"{path} is not a model file written by ocrep.save_model: {look}.")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(member.file_size for member in archive.infolist()) > _MAX_EXPANSION * len(data):
                raise ValueError("it would unpack to far more than a model.")
            names = set(archive.namelist())
            # skops would read its own tree instead of ours, which is the one that is checked.
            ours = {RECORD, TREE} <= names and SKOPS_TREE not in names
            record = json.loads(archive.read(RECORD)) if ours else None
            digest = digest_of(archive) if ours else ""
    except (zipfile.BadZipFile, zlib.error, ValueError, RuntimeError, EOFError) as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error
    if not isinstance(record, dict):
        raise ModelFileError(f"{path} is a zip file, but not one written by ocrep.save_model.")
    try:
        info = ModelInfo(**{field.name: record[field.name] for field in fields(ModelInfo)})
        _release(info.ocrep_version)
        if [type(value) for value in asdict(info).values()] != [str, str, str, str, int, str]:
            raise TypeError("an entry of the wrong type")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{path} is damaged: its record does not say how it was written ({error}).") from None
    if info.format == FORMAT and info.digest != digest:
        raise ModelFileError(f"{path} is damaged: its content was changed after it was written.")
    return data, info


def tree(data: bytes, name: str = TREE) -> Any:
    """The tree in a model file, or in a file of skops, where its name is `SKOPS_TREE`."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return json.loads(archive.read(name))


def with_skops_tree(data: bytes, tree: Any) -> bytes:
    """Add the tree that skops reads to a model file."""
    content = io.BytesIO(data)
    with zipfile.ZipFile(content, "a") as archive:
        archive.writestr(SKOPS_TREE, json.dumps(tree))
    return content.getvalue()


def check_format(info: ModelInfo, path: str | os.PathLike[str]) -> None:
    """Raise if the file has a newer format or one that is no longer read, or comes from a newer release."""
    if info.format > FORMAT or _release(info.ocrep_version) > _release(__version__):
        raise ModelFileError(
            f"{path} has format {info.format} and was written by ocrep {info.ocrep_version}, and this is ocrep "
            f"{__version__}, which reads formats up to {FORMAT}: upgrade with pip install -U ocrep."
        )
    if info.format < OLDEST_FORMAT:
        raise ModelFileError(
            f"{path} was written by an older ocrep in format {info.format}, and this is ocrep {__version__}, which "
            f"reads formats from {OLDEST_FORMAT} on: train the model again."
        )


def _release(name: str) -> tuple[int, int]:
    major, minor = name.split(".")[:2]
    return int(major), int(minor)
