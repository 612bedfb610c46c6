"""`Block`: some rows in memory, with their place, so that an error can say which file and which row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

# Inputs, targets (labels as class numbers) and weights of some rows; their folds too, if the inputs do not decide them.
Triple: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Rows as they were read: numbers that may yet have to be checked."""

    X: Any
    """An array of float32 or float64 in memory or on a device, or a sparse matrix."""
    y: Any
    weight: Any
    part: str = ""
    """The file, block or partition that the rows come from; empty for arrays in memory."""
    part_number: int = 0
    start: int = 0
    """Rows of the same part that come before."""
    columns: tuple[str, ...] | None = None
    groups: Any = None
    """The group of each row; once it is checked, as a key of 64 bits."""
    first: int = 0
    """The number of the first row among all rows."""

    def __getitem__(self, rows: slice) -> Block:
        return replace(
            self,
            X=self.X[rows, ...],
            y=None if self.y is None else self.y[rows, ...],
            weight=None if self.weight is None else self.weight[rows],
            start=self.start + (rows.start or 0),
            groups=None if self.groups is None else self.groups[rows],
            first=self.first + (rows.start or 0),
        )

    def row(self, index: int) -> str:
        """The beginning of a sentence about one row."""
        number = self.start + index + 1
        return f"{self.part}, row {number}: " if self.part else f"Row {number}: "

    def column(self, index: int) -> str:
        """A column's name, or its number."""
        return repr(self.columns[index]) if self.columns else str(index)


def listed(columns: tuple[str, ...] | None) -> str:
    """Names of columns in a sentence, but not hundreds of them."""
    if columns is None:
        return "without names"
    return ", ".join(map(repr, columns[:8])) + (" and more" if len(columns) > 8 else "")


def skip_rows(blocks: Iterator[Block], skip: int) -> Iterator[Block]:
    """Leave out the first `skip` rows, where there is no cheaper way than to read them."""
    for block in blocks:
        n = block.X.shape[0]
        if skip >= n:
            skip -= n
            continue
        yield block if not skip else block[slice(skip, n)]
        skip = 0


def recut(blocks: Iterator[Triple], rows: int) -> Iterator[Triple]:
    """Cut and join blocks `(X, y, weight, …)` to `rows` rows each; the last may be shorter.

    So the price and the rounding do not depend on how the rows came.
    """
    waiting: list[Triple] = []
    have = 0
    for block in blocks:
        start, n = 0, block[0].shape[0]
        while have + n - start >= rows:
            end = start + rows - have
            waiting.append(_slice(block, start, end))
            yield joined(waiting)
            waiting, have, start = [], 0, end
        if start < n:
            # A copy, so that the few rows that wait do not keep the large block that they came from.
            part = _slice(block, start, n)
            waiting.append(part if not start else tuple(None if a is None else a.copy() for a in part))
            have += n - start
    if waiting:
        yield joined(waiting)


def _slice(triple: Triple, start: int, end: int) -> Triple:
    if start == 0 and end == triple[0].shape[0]:
        return triple
    return tuple(None if values is None else values[start:end] for values in triple)


def joined(parts: list[Triple]) -> Triple:
    """The rows of all parts together."""
    if len(parts) == 1:
        return parts[0]
    X, y, weight, *folds = zip(*parts, strict=True)
    stacked = sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X)
    weights = None
    if any(w is not None for w in weight):
        weights = np.concatenate([np.ones(len(t)) if w is None else w for w, t in zip(weight, y, strict=True)])
    return stacked, np.concatenate(y), weights, *(np.concatenate(fold) for fold in folds)
