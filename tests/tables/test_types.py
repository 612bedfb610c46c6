"""Columns of every type and library: each is learned, and new rows may come as another type, in another order."""

from datetime import date, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from ocrep import TableClassifier, TableRegressor
from ocrep._files.formats import DataError
from ocrep.tables import TableCoder

N = 120
NUMBER = np.random.RandomState(0).randint(0, 6, N)
NOISE = np.random.RandomState(1).normal(size=N)
MISSING = np.arange(N) % 10 == 3
DAYS = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(20 * NUMBER, unit="D"))
TEXT = pd.Series([f"kind {k}" for k in NUMBER], dtype=object)


def gaps(series):
    return series.mask(MISSING)


COLUMNS = {
    "float": pd.Series(NUMBER.astype(float)),
    "float32": pd.Series(NUMBER.astype(np.float32)),
    "integer": pd.Series(NUMBER),
    "unsigned": pd.Series(NUMBER.astype(np.uint8)),
    "nullable integer": gaps(pd.Series(NUMBER).astype("Int64")),
    "nullable float": gaps(pd.Series(NUMBER).astype("Float64")),
    "arrow integer": gaps(pd.Series(NUMBER).astype(pd.ArrowDtype(pa.int32()))),
    "decimal": gaps(pd.Series([Decimal(int(k)) / 4 for k in NUMBER], dtype=object)),
    "boolean": pd.Series(NUMBER > 2),
    "nullable boolean": gaps(pd.Series(NUMBER > 2).astype("boolean")),
    "boolean with None": gaps(pd.Series(NUMBER > 2).astype(object)).where(~MISSING, None),
    "object": gaps(TEXT),
    "object with None": TEXT.where(~MISSING, None),
    "string": gaps(TEXT.astype("string")),
    "arrow string": gaps(TEXT.astype(pd.ArrowDtype(pa.string()))),
    "category": gaps(TEXT.astype("category")),
    "category of numbers": pd.Series(NUMBER).astype("category"),
    "ordered": gaps(pd.Series(pd.Categorical(TEXT, ordered=True))),
    "category of moments": gaps(DAYS.astype("category")),
    "ordered moments": pd.Series(pd.Categorical(DAYS, ordered=True)),
    "category of durations": pd.Series(pd.to_timedelta(NUMBER, unit="h")).astype("category"),
    "interval": pd.cut(pd.Series(NUMBER.astype(float)), 3),
    "moment": gaps(DAYS),
    "moment in seconds": DAYS.astype("datetime64[s]"),
    "moment of a zone": gaps(DAYS.dt.tz_localize("Europe/Oslo")),
    "date": pd.Series([date(2024, 1, 1 + 4 * int(k)) for k in NUMBER], dtype=object),
    "arrow date": pd.Series(DAYS.dt.date).astype(pd.ArrowDtype(pa.date32())),
    "period": DAYS.dt.to_period("D"),
    "date as text": gaps(DAYS.dt.strftime("%Y-%m-%d").astype(object)),
    "duration": gaps(pd.Series(pd.to_timedelta(NUMBER, unit="h"))),
    "time": pd.Series([time(2 * int(k), 30) for k in NUMBER], dtype=object),
    "number as text": gaps(pd.Series(NUMBER).astype(str).astype(object)),
    "sparse": pd.Series(pd.arrays.SparseArray(NUMBER.astype(float))),
}
TARGET = NUMBER + 0.1 * NOISE


def explained(model, frame):
    return 1 - np.mean((TARGET - model.predict(frame))[~MISSING] ** 2) / np.var(TARGET)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_any_type_is_learned_and_read_in_any_library(name):
    frame = pd.DataFrame({"noise": NOISE, "column": COLUMNS[name]})
    model = TableRegressor(Ridge(1e-3), random_state=0).fit(frame, TARGET)
    assert explained(model, frame) > 0.6
    n_gaps = int(frame["column"].isna().sum())
    assert model.gaps_ == ({"column": n_gaps} if n_gaps else {})
    wanted = model.predict(frame)
    arrow = pa.table({name: pa.Array.from_pandas(_plain(frame[name])) for name in frame})
    values = arrow["column"].combine_chunks()
    if pa.types.is_dictionary(values.type) and not pa.types.is_string(values.type.value_type):
        values = values.dictionary_decode()  # categories of polars are texts
    in_polars = polars.from_arrow(arrow.set_column(arrow.column_names.index("column"), "column", values))
    for other in (frame[["column", "noise"]], arrow, in_polars):
        np.testing.assert_allclose(model.predict(other), wanted, rtol=1e-9)
    assert np.isfinite(model.predict(frame.assign(column=None))).all()
    assert np.isfinite(model.predict(frame.assign(column=frame["column"].where(NUMBER < 0)))).all()


