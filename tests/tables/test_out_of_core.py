"""Training block by block equals the pipeline of scikit-learn on all rows in memory, and holds few blocks at a time."""

import json
import os
import re
import warnings
import weakref

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from support.program_tables import inputs_of, targets_of

from ocrep import PinvClassifier, PinvRegressor
from ocrep._files.formats import DataError
from ocrep._files.row_file import FileBlock, RowFile
from ocrep.cli.running import run
from ocrep.tables.coding import MISSING, TablePart, split_problem
from ocrep.tables.prediction import predict_file
from ocrep.tables.problem import read_problem
from ocrep.tables.training import Settings, known_texts, prepare, train

N = 700


def table_of(seed=0):
    """Numbers with and without gaps, booleans, texts of which some come late, and targets of three kinds."""
    rng = np.random.default_rng(seed)
    late = np.where(np.arange(N) < N - 90, rng.choice(["a", "b"], N), rng.choice(["a", "c", "d"], N))
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=N),
            "gaps": np.where(rng.random(N) < 0.3, np.nan, rng.gamma(2.0, size=N)),
            "fresh": rng.random(N) < 0.3,
            "maybe": pd.array(rng.choice([True, False, None], N), dtype="boolean"),
            "late": late,
            "size": rng.choice(["S", "M", "L", None], N),
        }
    )
    signal = np.sin(2 * frame["x"]) + frame["gaps"].fillna(1.0) * (late == "a") + 0.5 * frame["fresh"]
    frame["y"] = signal + 0.1 * rng.normal(size=N)
    frame["label"] = np.array(["low", "mid", "high"])[(signal > 0.4).astype(int) + (signal > 1.4)]
    frame["grade"] = (signal > 1.0).astype(int)
    return frame


def read(path, target, **options):
    """The problem of a file that is read in many small blocks."""
    return read_problem(RowFile(path, block_rows=64), target, **options)


def write(frame, path):
    (frame.to_csv if path.suffix == ".csv" else frame.to_parquet)(path, index=False)
    return path


def in_memory(kinds, network, X, y):
    """The pipeline that scikit-learn fits to all rows at once."""
    texts = [name for name, kind in kinds.items() if kind == "text"]
    numbers = [name for name in kinds if name not in texts]
    orders = []
    for name in texts:
        found = X[name].fillna(MISSING)
        most = found.mode()[0]  # of several the first in the alphabet
        orders.append([most, *sorted(set(found) - {most})])
    fill = SimpleImputer(strategy="constant", fill_value=MISSING)
    coded = OneHotEncoder(categories=orders, drop="first", handle_unknown="ignore")
    steps = [
        ("numbers", SimpleImputer(strategy="median", keep_empty_features=True), numbers),
        ("texts", Pipeline([("fill", fill), ("one_hot", coded)]), texts),
    ]
    columns = ColumnTransformer([step for step in steps if step[2]], verbose_feature_names_out=False)
    return Pipeline([("columns", columns), ("network", network)]).fit(X, y)


def assert_same_transformer(columns, wanted):
    assert columns.sparse_output_ == wanted.sparse_output_
    for name, step in wanted.named_transformers_.items():
        if name == "numbers":
            np.testing.assert_array_equal(columns.named_transformers_[name].statistics_, step.statistics_)
        else:
            found = columns.named_transformers_[name]["one_hot"].categories_
            assert [texts.tolist() for texts in found] == [texts.tolist() for texts in step["one_hot"].categories_]
    assert columns.get_feature_names_out().tolist() == wanted.get_feature_names_out().tolist()


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("n_workers", [1, 2])
@pytest.mark.parametrize(
    ("target", "gamma"), [("y", "ocrep"), ("y", "kfold"), ("y", "loo"), ("label", "gcv"), ("grade", "ocrep_cv")]
)
def test_it_equals_the_pipeline_in_memory(form, n_workers, target, gamma, tmp_path, monkeypatch):
    monkeypatch.setattr("ocrep._linalg.parallel._blas_threads", lambda: n_workers)
    frame = table_of().drop(columns={"y", "label", "grade"} - {target})
    problem = read(write(frame, tmp_path / f"rows.{form}"), target)
    assert list(problem.kinds.values()) == ["number", "number", "boolean", "boolean", "text", "text"]
    found = train(problem, Settings(n_hidden=12, gamma=gamma, calibrate=False, seed=2), test=0).model
    network = PinvRegressor if target == "y" else PinvClassifier
    X = inputs_of(problem)
    wanted = in_memory(problem.kinds, network(12, gamma=gamma, random_state=2), X, frame[target])
    assert_same_transformer(found[0], wanted[0])
    assert found[-1].gamma_ == pytest.approx(wanted[-1].gamma_, rel=1e-8)
    if target == "y":
        np.testing.assert_allclose(found.predict(X), wanted.predict(X), rtol=1e-10, atol=1e-10)
    else:
        outputs = found.decision_function(X)
        np.testing.assert_allclose(outputs, wanted.decision_function(X), rtol=1e-10, atol=1e-10)
        assert found.classes_.tolist() == wanted.classes_.tolist()


