"""Dask collections on threads: the model that the same rows give in memory, lazy predictions, and clear errors."""

import ast
from pathlib import Path

import cloudpickle
import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.delayed import delayed
from scipy import sparse
from sklearn.exceptions import NotFittedError
from support.folds import fold_numbers
from support.pages import run_page
from support.problems import smooth_problem
from support.tables import INPUTS, table_of_rows
from support.weights import weights_of

import ocrep
from ocrep import PinvClassifier, PinvRegressor, TikhonovClassifier, TikhonovRegressor, rules

N = 1200
KNOWN = (500, 0, 37, 1, 662)  # any height, zero included
GIVEN = (-1.0, 1.0)


@pytest.fixture(autouse=True)
def on_threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


@pytest.fixture(scope="module")
def rows():
    return table_of_rows(N)


def arrays(frame, *columns, chunks=KNOWN, unknown=False):
    """Columns as Dask arrays in these chunks."""
    made = []
    for name in columns:
        values = frame[name].to_numpy()
        array = da.from_array(values, chunks=(chunks, *(2,) * (values.ndim - 1)))
        if unknown:
            array = array.rechunk({1: -1}) if array.ndim == 2 else array
            array = array.map_blocks(lambda block: block, dtype=array.dtype)
            array._chunks = ((np.nan,) * len(chunks), *array.chunks[1:])
        made.append(array)
    return made


def frames(frame, *columns, chunks=KNOWN):
    """Columns of a Dask dataframe with these partitions, of unknown height."""
    edges = np.cumsum([0, *chunks])
    table = dd.from_map(
        lambda i: frame.iloc[edges[i] : edges[i + 1]], range(len(chunks)), meta=frame.iloc[:0], enforce_metadata=False
    )
    return [table[name] for name in columns]


WAYS = {
    "array": arrays,
    "array of unknown heights": lambda *args: arrays(*args, unknown=True),
    "dataframe": frames,
}


@pytest.fixture(params=WAYS.values(), ids=list(WAYS))
def collections(request):
    return request.param


def network(task=PinvRegressor, **options):
    return task(**{"n_hidden": 30, "random_state": 0, **options})


# --- the same model --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["minmax", GIVEN, None], ids=str)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_network_as_in_memory(rows, collections, scale, fit_intercept, weighted):
    model = network(input_scaling=scale, fit_intercept=fit_intercept)
    weight = ["weight"] if weighted else []
    here = network(input_scaling=scale, fit_intercept=fit_intercept).fit(
        rows[INPUTS].to_numpy(), rows["y"], *(rows[w] for w in weight)
    )
    X, *others = collections(rows, INPUTS, "y", *weight)
    model.fit(X, *others)
    assert 1e3 < here.condition_number_ < 1e5
    np.testing.assert_allclose(model.gamma_, here.gamma_, rtol=1e-8)
    np.testing.assert_allclose(model.predict(X).compute(), here.predict(rows[INPUTS].to_numpy()), atol=1e-6)
    assert model.factor_.counts.n_rows == here.factor_.counts.n_rows
    assert model.spectrum_.n == here.spectrum_.n


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"no": 2.0, "some": 0.0}], ids=str)
@pytest.mark.parametrize("label", ["label", "number"])
def test_the_same_classifier_as_in_memory(rows, collections, weighted, class_weight, label):
    class_weight = {0: 2.0} if isinstance(class_weight, dict) and label == "number" else class_weight
    weight = ["weight"] if weighted else []
    here = network(PinvClassifier, class_weight=class_weight).fit(
        rows[INPUTS].to_numpy(), rows[label], *(rows[w] for w in weight)
    )
    X, *others = collections(rows, INPUTS, label, *weight)
    model = network(PinvClassifier, class_weight=class_weight).fit(X, *others)
    np.testing.assert_array_equal(model.classes_, here.classes_)
    np.testing.assert_allclose(model.gamma_, here.gamma_, rtol=1e-8)
    outputs, labels = model.decision_function(X), model.predict(X)
    np.testing.assert_allclose(outputs.compute(), here.decision_function(rows[INPUTS].to_numpy()), atol=1e-6)
    np.testing.assert_array_equal(labels.compute(), here.predict(rows[INPUTS].to_numpy()))
    assert labels.dtype == here.classes_.dtype


