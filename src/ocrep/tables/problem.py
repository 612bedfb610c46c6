"""A file of rows as a learning problem: the target, the task, the inputs, and the columns left out with reasons."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from ocrep._files.formats import DataError, check_columns
from ocrep._files.frames import Table, column_names, read_table
from ocrep.tables.near_numbers import near_numbers
from ocrep.tables.task import Task, guess_task, target_values

FEWEST_ROWS = 10
MOST_CATEGORIES = 200
"""A column with more different texts is an id or free text, for which one-hot coding is useless."""
FEW_CATEGORIES = 20
"""A column with at most this many different texts is never taken for an id, even if each row has its own text."""

InputKind = Literal["number", "boolean", "text"]


@dataclass(frozen=True, slots=True)
class Problem:
    """The rows of a file, ready for training."""

    X: Any
    y: np.ndarray
    target: str
    task: Task
    task_reason: str
    """Why the task was guessed; empty if it was given."""
    kinds: dict[str, InputKind]
    """The inputs, in the file's order."""
    left_out: dict[str, str]
    """Columns that are not inputs, and why."""
    ids: tuple[str, ...]
    n_dropped: int
    """Number of rows left out because their target is missing."""
    near_numbers: dict[str, str]
    """Text columns that probably should be numbers, each with its first text that cannot be parsed."""


def read_problem(
    path: str | os.PathLike[str],
    target: str,
    *,
    task: Literal["auto", "regression", "classification"] = "auto",
    ignore: Sequence[str] = (),
    ids: Sequence[str] = (),
    drop_missing_target: bool = False,
) -> Problem:
    """Read a file and decide on task and inputs; raise a `DataError` if the target cannot be learned."""
    names = column_names(path)
    check_columns(path, (target, *ignore, *ids), names)
    if target in (*ignore, *ids):
        raise DataError(f"Column {target!r} is the target: it cannot be ignored or used as an id.")
    if _nameless(target):
        raise DataError(f"Column {target!r} of {path} has no proper name: give the target column a name.")
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
    """Check the target; if `drop`, leave out the rows where it is missing."""
    kind = table.kinds[target]
    if kind in ("date", "other"):
        held = "dates or times" if kind == "date" else "neither numbers nor text"
        raise DataError(f"Column {target!r} holds {held}, which cannot be a target: choose another column.")
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
    reasons = {name: _why_left_out(table, name) for name in table.kinds if name != target}
    kinds = {name: cast(InputKind, table.kinds[name]) for name, reason in reasons.items() if reason is None}
    if not kinds:
        raise DataError(f"{path} has no column to learn from other than the target {target!r}.")
    return kinds, {name: reason for name, reason in reasons.items() if reason is not None}


def _why_left_out(table: Table, name: str) -> str | None:
    """Return why a column cannot be an input; None if it can."""
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