def _plain(series):
    """What Arrow itself does not take from pandas, as users convert it."""
    if isinstance(series.dtype, pd.PeriodDtype):
        return series.dt.to_timestamp()
    if isinstance(series.dtype, pd.SparseDtype):
        return series.sparse.to_dense()
    return series.astype(str).astype("category") if name_of_intervals(series) else series


def name_of_intervals(series):
    return isinstance(series.dtype, pd.CategoricalDtype) and isinstance(series.cat.categories, pd.IntervalIndex)


POLARS = {
    "Categorical": lambda: polars.Series(TEXT.tolist(), dtype=polars.Categorical),
    "Enum": lambda: polars.Series(TEXT.tolist(), dtype=polars.Enum([f"kind {k}" for k in range(6)])),
    "String": lambda: polars.Series(TEXT.tolist()),
    "Int8": lambda: polars.Series(NUMBER.tolist(), dtype=polars.Int8),
    "Boolean": lambda: polars.Series((NUMBER > 2).tolist()),
    "Decimal": lambda: polars.Series([Decimal(int(k)) for k in NUMBER], dtype=polars.Decimal(10, 2)),
    "Date": lambda: polars.Series([date(2024, 1, 1 + 4 * int(k)) for k in NUMBER]),
    "Datetime": lambda: polars.Series(DAYS.tolist(), dtype=polars.Datetime("ms")),
    "Datetime of a zone": lambda: polars.Series(DAYS.tolist()).dt.replace_time_zone("Asia/Tokyo"),
    "Duration": lambda: polars.Series([timedelta(hours=int(k)) for k in NUMBER]),
    "Time": lambda: polars.Series([time(2 * int(k)) for k in NUMBER]),
}


@pytest.mark.parametrize("name", POLARS)
def test_a_column_of_polars_is_learned_and_read_from_pandas(name):
    column = POLARS[name]()
    frame = polars.DataFrame({"noise": NOISE, "column": column})
    model = TableRegressor(Ridge(1e-3), random_state=0).fit(frame, polars.Series(TARGET))
    assert explained(model, frame) > 0.6
    new = frame.to_pandas()
    np.testing.assert_allclose(model.predict(new), model.predict(frame), rtol=1e-9)


OTHER_TYPES = {
    "numbers as text": (pd.Series(NUMBER), pd.Series(NUMBER).astype(str)),
    "numbers as decimals": (pd.Series(NUMBER), pd.Series([Decimal(int(k)) for k in NUMBER], dtype=object)),
    "text as category": (TEXT, TEXT.astype("category")),
    "category as text": (TEXT.astype("category"), TEXT.astype("string")),
    "ordered as text": (pd.Series(pd.Categorical(TEXT, ordered=True)), TEXT),
    "few of the ordered": (
        pd.Series(pd.Categorical(TEXT, ordered=True)),
        pd.Series(pd.Categorical(TEXT, categories=sorted(set(TEXT), reverse=True), ordered=True)),
    ),
    "dates as text": (DAYS, DAYS.dt.strftime("%Y-%m-%d")),
    "category of dates as text": (DAYS.astype("category"), DAYS.dt.strftime("%Y-%m-%d")),
    "text as category of dates": (DAYS.dt.strftime("%Y-%m-%d"), DAYS.astype("category")),
    "ordered dates as text": (pd.Series(pd.Categorical(DAYS, ordered=True)), DAYS.dt.strftime("%Y-%m-%d")),
    "text as dates": (DAYS.dt.strftime("%d.%m.%Y"), DAYS),
    "a zone as UTC": (DAYS.dt.tz_localize("Europe/Oslo"), DAYS.dt.tz_localize("Europe/Oslo").dt.tz_convert("UTC")),
    "booleans as numbers": (pd.Series(NUMBER > 2), pd.Series((NUMBER > 2).astype(int))),
    "booleans as text": (pd.Series(NUMBER > 2), pd.Series(NUMBER > 2).astype(str)),
    "category of numbers as numbers": (pd.Series(NUMBER).astype("category"), pd.Series(NUMBER)),
    "durations as the text of a CSV file": (
        pd.Series([timedelta(hours=int(number)) for number in NUMBER]),
        pd.Series([str(pd.Timedelta(hours=int(number))) for number in NUMBER]),
    ),
    "category of numbers as floats": (pd.Series(NUMBER).astype("category"), pd.Series(NUMBER.astype(float))),
}