def test_a_class_of_weight_zero_does_not_widen_the_range(rows, collections):
    rows = rows.assign(a=np.where(rows["label"] == "some", 100.0, rows["a"]))
    X, y = collections(rows, INPUTS, "label")
    here = network(PinvClassifier, class_weight={"some": 0.0}).fit(rows[INPUTS].to_numpy(), rows["label"])
    model = network(PinvClassifier, class_weight={"some": 0.0}).fit(X, y)
    np.testing.assert_array_equal(model.layer_.scale_, here.layer_.scale_)
    np.testing.assert_allclose(model.gamma_, here.gamma_, rtol=1e-8)


def test_several_targets(rows, collections):
    X, T = collections(rows, INPUTS, ["y", "weight"])
    here = network(direct_link=True).fit(rows[INPUTS].to_numpy(), rows[["y", "weight"]])
    model = network(direct_link=True).fit(X, T)
    predicted = model.predict(X)
    assert predicted.shape[1] == 2
    np.testing.assert_allclose(predicted.compute(), here.predict(rows[INPUTS].to_numpy()), atol=1e-6)
    np.testing.assert_allclose(
        model.score(X, T), here.score(rows[INPUTS].to_numpy(), rows[["y", "weight"]]), rtol=1e-10
    )


@pytest.mark.parametrize(("task", "target"), [(TikhonovRegressor, "y"), (TikhonovClassifier, "label")])
def test_own_features(rows, collections, task, target):
    X, y = collections(rows, INPUTS, target)
    here, model = task("ocrep").fit(rows[INPUTS].to_numpy(), rows[target]), task("ocrep").fit(X, y)
    np.testing.assert_allclose(model.gamma_, here.gamma_, rtol=1e-8)
    np.testing.assert_allclose(weights_of(model), weights_of(here), atol=1e-10)


def test_partitions_of_many_blocks_take_the_fast_route(monkeypatch):
    X, y = smooth_problem(40_000, 4)
    here = network(solver="qr").fit(X, y)
    model = network(solver="gram").fit(da.from_array(X, chunks=(20_000, 4)), da.from_array(y, chunks=20_000))
    assert here.condition_number_ < 5e4
    np.testing.assert_allclose(model.gamma_, here.gamma_, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X), here.predict(X), atol=1e-6)


def test_chunks_of_known_heights_are_aligned(rows):
    (X,), (y,), (w,) = (
        arrays(rows, name, chunks=c) for name, c in ((INPUTS, KNOWN), ("y", (450, 750)), ("weight", (N,)))
    )
    aligned = network().fit(*arrays(rows, INPUTS, "y", "weight"))
    np.testing.assert_array_equal(weights_of(network().fit(X, y, w)), weights_of(aligned))


def test_sparse_blocks(rows):
    X = sparse.random(300, 6, density=0.5, random_state=0, format="csr")
    y = np.asarray(X.sum(axis=1)).ravel()
    blocks = da.from_array(X.toarray(), chunks=(100, 6)).map_blocks(sparse.csr_matrix)
    here, model = network().fit(X, y), network().fit(blocks, da.from_array(y, chunks=100))
    np.testing.assert_allclose(model.gamma_, here.gamma_, rtol=1e-8)
    np.testing.assert_allclose(model.predict(blocks).compute(), here.predict(X), atol=1e-6)


def test_names_of_columns_are_kept_and_asked_for(rows):
    X, y = frames(rows, INPUTS, "y")
    model = network().fit(X, y)
    assert model.feature_names_in_.tolist() == INPUTS
    np.testing.assert_allclose(model.predict(rows[INPUTS]), model.predict(X).compute())
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[["b", "a", "c", "d"]])


