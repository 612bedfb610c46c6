"""Groups of rows as keys of 64 bits: equal groups have equal keys, in every block, file and type of array."""

from __future__ import annotations

from hashlib import blake2b
from numbers import Real
from typing import Any

import numpy as np

from ocrep._linalg.arrays import to_host
from ocrep._rows.block import Block
from ocrep._rows.device import on_device

_SIGN = np.uint64(1 << 63)
# As many groups as are told apart while rows are surveyed.
MOST_GROUPS = 1024


def as_groups(groups: Any) -> np.ndarray:
    """Groups as an array on the host, wherever the rows are."""
    return to_host(groups) if on_device(groups) else np.asarray(groups)


def keys_of(groups: np.ndarray) -> np.ndarray:
    """Numbers by their value as float64, in their order; texts, and all other objects, by a hash."""
    if groups.dtype.kind in "mM":
        groups = groups.astype("datetime64[ns]" if groups.dtype.kind == "M" else "timedelta64[ns]").astype(np.int64)
    if groups.dtype.kind in "biuf":
        bits = (groups.astype(np.float64) + 0.0).view(np.uint64)  # −0 + 0 = 0
        return np.where(bits & _SIGN, ~bits, bits | _SIGN)
    values = groups.tolist()
    known = {value: _key(value) for value in set(values)}
    return np.array([known[value] for value in values], dtype=np.uint64)


def _key(value: Any) -> np.uint64:
    if isinstance(value, Real):
        return keys_of(np.array([float(value)]))[0]
    text = value if isinstance(value, bytes) else str(value).encode()
    return np.uint64(int.from_bytes(blake2b(text, digest_size=8).digest(), "little"))


def distinct_groups(block: Block, weight: Any) -> np.ndarray:
    """The keys of rows of positive weight, sorted, and at most one more than are told apart."""
    keys = block.groups if weight is None else block.groups[to_host(weight > 0)]
    return few(keys)


def few(keys: np.ndarray) -> np.ndarray:
    """The least of the keys, each once; so those of parts merge into those of the whole."""
    return np.unique(keys)[: MOST_GROUPS + 1]
