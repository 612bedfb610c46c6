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
# A label that is rare has so many rows in a sample all the same, if it has them.
_OF_EACH = 20
# Not the seed of folds: the rows of a sample are in no fold more often than others.
_SEED = 1


@dataclass(frozen=True, slots=True, eq=False)
class RowSample:
    """The distinct rows of positive weight that have the smallest hashes, sorted by hash; all rows if they are few.

    Equal rows are one, with the sum of their weights. Samples of parts merge into that of the whole.
    """

    size: int
    """The most rows that it may hold, those kept for their label not counted."""
    hashes: np.ndarray
    X: Any
    """float64: an array in the memory of the host, or a sparse matrix."""
    y: np.ndarray | None
    weight: np.ndarray
    labels: bool
    """Whether targets are labels."""
    every_label: bool = False
    """Whether a few rows of every label are kept, however rare it is; of several labels a few with and without each."""

    @classmethod
    def of(
        cls, block: Block, size: int, counted: Array | None, *, labels: bool, every_label: bool = False
    ) -> RowSample:
        """Sample a checked block; `counted` are weights that say by > 0 which rows count, None if all do."""
        X, y, n_inputs = block.X, None if block.y is None else to_host(block.y), block.X.shape[1]
        size = min(size, max(_LEAST_ROWS, _MOST_ENTRIES // max(1, n_inputs)))
        hashes = _hashes(X, y, labels=labels)
        rows = np.arange(len(hashes)) if counted is None else np.flatnonzero(to_host(counted) > 0.0)
        if not every_label:
            rows = rows[_smallest(hashes[rows], size)]
        weight = np.ones(len(rows)) if block.weight is None else to_host(block.weight)[rows]
        targets = None if y is None else y[rows]
        kept, weight = _kept(hashes[rows], targets, weight, size, every_label=every_label)
        rows = rows[kept]
        inputs = take_rows(X, rows)
        inputs = (inputs if sparse.issparse(inputs) else to_host(inputs)).astype(np.float64)
        return cls(size, hashes[rows], inputs, None if y is None else y[rows], weight, labels, every_label)

    def first(self, size: int, *, every_label: bool = False) -> RowSample:
        """The sample of at most `size` rows, and of a few rows of every label if that is asked for."""
        size = min(size, self.size)
        kept, weight = _kept(self.hashes, self.y, self.weight, size, every_label=every_label)
        parts = {"hashes": self.hashes[kept], "X": self.X[kept], "y": None if self.y is None else self.y[kept]}
        return replace(self, **parts, weight=weight, size=size, every_label=every_label)

    def stand_for(self) -> np.ndarray:
        """How many distinct rows each row stands for: one over the chance that a row such as it is in the sample.

        That is the share of hashes up to the largest that was kept, of all rows or of those of the same label.
        """
        shares = (self.hashes + 0.5) / 2.0**64
        chances = np.full(len(shares), 1.0 if len(shares) < self.size else shares[self.size - 1])
        if self.every_label and self.y is not None:
            few, labels = _few(self.y, self.size)
            for code, count in labels:
                largest = np.ones(len(count))  # of labels with fewer rows, all are here
                order = np.argsort(code, kind="stable")
                enough = count >= few
                largest[enough] = shares[order[(np.cumsum(count) - count + few - 1)[enough]]]
                chances = np.maximum(chances, largest[code])
        return 1.0 / chances

    def merge(self, other: RowSample) -> RowSample:
        """The sample of the rows of both."""
        full = len(self.hashes) >= self.size
        if not len(other.hashes) or (full and not self.every_label and other.hashes[0] > self.hashes[-1]):
            return self  # nothing is copied for most of many small blocks
        hashes = np.concatenate([self.hashes, other.hashes])
        weight = np.concatenate([self.weight, other.weight])
        y = None if self.y is None or other.y is None else np.concatenate([self.y, other.y])
        kept, weight = _kept(hashes, y, weight, self.size, every_label=self.every_label)
        if len(kept) == len(self.hashes) and kept.max() < len(kept) and np.array_equal(weight, self.weight):
            return self
        both = [self.X, other.X]
        X = sparse.vstack(both, format="csr") if sparse.issparse(self.X) else np.concatenate(both)
        return replace(self, hashes=hashes[kept], X=X[kept], y=None if y is None else y[kept], weight=weight)


def _kept(
    hashes: np.ndarray, y: np.ndarray | None, weight: np.ndarray, size: int, *, every_label: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the rows that a sample holds, sorted by hash, and their weights, those of equal rows added."""
    distinct, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    weight = np.bincount(group, weights=weight, minlength=len(first))
    kept = np.arange(len(distinct)) < size
    if every_label and y is not None and not kept.all():
        kept |= _few_of_each(y[first], size)
    return first[kept], weight[kept]


def _few_of_each(y: np.ndarray, size: int) -> np.ndarray:
    """Which rows are the first few of their label, or of those with or without one of several labels."""
    few, labels = _few(y, size)
    kept = np.zeros(len(y), dtype=bool)
    for code, count in labels:
        order = np.argsort(code, kind="stable")  # rows of a label stay in the order of their hashes
        place = np.arange(len(y)) - np.repeat(np.cumsum(count) - count, count)
        kept[order[place < few]] = True
    return kept


def _few(y: np.ndarray, size: int) -> tuple[int, list[tuple[np.ndarray, np.ndarray]]]:
    """How many rows to keep of each label; and for each column of y the label numbers of its rows and their counts.

    Where labels are many, fewer rows of each are kept. Parts have no more labels than the whole, so they keep enough.
    """
    columns = y[:, None] if y.ndim == 1 else y
    codes = [np.unique(column, return_inverse=True)[1] for column in columns.T]
    labels = [(code, np.bincount(code)) for code in codes]
    return max(1, min(_OF_EACH, size // max(1, sum(len(count) for _, count in labels)))), labels


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
