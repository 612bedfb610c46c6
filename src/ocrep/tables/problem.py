"""A file of rows as a problem to learn: which columns are inputs, which are left out and why, and the target."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ocrep._files.formats import DataError, check_columns
from ocrep._files.frames import Table, column_names, read_table
from ocrep.tables.near_numbers import near_numbers
from ocrep.tables.task import Task, guess_task, target_values

FEWEST_ROWS = 10
MOST_CATEGORIES = 200
"""More different texts than this are an id or free text, which one column per text cannot learn."""
FEW_CATEGORIES = 20
"""Up to here a text column is never taken for an id, even if each row has its own text."""

InputKind = Literal["number", "boolean", "text"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Rows to learn from."""

    X: Any
    y: np.ndarray
    target: str
    task: Task
    task_reason: str
    """Why this task; empty if it was given."""
    kinds: dict[str, InputKind]
    """The inputs, in the file's order."""
    left_out: dict[str, str]
    """Columns that are no inputs, and why."""
    ids: tuple[str, ...]
    n_dropped: int
    """Rows left out because they have no target."""
    near_numbers: dict[str, str]
    """Text columns that were probably meant to hold numbers, and the first text that is none."""


def read_problem(
    path: str | os.PathLike[str],
    target: str,
    *,
    task: Literal["auto", "regression", "classification"] = "auto",
    ignore: Sequence[str] = (),
    ids: Sequence[str] = (),
    drop_missing_target: bool = False,
) -> Problem:
    """Read a file and decide on target, task and inputs; what cannot be used is refused in one sentence."""
    names = column_names(path)
    check_columns(path, (target, *ignore, *ids), names)
    if target in (*ignore, *ids):
        raise DataError(f"Column {target!r} is the target: it can be neither ignored nor an id.")
    if _nameless(target):
        raise DataError(f"Column {target!r} of {path} has no name of its own: give the target one.")
    left_out = {**dict.fromkeys(ignore, "ignored"), **dict.fromkeys(ids, "id")}
    wanted = [name for name in names if name not in left_out and not _nameless(name)]
    left_out |= {name or "(no name)": "has no name" for name in names if _nameless(name)}
    table, n_dropped = _with_target(read_table(path, wanted), target, drop_missing_target, path)
    values = table.frame[target].to_numpy()
    kind = table.kinds[target]
    chosen, reason = guess_task(values, kind) if task == "auto" else (task, "")
    y = target_values(values, kind, chosen, target)
    kinds, unused = _inputs(table, target, path)
    return Problem(
        X=table.frame[list(kinds)],
        y=y,
        target=target,
        task=chosen,
        task_reason=reason,
        kinds=kinds,
        left_out=left_out | unused,
        ids=tuple(ids),
        n_dropped=n_dropped,
        near_numbers=near_numbers(table),
    )


def _nameless(name: str) -> bool:
    # pandas writes its row labels under such a name.
    return not name.strip() or name.startswith("__index_level_")


def _with_target(table: Table, target: str, drop: bool, path: Any) -> tuple[Table, int]:
    """Refuse a target that cannot be learned; leave out the rows without one if that is wished."""
    kind = table.kinds[target]
    if kind in ("date", "other"):
        held = "dates" if kind == "date" else "neither numbers nor text"
        raise DataError(f"Column {target!r} holds {held}, which is no target.")
    missing = np.ones(1, dtype=bool) if kind == "empty" else table.frame[target].isna().to_numpy()
    if missing.all():
        raise DataError(f"Column {target!r} is empty: there is nothing to learn.")
    n_missing = int(missing.sum())
    if n_missing and not drop:
        raise DataError(
            f"Column {target!r} has no value in {n_missing:,} of {len(missing):,} rows: "
            "fill them in, or leave these rows out with --drop-missing-target."
        )
    frame = table.frame[~missing] if n_missing else table.frame
    if len(frame) < FEWEST_ROWS:
        rows = "row" if len(frame) == 1 else "rows"
        usable = f"only {len(frame)} {rows}{' with a target' if n_missing else ''}"
        raise DataError(f"{path} has {usable}: at least {FEWEST_ROWS} are needed.")
    return Table(frame, table.kinds), n_missing


def _inputs(table: Table, target: str, path: Any) -> tuple[dict[str, InputKind], dict[str, str]]:
    kinds: dict[str, InputKind] = {}
    left_out: dict[str, str] = {}
    for name, kind in table.kinds.items():
        if name == target:
            continue
        reason = _why_not(table, name)
        if reason is None:
            assert kind in ("number", "boolean", "text")
            kinds[name] = kind
        else:
            left_out[name] = reason
    if not kinds:
        raise DataError(f"{path} has no column to learn from beside the target {target!r}.")
    return kinds, left_out


def _why_not(table: Table, name: str) -> str | None:
    """Why a column is no input; None if it is one."""
    kind = table.kinds[name]
    by_kind = {"date": "holds dates or times", "empty": "is empty", "other": "holds neither numbers nor text"}
    if kind in by_kind:
        return by_kind[kind]
    column = table.frame[name]
    if column.isna().all():
        return "is empty"
    if kind != "text":
        return "is constant" if column.min() == column.max() and not column.hasnans else None
    n_different = column.nunique()
    if n_different == 1 and not column.hasnans:
        return "is constant"
    if n_different > MOST_CATEGORIES or (n_different > FEW_CATEGORIES and n_different > len(column) / 2):
        return f"has {n_different:,} different texts"
    return None