@pytest.mark.parametrize("gamma", ["loo", "ocrep_cv"])
def test_of_many_rows_a_sample_teaches_probabilities_and_all_else_is_the_same(gamma, tmp_path):
    """More than 50,000 rows, against a network that is fitted and calibrated on all of them in memory."""
    frame = pd.concat([table_of(seed) for seed in range(80)], ignore_index=True).drop(columns=["y", "grade"])
    problem = read_problem(write(frame, tmp_path / "rows.parquet"), "label")
    model = train(problem, Settings(n_hidden=12, gamma=gamma, class_weight="balanced"), test=0).model
    sampled = model[-1]
    assert type(sampled) is PinvClassifier
    whole = PinvClassifier(12, gamma=gamma, class_weight="balanced", calibrate="loo", random_state=0)
    whole.fit(model[0].transform(inputs_of(problem)), frame["label"])
    assert sampled.get_params() == whole.get_params()
    assert sampled.gamma_ == pytest.approx(whole.gamma_, rel=1e-9)
    np.testing.assert_allclose(sampled.output_coef_, whole.output_coef_, rtol=1e-6, atol=1e-9)
    slopes = sampled.calibrator_.slope, whole.calibrator_.slope
    assert not np.array_equal(*slopes)
    np.testing.assert_allclose(*slopes, atol=0.5)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_held_out_score_equals_that_of_the_pipeline_in_memory(form, tmp_path):
    frame = table_of().drop(columns=["label", "grade"])
    problem = read(write(frame, tmp_path / f"rows.{form}"), "y")
    found = train(problem, Settings(n_hidden=12, seed=5), test=0.4, refit=False)
    training, held_out = split_problem(problem, 0.4, seed=5)
    of_training = inputs_of(problem, training.rows), targets_of(training.rows)
    wanted = in_memory(problem.kinds, PinvRegressor(12, random_state=5), *of_training)
    assert_same_transformer(found.model[0], wanted[0])
    wrong = wanted.predict(inputs_of(problem, held_out)) - targets_of(held_out)
    assert found.scores["rmse"] == pytest.approx(np.sqrt(np.mean(wrong**2)), rel=1e-9)
    assert (found.n_train, found.n_test) == (420, 280)


def test_the_inputs_are_those_of_the_transformer(tmp_path):
    frame = table_of().drop(columns=["label", "grade"])
    for words, is_sparse in ((0, False), (40, True)):
        frame["words"] = [f"w{i % (words + 1)}" for i in range(N)]
        problem = read(write(frame, tmp_path / "rows.parquet"), "y")
        training, held_out = split_problem(problem, 0.9, seed=0)  # so that some texts are not seen in training
        assert training.coding.transformer.sparse_output_ == is_sparse
        for rows in (training.rows, held_out):
            blocks = [training.coding.inputs(found) for found in rows.blocks()]
            X = np.concatenate([X.toarray() if is_sparse else X for X in blocks])
            dense = np.concatenate([training.coding.inputs(found, dense=True) for found in rows.blocks()])
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Found unknown categories")
                wanted = training.coding.transformer.transform(inputs_of(problem, rows))
            np.testing.assert_array_equal(X, wanted.toarray() if is_sparse else wanted)
            np.testing.assert_array_equal(X, dense)
        low, high = training.coding.range
        X = np.concatenate([training.coding.inputs(found, dense=True) for found in training.rows.blocks()])
        np.testing.assert_array_equal([low, high], [X.min(axis=0), X.max(axis=0)])


