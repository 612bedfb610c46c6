"""`Distinct` and `MedianSample`: the different values of a column, and rows for medians; those of parts merge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ocrep._linalg.folds import mixed

MOST_DISTINCT = 10_000  # more different values than these are not counted
SAMPLE_ENTRIES = 2**21  # 16 MB of float64
_FEWEST_ROWS = 2**8


@dataclass(slots=True)
class Distinct:
    """The different values of a column, with their counts and first rows; beyond `MOST_DISTINCT` only some of them."""

    found: dict[Any, tuple[int, int]] = field(default_factory=dict)
    more: bool = False
    """Whether there are values that are not in `found`."""

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
        both = Distinct(dict(self.found), self.more)
        for value, (count, row) in other.found.items():
            both._add(value, count, row)
        both.more |= other.more
        return both

    def _add(self, value: Any, count: int, row: int) -> None:
        before = self.found.get(value)
        if before is not None:
            self.found[value] = before[0] + count, min(before[1], row)
        elif len(self.found) < MOST_DISTINCT:
            self.found[value] = count, row
        else:
            self.more = True

    def __len__(self) -> int:
        return len(self.found)

    @property
    def number(self) -> str:
        """How many there are, for a sentence."""
        return f"more than {MOST_DISTINCT:,}" if self.more else f"{len(self.found):,}"

    def in_order(self) -> list[Any]:
        """The values in the order of their first rows."""
        return sorted(self.found, key=lambda value: self.found[value][1])


class MedianSample:
    """A random sample of rows, all of them while they are few: those whose numbers have the smallest hashes.

    Which rows are taken depends neither on how they are cut into blocks nor on the number of workers.
    """

    def __init__(self, n_columns: int) -> None:
        self.size = max(_FEWEST_ROWS, SAMPLE_ENTRIES // max(1, n_columns))
        self._keys, self._values = np.empty(self.size, np.uint64), np.empty((self.size, n_columns))
        self._n = 0
        self._limit = np.uint64(2**64 - 1)
        """The largest hash that a row of the sample may have."""
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
        """Let rows that wait take the places of those with the largest hashes."""
        if not self._waiting:
            return
        keys, values = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        smallest = np.argpartition(np.concatenate([self._keys, keys]), self.size - 1)[: self.size]
        stays = np.zeros(self.size + len(keys), dtype=bool)
        stays[smallest] = True
        places, come = np.flatnonzero(~stays[: self.size]), np.flatnonzero(stays[self.size :])
        self._keys[places], self._values[places] = keys[come], values[come]
        self._limit = self._keys.max()
        self._waiting = []