def test_types_of_pandas_own(rows):
    nullable = rows.convert_dtypes()
    X, y = frames(nullable, INPUTS, "y")
    np.testing.assert_allclose(network().fit(X, y).gamma_, network().fit(rows[INPUTS], rows["y"]).gamma_, rtol=1e-8)


def test_an_answer_does_not_depend_on_the_number_of_threads(rows):
    X, y = arrays(rows, INPUTS, "y", chunks=(100,) * 12)
    coefs = []
    for scheduler, n in (("threads", 1), ("threads", 4), ("synchronous", 1)):
        with dask.config.set(scheduler=scheduler, num_workers=n):
            coefs.append(weights_of(network(gamma="kfold").fit(X, y)))
    np.testing.assert_array_equal(coefs[0], coefs[1])
    np.testing.assert_array_equal(coefs[0], coefs[2])


def test_a_fitted_model_goes_on_in_memory(rows):
    X, y = arrays(rows, INPUTS, "y")
    model = network(input_scaling=GIVEN, gamma="kfold").fit(X, y)
    again = network(input_scaling=GIVEN, gamma="kfold").fit(X, y).partial_fit(rows[INPUTS].to_numpy(), rows["y"])
    assert again.factor_.counts.n_rows == 2 * model.factor_.counts.n_rows
    np.testing.assert_allclose(
        model.with_gamma("gcv").gamma_, network(input_scaling=GIVEN, gamma="gcv").fit(X, y).gamma_, rtol=1e-4
    )


# --- exact cross-validation ------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", ["kfold", "ocrep_cv"])
def test_folds_are_those_of_memory(rows, collections, gamma):
    X, y = collections(rows, INPUTS, "y")
    here, model = network(gamma=gamma).fit(rows[INPUTS].to_numpy(), rows["y"]), network(gamma=gamma).fit(X, y)
    # A searched γ is known to √ε only: its criterion is flat at the minimum.
    np.testing.assert_allclose(model.gamma_, here.gamma_, rtol=1e-8)
    gammas = here.spectrum_.largest**2 * np.array([1e-6, 1e-3, 1.0])
    np.testing.assert_allclose(model.folds_.squared_errors(gammas), here.folds_.squared_errors(gammas), rtol=1e-10)
    assert model.folds_.n_read == N


def test_folds_of_partitions_of_unknown_height_equal_refitting(rows):
    X, y, w = frames(rows, INPUTS, "y", "weight")
    model = network(gamma=rules.KFold(n_folds=4, seed=2), fit_intercept=True).fit(X, y, w)
    fold = fold_numbers(rows[INPUTS].to_numpy(), 4, 2)
    H = model.layer_.transform(rows[INPUTS])
    gammas = model.spectrum_.largest**2 * np.array([1e-6, 1e-3, 1.0])
    expected = np.zeros((4, 3))
    for v in range(4):
        train, test = fold != v, fold == v
        for k, g in enumerate(gammas):
            refit = TikhonovRegressor(g).fit(H[train], rows["y"][train], rows["weight"][train])
            expected[v, k] = np.sum(rows["weight"][test] * (rows["y"][test] - refit.predict(H[test])) ** 2)
    np.testing.assert_allclose(model.folds_.squared_errors(gammas), expected, rtol=1e-10)


def test_the_size_is_chosen_as_in_memory(rows):
    X, y = arrays(rows, INPUTS, "y")
    options = {"n_hidden": "auto", "max_hidden": 40}
    assert (
        network(**options).fit(X, y).n_hidden_ == network(**options).fit(rows[INPUTS].to_numpy(), rows["y"]).n_hidden_
    )


def test_folds_are_kept_if_wanted(rows):
    X, y = arrays(rows, INPUTS, "y")
    kept = network(store_folds=True).fit(X, y).with_gamma("kfold")
    np.testing.assert_allclose(kept.gamma_, network(gamma="kfold").fit(X, y).gamma_, rtol=1e-6)


