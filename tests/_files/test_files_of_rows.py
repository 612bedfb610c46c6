"""Files of rows: what is written is what is read, in blocks of any size, whatever the format."""

import gzip
import io
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from support.file_blocks import column_names, count_rows, read_blocks

from ocrep._files.formats import DataError, format_of
from ocrep._files.readers import CsvReader, FragmentReader, reader_of, readers_of_dataset
from ocrep._files.reading import LONGEST_LINE
from ocrep._files.row_file import RowFile
from ocrep._files.writing import OutputError, check_output, table_writer, writing

FORMATS = ("csv", "tsv", "csv.gz", "tsv.gz", "parquet", "pq", "feather", "arrow")
KINDS = {"number": "number", "flag": "boolean", "text": "text"}


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "number": [1.5, np.nan, -2e300, 3.0],
            "flag": [True, False, True, True],
            "text": ["a, b", 'say "x"', None, "two\nlines"],
            "id": ["007", "08", "9", "NA"],
        }
    )


def write(path, *frames):
    with table_writer(path) as append:
        for part in frames:
            append(part)
    return path


def read(path, kinds):
    """All rows as one frame, each column as its kind."""
    return pd.concat([block.inputs for block in read_blocks(path, kinds)], ignore_index=True)


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_written_in_blocks_is_read_in_blocks(form, frame, tmp_path):
    path = write(tmp_path / f"rows.{form}", frame[:1], frame[1:])
    assert column_names(path) == list(frame)
    in_csv = {"number": "number", "flag": None, "text": None}  # which only its values tell, for all but numbers
    told = KINDS if form in ("parquet", "pq", "feather", "arrow") else in_csv
    assert {name: RowFile(path).kinds[name] for name in KINDS} == told
    table = read(path, KINDS)
    np.testing.assert_array_equal(table["number"], frame["number"])
    np.testing.assert_array_equal(table["flag"], frame["flag"].astype(float))
    assert table["text"].fillna("none").tolist() == ["a, b", 'say "x"', "none", "two\nlines"]
    blocks = list(read_blocks(path, KINDS, keep=["id"], block_rows=3))
    assert [block.start for block in blocks] == list(np.cumsum([0, *(len(block.inputs) for block in blocks[:-1])]))
    assert max(len(block.inputs) for block in blocks) <= 3
    joined = pd.concat([block.inputs for block in blocks], ignore_index=True)
    pd.testing.assert_frame_equal(joined, table)
    assert [name for block in blocks for name in block.kept["id"]] == frame["id"].tolist()


def test_the_same_rows_are_the_same_bytes(frame, tmp_path):
    first, again = (write(tmp_path / name, frame).read_bytes() for name in ("a.csv.gz", "b.csv.gz"))
    assert first == again
    assert gzip.decompress(first) == write(tmp_path / "c.csv", frame).read_bytes()


def test_types_of_kept_columns_stay(tmp_path):
    path = tmp_path / "typed.parquet"
    pq.write_table(pa.table({"x": [1.0, 2.0, 3.0], "id": pa.array([2**60 + 1, None, 3])}), path)
    (block,) = read_blocks(path, {"x": "number"}, keep=["id"])
    out = write(tmp_path / "out.parquet", block.kept.assign(y=1.0))
    assert pq.read_table(out)["id"].to_pylist() == [2**60 + 1, None, 3]
    assert write(tmp_path / "out.csv", block.kept).read_text() == f"id\n{2**60 + 1}\n\n3\n".replace("\n\n", '\n""\n')


def test_float32_stays_and_other_numbers_become_float64(tmp_path):
    columns = {
        "half": pa.array(np.float16([1.0, 2.0])),
        "single": pa.array([1.0, None], pa.float32()),
        "whole": pa.array([1, None], pa.int64()),
        "money": pa.array(["1.50", "2.25"]).cast(pa.decimal128(10, 2)),
    }
    pq.write_table(pa.table(columns), tmp_path / "numbers.parquet")
    table = read(tmp_path / "numbers.parquet", dict.fromkeys(columns, "number"))
    assert [str(dtype) for dtype in table.dtypes] == ["float32", "float32", "float64", "float64"]
    assert table["money"].tolist() == [1.5, 2.25]
    assert table["whole"].isna().tolist() == [False, True]


