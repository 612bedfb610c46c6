"""`Rows`, the one interface to rows of every kind, and `MemoryRows`: arrays on the host or on a device.

A fit asks rows for three things: to be surveyed, to be read as blocks, and to be accumulated into one summary, where
they lie. Rows in memory are converted as scikit-learn does, checked once as one block, and then only sliced.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from ocrep._linalg.arrays import array_namespace, to_host
from ocrep._linalg.rows import Encoded, EncodedRows, Encoder
from ocrep._rows.block import Block, as_real, host_array, on_device, on_device_of
from ocrep._rows.checks import as_weights, check_numeric, check_readable, check_shape, checked, text_column
from ocrep._rows.survey import Needs, Survey

# ------------------------------------------------------------------------------
# `Rows`: the one interface to rows in memory, on a device, of a scan or of Dask.


Merged = TypeVar("Merged")


class Rows(ABC):
    """Rows that a fit reads: surveyed first, then accumulated into one summary."""

    once: bool = False
    """Whether the rows can be read only once."""
    local: bool = True
    """Whether the rows can be read here, and not only by the workers that hold them."""
    n_rows: int | None = None
    """The number of all rows, where it is known before they are accumulated."""
    n_in_memory: int | None = None
    """The number of all rows, where they lie in memory and cutting them costs nothing."""
    shared: bool = False
    """Whether several threads may read the rows at a time, each all of them."""
    classes_given: bool = False
    """Whether all labels were named together with the rows."""
    grouped: bool = False
    """Whether the rows have groups."""
    checkpoint: tuple[Path, float] | None = None
    """A file that saves how far a fit has come, and the seconds between two saves."""
    n_parts: int = 1
    """How many parts the rows lie in."""
    n_parts_read: int = 0
    """How many parts (files, blocks) have been begun since reading last started."""

    @abstractmethod
    def check(self, needs: Needs) -> int | None:
        """Check what can be checked before rows are read; gives the number of rows where it is known."""

    @abstractmethod
    def survey(self, needs: Needs) -> Survey:
        """Check the rows and learn what must be known of all of them; must come before they are read."""

    @abstractmethod
    def blocks(self, code: Callable[[Block], Block], size: int, skip: int = 0) -> Iterator[Block]:
        """All rows from the beginning, but for the first `skip`, coded and cut to blocks of `size` rows."""

    def accumulate(
        self,
        step: Callable[[Rows], Merged | None],
        merge: Callable[[Merged, Merged], Merged],
        *,
        n_parts: int | None = None,
    ) -> Merged:
        """The merge of step(part) over all parts, or over the first `n_parts`; rows that are read here are one part."""
        del merge, n_parts
        summary = step(self)
        assert summary is not None, "A survey found rows."
        return summary

    def fingerprints(self) -> tuple[str, ...]:
        """What identifies the files that the rows come from."""
        return ()


# ------------------------------------------------------------------------------


class MemoryRows(Rows):
    """Arrays, lists, data frames and sparse matrices, or arrays that stay on their device."""

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        *,
        part: str = "",
        number: int = 0,
        first: int = 0,
    ) -> None:
        self._given = X, y, sample_weight
        self._groups = None
        if groups is not None:  # on the host, wherever the rows are
            check_readable("groups", groups)
            self._groups = to_host(groups) if on_device(groups) else np.asarray(groups)
        self.grouped = groups is not None
        self._part = part
        self._number = number
        self._first = first
        self._block: Block | None = None

    @classmethod
    def of_block(cls, block: Block) -> MemoryRows:
        """Rows that were checked already."""
        rows = cls(block.X, block.y, block.weight)
        rows._block = block
        rows.n_rows = len(block)
        rows.n_in_memory = None if sparse.issparse(block.X) else len(block)
        return rows

    @property
    def shared(self) -> bool:  # type: ignore[override]
        """Whether several threads may read the rows: a device does one thing at a time."""
        return isinstance(self._given[0], np.ndarray) or not on_device(self._given[0])

    def check(self, needs: Needs) -> int:
        """Convert and check the rows, once."""
        if self._block is None:
            X, y, weight, columns = (_on_host if self.shared else _on_device)(*self._given, needs)
            block = Block(X, y, weight, self._part, self._number, columns=columns)
            block = replace(block, groups=self._groups, first=self._first)
            # A partition may have no rows, or none that counts.
            self._block = checked(block, labels=needs.labels, groups=needs.groups, whole=not self._part)
            self.n_rows = block.X.shape[0]
            self.n_in_memory = None if sparse.issparse(X) else self.n_rows
        return int(self._block.X.shape[0])

    def inputs(self) -> tuple[Any, tuple[str, ...] | None]:
        """The checked inputs, and the names of their columns."""
        assert self._block is not None, "check comes first"
        return self._block.X, self._block.columns

    def survey(self, needs: Needs) -> Survey:
        """Check all rows, and look at them as far as is needed."""
        self.check(needs)
        assert self._block is not None
        return Survey.of(self._block, replace(needs, totals=needs.labels))

    def blocks(self, code: Callable[[Block], Block], size: int, skip: int = 0) -> Iterator[Block]:
        """Slices of the arrays."""
        block = self._block
        assert block is not None, "survey comes first"
        if len(block) <= size and not skip:
            yield code(block)
            return
        for start in range(skip, len(block), size):
            yield code(block[start : min(start + size, len(block))])


def columns_of(X: Any) -> tuple[str, ...] | None:
    """The names of the columns of a data frame, by scikit-learn's own rules; None for everything else."""
    if not hasattr(X, "columns"):
        return None
    estimator = BaseEstimator()
    validate_data(estimator, X, reset=True, skip_check_array=True)
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(names)