def test_float32_columns_are_learned_as_float32(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(N, 2)).astype(np.float32)
    values[::7, 1] = np.nan
    frame = pd.DataFrame(values, columns=["a", "b"]).assign(flag=rng.random(N) < 0.5, y=values[:, 0] ** 2)
    problem = read(write(frame, tmp_path / "rows.parquet"), "y")
    coding = TablePart.of(problem.rows, problem.survey).coding
    X = inputs_of(problem)
    wanted = in_memory(problem.kinds, PinvRegressor(9, random_state=0), X, frame["y"])
    assert_same_transformer(coding.transformer, wanted[0])
    found = coding.inputs(next(problem.rows.blocks()))
    assert found.dtype == wanted[0].transform(X).dtype == np.float32
    mixed = read(write(frame.assign(a=frame["a"].astype(float)), tmp_path / "mixed.parquet"), "y")
    assert TablePart.of(mixed.rows, mixed.survey).coding.inputs(next(mixed.rows.blocks())).dtype == np.float64


def test_a_column_that_is_empty_in_the_training_part_is_filled_with_zeros(tmp_path):
    x = np.linspace(0, 1, 20)
    for place in range(20):
        rare = np.full(20, np.nan)
        rare[place] = 7.0
        problem = read(
            write(pd.DataFrame({"x": x, "rare": rare, "y": x**2}), tmp_path / f"r{place}.csv"), "y", task="regression"
        )
        training, held_out = split_problem(problem, 0.3, seed=0)
        if place in [int(row) for found in held_out.blocks() for row in found.row_numbers()]:
            break
    X, _, X_test, _ = prepare(problem, test=0.3, seed=0)
    assert (X[:, 1] == 0).all()
    assert sorted(X_test[:, 1]) == [*[0] * 5, 7]
    assert (training.coding.range[0][1], training.coding.range[1][1]) == (0.0, 0.0)
    assert np.isfinite(train(problem, Settings(n_hidden=3)).scores["rmse"])


def test_rows_without_a_target_are_left_out_everywhere(tmp_path):
    frame = table_of().drop(columns=["label", "grade"])
    frame.loc[5:300, "y"] = np.nan
    frame.loc[5:300, "gaps"] = 1e6
    frame.loc[5:300, "size"] = "none"
    problem = read(write(frame, tmp_path / "gaps.csv"), "y", drop_missing_target=True)
    clean = read(write(frame.dropna(subset=["y"]), tmp_path / "clean.csv"), "y")
    assert (problem.n_rows, problem.n_dropped) == (N - 296, 296)
    found, wanted = (train(one, Settings(n_hidden=10)) for one in (problem, clean))
    assert found.scores == pytest.approx(wanted.scores, rel=1e-9)
    X = inputs_of(clean)
    np.testing.assert_allclose(found.model.predict(X), wanted.model.predict(X), rtol=1e-9)


def test_at_most_a_few_blocks_are_alive(tmp_path):
    frame = pd.concat([table_of(seed) for seed in range(20)]).drop(columns=["label", "grade"])
    alive, most = weakref.WeakSet(), []

    class Counted(FileBlock):
        __slots__ = ("__weakref__",)

    class CountedFile(RowFile):
        def blocks(self, kinds):
            for block in super().blocks(kinds):
                copy = Counted(block.start, block.n_rows, block.columns)
                alive.add(copy)
                del block
                most.append(len(alive))
                yield copy
                del copy

    file = CountedFile(write(frame, tmp_path / "rows.parquet"), block_rows=64)
    trained = train(read_problem(file, "y"), Settings(n_hidden=10, gamma="kfold"))
    assert trained.n_train + trained.n_test == len(frame)
    assert len(most) >= 5 * len(frame) / 64  # two surveys, two trainings and a test
    assert max(most) <= 12  # two workers with two blocks that wait each, and those at work; one pass has 219


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_file_that_changes_between_two_passes(form, tmp_path):
    frame = table_of().drop(columns=["label", "grade"])
    path = write(frame, tmp_path / f"rows.{form}")
    problem = read(path, "y")
    write(frame[: N - 1], path)
    with pytest.raises(DataError, match=rf"rows\.{form} was changed while it was read: start again"):
        train(problem, Settings(n_hidden=5), test=0)


def test_other_rows_of_the_same_size_and_time_are_noticed(tmp_path):
    frame = table_of()[["x", "late", "y"]]
    path = write(frame, tmp_path / "rows.csv")
    problem = read(path, "y")
    when = os.stat(path)
    text = path.read_text().splitlines()
    x, late, y = text[5].split(",")
    text[5] = f"{x}{'0' * len(y)},{late},"  # no target, and as many letters
    path.write_text("\n".join(text) + "\n")
    os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))
    with pytest.raises(DataError, match="was changed while it was read"):
        train(problem, Settings(n_hidden=5), test=0)


