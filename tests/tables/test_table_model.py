"""From rows to a model: the task, the columns, the split, and the pipeline against one built by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder
from support.program_tables import inputs_of, targets_of

from ocrep import PinvRegressor, load_model, save_model
from ocrep._files.formats import DataError
from ocrep.cli.printing import about_problem, score_pairs
from ocrep.tables.coding import MISSING, split_problem
from ocrep.tables.comparison import compare_methods, holm
from ocrep.tables.prediction import predict_file
from ocrep.tables.problem import UsageError, guess_task, read_problem
from ocrep.tables.survey import TargetSurvey
from ocrep.tables.training import Settings, describe, example_rows, known_texts, prepare, train


@pytest.mark.parametrize(
    ("values", "kind", "task"),
    [
        (["a", "b"], "text", "classification"),
        ([0.0, 1.0], "boolean", "classification"),
        ([0.0, 1.0] * 5, "number", "classification"),
        ([0.0, 1.0] * 4, "number", "classification"),
        (list(range(20)) * 5, "number", "classification"),
        (list(range(20)) * 4, "number", "regression"),
        (list(range(21)) * 9, "number", "regression"),
        ([0.0, 0.5] * 50, "number", "regression"),
    ],
)
def test_the_guessed_task(values, kind, task):
    if values == [0.0, 1.0] * 4:
        task = "regression"  # eight rows for two values are four each
    survey = TargetSurvey()
    if kind != "text":
        survey.add(np.array(values), np.arange(len(values)))
    assert guess_task(kind, survey, len(values))[0] == task


@pytest.fixture
def rows(tmp_path):
    """A file with every kind of column."""
    generator = np.random.default_rng(0)
    n = 120
    frame = pd.DataFrame(
        {
            "x": generator.uniform(size=n),
            "z": generator.normal(size=n),
            "colour": generator.choice(["red", "green", "blue"], n),
            "fresh": generator.random(n) < 0.5,
            "code": [f"id{i}" for i in range(n)],
            "level": 3,
            "": range(n),
        }
    )
    frame["y"] = np.sin(frame["x"]) + 0.3 * (frame["colour"] == "red") + 0.1 * frame["fresh"]
    frame.loc[[3, 5], "x"] = np.nan
    frame.loc[7, "colour"] = None
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    return path, frame


def test_which_columns_are_inputs(rows):
    path, _ = rows
    problem = read_problem(path, "y", ignore=["z"], ids=[])
    assert problem.kinds == {"x": "number", "colour": "text", "fresh": "boolean"}
    assert problem.left_out == {
        "z": "ignored",
        "(no name)": "has no name",
        "code": "an id or free text: 120 different ones",
        "level": "is constant",
    }


def test_the_pipeline_is_median_one_hot_and_network(rows):
    path, frame = rows
    problem = read_problem(path, "y")
    model = train(problem, Settings(n_hidden=15, seed=3), test=0).model
    numbers = SimpleImputer(strategy="median").fit_transform(frame[["x", "z", "fresh"]].astype(float))
    found = frame["colour"].fillna(MISSING)
    most = found.mode()[0]
    order = [most, *sorted(set(found) - {most})]
    texts = OneHotEncoder(categories=[order], drop="first", sparse_output=False).fit_transform(
        pd.DataFrame({"colour": found.astype(object)})
    )
    by_hand = PinvRegressor(15, random_state=3).fit(np.hstack([numbers, texts]), frame["y"])
    wanted = by_hand.predict(np.hstack([numbers, texts]))
    np.testing.assert_allclose(model.predict(inputs_of(problem)), wanted, rtol=1e-7)
    assert model[-1].gamma_ == pytest.approx(by_hand.gamma_)
    assert known_texts(model)["colour"].tolist() == order


@pytest.mark.filterwarnings("ignore:Found unknown categories")  # the only gap may be held out
def test_scores_are_those_of_the_training_part_and_the_model_that_of_all_rows(rows):
    path, _ = rows
    problem = read_problem(path, "y")
    stages = []
    trained = train(problem, Settings(n_hidden=15), progress=lambda stage, done, total: stages.append(stage))
    assert list(dict.fromkeys(stages)) == ["Training on the training part", "Testing", "Training on all rows"]
    tested = train(problem, Settings(n_hidden=15), refit=False)
    training, held_out = split_problem(problem, 0.3, 0)
    y = targets_of(held_out)
    wrong = tested.model.predict(inputs_of(problem, held_out)) - y
    assert trained.scores == tested.scores
    assert tested.scores["rmse"] == pytest.approx(np.sqrt(np.mean(wrong**2)))
    assert tested.scores["r2"] == pytest.approx(1 - np.sum(wrong**2) / np.sum((y - y.mean()) ** 2))
    mean = targets_of(training.rows).mean()
    assert tested.scores["baseline_rmse"] == pytest.approx(np.sqrt(np.mean((y - mean) ** 2)))
    whole = train(problem, Settings(n_hidden=15), test=0)
    X = inputs_of(problem)
    np.testing.assert_array_equal(trained.model.predict(X), whole.model.predict(X))
    assert (trained.on_all_rows, tested.on_all_rows, whole.on_all_rows) == (True, False, True)
    assert (whole.scores, whole.n_train, whole.n_test) == ({}, 120, 0)
    assert sorted([*targets_of(training.rows), *y]) == sorted(targets_of(problem.rows))


def test_a_constant_held_out_target_has_no_r2(tmp_path):
    path = tmp_path / "flat.csv"
    pd.DataFrame({"x": np.arange(20.0) ** 2, "y": [0.5] * 19 + [0.75]}).to_csv(path, index=False)
    scores = train(read_problem(path, "y"), Settings(n_hidden=3), test=0.1).scores
    assert np.isnan(scores["r2"])
    assert score_pairs(scores, 2)[0][1] == f"RMSE {scores['rmse']:.4g}, MAE {scores['mae']:.4g}"


def test_a_table_of_as_many_rows_as_a_network_has_units_is_learned_by_default(tmp_path):
    frame = load_diabetes(as_frame=True).frame.iloc[:430]
    frame.to_csv(tmp_path / "d.csv", index=False)
    problem = read_problem(tmp_path / "d.csv", "target")
    assert train(problem, Settings(candidates="quick"), refit=False).scores["r2"] > 0.3
    one = train(problem, Settings(n_hidden=301), refit=False)
    assert one.n_train == 301
    assert one.scores["r2"] > 0.3


def test_the_model_file_keeps_what_the_model_knows_of_its_table(rows, tmp_path):
    path, _ = rows
    problem = read_problem(path, "y", ids=["code"])
    model = train(problem, Settings(n_hidden=5)).model
    save_model(model, tmp_path / "m.skops")
    again = load_model(tmp_path / "m.skops")
    assert describe(again) == describe(model)
    assert describe(again).ids == ["code"]
    example = example_rows(again)
    assert list(example) == list(problem.kinds)
    assert np.isfinite(again.predict(example)).all()


def test_models_of_other_origin(rows, tmp_path):
    path, frame = rows
    named = PinvRegressor(5, random_state=0).fit(frame[["z", "y"]], frame["y"])
    assert describe(named).kinds == {"z": "number", "y": "number"}
    assert known_texts(named) == {}
    assert predict_file(named, path, tmp_path / "p.csv", digits=17) == 120
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv")["prediction"], named.predict(frame[["z", "y"]]))
    nameless = PinvRegressor(5, random_state=0).fit(frame[["z", "y"]].to_numpy(), frame["y"])
    assert describe(nameless) is None
    assert example_rows(nameless) is None
    with pytest.raises(UsageError, match="does not know the names of its columns"):
        predict_file(nameless, path, tmp_path / "q.csv")


@pytest.mark.parametrize("target", ["fresh", "colour", "level10"])
def test_labels_come_back_as_they_were(target, rows, tmp_path):
    frame = rows[1].dropna()
    frame = frame.assign(level10=frame["colour"].map({"red": 10, "green": 20, "blue": 30}))
    frame.drop(columns=["", "y"]).to_parquet(tmp_path / "r.parquet", index=False)
    problem = read_problem(tmp_path / "r.parquet", target)
    assert problem.task == "classification"
    model = train(problem, Settings(n_hidden=40)).model
    predict_file(model, tmp_path / "r.parquet", tmp_path / "p.parquet")
    predicted = pd.read_parquet(tmp_path / "p.parquet")["prediction"]
    assert set(predicted) <= set(frame[target])
    assert predicted.dtype.kind == frame[target].dtype.kind


def test_many_categories_are_coded_sparsely_and_learned(tmp_path):
    generator = np.random.default_rng(1)
    words = generator.choice([f"w{i}" for i in range(100)], 2000)
    effect = {f"w{i}": float(i % 5) for i in range(100)}
    pd.DataFrame({"w": words, "y": [effect[word] + 0.1 for word in words]}).to_csv(tmp_path / "w.csv", index=False)
    trained = train(read_problem(tmp_path / "w.csv", "y"), Settings(n_hidden=150, gamma="gcv"))
    assert trained.model[0].sparse_output_
    assert trained.scores["rmse"] < 0.2 * trained.scores["baseline_rmse"]


def test_too_many_classes(tmp_path):
    pd.DataFrame({"x": range(1500), "y": [f"n{i}" for i in range(1500)]}).to_csv(tmp_path / "c.csv", index=False)
    with pytest.raises(DataError, match="1,500 different values in 1,500 rows, such as n0, too many for classes"):
        read_problem(tmp_path / "c.csv", "y")


def test_a_column_of_lists_cannot_be_a_target(tmp_path):
    pd.DataFrame({"x": range(20), "y": [[1]] * 20}).to_parquet(tmp_path / "l.parquet")
    with pytest.raises(DataError, match="holds neither numbers nor text, which cannot be a target"):
        read_problem(tmp_path / "l.parquet", "y")


def test_a_column_of_empty_texts_is_empty(tmp_path):
    pd.DataFrame({"x": range(20), "w": [""] * 20, "v": ["same"] * 20, "y": np.arange(20) / 2}).to_parquet(
        tmp_path / "e.parquet"
    )
    assert read_problem(tmp_path / "e.parquet", "y").left_out == {"w": "is empty", "v": "is constant"}


def test_a_class_that_training_has_not_is_not_tested(tmp_path):
    labels = ["a"] * 20 + ["b"] * 18 + ["c"] * 2
    pd.DataFrame({"x": np.arange(40.0), "y": labels}).to_csv(tmp_path / "rare.csv", index=False)
    problem = read_problem(tmp_path / "rare.csv", "y")
    for seed in range(6):
        X, y, X_test, y_test = prepare(problem, test=0.9, seed=seed)
        assert set(y_test) <= set(y)
        assert (len(X), len(X_test)) == (len(y), len(y_test))
        assert len(y) + len(y_test) == 40 - 2 * ("c" not in y)


def test_comparison_marks_what_really_differs(tmp_path):
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, (150, 3))
    y = x[:, 0] + 0.5 * generator.normal(size=150)
    pd.DataFrame(x, columns=list("abc")).assign(y=y).to_csv(tmp_path / "d.csv", index=False)
    told = []
    found = compare_methods(
        read_problem(tmp_path / "d.csv", "y"),
        n_hidden=90,
        n_splits=4,
        progress=lambda stage, done, total: told.append((done, total)),
    )
    methods = {method.name: method for method in found.methods}
    assert told == [(split, 4) for split in range(4)]
    assert {"ELM", "RELM", "OP-ELM", "TROP-ELM", "pruned ELM", "ocrep", "none"} <= set(methods)
    assert methods["none"].mean > methods["ocrep"].mean
    assert methods["ocrep"].verdict == ""
    assert methods["ocrep"].difference == 0
    for method in found.methods:
        assert method.mean == pytest.approx(np.mean(method.errors))
        assert method.difference == pytest.approx(method.mean - methods["ocrep"].mean, abs=1e-12)
        assert method.verdict in ("", "better", "worse")
        assert (method.verdict != "") == (method.p_value < 0.05 and method.name != "ocrep")
        if method.verdict:
            assert (method.verdict == "worse") == (method.difference > 0)
    with pytest.raises(ValueError, match="at least 2"):
        compare_methods(read_problem(tmp_path / "d.csv", "y"), n_splits=1)


def test_a_method_of_the_literature_that_raises_is_not_applicable(tmp_path, monkeypatch):
    from ocrep.tables import comparison

    def fail(random_state):
        raise ValueError("not here")

    monkeypatch.setitem(comparison._LITERATURE, "regression", {"ELM": fail})
    pd.DataFrame({"x": np.arange(30.0), "y": np.arange(30) / 7}).to_csv(tmp_path / "d.csv", index=False)
    found = compare_methods(read_problem(tmp_path / "d.csv", "y"), n_hidden=5, n_splits=2)
    assert found.not_applicable["ELM"] == "not here"


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_against_its_definition(p_values):
    adjusted = holm(p_values)
    order = np.argsort(p_values, kind="stable")
    for rank, index in enumerate(order):
        steps = [(len(p_values) - k) * p_values[order[k]] for k in range(rank + 1)]
        assert adjusted[index] == min(1.0, max(steps))
    assert all(a >= p for a, p in zip(adjusted, p_values, strict=True))


def test_texts_that_were_meant_to_be_numbers_are_told_of(tmp_path):
    numbers = np.arange(30)
    columns = {
        "dash": ["-" if i == 7 else f"{i}.5" for i in numbers],
        "commas": [f"{i},5" for i in numbers],
        "grades": ["1", "2", "3+"] * 10,
        "sizes": ["S", "M", "1"] * 10,
        "y": [np.nan if i == 3 else i / 2 for i in numbers],
    }
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", sep=";", index=False)
    problem = read_problem(tmp_path / "t.csv", "y", drop_missing_target=True)
    assert problem.near_numbers == {"dash": "'-' in row 8", "commas": "'0,5' in row 1", "grades": "'3+' in row 3"}
    assert set(problem.left_out) == {"dash", "commas"}
    lines = about_problem(tmp_path / "t.csv", problem)
    for name, text in problem.near_numbers.items():
        assert any(line.startswith(f"Column {name!r} became text, because it holds {text}: ") for line in lines)


def test_text_that_is_all_numbers_was_meant_to_be_text(tmp_path):
    codes = [f"0{i % 5}" for i in range(30)]
    pd.DataFrame({"code": codes, "y": np.arange(30) / 2}).to_parquet(tmp_path / "t.parquet")
    problem = read_problem(tmp_path / "t.parquet", "y")
    assert (problem.kinds, problem.near_numbers) == ({"code": "text"}, {})


def test_long_padded_texts_are_looked_at_in_linear_time(tmp_path):
    space = " " * 50_000
    texts = {"end": "{i}" + space + "x", "start": space + "{i}x", "percent": "{i} 000,5" + space + "%"}
    columns = {name: [text.format(i=i % 4) for i in range(30)] for name, text in texts.items()}
    pd.DataFrame({**columns, "y": np.arange(30) / 2}).to_csv(tmp_path / "t.csv", index=False)
    assert set(read_problem(tmp_path / "t.csv", "y").near_numbers) == {"percent"}
