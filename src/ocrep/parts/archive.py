"""The bytes of a part or a survey: an uncompressed `.npz` of plain arrays, so that reading it runs no code."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np

from ocrep import __version__
from ocrep._files.arrays import check_names, read_arrays

FORMAT = 1
"""The layout of the bytes; those of another are refused."""
_HEAD = "ocrep "
_STATE = "state:"
_NAMES = {"head", "format", "version", "plan", "numbers", "kind"}


def pack(word: str, plan: str, numbers: frozenset[int], kind: str, arrays: dict[str, np.ndarray]) -> bytes:
    """A part or a survey (`word`) as bytes; `kind` says what the arrays are."""
    held: dict[str, Any] = {
        "head": np.array(_HEAD + word),
        "format": np.array(FORMAT),
        "version": np.array(__version__),
        "plan": np.array(plan),
        "numbers": np.array(sorted(numbers), dtype=np.int64),
        "kind": np.array(kind),
        **{_STATE + name: array for name, array in arrays.items()},
    }
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **held)
    return file.getvalue()


def unpack(data: bytes, word: str) -> tuple[str, frozenset[int], str, dict[str, np.ndarray]]:
    """Plan, numbers, kind and arrays of a part or a survey (`word`)."""
    try:
        _check_size(data)
        held = read_arrays(io.BytesIO(data))
        check_names(held, {"head", "format", "version"})
    except (ValueError, KeyError, EOFError, OSError, MemoryError, zipfile.BadZipFile) as error:
        raise damaged(word, error) from error
    head, version = str(held["head"]), str(held["version"])
    if head != _HEAD + word:
        raise ValueError(f"These are the bytes of a {head.removeprefix(_HEAD)!r}, and a {word} is needed.")
    if held["format"].shape or int(held["format"]) != FORMAT:
        raise ValueError(
            f"This {word} was written by ocrep {version} in another format, and this is ocrep {__version__}: use one "
            "version everywhere."
        )
    try:
        check_names(held, _NAMES)
        numbers = frozenset(int(number) for number in held["numbers"].tolist())
    except (ValueError, TypeError) as error:
        raise damaged(word, error) from error
    arrays = {name.removeprefix(_STATE): array for name, array in held.items() if name.startswith(_STATE)}
    return str(held["plan"]), numbers, str(held["kind"]), arrays


def damaged(word: str, error: BaseException) -> ValueError:
    """What to say of bytes that cannot be read."""
    return ValueError(f"These bytes are not a {word} of ocrep, or a damaged one ({error}): make the {word} again.")


def _check_size(data: bytes) -> None:
    """Raise for compressed files: ours are not, and few bytes must not fill the memory."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        if any(member.compress_type != zipfile.ZIP_STORED for member in file.infolist()):
            raise ValueError("it is compressed")
