"""`fit_table`: the task is guessed, rows are held out, and what it says of them is true."""

import sys

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest

from ocrep import PinvRegressor, TableClassifier, TableRegressor, fit_table, load_model, save_model
from ocrep.tables.targets import guess_task


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


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b"], "classification"),
        ([True, False], "classification"),
        (["1", "2.5", "3"], "regression"),
        ([0.0, 1.0] * 5, "classification"),
        ([0.0, 1.0] * 4, "regression"),  # four rows each
        (list(range(20)) * 5, "classification"),
        (list(range(20)) * 4, "regression"),
        (list(range(21)) * 9, "regression"),
        ([0.0, 0.5] * 50, "regression"),
        (pd.Categorical([1, 2] * 3), "classification"),
    ],
)
def test_the_guessed_task(values, task):
    assert guess_task(pd.Series(values))[0] == task


def test_all_kinds_of_frames_give_one_model(tmp_path):
    frame = table()
    frames = [frame, polars.from_pandas(frame), pa.Table.from_pandas(frame)]
    models = [fit_table(some, "y", n_hidden=20) for some in frames]
    save_model(models[0], tmp_path / "m.skops")
    for model in (*models, load_model(tmp_path / "m.skops")):
        assert isinstance(model, TableRegressor)
        assert model.assessment_["models"]["network"] == pytest.approx(models[0].assessment_["models"]["network"])
        assert model.left_out_ == {"id": "is an id: 200 different codes in 200 rows", "same": "is constant"}
        assert model.gaps_ == {"when": 1, "x": 1, "k": 1, "t": int(frame["t"].isna().sum())}
        for some in frames:
            np.testing.assert_allclose(model.predict(some), models[0].predict(frame), rtol=1e-9)


def test_the_target_may_be_a_column_or_values():
    frame = table()
    one = fit_table(frame, "y", n_hidden=10)
    other = fit_table(frame.drop(columns="y"), frame["y"], n_hidden=10)
    np.testing.assert_array_equal(one.predict(frame), other.predict(frame))
    X, y = np.random.default_rng(0).normal(size=(2, 60, 3))
    assert fit_table(X, y[:, 0], n_hidden=5).predict(X).shape == (60,)


def test_names_of_columns_may_be_numbers():
    frame = table().assign(weight=np.arange(200) % 3.0)
    numbered = frame.set_axis(range(2020, 2020 + frame.shape[1]), axis=1)
    number_of = dict(zip(frame.columns, numbered.columns, strict=True))
    options = {"n_hidden": 10, "test": 0}
    one = fit_table(frame, "y", sample_weight="weight", ignore=["when"], keep=["id"], **options)
    other = fit_table(
        numbered,
        number_of["y"],
        sample_weight=number_of["weight"],
        ignore=[number_of["when"]],
        keep=[number_of["id"]],
        **options,
    )
    np.testing.assert_allclose(other.predict(numbered), one.predict(frame), rtol=1e-9)
    alone = TableRegressor(PinvRegressor(5, random_state=0), ignore=[number_of["when"]], random_state=0)
    alone.fit(numbered.drop(columns=number_of["y"]), frame["y"])
    assert alone.left_out_[str(number_of["when"])] == "ignored"
    with pytest.raises(ValueError, match="The frame has no column '0': it has '2020', '2021'"):
        fit_table(numbered, 0)
    with pytest.raises(ValueError, match="X has no column '7'"):
        alone.set_params(ignore=[7]).fit(numbered, frame["y"])
    with pytest.raises(ValueError, match=f"Column {number_of['y']} is the target: it cannot be ignored"):
        fit_table(numbered, number_of["y"], ignore=[number_of["y"]])


def test_weights_and_groups_are_columns_or_values():
    frame = table().assign(weight=np.arange(200) % 3.0, town=np.arange(200) // 10)
    one = fit_table(frame, "y", sample_weight="weight", groups="town", n_hidden=10)
    rest = frame.drop(columns=["weight", "town"])
    other = fit_table(rest, "y", sample_weight=frame["weight"], groups=frame["town"], n_hidden=10)
    np.testing.assert_allclose(one.predict(frame), other.predict(frame), rtol=1e-12)
    assert one.assessment_["n_test"] == other.assessment_["n_test"]


def test_groups_with_gaps_and_too_few_groups_are_refused_in_a_sentence():
    frame = table()
    towns = [None, *["a", "b", "c", "d", "e"] * 39, "a", "b", "c", "d"]
    for groups, data in ((towns, frame), ("town", frame.assign(town=towns))):
        with pytest.raises(ValueError, match=r"groups has a gap in row 1: give each row a group\."):
            fit_table(data, "y", groups=groups)
    with pytest.raises(ValueError, match=r"There are 2 groups, and with test=0.3 fewer than two .* or test=0\."):
        fit_table(frame, "y", groups=["a", "b"] * 100)
    with pytest.raises(ValueError, match="All rows are of one group"):
        fit_table(frame, "y", groups=["a"] * 200)


def test_labels_weights_and_advice_in_words_of_python():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1500, 2))
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(
        kind=np.where(X[:, 0] + rng.standard_normal(1500) > 3.0, "rare", "often")
    )
    model = fit_table(frame, "kind", n_hidden=10)
    assert isinstance(model, TableClassifier)
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
    assert [column.name for column in model.coder_.columns_] == ["x", "k", "t", "c", "flag"]
    assert model.model_.gamma == "gcv"
    assert model.assessment_["n_test"] == 40


