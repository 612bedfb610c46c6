"""Tables in files: the model is that of the frame; long tables are learned from a sample and all rows, by blocks."""

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.csv
import pytest
from sklearn.linear_model import Ridge

import ocrep
from ocrep import PinvClassifierCV, PinvRegressor, PinvRegressorCV, TableClassifier, TableRegressor, scan
from ocrep._files import readers, reading
from ocrep._files.formats import DataError
from ocrep.report.diagnosis import diagnose_table
from ocrep.tables import rows
from ocrep.tables.prediction import predict_file
from ocrep.tables.training import Settings, UsageError, problem_of_file, train_table

N = 1500


def table(n=N, seed=0):
    """Numbers with gaps, a category, a column of many texts, a date and two targets."""
    rng = np.random.default_rng(seed)
    towns = rng.integers(0, 80, n)
    frame = pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "colour": rng.choice(["red", "green", None], n),
            "town": [f"town {k}" for k in towns],
            "when": pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D"),
        }
    )
    signal = frame["x"].fillna(1.0) + (frame["colour"] == "red") + np.sin(towns)
    frame["y"] = signal + 0.1 * rng.normal(size=n)
    frame["kind"] = np.where(signal > 1.0, "high", "low")
    return frame


QUICK = PinvRegressorCV("quick", random_state=0)


@pytest.fixture
def long_tables(monkeypatch):
    """Tables of more than 600 rows are not held in memory."""
    monkeypatch.setattr(rows, "SAMPLE_ROWS", 300)
    monkeypatch.setattr(rows, "_FEWEST_SAMPLED", 300)
    monkeypatch.setattr("ocrep._files.readers.BLOCK_ROWS", 128)
    monkeypatch.setattr("ocrep._files.row_file._BLOCK_VALUES", 128 * 6)


@pytest.mark.parametrize("form", ["csv", "parquet", "feather"])
def test_a_file_gives_the_model_of_the_frame(form, tmp_path):
    frame = table(400)
    path = tmp_path / f"t.{form}"
    getattr(frame, f"to_{form}")(path, **({"index": False} if form == "csv" else {}))
    wanted = TableRegressor(QUICK, ignore=["kind"], random_state=0).fit(frame.drop(columns="y"), frame["y"])
    found = TableRegressor(QUICK, ignore=["kind"], random_state=0).fit(scan(path, target="y"))
    np.testing.assert_allclose(found.predict(frame), wanted.predict(frame), rtol=1e-9)
    for some in (polars.from_pandas(frame), pa.Table.from_pandas(frame)):
        np.testing.assert_allclose(found.predict(some), wanted.predict(frame), rtol=1e-9)


def test_a_long_table_is_learned_from_all_rows(long_tables, tmp_path):
    frame = table()
    frame.to_csv(tmp_path / "t.csv", index=False)
    new = table(500, seed=1)
    short = TableRegressor(QUICK, ignore=["kind"], random_state=0).fit(frame.drop(columns="y")[:300], frame["y"][:300])
    found = TableRegressor(QUICK, ignore=["kind"], random_state=0).fit(scan(tmp_path / "t.csv", target="y"))
    assert found.score(new, new["y"]) > max(0.85, short.score(new, new["y"]))
    labels = TableClassifier(PinvClassifierCV("quick", random_state=0), ignore=["y"], random_state=0)
    labels.fit(scan(tmp_path / "t.csv", target="kind"))
    assert labels.score(new, new["kind"]) > 0.85
    assert labels.predict_proba(new).shape == (500, 2)


def test_an_estimator_that_needs_all_rows_is_refused_for_a_long_table(long_tables, tmp_path):
    table().to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ValueError, match=r"Ridge\(\) needs all rows in memory: give a frame, or leave model= out"):
        TableRegressor(Ridge(), ignore=["kind"], random_state=0).fit(scan(tmp_path / "t.csv", target="y"))


