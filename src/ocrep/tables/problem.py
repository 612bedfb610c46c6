"""A table as a learning problem: the target, the task, the inputs, and the columns left out with reasons.

`read_problem` surveys all rows once (`survey.py`) and decides what each column is for. What it returns holds no rows:
`TableRows` reads them again, block by block, whenever they are needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
import pyarrow

from ocrep._files.convert import DATE_KINDS, ColumnKind, DateKind, as_kind, coded_texts, numbers_of
from ocrep._files.formats import DataError, FilePath, check_columns
from ocrep._files.readers import PLAIN, NotNumbersError
from ocrep._files.reading import Reading
from ocrep._files.row_file import FileBlock, RowFile
from ocrep._rows.checks import MANY_LABELS
from ocrep.analysis.assessment import Advice
from ocrep.tables.split import Split
from ocrep.tables.survey import ColumnSurvey, Selected, TableSurvey, TargetSurvey, survey_of, with_target

FEWEST_ROWS = 10
MOST_CATEGORIES = 200  # a column with more different texts is an id or free text: one-hot coding is useless
FEW_CATEGORIES = 20  # with at most this many, a column is never taken for an id, even if each row has its own text
MOST_CLASSES = 1000
EXACT = 2**53  # above this, some integers are not a float64
_SAMPLE = 1000  # texts of a column that are looked at

Task = Literal["regression", "classification"]
InputKind = Literal["number", "boolean", "text", DateKind]
StageProgress = Callable[[str, int, int | None], None]  # stage, amount done, and total amount (None if unknown)


class UsageError(ValueError):
    """A request that the model or the problem cannot fulfil; the message says why."""


def silent(stage: str, done: int, total: int | None) -> None:
    """Ignore all progress."""


# ------------------------------------------------------------------------------
# The target


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """The column to learn: its kind, its task and, for a classification, the classes."""

    name: str
    kind: ColumnKind
    task: Task
    classes: np.ndarray | None = None

    @classmethod
    def of(cls, name: str, kind: ColumnKind, survey: TargetSurvey, n_rows: int, task: Task) -> Target:
        """Check that the target can be learned."""
        first = survey.values.in_order()[0]
        if task == "classification":
            return cls(name, kind, task, _classes(name, kind, survey, n_rows))
        if kind == "text":
            raise DataError(
                f"Column {name!r} holds text such as {first!r}, but a regression needs numbers: "
                "use --task classification, or another target."
            )
        if len(survey.values) == 1:
            raise DataError(f"Column {name!r} holds only one value, {first:g}: there is nothing to learn.")
        return cls(name, kind, task)

    def values(self, of: Callable[[np.ndarray], np.ndarray], block: FileBlock) -> np.ndarray:
        """The targets of the rows that `of` selects: float64 for regression; texts, booleans or integers as labels."""
        column = block.columns[self.name]
        if self.kind == "text":
            codes, words = coded_texts(column)
            return np.array(words, dtype=str)[of(codes)]
        found = of(as_kind(column, self.kind, self.name, block.start))
        if self.task == "regression":
            return found.astype(np.float64)
        return found.astype(bool if self.kind == "boolean" else np.int64)

    def codes(self, y: np.ndarray) -> np.ndarray:
        """The number of each row's class; 0 for all rows of a regression."""
        if self.classes is None:
            return np.zeros(len(y), dtype=np.intp)
        return np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)

    def labels(self, survey: TargetSurvey) -> tuple[np.ndarray, np.ndarray]:
        """The classes that some rows hold, sorted, and the number of rows of each."""
        dtype: Any = {"text": str, "boolean": bool}.get(self.kind, np.int64)
        labels = np.array(list(survey.values.found)).astype(dtype)
        counts = np.array([count for count, _ in survey.values.found.values()])
        order = np.argsort(labels)
        return labels[order], counts[order]


def guess_task(kind: ColumnKind, survey: TargetSurvey, n_rows: int) -> tuple[Task, str]:
    """Return the task for a target without missing values, and the reason.

    Texts, categories and booleans are labels. Numbers are labels if all are integers, at most 20 are different, and
    there are five rows for each on average; otherwise they are quantities.
    """
    if kind != "number":
        return "classification", f"holds {'True and False' if kind == 'boolean' else 'text'}"
    if survey.fraction is not None:
        return "regression", "holds numbers that are not whole"
    different = survey.values
    if not different.more and len(different) <= MANY_LABELS and n_rows >= 5 * len(different):
        return "classification", f"holds {len(different)} different whole numbers"
    return "regression", f"holds {different.number} different numbers in {n_rows:,} rows"


