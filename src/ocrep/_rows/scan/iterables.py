"""Iterables of blocks as a source: tuples (X, y), (X, y, weight) or (X, y, weight, groups), or frames that hold all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ocrep._rows.block import Block, listed, skip_rows
from ocrep._rows.checks import check_lengths, check_numeric, check_shape
from ocrep._rows.scan.source import Source, as_inputs


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
        self._target, self._weight, self._groups = target, sample_weight, groups
        self._columns = None if columns is None else tuple(columns)
        self._read = False
        self.once = not callable(iterable) and iter(iterable) is iterable

    def blocks(self, *, inputs: bool = True, skip: int = 0) -> Iterator[Block]:
        """The blocks as they come; empty ones are left out."""
        yield from skip_rows(self._all(self._training_block), skip)

    def inputs(self, columns: Sequence[str] | None) -> Iterator[Block]:
        """X of each block, whether it comes alone or with targets."""
        wanted = self._columns if columns is None else tuple(columns)
        return self._all(lambda item, number: self._input_block(item, number, wanted))

    def _all(self, make: Callable[[Any, int], Block]) -> Iterator[Block]:
        if self.once and self._read:
            raise ValueError(
                "This iterator has been read already and cannot start anew: give ocrep.scan a new one, or a list or "
                "a function that makes one."
            )
        self._read = True
        items = self._iterable() if callable(self._iterable) else self._iterable
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
        X, columns = _matrix(item[0], self._columns)
        y, weight, groups = (None if part is None else np.asarray(part) for part in (*item[1:], None, None)[:3])
        check_lengths(X.shape[0], y=y, sample_weight=weight, groups=groups)
        return Block(X, y, weight, f"block {number}", number, columns=columns, groups=groups)

    def _frame_block(self, frame: Any, number: int) -> Block:
        names = _names(frame)
        if names is None or self._target is None:
            raise ValueError(
                f"it is a {type(frame).__name__}: give (X, y), or frames and the name of their targets as target=."
            )
        targets = (self._target,) if isinstance(self._target, str) else tuple(self._target)
        roles = [*targets, *(name for name in (self._weight, self._groups) if name is not None)]
        _check_has(roles, names)
        inputs = self._columns or tuple(name for name in names if name not in roles)
        X, columns = _matrix(frame, inputs)
        y = [_values(frame, name) for name in targets]
        weight, groups = (None if name is None else _values(frame, name) for name in (self._weight, self._groups))
        return Block(
            X,
            y[0] if isinstance(self._target, str) else np.column_stack(y),
            weight,
            f"block {number}",
            number,
            columns=columns,
            groups=groups,
        )

    def _input_block(self, item: Any, number: int, wanted: tuple[str, ...] | None) -> Block:
        X, columns = _matrix(item[0] if isinstance(item, tuple) else item, wanted)
        return Block(X, None, None, f"block {number}", number, columns=columns)


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
    values = _values(frame, name)
    if values.dtype.kind == "O" and getattr(frame[name].dtype, "_is_numeric", False):
        values = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)  # pandas' nullable numbers
    if values.dtype.kind not in "biuf":
        check_numeric(name, "dates or times" if values.dtype.kind in "mM" else "texts")
    return values


def _values(frame: Any, name: str) -> np.ndarray:
    return np.asarray(frame[name])


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
