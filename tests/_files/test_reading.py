"""Numbers, missing values and encodings that are not the usual ones; folders, patterns and several files."""

import codecs
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.file_blocks import column_names, read_blocks

from ocrep._files.convert import numbers_of
from ocrep._files.formats import DataError
from ocrep._files.readers import table_reader
from ocrep._files.reading import Reading
from ocrep._files.row_file import RowFile
from ocrep.tables.misread import looks_like_number, options_that_read

MARKS = [(".", ","), (",", "."), (",", " "), (".", "'"), (".", "")]


def written(value, decimal, thousands):
    text = f"{value:,.2f}"
    return text.replace(",", "T").replace(".", decimal).replace("T", thousands)


def read(reading, words):
    return numbers_of(reading.column(pa.array(words, pa.string())))


@given(st.lists(st.floats(-1e9, 1e9).map(lambda x: round(x, 2)), min_size=1), st.sampled_from(MARKS))
def test_what_was_written_with_marks_is_read_with_them(values, marks):
    words = [written(value, *marks) for value in values]
    np.testing.assert_array_equal(read(Reading(*marks), words), values)
    coded = pa.array(words, pa.string()).dictionary_encode()
    plain = Reading(*marks).column(coded)
    np.testing.assert_array_equal(numbers_of(plain.cast(pa.string())), values)


@given(st.lists(st.floats(1e3, 1e9).map(lambda x: round(x, 2)), min_size=3), st.sampled_from(MARKS[:-1]))
def test_the_options_that_are_named_read_the_texts(values, marks):
    words = [f"${written(value, *marks)}" for value in values]
    named = options_that_read(words)
    assert named["strip"] == "$"
    np.testing.assert_array_equal(read(Reading(**named), words), values)
    assert all(map(looks_like_number, words))


@pytest.mark.parametrize(
    ("texts", "options"),
    [
        (["0,5", "1,25"], {"decimal": ","}),
        (["0,123", "0,500"], {"decimal": ","}),  # no number begins with a group of one zero
        (["1,234", "12,000"], {"thousands": ","}),
        (["7%", "8.5 %"], {"strip": "%"}),
        (["1", "-", "3"], {"na": ("-",)}),
        (["1", "?", "none", "3"], {"na": ("?", "none")}),
        (["1", "3+"], {}),
        (["1", "a", "b", "c", "d"], {}),
        (["1.5", "1,5"], {}),
        (["-", "%"], {"strip": "%", "na": ("-", "%")}),
    ],
)
def test_options_by_example(texts, options):
    assert options_that_read(texts) == options


def test_given_options_go_first():
    assert options_that_read(["1,5", "2,5 %"], Reading(",", ".")) == {"strip": "%"}


def test_a_number_of_another_style_stays_a_text():
    assert read(Reading(decimal=","), ["1,5", "2.5"]) is None
    assert Reading(decimal=",").column(pa.array(["2.5", "a.b", None])).to_pylist() == ["'2.5'", "a.b", None]
    assert read(Reading(thousands=","), ["1,23"]) is None
    assert read(Reading(thousands=","), ["1,234,567", "12", "1e3", None]).tolist()[:3] == [1234567, 12, 1000]


def test_signs_spaces_and_words_for_missing_values():
    reading = Reading(strip="$%", thousands=" ", na=("-", "unknown"))
    words = ["$ 5", "- $5", "7 %", "1\u202f234", " - ", "unknown", "+3"]
    np.testing.assert_array_equal(read(reading, words), [5, -5, 7, 1234, np.nan, np.nan, 3])


def test_columns_that_are_not_texts_stay_as_they_are():
    numbers, days = pa.array([1.5]), pa.array([1, 2]).dictionary_encode()
    reading = Reading(decimal=",", na=("-",))
    assert reading.column(numbers) is numbers
    assert reading.column(days) is days
    texts = pa.array(["1,5"])
    assert Reading().column(texts) is texts


def test_a_reading_survives_a_model_file():
    reading = Reading(",", ".", "%", ("-",), "latin-1", ";")
    assert Reading.from_json(reading.to_json()) == reading
    assert Reading.from_json(reading.to_json(), decimal="'") == Reading("'", ".", "%", ("-",), "latin-1", ";")
    assert Reading.from_json({}) == Reading()


