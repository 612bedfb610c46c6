"""The files that a path, a folder or a pattern stands for."""

from __future__ import annotations

import glob
import os

from ocrep._files.formats import DataError, is_table


def paths_of(name: str) -> list[str]:
    """The files that a path, a folder or a glob stands for, in the order of their names."""
    if os.path.isdir(name):
        found = [os.path.join(root, file) for root, _, files in os.walk(name) for file in files]
        paths = sorted(path for path in found if is_table(path))
        if not paths:
            raise DataError(f"The folder {name} holds no Parquet, CSV, Feather or Arrow files.")
        return paths
    if os.path.exists(name) or not glob.has_magic(name):
        return [name]
    found = sorted(glob.glob(name, recursive=True))
    # A folder with a file's suffix is what Spark and Dask write as one table.
    paths = [path for match in found if os.path.isfile(match) or is_table(match) for path in paths_of(match)]
    if not paths:
        raise DataError(f"No file matches {name}.")
    return paths