def _classes(name: str, kind: ColumnKind, survey: TargetSurvey, n_rows: int) -> np.ndarray:
    different = survey.values
    first = different.in_order()[0]
    if kind == "number":
        if survey.fraction is not None:
            raise DataError(
                f"Column {name!r} holds {survey.fraction[1]:g}, but labels are whole numbers: use --task regression."
            )
        if max(map(abs, different.found)) >= EXACT:
            raise DataError(
                f"Column {name!r} holds labels of 16 digits and more, which float64 cannot tell apart: "
                "write them as text."
            )
        first = int(first)
    if len(different) < 2:
        label = bool(first) if kind == "boolean" else first
        raise DataError(f"Column {name!r} holds only one class, {label}: a classifier needs at least two.")
    if (
        different.more
        or len(different) > MOST_CLASSES
        or (len(different) > MANY_LABELS and len(different) > n_rows / 2)
    ):
        hint = "write numbers as 1234.5" if kind == "text" else "use --task regression"
        raise DataError(
            f"Column {name!r} has {different.number} different values in {n_rows:,} rows, such as {first!s}, "
            f"too many for classes: is it an id, or a quantity ({hint})?"
        )
    return Target(name, kind, "classification").labels(survey)[0]


# ------------------------------------------------------------------------------
# The rows


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


# ------------------------------------------------------------------------------
# The problem


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
    """Survey all rows; again if texts turn out to be dates, since only all texts show the order of day and month."""
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

    def blocks() -> Iterator[Selected]:
        for rows in with_target(file, kinds, target):
            yield rows
            progress("Reading", rows.block.start + rows.block.n_rows, total)

    try:
        return survey_of(blocks(), kinds, target)
    except NotNumbersError:  # a column that is numbers in the first block of a CSV file is not in a later one
        file.forget_kinds()
        kinds = dict.fromkeys(kinds)
        return survey_of(blocks(), kinds, target)


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


# ------------------------------------------------------------------------------
# Texts that were meant to be numbers or dates: which of them look so, and which options would read them.

_SIGNS = "$€£¥%"
# Matched without spaces and signs. No two parts can match the same character, so that long texts take linear time.
_NUMERAL = re.compile(r"[+-]?[.,']*\d[\d.,']*(e[+-]?\d+)?", re.IGNORECASE)
_DATE = re.compile(
    r"(\d\d?/\d\d?/(\d{4}|\d\d)|\d\d?[.-]\d\d?[.-]\d{4}|\d\d\.\d\d\.\d\d|\d{4}[/.]\d\d?[/.]\d\d?)( \d.*)?", re.ASCII
)
_AS_NOTHING = str.maketrans("", "", _SIGNS + " \u00a0\u202f\u2009")
# Decimal mark and mark between thousands; of marks that both read all texts, the first is named.
_MARKS = ((".", ""), (".", ","), (",", ""), (",", "."), (".", "'"), (".", " "), (",", " "))
_MOST_WORDS = 3  # as many different words may stand for a missing value


def looks_like_number(text: str) -> bool:
    """Whether a text is written with the digits and marks of a number."""
    return _NUMERAL.fullmatch(text.translate(_AS_NOTHING).strip()) is not None


def looks_like_date(text: str) -> bool:
    """Whether a text is written as a date, but not as in ISO 8601."""
    return _DATE.fullmatch(text.strip()) is not None


def options_that_read(texts: Sequence[str], reading: Reading = PLAIN) -> dict[str, Any]:
    """The fields of `Reading` that must change so that all texts are numbers; empty if no change is enough."""
    more = (sign for sign in _SIGNS if sign not in reading.strip and any(sign in text for text in texts))
    signs = reading.strip + "".join(more)
    words = tuple(dict.fromkeys(text.strip() for text in texts if not any(map(str.isdigit, text))))
    if len(words) > _MOST_WORDS:
        return {}
    column = pyarrow.array(list(texts), pyarrow.string())
    for decimal, thousands in ((reading.decimal, reading.thousands), *_MARKS):
        try:
            other = Reading(decimal, thousands, signs, (*reading.na, *words), reading.encoding, reading.delimiter)
        except ValueError:  # a word or sign that is also a mark
            continue
        if numbers_of(other.column(column)) is not None:
            return other.differences(reading)
    return {}
