"""A file of rows as a learning problem: the target, the task, the inputs, and the columns left out with reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from ocrep._files.convert import DATE_KINDS, ColumnKind, DateKind
from ocrep._files.formats import DataError, FilePath, check_columns
from ocrep._files.readers import PLAIN, NotNumbersError
from ocrep._files.reading import Reading
from ocrep._files.row_file import RowFile
from ocrep.analysis.assessment import Advice
from ocrep.tables.rows import Selected, TableRows, with_target
from ocrep.tables.survey import ColumnSurvey, TableSurvey, survey_of
from ocrep.tables.target import Target, Task, guess_task
from ocrep.tables.written import looks_like_date, looks_like_number, options_that_read

FEWEST_ROWS = 10
MOST_CATEGORIES = 200  # a column with more different texts is an id or free text: one-hot coding is useless
FEW_CATEGORIES = 20  # with at most this many, a column is never taken for an id, even if each row has its own text
_SAMPLE = 1000

InputKind = Literal["number", "boolean", "text", DateKind]
StageProgress = Callable[[str, int, int | None], None]  # stage, amount done, and total amount (None if unknown)


class UsageError(ValueError):
    """A request that the model or the problem cannot fulfil; the message says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A file that can be learned; its rows are read again when they are needed."""

    rows: TableRows
    survey: TableSurvey
    task_reason: str  # why the task was guessed; empty if it was given
    kinds: dict[str, InputKind]  # the inputs, in the file's order
    left_out: dict[str, str]  # columns that are not inputs, and why
    ids: tuple[str, ...]
    n_dropped: int  # rows left out because their target is missing
    near_numbers: dict[str, str]  # text columns that probably should be numbers, with the first text that is not one
    remedies: dict[str, dict[str, Any]]  # how such columns could be read, where that is known: fields of `Reading`

    @property
    def target(self) -> str:
        """The name of the column to learn."""
        return self.rows.target.name

    @property
    def task(self) -> Task:
        """What is learned."""
        return self.rows.target.task

    @property
    def n_rows(self) -> int:
        """Rows that have a target."""
        return self.survey.n_rows

    @property
    def classes(self) -> np.ndarray | None:
        """All labels; None for a regression."""
        return self.rows.target.classes

    @property
    def gaps(self) -> dict[str, int]:
        """The number of missing values of each input that has some."""
        missing = {name: self.n_rows - self.survey.columns[name].n_present for name in self.kinds}
        return {name: number for name, number in missing.items() if number}

    @property
    def near_dates(self) -> dict[str, str]:
        """Text columns that look like dates in no certain form, such as 01/02/2024 or 31.12.24, with the first text."""
        texts = {name: column for name, column in self.survey.columns.items() if column.kind == "text"}
        unsure = {
            name: column.texts.in_order()[:_SAMPLE]
            for name, column in texts.items()
            if name != self.target and len(column.as_dates) != 1
        }
        return {name: sample[0] for name, sample in unsure.items() if all(map(looks_like_date, sample))}

    def advice(self) -> list[Advice]:
        """What seems wrong with the columns."""
        hint = "write 1234.5, and leave missing cells empty"
        numbers = [
            Advice("near_numbers", f"Column {name!r} became text, because it holds {text}", self.remedies[name], hint)
            for name, text in self.near_numbers.items()
        ]
        return numbers + [self._not_dates(name, text) for name, text in self.near_dates.items()]

    def _not_dates(self, name: str, text: str) -> Advice:
        why = f"its texts, the first is {text!r}, are not all dates of one known form"
        if self.survey.columns[name].as_dates:
            why = f"the order of day and month is not certain in {text!r}"
        problem = f"Column {name!r} is not read as dates, because {why}"
        return Advice("near_dates", problem, hint="write them as YYYY-MM-DD")


def silent(stage: str, done: int, total: int | None) -> None:
    """Ignore all progress."""


def read_problem(
    path: FilePath | RowFile,
    target: str,
    *,
    task: Literal["auto", "regression", "classification"] = "auto",
    ignore: Sequence[str] = (),
    ids: Sequence[str] = (),
    drop_missing_target: bool = False,
    dates: Literal["parts", "drop"] = "parts",
    reading: Reading = PLAIN,
    progress: StageProgress = silent,
) -> Problem:
    """Read a file once, block by block, and decide on task and inputs; raise if the target cannot be learned."""
    file = path if isinstance(path, RowFile) else RowFile(path, reading)
    path = file.path
    check_columns(path, (target, *ignore, *ids), list(file.kinds))
    if target in (*ignore, *ids):
        raise DataError(f"Column {target!r} is the target: it cannot be ignored or used as an id.")
    if _nameless(target):
        raise DataError(f"Column {target!r} of {path} has no proper name: give the target column a name.")
    left_out = {**dict.fromkeys(ignore, "ignored"), **dict.fromkeys(ids, "an id")}
    wanted = {name: kind for name, kind in file.kinds.items() if name not in left_out and not _nameless(name)}
    left_out |= {name or "(no name)": "has no name" for name in file.kinds if _nameless(name)}
    survey = _surveyed(file, wanted, target, progress)
    n_dropped = _check_target(survey, target, drop_missing_target, path)
    kind = survey.columns[target].kind
    chosen, task_reason = guess_task(kind, survey.target, survey.n_rows) if task == "auto" else (task, "")
    near_numbers, remedies = _near_numbers(survey, reading)
    if task == "auto" and remedies.get(target) and len(survey.target.values) > FEW_CATEGORIES:
        problem = f"Column {target!r}, the target, is text because it holds {near_numbers[target]}"
        raise DataError(Advice("near_numbers", problem, remedies[target]).sentence())
    learned = Target.of(target, kind, survey.target, survey.n_rows, chosen)
    columns = {name: column for name, column in survey.columns.items() if name != target}
    reasons = {name: _why_left_out(column, survey.n_rows, dates) for name, column in columns.items()}
    kinds = {name: cast(InputKind, columns[name].kind) for name, reason in reasons.items() if not reason}
    if not kinds:
        raise DataError(f"{path} has no column to learn from other than the target {target!r}.")
    left_out |= {name: reason for name, reason in reasons.items() if reason}
    rows = TableRows(file, {**kinds}, learned)
    return Problem(rows, survey, task_reason, kinds, left_out, tuple(ids), n_dropped, near_numbers, remedies)


def _nameless(name: str) -> bool:
    # pandas writes its row labels under such a name.
    return not name.strip() or name.startswith("__index_level_")


def _surveyed(
    file: RowFile, kinds: Mapping[str, ColumnKind | None], target: str, progress: StageProgress
) -> TableSurvey:
    """Survey all rows; once more if texts turn out to be dates, whose order of day and month only all of them tell."""
    survey = _surveyed_once(file, kinds, target, progress)
    fixed = {target, *file.categories}
    found = {name: column.as_dates for name, column in survey.columns.items() if name not in fixed}
    dates = {name: possible[0] for name, possible in found.items() if len(possible) == 1}
    if not dates:
        return survey
    return _surveyed_once(file, {name: dates.get(name, file.kinds[name]) for name in kinds}, target, progress)


def _surveyed_once(
    file: RowFile, kinds: Mapping[str, ColumnKind | None], target: str, progress: StageProgress
) -> TableSurvey:
    total = file.n_rows()
    try:
        return survey_of(_told(with_target(file, kinds, target), total, progress), kinds, target)
    except NotNumbersError:  # the first block of a CSV file did not tell the truth about all others
        file.forget_kinds()
        kinds = dict.fromkeys(kinds)
        return survey_of(_told(with_target(file, kinds, target), total, progress), kinds, target)


def _told(blocks: Iterator[Selected], total: int | None, progress: StageProgress) -> Iterator[Selected]:
    """The blocks, with progress told after each."""
    for rows in blocks:
        yield rows
        progress("Reading", rows.block.start + rows.block.n_rows, total)


def _check_target(survey: TableSurvey, target: str, drop: bool, path: FilePath) -> int:
    """Check that there are rows with a target that can be learned; gives the number of rows without one."""
    for name, column in survey.columns.items():
        column.check(name)
    kind = survey.columns[target].kind
    if kind in (*DATE_KINDS, "time", "other") or survey.columns[target].as_dates:
        held = "neither numbers nor text" if kind == "other" else "dates or times"
        raise DataError(f"Column {target!r} holds {held}, which cannot be a target: choose another column.")
    if not survey.n_rows:
        raise DataError(f"Column {target!r} is empty: there is nothing to learn.")
    n_missing = survey.n_seen - survey.n_rows
    if n_missing and not drop:
        raise DataError(
            f"Column {target!r} has no value in {n_missing:,} of {survey.n_seen:,} rows: "
            "fill them in, or leave these rows out with --drop-missing-target."
        )
    if survey.n_rows < FEWEST_ROWS:
        usable = f"{survey.n_rows} {'row' if survey.n_rows == 1 else 'rows'}{' with a target' if n_missing else ''}"
        raise DataError(f"{path} has only {usable}: at least {FEWEST_ROWS} are needed.")
    return n_missing


def _why_left_out(column: ColumnSurvey, n_rows: int, dates: str) -> str:
    """Return why a column cannot be an input; an empty text if it can."""
    by_kind = {"time": "holds times of a day", "empty": "is empty", "other": "holds neither numbers nor text"}
    if column.kind in by_kind:
        return by_kind[column.kind]
    if column.kind in DATE_KINDS and dates == "drop":
        return "holds dates"
    texts = column.texts
    is_constant = len(texts) == 1 if column.kind == "text" else column.low == column.high
    if is_constant and column.n_present == n_rows:
        return "is constant"
    too_many = texts.more or len(texts) > MOST_CATEGORIES or (len(texts) > FEW_CATEGORIES and len(texts) > n_rows / 2)
    return f"an id or free text: {texts.number} different ones" if column.kind == "text" and too_many else ""


def _near_numbers(survey: TableSurvey, reading: Reading) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """Text columns that mostly look like numbers, as with 1,234 or 0,5 or a dash for a missing value; and remedies."""
    found, remedies = {}, {}
    quotes = "" if reading.decimal == PLAIN.decimal else "'"  # `Reading` puts them around 1.5 if that is not a number
    for name, column in survey.columns.items():
        if column.kind != "text" or column.odd is None:
            continue
        sample = [text.strip(quotes) for text in column.texts.in_order()[:_SAMPLE]]
        if 2 * sum(map(looks_like_number, sample)) > len(sample) and not all(map(looks_like_date, sample)):
            row, text = column.odd[0], column.odd[1].strip(quotes)
            found[name] = f"{text!r} in row {row + 1:,}"
            remedies[name] = options_that_read([*sample, text], reading)
    return found, remedies
