"""Undo on error: a call that fails leaves the object as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Take back every attribute set inside if it fails; nothing fitted may be changed in place."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise
