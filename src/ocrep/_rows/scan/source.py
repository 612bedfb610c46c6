"""`Source`: rows that come in blocks, and what is known of them before they are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ocrep._features.random_layer import Range


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some rows as their source gives them: numbers, but not yet checked."""

    X: Any
    """An array of float32 or float64, or a sparse matrix."""
    y: np.ndarray | None
    weight: np.ndarray | None
    part: str
    """The file, or the number of the block: for sentences about bad rows."""
    part_number: int
    start: int = 0
    """Rows of the same part that come before."""
    columns: tuple[str, ...] | None = None

    def row(self, index: int) -> str:
        """Where a row is, in words."""
        return f"{self.part}, row {self.start + index + 1}"

    def column(self, index: int) -> str:
        """A column's name, or its number."""
        return repr(self.columns[index]) if self.columns else str(index)


class Source(ABC):
    """Rows in blocks of any size; what a source cannot know it leaves out."""

    once: bool = False
    """Whether the rows can be read only once."""

    @abstractmethod
    def blocks(self, *, inputs: bool = True, skip: int = 0) -> Iterator[Block]:
        """All rows for training, from the beginning, but for the first `skip`; without inputs X has no columns."""

    @abstractmethod
    def inputs(self, columns: Sequence[str] | None) -> Iterator[Block]:
        """All rows for prediction: the inputs alone, by name if `columns` are given."""

    def prepare(self) -> None:  # noqa: B027 - most sources have nothing to refuse
        """Refuse what can be refused without reading rows."""

    def n_rows(self) -> int | None:
        """How many rows there are, where that is known."""
        return None

    def stated_range(self) -> Range | None:
        """The inputs' range over all rows, where files state it and no weight can make rows not count."""
        return None

    def marks(self) -> tuple[str, ...] | None:
        """What tells each part apart from one that was changed; None where only the rows themselves do."""
        return None


def as_inputs(X: Any) -> Any:
    """A block of inputs as a float matrix: float32 stays, everything else becomes float64; sparse stays sparse."""
    if sparse.issparse(X):
        X = X.tocsr()
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    X = np.asarray(X)
    if X.dtype.kind not in "biufO":
        raise ValueError(f"it holds {X.dtype} and not numbers.")
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def shown(columns: tuple[str, ...] | None) -> str:
    """Names of columns in a sentence, but not hundreds of them."""
    if columns is None:
        return "without names"
    return ", ".join(map(repr, columns[:8])) + (" and more" if len(columns) > 8 else "")


def skipped(blocks: Iterator[Block], skip: int) -> Iterator[Block]:
    """Leave out the first `skip` rows, where there is no cheaper way than to read them."""
    for block in blocks:
        n = block.X.shape[0]
        if skip >= n:
            skip -= n
            continue
        yield block if not skip else _from(block, skip)
        skip = 0


def _from(block: Block, first: int) -> Block:
    return Block(
        block.X[first:],
        None if block.y is None else block.y[first:],
        None if block.weight is None else block.weight[first:],
        block.part,
        block.part_number,
        block.start + first,
        block.columns,
    )
