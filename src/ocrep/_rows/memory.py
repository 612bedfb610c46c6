"""Rows in memory or on a device: converted as scikit-learn does, checked once as one block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from ocrep._linalg.arrays import array_namespace
from ocrep._rows.block import Block, Triple
from ocrep._rows.checks import check_numeric, check_shape, checked, text_column
from ocrep._rows.device import as_real, beside, host_array, on_device
from ocrep._rows.groups import as_groups
from ocrep._rows.inputs import as_weights
from ocrep._rows.rows import LocalRows
from ocrep._rows.survey import Needs, Survey


class MemoryRows(LocalRows):
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
        self._groups = None if groups is None else as_groups(groups)
        self._part, self._number, self._first = part, number, first
        self._block: Block | None = None

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

    def survey(self, needs: Needs) -> Survey:
        """Check all rows, and look at them as far as is needed."""
        self.check(needs)
        assert self._block is not None
        return Survey.of(self._block, replace(needs, totals=needs.labels))

    def triples(self, code: Callable[[Block], Triple], height: int, skip: int = 0) -> Iterator[Triple]:
        """Slices of the arrays."""
        block = self._block
        assert block is not None, "survey comes first"
        n_rows = block.X.shape[0]
        if n_rows <= height and not skip:
            yield code(block)
            return
        for start in range(skip, n_rows, height):
            yield code(block[start : min(start + height, n_rows)])


class _Columns(BaseEstimator):
    """Learns the names of columns as every estimator of scikit-learn does."""

    def __init__(self, X: Any) -> None:
        validate_data(self, X, reset=True, skip_check_array=True)


def columns_of(X: Any) -> tuple[str, ...] | None:
    """The names of the columns of a data frame; None for everything else."""
    names = getattr(_Columns(X), "feature_names_in_", None) if hasattr(X, "columns") else None
    return None if names is None else tuple(names)


def _on_host(X: Any, y: Any, sample_weight: Any, needs: Needs) -> tuple[Any, Any, Any, tuple[str, ...] | None]:
    if hasattr(X, "columns"):
        check_shape(X.shape)
    columns = columns_of(X)
    for name, kind in _kinds(X):
        check_numeric(name, kind)
    options: dict[str, Any] = {
        "ensure_all_finite": False,
        "ensure_min_samples": 0,
        "ensure_2d": False,
        "allow_nd": True,
    }
    options["estimator"] = needs.estimator
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


def _kinds(X: Any) -> Iterator[tuple[str, str]]:
    """The columns of a data frame of pandas or polars, and in a word what they hold."""
    types = getattr(X, "dtypes", None)
    if types is not None and hasattr(X, "columns"):
        for name, dtype in zip(X.columns, types, strict=True):
            yield name, kind_of(dtype)


def kind_of(dtype: Any) -> str:
    """What a data frame's column holds, in a word; objects may yet be numbers."""
    told = str(dtype).lower()
    kinds = {
        "texts": ("str", "large_string", "utf8"),
        "dates or times": ("date", "timedelta", "duration", "time"),
        "categories": ("categor", "enum"),
    }
    return next((kind for kind, starts in kinds.items() if told.startswith(starts)), "numbers")


def _on_device(X: Any, y: Any, sample_weight: Any, needs: Needs) -> tuple[Any, Any, Any, None]:
    X = as_real(X, "X")
    if y is not None:
        y = beside("y", y, X)
        y = y if needs.labels and not array_namespace(y).isdtype(y.dtype, "real floating") else as_real(y, "y")
    return X, y, None if sample_weight is None else as_weights(sample_weight, X), None
