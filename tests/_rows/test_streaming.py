"""The same network from rows in memory, on disk and in streams."""

import dask
import dask.array as da
import h5py
import numpy as np
import polars
import pytest
import zarr
from support.advice import some_advice
from support.pages import run_page
from support.problems import PAPER
from support.rows_on_disk import NAMES, as_blocks, as_dataset, as_glob, cut, smooth_frame
from support.weights import weights_of

from ocrep import PinvClassifier, PinvRegressor, TikhonovClassifier, TikhonovRegressor, rules, scan

N = 3000
RANGE = (-1.0, 1.0)


@pytest.fixture(autouse=True)
def _small_blocks(small_blocks):
    """Blocks so small that 3000 rows make many of them."""
    small_blocks(2**14)


@pytest.fixture(scope="module")
def problem():
    return smooth_frame(N)


def weighted(frame):
    w = np.random.default_rng(1).integers(0, 3, len(frame)).astype(float)
    outliers = frame.assign(w=w)
    outliers.loc[outliers["w"] == 0.0, "a"] = 50.0  # rows that do not count must not widen the range
    return outliers


def labelled(frame, labels=("no", "maybe", "yes")):
    return frame.assign(y=np.asarray(labels, dtype=object)[np.digitize(frame["y"], [-0.3, 0.4])])


def memory_map(frame, folder):
    X = np.memmap(folder / "X.dat", dtype=float, mode="w+", shape=(len(frame), 5))
    X[:] = frame[NAMES]
    X.flush()
    return np.memmap(folder / "X.dat", dtype=float, mode="r", shape=X.shape), frame["y"].to_numpy()


def in_memory(model, frame):
    weight = frame["w"].to_numpy() if "w" in frame else None
    # Rows one after the other, as files and blocks give them: products of columns are summed in another order.
    return model.fit(np.ascontiguousarray(frame[NAMES]), frame["y"].to_numpy(), weight)


def hidden(**options):
    return PinvRegressor(60, random_state=0, **{**PAPER, **options})


def assert_same(model, other, frame, gamma=1e-8, prediction=1e-6):
    assert model.gamma_ == pytest.approx(other.gamma_, rel=gamma)
    X = frame[NAMES]
    one, two = (
        m.decision_function(X if hasattr(m, "feature_names_in_") else X.to_numpy())
        if hasattr(m, "classes_")
        else m.predict(X if hasattr(m, "feature_names_in_") else X.to_numpy())
        for m in (model, other)
    )
    np.testing.assert_allclose(one, two, rtol=prediction, atol=prediction)


READERS = {
    "parquet": as_glob,
    "csv": lambda frame, folder: as_glob(frame, folder, "csv"),
    "tsv": lambda frame, folder: as_glob(frame, folder, "tsv"),
    "feather": lambda frame, folder: as_glob(frame, folder, "feather"),
    "dataset": as_dataset,
    "blocks": lambda frame, folder: scan(as_blocks(frame)),
    "huge block": lambda frame, folder: scan(as_blocks(frame, N)),
    "single rows": lambda frame, folder: scan(as_blocks(frame, 1)),
    "function": lambda frame, folder: scan(lambda: iter(as_blocks(frame))),
    "pandas": lambda frame, folder: scan(
        [frame.iloc[s] for s in cut(N, 500)], target="y", sample_weight="w" if "w" in frame else None
    ),
    "polars": lambda frame, folder: scan(
        [polars.from_pandas(frame.iloc[s]) for s in cut(N, 500)],
        target="y",
        sample_weight="w" if "w" in frame else None,
    ),
    "arrow": lambda frame, folder: scan(
        [pyarrow_table(frame.iloc[s]) for s in cut(N, 500)], target="y", sample_weight="w" if "w" in frame else None
    ),
}


def pyarrow_table(frame):
    import pyarrow

    return pyarrow.Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize("reader", READERS)
def test_rows_that_can_be_read_again_give_the_bits_of_the_array(problem, reader, tmp_path):
    expected = in_memory(hidden(), problem)
    assert 3e3 < expected.condition_number_ < 3e4
    model = hidden().fit(READERS[reader](problem, tmp_path))
    np.testing.assert_array_equal(weights_of(model), weights_of(expected))
    assert model.gamma_ == expected.gamma_
    assert_same(model, expected, problem)


