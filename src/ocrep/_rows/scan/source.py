"""`Source`: rows that come in blocks, and what is known of them before they are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ocrep._rows.block import Block
from ocrep._rows.checks import check_numeric, text_column
from ocrep._rows.survey import Range


class Source(ABC):
    """Rows in blocks of any size; a source answers None where it cannot know."""

    once: bool = False
    """Whether the rows can be read only once."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    @abstractmethod
    def blocks(self, *, inputs: bool = True, skip: int = 0) -> Iterator[Block]:
        """All rows for training, from the beginning, but for the first `skip`; without inputs X has no columns."""

    @abstractmethod
    def inputs(self, columns: Sequence[str] | None) -> Iterator[Block]:
        """All rows for prediction: the inputs alone, by name if `columns` are given."""

    def check(self) -> None:  # noqa: B027 - most sources can tell only from their rows
        """Check what can be checked without reading rows."""

    def n_rows(self) -> int | None:
        return None

    range_is_observed: bool = False
    """Whether the stated range was found by looking at all rows, and need not be checked again."""

    def stated_range(self) -> Range | None:
        """The inputs' range over all rows, where it is known and every row has weight."""
        return None

    def fingerprints(self) -> tuple[str, ...]:
        """For each part what changes when its rows change; empty where only the rows themselves tell."""
        return ()

    def check_unchanged(self, fingerprints: Sequence[str]) -> None:  # noqa: B027 - only files have fingerprints
        """Raise if a part has another fingerprint than these, its fingerprints when it was first read."""


def as_inputs(X: Any) -> Any:
    """A block of inputs as a float matrix: float32 stays, everything else becomes float64; sparse stays sparse."""
    if sparse.issparse(X):
        X = X.tocsr()
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    X = np.asarray(X)
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must hold real numbers.")
    if X.dtype.kind not in "biufO":
        check_numeric(text_column(X), {"m": "dates or times", "M": "dates or times"}.get(X.dtype.kind, "texts"))
    try:
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    except ValueError:
        check_numeric(text_column(X), "texts")
        raise
