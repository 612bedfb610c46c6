"""`RowSample`: some of the rows, chosen by a hash of what they hold; order, cutting and repetition do not matter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import sparse

from ocrep._linalg.arrays import Array, take_rows, to_host
from ocrep._linalg.row_hash import hash_sums, mixed, multipliers
from ocrep._rows.block import Block

SAMPLE_ROWS = 10_000
"""How many distinct rows a sample holds; fewer if there are so many inputs that the sample would not be small."""
_LEAST_ROWS = 1_000
_MOST_ENTRIES = 2**24
# Not the seed of folds: the rows of a sample are in no fold more often than others.
_SEED = 1


@dataclass(frozen=True, slots=True, eq=False)
class RowSample:
    """The distinct rows of positive weight that have the smallest hashes, sorted by hash; all rows if they are few.

    Equal rows are one, with the sum of their weights. Samples of parts merge into that of the whole.
    """

    size: int
    """The most rows that it may hold."""
    hashes: np.ndarray
    X: Any
    """float64: an array in the memory of the host, or a sparse matrix."""
    y: np.ndarray | None
    weight: np.ndarray
    labels: bool
    """Whether targets are labels."""

    @classmethod
    def of(cls, block: Block, size: int, counted: Array | None, *, labels: bool) -> RowSample:
        """Sample a checked block; `counted` are weights that say by > 0 which rows count, None if all do."""
        X, y, n_inputs = block.X, None if block.y is None else to_host(block.y), block.X.shape[1]
        size = min(size, max(_LEAST_ROWS, _MOST_ENTRIES // max(1, n_inputs)))
        hashes = _hashes(X, y, labels=labels)
        rows = np.arange(len(hashes)) if counted is None else np.flatnonzero(to_host(counted) > 0.0)
        rows = rows[_smallest(hashes[rows], size)]
        inputs = take_rows(X, rows)
        inputs = inputs if sparse.issparse(inputs) else to_host(inputs)
        weight = np.ones(len(rows)) if block.weight is None else to_host(block.weight)[rows]
        targets = None if y is None else y[rows]
        return cls(size, hashes[rows], inputs.astype(np.float64), targets, weight, labels)._distinct()

    def first(self, size: int) -> RowSample:
        """The sample of at most `size` rows."""
        y = None if self.y is None else self.y[:size]
        parts = {"hashes": self.hashes[:size], "X": self.X[:size], "y": y, "weight": self.weight[:size]}
        return replace(self, size=min(size, self.size), **parts)

    def merge(self, other: RowSample) -> RowSample:
        """The sample of the rows of both."""
        full = len(self.hashes) >= self.size
        if not len(other.hashes) or (full and other.hashes[0] > self.hashes[-1]):
            return self  # nothing is copied for most of many small blocks
        X = sparse.vstack([self.X, other.X], format="csr") if sparse.issparse(self.X) else [self.X, other.X]
        return replace(
            self,
            hashes=np.concatenate([self.hashes, other.hashes]),
            X=np.concatenate(X) if isinstance(X, list) else X,
            y=None if self.y is None or other.y is None else np.concatenate([self.y, other.y]),
            weight=np.concatenate([self.weight, other.weight]),
        )._distinct()

    def _distinct(self) -> RowSample:
        hashes, first, group = np.unique(self.hashes, return_index=True, return_inverse=True)
        kept = first[: self.size]
        return replace(
            self,
            hashes=hashes[: self.size],
            X=self.X[kept],
            y=None if self.y is None else self.y[kept],
            weight=np.bincount(group, weights=self.weight, minlength=len(first))[: self.size],
        )


def _hashes(X: Any, y: np.ndarray | None, *, labels: bool) -> np.ndarray:
    """One number of 64 bits per row, from its inputs and targets."""
    columns = 0 if y is None else 1 if y.ndim == 1 else y.shape[1]
    factors = multipliers(_SEED, X.shape[1] + columns)
    sums = to_host(hash_sums(X, factors[: X.shape[1]])).view(np.uint64)
    if y is not None and labels and y.dtype.kind not in "biuf":
        sums = sums + _text_numbers(y) * factors[-1]
    elif y is not None:
        sums = sums + hash_sums(y[:, None] if y.ndim == 1 else y, factors[X.shape[1] :])
    return mixed(sums)


def _text_numbers(labels: np.ndarray) -> np.ndarray:
    """A number of 64 bits for each label, the same wherever the label occurs."""
    distinct, index = np.unique(labels.astype(str), return_inverse=True)
    digests = [blake2b(label.encode(), digest_size=8).digest() for label in distinct.tolist()]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)[index]


def _smallest(hashes: np.ndarray, size: int) -> np.ndarray:
    """The rows of at least `size` distinct hashes that are smaller than all others; all rows if they are fewer."""
    n = size
    while n < len(hashes):
        rows = np.flatnonzero(hashes < np.partition(hashes, n)[n])
        if len(np.unique(hashes[rows])) >= size:
            return rows
        n *= 2
    return np.arange(len(hashes))
