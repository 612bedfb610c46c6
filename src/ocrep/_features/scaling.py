"""The range of the inputs, and how it is brought to [−1, 1]."""

from __future__ import annotations

from typing import Any

import numpy as np

from ocrep._linalg.arrays import EPS
from ocrep._rows.survey import Range


def input_range(scaling: Any, n_inputs: int, observed: Range | None) -> Range:
    """The range that goes to [−1, 1]; the range (−1, 1) itself leaves inputs alone."""
    if isinstance(scaling, str):
        assert observed is not None
        return observed
    try:
        low, high = (-1.0, 1.0) if scaling is None else scaling
    except (TypeError, ValueError):
        raise ValueError(f"input_scaling={scaling!r} is not a pair: use 'minmax', (low, high), or None.") from None
    ends = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    if (
        any(end.shape not in ((), (1,), (n_inputs,)) or not np.isfinite(end).all() for end in ends)
        or (ends[0] > ends[1]).any()
    ):
        raise ValueError(
            f"input_scaling=(low, high) needs finite numbers with low ≤ high, one pair for all or {n_inputs} each, "
            "one per input."
        )
    return np.broadcast_to(ends[0], n_inputs), np.broadcast_to(ends[1], n_inputs)


def to_unit_interval(low: np.ndarray, high: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """The mid-range, and the factor that brings the rest to [−1, 1]; 0 for a constant input."""
    center, half = low / 2 + high / 2, high / 2 - low / 2
    # A range of a few units in the last place is rounding, not information; stretching it would feed in noise.
    constant = half <= np.maximum(2 * rounding(dtype) * np.abs(center), np.finfo(np.float64).tiny)
    return center, np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, half))


def rounding(dtype: Any) -> float:
    """ε of the inputs."""
    return EPS if str(dtype).endswith("64") else float(np.finfo(np.float32).eps)