# --- lazy predictions and scores -------------------------------------------------------------------------------


def test_predictions_are_lazy_and_know_their_chunks_and_type(rows):
    X, y, label = arrays(rows.astype({"a": "f4", "b": "f4", "c": "f4", "d": "f4"}), INPUTS, "y", "label")
    model = network().fit(X, y)
    never = X.map_blocks(_fail, meta=X._meta)
    predicted, deviation = model.predict(never, return_std=True)
    assert predicted.chunks == deviation.chunks == (KNOWN,)
    assert predicted.dtype == deviation.dtype == np.float32
    assert isinstance(predicted._meta, np.ndarray)
    assert predicted._meta.shape == (0,)
    outputs = network(PinvClassifier).fit(X, label).decision_function(never)
    assert outputs.chunks == (KNOWN, (3,))
    assert outputs.dtype == np.float32
    assert model.predict(X).compute().dtype == np.float32


def _fail(block):
    raise AssertionError("nobody asked for the rows")


def test_a_bad_partition_to_predict_is_named(rows, collections):
    X, y = collections(rows, INPUTS, "y")
    (bad,) = collections(rows.assign(a=rows["a"].where(rows.index != 520)), INPUTS)
    predicted = network().fit(X, y).predict(bad)
    with pytest.raises(ValueError, match="Partition 2: Input X contains NaN"):
        predicted.compute()


def test_unknown_heights_stay_unknown(rows):
    X, y = frames(rows, INPUTS, "label")
    model = network(PinvClassifier).fit(X, y)
    labels, outputs = model.predict(X), model.decision_function(X)
    assert np.isnan(labels.chunks[0]).all()
    assert len(labels.chunks[0]) == len(KNOWN)
    assert outputs.chunks[1] == (3,)
    assert labels.compute().shape == (N,)
    assert (labels == "yes").sum().compute() == np.sum(model.predict(rows[INPUTS]) == "yes")


def test_standard_deviations_and_probabilities(rows, collections):
    X, y = collections(rows, INPUTS, "y")
    inside = rows[INPUTS] if hasattr(X, "columns") else rows[INPUTS].to_numpy()
    model = network().fit(X, y)
    np.testing.assert_allclose(
        model.predict(X, return_std=True)[1].compute(), model.predict(inside, return_std=True)[1]
    )
    calibrated = network(PinvClassifier, calibrate="loo").fit(inside, rows["number"])
    proba = calibrated.predict_proba(X)
    assert proba.chunks[1] == (2,)
    np.testing.assert_allclose(proba.compute(), calibrated.predict_proba(inside), rtol=1e-12)
    assert calibrated.decision_function(X).ndim == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_memory(rows, collections, weighted):
    weight = ["weight"] if weighted else []
    X, y, label, *w = collections(rows, INPUTS, "y", "label", *weight)
    inside = rows[INPUTS] if hasattr(X, "columns") else rows[INPUTS].to_numpy()
    kept = [rows[name] for name in weight]
    for model, target, name in ((network(), y, "y"), (network(PinvClassifier), label, "label")):
        model.fit(X, target)
        np.testing.assert_allclose(model.score(X, target, *w), model.score(inside, rows[name], *kept), rtol=1e-12)


@pytest.mark.parametrize(("level", "r2"), [(0.0, 1.0), (1.0, 0.0)])
def test_the_score_of_a_constant_target(level, r2):
    X, zeros = da.ones((20, 2), chunks=5), da.zeros(20, chunks=5)
    assert TikhonovRegressor(1.0).fit(X, zeros).score(X, zeros + level) == r2


# --- what it costs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "n_reads"), [({"input_scaling": GIVEN}, 1), ({"input_scaling": "minmax"}, 2), ({"gamma": "kfold"}, 2)]
)
def test_rows_are_read_once_for_the_range_and_once_for_the_factor_and_a_first_block_before(rows, options, n_reads):
    reads = []

    def load(i):
        reads.append(i)
        return rows.iloc[300 * i : 300 * (i + 1)]

    table = dd.from_map(load, range(4), meta=rows.iloc[:0])
    reads.clear()
    network(**options).fit(table[INPUTS], table["y"])
    assert sorted(reads) == sorted([0] + [0, 1, 2, 3] * n_reads)


