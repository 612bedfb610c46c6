"""`Rows`: the one interface to rows in memory, on a device, of a scan or of Dask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from ocrep._rows.block import Block, Triple
from ocrep._rows.survey import Needs, Survey

Summary = TypeVar("Summary")


class Part(ABC):
    """Rows that can be read here, block by block."""

    n_in_memory: int | None = None
    """The number of all rows, where they lie in memory and cutting them costs nothing."""
    n_parts_read: int = 0
    """How many parts (files, blocks) the current pass has begun."""

    @abstractmethod
    def check(self, needs: Needs) -> int | None:
        """Check what can be checked before rows are read; gives the number of rows where it is known."""

    @abstractmethod
    def triples(self, code: Callable[[Block], Triple], height: int, skip: int = 0) -> Iterator[Triple]:
        """All rows from the beginning, but for the first `skip`, coded and cut to blocks of `height` rows."""

    def fingerprints(self) -> tuple[str, ...]:
        return ()


class Rows(ABC):
    """Rows that a fit reads: surveyed first, then accumulated into one summary."""

    once: bool = False
    """Whether the rows can be read only once."""
    local: bool = True
    """Whether the rows can be read here, and not only by the workers that hold them."""
    n_rows: int | None = None
    """The number of all rows, where it is known before they are accumulated."""
    shared: bool = False
    """Whether several threads may read the rows at a time, each all of them."""
    classes_given: bool = False
    """Whether all labels were named together with the rows."""
    checkpoint: tuple[Path, float] | None = None
    """A file that saves how far a fit has come, and the seconds between two saves."""

    @abstractmethod
    def survey(self, needs: Needs) -> Survey:
        """Check the rows and learn what must be known of all of them; must come first."""

    @property
    @abstractmethod
    def n_parts(self) -> int:
        """How many parts the rows lie in."""

    @abstractmethod
    def accumulate(
        self,
        step: Callable[[Part], Summary | None],
        merge: Callable[[Summary, Summary], Summary],
        *,
        n_parts: int | None = None,
    ) -> Summary:
        """The merge of step(part) over all parts, or over the first `n_parts`; a part without rows gives None."""


class LocalRows(Rows, Part):
    """Rows that are one part, read here."""

    n_parts = 1

    def accumulate(
        self,
        step: Callable[[Part], Summary | None],
        merge: Callable[[Summary, Summary], Summary],
        *,
        n_parts: int | None = None,
    ) -> Summary:
        """The summary of the only part."""
        del merge, n_parts
        summary = step(self)
        assert summary is not None, "A survey found rows."
        return summary