@some_advice
@pytest.mark.parametrize("reader", ["parquet", "csv", "dataset", "blocks", "pandas", "polars", "arrow"])
def test_weights_count_and_rows_of_zero_weight_do_not(problem, reader, tmp_path):
    frame = weighted(problem)
    expected = in_memory(hidden(gamma="gcv"), frame)
    model = hidden(gamma="gcv").fit(READERS[reader](frame, tmp_path))
    np.testing.assert_array_equal(weights_of(model), weights_of(expected))
    assert expected.layer_.center_[0] < 1.0


def test_arrays_on_disk_are_read_slice_by_slice(problem, tmp_path):
    expected = hidden().fit(problem[NAMES].to_numpy(), problem["y"].to_numpy())
    X, y = memory_map(problem, tmp_path)
    np.testing.assert_array_equal(weights_of(hidden().fit(X, y)), weights_of(expected))
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["X"], file["y"] = X, y
        np.testing.assert_array_equal(weights_of(hidden().fit(file["X"], file["y"])), weights_of(expected))
        np.testing.assert_array_equal(weights_of(hidden().fit(scan(file["X"], file["y"]))), weights_of(expected))
        predicted = np.concatenate(list(expected.predict_blocks(file["X"])))
    np.testing.assert_array_equal(predicted, expected.predict(X))
    stored = zarr.open(tmp_path / "rows.zarr", mode="w", shape=X.shape, chunks=(700, 5), dtype="f8")
    stored[:] = X
    np.testing.assert_array_equal(weights_of(hidden().fit(stored, y.tolist())), weights_of(expected))
    weight = np.arange(N) % 3
    by_weight = hidden().fit(np.asarray(X), y, weight)
    np.testing.assert_array_equal(weights_of(hidden().fit(X, y, weight)), weights_of(by_weight))
    np.testing.assert_array_equal(weights_of(hidden().fit(X, y, 2.0)), weights_of(hidden().fit(np.asarray(X), y, 2.0)))


def test_whole_numbers_and_float32_on_disk_are_not_converted_whole(problem, tmp_path):
    whole = np.memmap(tmp_path / "whole.dat", dtype=np.int16, mode="w+", shape=(N, 5))
    whole[:] = np.round(100 * problem[NAMES])
    y = problem["y"].to_numpy()
    np.testing.assert_array_equal(weights_of(hidden().fit(whole, y)), weights_of(hidden().fit(np.array(whole), y)))
    single = np.memmap(tmp_path / "single.dat", dtype=np.float32, mode="w+", shape=(N, 5))
    single[:] = problem[NAMES]
    model = hidden().fit(single, y)
    np.testing.assert_array_equal(weights_of(model), weights_of(hidden().fit(np.array(single), y)))
    assert next(model.predict_blocks(single)).dtype == np.float32


def fit_shuffled(model, frame):
    parts = as_blocks(frame)
    for i in np.random.default_rng(0).permutation(len(parts)):
        model.partial_fit(*parts[i])
    return model


# The cluster of processes, which is one source more, is in test_dask_cluster.py.
READ_TWICE = {
    "memory map": lambda model, frame, folder: model.fit(*memory_map(frame, folder)),
    "Parquet glob": lambda model, frame, folder: model.fit(as_glob(frame, folder)),
    "list of blocks": lambda model, frame, folder: model.fit(scan(as_blocks(frame))),
    "Dask on threads": lambda model, frame, folder: model.fit(
        *(da.from_array(frame[name].to_numpy(), chunks=700) for name in (NAMES, "y"))
    ),
}
READ_ONCE = {
    "generator": lambda model, frame, folder: model.fit(scan(part for part in as_blocks(frame))),
    "partial_fit in another order": lambda model, frame, folder: fit_shuffled(model, frame),
}
ALL = {**READ_TWICE, **READ_ONCE}
TABLE = [(source, RANGE) for source in ALL] + [(source, "minmax") for source in READ_TWICE]


@pytest.mark.parametrize(("source", "scale"), TABLE, ids=str)
def test_every_source_gives_the_network_of_the_array(problem, tmp_path, source, scale):
    expected = in_memory(hidden(input_scaling=scale), problem)
    assert 3e3 < expected.condition_number_ < 3e4
    with dask.config.set(scheduler="threads", num_workers=2):
        model = ALL[source](hidden(input_scaling=scale), problem, tmp_path)
    assert_same(model, expected, problem)