class GraphMadeError(Exception):
    """Ends a fit before anything is computed."""


def graph(n_rows, n_partitions, n_hidden=30):
    """The graph that a fit computes for its factor, as Dask's scheduler gets it."""

    def scheduler(given, keys, **options):
        raise GraphMadeError(dict(given.__dask_graph__() if hasattr(given, "__dask_graph__") else given))

    X = da.random.default_rng(0).uniform(size=(n_rows, 4), chunks=(n_rows // n_partitions, 4))
    with dask.config.set(scheduler=scheduler), pytest.raises(GraphMadeError) as stopped:
        network(n_hidden=n_hidden, input_scaling=GIVEN, solver="qr").fit(X, X[:, 0])
    return stopped.value.args[0]


def size(nodes):
    """Bytes of the nodes, each by itself, as a cluster gets them."""
    return sum(len(cloudpickle.dumps(node)) for node in dict(nodes).values())


def test_the_graph_grows_with_partitions_and_not_with_rows():
    assert len(graph(1000, 50)) == len(graph(1_000_000, 50))
    few, many = len(graph(1000, 50)), len(graph(1000, 100))
    assert 1.8 * few < many < 2.2 * few
    # One per partition, a seventh of that for the tree, and one for a model that is too large to be sent with each.
    assert len(graph(1024, 64)) == 64 + 8 + 1
    assert len(graph(1024, 64, n_hidden=30_000)) == 64 + 8 + 1 + 1


@pytest.mark.parametrize("n_hidden", [30, 30_000])
def test_partitions_are_dealt_out_evenly(n_hidden):
    """Dask spreads tasks over all workers if they are many, have a name of their own, and fewer than five inputs."""
    made = graph(1024, 64, n_hidden=n_hidden)
    names = [key[0] if isinstance(key, tuple) else key for key in made]
    (parts,) = {name for name in names if name.endswith("-part")}
    assert names.count(parts) == 64
    inputs = {
        key for name, node in zip(names, made.values(), strict=True) if name == parts for key in node.dependencies
    }
    assert len(inputs) == (0 if n_hidden == 30 else 1)


FRAMES = {
    "fewer partitions": lambda table: table.repartition(npartitions=2),
    "more partitions": lambda table: table.repartition(npartitions=7),
    "concatenated": lambda table: dd.concat([table.partitions[:2], table.partitions[2:]]),
    "shuffled": lambda table: table.shuffle("a", npartitions=3),
    "filled with means": lambda table: table.fillna(table[["a"]].mean()),
    "filtered by a mean": lambda table: table[table["a"] > table["a"].mean() - 100.0],
    "deduplicated": lambda table: table.drop_duplicates(),
    "merged": lambda table: table.merge(table[["id"]], on="id"),
    "persisted": lambda table: table.persist(),
    "repartitioned and persisted": lambda table: table.repartition(npartitions=3).persist(),
}


@pytest.mark.parametrize("made", FRAMES)
def test_frames_that_dask_makes_in_any_way(rows, made):
    """Their graphs have tasks of the older kind, or share tasks among partitions."""
    frame = rows[[*INPUTS, "y"]].assign(id=np.arange(len(rows), dtype=float))
    table = FRAMES[made](dd.from_pandas(frame, npartitions=4))
    ours = network(input_scaling=GIVEN, gamma=1.0).fit(table[INPUTS], table["y"])
    here = network(input_scaling=GIVEN, gamma=1.0).fit(frame[INPUTS], frame["y"])
    np.testing.assert_allclose(ours.predict(frame[INPUTS]), here.predict(frame[INPUTS]), rtol=1e-7)


def test_what_several_partitions_use_is_made_once(rows):
    """A task that serves one partition alone runs with it; others, and what Dask keeps apart, stay by themselves."""
    made = []

    def both(half):
        made.append(half)
        return rows.iloc[:600] if half == 0 else rows.iloc[600:]

    halves = [delayed(both)(half) for half in (0, 1)]
    quarters = [delayed(lambda half, i: half.iloc[300 * i : 300 * (i + 1)])(half, i) for half in halves for i in (0, 1)]
    table = dd.from_delayed(quarters, meta=rows.iloc[:0])
    model = network(input_scaling=GIVEN, gamma=1.0, solver="qr").fit(table[INPUTS], table["y"])
    assert sorted(made) == [0, 1]
    np.testing.assert_allclose(
        weights_of(model),
        weights_of(network(input_scaling=GIVEN, gamma=1.0, solver="qr").fit(rows[INPUTS], rows["y"])),
        rtol=1e-9,
    )


def test_no_rows_and_only_one_model_are_in_the_graph():
    small, large = (size(graph(n, 50)) for n in (1000, 1_000_000))
    assert large < 1.1 * small
    # Weights of 30 and of 3000 units: the difference is that of one copy, not of fifty.
    more = size(graph(1000, 50, n_hidden=3000))
    assert more - small < 1.5 * (3000 - 30) * 5 * 8


def test_predicting_sends_one_model(rows, collections):
    X, y = collections(rows, INPUTS, "y")
    few, many = (size(network(n_hidden=n, gamma=1.0).fit(X, y).predict(X).__dask_graph__()) for n in (30, 3000))
    assert many - few < 1.5 * (3000 - 30) * 6 * 8


def test_only_one_module_imports_dask():
    source = Path(ocrep.__file__).parent
    importers = set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            if any(name.split(".")[0] in ("dask", "distributed") for name in names):
                importers.add(path.relative_to(source).as_posix())
    assert importers == {"_rows/dask.py"}


# --- bad input -------------------------------------------------------------------------------------------------


def table(*parts, meta=None):
    meta = parts[0].iloc[:0] if meta is None else meta
    return dd.from_map(lambda part: part, list(parts), meta=meta, enforce_metadata=False)


def numbers(n, *columns, start=0):
    rng = np.random.default_rng(start)
    return pd.DataFrame({name: rng.uniform(size=n) for name in columns})


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (numbers(10, "a", "c", "y"), r"Partition 1: the rows have 2 columns \['a', 'c'\], but .*\['a', 'b'\]"),
        (
            numbers(10, "a", "b", "y").assign(a="high"),
            "Partition 1: column 'a' holds texts, but inputs must be numbers",
        ),
        (
            numbers(10, "a", "b", "y").replace({"b": {numbers(10, "b")["b"][3]: np.nan}}).assign(a=np.nan),
            "Partition 1, row 1: column 'a' holds NaN",
        ),
        (numbers(10, "a", "b", "y").astype("f4"), "Partition 1: the values are float32, but .* float64: use astype"),
        (numbers(10, "a", "b", "y").assign(y=np.inf), "Partition 1, row 1: the target is NaN or infinity"),
    ],
    ids=["columns", "texts", "nan", "type", "target"],
)
@pytest.mark.parametrize("scale", ["minmax", GIVEN], ids=str)
def test_a_bad_partition_is_named(second, message, scale):
    first = numbers(10, "a", "b", "y")

    def select(part, columns):
        return part[[name for name in part.columns if name in columns]]

    whole = table(first, second)
    X = whole.map_partitions(select, ["a", "b", "c"], meta=first[["a", "b"]].iloc[:0], enforce_metadata=False)
    y = whole.map_partitions(lambda part: part["y"], meta=first["y"].iloc[:0], enforce_metadata=False)
    model = network(input_scaling=scale)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "factor_")