def _on_host(X: Any, y: Any, sample_weight: Any, needs: Needs) -> tuple[Any, Any, Any, tuple[str, ...] | None]:
    columns = None
    if hasattr(X, "columns"):
        check_shape(X.shape)
        columns = columns_of(X)
        if getattr(X, "dtypes", None) is not None:  # a data frame of pandas or polars
            for name, dtype in zip(X.columns, X.dtypes, strict=True):
                check_numeric(name, kind_of(dtype))
    check_readable("X", X, "inputs")
    check_readable("y", y)
    # scikit-learn converts; shapes and values are checked in `checks`, with the same messages for rows of every kind.
    options: dict[str, Any] = {
        "ensure_all_finite": False,
        "ensure_min_samples": 0,
        "ensure_2d": False,
        "allow_nd": True,
        "estimator": needs.estimator,
    }
    try:
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_features=0, **options)
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        number = text_column(X)
        check_numeric(number if columns is None else columns[number], "texts")
        raise
    if sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()  # several entries of one place count as their sum
    if y is not None:
        y = check_array(y if isinstance(y, np.ndarray) else host_array(y), dtype=None, input_name="y", **options)
    return X, y, None if sample_weight is None else as_weights(sample_weight, X), columns


def kind_of(dtype: Any) -> str:
    """What a data frame's column holds, in a word; objects may yet be numbers."""
    type_name = str(dtype).lower()
    kinds = {
        "texts": ("str", "large_string", "utf8"),
        "dates or times": ("date", "timedelta", "duration", "time"),
        "categories": ("categor", "enum"),
    }
    return next((kind for kind, starts in kinds.items() if type_name.startswith(starts)), "numbers")


def _on_device(X: Any, y: Any, sample_weight: Any, needs: Needs) -> tuple[Any, Any, Any, None]:
    X = as_real(X, "X")
    if y is not None:
        y = on_device_of(X, "y", y)
        if not needs.labels or array_namespace(y).isdtype(y.dtype, "real floating"):
            y = as_real(y, "y")
    return X, y, None if sample_weight is None else as_weights(sample_weight, X), None


# ------------------------------------------------------------------------------
# Rows that need no encoding.


def encoded_arrays(block: Block, *, labels: bool = False) -> EncodedRows:
    """Rows whose X is H and whose y is T already, for what reads encoded rows."""
    encoder = Encoder(
        code=unchanged,
        encode=_as_encoded,
        block_size=len(block),
        n_features=block.X.shape[1] if isinstance(block.X, np.ndarray) else None,
        n_targets=block.y.shape[1],
        labels=labels,
    )
    return EncodedRows(MemoryRows.of_block(block), encoder)


def unchanged(block: Block) -> Block:
    """Rows that need no coding."""
    return block


def _as_encoded(block: Block, out: np.ndarray | None = None) -> Encoded:
    del out
    return Encoded(block.X, block.y, block.weight)
