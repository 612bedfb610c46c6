"""Parts of dates against pandas; the same numbers from a file, block by block, and from data frames."""

import datetime

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from ocrep import load_model, save_model
from ocrep._files.formats import DataError
from ocrep._layers.columns import PARTS, DateParts, date_part, days_since_1970
from ocrep.tables.coding import TablePart
from ocrep.tables.prediction import predict_file
from ocrep.tables.problem import read_problem
from ocrep.tables.training import Settings, train


def moments(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return pd.Series(np.datetime64("1890-01-01", "us") + rng.integers(0, 2**52, n).astype("m8[us]"))


def test_parts_are_those_of_pandas():
    when = moments()
    days = days_since_1970(when.to_numpy())
    np.testing.assert_array_equal(date_part(days, "year", 0.0), when.dt.year)
    np.testing.assert_array_equal(date_part(days, "month", 0.0), when.dt.month)
    np.testing.assert_array_equal(date_part(days, "weekday", 0.0), when.dt.day_of_week)
    last = days.max()
    age = (when.max() - when) / pd.Timedelta(days=1)
    np.testing.assert_allclose(date_part(days, "age", last), age, atol=1e-6)
    assert np.isnan(days_since_1970(np.array(["NaT", "2020-01-01"], dtype="M8[D]"))).tolist() == [True, False]


def table(n=120):
    rng = np.random.default_rng(3)
    when = pd.Series(pd.date_range("2019-12-20", periods=n, freq="37h").as_unit("us"))
    frame = pd.DataFrame({"when": when, "x": rng.standard_normal(n), "t": rng.choice(["u", "v"], n)})
    frame["fixed"] = pd.Timestamp("2020-02-03")
    frame["y"] = rng.standard_normal(n)
    frame.loc[[4, 9], "when"] = pd.NaT
    return frame


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_inputs_from_a_file_are_those_from_a_frame(form, tmp_path):
    frame = table()
    path = tmp_path / f"t.{form}"
    getattr(frame, f"to_{form}")(path, index=False)
    problem = read_problem(path, "y")
    assert problem.kinds == {"when": "date", "x": "number", "t": "text"}
    assert problem.left_out == {"fixed": "is constant"}
    part = TablePart.of(problem.rows, problem.survey)
    (rows,) = problem.rows.blocks()
    X = part.coding.inputs(rows, dense=True)
    names = list(part.coding.transformer.get_feature_names_out())
    assert names[:5] == ["x", *(f"when_{part}" for part in PARTS)]
    filled = frame["when"].fillna(frame["when"].median())
    np.testing.assert_array_equal(X[:, names.index("when_month")], filled.dt.month)
    np.testing.assert_array_equal((X.min(axis=0), X.max(axis=0)), part.coding.range)
    as_texts = frame.assign(when=frame["when"].astype(str).replace("NaT", None))
    zoned = frame.assign(when=frame["when"].dt.tz_localize("UTC"))
    for same in (frame, as_texts, zoned):
        np.testing.assert_allclose(part.coding.transformer.transform(same), X, rtol=1e-12)


def test_parts_that_do_not_vary_are_no_inputs(tmp_path):
    frame = pd.DataFrame(
        {"when": pd.date_range("2020-01-06", periods=12, freq="7D").as_unit("us"), "y": np.arange(12) / 3}
    )
    frame.to_parquet(tmp_path / "t.parquet")
    problem = read_problem(tmp_path / "t.parquet", "y")
    coding = TablePart.of(problem.rows, problem.survey).coding
    assert coding.dates["when"].parts == ("month", "age")  # Mondays of one year
    assert coding.width == 2


def test_a_model_with_dates_is_saved_and_predicts_files_and_frames(tmp_path):
    frame = table()
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = train(read_problem(tmp_path / "t.csv", "y"), Settings(n_hidden=5), test=0).model
    save_model(model, tmp_path / "m.skops")
    loaded = load_model(tmp_path / "m.skops")
    wanted = model.predict(frame)
    np.testing.assert_array_equal(loaded.predict(frame), wanted)
    predict_file(loaded, tmp_path / "t.csv", tmp_path / "p.parquet")
    np.testing.assert_allclose(pd.read_parquet(tmp_path / "p.parquet")["prediction"], wanted, rtol=1e-9)
    other = frame.assign(when=[datetime.date(2020, 1, 1 + i % 28) for i in range(len(frame))])
    other.to_parquet(tmp_path / "days.parquet")
    predict_file(loaded, tmp_path / "days.parquet", tmp_path / "q.parquet")
    np.testing.assert_allclose(pd.read_parquet(tmp_path / "q.parquet")["prediction"], loaded.predict(other), rtol=1e-9)


def test_a_file_of_dates_alone(tmp_path):
    frame = pd.DataFrame({"when": table()["when"].dt.strftime("%Y-%m-%d"), "at": "10:30", "y": np.arange(120) / 7})
    frame.to_csv(tmp_path / "t.csv", index=False)
    problem = read_problem(tmp_path / "t.csv", "y")
    assert problem.left_out == {"at": "holds times of a day"}
    with pytest.raises(DataError, match="no column to learn from"):
        read_problem(tmp_path / "t.csv", "y", dates="drop")


def test_the_transformer_alone():
    frame = pd.DataFrame({"a": ["2020-01-01", None], "b": ["1999-12-31T12:00", "2000-01-01"]})
    parts = DateParts([18262.0, 0.0], [18262.0, 10957.0], [["year", "age"], ["age"]]).fit(frame)
    np.testing.assert_array_equal(parts.transform(frame), [[2020, 0, 0.5], [2020, 0, 0]])
    assert list(parts.get_feature_names_out()) == ["a_year", "a_age", "b_age"]
    assert clone(parts).get_params() == parts.get_params()
    assert DateParts([0.0], [0.0], [[]]).fit(frame[["a"]]).transform(frame[["a"]]).shape == (2, 0)
