"""Where rows come from: memory, a device, a scan, Dask; checked once, in `checks`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ocrep._rows.block import is_dask
from ocrep._rows.memory import MemoryRows, Rows
from ocrep._rows.sources import ArraySource, is_on_disk
from ocrep._rows.stream import Scan, ScanRows


def open_rows(X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Rows:
    """Rows of whatever kind, behind one interface; no row is read yet."""
    if type(X) is np.ndarray:
        return MemoryRows(X, y, sample_weight, groups)
    if is_dask(X):
        from ocrep._rows.dask import DaskRows  # whoever holds a collection has imported Dask

        return DaskRows(X, y, sample_weight, groups)
    if isinstance(X, Scan):
        if y is not None or sample_weight is not None or groups is not None:
            raise ValueError("ocrep.scan names targets, weights and groups itself: give fit only the scan.")
        return ScanRows(X)
    if is_on_disk(X) and y is not None:
        return ScanRows(Scan(ArraySource(X, y, sample_weight, groups)))
    return MemoryRows(X, y, sample_weight, groups)


__all__ = ["open_rows"]
