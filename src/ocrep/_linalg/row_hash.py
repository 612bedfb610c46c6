"""A seeded hash of the numbers in each row: the same for every library, order and cutting, and for sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_torch_namespace
from scipy import sparse

from ocrep._linalg.arrays import Array, array_namespace, device_of, to_host
from ocrep._linalg.blocks import row_slices
from ocrep._linalg.counts import PIECE_ENTRIES


def seeded(seed: int) -> np.ndarray:
    """Where the numbers of a seed begin; an array, whose sums wrap around in silence."""
    return np.array([seed % 2**64], dtype=np.uint64) * np.uint64(0xD1B54A32D192ED03)


def multipliers(seed: int, n_columns: int) -> np.ndarray:
    """One odd number of 64 bits per column."""
    x = seeded(seed) + np.arange(1, n_columns + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return mixed(x) | np.uint64(1)


def hash_sums(X: Any, factors: np.ndarray) -> np.ndarray | Array:
    """Σ_j f(x_j)·m_j modulo 2⁶⁴ for each row of X: an array of any library, or a sparse matrix.

    f(0) = 0, so that sparse rows need not be filled. Numbers count as float64, and −0 as 0. The sums of a torch tensor
    on a GPU stay there, as signed integers.
    """
    if sparse.issparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:  # entries of one place must be added up before they are hashed
            X = X.copy()
            X.sum_duplicates()
        parts = _bits(np.asarray(X.data, dtype=np.float64)) * factors[X.indices]
        starts, filled = X.indptr[:-1], np.diff(X.indptr) > 0
        sums = np.zeros(X.shape[0], dtype=np.uint64)
        if len(parts):
            sums[filled] = np.add.reduceat(parts, starts[filled])
        return sums
    xp = array_namespace(X)
    if is_torch_namespace(xp) and X.is_cuda:
        bits = (xp.astype(X, xp.float64) + 0.0).view(xp.int64)
        bits = bits ^ _shifted(bits, 32)
        return xp.sum(bits * xp.asarray(factors.view(np.int64), device=device_of(X)), axis=1)
    X = to_host(X)
    sums = np.empty(X.shape[0], dtype=np.uint64)
    for rows in row_slices(X.shape[0], max(1, PIECE_ENTRIES // max(1, X.shape[1]))):
        sums[rows] = _bits(np.asarray(X[rows], dtype=np.float64)) @ factors
    return sums


def mixed(x: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def upper_half(sums: np.ndarray | Array) -> np.ndarray | Array:
    """The upper 32 bits of the mixed sums, where the sums are."""
    if isinstance(sums, np.ndarray):
        return mixed(sums) >> np.uint64(32)
    x = sums
    for by, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ _shifted(x, by)) * (factor - (1 << 64))  # signed products wrap around as unsigned ones do
    return _shifted(x ^ _shifted(x, 31), 32)


def _shifted(x: Array, by: int) -> Array:
    """x >> by for signed integers, as if they were unsigned."""
    return (x >> by) & ((1 << (64 - by)) - 1)


def _bits(values: np.ndarray) -> np.ndarray:
    bits = (values + 0.0).view(np.uint64)  # −0 + 0 = 0
    bits ^= bits >> np.uint64(32)
    return bits
