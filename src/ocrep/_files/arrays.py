"""Files of named arrays (`.npz`), read without running code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def read_arrays(file: Any) -> dict[str, np.ndarray]:
    """All arrays of an open `.npz` file; pickled objects raise."""
    held = np.load(file, allow_pickle=False)
    if not isinstance(held, Mapping):
        raise ValueError("it is a single array")
    return dict(held)


def check_names(held: Mapping[str, np.ndarray], needed: set[str]) -> None:
    """Raise if arrays are lacking."""
    lacking = needed - held.keys()
    if lacking:
        raise ValueError(f"it lacks {', '.join(sorted(lacking))}")
