"""`fit_table`: the same model from a pandas frame, a polars frame, an Arrow table and a file."""

import sys

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest

from ocrep import fit_table, load_model, save_model
from ocrep.cli.running import run
from ocrep.tables.problem import read_problem
from ocrep.tables.training import Settings, train


def table(n=200):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "when": pd.Series(pd.date_range("2020-01-01", periods=n)).astype("datetime64[us]"),
            "x": rng.standard_normal(n),
            "k": pd.array(rng.integers(0, 9, n), dtype="Int64"),
            "t": np.array(["a", "b", None], dtype=object)[rng.integers(0, 3, n)],
            "c": pd.Categorical(rng.choice(["u", "v"], n)),
            "flag": rng.random(n) < 0.5,
            "id": [f"r{i}" for i in range(n)],
            "same": 1,
        }
    )
    frame["y"] = frame["x"] + 2.0 * (frame["t"] == "a") + 0.3 * frame["when"].dt.day_of_week + rng.standard_normal(n)
    frame.loc[3, "k"], frame.loc[5, "x"], frame.loc[7, "when"] = pd.NA, np.nan, pd.NaT
    return frame


def test_all_kinds_of_frames_give_the_model_of_the_file(tmp_path):
    frame = table()
    frame.to_parquet(tmp_path / "t.parquet")
    problem = read_problem(tmp_path / "t.parquet", "y")
    wanted = train(problem, Settings(n_hidden=20))
    kinds = {"when": "date", "x": "number", "k": "number", "t": "text", "c": "text", "flag": "boolean"}
    assert problem.kinds == kinds
    frames = {"pandas": frame, "polars": polars.from_pandas(frame), "arrow": pa.Table.from_pandas(frame)}
    predictions = []
    for some in frames.values():
        model = fit_table(some, "y", n_hidden=20)
        for name, scores in wanted.assessment.models.items():
            assert model.assessment_["models"][name] == pytest.approx(scores)
        predictions += [model.predict(other) for other in frames.values()]
    save_model(model, tmp_path / "m.skops")
    save_model(wanted.model, tmp_path / "wanted.skops")
    predictions += [load_model(tmp_path / "m.skops").predict(frame)]
    for name in ("m", "wanted"):
        out = tmp_path / f"{name}.parquet"
        assert run(["predict", str(tmp_path / f"{name}.skops"), str(tmp_path / "t.parquet"), "--out", str(out)]) == 0
        predictions += [pd.read_parquet(out)["prediction"]]
    for found in predictions[1:]:
        np.testing.assert_allclose(found, predictions[0], rtol=1e-9)


@pytest.mark.parametrize(
    "frame_of", [pd.DataFrame, polars.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_texts_that_are_dates_are_read_as_dates(frame_of):
    """As `pd.read_csv` leaves them, and as the program reads them in a CSV file; also where few rows are predicted."""
    frame = table()
    texts = frame.assign(when=frame["when"].dt.strftime("%Y-%m-%d").astype(object).where(frame["when"].notna(), None))
    wanted = fit_table(frame, "y", n_hidden=20, test=0.0).predict(frame)
    model = fit_table(frame_of(texts), "y", n_hidden=20, test=0.0)
    np.testing.assert_array_equal(model.predict(frame_of(texts)), wanted)
    np.testing.assert_allclose(model.predict(texts[8:10]), wanted[8:10], rtol=1e-12)
    # A category that looks like a date in a few new rows stays a category.
    mixed = texts.assign(t=texts["t"].where(np.arange(len(texts)) % 7 > 0, "2020-01-01"))
    assert np.isfinite(fit_table(mixed, "y", n_hidden=20, test=0.0).predict(mixed[7:8])).all()


def test_what_was_left_out_and_filled_is_told_and_saved_with_the_model(tmp_path):
    model = fit_table(table(), "y", ignore=["k"], n_hidden=5, test=0.0)
    save_model(model, tmp_path / "m.skops")
    for some in (model, load_model(tmp_path / "m.skops")):
        assert some.left_out_ == {
            "k": "ignored",
            "id": "an id or free text: 200 different ones",
            "same": "is constant",
        }
        assert some.gaps_ == {"when": 1, "x": 1, "t": int(table()["t"].isna().sum())}


def test_new_rows_may_have_gaps_other_columns_and_new_texts():
    frame = table()
    model = fit_table(frame, "y", n_hidden=20, test=0)
    assert not hasattr(model, "assessment_")
    rows = frame.head(4)[["t", "x", "when", "flag", "c", "k"]].assign(more=1)
    np.testing.assert_allclose(model.predict(rows), model.predict(frame.head(4)))
    gaps = rows.assign(t=[None, np.nan, "new", "a"], x=np.nan, k=pd.NA, when=pd.NaT)
    # None and NaN are the same missing text; a new text is the most frequent one, with a warning.
    most = model.named_steps["columns"].named_transformers_["texts"]["one_hot"].categories_[0][0]
    with pytest.warns(UserWarning, match="unknown categories"):
        found = model.predict(gaps)
    np.testing.assert_array_equal(found, model.predict(gaps.assign(t=[None, None, most, "a"])))
    assert np.isfinite(found).all()


def test_labels_weights_and_advice_in_words_of_python():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1500, 2))
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(
        kind=np.where(X[:, 0] + rng.standard_normal(1500) > 3.0, "rare", "often")
    )
    model = fit_table(frame, "kind", n_hidden=10, boosting=True)
    assert list(model.assessment_["models"])[2:] == ["linear model", "gradient boosting"]
    sentences = [advice["sentence"] for advice in model.assessment_["advice"]]
    assert any(sentence.endswith('try class_weight="balanced".') for sentence in sentences)
    assert model.predict_proba(frame).shape == (1500, 2)
    balanced = fit_table(frame, "kind", n_hidden=10, class_weight="balanced")
    scores = (one.assessment_["models"]["network"]["balanced_accuracy"] for one in (model, balanced))
    assert next(scores) + 0.1 < next(scores)