def verdict(x, y, **options):
    return fit_table(pd.DataFrame({"x": x, "z": np.cos(np.arange(len(x)))}), y, **options).assessment_["verdict"][
        "code"
    ]


def test_the_verdict_is_graded():
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, 600)
    noise = rng.normal(size=600)
    assert verdict(x, np.sin(2 * x) + 0.1 * noise, candidates="quick") == "good"
    assert verdict(x, noise, n_hidden=50) == "no_better"
    assert verdict(x, 0.25 * np.sin(2 * x) + noise, n_hidden=50) in ("weak", "no_better")
    assert verdict(x, 2.0 * x - 1.0, n_hidden=50) == "leak"
    wrong = {"n_hidden": 2, "activation": "sin", "direct_link": False, "weight_scale": 9.0}
    assert verdict(x, x + 0.1 * noise, gamma=0.0, **wrong) in ("beaten", "no_better")


@pytest.mark.parametrize("given_out", ["in a row", "with gaps"])
def test_the_model_that_is_tested_uses_the_columns_of_the_one_that_is_kept(rng, given_out):
    # That these numbers are ids shows on all rows, and not on the part that the tested model learns from.
    n = 60 if given_out == "in a row" else 300
    step = np.arange(n) if given_out == "in a row" else np.sort(rng.choice(6500, n, replace=False))
    frame = pd.DataFrame({"step": step, "x": rng.normal(size=n)})
    frame["y"] = 5 * np.sin(6 * step / step.max()) + rng.normal(size=n)
    model = fit_table(frame, "y", n_hidden=20, boosting=False)
    assert model.left_out_["step"].startswith("is an id")
    assert model.assessment_["models"]["network"]["r2"] < 0.3
    assert [advice["code"] for advice in model.assessment_["advice"] if advice["code"] == "id"] == ["id"]
    kept = fit_table(frame, "y", keep=["step"], n_hidden=20, boosting=False)
    assert kept.left_out_ == {}
    assert kept.assessment_["models"]["network"]["r2"] > 0.6


def test_advice_about_odd_numbers_names_no_option_of_the_program(rng):
    frame = pd.DataFrame({"size": rng.normal(size=200).round(4).astype(str), "y": rng.normal(size=200)})
    frame.loc[7, "size"] = "?"
    model = fit_table(frame, "y", n_hidden=5, boosting=False)
    (sentence,) = (one["sentence"] for one in model.assessment_["advice"] if one["code"] == "near_numbers")
    assert sentence.endswith("holds '?' in row 8: write numbers as 1234.5, and leave gaps empty.")


def test_what_is_not_a_table():
    frame = table()
    with pytest.raises(ValueError, match="has no column 'z'"):
        fit_table(frame, "z")
    with pytest.raises(ValueError, match="values of several types"):
        fit_table(frame.assign(odd=[1, "a"] * 100), "y")
    with pytest.raises(ValueError, match="two columns named 'x'"):
        fit_table(pa.table([[1], [2], [3]], names=["x", "x", "y"]), "y")
    with pytest.raises(ValueError, match="no column to learn from"):
        fit_table(frame[["y"]], "y")
    model = fit_table(frame, "y", n_hidden=3, test=0)
    with pytest.raises(ValueError, match="no column 'k'"):
        model.predict(frame.drop(columns="k"))
    with pytest.raises(ValueError, match="Column 'x' must hold numbers, as in training, but row 1 holds 'word'"):
        model.predict(frame.head(1).assign(x="word"))


def test_without_pandas_one_sentence_says_what_to_install(monkeypatch):
    frame = table()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"fit_table needs pandas and pyarrow: pip install \"ocrep\[files\]\""):
        fit_table(frame, "y")
