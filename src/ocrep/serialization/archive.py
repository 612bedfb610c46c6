"""The zip file around a model: arrays, the tree that refers to them, and the record."""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

from ocrep._files.atomic import replacing
from ocrep.serialization.record import ModelFileError

RECORD = "ocrep.json"
TREE = "model.json"
SKOPS_TREE = "schema.json"
_MAX_EXPANSION = 100
"""Largest ratio of unpacked to packed size. Our files are not compressed; a small file must not fill the memory."""


def read_tree(data: bytes, name: str = TREE) -> Any:
    """The tree in a model file, or in a file of skops, where its name is `SKOPS_TREE`."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return json.loads(archive.read(name))


def write_archive(path: str | os.PathLike[str], skops_data: bytes, *, tree: Any, record: dict[str, Any]) -> None:
    """Write the arrays of a skops file with our tree and record; an existing file is replaced as a whole."""
    source = zipfile.ZipFile(io.BytesIO(skops_data))
    with replacing(path) as part, zipfile.ZipFile(part, "w") as archive:
        for member in source.infolist():
            if member.filename != SKOPS_TREE:
                archive.writestr(member, source.read(member))
        archive.writestr(TREE, json.dumps(tree))
        archive.writestr(RECORD, json.dumps(record, indent=2))


def read_archive(path: str | os.PathLike[str]) -> tuple[bytes, dict[str, Any]]:
    """The bytes of a model file and its record; raise if it is another file or would unpack to too much."""
    data = _read(path)
    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise ModelFileError(f"{path} is not a model file written by ocrep.save_model: {_look_of(data)}.")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(member.file_size for member in archive.infolist()) > _MAX_EXPANSION * len(data):
                raise ValueError("it would unpack to far more than a model.")
            names = set(archive.namelist())
            ours = {RECORD, TREE} <= names and SKOPS_TREE not in names
            record = json.loads(archive.read(RECORD)) if ours else None
    except (zipfile.BadZipFile, zlib.error, ValueError, RuntimeError, EOFError) as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error
    if not isinstance(record, dict):
        raise ModelFileError(f"{path} is a zip file, but not one written by ocrep.save_model.")
    return data, record


def as_skops(data: bytes, tree: Any) -> bytes:
    """Add the tree that skops reads to a model file."""
    content = io.BytesIO(data)
    with zipfile.ZipFile(content, "a") as archive:
        archive.writestr(SKOPS_TREE, json.dumps(tree))
    return content.getvalue()


def _read(path: str | os.PathLike[str]) -> bytes:
    file = Path(path)
    if file.is_dir():
        raise ModelFileError(f"{path} is a folder, not a model file.")
    if not file.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    return file.read_bytes()


def _look_of(data: bytes) -> str:
    if not data:
        return "it is empty"
    if data.startswith(b"PK"):
        return "it begins like one, but is cut short"
    if data.startswith(b"\x80"):
        return "it looks like a pickle, which could run code and is never opened"
    return "its content is of another kind"