def test_columns_rows_and_the_task_can_be_chosen():
    frame = table().assign(grade=np.arange(200) % 5)
    frame.loc[0, "grade"] = np.nan
    model = fit_table(
        frame, "grade", task="regression", ignore=["y"], dates="drop", drop_missing_target=True, gamma="gcv", test=0.2
    )
    assert list(model.named_steps["frame"].kinds) == ["x", "k", "t", "c", "flag"]
    assert model.named_steps["network"].gamma == "gcv"
    assert model.assessment_["n_test"] == 40


def test_what_is_not_a_table():
    frame = table()
    with pytest.raises(TypeError, match=r"not ndarray: for arrays use PinvRegressorCV"):
        fit_table(np.eye(3), "y")
    with pytest.raises(ValueError, match="The column name 0 of the frame is not text"):
        fit_table(pd.DataFrame(np.eye(3)), "y")
    with pytest.raises(ValueError, match="The frame has no column 'z'"):
        fit_table(frame, "z")
    with pytest.raises(ValueError, match=r"The frame cannot be read: .*odd"):
        fit_table(frame.assign(odd=[1, "a"] * 100), "y")
    with pytest.raises(ValueError, match="'x' appears more than once"):
        fit_table(pa.table([[1], [2], [3]], names=["x", "x", "y"]), "y")
    model = fit_table(frame, "y", n_hidden=3, test=0)
    with pytest.raises(ValueError, match="The frame has no column 'k'"):
        model.predict(frame.drop(columns="k"))
    with pytest.raises(ValueError, match="Column 'x' must hold numbers, as in training, but row 1 holds 'word'"):
        model.predict(frame.head(1).assign(x="word"))


def test_without_pandas_one_sentence_says_what_to_install(monkeypatch):
    frame = table()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"fit_table needs pandas and pyarrow: pip install \"ocrep\[files\]\""):
        fit_table(frame, "y")


def test_a_graph_is_that_of_the_columns_and_the_network(tmp_path, monkeypatch, capsys):
    onnxruntime = pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    frame = table().drop(columns=["when", "t", "c", "flag", "k", "id", "same"]).assign(z=np.arange(200.0))
    save_model(fit_table(frame, "y", n_hidden=5, test=0), "m.skops")
    assert run(["export", "m.skops", "m.onnx", "--double"]) == 0
    session = onnxruntime.InferenceSession("m.onnx")
    rows = {name: frame[[name]].to_numpy()[8:12] for name in ("x", "z")}
    (found,) = session.run(["variable"], rows)
    np.testing.assert_allclose(found[:, 0], load_model("m.skops").predict(frame)[8:12], rtol=1e-9)
