"""ONNX graphs of tables: onnxruntime, given texts and numbers, predicts what the model predicts from the data frame."""

import datetime
import json

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ocrep import PinvClassifierCV, PinvRegressor, PinvRegressorCV, TableClassifier, TableRegressor
from ocrep.datasets import load_penguins
from ocrep.onnx import OnnxExportError, save_onnx, to_onnx
from ocrep.tables import TableCoder

QUICK = PinvRegressorCV("quick", random_state=0)
QUICK_LABELS = PinvClassifierCV("quick", random_state=0)
# Largest difference from our predictions, in standard deviations of the target.
TOLERANCE = {"float32": 1e-4, "float64": 1e-9}
both_types = pytest.mark.parametrize("dtype", TOLERANCE)


def as_given(column, dtype):
    """A column as a graph takes it."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if pd.api.types.is_datetime64_any_dtype(column):
        moments = column.to_numpy(dtype="M8[us]")
        return np.where(np.isnat(moments), np.nan, moments.astype(np.int64) / 86_400e6).reshape(-1, 1)
    if pd.api.types.is_timedelta64_dtype(column):
        column = column.dt.total_seconds()
    elif isinstance(column.dropna().iloc[0], datetime.time):
        column = column.map(lambda time: np.nan if pd.isna(time) else time.hour + time.minute / 60 + time.second / 3600)
    elif isinstance(column.dropna().iloc[0], str):
        return column.astype(object).where(column.notna(), "").to_numpy(dtype=object).reshape(-1, 1)
    return column.astype("Float64").to_numpy(dtype=dtype, na_value=np.nan).reshape(-1, 1)


def run(graph, frame, dtype):
    """What onnxruntime gives, by name."""
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    feed = {value.name: as_given(frame[value.name], dtype) for value in session.get_inputs()}
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, feed), strict=True))


def assert_predicts_as(model, frame, y, dtype):
    found = run(to_onnx(model, dtype=dtype), frame, dtype)
    assert list(found) == ["variable"]
    assert found["variable"].dtype == dtype
    assert found["variable"].shape == (len(frame), 1)
    assert np.abs(found["variable"][:, 0] - model.predict(frame)).max() <= TOLERANCE[dtype] * np.std(y)


def assert_classifies_as(model, frame, dtype):
    found = run(to_onnx(model, dtype=dtype), frame, dtype)
    assert list(found) == ["label", "probabilities", "scores"]
    assert (found["label"] == model.predict(frame)).mean() > 0.99
    assert np.abs(found["probabilities"] - model.predict_proba(frame)).max() <= TOLERANCE[dtype]


def planted(n_rows=240, seed=0):
    """A table of all kinds with gaps, whose numbers float32 holds, and a target that depends on all of them."""
    rng = np.random.default_rng(seed)
    size = rng.normal(50, 3, n_rows).astype(np.float32).astype(float)
    quarters = rng.integers(0, 96, n_rows)
    day = pd.Timestamp("1999-01-15") + pd.to_timedelta(rng.integers(0, 10**14, n_rows), unit="us")
    frame = pd.DataFrame(
        {
            "size": size,
            "town": rng.choice(["Oslo", "Rome", "Bonn", "Åbo"], n_rows, p=[0.4, 0.3, 0.25, 0.05]),
            "day": day,
            "open": pd.array(rng.random(n_rows) < 0.4, dtype="boolean"),
            "took": pd.to_timedelta(rng.integers(0, 90_000, n_rows), unit="s"),
            "grade": pd.Categorical(rng.choice(["low", "mid", "high"], n_rows), ["low", "mid", "high"], ordered=True),
            "at": [datetime.time(quarter // 4, quarter % 4 * 15) for quarter in quarters.tolist()],
            "plain": rng.integers(0, 9, n_rows),
        }
    )
    y = size / 3 + 2.0 * (frame["town"] == "Oslo") + day.month / 4 + frame["grade"].cat.codes
    y += frame["open"].astype(float) + frame["took"].dt.total_seconds() / 3e4 + np.sin(quarters / 15)
    for place, name in enumerate(["size", "town", "day", "open", "took", "grade", "at"]):
        frame.loc[rng.permutation(n_rows)[: 10 + place], name] = None
    return frame, y.to_numpy()


def strange(frame):
    """Other rows: texts never seen, and gaps where training has none."""
    other = frame.assign(town=frame["town"].astype(object), grade=frame["grade"].astype(object))
    other.loc[::5, "town"] = "Paris"
    other.loc[1::5, "town"] = "NA"
    other.loc[::7, "grade"] = "none of them"
    other["plain"] = frame["plain"].astype(float)
    other.loc[::6, "plain"] = np.nan
    return other


@both_types
def test_all_kinds_of_columns_with_gaps(dtype):
    frame, y = planted()
    model = TableRegressor(QUICK, random_state=0).fit(frame, y)
    assert not model.left_out_
    graph = to_onnx(model, dtype=dtype)
    onnx.checker.check_model(graph, full_check=True)
    assert [value.name for value in graph.graph.input] == list(frame)
    for rows in (frame, planted(seed=1)[0], strange(planted(seed=2)[0]), strange(frame)[::-1]):
        assert_predicts_as(model, rows, y, dtype)


@both_types
def test_labels_and_probabilities(dtype):
    frame, y = planted()
    other = strange(planted(seed=1)[0])
    for labels in (np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, [0.3, 0.7]))], y > np.median(y)):
        assert_classifies_as(TableClassifier(QUICK_LABELS, random_state=0).fit(frame, labels), other, dtype)


@both_types
def test_penguins(dtype):
    frame = load_penguins().dropna(subset=["Sex"]).astype({"Sample Number": float})
    numbers = frame.select_dtypes("number").columns
    frame[numbers] = frame[numbers].astype(dtype).astype(float)
    text = ["Individual ID"]
    X = frame.drop(columns="Sex")
    model = TableClassifier(QUICK_LABELS, ignore=text, random_state=0).fit(X, frame["Sex"])
    assert_classifies_as(model, X.assign(**{"Date Egg": pd.to_datetime(X["Date Egg"])}), dtype)
    with pytest.raises(OnnxExportError) as error:
        to_onnx(TableClassifier(QUICK_LABELS, random_state=0).fit(X, frame["Sex"]))
    assert f"ignore={text}" in str(error.value)


@both_types
@pytest.mark.parametrize("years", [(1600, 2400), (-400, 400), (1899, 1901)], ids=str)
def test_dates_on_every_calendar_day(years, dtype):
    # Arrow and NumPy count days themselves, so they are an oracle for the arithmetic in the graph.
    rng = np.random.default_rng(0)
    first, last = (np.datetime64(f"{year:05}-01-01" if year < 0 else f"{year:04}-01-01", "D") for year in years)
    microseconds = (last - first).astype(np.int64) * 86_400_000_000
    moments = first.astype("M8[us]") + rng.integers(0, microseconds, 300).astype("m8[us]")
    centuries = np.arange(years[0] - 1970, years[1] - 1970, 1 if years[1] - years[0] < 9 else 25)
    march = (12 * centuries + 2).astype("M8[M]").astype("M8[D]").astype("M8[us]")
    edges = np.concatenate([march + np.timedelta64(hours, "h") for hours in (-48, -24, -1, 0)])
    days = np.concatenate([moments, edges, edges[:3] - np.timedelta64(1, "us")])
    frame = pd.DataFrame({"day": days, "x": rng.normal(size=len(days)).astype(np.float32)})
    y = days.astype("M8[M]").astype(np.int64) % 12 + frame["x"].to_numpy()
    model = make_pipeline(TableCoder(), PinvRegressor(40, random_state=0)).fit(frame, y)
    assert_predicts_as(model, frame, y, dtype)


@both_types
def test_columns_may_have_any_name(dtype):
    names = ["label", "scores", "X:double", "X", "probabilities", "coded", "column0", "a b", "0", "ü/é", "output_label"]
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(90, len(names))).astype(np.float32)
    frame = pd.DataFrame(numbers, columns=names).astype(float).assign(X=rng.choice(["a", "b"], 90))
    target = np.where(numbers[:, 0] + (frame["X"] == "a") > 0, "yes", "no")
    for network in (QUICK_LABELS, LogisticRegression()):
        model = TableClassifier(network, random_state=0).fit(frame, target)
        graph = to_onnx(model, dtype=dtype)
        assert [value.name for value in graph.graph.input] == names
        found = run(graph, frame, dtype)
        assert np.abs(found["output_probabilities"] - model.predict_proba(frame)).max() <= TOLERANCE[dtype]
        assert (found["output_output_label"] == model.predict(frame)).all()


def test_columns_without_a_name():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X.sum(axis=1)
    graph = to_onnx(TableRegressor(PinvRegressor(5, random_state=0)).fit(X, y))
    assert [value.name for value in graph.graph.input] == ["x0", "x1"]
    frame = pd.DataFrame(X, columns=["a", ""])
    with pytest.raises(OnnxExportError, match="give it one"):
        to_onnx(TableRegressor(PinvRegressor(5, random_state=0)).fit(frame, y))


@both_types
@pytest.mark.parametrize(
    "network",
    [LinearRegression(), make_pipeline(StandardScaler(), PinvRegressor(20, random_state=0))],
    ids=["another library's", "a pipeline"],
)
def test_other_estimators_behind_the_coder(network, dtype):
    frame, y = planted()
    assert_predicts_as(TableRegressor(network, random_state=0).fit(frame, y), strange(frame), y, dtype)


def test_a_search_gives_the_table_that_it_found():
    frame, y = planted()
    table = TableRegressor(PinvRegressor(20, random_state=0))
    search = GridSearchCV(table, {"model__n_hidden": [10, 20]}, cv=2).fit(frame, y)
    assert_predicts_as(search, frame, y, "float64")


def test_a_column_that_is_constant_in_the_rows_that_teach():
    # One row in 500 has another town, and the coder learns from 20 rows.
    frame = pd.DataFrame({"town": ["Oslo"] * 499 + ["Rome"], "x": np.random.default_rng(0).normal(size=500)})
    y = frame["x"].to_numpy() ** 2
    model = make_pipeline(TableCoder(sample_rows=20, random_state=0), PinvRegressor(20, random_state=0)).fit(frame, y)
    graph = to_onnx(model, dtype="float64")
    assert [value.name for value in graph.graph.input] == ["x"]
    assert_predicts_as(model, frame, y, "float64")


def test_what_cannot_be_exported():
    frame, y = planted()
    with pytest.raises(NotFittedError):
        to_onnx(TableRegressor())
    with pytest.raises(OnnxExportError, match="skl2onnx cannot write a step of this TableRegressor"):
        to_onnx(TableRegressor(DummyRegressor()).fit(frame, y))
    places = range(len(frame))
    many = frame.assign(a=[f"street {i % 70}" for i in places], b=[f"free text {i}" for i in places])
    with pytest.raises(OnnxExportError, match=r"ignore=\['a', 'b'\]"):
        to_onnx(TableRegressor(PinvRegressor(5, random_state=0)).fit(many, y))


def test_the_file_says_what_each_input_holds(tmp_path):
    frame, y = planted()
    save_onnx(TableRegressor(PinvRegressor(20, random_state=0)).fit(frame, y), tmp_path / "table.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "table.onnx")
    told = json.loads(session.get_modelmeta().custom_metadata_map["inputs"])
    assert list(told) == list(frame)
    assert told["took"] == "seconds"
    kinds = {value.name: value.type for value in session.get_inputs()}
    assert kinds["day"] == "tensor(double)"
    assert kinds["town"] == kinds["grade"] == "tensor(string)"
    assert {kinds[name] for name in ("size", "open", "took", "at", "plain")} == {"tensor(float)"}
