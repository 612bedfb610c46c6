"""Rows in blocks: how many at a time, and which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# About 16 MB of float64: large enough for BLAS-3 to run at full speed, small enough to stay near the caches.
BLOCK_ENTRIES = 2**21


def block_rows(n_columns: int, n_inputs: int = 0) -> int:
    """Rows per block for [H | T] of `n_columns`, made from `n_inputs`.

    At least four times the columns, so that re-triangularizing R with each block adds at most a quarter.
    """
    return max(4 * n_columns, BLOCK_ENTRIES // (n_columns + n_inputs))


def slices_of(n: int, entries_each: int) -> Iterator[slice]:
    """Slices of `n` things, each of which needs `entries_each` numbers, so that none needs more than a block."""
    yield from row_slices(n, max(1, BLOCK_ENTRIES // max(1, entries_each)))


def row_slices(n_rows: int, rows: int) -> Iterator[slice]:
    """Slices of `rows` rows that cover `n_rows`."""
    for start in range(0, n_rows, rows):
        yield slice(start, min(start + rows, n_rows))


def row_blocks(X: Any, y: Any, sample_weight: Any, rows: int) -> Iterator[tuple[Any, Any, Any]]:
    """Cut `(X, y, sample_weight)` into blocks of `rows` rows."""
    for part in row_slices(X.shape[0], rows):
        yield X[part, ...], y[part, ...], None if sample_weight is None else sample_weight[part]
