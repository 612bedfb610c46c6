"""Training on Dask collections, on threads or on a cluster; `partitions` is the only module that imports Dask."""

from __future__ import annotations

import sys
from typing import Any


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; nobody holds one before Dask is imported, so this never imports it."""
    base = sys.modules.get("dask.base")
    return base is not None and bool(base.is_dask_collection(X))


__all__ = ["is_dask"]
