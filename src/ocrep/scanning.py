"""`scan`: name rows that need not fit into memory, without reading them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ocrep.sources.arrays import ArraySource, is_on_disk
from ocrep.sources.base import Source
from ocrep.sources.iterables import IterableSource

Progress = Callable[[int, "int | None"], None]


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """Rows that `fit` and `predict_blocks` read block by block; made by `ocrep.scan`."""

    source: Source
    classes: np.ndarray | None = None
    progress: Progress | None = None
    checkpoint: Path | None = None
    checkpoint_every: float = 60.0


def scan(
    source: Any,
    target: Any = None,
    sample_weight: Any = None,
    *,
    columns: Sequence[str] | None = None,
    classes: Iterable[Any] | None = None,
    progress: Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
) -> Scan:
    """Name rows on disk or in a stream, without reading them: `model.fit(ocrep.scan("data/*.parquet", target="y"))`.

    Parameters
    ----------
    source : path, list of paths, pyarrow.dataset.Dataset, array, iterable or callable
        - Files: Parquet, CSV, Feather or Arrow; a folder or a glob stands for its files in the order of their names.
        - An array that is read slice by slice: `numpy.memmap`, HDF5, Zarr.
        - Blocks `(X, y)` or `(X, y, sample_weight)`, or frames of pandas, polars or Arrow with `target`: from a list
          or another iterable that starts anew each time, from a function that gives a fresh iterator, or from a
          generator, which can be read once only.
    target : str or list of str, or an array
        The column of the targets (a list: several), or for arrays the targets themselves. Not needed to predict.
    sample_weight : str, or an array
        The column of the weights, or for arrays the weights themselves.
    columns : list of str, default=None
        The inputs; by default all columns but the targets and weights. They are found by name in every file.
    classes : array-like, default=None
        All labels, for classifiers. Only rows that can be read just once need it; elsewhere it saves a pass.
    progress : callable, default=None
        Called as `progress(rows_done, rows_in_all or None)` after each block; each pass over the rows counts anew.
    checkpoint : path, default=None
        A file in which `fit` saves how far it has come, so that the same call made again after a crash goes on from
        there, with the same result to the last bit. It is removed when the fit is done.
    checkpoint_every : float, default=60.0
        Seconds between two saves; 0 saves after every block.

    Returns
    -------
    Scan
        What `fit` and `predict_blocks` take in the place of arrays.
    """
    if not (isinstance(checkpoint_every, Real) and float(checkpoint_every) >= 0.0):
        raise ValueError(f"checkpoint_every={checkpoint_every!r} must be a number of seconds ≥ 0.")
    labels = None if classes is None else np.asarray(list(classes))
    roles = {"target": target, "sample_weight": sample_weight, "columns": _names(columns)}
    return Scan(
        _source_of(source, roles, labels),
        labels,
        progress,
        None if checkpoint is None else Path(checkpoint),
        float(checkpoint_every),
    )


def _names(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    if columns is None:
        return None
    if isinstance(columns, str) or not len(columns):
        raise ValueError(f"columns={columns!r} must be a list of names, at least one.")
    return tuple(columns)


def _source_of(source: Any, roles: dict[str, Any], labels: np.ndarray | None) -> Source:
    if is_on_disk(source) or isinstance(source, np.ndarray) or sparse.issparse(source):
        if roles["columns"] is not None:
            raise ValueError("columns= names columns of files and frames, and this is an array: slice it instead.")
        return ArraySource(source, roles["target"], roles["sample_weight"])
    if _names_files(source):
        try:
            from ocrep.sources.files import FileSource
        except ModuleNotFoundError:
            raise ImportError('ocrep.scan on files needs pandas and pyarrow: pip install "ocrep[cli]".') from None
        return FileSource.of(source, **roles, text_labels=None if labels is None else labels.dtype.kind not in "biuf")
    if hasattr(source, "columns") or hasattr(source, "column_names"):
        return IterableSource([source], **roles)  # a frame in memory is one block
    if callable(source) or hasattr(source, "__iter__"):
        return IterableSource(source, **roles)
    raise TypeError(
        f"ocrep.scan cannot read a {type(source).__name__}: give paths, a pyarrow dataset, an array, or an iterable of "
        "(X, y) blocks."
    )


def _names_files(source: Any) -> bool:
    if isinstance(source, str | os.PathLike) or type(source).__module__.startswith("pyarrow._dataset"):
        return True
    return (
        isinstance(source, list | tuple)
        and len(source) > 0
        and all(isinstance(item, str | os.PathLike) for item in source)
    )
