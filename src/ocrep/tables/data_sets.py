"""The paper's data sets as files of rows."""

from __future__ import annotations

from pathlib import Path

from ocrep._files.formats import DataError
from ocrep._files.writing import table_writer, writing
from ocrep.datasets import load


def export_data_set(name: str, folder: Path, suffix: str) -> Path:
    """Write a data set to a file with a column `target`, labels by name, and return its path."""
    try:
        data = load(name, as_frame=True)
    except OSError as error:  # the data set that is not bundled
        raise DataError(f"{name} cannot be loaded: {error}") from error
    frame = data.frame
    if data.task == "classification":
        frame = frame.assign(target=data.target_names[data.target])
    path = folder / f"{name}.{suffix}"
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with table_writer(path) as write:
        write(frame)
    return path
