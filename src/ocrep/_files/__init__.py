"""Files of rows as pandas frames: read whole, read in blocks, written in blocks (needs pandas and pyarrow)."""

from ocrep._files.formats import DataError, Format, column_names, format_of, nearest
from ocrep._files.reading import Block, Table, count_rows, read_blocks, read_table
from ocrep._files.writing import STANDARD_OUTPUT, OutputError, check_output, table_writer, writing

__all__ = [
    "STANDARD_OUTPUT",
    "Block",
    "DataError",
    "Format",
    "OutputError",
    "Table",
    "check_output",
    "column_names",
    "count_rows",
    "format_of",
    "nearest",
    "read_blocks",
    "read_table",
    "table_writer",
    "writing",
]
