"""`TableSource`: the rows of a table as numbers, for `fit`; what a survey knows of them is not looked for again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ocrep._files.formats import changed_file
from ocrep._rows.block import Block, skip_rows
from ocrep._rows.sources import Source
from ocrep._rows.survey import Range
from ocrep.tables.coding import Coding
from ocrep.tables.rows import TableRows


@dataclass(frozen=True, slots=True, eq=False)
class TableSource(Source):
    """Coded rows with their targets."""

    rows: TableRows
    coding: Coding
    total: int

    range_is_observed = True

    def blocks(self, *, inputs: bool = True, skip: int = 0) -> Iterator[Block]:
        """All rows, in the file's blocks."""
        return skip_rows(self._blocks(inputs), skip)

    def inputs(self, columns: Sequence[str] | None) -> Iterator[Block]:
        """The same rows, for prediction."""
        return self._blocks(True)

    def n_rows(self) -> int:
        """As many as the survey counted."""
        return self.total

    def stated_range(self) -> Range:
        """The range that the survey found."""
        return self.coding.range

    def fingerprints(self) -> tuple[str, ...]:
        """Path, size and time of the file."""
        return (self.rows.file.fingerprint,)

    def _blocks(self, inputs: bool) -> Iterator[Block]:
        done, name = 0, str(self.rows.file.path)
        for rows in self.rows.blocks(inputs=inputs):
            X = self.coding.inputs(rows) if inputs else np.empty((rows.n_rows, 0))
            yield Block(X, rows.y, None, name, start=rows.block.start)
            done += rows.n_rows
        if done != self.total:
            raise changed_file(self.rows.file.path)