def test_the_codes_of_a_long_table_do_not_learn_noise(long_tables, tmp_path):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"word": rng.choice([f"word {k}" for k in range(150)], 3000), "x": rng.normal(size=3000)})
    frame["y"] = rng.normal(size=3000)
    frame.to_parquet(tmp_path / "t.parquet")
    model = TableRegressor(QUICK, random_state=0).fit(scan(tmp_path / "t.parquet", target="y"))
    assert model.assessment_["models"]["network"]["r2"] < 0.03
    new = frame.assign(y=rng.normal(size=3000))
    assert model.score(new, new["y"]) < 0.01


def test_weights_and_groups_of_a_long_table_are_columns(long_tables, tmp_path):
    frame = table().drop(columns="kind")
    frame["weight"] = np.arange(N) % 3.0
    frame["group"] = frame["town"]
    frame.to_parquet(tmp_path / "t.parquet")
    model = TableRegressor(QUICK, ignore=["town"], random_state=0)
    model.fit(scan(tmp_path / "t.parquet", target="y", sample_weight="weight", groups="group"))
    assert "weight" not in model.feature_names_in_
    assert model.score(frame, frame["y"]) > 0.3


def test_rare_labels_of_a_long_table_are_known(long_tables, tmp_path):
    frame = table().drop(columns="y")
    frame.loc[[700, 1400], "kind"] = "rare"
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = TableClassifier(PinvClassifierCV("quick", random_state=0), random_state=0)
    model.fit(scan(tmp_path / "t.csv", target="kind"))
    assert model.classes_.tolist() == ["high", "low", "rare"]
    assert np.mean(model.predict(frame) == frame["kind"]) > 0.8


@pytest.mark.parametrize("place", [10, 450, 1400])
def test_a_label_of_one_place_in_a_long_table_is_known(place, long_tables, tmp_path):
    frame = table().drop(columns="y")
    frame.loc[[place, place + 1, place + 2], "kind"] = "rare"
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = TableClassifier(PinvClassifierCV([{"n_hidden": 20}], random_state=0), random_state=0)
    assert "rare" in model.fit(scan(tmp_path / "t.csv", target="kind")).classes_


def test_frames_in_a_stream_and_dask_frames(long_tables):
    dask = pytest.importorskip("dask.dataframe")
    frame = table().drop(columns="kind")
    stream = TableRegressor(QUICK, random_state=0)
    stream.fit(scan(lambda: (frame[start : start + 200] for start in range(0, N, 200)), target="y"))
    parts = dask.from_pandas(frame, npartitions=6, sort=False)
    found = TableRegressor(QUICK, random_state=0).fit(parts.drop(columns="y"), parts["y"])
    assert min(model.score(frame, frame["y"]) for model in (stream, found)) > 0.85
    with pytest.raises(TypeError, match="Dask series"):
        TableRegressor().fit(parts.drop(columns="y"), frame["y"])
    with pytest.raises(ValueError, match="read more than once"):
        TableRegressor().fit(scan((part for part in [frame]), target="y"))
    with pytest.raises(TypeError, match="named columns"):
        TableRegressor().fit(scan(np.eye(4), np.arange(4.0)))


def test_held_out_rows_of_a_long_table_are_not_trained_on(long_tables, tmp_path):
    frame = table().drop(columns="kind")
    frame.to_csv(tmp_path / "t.csv", index=False)
    problem = problem_of_file(tmp_path / "t.csv", "y", Settings(candidates="quick"))
    assert not problem.table.in_memory
    training, held_out = problem.table.divided(0.3, 0)
    held = sum(part.frame.n_rows for part in held_out())
    learned = sum(part.frame.n_rows for part in training.parts())
    assert held + learned == N
    assert held == pytest.approx(0.3 * N, abs=60)
    tested = {round(y, 9) for part in held_out() for y in part.y.to_pylist()}
    assert not tested & {round(y, 9) for y in training.sample.y.to_pylist()}
    trained = train_table(problem)
    assert trained.assessment.n_test == held
    assert trained.assessment.verdict.code in ("good", "linear")