def test_a_stream_takes_the_range_of_its_first_block_as_partial_fit_does(problem):
    parts = as_blocks(problem)
    streamed = hidden().fit(scan(iter(parts)))
    model = hidden()
    for part in parts:
        model.partial_fit(*part)
    np.testing.assert_array_equal(streamed.layer_.center_, model.layer_.center_)
    assert_same(streamed, model, problem)
    assert streamed.layer_.center_[0] != in_memory(hidden(), problem).layer_.center_[0]


@pytest.mark.parametrize("gamma", ["kfold", "loo", rules.KFold(n_folds=4, seed=3)])
@pytest.mark.parametrize("rows", [1, 97, N])
def test_folds_and_left_out_rows_do_not_depend_on_the_cutting(problem, gamma, rows):
    expected = in_memory(hidden(gamma=gamma), problem)
    model = hidden(gamma=gamma).fit(scan(as_blocks(problem, rows)))
    assert model.gamma_ == expected.gamma_
    np.testing.assert_array_equal(weights_of(model), weights_of(expected))


def test_a_stream_keeps_folds(problem):
    model = hidden(gamma="kfold", input_scaling=RANGE).fit(scan(iter(as_blocks(problem))))
    # Rows that come once are factored by reflections.
    expected = in_memory(hidden(gamma="kfold", input_scaling=RANGE, solver="qr"), problem)
    np.testing.assert_array_equal(weights_of(model), weights_of(expected))
    # Products round in another way, and a searched γ is known to √ε only: its criterion is flat at the minimum.
    assert_same(model, in_memory(hidden(gamma="kfold", input_scaling=RANGE), problem), problem, gamma=1e-8)


def test_the_size_is_chosen_as_on_arrays(problem, tmp_path):
    options = {"n_hidden": "auto", "max_hidden": 12, "random_state": 0}
    expected = in_memory(PinvRegressor(**options), problem)
    model = PinvRegressor(**options).fit(as_glob(problem, tmp_path))
    assert model.n_hidden_ == expected.n_hidden_
    np.testing.assert_array_equal(weights_of(model), weights_of(expected))


@pytest.mark.parametrize("factor", ["gram", "qr"])
def test_every_route_reads_files(problem, tmp_path, factor):
    expected = in_memory(hidden(solver=factor), problem)
    np.testing.assert_array_equal(
        weights_of(hidden(solver=factor).fit(as_glob(problem, tmp_path))), weights_of(expected)
    )


def test_several_targets(problem, tmp_path):
    frame = problem.assign(z=problem["a"] ** 2)
    expected = hidden().fit(frame[NAMES], frame[["y", "z"]])
    frame.to_parquet(tmp_path / "rows.parquet")
    model = hidden().fit(scan(tmp_path / "rows.parquet", target=["y", "z"]))
    np.testing.assert_array_equal(weights_of(model), weights_of(expected))
    one = hidden().fit(scan([frame], target=["y"], columns=NAMES))
    assert weights_of(one).shape == (1, 60)


@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"class_weight": {"no": 0.0, "yes": 3.0}}])
@pytest.mark.parametrize("reader", ["parquet", "csv", "feather", "dataset", "blocks", "pandas"])
def test_labels_are_found_before_training(problem, tmp_path, reader, options):
    frame = labelled(problem)
    frame.loc[frame["y"] == "no", "b"] *= 2.0  # a class of no weight must not widen the range
    expected = in_memory(PinvClassifier(40, random_state=0, **options), frame)
    model = PinvClassifier(40, random_state=0, **options).fit(READERS[reader](frame, tmp_path))
    assert model.classes_.tolist() == ["maybe", "no", "yes"]
    np.testing.assert_allclose(
        weights_of(model), weights_of(expected), rtol=1e-6, atol=1e-6 * np.abs(weights_of(expected)).max()
    )
    assert_same(model, expected, frame)


@pytest.mark.parametrize("reader", ["parquet", "csv"])
def test_whole_labels_stay_whole_numbers(problem, tmp_path, reader):
    frame = labelled(problem, (0, 1, 2)).astype({"y": int})
    model = TikhonovClassifier().fit(READERS[reader](frame, tmp_path))
    assert model.classes_.dtype.kind == "i"
    np.testing.assert_array_equal(model.coef_, in_memory(TikhonovClassifier(), frame).coef_)


