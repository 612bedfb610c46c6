"""`Survey`: what must be known of all rows before the first is mapped; surveys of parts merge into one of the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import min_max_axis

from ocrep._linalg.arrays import Array, array_namespace, device_of, to_host
from ocrep._linalg.blocks import BLOCK_ENTRIES
from ocrep._rows.block import Block, listed
from ocrep._rows.groups import distinct_groups, few
from ocrep._rows.sample import RowSample

# So many numbers of a row, or of several rows side by side, are compared with so many others at a time.
_PAGE_ENTRIES = 512
Range = tuple[np.ndarray, np.ndarray]
"""Low and high, one entry per input."""


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
    """Multiplies the weights of rows by those of their labels: rows that do not count have no part in the range."""
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
    ranged, grouped = any(some.range for some in needs), any(some.groups for some in needs)
    return replace(needs[0], range=ranged, groups=grouped, sample=max(some.sample for some in needs))


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """Ranges, labels and shapes of some rows."""

    n_rows: int
    """All rows, those of zero weight included."""
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
        X, y, weight = block.X, block.y, block.weight
        if needs.weigh is not None:
            weight = needs.weigh(y, weight)
        one_label = needs.labels and y.ndim == 1
        labels, totals = _labels_of(y, weight) if one_label and needs.totals else (None, None)
        low, high = observed_range(X, weight) if needs.range and X.shape[0] else _no_range(X.shape[1])
        return cls(
            n_rows=X.shape[0],
            weight_sum=float(X.shape[0] if weight is None else array_namespace(weight).sum(weight)),
            low=low,
            high=high,
            dtype=np.dtype(np.float32 if str(X.dtype).endswith("float32") else np.float64),
            labels=labels,
            totals=totals,
            groups=distinct_groups(block, weight) if needs.groups else None,
            target_shape=tuple(y.shape[1:]),
            columns=block.columns if X.shape[1] else None,
            like=None if isinstance(X, np.ndarray) or sparse.issparse(X) else X[:0, ...],
            sample=_sample_of(block, weight, needs) if needs.sample else None,
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
        return Survey(
            n_rows=self.n_rows + other.n_rows,
            weight_sum=self.weight_sum + other.weight_sum,
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
            dtype=np.promote_types(self.dtype, other.dtype),
            labels=labels,
            totals=totals,
            groups=self._merged_groups(other),
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

    def _merged_groups(self, other: Survey) -> np.ndarray | None:
        if self.groups is None or other.groups is None:
            return None
        return few(np.concatenate([self.groups, other.groups]))

    def _check_same_columns(self, other: Survey) -> None:
        if self.columns != other.columns:
            raise ValueError(f"Some rows have the columns {listed(self.columns)}, and others {listed(other.columns)}.")
        if self.n_inputs != other.n_inputs:
            raise ValueError(f"Some rows have {self.n_inputs} inputs, and others {other.n_inputs}.")
        if self.n_rows and other.n_rows and len(self.target_shape) != len(other.target_shape):
            raise ValueError("y has one axis for some rows and two for others: make them all the same.")
        if self.n_rows and other.n_rows and self.target_shape != other.target_shape:
            told = " and ".join(str(shape[0]) for shape in (self.target_shape, other.target_shape))
            raise ValueError(f"y has {told} columns in different rows: make them all the same.")


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
        low, high = to_host(xp.min(X, axis=0)), to_host(xp.max(X, axis=0))
    return low.astype(np.float64), high.astype(np.float64)


def _range_of(X: np.ndarray) -> Range:
    """The range of rows, as many of them side by side as fill a page, for which reductions are ten times as fast."""
    n, m = X.shape
    side = max(1, _PAGE_ENTRIES // max(1, m)) if X.flags.c_contiguous else 1
    low, high = X[-1], X[-1]  # a few rows at the end may not fill a page
    height = max(1, BLOCK_ENTRIES // max(1, side * m)) * side
    for start in range(0, n, height):
        piece = X[start : start + height]
        wide = piece[: len(piece) // side * side].reshape(-1, side * m)
        for part in (wide, piece[len(wide) * side :]):
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


def _sample_of(block: Block, weight: Array | None, needs: Needs) -> RowSample:
    one_label = needs.labels and block.y.ndim == 1
    return RowSample.of(block, needs.sample, weight, labels=one_label, every_label=needs.every_label)


def _is_text(labels: np.ndarray) -> bool:
    return labels.dtype.kind not in "biuf"


def _no_range(n_inputs: int) -> Range:
    return np.full(n_inputs, np.inf), np.full(n_inputs, -np.inf)
