"""`Indicators`: targets of rows that may have several labels, a column of 0 and 1 for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ocrep._linalg.arrays import Array, array_namespace
from ocrep._rows.block import Block, Triple
from ocrep._rows.checks import check_target_shape
from ocrep._rows.sample import RowSample


@dataclass(frozen=True, slots=True)
class Indicators:
    """One column for each label, 0 or 1 in every row, coded ±1: as many classifications of two classes."""

    n_labels: int
    labels: ClassVar[bool] = True
    several: ClassVar[bool] = True

    @property
    def classes(self) -> np.ndarray:
        """The numbers of the labels, as in scikit-learn."""
        return np.arange(self.n_labels)

    def code(self, block: Block) -> Triple:
        """Checked rows in the form that `encode` takes."""
        check_target_shape(block, (self.n_labels,), where="in the first rows")
        return block.X, block.y, block.weight

    def encode(self, y: Array) -> Array:
        """T: +1 where a row has the label, −1 elsewhere."""
        xp = array_namespace(y)
        return 2.0 * xp.astype(y, xp.float64) - 1.0

    def unweighted(self) -> Indicators:
        return self

    def weighted(self, sample: RowSample) -> RowSample:
        return sample

    def fingerprint(self) -> str:
        """Indicators are coded in one way only."""
        return f"{self.n_labels} indicators"
