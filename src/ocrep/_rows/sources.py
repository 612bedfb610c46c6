"""`Source`: rows that come in blocks of any size, and what is known of them before they are read.

Three kinds: arrays that are read slice by slice, iterables of blocks or frames, and files. A source converts rows to
arrays of float32 or float64 and names the place of each block; it knows nothing of models. What it cannot know without
reading the rows, it answers by None.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from scipy import sparse

from ocrep._linalg.parallel import slices_of
from ocrep._rows.block import Block, listed, skip_rows
from ocrep._rows.checks import check_lengths, check_numeric, check_shape, text_column
from ocrep._rows.survey import Range


@dataclass(frozen=True, slots=True)
class Roles:
    """Which columns are what."""

    inputs: tuple[str, ...]
    """Empty for all that have no other role."""
    targets: tuple[str, ...] = ()
    weight: str | None = None
    groups: str | None = None

    @classmethod
    def of(
        cls,
        target: str | Sequence[str] | None,
        sample_weight: str | None,
        groups: str | None,
        columns: Sequence[str] | None = None,
    ) -> Roles:
        """From the names that a user gives; a single target may come as a text."""
        targets = () if target is None else (target,) if isinstance(target, str) else tuple(target)
        return cls(tuple(columns or ()), targets, sample_weight, groups)

    @property
    def others(self) -> tuple[str, ...]:
        """All columns that are not inputs."""
        return (*self.targets, *(name for name in (self.weight, self.groups) if name is not None))


class Source(ABC):
    """Rows in blocks of any size."""

    once: bool = False
    """Whether the rows can be read only once."""
    grouped: bool | None = False
    """Whether the rows have groups; None where only the first block shows it."""
    typical: Block | None = None
    """Some rows that stand for all of them, where looking at all would cost one more reading."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    @abstractmethod
    def blocks(self, *, inputs: bool = True, skip: int = 0) -> Iterator[Block]:
        """All rows for training, from the beginning, but for the first `skip`; without inputs X has no columns."""

    @abstractmethod
    def inputs(self, columns: Sequence[str] | None) -> Iterator[Block]:
        """All rows for prediction: the inputs alone, by name if `columns` are given."""

    def check(self) -> None:  # noqa: B027 - most sources can be checked only by reading them
        """Check what can be checked without reading rows."""

    def n_rows(self) -> int | None:
        return None

    def stated_range(self) -> Range | None:
        """The inputs' range over all rows, where it is known and every row has weight."""
        return None

    def fingerprints(self) -> tuple[str, ...]:
        """For each part a text that changes when its rows change; empty where only reading the rows would show it."""
        return ()

    def check_unchanged(self, fingerprints: Sequence[str]) -> None:  # noqa: B027 - only files have fingerprints
        """Raise if a part has another fingerprint than these, its fingerprints when it was first read."""


def as_inputs(X: Any) -> Any:
    """A block of inputs as a float matrix: float32 stays, everything else becomes float64; sparse stays sparse."""
    if sparse.issparse(X):
        X = X.tocsr()
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    X = np.asarray(X)
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must hold real numbers.")
    if X.dtype.kind not in "biufO":
        check_numeric(text_column(X), {"m": "dates or times", "M": "dates or times"}.get(X.dtype.kind, "texts"))
    try:
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    except ValueError:
        check_numeric(text_column(X), "texts")
        raise


# ------------------------------------------------------------------------------
# Arrays that lie on disk (memory maps, HDF5, Zarr, and whatever else has a shape and can be sliced) as a source.


def is_on_disk(X: Any) -> bool:
    """Whether X is an array to be read slice by slice: a memory map, or like an array but of no array library."""
    if isinstance(X, np.memmap):
        return True
    if isinstance(X, np.ndarray | list | tuple) or sparse.issparse(X) or is_array_api_obj(X):
        return False
    like_array = all(hasattr(X, name) for name in ("shape", "dtype", "__getitem__"))
    # Data frames and series have names; CuPy, JAX and others that live on devices are array-API objects.
    return like_array and not any(hasattr(X, name) for name in ("columns", "iloc", "toarray", "__array_namespace__"))


class ArraySource(Source):
    """X, and y, weights and groups of as many rows, read slice by slice."""

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> None:
        self._X = X.tocsr() if sparse.issparse(X) else X  # other sparse formats cannot be sliced by rows
        self._y = _sliceable(y)
        # One number as the weight of all rows is what scikit-learn allows too.
        self._weight = _sliceable(np.full(X.shape[0], sample_weight) if np.isscalar(sample_weight) else sample_weight)
        self._groups = _sliceable(groups)
        self.grouped = groups is not None

    def check(self) -> None:
        check_shape(tuple(self._X.shape))
        check_lengths(self._X.shape[0], y=self._y, sample_weight=self._weight, groups=self._groups)

    def blocks(self, *, inputs: bool = True, skip: int = 0) -> Iterator[Block]:
        """Slices of a few megabytes; slices, not fancy indices, since HDF5 and Zarr read those fast."""
        n, width = self._X.shape
        for part in slices_of(n - skip, width):
            at = slice(part.start + skip, part.stop + skip)
            yield Block(
                as_inputs(self._X[at]) if inputs else np.empty((at.stop - at.start, 0)),
                None if self._y is None else np.asarray(self._y[at]),
                None if self._weight is None else np.asarray(self._weight[at]),
                start=at.start,
                groups=None if self._groups is None else np.asarray(self._groups[at]),
            )

    def inputs(self, columns: Sequence[str] | None) -> Iterator[Block]:
        """Slices of X; an array's columns have no names."""
        self.check()
        for part in slices_of(*self._X.shape):
            yield Block(as_inputs(self._X[part]), None, None, start=part.start)

    def n_rows(self) -> int:
        return int(self._X.shape[0])