@pytest.mark.parametrize("scale", ["minmax", GIVEN], ids=str)
def test_a_target_that_is_missing_in_one_file_is_named_by_its_partition(tmp_path, scale):
    whole = numbers(30, "a", "b", "y")
    for i, part in enumerate((whole[:10], whole[10:20].drop(columns="y"), whole[20:])):
        part.to_parquet(tmp_path / f"{i}.parquet")
    read = dd.read_parquet(tmp_path)
    made = table(whole[:10], whole[10:20].drop(columns="y"), whole[20:])
    for rows in (read, made):
        with pytest.raises(KeyError, match="y") as raised:
            network(input_scaling=scale).fit(rows[["a", "b"]], rows["y"])
        assert raised.value.__notes__ == ["This was raised while the rows of partition 1 were made."]


def test_a_chunk_that_cannot_be_made_is_named(rows):
    X, y = arrays(rows, INPUTS, "y", chunks=(400, 400, 400))

    def broken(block):
        if block[0] == rows["y"][800]:
            raise OSError("the disk did not answer")
        return block

    with pytest.raises(OSError, match="the disk did not answer") as raised:
        network().fit(X, y.map_blocks(broken, meta=y._meta))
    assert raised.value.__notes__ == ["This was raised while the rows of partition 2 were made."]


