"""Import skops without all that it would bring along."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

UNNEEDED = ("torch", "dask", "cupy", "jax")


def import_skops() -> None:
    """Importing skops walks through all of scikit-learn, and its array-API modules load torch and dask where they are.

    No command needs them, and they cost seconds and 200 MB. Without skops, what needs it says so.
    """
    with _absent(UNNEEDED):
        try:
            import_module("skops.io")
        except ImportError:
            return


@contextmanager
def _absent(names: tuple[str, ...]) -> Iterator[None]:
    """Let these modules be not found, unless they are loaded already."""
    modules: dict[str, Any] = sys.modules
    hidden = [name for name in names if name not in modules]
    modules.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del modules[name]