def test_kinds_of_other_columns(tmp_path):
    columns = {
        "day": pa.array([0, 1], pa.date32()),
        "nothing": pa.nulls(2),
        "no_number": pa.array([None, None], pa.float64()),
        "list": pa.array([[1], [2]]),
        "raw": pa.array([b"x", b"y"]),
        "category": pa.array(["a", "b"]).dictionary_encode(),
        "grade": pa.array([1, 2]).dictionary_encode(),
    }
    feather.write_feather(pa.table(columns), str(tmp_path / "odd.feather"))
    kinds = ("date", "empty", "number", "other", "other", "text", "text")
    assert RowFile(tmp_path / "odd.feather").kinds == dict(zip(columns, kinds, strict=True))
    table = read(tmp_path / "odd.feather", {"category": "text", "grade": "text"})
    assert table["category"].tolist() == ["a", "b"]
    assert table["grade"].tolist() == ["1", "2"]
    with pytest.raises(DataError, match="'list' must hold a number in each row, as in training, but it holds lists"):
        next(read_blocks(tmp_path / "odd.feather", {"list": "number"}))


def test_texts_of_numbers_and_booleans_are_understood(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("x,b\n 1.5 ,TRUE\nNA,\n-2e3,0\n")
    (block,) = read_blocks(path, {"x": "number", "b": "boolean"})
    np.testing.assert_array_equal(block.inputs["x"], [1.5, np.nan, -2000.0])
    np.testing.assert_array_equal(block.inputs["b"], [1.0, np.nan, 0.0])


def test_large_numbers_are_not_infinite(tmp_path):
    path = tmp_path / "large.csv"
    path.write_text("x\n1e308\n1e308\n")
    assert read(path, {"x": "number"})["x"].tolist() == [1e308, 1e308]


@pytest.mark.parametrize(
    ("text", "names"), [("a;b\n1;2\n", ["a", "b"]), ("a\tb\n1\t2\n", ["a", "b"]), ("a\n1\n", ["a"])]
)
def test_other_delimiters_are_seen_in_the_header(text, names, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    assert column_names(path) == names
    assert read(path, dict.fromkeys(names, "number")).iloc[0].tolist() == [1.0, 2.0][: len(names)]


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    path = tmp_path / "excel.csv"
    path.write_bytes(b"\xef\xbb\xbfa,b\n1,2\n")
    assert column_names(path) == ["a", "b"]
    assert read(path, {"a": "number"})["a"].tolist() == [1.0]


def test_a_format_is_told_by_its_suffix():
    assert format_of("a.b.CSV.gz").gzipped
    for name in ("a", "a.parquet.gz", "a.gz", "a.md"):
        with pytest.raises(DataError, match="files of this kind cannot be read"):
            format_of(name)


def test_rows_are_counted_where_the_file_knows(frame, tmp_path):
    assert count_rows(write(tmp_path / "a.parquet", frame)) == 4
    assert count_rows(write(tmp_path / "a.csv", frame)) is None


def test_a_byte_that_is_no_text_far_down_the_file(tmp_path):
    path = tmp_path / "late.csv"
    path.write_bytes(b"a,b\n" + b"1,x\n" * 50_000 + b"1,\xe4\n")
    with pytest.raises(DataError, match=r"late\.csv, line 50002, is not UTF-8 text"):
        list(read_blocks(path, {"a": "number", "b": "text"}))


def test_no_rows(tmp_path):
    for form in ("parquet", "feather"):
        empty = pd.DataFrame({"x": pd.Series([], dtype=float)})
        getattr(empty, f"to_{form}")(tmp_path / f"empty.{form}")
        with pytest.raises(DataError, match="no rows"):
            list(read_blocks(tmp_path / f"empty.{form}", {"x": "number"}))
        with pytest.raises(DataError, match="no rows"):
            list(RowFile(tmp_path / f"empty.{form}").blocks({"x": "number"}))


def test_a_cell_that_never_ends(tmp_path):
    path = tmp_path / "open.csv"
    path.write_text('a,b\n1,2\n"' + "x" * 200_000)
    with pytest.raises(DataError, match=r"open\.csv, after line"):
        read(path, {"a": "text"})


@pytest.mark.parametrize("form", ["csv", "tsv", "csv.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("above", [0, 2])
def test_an_empty_line_of_one_column_is_a_row_without_a_value(tmp_path, form, end, above):
    path = tmp_path / f"rows.{form}"
    write_text = gzip.open if form.endswith("gz") else open
    with write_text(path, "wb") as file:
        file.write(end.join([*[""] * above, "x", "1", "", "3", "", "", "6", ""]).encode())
    np.testing.assert_array_equal(read(path, {"x": "number"})["x"], [1, np.nan, 3, np.nan, np.nan, 6])
    texts = read(path, {"x": "text"})["x"]
    assert texts.isna().tolist() == [False, True, False, True, True, False]
    (block,) = RowFile(path).blocks({"x": "number"})
    assert len(block["x"]) == 6


def test_an_empty_line_among_several_columns_is_not_a_row(tmp_path):
    (tmp_path / "rows.csv").write_text("x,y\n1,2\n\n3,4\n")
    assert read(tmp_path / "rows.csv", {"x": "number"})["x"].tolist() == [1, 3]


class CountingFile(io.RawIOBase):
    """Bytes without end, of which it counts those that were read."""

    def __init__(self, byte):
        self.byte, self.n_read = byte, 0

    def readable(self):
        return True

    def readinto(self, buffer):
        buffer[:] = self.byte * len(buffer)
        self.n_read += len(buffer)
        return len(buffer)


@pytest.mark.parametrize(
    ("byte", "message"),
    [(b"x", r"endless\.csv\.gz, line 1, is longer than 16 MB"), (b"\n", "begins with more than 10,000 empty lines")],
)
def test_a_file_without_a_header_is_not_read_whole(tmp_path, monkeypatch, byte, message):
    path, endless = tmp_path / "endless.csv.gz", CountingFile(byte)
    path.write_bytes(b"not looked at")
    monkeypatch.setattr("ocrep._files.reading.gzip.open", lambda *_: io.BufferedReader(endless))
    with pytest.raises(DataError, match=message):
        column_names(path)
    assert endless.n_read <= LONGEST_LINE + 2**17


def test_an_error_on_the_way_leaves_no_file(frame, tmp_path):
    def fail(path):
        with table_writer(path) as append:
            append(frame)
            raise ZeroDivisionError

    for form in FORMATS:
        with pytest.raises(ZeroDivisionError):
            fail(tmp_path / f"x.{form}")
    assert os.listdir(tmp_path) == []


def test_standard_output(frame, monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr("sys.stdout", shown)
    write("-", frame[:1][["id", "number"]])
    assert shown.getvalue() == "id,number\n007,1.5\n"
    check_output("-")


def test_an_error_of_the_system_is_one_of_the_output(tmp_path):
    with pytest.raises(OutputError, match=r"Cannot write here: No space left\."), writing("here"):
        raise OSError(28, "No space left")
    with pytest.raises(BrokenPipeError), writing("here"):
        raise BrokenPipeError
    check_output(tmp_path / "fine.csv", table=True)
    assert os.listdir(tmp_path) == []


def test_marks_in_quoted_names_and_blank_lines_above_the_header_divide_nothing(tmp_path):
    (tmp_path / "t.csv").write_text('\n\r\n"size, mm";y\n1;2\n', encoding="utf-8")
    assert column_names(tmp_path / "t.csv") == ["size, mm", "y"]
    assert read(tmp_path / "t.csv", {"size, mm": "number", "y": "number"}).to_numpy().tolist() == [[1.0, 2.0]]


def test_standard_output_is_named_where_it_cannot_be_written():
    with pytest.raises(OutputError, match="Cannot write to standard output: No space left"), writing("-"):
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "feather", "dataset"])
def test_a_reader_gives_the_same_rows_in_blocks_of_every_size(form, tmp_path):
    rows = pd.DataFrame({"x": np.arange(25.0), "y": np.arange(25.0)[::-1]})
    path = write(tmp_path / f"rows.{'parquet' if form == 'dataset' else form}", rows)
    for block_rows in (1, 4, 25, 100):
        if form == "dataset":
            dataset = pyarrow.dataset.dataset(path)
            (fragment,) = dataset.get_fragments()
            reader = FragmentReader(fragment, dataset.schema, 0, block_rows=block_rows)
        else:
            reader = reader_of(path, block_rows=block_rows)
        assert reader.schema().names == ["x", "y"]
        batches = list(reader.batches(["y", "x"], {}))
        assert max(batch.num_rows for batch in batches) <= block_rows
        values = np.concatenate([np.column_stack([batch.column(i) for i in range(2)]) for batch in batches])
        np.testing.assert_array_equal(values, rows[["y", "x"]])
        assert reader.n_rows() == (None if form.startswith("csv") else 25)


def test_a_fingerprint_changes_with_the_file(frame, tmp_path):
    readers = [reader_of(write(tmp_path / f"rows.{form}", frame)) for form in ("csv", "parquet", "arrow")]
    readers += readers_of_dataset(pyarrow.dataset.dataset(tmp_path / "rows.parquet"))
    before = [reader.fingerprint() for reader in readers]
    assert before[1] == before[3]
    assert before == [reader.fingerprint() for reader in readers]
    for form in ("csv", "parquet", "arrow"):
        write(tmp_path / f"rows.{form}", frame[:2])
    assert not set(before) & {reader.fingerprint() for reader in readers}


def test_the_first_block_of_a_csv_file_decides_the_types(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("x,y\n" + "1,2\n" * 500 + "1,oops\n")
    (x, y), (_, whole) = CsvReader(str(path), block_bytes=200).schema().types, reader_of(path).schema().types
    assert (x, y, whole) == (pa.int64(), pa.int64(), pa.string())
    with pytest.raises(DataError, match=r"late\.csv, line 502: column 'y' must hold numbers, but it holds 'oops'"):
        list(CsvReader(str(path), block_bytes=200).batches(["y"], {"y": pa.float64()}))


def test_blank_lines_above_the_header_do_not_change_which_line_is_wrong(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("\n\na,b\n1,2\n3,4,5\n")
    with pytest.raises(DataError, match=r"line 5: it has 3 values, but the header has 2 columns\."):
        read(path, {"a": "number", "b": "number"})


def test_the_types_of_a_file_that_is_not_utf_8_are_not_guessed(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b\n" + b"1,x\n" * 5_000 + b"1,\xe4\n")
    with pytest.raises(DataError, match="line 5002, is not UTF-8 text"):
        reader_of(path).schema()


@pytest.mark.parametrize("form", ["csv", "parquet", "feather"])
def test_a_file_that_is_read_several_times_must_stay_as_it_is(form, frame, tmp_path):
    path = write(tmp_path / f"rows.{form}", frame)
    file = RowFile(path)
    assert [len(block["number"]) for block in file.blocks({"number": "number"})] == [4]
    write(path, frame[:3])
    with pytest.raises(DataError, match="was changed while it was read: start again when it is complete"):
        next(file.blocks({"number": "number"}))
    file = RowFile(path)
    blocks = file.blocks({"number": "number"})
    next(blocks)
    os.remove(path)
    with pytest.raises(DataError, match="was changed"):
        next(blocks)


def test_blocks_of_wide_files_have_fewer_rows(tmp_path):
    values = np.arange(200.0)
    pq.write_table(pa.table({f"x{j}": values for j in range(2**15)}), tmp_path / "wide.parquet")
    file = RowFile(tmp_path / "wide.parquet")
    blocks = list(file.blocks({"x0": "number", "x7": "number"}))
    assert [len(block["x0"]) for block in blocks] == [64, 64, 64, 8]
    assert np.concatenate([block["x7"] for block in blocks]).tolist() == values.tolist()


def test_a_parquet_file_that_is_damaged_further_down_names_the_row_it_was_read_to(tmp_path):
    path = tmp_path / "rows.parquet"
    frame = pd.DataFrame({"x": np.random.default_rng(0).random(100_000)})
    frame.to_parquet(path, row_group_size=40_000, write_page_checksum=True)
    group = pq.read_metadata(path).row_group(1).column(0)
    content = bytearray(path.read_bytes())
    content[group.data_page_offset + 2_000] ^= 255
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"rows\.parquet cannot be read as Parquet after row \d\d,\d\d\d: "):
        list(RowFile(path).blocks({"x": "number"}))