@pytest.mark.parametrize("missing", [None, np.nan])
def test_a_missing_label_is_named(rows, missing):
    labels = rows["label"].astype(object)
    labels[700] = missing
    X, y = arrays(rows.assign(label=labels), INPUTS, "label", chunks=(400, 400, 400))
    F, f = frames(rows.assign(label=labels), INPUTS, "label", chunks=(400, 400, 400))
    for pair in ((X, y), (F, f)):
        with pytest.raises(ValueError, match="Partition 1, row 301: the label is missing"):
            network(PinvClassifier).fit(*pair)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ("x", "texts"),
        (pd.Timestamp("2020-01-01"), "dates or times"),
        (pd.Categorical(["u", "v"] * 600), "categories"),
    ],
)
def test_columns_that_do_not_declare_numbers_are_named_before_anything_is_computed(rows, values, kind):
    def compute(part):
        raise AssertionError("Something was computed.")

    declared = rows.assign(b=values)[[*INPUTS, "y"]].iloc[:0]
    lazy = dd.from_map(compute, range(3), meta=declared)
    with pytest.raises(ValueError, match=f"column 'b' holds {kind}, but inputs must be numbers"):
        network().fit(lazy[INPUTS], lazy["y"])


def test_partitions_of_different_heights_are_named(rows):
    (X,) = arrays(rows, INPUTS, unknown=True)
    (y,) = arrays(rows[:-1], "y", chunks=(500, 0, 36, 1, 662), unknown=True)
    with pytest.raises(ValueError, match=r"Partition 2: X has 37 rows, but y has the shape \(36,\)"):
        network().fit(X, y)


def test_labels_are_checked_in_their_partition(rows):
    X, y = arrays(rows, INPUTS, "y")
    with pytest.raises(
        ValueError, match=r"Partition \d, row \d+: the label .* is not a whole number.*Unknown label type: continuous"
    ):
        network(PinvClassifier).fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        network(PinvClassifier).fit(X, y > 1e9)
    with pytest.raises(ValueError, match="rows of positive weight hold only one class"):
        network(PinvClassifier).fit(X, y > 0, y > 0)
    with pytest.raises(ValueError, match="class_weight names classes that are not in y"):
        network(PinvClassifier, class_weight={"other": 1.0}).fit(X, y > 0)


def test_a_class_that_was_not_there_before_is_named(rows):
    """A source whose second reading differs from its first."""
    X, _ = arrays(rows, INPUTS, "y", chunks=(600, 600))
    readings = []

    def labels(block, block_id):
        readings.append(block_id)
        return np.arange(len(block)) % (2 if len(readings) <= 2 else 3)

    y = X.map_blocks(
        lambda block, block_info=None: labels(block, block_info[None]["chunk-location"]),
        drop_axis=1,
        dtype=int,
        meta=np.empty(0, int),
    )
    readings.clear()
    with pytest.raises(ValueError, match=r"Partition \d, row 3: the label 2 is not among the classes \[0, 1\]"):
        network(PinvClassifier, input_scaling=GIVEN).fit(X, y)


