"""How far a long fit has come, in a file: arrays and texts only, whole or not there, and refused for another fit."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic

import numpy as np

from ocrep._files.atomic import replacing

_FORMAT = "ocrep checkpoint 1"
_STATE = "state:"
_NAMES = {"model", "stage", "n_rows", "digest", "marks"}


@dataclass(frozen=True, slots=True, eq=False)
class Progress:
    """A pass over the rows, part of the way."""

    stage: str
    """Which pass: its name says what `arrays` are."""
    n_rows: int
    """Rows that are in `arrays`, counted from the beginning."""
    digest: str
    """A hash of those rows."""
    marks: tuple[str, ...]
    """The files that the pass has begun, with sizes and times; empty where rows come from elsewhere."""
    arrays: dict[str, np.ndarray]


class Journal:
    """The checkpoint of one fit: `model` identifies what is fitted."""

    def __init__(self, path: Path, every: float, model: str) -> None:
        self._path, self._every, self._model = path, every, model
        self._saved_at = monotonic()

    def load(self) -> Progress | None:
        """What was saved by the same fit; None if there is no file."""
        if not self._path.exists():
            return None
        try:
            held = _arrays_in(self._path)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{self._path} is damaged or no checkpoint: delete it to start anew ({error}).") from error
        if str(held["format"]) != _FORMAT:
            raise ValueError(f"{self._path} is a checkpoint of another version of ocrep: delete it to start anew.")
        if str(held["model"]) != self._model:
            raise ValueError(
                f"{self._path} is the checkpoint of a fit with other parameters, columns, classes or input ranges: "
                "make the same call as before, or delete the file to start anew."
            )
        return Progress(
            str(held["stage"]),
            int(held["n_rows"]),
            str(held["digest"]),
            tuple(held["marks"].tolist()),
            {name.removeprefix(_STATE): array for name, array in held.items() if name.startswith(_STATE)},
        )

    @property
    def due(self) -> bool:
        """Whether the last save is so long ago that the next one is due."""
        return monotonic() - self._saved_at >= self._every

    def save(self, progress: Progress) -> None:
        """Write the file anew; an interrupted write leaves the old one."""
        held = {
            "format": np.array(_FORMAT),
            "model": np.array(self._model),
            "stage": np.array(progress.stage),
            "n_rows": np.array(progress.n_rows),
            "digest": np.array(progress.digest),
            "marks": np.array(progress.marks, dtype=np.str_),
            **{_STATE + name: array for name, array in progress.arrays.items()},
        }
        with replacing(self._path) as part, part.open("wb") as file:
            np.savez(file, allow_pickle=False, **held)
        self._saved_at = monotonic()

    def refuse_other_rows(self) -> None:
        """Raise because the rows are not those that the checkpoint was made of."""
        raise ValueError(
            f"{self._path} is the checkpoint of a fit on other rows: files or blocks that it has seen were changed. "
            "Bring them back, or delete the file to start anew."
        )

    def remove(self) -> None:
        """The fit is done: forget how far it had come."""
        self._path.unlink(missing_ok=True)


def refuse_unwritable(path: Path) -> None:
    """Raise before hours of work if no file can be made beside this one, where it will be written."""
    try:
        TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise ValueError(
            f"checkpoint={str(path)!r} cannot be written ({error.strerror}): name a file in a folder that is there and "
            "that you may write to."
        ) from error


def _arrays_in(path: Path) -> dict[str, np.ndarray]:
    """All that the file holds; what a checkpoint of this version lacks is an error."""
    with path.open("rb") as opened:
        file = np.load(opened, allow_pickle=False)
        if not isinstance(file, Mapping):
            raise ValueError("it is a single array")
        held = dict(file)
    lacking = _NAMES - held.keys() if str(held["format"]) == _FORMAT else set()
    if lacking:
        raise ValueError(f"it lacks {', '.join(sorted(lacking))}")
    return held
