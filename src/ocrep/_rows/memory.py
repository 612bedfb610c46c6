"""Rows in memory or on a device: converted as scikit-learn does, checked once as one block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from ocrep._linalg.arrays import array_namespace
from ocrep._rows.block import Block, Triple, as_groups, as_real, beside, host_array, on_device
from ocrep._rows.checks import as_weights, check_numeric, check_shape, checked, text_column
from ocrep._rows.survey import Needs, Survey

# ------------------------------------------------------------------------------
# `Rows`: the one interface to rows in memory, on a device, of a scan or of Dask.


Summary = TypeVar("Summary")


class RowPart(ABC):
    """Rows that can be read here, block by block."""

    n_in_memory: int | None = None
    """The number of all rows, where they lie in memory and cutting them costs nothing."""
    n_parts_read: int = 0
    """How many parts (files, blocks) the current pass has begun."""

    @abstractmethod
    def check(self, needs: Needs) -> int | None:
        """Check what can be checked before rows are read; gives the number of rows where it is known."""

    @abstractmethod
    def triples(self, code: Callable[[Block], Triple], height: int, skip: int = 0) -> Iterator[Triple]:
        """All rows from the beginning, but for the first `skip`, coded and cut to blocks of `height` rows."""

    def fingerprints(self) -> tuple[str, ...]:
        return ()


class Rows(ABC):
    """Rows that a fit reads: surveyed first, then accumulated into one summary."""

    once: bool = False
    """Whether the rows can be read only once."""
    local: bool = True
    """Whether the rows can be read here, and not only by the workers that hold them."""
    n_rows: int | None = None
    """The number of all rows, where it is known before they are accumulated."""
    shared: bool = False
    """Whether several threads may read the rows at a time, each all of them."""
    classes_given: bool = False
    """Whether all labels were named together with the rows."""
    checkpoint: tuple[Path, float] | None = None
    """A file that saves how far a fit has come, and the seconds between two saves."""

    @abstractmethod
    def survey(self, needs: Needs) -> Survey:
        """Check the rows and learn what must be known of all of them; must come first."""

    @property
    @abstractmethod
    def n_parts(self) -> int:
        """How many parts the rows lie in."""

    @abstractmethod
    def accumulate(
        self,
        step: Callable[[RowPart], Summary | None],
        merge: Callable[[Summary, Summary], Summary],
        *,
        n_parts: int | None = None,
    ) -> Summary:
        """The merge of step(part) over all parts, or over the first `n_parts`; a part without rows gives None."""


class LocalRows(Rows, RowPart):
    """Rows that are one part, read here."""

    n_parts = 1

    def accumulate(
        self,
        step: Callable[[RowPart], Summary | None],
        merge: Callable[[Summary, Summary], Summary],
        *,
        n_parts: int | None = None,
    ) -> Summary:
        """The summary of the only part."""
        del merge, n_parts
        summary = step(self)
        assert summary is not None, "A survey found rows."
        return summary


# ------------------------------------------------------------------------------


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


# ------------------------------------------------------------------------------
# The rows on which candidates are compared: all of them in memory if they are few, else a sample in memory.


# A first round is worth its time if the second has so many times as many rows.
_FEWER = 4


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Rows for one round of comparisons."""

    rows: Rows
    survey: Survey
    n_rows: int
    whole: bool
    """Whether these are all rows that there are."""
    stand_for: np.ndarray | None = None
    """How many rows each row of a sample stands for: more for those of common labels, since of rare ones a few are
    always there."""


def rows_to_compare(
    rows: Rows, needs: Needs, most_rows: int, first_round: int, *, by_content: bool
) -> tuple[Compared, ...]:
    """The rows of the only round, or of two: the first has fewer.

    Samples are drawn by what rows hold, so folds must be too (`by_content`); else all rows are compared.
    """
    in_memory = isinstance(rows, MemoryRows)
    n_rows = rows.check(needs) if isinstance(rows, MemoryRows) else most_rows + 1
    if not by_content or (in_memory and n_rows <= min(most_rows, _FEWER * first_round)):
        return (_all(rows, rows.survey(needs), needs),)
    whole = in_memory and n_rows <= most_rows
    size = first_round if whole else most_rows
    sampled = replace(needs, sample=max(needs.sample, size), totals=needs.labels, every_label=needs.labels)
    survey = rows.survey(sampled)
    last = _all(rows, survey, needs) if whole else _sampled(survey, size, needs)
    if last.n_rows <= _FEWER * first_round:
        return (last,)
    return _sampled(survey, first_round, needs), last


def _all(rows: Rows, survey: Survey, needs: Needs) -> Compared:
    sample = survey.sample.first(needs.sample) if survey.sample is not None and needs.sample else None
    return Compared(rows, replace(survey, sample=sample), survey.n_rows, True)


def _sampled(survey: Survey, size: int, needs: Needs) -> Compared:
    """A sample of the rows that were surveyed, with all their labels."""
    assert survey.sample is not None
    sample = survey.sample.first(size, every_label=needs.labels)
    weight = None if bool((sample.weight == 1.0).all()) else sample.weight
    rows = MemoryRows(sample.X.astype(survey.dtype), sample.y, weight)
    own = rows.survey(replace(needs, totals=needs.labels))
    if own.labels is not None and own.totals is not None:
        assert survey.labels is not None  # a class of no weight has no row in the sample, but is a class
        totals = np.zeros(len(survey.labels))
        totals[np.searchsorted(survey.labels, own.labels)] = own.totals
        own = replace(own, labels=survey.labels, totals=totals)
    return Compared(rows, own, len(sample.hashes), False, sample.stand_for() if needs.labels else None)
