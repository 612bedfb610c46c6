"""`Division`: the fold of each row, where groups or row numbers decide it and not the inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ocrep._linalg.fold_plan import FoldPlan
from ocrep._rows.block import Block
from ocrep._rows.groups import MOST_GROUPS


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """A plan with all that it needs to know of the rows; the same for every part of them."""

    plan: FoldPlan
    n_rows: int | None = None
    """The number of all rows, where it decides."""
    known: np.ndarray | None = None
    """The keys of all groups, in the plan's order; None where they are too many or came one block at a time."""

    @classmethod
    def of(cls, plan: FoldPlan, n_rows: int | None, groups: np.ndarray | None) -> Division | None:
        """Divide rows of which these are all groups; None where their inputs decide."""
        if plan.split == "content":
            return None
        if plan.split == "blocks":
            division = cls(plan, None if plan.block_length is not None else n_rows)
            division.check_endless(n_rows is None)
            return division
        if groups is None:
            return cls(plan)
        _check_groups(plan, len(groups))
        known = np.sort(plan.ordered(groups)) if len(groups) <= MOST_GROUPS else None
        return cls(replace(plan, n_folds=len(groups)) if plan.split == "given" else plan, known=known)

    def folds_of(self, block: Block) -> np.ndarray | None:
        """The fold of each row; None for rows without groups, which no fold is asked of."""
        if self.plan.split == "blocks":
            return self.plan.of_row_numbers(block.first + np.arange(block.X.shape[0]), self.n_rows)
        return None if block.groups is None else self.plan.of_groups(block.groups, self.known)

    def check_known(self, block: Block, rows: Any) -> None:
        """Raise if some of the rows are of groups that are not among the known ones."""
        if self.known is None or block.groups is None:
            return
        unknown = ~np.isin(self.plan.ordered(block.groups[rows]), self.known)
        if unknown.any():
            row = int(np.arange(len(block.groups))[rows][np.argmax(unknown)])
            raise ValueError(f"{block.row(row)}the group was not surveyed: survey all parts.")

    def check_endless(self, endless: bool) -> None:
        """Raise if the number of all rows decides, and it is not known, or more rows are to come."""
        if endless and self.plan.split == "blocks" and self.plan.block_length is None:
            raise ValueError(
                "split='blocks' divides all rows evenly, and here their number is not known before they are read: give "
                "the length of a block, as in rules.KFold(split='blocks', block_length=1000)."
            )


def _check_groups(plan: FoldPlan, n_groups: int) -> None:
    """Raise if there are too few groups to hold one out, or too many to make a fold of each."""
    given = plan.split == "given"
    if n_groups < (2 if given else plan.n_folds):
        raise ValueError(
            f"The rows of positive weight are of {n_groups} group(s), and cross-validation with split={plan.split!r} "
            f"needs at least {2 if given else plan.n_folds}: "
            + ("give more folds." if given else f"set n_folds to {max(2, n_groups)} or less, or give more groups.")
        )
    if given and n_groups > MOST_GROUPS:
        raise ValueError(
            f"The rows are of more than {MOST_GROUPS} groups, and split='given' makes a fold of each: use "
            "split='groups'."
        )