@pytest.mark.parametrize("task", [PinvRegressor, PinvClassifier, TikhonovRegressor])
def test_empty_collections(task):
    X, y = da.ones((0, 3)), da.ones(0)
    with pytest.raises(ValueError, match="there are no rows to learn from"):
        task().fit(X, y)


@pytest.mark.parametrize("scale", ["minmax", GIVEN], ids=str)
def test_weights_that_are_all_zero(rows, scale):
    X, y = arrays(rows, INPUTS, "y")
    with pytest.raises(ValueError, match="All sample weights are zero"):
        network(input_scaling=scale).fit(X, y, 0.0 * y)
    with pytest.raises(ValueError, match=r"Partition \d, row 1: the weight is -.*, but weights must be finite and ≥ 0"):
        network(input_scaling=scale).fit(X, y, y - 100.0)
    model = network(input_scaling=scale).fit(X, y)
    with pytest.raises(ValueError, match="All sample weights are zero"):
        model.score(X, y, 0.0 * y)


def test_collections_that_do_not_fit_together(rows):
    X, y = arrays(rows, INPUTS, "y")
    F, f = frames(rows, INPUTS, "y")
    model = network()
    with pytest.raises(ValueError, match=r"X has 1200 rows, but y has the shape \(100,\)"):
        model.fit(X, y[:100])
    with pytest.raises(ValueError, match=r"y has 2 chunks of rows and X has 5, .* compute_chunk_sizes"):
        model.fit(*arrays(rows, INPUTS, unknown=True), y.rechunk(600))
    with pytest.raises(ValueError, match="X a Dask array, y a Dask dataframe"):
        model.fit(X, f)
    with pytest.raises(ValueError, match="y has 2 partitions and X has 5"):
        model.fit(F, *frames(rows, "y", chunks=(600, 600)))
    with pytest.raises(TypeError, match="y is a ndarray"):
        model.fit(X, rows["y"].to_numpy())
    with pytest.raises(TypeError, match="X is a Delayed"):
        model.fit(dask.delayed(rows[INPUTS]), y)
    with pytest.raises(TypeError, match="X is a Bag"):
        model.fit(db.from_sequence([1, 2]), y)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        model.fit(y, y)
    with pytest.raises(ValueError, match="number of columns of X is unknown"):
        model.fit(X[:, X[0] > 0], y)


def test_what_needs_rows_in_memory_says_so(rows):
    X, y, label = arrays(rows, INPUTS, "y", "label")
    with pytest.raises(ValueError, match=r"'loo' reads the rows once more.*'kfold'"):
        network(gamma="loo").fit(X, y)
    with pytest.raises(ValueError, match="calibrate='loo' reads the rows"):
        network(PinvClassifier, calibrate="loo").fit(X, label)
    with pytest.raises(TypeError, match="Dask collections are for fit, predict and score"):
        network().partial_fit(X, y)
    for call in (network().predict, network(PinvClassifier).predict, network(PinvClassifier).decision_function):
        with pytest.raises(NotFittedError):
            call(X)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        network().fit(X, y).predict(y)
    with pytest.raises(ValueError, match="expecting 4 features"):
        network().fit(X, y).predict(X[:, :3])


def test_a_failed_fit_leaves_the_model_as_it_was(rows):
    X, y = arrays(rows, INPUTS, "y")
    model = network().fit(X, y)
    before = dict(model.__dict__)
    with pytest.raises(ValueError, match=r"Partition \d, row 1: the target is NaN or infinity.*Input y contains NaN"):
        model.fit(X, y * np.nan)
    assert model.__dict__ == before


# --- the page about it -----------------------------------------------------------------------------------------


def test_the_page_prints_what_it_says(capsys):
    assert run_page("docs/scaling.md", capsys) == 1
