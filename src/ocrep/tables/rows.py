"""`TableRows`: the rows of a file that have a target, all of them or one side of a split, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ocrep._files.convert import ColumnKind, is_present
from ocrep._files.row_file import FileBlock, RowFile
from ocrep.tables.split import Split
from ocrep.tables.target import Target


@dataclass(frozen=True, slots=True, eq=False)
class Selected:
    """Some rows of a block of a file."""

    block: FileBlock
    used: np.ndarray | None
    """Which rows of the block are meant; None for all of them."""
    y: Any = None
    """Their targets, if they were asked for."""

    @property
    def n_rows(self) -> int:
        """How many rows are meant."""
        return self.block.n_rows if self.used is None else int(np.count_nonzero(self.used))

    def of(self, values: np.ndarray) -> np.ndarray:
        """The values of the rows that are meant."""
        return values if self.used is None else values[self.used]

    def those(self, mine: np.ndarray) -> Selected:
        """Those of the rows that a mask chooses among them."""
        return Selected(self.block, mine if self.used is None else _within(self.used, mine), self.y[mine])

    def row_numbers(self) -> np.ndarray:
        """The numbers of the rows in the file, from 0."""
        start = self.block.start
        return self.of(np.arange(start, start + self.block.n_rows))


def with_target(file: RowFile, kinds: Mapping[str, ColumnKind | None], target: str) -> Iterator[Selected]:
    """Yield all blocks, with the rows that have a target."""
    for block in file.blocks(kinds):
        yield Selected(block, is_present(block.columns[target]))


@dataclass(frozen=True, slots=True, eq=False)
class TableRows:
    """Rows that can be read as often as needed, with their targets."""

    file: RowFile
    kinds: dict[str, ColumnKind]
    """The inputs."""
    target: Target
    split: Split | None = None
    held_out: bool = False
    """Which side of the split is meant."""

    def side(self, split: Split, *, held_out: bool) -> TableRows:
        """One side of a split of these rows."""
        return replace(self, split=split, held_out=held_out)

    def blocks(self, *, inputs: bool = True) -> Iterator[Selected]:
        """Yield the blocks that have rows of this side."""
        target = self.target
        kinds = {**(self.kinds if inputs else {}), target.name: target.kind}
        is_held_out = None if self.split is None else self.split.begin()
        for found in with_target(self.file, kinds, target.name):
            y = target.values(found.of, found.block)
            found = replace(found, y=y)
            if is_held_out is not None:
                mine = is_held_out(target.codes(y)) == self.held_out
                found = found.those(mine)
            if len(found.y):
                yield found


def _within(used: np.ndarray, mine: np.ndarray) -> np.ndarray:
    """The mask of those of the used rows that a second mask chooses among them."""
    chosen = used.copy()
    chosen[used] = mine
    return chosen