def test_a_file_that_fails_in_the_middle_is_named_with_its_row(tmp_path):
    frame = pd.concat([table_of(seed) for seed in range(4)])[["x", "y"]]
    path = tmp_path / "bad.parquet"
    frame.to_parquet(path, row_group_size=500, write_page_checksum=True)
    group = pq.read_metadata(path).row_group(3).column(0)
    content = bytearray(path.read_bytes())
    content[group.data_page_offset + 200] ^= 255
    path.write_bytes(bytes(content))
    text = write(frame, tmp_path / "bad.csv").read_text().splitlines()
    text[1234] += ",1"
    (tmp_path / "bad.csv").write_text("\n".join(text) + "\n")
    for name, words in (
        ("bad.parquet", "bad.parquet cannot be read as Parquet after row 1,4"),
        ("bad.csv", "bad.csv, line 1235: it has 3 values, but the header has 2 columns."),
    ):
        with pytest.raises(DataError, match=re.escape(words)):
            read(tmp_path / name, "y")


def test_json_and_predictions_of_a_file_in_many_blocks(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = pd.concat([table_of(seed) for seed in range(50)]).drop(columns=["y", "grade"])  # two blocks
    write(frame, tmp_path / "rows.parquet")
    asked = ["fit", "rows.parquet", "-t", "label", "-o", "m.skops", "--n-hidden", "20", "--gamma", "gcv", "--json"]
    assert run([*asked, "--calibrate"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["n_train"], told["n_test"]) == (24_500, 10_500)
    assert told["scores"]["error"] < told["scores"]["baseline_error"]
    assert told["inputs"]["late"] == "text"
    assert run(["predict", "m.skops", "rows.parquet", "--proba", "-o", "p.parquet"]) == 0
    probabilities = pd.read_parquet("p.parquet").filter(like="probability_")
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


def test_categories_of_a_file_are_texts_whatever_their_codes(tmp_path):
    """Codes of eight bits with all 128 numbers taken, of which none is left for a missing value."""
    words = [f"w{i:03d}" for i in range(128)]
    rng = np.random.default_rng(0)
    codes = pa.array(rng.integers(0, 128, 1000).astype(np.int8), mask=rng.random(1000) < 0.1)
    texts = pa.DictionaryArray.from_arrays(codes, pa.array(words))
    y = np.array([0 if i is None else i % 7 for i in codes.to_pylist()]) + 0.1 * rng.normal(size=1000)
    path = tmp_path / "coded.feather"
    pa.feather.write_feather(pa.table({"w": texts, "y": y}), str(path), compression="uncompressed")
    problem = read(path, "y")
    trained = train(problem, Settings(n_hidden=140, gamma="gcv"), test=0)
    assert len(trained.model[0].get_feature_names_out()) == 128
    predict_file(trained.model, path, tmp_path / "p.csv")
    assert np.corrcoef(pd.read_csv(tmp_path / "p.csv")["prediction"], y)[0, 1] > 0.85


def test_the_most_frequent_text_stands_for_texts_that_were_not_seen(tmp_path):
    """Its column would follow from the others: with a constant and a direct link, H would be singular."""
    frame = table_of().drop(columns=["label", "grade"])
    problem = read(write(frame, tmp_path / "rows.csv"), "y")
    model = train(problem, Settings(n_hidden=10), test=0).model
    orders = {name: texts.tolist() for name, texts in known_texts(model).items()}
    assert {name: texts[0] for name, texts in orders.items()} == {
        name: frame[name].fillna(MISSING).mode()[0] for name in ("late", "size")
    }
    assert all(texts[1:] == sorted(texts[1:]) for texts in orders.values())
    linked = PinvRegressor(10, direct_link=True, fit_intercept=True)
    linked.fit(model[0].transform(inputs_of(problem)), frame["y"])
    assert linked.rank_ == linked.output_coef_.shape[-1]
    unseen, known = (frame.assign(late=text)[:5] for text in ("never seen", orders["late"][0]))
    write(unseen, tmp_path / "unseen.csv")
    write(known, tmp_path / "known.csv")
    for name in ("unseen", "known"):
        predict_file(model, tmp_path / f"{name}.csv", tmp_path / f"{name}.out.csv", allow_unseen=True)
    assert (tmp_path / "unseen.out.csv").read_text() == (tmp_path / "known.out.csv").read_text()
