"""A file of rows as a learning problem: the target, the task, the inputs, and the columns left out with reasons."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from ocrep._files.formats import DataError, FilePath, check_columns
from ocrep._files.frames import Table, column_names, read_table
from ocrep.analysis.compare import MANY_LABELS

FEWEST_ROWS = 10
MOST_CATEGORIES = 200  # a column with more different texts is an id or free text: one-hot coding is useless
FEW_CATEGORIES = 20  # with at most this many, a column is never taken for an id, even if each row has its own text
MOST_CLASSES = 1000
EXACT = 2**53  # above this, some integers are not a float64
_SAMPLE = 1000
_NUMERAL = re.compile(r"\s*[+-]?[\d.,' ]*\d[\d.,' ]*(e[+-]?\d+)?\s*%?\s*", re.IGNORECASE)

Task = Literal["regression", "classification"]
InputKind = Literal["number", "boolean", "text"]


class UsageError(ValueError):
    """A request that the model or the problem cannot fulfil; the message says why."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The rows of a file, ready for training."""

    X: Any
    y: np.ndarray
    target: str
    task: Task
    task_reason: str  # why the task was guessed; empty if it was given
    kinds: dict[str, InputKind]  # the inputs, in the file's order
    left_out: dict[str, str]  # columns that are not inputs, and why
    ids: tuple[str, ...]
    n_dropped: int  # rows left out because their target is missing
    near_numbers: dict[str, str]  # text columns that probably should be numbers, with the first text that is not one


def read_problem(
    path: FilePath,
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
    values, kind = table.frame[target].to_numpy(), table.kinds[target]
    chosen, task_reason = guess_task(values, kind) if task == "auto" else (task, "")
    y = _target_values(values, kind, chosen, target)
    reasons = {name: _why_left_out(table, name) for name in table.kinds if name != target}
    kinds = {name: cast(InputKind, table.kinds[name]) for name, reason in reasons.items() if not reason}
    if not kinds:
        raise DataError(f"{path} has no column to learn from other than the target {target!r}.")
    left_out |= {name: reason for name, reason in reasons.items() if reason}
    X = table.frame[list(kinds)]
    return Problem(X, y, target, chosen, task_reason, kinds, left_out, tuple(ids), n_dropped, _near_numbers(table))


def _nameless(name: str) -> bool:
    # pandas writes its row labels under such a name.
    return not name.strip() or name.startswith("__index_level_")


def _with_target(table: Table, target: str, drop: bool, path: FilePath) -> tuple[Table, int]:
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
        usable = f"{len(frame)} {'row' if len(frame) == 1 else 'rows'}{' with a target' if n_missing else ''}"
        raise DataError(f"{path} has only {usable}: at least {FEWEST_ROWS} are needed.")
    return Table(frame, table.kinds), n_missing


def guess_task(values: np.ndarray, kind: str) -> tuple[Task, str]:
    """Return the task for a target without missing values, and the reason.

    Texts, categories and booleans are labels. Numbers are labels if all are integers, at most 20 are different, and
    there are five rows for each on average; otherwise they are quantities.
    """
    if kind != "number":
        return "classification", f"holds {'True and False' if kind == 'boolean' else 'text'}"
    if not _all_integers(values):
        return "regression", "holds numbers that are not whole"
    n_different = len(np.unique(values))
    if n_different <= MANY_LABELS and len(values) >= 5 * n_different:
        return "classification", f"holds {n_different} different whole numbers"
    return "regression", f"holds {n_different} different numbers in {len(values):,} rows"


def _target_values(values: np.ndarray, kind: str, task: Task, name: str) -> np.ndarray:
    """The target as the estimators take it: float64 for regression; texts, booleans or integers as labels."""
    if task == "regression":
        if kind == "text":
            raise DataError(
                f"Column {name!r} holds text such as {values[0]!r}, but a regression needs numbers: "
                "use --task classification, or another target."
            )
        if (values == values[0]).all():
            raise DataError(f"Column {name!r} holds only one value, {values[0]:g}: there is nothing to learn.")
        return values.astype(np.float64)
    labels = _labels(values, kind, name)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise DataError(f"Column {name!r} holds only one class, {classes[0]}: a classifier needs at least two.")
    if len(classes) > MOST_CLASSES or (len(classes) > MANY_LABELS and len(classes) > len(labels) / 2):
        hint = "write numbers as 1234.5" if kind == "text" else "use --task regression"
        raise DataError(
            f"Column {name!r} has {len(classes):,} different values in {len(labels):,} rows, such as {labels[0]!s}, "
            f"too many for classes: is it an id, or a quantity ({hint})?"
        )
    return labels


def _labels(values: np.ndarray, kind: str, name: str) -> np.ndarray:
    if kind != "number":
        return values.astype(str if kind == "text" else bool)
    if not _all_integers(values):
        odd = values[values != np.floor(values)][0]
        raise DataError(f"Column {name!r} holds {odd:g}, but labels are whole numbers: use --task regression.")
    if np.abs(values).max() >= EXACT:
        raise DataError(
            f"Column {name!r} holds labels of 16 digits and more, which float64 cannot tell apart: write them as text."
        )
    return values.astype(np.int64)


def _all_integers(values: np.ndarray) -> bool:
    return bool((values == np.floor(values)).all())


def _why_left_out(table: Table, name: str) -> str:
    """Return why a column cannot be an input; an empty text if it can."""
    kind = table.kinds[name]
    by_kind = {"date": "holds dates or times", "empty": "is empty", "other": "holds neither numbers nor text"}
    if kind in by_kind:
        return by_kind[kind]
    column = table.frame[name]
    if column.isna().all():
        return "is empty"
    n_different = column.nunique() if kind == "text" else 1 if column.min() == column.max() else 2
    if n_different == 1 and not column.hasnans:
        return "is constant"
    if n_different > MOST_CATEGORIES or (n_different > FEW_CATEGORIES and n_different > len(column) / 2):
        return f"has {n_different:,} different texts"
    return ""


def _near_numbers(table: Table) -> dict[str, str]:
    """Text columns that mostly look like numbers: those with 1,234 or 0,5, or with a dash for a missing value."""
    found = {}
    for name in (name for name, kind in table.kinds.items() if kind == "text"):
        column = table.frame[name]
        different = column.dropna().unique()
        sample = different[:_SAMPLE]
        odd = next((text for text in different if not _is_number(text)), None)
        if odd is not None and 2 * sum(_NUMERAL.fullmatch(text) is not None for text in sample) > len(sample):
            # The index counts the file's rows, also after rows without a target were dropped.
            found[name] = f"{odd!r} in row {column.index[(column == odd).to_numpy().argmax()] + 1:,}"
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