def _sliceable(values: Any) -> Any:
    """Arrays on disk as they are; anything else, such as lists and series, as an array."""
    return values if values is None or is_on_disk(values) else np.asarray(values)


# ------------------------------------------------------------------------------
# Iterables of blocks as a source: tuples (X, y), (X, y, weight) or (X, y, weight, groups), or frames that hold all.


class IterableSource(Source):
    """Blocks from an iterable; one that is its own iterator, such as a generator, can be read only once."""

    def __init__(
        self,
        iterable: Iterable[Any] | Callable[[], Iterable[Any]],
        *,
        target: str | Sequence[str] | None = None,
        sample_weight: str | None = None,
        groups: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        self._iterable = iterable
        self.roles = Roles.of(target, sample_weight, groups, columns)
        """Which columns of frames are what."""
        self._one_target = isinstance(target, str)
        self._read = False
        self.grouped = True if groups is not None else None  # tuples may have groups in the fourth place
        self.once = not callable(iterable) and iter(iterable) is iterable

    def items(self) -> Iterable[Any]:
        """What the iterable gives, from the beginning."""
        return self._iterable() if callable(self._iterable) else self._iterable

    def blocks(self, *, inputs: bool = True, skip: int = 0) -> Iterator[Block]:
        """The blocks as they come; empty ones are left out."""
        yield from skip_rows(self._each(self._training_block), skip)

    def inputs(self, columns: Sequence[str] | None) -> Iterator[Block]:
        """X of each block, whether it comes alone or with targets."""
        wanted = (self.roles.inputs or None) if columns is None else tuple(columns)

        def input_block(item: Any, number: int) -> Block:
            X, names = _matrix(item[0] if isinstance(item, tuple) else item, wanted)
            return Block(X, None, None, f"block {number}", number, columns=names)

        return self._each(input_block)

    def _each(self, make: Callable[[Any, int], Block]) -> Iterator[Block]:
        if self.once and self._read:
            raise ValueError(
                "This iterator has been read already and cannot start anew: give ocrep.scan a new one, or a list or "
                "a function that makes one."
            )
        self._read = True
        items = self.items()
        if not isinstance(items, Iterable):
            raise TypeError(f"The function that ocrep.scan was given must return blocks, and not {items!r}.")
        for number, item in enumerate(items):
            try:
                block = make(item, number)
            except ValueError as error:
                raise ValueError(f"block {number}: {error}") from None
            if block.X.shape[0]:
                yield block

    def _training_block(self, item: Any, number: int) -> Block:
        if not isinstance(item, tuple | list):
            return self._frame_block(item, number)
        if len(item) not in (2, 3, 4):
            raise ValueError(
                f"it has {len(item)} parts, but it must be (X, y), (X, y, sample_weight) or "
                "(X, y, sample_weight, groups)."
            )
        X, columns = _matrix(item[0], self.roles.inputs or None)
        y, weight, groups = (None if part is None else np.asarray(part) for part in (*item[1:], None, None)[:3])
        check_lengths(X.shape[0], y=y, sample_weight=weight, groups=groups)
        return Block(X, y, weight, f"block {number}", number, columns=columns, groups=groups)

    def _frame_block(self, frame: Any, number: int) -> Block:
        names, roles = _names(frame), self.roles
        if names is None or not roles.targets:
            raise ValueError(
                f"it is a {type(frame).__name__}: give (X, y), or frames and the name of their targets as target=."
            )
        _check_has(roles.others, names)
        X, columns = _matrix(frame, roles.inputs or tuple(name for name in names if name not in roles.others))
        y = [np.asarray(frame[name]) for name in roles.targets]
        weight = None if roles.weight is None else np.asarray(frame[roles.weight])
        groups = None if roles.groups is None else np.asarray(frame[roles.groups])
        return Block(
            X,
            y[0] if self._one_target else np.column_stack(y),
            weight,
            f"block {number}",
            number,
            columns=columns,
            groups=groups,
        )


def _matrix(X: Any, wanted: tuple[str, ...] | None) -> tuple[Any, tuple[str, ...] | None]:
    """Inputs as a matrix, and their names if X is a frame; its columns by name if some are wanted."""
    names = _names(X)
    if names is None:
        X = as_inputs(X)
        check_shape(X.shape)
        return X, None
    wanted = names if wanted is None else wanted
    _check_has(wanted, names)
    columns = [_number_column(X, name) for name in wanted]
    check_shape((X.shape[0], len(columns)))
    return as_inputs(np.column_stack(columns)), wanted


def _number_column(frame: Any, name: str) -> np.ndarray:
    values = np.asarray(frame[name])
    if values.dtype.kind == "O" and getattr(frame[name].dtype, "_is_numeric", False):
        values = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)  # pandas' nullable numbers
    if values.dtype.kind not in "biuf":
        check_numeric(name, "dates or times" if values.dtype.kind in "mM" else "texts")
    return values


def _names(X: Any) -> tuple[str, ...] | None:
    """The column names of a frame of pandas, polars or Arrow; None for everything else."""
    names = getattr(X, "column_names", None)
    if names is None:
        names = getattr(X, "columns", None)
    if names is None:
        return None
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise ValueError(f"it has two columns named {twice!r}: give each its own name.")
    return tuple(names)


def _check_has(wanted: Iterable[str], names: tuple[str, ...]) -> None:
    known = set(names)
    for name in wanted:
        if name not in known:
            raise ValueError(f"it has no column {name!r}; it has {listed(names)}.")
