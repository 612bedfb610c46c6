"""`TableSurvey`: what must be known of the columns of a table before it is learned.

A survey is made in one pass over the rows, block by block and on all cores, so everything in it merges: the survey of
all rows is the merge of the surveys of any parts, in any order. For each column that is

- its kind: the kinds that all of its values can be read as, which only become fewer (`ColumnSurvey`);
- its range, and the months and days of the week of dates;
- its different values with their counts and first rows, up to a limit (`Distinct`);
- its median, exactly while rows are few, and then from a random sample of rows (`MedianSample`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from math import isfinite
from typing import Any

import numpy as np
import pyarrow

from ocrep._files.convert import (
    DATE_KINDS,
    ColumnKind,
    as_kind,
    booleans_of,
    coded_texts,
    dates_of,
    first_other,
    infinite_number,
    is_present,
    numbers_of,
    times_of,
)
from ocrep._files.row_file import FileBlock, RowFile
from ocrep._layers.columns import date_part, days_since_1970
from ocrep._linalg.folds import mixed
from ocrep._linalg.parallel import share_items, worker_count

MOST_DISTINCT = 10_000  # more different values than these are not counted
SAMPLE_ENTRIES = 2**21  # numbers in the sample for medians: 16 MB of float64
_FEWEST_SAMPLED_ROWS = 2**8
# A column may be dates in either order of day and month: one block may fit both, and only all texts decide.
_ORDERED = DATE_KINDS[1:]

Kinds = Mapping[str, ColumnKind | None]


@dataclass(frozen=True, slots=True, eq=False)
class Selected:
    """Some rows of a block of a file."""

    block: FileBlock
    used: np.ndarray | None
    """Which rows of the block are meant; None for all of them."""
    y: Any = None
    """Their targets, if they were asked for."""

    @property
    def n_rows(self) -> int:
        """How many rows are meant."""
        return self.block.n_rows if self.used is None else int(np.count_nonzero(self.used))

    def of(self, values: np.ndarray) -> np.ndarray:
        """The values of the rows that are meant."""
        return values if self.used is None else values[self.used]

    def those(self, mine: np.ndarray) -> Selected:
        """The rows that a mask chooses among these."""
        used = mine
        if self.used is not None:
            used = self.used.copy()
            used[self.used] = mine
        return Selected(self.block, used, self.y[mine])

    def row_numbers(self) -> np.ndarray:
        """The numbers of the rows in the file, from 0."""
        start = self.block.start
        return self.of(np.arange(start, start + self.block.n_rows))


def with_target(file: RowFile, kinds: Mapping[str, ColumnKind | None], target: str) -> Iterator[Selected]:
    """Yield all blocks, with the rows that have a target."""
    for block in file.blocks(kinds):
        yield Selected(block, is_present(block.columns[target]))


@dataclass(slots=True)
class Distinct:
    """The different values of a column, with their counts and first rows; only some of them if they are too many."""

    found: dict[Any, tuple[int, int]] = field(default_factory=dict)
    more: bool = False
    """Whether there are values that are not in `found`; then counts are no longer kept."""
    most: int = MOST_DISTINCT
    """How many different values are counted."""

    def add(self, values: Sequence[Any], counts: np.ndarray, first_rows: Callable[[], np.ndarray]) -> None:
        """Count values, each once, with the number of their rows; the first of these is asked for if one is new."""
        rows: np.ndarray | None = None
        for place in np.flatnonzero(counts).tolist():
            if self.more:
                return
            value = values[place]
            if value not in self.found and rows is None:
                rows = first_rows()
            row = int(rows[place]) if rows is not None and value not in self.found else self.found[value][1]
            self._add(value, int(counts[place]), row)

    def merge(self, other: Distinct) -> Distinct:
        """The values of both."""
        both = Distinct(dict(self.found), self.more, self.most)
        for value, (count, row) in other.found.items():
            both._add(value, count, row)
        both.more |= other.more
        return both

    def _add(self, value: Any, count: int, row: int) -> None:
        before = self.found.get(value)
        if before is not None:
            self.found[value] = before[0] + count, min(before[1], row)
        elif len(self.found) < self.most:
            self.found[value] = count, row
        else:
            self.more = True

    def __len__(self) -> int:
        return len(self.found)

    @property
    def number(self) -> str:
        """How many there are, for a sentence."""
        return f"more than {self.most:,}" if self.more else f"{len(self.found):,}"

    def in_order(self) -> list[Any]:
        """The values in the order of their first rows."""
        return sorted(self.found, key=lambda value: self.found[value][1])


class MedianSample:
    """A random sample of rows, all of them while they are few: the rows whose numbers have the smallest hashes.

    Which rows are taken depends neither on how they are cut into blocks nor on the number of workers.
    """

    def __init__(self, n_columns: int, size: int | None = None) -> None:
        self.size = size or max(_FEWEST_SAMPLED_ROWS, SAMPLE_ENTRIES // max(1, n_columns))
        self._keys = np.empty(self.size, np.uint64)
        self._values = np.empty((self.size, n_columns))
        self._n = 0
        # The largest hash that a row of the sample may have.
        self._limit = np.uint64(2**64 - 1)
        # Rows for which the sample had no place left; they are sorted in together, since each time costs a partition.
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []

    def take(self, row_numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which of these rows may belong to the sample, and their hashes."""
        keys = mixed(row_numbers.astype(np.uint64))
        taken = np.flatnonzero(keys <= self._limit)
        return taken, keys[taken]

    def add(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Add rows that `take` has chosen."""
        free = min(len(keys), self.size - self._n)
        self._keys[self._n : self._n + free] = keys[:free]
        self._values[self._n : self._n + free] = values[:free]
        self._n += free
        if free < len(keys):
            self._waiting.append((keys[free:], values[free:]))
            if sum(len(waiting) for waiting, _ in self._waiting) > self.size // 4:
                self._settle()

    def merge(self, other: MedianSample) -> MedianSample:
        """The sample of the rows of both."""
        for keys, values in ((other._keys[: other._n], other._values[: other._n]), *other._waiting):
            self.add(keys, values)
        return self

    def medians(self) -> np.ndarray:
        """The median of each column, without missing values; NaN where all are missing."""
        self._settle()
        medians = np.full(self._values.shape[1], np.nan)
        for j, column in enumerate(self._values[: self._n].T):
            present = column[~np.isnan(column)]
            if len(present):
                medians[j] = np.median(present)
        return medians

    def _settle(self) -> None:
        """Let waiting rows take the places of the rows with the largest hashes."""
        if not self._waiting:
            return
        keys, values = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        smallest = np.argpartition(np.concatenate([self._keys, keys]), self.size - 1)[: self.size]
        stays = np.zeros(self.size + len(keys), dtype=bool)
        stays[smallest] = True
        places = np.flatnonzero(~stays[: self.size])
        come = np.flatnonzero(stays[self.size :])
        self._keys[places] = keys[come]
        self._values[places] = values[come]
        self._limit = self._keys.max()
        self._waiting = []


@dataclass(slots=True)
class TargetSurvey:
    """What is known of the targets of some rows."""

    total: float = 0.0
    """The sum of targets that are numbers."""
    values: Distinct = field(default_factory=Distinct)
    """The different numbers, or texts."""
    fraction: tuple[int, float] | None = None
    """Row and value of the first number that is not whole."""

    def add(self, values: np.ndarray, row_numbers: np.ndarray) -> None:
        """Add numbers of rows, none of them missing."""
        self.total += float(values.sum(dtype=np.float64))
        if self.fraction is None:
            odd = values != np.floor(values)
            if odd.any():
                first = int(odd.argmax())
                self.fraction = int(row_numbers[first]), float(values[first])
        if not self.values.more:
            found, places, counts = np.unique(values, return_index=True, return_counts=True)
            self.values.add(found.tolist(), counts, lambda: row_numbers[places])

    def merge(self, other: TargetSurvey) -> TargetSurvey:
        """The survey of the rows of both."""
        fractions = [found for found in (self.fraction, other.fraction) if found is not None]
        return TargetSurvey(
            self.total + other.total,
            self.values.merge(other.values),
            min(fractions, default=None),
        )


@dataclass(slots=True)
class ColumnSurvey:
    """What is known of one column: its kind, its range, its texts."""

    declared: ColumnKind | None
    """The kind that the file states; None if only the values show it."""
    possible: tuple[ColumnKind, ...] = ("number", "boolean", "date", "time", *_ORDERED)
    """The kinds that all texts so far can be read as."""
    n_present: int = 0
    """Rows with a value; of too many texts to be counted only if they are numbers, booleans or dates."""
    low: float = np.inf
    high: float = -np.inf
    wide: bool = False
    """Whether numbers of a declared kind need more than 32 bits."""
    infinite_row: int | None = None
    texts: Distinct = field(default_factory=Distinct)
    odd: tuple[int, str] | None = None
    """Row and text of the first one that is not a number."""
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    """The months and days of the week of dates."""

    @property
    def kind(self) -> ColumnKind:
        """The kind of the values."""
        if not self.n_present:
            return "empty"
        return self.declared or (*(kind for kind in self.possible if kind not in _ORDERED), "text")[0]

    @property
    def as_dates(self) -> tuple[ColumnKind, ...]:
        """The kinds of dates that all texts can be read as: more than one if no day is above 12."""
        return tuple(kind for kind in self.possible if kind in DATE_KINDS) if self.kind == "text" else ()

    @property
    def narrow(self) -> bool:
        """Whether float32 holds all values."""
        return self.kind == "boolean" or (self.declared is not None and not self.wide)

    def add(self, column: Any, name: str, rows: Selected) -> np.ndarray | None:
        """Look at the values of some rows; gives numbers, booleans and dates (in days) as floats, else None."""
        if self.declared in ("time", "other"):
            self.n_present += int(rows.of(column.is_valid().to_numpy(zero_copy_only=False)).sum())
            return None
        if self.declared in ("number", "boolean", *DATE_KINDS):
            values = rows.of(as_kind(column, self.declared, name, rows.block.start, finite=False))
            values = days_since_1970(values) if self.declared in DATE_KINDS else values
        else:
            found = self._add_texts(column, rows)
            if found is None or self.declared == "text":
                return None
            values = rows.of(found)
        self._add_numbers(values, rows)
        if self.kind in DATE_KINDS:
            days = values[~np.isnan(values)]
            self.months |= {int(month) for month in np.unique(date_part(days, "month", 0.0))}
            self.weekdays |= {int(day) for day in np.unique(date_part(days, "weekday", 0.0))}
        return values

    def _add_numbers(self, values: np.ndarray, rows: Selected) -> None:
        low = values.min(initial=np.inf)
        present = values[~np.isnan(values)] if np.isnan(low) else values
        if self.declared is not None:
            self.wide |= values.dtype == np.float64
            self.n_present += len(present)
        if not len(present):
            return
        low = present.min() if np.isnan(low) else low
        self.low = min(self.low, float(low))
        self.high = max(self.high, float(present.max()))
        if self.infinite_row is None and not (isfinite(self.low) and isfinite(self.high)):
            self.infinite_row = int(rows.row_numbers()[np.isinf(values).argmax()])

    def _add_texts(self, column: Any, rows: Selected) -> np.ndarray | None:
        """Count texts, and read them as numbers or booleans as long as that is possible."""
        if self.texts.more:
            found = self._read(column.cast(pyarrow.string()), rows, None) if self.possible else None
            self.n_present += 0 if found is None else int(np.count_nonzero(~np.isnan(rows.of(found))))
            return found
        codes, words = coded_texts(column)
        used = rows.of(codes)

        def first_rows() -> np.ndarray:
            first = np.zeros(len(words) + 1, dtype=np.int64)
            # Of equal places the last is assigned, which is the first row.
            first[used[::-1]] = rows.row_numbers()[::-1]
            return first[:-1]

        counts = np.bincount(used, minlength=len(words) + 1)[:-1]
        self.n_present += int(counts.sum())
        self.texts.add(words, counts, first_rows)
        if not self.possible:
            return None
        # A dictionary may hold words of other rows, which say nothing of these.
        occurs = np.bincount(codes, minlength=len(words) + 1)
        mine = [word if count else None for word, count in zip(words, occurs.tolist(), strict=False)]
        values = self._read(pyarrow.array(mine, pyarrow.string()), rows, codes)
        return None if values is None else np.append(values, np.nan)[codes]

    def _read(self, words: Any, rows: Selected, codes: np.ndarray | None) -> np.ndarray | None:
        """Texts as floats, by the first kind that fits all of them so far; drops the kinds that do not fit these."""
        found: dict[ColumnKind, Any] = {kind: _READERS[kind](words) for kind in self.possible}
        if "number" in found and found["number"] is None:
            place, text = first_other(words, numbers_of)
            row = place if codes is None else int((codes == place).argmax())
            self.odd = rows.block.start + row, text
        self.possible = tuple(kind for kind, values in found.items() if values is not None)
        first: ColumnKind = next(iter(self.possible), "time")
        if first in ("time", *_ORDERED):
            return None
        return days_since_1970(found[first]) if first == "date" else found[first]

    def merge(self, other: ColumnSurvey) -> ColumnSurvey:
        """The survey of the rows of both."""
        infinite = [row for row in (self.infinite_row, other.infinite_row) if row is not None]
        odd = [found for found in (self.odd, other.odd) if found is not None]
        return ColumnSurvey(
            self.declared,
            tuple(kind for kind in self.possible if kind in other.possible),
            self.n_present + other.n_present,
            min(self.low, other.low),
            max(self.high, other.high),
            self.wide or other.wide,
            min(infinite, default=None),
            self.texts.merge(other.texts),
            min(odd, default=None),
            self.months | other.months,
            self.weekdays | other.weekdays,
        )

    def check(self, name: str) -> None:
        """Raise if the column holds an infinite number."""
        if self.kind == "number" and self.infinite_row is not None:
            raise infinite_number(name, self.infinite_row + 1)


_READERS: dict[ColumnKind, Callable[[Any], np.ndarray | None]] = {
    "number": numbers_of,
    "boolean": booleans_of,
    **{kind: partial(dates_of, kind=kind) for kind in DATE_KINDS},
    "time": times_of,
}


class TableSurvey:
    """What is known of some rows of a table."""

    def __init__(self, kinds: Kinds, target: str) -> None:
        self.n_seen = self.n_rows = 0
        self.columns = {name: ColumnSurvey(kind) for name, kind in kinds.items()}
        self._target = target
        self._of_target = TargetSurvey()
        self._sampled = [name for name, kind in kinds.items() if kind in (None, "number", "boolean", *DATE_KINDS)]
        self._sample = MedianSample(len(self._sampled))

    def add(self, rows: Selected) -> TableSurvey:
        """Look at some rows; the survey itself is changed."""
        numbers = rows.row_numbers()
        self.n_seen += rows.block.n_rows
        self.n_rows += len(numbers)
        values = {name: column.add(rows.block.columns[name], name, rows) for name, column in self.columns.items()}
        of_target = values[self._target]
        if of_target is not None:
            self._of_target.add(of_target, numbers)
        taken, keys = self._sample.take(numbers)
        if len(taken):
            some = np.full((len(taken), len(self._sampled)), np.nan)
            for j, name in enumerate(self._sampled):
                found = values[name]
                if found is not None:
                    some[:, j] = found[taken]
            self._sample.add(keys, some)
        return self

    def merge(self, other: TableSurvey) -> TableSurvey:
        """The survey of the rows of both; this one is changed."""
        self.n_seen += other.n_seen
        self.n_rows += other.n_rows
        self.columns = {name: column.merge(other.columns[name]) for name, column in self.columns.items()}
        self._of_target = self._of_target.merge(other._of_target)
        self._sample.merge(other._sample)
        return self

    @property
    def target(self) -> TargetSurvey:
        """What is known of the target."""
        column = self.columns[self._target]
        return TargetSurvey(values=column.texts) if column.kind == "text" else self._of_target

    def medians(self) -> dict[str, float]:
        """The median of each number, boolean and date (in days), NaN where all are missing; of a sample of rows."""
        return dict(zip(self._sampled, self._sample.medians().tolist(), strict=True))


def survey_of(blocks: Iterable[Selected], kinds: Kinds, target: str) -> TableSurvey:
    """Survey all rows of a table, on all cores."""

    def step(so_far: TableSurvey | None, rows: Selected) -> TableSurvey:
        return (so_far or TableSurvey(kinds, target)).add(rows)

    return reduce(TableSurvey.merge, share_items(step, blocks, worker_count()))