def test_values_of_another_kind_far_down_a_file(long_tables, tmp_path):
    frame = table().drop(columns="kind").astype({"x": object})
    frame.loc[1203, "x"] = "lost"
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match="'x' must hold numbers, as in training, but row 1204 holds 'lost'"):
        TableRegressor(QUICK, random_state=0).fit(scan(tmp_path / "t.csv", target="y"))


@pytest.mark.parametrize("target", ["flag", "kind", "level"])
def test_labels_come_back_as_they_were(target, tmp_path):
    frame = table(200).drop(columns="y").assign(flag=lambda found: found["kind"] == "high")
    frame["level"] = frame["kind"].map({"high": 10, "low": 20})
    frame[["x", "colour", target]].to_parquet(tmp_path / "t.parquet")
    trained = train_table(problem_of_file(tmp_path / "t.parquet", target, Settings(n_hidden=10)))
    predict_file(trained.model, tmp_path / "t.parquet", tmp_path / "p.parquet")
    predicted = pd.read_parquet(tmp_path / "p.parquet")["prediction"]
    assert set(predicted) <= set(frame[target])
    assert predicted.dtype.kind == frame[target].dtype.kind


def test_scores_are_those_of_the_training_part_and_the_model_that_of_all_rows(tmp_path):
    frame = table(300).drop(columns="kind")
    frame.to_csv(tmp_path / "t.csv", index=False)
    problem = problem_of_file(tmp_path / "t.csv", "y", Settings(n_hidden=15))
    stages = []
    both = train_table(problem, progress=lambda stage, done, total: stages.append(stage))
    assert list(dict.fromkeys(stages)) == ["Training on the training part", "Testing", "Training on all rows"]
    tested = train_table(problem, refit=False)
    whole = train_table(problem, test=0)
    assert both.assessment.models == tested.assessment.models
    frame_of, y, _, _ = tested.model._rows(tested.held_out)
    wrong = tested.model.predict(frame_of) - y
    assert tested.assessment.scores["rmse"] == pytest.approx(np.sqrt(np.mean(wrong**2)))
    np.testing.assert_array_equal(both.model.predict(frame), whole.model.predict(frame))
    assert (both.n_train, both.n_rows, whole.assessment) == (210, 300, None)


@pytest.mark.parametrize("n_rows", [400, 2000])
@pytest.mark.parametrize("refit", [False, True])
def test_rows_without_a_target_are_counted_whether_or_not_a_table_is_in_memory(refit, n_rows, long_tables, tmp_path):
    frame = table(n_rows).drop(columns="kind")
    frame.loc[::9, "y"] = np.nan
    known = frame["y"].count()
    frame.to_csv(tmp_path / "t.csv", index=False)
    problem = problem_of_file(tmp_path / "t.csv", "y", Settings(n_hidden=5, drop_missing_target=True))
    assert problem.table.in_memory == (n_rows == 400)
    trained = train_table(problem, refit=refit, boosting=False)
    assert (trained.n_rows, trained.n_dropped) == (known, n_rows - known)
    assert trained.n_train + trained.assessment.n_test == known
    assert diagnose_table(trained).table["n_dropped"] == n_rows - known


def test_models_of_other_origin_predict_files_of_numbers(tmp_path):
    frame = table(100)[["x", "y"]].fillna(0.0)
    frame.to_csv(tmp_path / "t.csv", index=False)
    named = PinvRegressor(5, random_state=0).fit(frame[["x"]], frame["y"])
    assert predict_file(named, tmp_path / "t.csv", tmp_path / "p.csv", digits=17).n_rows == 100
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv")["prediction"], named.predict(frame[["x"]]))
    nameless = PinvRegressor(5, random_state=0).fit(frame[["x"]].to_numpy(), frame["y"])
    with pytest.raises(UsageError, match="does not know the names of its columns"):
        predict_file(nameless, tmp_path / "t.csv", tmp_path / "q.csv")


