"""A data frame in memory, read as a file of rows is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow

from ocrep._files.formats import DataError
from ocrep._files.readers import BLOCK_ROWS, FileReader

NAME = "The frame"


def as_table(frame: Any) -> Any:
    """A pandas or polars frame, or an Arrow table, as an Arrow table; raises unless all columns have names of text."""
    if isinstance(frame, pyarrow.Table):
        return frame
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    if not (hasattr(frame, "iloc") and hasattr(frame, "columns")):
        raise TypeError(
            f"fit_table takes a pandas or polars data frame, or an Arrow table, not {type(frame).__name__}: "
            "for arrays use PinvRegressorCV or PinvClassifierCV."
        )
    numbered = [name for name in frame.columns if not isinstance(name, str)]
    if numbered:
        raise DataError(f"The column name {numbered[0]!r} of the frame is not text: rename the columns.")
    try:
        return pyarrow.Table.from_pandas(frame, preserve_index=False)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"The frame cannot be read: {'; '.join(map(str, error.args))}.") from error


class FrameReader(FileReader):
    """The columns and types of a frame, in slices; nothing is copied."""

    def __init__(self, table: Any, *, block_rows: int = BLOCK_ROWS) -> None:
        super().__init__(NAME, block_rows=block_rows)
        self._table = table

    def column_names(self) -> list[str]:
        """The names of the columns in order; raise if one appears twice."""
        return self._checked(list(self._table.column_names))

    def _schema(self, names: Sequence[str]) -> Any:
        return self._table.schema

    def _batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
        return self._cut(self._table.select(list(columns)).combine_chunks().to_batches())

    def n_rows(self) -> int:
        """Those of the frame."""
        return int(self._table.num_rows)
