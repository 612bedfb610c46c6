"""`Survey`: what must be known of all rows before the first is encoded; surveys of parts merge into one of the whole.

A survey holds the range of the inputs, the labels with their weights, the groups, and a sample of the rows, each only
if it was asked for (`Needs`).

The sample is drawn by a hash of what a row holds (`folds.hash_sums` of its inputs and targets): the m distinct rows
with the smallest hashes. As hashes of distinct rows are uniform numbers, these are a simple random sample without
replacement (bottom-k sampling: Cohen, Kaplan, PODC 2007); and as the m smallest of a union are among the m smallest of
its parts, samples merge, and neither order, nor cutting, nor repetition of rows changes which rows are chosen. A row
stands for 1/p distinct rows, where p, its chance to be chosen, is the largest hash that was kept over 2⁶⁴. Of labels
that are rare a few rows are kept besides, by the same rule among the rows of the label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import min_max_axis

from ocrep._linalg.arrays import Array, array_namespace, device_of, take_rows, to_host
from ocrep._linalg.folds import hash_sums, mixed, multipliers
from ocrep._linalg.parallel import BLOCK_ENTRIES
from ocrep._rows.block import Block, listed, smallest_keys

# ------------------------------------------------------------------------------
# `RowSample`: some of the rows, chosen by a hash of what they hold; order, cutting and repetition do not matter.


SAMPLE_ROWS = 10_000
"""How many distinct rows a sample holds; fewer where many inputs would make the sample large."""
_LEAST_ROWS = 1_000
_MOST_ENTRIES = 2**24
# Rows that a sample keeps of each label, however rare the label is, if it has them.
_OF_EACH = 20
# Not the seed of folds: the rows of a sample must not fall into one fold more often than into another.
_SEED = 1
# `_range_of` compares about this many numbers at a time with as many others: several rows side by side.
_PAGE_ENTRIES = 512

Range = tuple[np.ndarray, np.ndarray]
"""Low and high, one entry per input."""


@dataclass(frozen=True, slots=True, eq=False)
class RowSample:
    """The distinct rows of positive weight that have the smallest hashes, sorted by hash; all rows if they are few.

    Equal rows are one, with the sum of their weights. Samples of parts merge into the sample of the whole.
    """

    size: int
    """The most rows that it may hold, without the rows kept for their label."""
    hashes: np.ndarray
    X: Any
    """float64: an array in the memory of the host, or a sparse matrix."""
    y: np.ndarray | None
    weight: np.ndarray
    labels: bool
    """Whether targets are labels."""
    every_label: bool = False
    """Whether a few rows of every label are kept, however rare it is; of several labels a few with and without each."""
    groups: np.ndarray | None = None
    """The keys of the rows' groups, where folds go by groups; equal rows of two groups are then two rows."""

    @classmethod
    def of(
        cls, block: Block, size: int, counted: Array | None, *, labels: bool, every_label: bool = False
    ) -> RowSample:
        """Sample a checked block; `counted` are weights that say by > 0 which rows count, None if all do."""
        X = block.X
        y = None if block.y is None else to_host(block.y)
        size = min(size, max(_LEAST_ROWS, _MOST_ENTRIES // max(1, X.shape[1])))
        hashes = _hashes(X, y, block.groups, labels=labels)
        rows = np.arange(len(hashes)) if counted is None else np.flatnonzero(to_host(counted) > 0.0)
        # Before anything is copied; for each label a few rows must be found among all.
        if not every_label:
            rows = rows[_smallest(hashes[rows], size)]
        weight = np.ones(len(rows)) if block.weight is None else to_host(block.weight)[rows]
        targets = None if y is None else y[rows]
        kept, weight = _kept(hashes[rows], targets, weight, size, every_label=every_label)
        rows = rows[kept]
        inputs = take_rows(X, rows)
        inputs = (inputs if sparse.issparse(inputs) else to_host(inputs)).astype(np.float64)
        groups = None if block.groups is None else block.groups[rows]
        return cls(size, hashes[rows], inputs, None if y is None else y[rows], weight, labels, every_label, groups)

    @property
    def block(self) -> Block:
        """The rows of the sample as one checked block."""
        return Block(self.X, self.y, self.weight, groups=self.groups)

    def first(self, size: int, *, every_label: bool = False) -> RowSample:
        """The sample of at most `size` rows, and of a few rows of every label if that is asked for."""
        size = min(size, self.size)
        kept, weight = _kept(self.hashes, self.y, self.weight, size, every_label=every_label)
        return replace(self.of_rows(kept), weight=weight, size=size, every_label=every_label)

    def of_rows(self, rows: np.ndarray) -> RowSample:
        """Some of the rows of the sample, by their numbers or a mask."""
        return replace(
            self,
            hashes=self.hashes[rows],
            X=self.X[rows],
            y=None if self.y is None else self.y[rows],
            weight=self.weight[rows],
            groups=None if self.groups is None else self.groups[rows],
        )

    def stand_for(self) -> np.ndarray:
        """How many distinct rows each row stands for: one over its chance to be in the sample.

        That chance is the share of hashes up to the largest that was kept, of all rows or of the rows of its label.
        """
        # Uniform in (0, 1); the half keeps a hash of 0 from a chance of 0.
        shares = (self.hashes + 0.5) / 2.0**64
        chances = np.full(len(shares), 1.0 if len(shares) < self.size else shares[self.size - 1])
        if self.every_label and self.y is not None:
            few, labels = _rows_per_label(self.y, self.size)
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
        # Nothing new was kept: the large arrays need not be copied.
        if len(kept) == len(self.hashes) and kept.max() < len(kept) and np.array_equal(weight, self.weight):
            return self
        both = [self.X, other.X]
        X = sparse.vstack(both, format="csr") if sparse.issparse(self.X) else np.concatenate(both)
        groups = None
        if self.groups is not None and other.groups is not None:
            groups = np.concatenate([self.groups, other.groups])[kept]
        y = None if y is None else y[kept]
        return replace(self, hashes=hashes[kept], X=X[kept], y=y, weight=weight, groups=groups)


def _kept(
    hashes: np.ndarray, y: np.ndarray | None, weight: np.ndarray, size: int, *, every_label: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the rows that a sample holds, sorted by hash, and their weights, summed over equal rows."""
    distinct, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    weight = np.bincount(group, weights=weight, minlength=len(first))
    kept = np.arange(len(distinct)) < size
    if every_label and y is not None and not kept.all():
        few, labels = _rows_per_label(y[first], size)
        for code, count in labels:
            order = np.argsort(code, kind="stable")  # rows of a label stay in the order of their hashes
            place = np.arange(len(code)) - np.repeat(np.cumsum(count) - count, count)
            kept[order[place < few]] = True
    return first[kept], weight[kept]


def _rows_per_label(y: np.ndarray, size: int) -> tuple[int, list[tuple[np.ndarray, np.ndarray]]]:
    """How many rows to keep of each label; and for each column of y the label numbers of its rows and their counts.

    Where labels are many, fewer rows of each are kept. Parts have no more labels than the whole, so they keep enough.
    """
    columns = y[:, None] if y.ndim == 1 else y
    codes = [np.unique(column, return_inverse=True)[1] for column in columns.T]
    labels = [(code, np.bincount(code)) for code in codes]
    n_labels = sum(len(count) for _, count in labels)
    return max(1, min(_OF_EACH, size // max(1, n_labels))), labels


def _hashes(X: Any, y: np.ndarray | None, groups: np.ndarray | None, *, labels: bool) -> np.ndarray:
    """One number of 64 bits per row, from its inputs, targets and group."""
    columns = 0 if y is None else 1 if y.ndim == 1 else y.shape[1]
    factors = multipliers(_SEED, X.shape[1] + columns)
    sums = to_host(hash_sums(X, factors[: X.shape[1]])).view(np.uint64)
    if y is not None and labels and y.dtype.kind not in "biuf":
        sums = sums + _text_numbers(y) * factors[-1]
    elif y is not None:
        sums = sums + hash_sums(y[:, None] if y.ndim == 1 else y, factors[X.shape[1] :])
    return mixed(sums if groups is None else sums + mixed(groups))


def _text_numbers(labels: np.ndarray) -> np.ndarray:
    """A number of 64 bits for each label, the same wherever the label occurs."""
    distinct, index = np.unique(labels.astype(str), return_inverse=True)
    digests = [blake2b(label.encode(), digest_size=8).digest() for label in distinct.tolist()]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)[index]


def _smallest(hashes: np.ndarray, size: int) -> np.ndarray:
    """The rows of at least `size` distinct hashes that are smaller than all others; all rows if they are fewer."""
    # Equal rows have equal hashes, so the `size` smallest may be fewer distinct ones: then twice as many are tried.
    n = size
    while n < len(hashes):
        rows = np.flatnonzero(hashes < np.partition(hashes, n)[n])
        if len(np.unique(hashes[rows])) >= size:
            return rows
        n *= 2
    return np.arange(len(hashes))


# ------------------------------------------------------------------------------
# `Needs`, what is asked of the rows, and `Survey`, the answer.


@dataclass(frozen=True, slots=True)
class Needs:
    """What a fit must know of the rows before it can begin."""

    labels: bool
    """Whether targets are labels."""
    range: bool
    """Whether the inputs' range must be known."""
    totals: bool = False
    """Whether the weight of each label's rows must be known."""
    weigh: Callable[[np.ndarray, np.ndarray | None], np.ndarray | None] | None = None
    """Multiplies the weights of rows by the weights of their classes: rows of weight 0 have no part in the range."""
    groups: bool = False
    """Whether rows have groups, and which groups there are must be known."""
    sample: int = 0
    """How many rows must be known themselves."""
    every_label: bool = False
    """Whether a few of these rows must be of each label, however rare it is."""
    estimator: str = "This estimator"
    """The name for sentences."""


def needs_of_all(needs: Sequence[Needs]) -> Needs:
    """What several fits on the same targets must know, all of them together."""
    return replace(
        needs[0],
        range=any(some.range for some in needs),
        groups=any(some.groups for some in needs),
        sample=max(some.sample for some in needs),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """Ranges, labels and shapes of some rows."""

    n_rows: int
    """All rows, with the rows of zero weight."""
    weight_sum: float
    low: np.ndarray
    """The least value of each input among rows of positive weight, ∞ if there is none or it was not asked for."""
    high: np.ndarray
    dtype: np.dtype
    """float32 if every row is, else float64."""
    labels: np.ndarray | None = None
    """The distinct labels, sorted, if they were asked for."""
    totals: np.ndarray | None = None
    """The weight of all rows of each label."""
    groups: np.ndarray | None = None
    """The keys of the groups, sorted, if they were asked for; not all of them where they are many."""
    target_shape: tuple[int, ...] = ()
    """The shape of y without its rows."""
    columns: tuple[str, ...] | None = None
    """The inputs' names, if they have any."""
    like: Array | None = None
    """An array without rows in the library and on the device of X, if that is not NumPy."""
    sample: RowSample | None = None
    """Some of the rows, if they were asked for."""

    @classmethod
    def of(cls, block: Block, needs: Needs) -> Survey:
        """Look at a checked block of rows."""
        X = block.X
        y = block.y
        weight = block.weight
        if needs.weigh is not None:
            weight = needs.weigh(y, weight)
        one_label = needs.labels and y.ndim == 1
        labels, totals = _labels_of(y, weight) if one_label and needs.totals else (None, None)
        low, high = observed_range(X, weight) if needs.range and X.shape[0] else _no_range(X.shape[1])
        groups = None
        if needs.groups:
            groups = smallest_keys(block.groups if weight is None else block.groups[to_host(weight > 0)])
        sample = None
        if needs.sample:
            sample = RowSample.of(block, needs.sample, weight, labels=one_label, every_label=needs.every_label)
        return cls(
            n_rows=X.shape[0],
            weight_sum=float(X.shape[0] if weight is None else array_namespace(weight).sum(weight)),
            low=low,
            high=high,
            dtype=np.dtype(np.float32 if str(X.dtype).endswith("float32") else np.float64),
            labels=labels,
            totals=totals,
            groups=groups,
            target_shape=tuple(y.shape[1:]),
            columns=block.columns if X.shape[1] else None,
            like=None if isinstance(X, np.ndarray) or sparse.issparse(X) else X[:0, ...],
            sample=sample,
        )

    @property
    def range(self) -> Range:
        return self.low, self.high

    @property
    def n_inputs(self) -> int:
        return len(self.low)

    def merge(self, other: Survey) -> Survey:
        """The survey of the rows of both; parts without rows say nothing of types and labels."""
        self._check_same_columns(other)
        if not (self.n_rows and other.n_rows):
            return self if self.n_rows else other
        labels, totals = self._merged_labels(other)
        groups = None
        if self.groups is not None and other.groups is not None:
            groups = smallest_keys(np.concatenate([self.groups, other.groups]))
        return Survey(
            n_rows=self.n_rows + other.n_rows,
            weight_sum=self.weight_sum + other.weight_sum,
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
            dtype=np.promote_types(self.dtype, other.dtype),
            labels=labels,
            totals=totals,
            groups=groups,
            target_shape=self.target_shape,
            columns=self.columns,
            like=self.like,
            sample=self.sample and other.sample and self.sample.merge(other.sample),
        )

    def _merged_labels(self, other: Survey) -> tuple[np.ndarray | None, np.ndarray | None]:
        if self.labels is None or other.labels is None:
            return None, None
        if _is_text(self.labels) != _is_text(other.labels):
            raise ValueError(
                "The labels are texts in some rows and numbers in others, "
                f"such as {self.labels[0]!r} and {other.labels[0]!r}: make them all the same."
            )
        labels, index = np.unique(np.concatenate([self.labels, other.labels]), return_inverse=True)
        return labels, np.bincount(index, weights=np.concatenate([self.totals, other.totals]))

    def _check_same_columns(self, other: Survey) -> None:
        if self.columns != other.columns:
            raise ValueError(f"Some rows have the columns {listed(self.columns)}, and others {listed(other.columns)}.")
        if self.n_inputs != other.n_inputs:
            raise ValueError(f"Some rows have {self.n_inputs} inputs, and others {other.n_inputs}.")
        if self.n_rows and other.n_rows and len(self.target_shape) != len(other.target_shape):
            raise ValueError("y has one axis for some rows and two for others: make them all the same.")
        if self.n_rows and other.n_rows and self.target_shape != other.target_shape:
            raise ValueError(
                f"y has {self.target_shape[0]} and {other.target_shape[0]} columns in different rows: make them all "
                "the same."
            )


def distinct(labels: np.ndarray) -> np.ndarray:
    """The labels that occur, sorted."""
    try:
        return np.unique(labels)
    except TypeError as error:
        raise ValueError(
            f"The labels are of several kinds and cannot be sorted ({error}): make them the same."
        ) from None


def observed_range(X: Any, weight: Any) -> Range:
    """The least and the largest value of each input among rows of positive weight; (∞, −∞) if there is none."""
    counts = None if weight is None else weight > 0
    if sparse.issparse(X):
        X = X if counts is None else X[counts]
        if not X.shape[0]:
            return _no_range(X.shape[1])
        low, high = min_max_axis(X, axis=0)
    elif isinstance(X, np.ndarray):
        X = X if counts is None else X[counts]
        if not len(X):
            return _no_range(X.shape[1])
        low, high = _range_of(X)
    else:
        xp = array_namespace(X)
        X = X if counts is None else xp.take(X, xp.nonzero(counts)[0], axis=0)
        if X.shape[0] == 0:
            return _no_range(X.shape[1])
        low = to_host(xp.min(X, axis=0))
        high = to_host(xp.max(X, axis=0))
    return low.astype(np.float64), high.astype(np.float64)


def _range_of(X: np.ndarray) -> Range:
    """The range of each column, with several rows side by side as one: NumPy reduces long rows ten times as fast."""
    n, m = X.shape
    n_side = max(1, _PAGE_ENTRIES // max(1, m)) if X.flags.c_contiguous else 1
    low = X[-1]
    high = X[-1]
    size = max(1, BLOCK_ENTRIES // max(1, n_side * m)) * n_side
    for start in range(0, n, size):
        piece = X[start : start + size]
        wide = piece[: len(piece) // n_side * n_side].reshape(-1, n_side * m)
        for part in (wide, piece[len(wide) * n_side :]):  # and the few rows at the end that are too few for a wide one
            if len(part):
                low = np.minimum(low, part.min(axis=0).reshape(-1, m).min(axis=0))
                high = np.maximum(high, part.max(axis=0).reshape(-1, m).max(axis=0))
    return low, high


def _labels_of(y: Array, weight: Array | None) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(y, np.ndarray):
        labels = distinct(y)
        index = np.searchsorted(labels, y)
        return labels, np.bincount(index, weights=weight, minlength=len(labels)).astype(np.float64)
    xp = array_namespace(y)
    labels = np.sort(to_host(xp.unique_values(y)))
    weight = xp.ones(y.shape, dtype=xp.float64, device=device_of(y)) if weight is None else weight
    return labels, np.asarray([float(xp.sum(weight[y == int(label)])) for label in labels])


def _is_text(labels: np.ndarray) -> bool:
    return labels.dtype.kind not in "biuf"


def _no_range(n_inputs: int) -> Range:
    return np.full(n_inputs, np.inf), np.full(n_inputs, -np.inf)