def test_rows_unlike_those_of_training_are_counted(tmp_path):
    frame = table(300).drop(columns=["kind", "town"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = train_table(problem_of_file(tmp_path / "t.csv", "y", Settings(n_hidden=10)), test=0).model
    new = frame.head(10).copy()
    new.loc[[1, 2], "x"] = 1e6
    new.loc[[2, 3], "colour"] = "pink"
    new.loc[4, "when"] = pd.Timestamp("2090-01-01")
    new.to_csv(tmp_path / "n.csv", index=False)
    found = predict_file(model, tmp_path / "n.csv", tmp_path / "p.csv", interval=0.8)
    assert (found.n_rows, found.n_unlike) == (10, 4)
    assert found.unlike == {"x": 2, "colour": 2, "when": 1}
    predicted = pd.read_csv(tmp_path / "p.csv")
    assert (predicted["lower"] <= predicted["prediction"]).all()
    assert (predicted["prediction"] <= predicted["upper"]).all()


def test_what_a_file_cannot_be_learned_from(tmp_path):
    frame = table(60)[["x", "y"]]
    frame.to_csv(tmp_path / "t.csv", index=False)
    for options, sentence in {
        ("y", ("x",)): "no column to learn from",
        ("y", ("y",)): "is the target",
        ("z", ()): "has no column 'z'",
    }.items():
        target, ignore = options
        with pytest.raises(DataError, match=sentence):
            problem_of_file(tmp_path / "t.csv", target, Settings(ignore=ignore))
    pd.DataFrame({"x": range(1500), "y": [f"n{i}" for i in range(1500)]}).to_csv(tmp_path / "c.csv", index=False)
    with pytest.raises(DataError, match="1,500 different values in 1,500 rows"):
        train_table(problem_of_file(tmp_path / "c.csv", "y", Settings(n_hidden=3)), test=0)
    pd.DataFrame({"x": range(60), "y": [f"1.{i:03d},5" for i in range(60)]}).to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(DataError, match=r"--decimal , --thousands \."):
        problem_of_file(tmp_path / "d.csv", "y", Settings())


def test_fit_table_reads_files_too(tmp_path):
    frame = table(200).drop(columns="kind")
    frame.to_csv(tmp_path / "t.csv", index=False)
    one = ocrep.fit_table(tmp_path / "t.csv", "y", n_hidden=10)
    other = ocrep.fit_table(frame, "y", n_hidden=10)
    np.testing.assert_allclose(one.predict(frame), other.predict(frame), rtol=1e-9)
    with pytest.raises(ValueError, match="name of a column"):
        ocrep.fit_table(tmp_path / "t.csv", frame["y"])


def test_long_padded_texts_are_looked_at_in_linear_time(tmp_path):
    space = " " * 50_000
    texts = {"end": "{i}" + space + "x", "start": space + "{i}x", "percent": "{i} 000,5" + space + "%"}
    columns = {name: [text.format(i=i % 4) for i in range(30)] for name, text in texts.items()}
    pd.DataFrame({**columns, "y": np.arange(30) / 2}).to_csv(tmp_path / "t.csv", index=False)
    (advice,) = problem_of_file(tmp_path / "t.csv", "y", Settings()).advice
    assert advice.problem.startswith("Column 'percent' became text")


def test_how_often_a_csv_file_is_opened(long_tables, tmp_path, monkeypatch):
    """The header, the types, the codes, and all rows: once for a table in memory, of a long one for each reading."""
    opened = []
    real = pa.csv.open_csv
    monkeypatch.setattr(pa.csv, "open_csv", lambda *given, **options: opened.append("rows") or real(*given, **options))
    monkeypatch.setattr(readers, "head_of", lambda *given: opened.append("head") or reading.head_of(*given))
    for n_rows, most in ((400, 1), (1500, 6)):  # the sample; training twice, as a stack is; the test; and all rows
        opened.clear()
        table(n_rows).to_csv(tmp_path / "t.csv", index=False)
        ocrep.fit_table(tmp_path / "t.csv", "y", candidates="quick", ignore=["kind"], boosting=False)
        assert opened.count("head") == 1
        assert opened.count("rows") <= 2 + most


def test_a_regression_learns_from_a_random_sample_also_if_its_target_has_few_values(long_tables, tmp_path):
    """Rows of rare labels are added for classes alone: they would move the mean of a skewed target of whole numbers."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(3000) < 0.05, rng.integers(1, 100, 3000), 0)
    pd.DataFrame({"x": rng.normal(size=3000), "y": y}).to_csv(tmp_path / "t.csv", index=False)
    settings = Settings(candidates="quick")
    trained = train_table(problem_of_file(tmp_path / "t.csv", "y", settings, task="regression"), refit=False)
    assert trained.model.assessment_["models"]["baseline (mean)"]["r2"] > -0.1
    model = TableRegressor(QUICK, random_state=0).fit(scan(tmp_path / "t.csv", target="y"))
    assert abs(np.mean(model.predict(pd.DataFrame({"x": rng.normal(size=500)}))) - y.mean()) < 2.0


def test_codes_that_begin_with_0_are_texts_in_csv_files_too(tmp_path, rng):
    n = 240
    frame = pd.DataFrame(
        {
            "zip": [f"{331 * (i % 60):05d}" for i in range(n)],
            "share": rng.choice(["0", "0.5", "-0.5", "-0.25"], n),
            "at": rng.choice(["00:30", "12:45"], n),
            "x": rng.normal(size=n).round(3),
        }
    )
    frame["label"] = np.where(frame["x"] > 0.3, "01", np.where(frame["x"] < -0.3, "02", "10"))
    frame["y"] = np.sin(np.arange(n) % 60) + frame["x"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    commas = frame.assign(**{name: frame[name].astype(str).str.replace(".", ",") for name in ("share", "x", "y")})
    commas.to_csv(tmp_path / "commas.csv", index=False, sep=";")
    frame[: n // 2].to_csv(tmp_path / "part1.csv", index=False)
    frame[n // 2 :].to_csv(tmp_path / "part2.csv", index=False)
    wanted = TableRegressor(QUICK, ignore=["label"], random_state=0).fit(frame.drop(columns="y"), frame["y"])
    kinds = {column.name: column.kind for column in wanted.coder_.columns_}
    assert kinds == {"zip": "text", "share": "number", "at": "time", "x": "number"}
    for source in ("t.csv", "part*.csv"):
        found = TableRegressor(QUICK, ignore=["label"], random_state=0).fit(scan(tmp_path / source, target="y"))
        np.testing.assert_allclose(found.predict(frame), wanted.predict(frame), rtol=1e-9)
    predict_file(wanted, tmp_path / "t.csv", tmp_path / "p.csv", digits=17)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv")["prediction"], wanted.predict(frame), rtol=1e-9)
    settings = Settings(layer={"n_hidden": 5}, ignore=["y"])
    for name, how in (("t.csv", reading.Reading()), ("commas.csv", reading.Reading(decimal=","))):
        problem = problem_of_file(tmp_path / name, "label", settings, reading=how)
        model = train_table(problem, test=0).model
        assert model.classes_.tolist() == ["01", "02", "10"]
        assert {column.name: column.kind for column in model.coder_.columns_} == kinds


def test_categories_of_dates_are_dates_in_every_file(tmp_path, rng):
    days = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 30, 200), unit="D"))
    frame = pd.DataFrame({"day": days.astype("category"), "x": rng.normal(size=200)})
    frame["y"] = days.dt.day + frame["x"]
    frame.to_feather(tmp_path / "t.feather")
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = TableRegressor(Ridge(), random_state=0).fit(scan(tmp_path / "t.csv", target="y"))
    for source in ("t.csv", "t.feather"):
        fitted = ocrep.fit_table(tmp_path / source, "y", n_hidden=5, test=0)
        assert {column.name: column.kind for column in fitted.coder_.columns_} == {"day": "date", "x": "number"}
        predict_file(model, tmp_path / source, tmp_path / "p.csv", digits=17)
        np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv")["prediction"], model.predict(frame), rtol=1e-9)