FRAME = pd.DataFrame({"größe": [1.5, 2.5, np.nan], "ort": ["Köln", "Bonn", "Köln"]})


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8", "utf-8-sig", "cp1252"])
@pytest.mark.parametrize("suffix", ["csv", "txt", "csv.gz"])
def test_encodings(encoding, suffix, tmp_path):
    path = tmp_path / f"e.{suffix}"
    FRAME.to_csv(path, index=False, encoding=encoding)
    reading = Reading(encoding=encoding)
    assert column_names(path, reading) == list(FRAME)
    (block,) = read_blocks(path, {"größe": "number", "ort": "text"}, reading=reading)
    pd.testing.assert_frame_equal(block.inputs, FRAME, check_dtype=False)
    (block,) = RowFile(path, reading).blocks({"größe": "number", "ort": None})
    assert block["ort"].cast(pa.string()).to_pylist() == list(FRAME["ort"])


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_files_of_another_kind_under_the_name_of_a_csv_file_are_named(encoding, tmp_path):
    path, reading = tmp_path / "t.csv", Reading(encoding=encoding)
    FRAME.to_parquet(path)
    with pytest.raises(DataError, match="Parquet file"):
        column_names(path, reading)
    FRAME.to_feather(path, compression="uncompressed")
    with pytest.raises(DataError, match="Arrow file"):
        column_names(path, reading)
    FRAME.to_csv(path, index=False, compression="gzip")
    with pytest.raises(DataError, match="gzip"):
        column_names(path, reading)
    with ZipFile(path, "w") as sheets:  # as Excel files are
        sheets.writestr("xl/worksheets/sheet1.xml", "<worksheet/>")
    with pytest.raises(DataError, match="Excel file"):
        column_names(path, reading)
    path.write_text("PAR1,size\n1,2\n", encoding=encoding)
    assert column_names(path, reading) == ["PAR1", "size"]


def test_a_wrong_encoding_is_named(tmp_path):
    path = tmp_path / "e.csv"
    FRAME.to_csv(path, index=False, encoding="latin-1")
    with pytest.raises(DataError, match=r"line 1, is not UTF-8 text: .* --encoding latin-1"):
        column_names(path)
    for encoding in ("utf-16-le", "utf-16-be"):
        path.write_bytes("\ufeffsize,height\n1,2\n".encode(encoding))
        with pytest.raises(DataError, match=r"line 1, is not UTF-8 text: .* --encoding utf-16"):
            column_names(path)
    path.write_bytes(codecs.BOM_UTF16_LE + b"a")
    with pytest.raises(DataError, match="is not utf-16 text: name another --encoding"):
        column_names(path, Reading(encoding="utf-16"))


@pytest.mark.parametrize("delimiter", [";", "\t", "|", ":", " "])
def test_delimiters(delimiter, tmp_path):
    path = tmp_path / "d.txt"
    FRAME.to_csv(path, index=False, sep=delimiter)
    assert column_names(path, Reading(delimiter=delimiter)) == list(FRAME)
    guessed = column_names(path)
    assert guessed == (list(FRAME) if delimiter in ";\t|" else [delimiter.join(FRAME)])


def test_files_of_a_folder_or_pattern_are_one_table(tmp_path):
    parts = [pd.DataFrame({"x": np.arange(3.0) + i, "t": list("abc")}) for i in range(4)]
    parts[1] = parts[1][["t", "x"]]  # another order
    for i, part in enumerate(parts[:3]):
        part.to_csv(tmp_path / f"p{i}.csv", index=False)
    parts[3].to_parquet(tmp_path / "p3.parquet")
    (tmp_path / "readme.txt").write_text("not a table")
    for name, n in ((tmp_path, 4), (tmp_path / "p*.csv", 3), (tmp_path / "p0.csv", 1)):
        blocks = list(read_blocks(name, {"x": "number", "t": "text"}))
        wanted = pd.concat([part[["x", "t"]] for part in parts[:n]], ignore_index=True)
        found = pd.concat([block.inputs for block in blocks], ignore_index=True)
        pd.testing.assert_frame_equal(found, wanted, check_dtype=False)
        assert [block.start for block in blocks] == [3 * i for i in range(n)]
        assert table_reader(name).n_rows() is None
    parts[0].to_parquet(tmp_path / "p4.parquet")
    assert table_reader(tmp_path / "*.parquet").n_rows() == 6
    whole = RowFile(tmp_path / "*.parquet")
    assert whole.kinds == {"x": "number", "t": "text"}
    pd.DataFrame({"x": ["u"], "t": ["a"]}).to_parquet(tmp_path / "p5.parquet")
    assert RowFile(tmp_path / "*.parquet").kinds == {"x": "text", "t": "text"}


def test_files_that_are_not_one_table(tmp_path):
    pd.DataFrame({"x": [1], "z": [1]}).to_csv(tmp_path / "a.csv", index=False)
    pd.DataFrame({"x": [1]}).to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(DataError, match=r"b\.csv has no column 'z', which .*a\.csv has"):
        column_names(tmp_path)
    (tmp_path / "c.csv").touch()
    with pytest.raises(DataError, match=r"c\.csv is empty"):
        table_reader(tmp_path)


def test_signs_that_are_marks_too_are_passed_over():
    assert options_that_read(["1'234.5", "2"], Reading(strip=",")) == {"thousands": "'"}
