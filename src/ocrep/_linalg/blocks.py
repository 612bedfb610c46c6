"""Rows in blocks: how many at a time, and blocks that can be read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

# Features, targets and weights of some rows.
Encoded: TypeAlias = tuple[Any, Any, Any]

# About 16 MB of float64: large enough for BLAS-3 to run at full speed, small enough to stay near the caches.
BLOCK_ENTRIES = 2**21


def slices_of(n: int, entries_each: int) -> Iterator[slice]:
    """Slices of `n` things, each of which needs `entries_each` numbers, so that none needs more than a block."""
    yield from row_slices(n, max(1, BLOCK_ENTRIES // max(1, entries_each)))


def row_slices(n_rows: int, rows: int) -> Iterator[slice]:
    """Slices of `rows` rows that cover `n_rows`."""
    for start in range(0, n_rows, rows):
        yield slice(start, min(start + rows, n_rows))


def _unchanged(block: Encoded, out: Any = None) -> Encoded:
    return block


@dataclass(frozen=True, slots=True, eq=False)
class RowBlocks:
    """Rows that can be read again from the beginning, and the map that turns what is read into `(H, T, sample_weight)`.

    Reading is apart from the map, so that workers can do the second while one thread does the first.
    """

    read: Callable[[], Iterator[Any]]
    encode: Callable[..., Encoded] = _unchanged
    """Called as `encode(raw)`, or `encode(raw, out)` with memory for the features that is used again and again."""
    labels: bool = False
    """Whether T codes classes as ±1."""
    n_features: int | None = None
    """Columns of H, if H is on the host and its blocks may be worked on by several workers."""
    n_targets: int = 1
    """Columns of T."""
    several: bool = False
    """Whether a row may have several labels, each in a column of its own."""
    n_rows: int | None = None
    """The number of all rows, where they lie in memory."""
    read_by: Callable[[int], Iterator[Any]] | None = None
    """Reads blocks of another height, where a cut costs nothing."""

    def blocks(self) -> Iterator[Encoded]:
        """All rows as blocks `(H, T, sample_weight)`."""
        return map(self.encode, self.read())
