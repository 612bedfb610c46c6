"""Files of rows as data frames, block by block, read by the library's own readers."""

from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow

from ocrep._files.convert import as_kind
from ocrep._files.formats import DataError
from ocrep._files.readers import BLOCK_ROWS, PLAIN, table_reader


@dataclass
class TableBlock:
    start: int
    inputs: Any
    kept: Any


def column_names(path, reading=PLAIN):
    return table_reader(path, reading=reading).column_names()


def count_rows(path):
    return table_reader(path).n_rows()


def read_blocks(path, kinds, *, keep=(), block_rows=BLOCK_ROWS, reading=PLAIN):
    """Each column as its kind; those in `keep` as the file has them."""
    reader = table_reader(path, block_rows=block_rows, reading=reading)
    names = list(dict.fromkeys([*kinds, *keep]))
    start = 0
    with reader.reading():
        for batch in reader.batches(names, dict.fromkeys(names, pyarrow.string())):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            inputs = {name: as_kind(reading.column(columns[name]), kind, name, start) for name, kind in kinds.items()}
            frame = pd.DataFrame({name: pd.Series(values, dtype=values.dtype) for name, values in inputs.items()})
            yield TableBlock(start, frame, batch.select(list(keep)).to_pandas(types_mapper=pd.ArrowDtype))
            start += batch.num_rows
    if start == 0:
        raise DataError(f"{path} has a header but no rows.")