def test_weighted_labels_calibrated_on_left_out_rows(problem, tmp_path):
    frame = weighted(labelled(problem, ("u", "u", "v")))
    options = {"n_hidden": 20, "random_state": 0, "calibrate": "loo", "class_weight": "balanced"}
    expected = in_memory(PinvClassifier(**options), frame)
    model = PinvClassifier(**options).fit(as_glob(frame, tmp_path))
    np.testing.assert_allclose(
        model.predict_proba(frame[NAMES]), expected.predict_proba(frame[NAMES].to_numpy()), atol=1e-8
    )


@pytest.mark.parametrize("class_weight", [None, {"yes": 2.0}])
def test_a_stream_of_labels_needs_the_classes(problem, class_weight):
    frame = labelled(problem)
    model = PinvClassifier(40, random_state=0, input_scaling=RANGE, class_weight=class_weight)
    expected = in_memory(PinvClassifier(40, random_state=0, input_scaling=RANGE, class_weight=class_weight), frame)
    model.fit(scan(iter(as_blocks(frame)), classes=["yes", "no", "maybe"]))
    assert_same(model, expected, frame)
    # Given classes save the pass that would find them.
    counts = []
    again = scan(as_blocks(frame), classes=["yes", "no", "maybe"], progress=lambda done, total: counts.append(done))
    PinvClassifier(40, random_state=0, input_scaling=RANGE).fit(again)
    assert counts.count(N) == 1


def test_a_class_that_is_given_but_absent_is_known(problem, tmp_path):
    frame = labelled(problem)
    source = as_glob(frame, tmp_path, classes=["maybe", "never", "no", "yes"])
    model = PinvClassifier(20, random_state=0, class_weight="balanced").fit(source)
    assert model.classes_.tolist() == ["maybe", "never", "no", "yes"]


def test_own_features_are_learned_from_files(problem, tmp_path):
    expected = in_memory(TikhonovRegressor(), problem)
    model = TikhonovRegressor().fit(as_glob(problem, tmp_path))
    np.testing.assert_array_equal(weights_of(model), weights_of(expected))
    assert model.feature_names_in_.tolist() == NAMES


@some_advice
def test_sparse_blocks_stay_sparse(problem):
    from scipy import sparse

    X, y = sparse.random_array((N, 8), density=0.2, rng=0, format="csr"), problem["y"].to_numpy()
    expected = PinvRegressor(30, random_state=0).fit(X, y)
    for source in (scan([(X[s], y[s]) for s in cut(N, 331)]), scan(X, y)):
        model = PinvRegressor(30, random_state=0).fit(source)
        np.testing.assert_array_equal(weights_of(model), weights_of(expected))
    np.testing.assert_allclose(np.concatenate(list(model.predict_blocks(X))), model.predict(X), rtol=1e-12)


def test_statistics_of_parquet_files_save_the_first_pass(problem, tmp_path):
    seen = []
    source = as_glob(problem, tmp_path, progress=lambda done, total: seen.append((done, total)))
    hidden().fit(source)
    assert seen[-1] == (N, N)
    assert [done for done, _ in seen].count(N) == 1
    seen.clear()
    (tmp_path / "csv").mkdir()
    hidden().fit(as_glob(problem, tmp_path / "csv", "csv", progress=lambda done, total: seen.append((done, total))))
    assert [done for done, _ in seen].count(N) == 2
    assert seen[-1] == (N, None)


def test_predictions_come_block_by_block(problem, tmp_path):
    frame, X = labelled(problem), problem[NAMES]
    regressor, classifier = hidden().fit(X, problem["y"]), PinvClassifier(30, random_state=0).fit(X, frame["y"])
    files = as_glob(frame, tmp_path)
    sources = {
        "files": (files, 3),
        "files without targets named": (scan(str(tmp_path / "*.parquet")), 3),
        "frames": ([frame.iloc[s] for s in cut(N, 700)], 5),
        "a frame": (frame, 1),
        "a frame in a scan": (scan(frame), 1),
        "arrays": ([X.iloc[s].to_numpy() for s in cut(N, 1000)], 3),
        "an array": (X.to_numpy(), 1),
        "pairs": (scan(as_blocks(problem, 1000)), 3),
    }
    for source, n_blocks in sources.values():
        numbers, labels = (list(model.predict_blocks(source)) for model in (regressor, classifier))
        assert len(numbers) == len(labels) == n_blocks
        np.testing.assert_allclose(np.concatenate(numbers), regressor.predict(X), rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(np.concatenate(labels), classifier.predict(X))


def test_the_page_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_page("docs/out-of-core.md", capsys) == 6
