"""Passes over rows that lie with workers elsewhere: each part is worked on where it is, and summaries merge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic

from ocrep._linalg.blocks import Encoded
from ocrep._linalg.passes import Checkpoint, LocalPasses, Summary, Work, counts
from ocrep._rows.block import Triple, joined
from ocrep._rows.rows import Part, Rows
from ocrep._rows.survey import Needs
from ocrep._training.learned import Learned

# The first block of rows is looked for in one part, then in so many times as many.
_MORE_PARTS = 8


@dataclass(frozen=True, slots=True, eq=False)
class OnPart(Generic[Summary]):
    """One pass over the rows of a part; small, and sent to every worker."""

    learned: Learned
    needs: Needs
    work: Work[Summary]

    def __call__(self, part: Part) -> Summary | None:
        """The summary of a part; None if it has no rows."""
        if part.check(self.needs) == 0:
            return None
        return LocalPasses(self.learned.row_blocks(part)).accumulate(self.work)


@dataclass(frozen=True, slots=True, eq=False)
class FirstBlock:
    """The first rows of a part, as many as a block holds."""

    learned: Learned
    needs: Needs

    def __call__(self, part: Part) -> Triple | None:
        """The first block of which a row counts; None if there is none."""
        if part.check(self.needs) == 0:
            return None
        return next(filter(counts, self.learned.row_blocks(part).read()), None)


def _first_of(height: int, one: Triple, other: Triple) -> Triple:
    """The rows of both, but no more than `height`."""
    wanted = height - one[0].shape[0]
    if wanted <= 0:
        return one
    return joined([one, tuple(None if values is None else values[:wanted] for values in other)])


class PartsPasses:
    """Passes over rows in parts, none of which is read here but for a first block."""

    checkpoint: Checkpoint | None = None

    def __init__(self, learned: Learned, rows: Rows, needs: Needs) -> None:
        self._learned, self._rows, self._needs = learned, rows, needs
        self.n_features = None if learned.on_device else learned.n_features

    def encode(self, block: Any) -> Encoded:
        return self._learned.encode(block)

    def head(self) -> tuple[Any, bool]:
        """Rows of the first parts, of more of them until there are as many as features."""
        first, merge = FirstBlock(self._learned, self._needs), partial(_first_of, self._learned.height)
        n_parts, looked_at = self._rows.n_parts, 1
        while True:
            block = self._rows.accumulate(first, merge, n_parts=looked_at)
            n_rows = 0 if block is None else block[0].shape[0]
            if n_rows >= self._learned.n_features or looked_at >= n_parts:
                return block, n_parts == 1 and n_rows < self._learned.height
            looked_at *= _MORE_PARTS

    def accumulate(self, work: Work[Summary], *, saved: bool = True) -> Summary:
        """All parts where they lie, then a tree of merges."""
        del saved
        merge: Callable[[Summary, Summary], Summary] = work.kind.merge
        return self._rows.accumulate(OnPart(self._learned, self._needs, work), merge)
