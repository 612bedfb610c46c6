"""The survey of a table: kinds, medians and texts of all rows, from blocks of any size, by any number of workers."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocrep._files.convert import numbers_of
from ocrep._files.formats import DataError
from ocrep._files.readers import BLOCK_BYTES
from ocrep._files.reading import Reading
from ocrep._files.row_file import RowFile
from ocrep.tables.problem import read_problem
from ocrep.tables.survey import Distinct, MedianSample, survey_of, with_target


def survey(path, target="y", *, block_rows):
    file = RowFile(path, block_rows=block_rows)
    return survey_of(with_target(file, file.kinds, target), file.kinds, target)


# What a column of a CSV file holds, and its kind; each has a value that only a late block shows.
COLUMNS = {
    "whole": (["1", "2", "", "4"], "number"),
    "late_fraction": (["1", "0", "1", "0.5"], "number"),
    "spaces": ([" 1", "2 ", "NA", "n/a"], "number"),
    "spaced_word": (["1", "2", "NA", " n/a "], "text"),
    "spelled": (["NaN", "2", "-nan", "NAN"], "number"),
    "late_text": (["1", "2", "3", "x"], "text"),
    "zero_one": (["0", "1", "1", "0"], "number"),
    "late_true": (["0", "1", "1", "true"], "boolean"),
    "yes_no": (["True", "FALSE", "", "true"], "boolean"),
    "true_and_five": (["1", "true", "0", "5"], "text"),
    "days": (["2020-01-01", "2020-02-01", "", "2020-01-01 10:00"], "date"),
    "zones": (["2020-01-01T10:00:00Z", "2020-01-01T10:00:00Z", "", ""], "date"),
    "times": (["10:00", "11:30:15", "", "12:00"], "time"),
    "late_day": (["2020-01-01", "2020-02-01", "3", "4"], "text"),
    "nothing": (["", "NA", "#N/A", "null"], "empty"),
    "blank": (["", " ", "", ""], "text"),
    "huge": (["1e400", "2", "3", "4"], "number"),
}


@pytest.mark.parametrize("block_rows", [1, 2, 100])
@pytest.mark.parametrize("n_workers", [1, 2])
def test_all_values_of_a_column_tell_its_kind(block_rows, n_workers, tmp_path, monkeypatch):
    monkeypatch.setattr("ocrep._linalg.parallel._blas_threads", lambda: n_workers)
    values = {name: texts for name, (texts, _) in COLUMNS.items()}
    pd.DataFrame({**values, "y": range(4)}).to_csv(tmp_path / "k.csv", index=False)
    found = survey(tmp_path / "k.csv", block_rows=block_rows)
    assert {name: found.columns[name].kind for name in COLUMNS} == {name: kind for name, (_, kind) in COLUMNS.items()}
    assert found.columns["late_text"].odd == (3, "x")
    assert (found.columns["late_fraction"].low, found.columns["late_fraction"].high) == (0.0, 1.0)


def test_the_first_block_of_a_csv_file_does_not_tell_of_all_others(tmp_path):
    n = 150_000
    numbers = np.arange(n)
    columns = {"late": numbers % 5, "huge": 1.5 * numbers, "fine": numbers, "flag": numbers % 2, "y": numbers / 7}
    frame = pd.DataFrame(columns)
    path = tmp_path / "late.csv"
    frame.to_csv(path, index=False)
    assert path.stat().st_size > 2 * BLOCK_BYTES
    with path.open("a") as file:
        file.write("x,inf,1,true,1\n2,-,,false,2\n")
    assert RowFile(path).kinds == dict.fromkeys(columns, "number")
    problem = read_problem(path, "y")
    assert problem.kinds == {"late": "text", "fine": "number", "flag": "boolean"}
    assert problem.left_out == {"huge": "an id or free text: more than 10,000 different ones"}
    assert problem.near_numbers == {"late": "'x' in row 150,001", "huge": "'-' in row 150,002"}
    texts = problem.survey.columns["late"].texts.found
    assert {text: count for text, (count, _) in texts.items()} == {**dict.fromkeys("0134", 30_000), "2": 30_001, "x": 1}


def test_nan_in_an_unusual_spelling_is_not_a_number():
    """Else a target would be there and have no value."""
    assert numbers_of(pa.array(["1", "nAn"])) is None
    np.testing.assert_array_equal(numbers_of(pa.array(["1", "NaN", None])), [1, np.nan, np.nan])


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_medians_texts_and_counts_are_those_of_pandas(form, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    n = 1000
    frame = pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "k": rng.integers(0, 5, n),
            "b": rng.random(n) < 0.4,
            "t": rng.choice(["u", "v", "w", None], n),
            "y": rng.normal(size=n),
        }
    )
    getattr(frame, f"to_{form}")(tmp_path / f"r.{form}", index=False)
    monkeypatch.setattr("ocrep._linalg.parallel._blas_threads", lambda: 3)
    found = survey(tmp_path / f"r.{form}", block_rows=77)
    medians = found.medians()
    assert {name: medians[name] for name in "xkb"} == frame[["x", "k", "b"]].astype(float).median().to_dict()
    assert (found.columns["x"].low, found.columns["x"].high) == (frame["x"].min(), frame["x"].max())
    assert found.columns["t"].n_present == frame["t"].notna().sum()
    counts = {text: count for text, (count, _) in found.columns["t"].texts.found.items()}
    assert counts == frame["t"].value_counts().to_dict()
    firsts = {text: row for text, (_, row) in found.columns["t"].texts.found.items()}
    assert firsts == {text: int((frame["t"] == text).argmax()) for text in "uvw"}
    assert (found.n_seen, found.n_rows) == (n, n)
    assert found.target.total == pytest.approx(frame["y"].sum())


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.integers(1, 4))
def test_the_sample_does_not_depend_on_cutting_and_workers(block_sizes, n_workers):
    values = np.random.default_rng(0).normal(size=(sum(block_sizes), 2))

    def sampled(cuts, workers):
        samples = [MedianSample(2, size=40) for _ in range(workers)]
        for number, rows in enumerate(np.split(np.arange(len(values)), cuts)):
            sample = samples[number % workers]
            taken, keys = sample.take(rows)
            sample.add(keys, values[rows[taken]])
        first, *others = samples
        for other in others:
            first.merge(other)
        return first.medians()

    whole = sampled([], 1)
    np.testing.assert_array_equal(sampled(np.cumsum(block_sizes)[:-1], n_workers), whole)
    if len(values) <= 40:
        np.testing.assert_array_equal(whole, np.median(values, axis=0))


def test_the_median_of_a_sample_is_near_that_of_all_rows():
    values = np.random.default_rng(0).uniform(size=(200_000, 1))
    sample = MedianSample(1, size=10_000)
    for start in range(0, len(values), 1000):
        taken, keys = sample.take(np.arange(start, start + 1000))
        sample.add(keys, values[start + taken])
    assert sample.medians()[0] == pytest.approx(0.5, abs=4 * 0.5 / 10_000**0.5)  # four standard errors of a rank


def test_values_beyond_the_most_that_are_counted():
    first, second = Distinct(most=3), Distinct(most=3)
    first.add(["a", "b"], np.array([2, 1]), lambda: np.array([5, 4]))
    second.add(["c", "d", "a"], np.array([1, 1, 3]), lambda: np.array([0, 1, 2]))
    assert (first.more, second.more, first.number) == (False, False, "2")
    both = first.merge(second)
    assert both.more
    assert both.number == "more than 3"
    assert both.found["a"] == (5, 2)
    second.add(["e"], np.array([1]), lambda: np.array([9]))
    assert second.more
    second.add(["a"], np.array([1]), lambda: np.array([9]))
    assert second.found["a"] == (3, 2)  # counts are not kept up once there are more


MANY = 10_300  # more different values than are counted


def test_a_column_with_very_many_texts_is_left_out_and_numbers_are_not(tmp_path):
    columns = {
        "id": [f"id{i}" for i in range(MANY)],
        "number": np.arange(MANY) / 7,
        "late": [*map(str, range(MANY - 1)), "-"],
        "day": pd.date_range("2000-01-01", periods=MANY).astype(str),
        "y": np.arange(MANY) ** 2 / 3,
    }
    pd.DataFrame(columns).to_csv(tmp_path / "m.csv", index=False)

    def read(name, target, **options):
        return read_problem(RowFile(tmp_path / name, block_rows=700), target, **options)

    assert read("m.csv", "y").kinds == {"number": "number", "day": "date"}
    problem = read("m.csv", "y", dates="drop")
    assert problem.kinds == {"number": "number"}
    too_many = "an id or free text: more than 10,000 different ones"
    assert problem.left_out == {"id": too_many, "late": too_many, "day": "holds dates"}
    assert problem.near_numbers == {"late": "'-' in row 10,300"}
    assert problem.remedies == {"late": {"na": ("-",)}}
    assert problem.task_reason == "holds numbers that are not whole"
    pd.DataFrame({**columns, "late": range(MANY)}).to_parquet(tmp_path / "m.parquet", index=False)
    problem = read("m.parquet", "late")
    assert problem.task_reason == "holds more than 10,000 different numbers in 10,300 rows"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_gaps_are_counted_in_rows_that_have_a_target_however_many_values_there_are(form, tmp_path):
    n = 18_000  # of which more than 10,000 are different numbers, and dates
    numbers = np.arange(n)
    frame = pd.DataFrame(
        {
            "number": np.where(numbers % 3 == 0, np.nan, numbers / 7),
            "day": pd.Series(pd.date_range("1980-01-01", periods=n)).where(numbers % 4 > 0),
            "text": np.where(numbers % 5 == 0, None, "ab"),
            "flag": np.where(numbers % 6 == 0, None, numbers % 2 == 0),
            "full": numbers,
            "same": 1,
            "y": np.where(numbers < 12, np.nan, numbers**2 / 3),
        }
    )
    path = tmp_path / f"gaps.{form}"
    if form == "csv":
        frame.to_csv(path, index=False, sep=";", decimal=",")
        reading = Reading(decimal=",")
    else:
        frame.to_parquet(path)
        reading = Reading()
    problem = read_problem(RowFile(path, reading, block_rows=1000), "y", drop_missing_target=True, reading=reading)
    given = numbers >= 12
    gaps = {name: int((frame[name].isna() & given).sum()) for name in ("number", "day", "text", "flag")}
    assert problem.gaps == gaps == {"number": 5996, "day": 4497, "text": 3597, "flag": 2998}


def test_an_infinite_number_far_down_a_file_is_named(tmp_path):
    numbers = [*map(str, range(40)), "inf", "inf"]
    frame = pd.DataFrame({"x": numbers, "t": [*numbers[:-1], "word"], "z": range(42), "y": np.arange(42) / 2})
    frame.to_csv(tmp_path / "i.csv", index=False)
    with pytest.raises(DataError, match="Column 'x' holds an infinite number in row 41"):
        read_problem(RowFile(tmp_path / "i.csv", block_rows=10), "y")
    assert set(read_problem(RowFile(tmp_path / "i.csv", block_rows=10), "y", ignore=["x"]).left_out) == {"x", "t"}