@pytest.mark.parametrize("name", OTHER_TYPES)
def test_new_rows_may_have_another_type(name):
    before, after = OTHER_TYPES[name]
    model = TableRegressor(Ridge(1e-3), random_state=0).fit(pd.DataFrame({"noise": NOISE, "c": before}), TARGET)
    wanted = model.predict(pd.DataFrame({"noise": NOISE, "c": before}))
    np.testing.assert_allclose(model.predict(pd.DataFrame({"c": after, "noise": NOISE})), wanted, rtol=1e-9)


def test_a_number_is_no_duration():
    before = pd.Series([timedelta(hours=int(number)) for number in NUMBER])
    model = TableRegressor(Ridge(), random_state=0).fit(pd.DataFrame({"noise": NOISE, "c": before}), TARGET)
    frame = pd.DataFrame({"noise": NOISE, "c": [str(number) for number in NUMBER]})
    with pytest.raises(DataError, match=r"'c' must hold durations.*such as '1 days 02:30:00' \(a number has no unit\)"):
        model.predict(frame)
    texts = pd.DataFrame({"noise": NOISE, "c": before.astype(str).astype("category")})
    np.testing.assert_allclose(model.predict(texts), model.predict(texts.assign(c=before)), rtol=1e-9)


@pytest.mark.parametrize("column", ["self", "index", "0", "y", "target", "prediction", "", " ", "a b", "ünïcode", "X"])
def test_any_name_of_a_column(column):
    frame = pd.DataFrame({column: TEXT, "noise": NOISE})
    model = TableClassifier(LogisticRegression(), random_state=0).fit(frame, NUMBER > 2)
    assert np.mean(model.predict(frame[["noise", column]]) == (NUMBER > 2)) > 0.95
    assert model.coder_.get_feature_names_out()[0].startswith(column)


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i4"])
def test_bytes_may_be_in_the_order_of_another_machine(dtype):
    X = np.column_stack([NUMBER, np.round(NOISE * 100)])
    wanted = TableRegressor(Ridge(), random_state=0).fit(X, TARGET).predict(X)
    for rows in (X.astype(dtype), pd.DataFrame(X, columns=["x0", "x1"]).astype(dtype)):
        found = TableRegressor(Ridge(), random_state=0).fit(rows, TARGET.astype(">f8")).predict(rows)
        np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_names_that_are_numbers_are_found_again():
    frame = pd.DataFrame({0: TEXT, 1: NOISE})
    model = TableRegressor(Ridge(), random_state=0).fit(frame, TARGET)
    np.testing.assert_array_equal(model.predict(frame[[1, 0]]), model.predict(frame))


def test_columns_of_gaps_only_are_left_out_by_name():
    empty = {"none": None, "nan": np.nan, "nat": pd.NaT, "na": pd.array([pd.NA] * N, dtype="Int64"), "": "", " ": " "}
    frame = pd.DataFrame({"noise": NOISE, **empty})
    coder = TableCoder().fit(frame)
    assert set(coder.left_out_) == set(empty)
    assert set(coder.left_out_.values()) <= {"is empty", "is constant"}
    assert coder.transform(frame[["noise"]]).shape == (N, 1)


@pytest.mark.parametrize("text", ["unknown", "", "kind", "KIND 1", "kind 1 ", "🙂", "x" * 20_000])
def test_texts_that_training_did_not_have(text):
    many = pd.Series([f"town {k % 50} of many" for k in range(N)])
    frame = pd.DataFrame({"few": TEXT, "many": many, "free": [f"{k} some words {k * k}" for k in range(N)]})
    model = TableRegressor(Ridge(), random_state=0).fit(frame, TARGET)
    assert np.isfinite(model.predict(frame.assign(few=text, many=text, free=text))).all()
