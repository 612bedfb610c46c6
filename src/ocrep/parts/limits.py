"""`WithinPlan`: the rows of a part, compared with what the plan knows before they are used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ocrep._rows.block import Block, Triple
from ocrep._rows.checks import check_columns, check_target_shape, check_within
from ocrep._rows.rows import Part
from ocrep._rows.survey import Needs, Range, observed_range
from ocrep._training.learned import Learned
from ocrep._training.targets import Numbers

_INSTEAD = "give all parts the same columns, which a survey or feature_names tells the plan"


@dataclass(slots=True, eq=False)
class WithinPlan(Part):
    """Rows that are refused where columns, targets, ranges or groups are not those of the plan."""

    rows: Part
    learned: Learned
    range: Range | None
    """What was surveyed, where the scaling depends on it."""
    needs: Needs

    def check(self, needs: Needs) -> int | None:
        """Check what can be checked before rows are read."""
        return self.rows.check(needs)

    def triples(self, code: Callable[[Block], Triple], height: int, skip: int = 0) -> Iterator[Triple]:
        """All rows, each block compared with the plan before it is coded."""
        return self.rows.triples(lambda block: code(self._compared(block)), height, skip)

    def _compared(self, block: Block) -> Block:
        learned, targets = self.learned, self.learned.targets
        check_columns(block, learned.n_inputs, learned.columns, than="the plan", instead=_INSTEAD)
        if isinstance(targets, Numbers):
            shape = () if targets.one_dimensional else (learned.n_outputs,)
            check_target_shape(block, shape, where="in the plan")
        weight = block.weight if self.needs.weigh is None else self.needs.weigh(block.y, block.weight)
        if self.range is not None:
            check_within(block, *self.range, observed_range(block.X, weight))
        if learned.division is not None:
            counts = slice(None) if weight is None else np.flatnonzero(weight > 0.0)
            learned.division.check_known(block, counts)
        return block
