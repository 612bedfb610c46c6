"""`TableSurvey`: what must be known of the columns of a table before it is learned; surveys of parts merge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
    numbers_of,
    times_of,
)
from ocrep._layers.columns import date_part, days_since_1970
from ocrep._linalg.parallel import accumulate, worker_count
from ocrep.tables.counting import Distinct, MedianSample
from ocrep.tables.rows import Selected
from ocrep.tables.target import TargetSurvey

Kinds = Mapping[str, ColumnKind | None]
_ORDERED = DATE_KINDS[1:]
"""A column may be dates in either order of day and month: only all of its texts tell."""


@dataclass(slots=True)
class ColumnSurvey:
    """What is known of one column: its kind, its range, its texts."""

    declared: ColumnKind | None
    """The kind that the file states; None if the values tell."""
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
        self.low, self.high = min(self.low, float(low)), max(self.high, float(present.max()))
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
            first[used[::-1]] = rows.row_numbers()[::-1]  # of equal places the last is assigned: that of the first row
            return first[:-1]

        counts = np.bincount(used, minlength=len(words) + 1)[:-1]
        self.n_present += int(counts.sum())
        self.texts.add(words, counts, first_rows)
        if not self.possible:
            return None
        occurs = np.bincount(codes, minlength=len(words) + 1)  # a dictionary may be that of more rows
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
        return (
            None if first in ("time", *_ORDERED) else days_since_1970(found[first]) if first == "date" else found[first]
        )

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
        self._of_target, self._target = TargetSurvey(), target
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

    return reduce(TableSurvey.merge, accumulate(step, blocks, worker_count()))
