"""Units from pairs on rows of every kind: the layer of the same rows in memory, or of the first block of a stream."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest
from scipy import sparse
from support.device import on_device, to_numpy
from support.rows_on_disk import NAMES, as_blocks, as_glob, smooth_frame

from ocrep import PinvClassifier, PinvRegressor, RandomLayer, scan

N = 900
SMALL = 2**12


@pytest.fixture(autouse=True)
def _small_blocks(small_blocks):
    small_blocks(SMALL)
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


@pytest.fixture(params=[10_000, 200], ids=["all rows", "some rows"])
def sample_rows(request, small_samples):
    """Samples that hold all rows, and samples that do not."""
    small_samples(request.param)
    return request.param


def frame_of(task, weighted):
    frame = smooth_frame(N)
    if task is PinvClassifier:
        frame["y"] = np.array(["no", "maybe", "yes"], dtype=object)[np.digitize(frame["y"], [-0.3, 0.4])]
    if weighted:
        frame["w"] = np.random.default_rng(1).integers(0, 3, N).astype(float)
    return frame


def network(task=PinvRegressor, **options):
    return task(**{"n_hidden": 30, "weight_init": "pairs", "gamma": "gcv", "random_state": 0, **options})


def arrays(frame):
    X, y = frame[NAMES].to_numpy(), frame["y"].to_numpy()
    return X, y if y.dtype != object else y.astype(str), frame["w"].to_numpy() if "w" in frame else None


def in_dask(frame, make):
    if make is da:
        return [
            da.from_array(values, chunks=(170, *values.shape[1:])) for values in arrays(frame) if values is not None
        ]
    table = dd.from_pandas(frame, npartitions=5)
    return [table[NAMES], table["y"], *([table["w"]] if "w" in frame else [])]


KINDS = {
    "parquet": lambda model, frame, folder: model.fit(as_glob(frame, folder)),
    "csv": lambda model, frame, folder: model.fit(as_glob(frame, folder, "csv")),
    "blocks": lambda model, frame, folder: model.fit(scan(as_blocks(frame))),
    "single rows": lambda model, frame, folder: model.fit(scan(as_blocks(frame, 1))),
    "array": lambda model, frame, folder: model.fit(scan(*arrays(frame)[:2], sample_weight=arrays(frame)[2])),
    "sparse": lambda model, frame, folder: model.fit(sparse.csr_array(arrays(frame)[0]), *arrays(frame)[1:]),
    "dask array": lambda model, frame, folder: model.fit(*in_dask(frame, da)),
    "dask dataframe": lambda model, frame, folder: model.fit(*in_dask(frame, dd)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", [PinvRegressor, PinvClassifier])
@pytest.mark.parametrize("options", [{}, {"input_scaling": None, "units_see": 2}, {"input_scaling": "squash"}], ids=str)
@pytest.mark.usefixtures("sample_rows")
def test_rows_of_every_kind_give_the_layer_of_memory(kind, task, options, tmp_path):
    frame = frame_of(task, weighted=kind != "array")
    expected = network(task, **options).fit(*arrays(frame))
    model = KINDS[kind](network(task, **options), frame, tmp_path)
    np.testing.assert_allclose(model.layer_.weights_, expected.layer_.weights_, rtol=1e-9)
    np.testing.assert_allclose(model.layer_.biases_, expected.layer_.biases_, rtol=1e-9)
    assert model.gamma_ == pytest.approx(expected.gamma_, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", [PinvRegressor, PinvClassifier])
@pytest.mark.usefixtures("sample_rows")
def test_rows_of_every_kind_give_the_trees_of_memory(kind, task, tmp_path):
    frame = frame_of(task, weighted=kind != "array")
    options = {"weight_init": "trees", "input_scaling": "squash", "gamma": 0.1}
    expected = network(task, **options).fit(*arrays(frame))
    model = KINDS[kind](network(task, **options), frame, tmp_path)
    X = arrays(frame)[0]
    np.testing.assert_allclose(model.layer_.map_(X), expected.layer_.map_(X), rtol=1e-9)
    np.testing.assert_allclose(model.output_coef_, expected.output_coef_, rtol=1e-6, atol=1e-9)


def test_a_memory_map_gives_the_layer_of_memory(tmp_path):
    X, y, _ = arrays(frame_of(PinvRegressor, weighted=False))
    mapped = np.memmap(tmp_path / "X", dtype=float, mode="w+", shape=X.shape)
    mapped[:] = X
    expected = network().fit(X, y)
    np.testing.assert_array_equal(network().fit(mapped, y).layer_.weights_, expected.layer_.weights_)


@pytest.mark.usefixtures("sample_rows")
def test_the_order_of_rows_and_the_number_of_workers_do_not_matter(workers):
    X, y, w = arrays(frame_of(PinvRegressor, weighted=True))
    expected = network().fit(X, y, w).layer_.weights_
    order = np.random.default_rng(0).permutation(N)
    for number in (1, 2):
        workers(number)
        np.testing.assert_array_equal(network().fit(X[order], y[order], w[order]).layer_.weights_, expected)


@pytest.mark.usefixtures("sample_rows")
def test_weights_equal_repetition():
    X, y, w = arrays(frame_of(PinvRegressor, weighted=True))
    repeated = np.repeat(np.arange(N), w.astype(int))
    expected = network().fit(X[repeated], y[repeated])
    model = network().fit(X, y, w)
    np.testing.assert_allclose(model.layer_.weights_, expected.layer_.weights_, rtol=1e-12)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-6)


def test_the_first_block_gives_the_layer_of_a_stream():
    blocks = as_blocks(frame_of(PinvRegressor, weighted=False))
    first = network().fit(*blocks[0]).layer_.weights_
    model = network(input_scaling="minmax").fit(scan(iter(blocks)))
    np.testing.assert_allclose(model.layer_.weights_, first, rtol=1e-12)
    for block in blocks:
        model = (model if block is not blocks[0] else network()).partial_fit(*block)
    np.testing.assert_array_equal(model.layer_.weights_, first)
    assert model.factor_.counts.n == N


def test_the_first_block_gives_the_layer_of_a_stream_of_labels():
    blocks = as_blocks(frame_of(PinvClassifier, weighted=False))
    first = network(PinvClassifier).fit(*blocks[0]).layer_.weights_
    model = network(PinvClassifier).fit(scan(iter(blocks), classes=["no", "maybe", "yes"]))
    np.testing.assert_allclose(model.layer_.weights_, first, rtol=1e-12)
    model = network(PinvClassifier).partial_fit(*blocks[0], classes=["no", "maybe", "yes"])
    np.testing.assert_array_equal(model.partial_fit(*blocks[1]).layer_.weights_, first)


@pytest.mark.parametrize("scaling", ["minmax", (-1.0, 1.0)])
def test_a_stream_whose_first_block_has_one_row_says_so(scaling):
    blocks = as_blocks(frame_of(PinvRegressor, weighted=False), 1)
    for learn in (lambda m: m.fit(scan(iter(blocks))), lambda m: m.partial_fit(*blocks[0])):
        with pytest.raises(ValueError, match=r"only one sample is left .*first block"):
            learn(network(input_scaling=scaling))


def test_a_stream_whose_first_block_counts_nothing_says_so():
    X, y, _ = arrays(frame_of(PinvRegressor, weighted=False))
    with pytest.raises(ValueError, match="no row of positive weight is left"):
        network(input_scaling=(-1.0, 1.0)).fit(scan(iter([(X[:5], y[:5], np.zeros(5)), (X, y, np.ones(N))])))


@pytest.mark.parametrize("task", [PinvRegressor, PinvClassifier])
@pytest.mark.parametrize("activation", ["sigmoid", "gaussian"])
def test_a_device_gives_the_layer_of_the_host(task, activation):
    X, y, w = arrays(frame_of(task, weighted=True))
    y = y if task is PinvRegressor else np.unique(y, return_inverse=True)[1]
    host, device = (network(task, activation=activation, gamma=1e-3) for _ in range(2))
    host.fit(X, y, w)
    device.fit(on_device(X), on_device(y), on_device(w))
    np.testing.assert_array_equal(to_numpy(device.layer_.weights_), host.layer_.weights_)
    np.testing.assert_allclose(to_numpy(device.predict(on_device(X))), host.predict(X), rtol=1e-7, atol=1e-9)
    layer = RandomLayer(30, activation=activation, weight_init="pairs", random_state=0).fit(on_device(X), on_device(y))
    np.testing.assert_allclose(
        to_numpy(layer.transform(on_device(X))), RandomLayer(**layer.get_params()).fit(X, y).transform(X), rtol=1e-9
    )


def test_a_checkpoint_goes_on_with_the_same_units(tmp_path):
    blocks = as_blocks(frame_of(PinvRegressor, weighted=False))
    done = []

    def progress(n_rows, total):
        done.append(n_rows)
        if done.count(N) == 1 and 500 < n_rows < N:
            raise OSError("the disk is gone")  # in the second pass, after that for the sample

    options = {"checkpoint": tmp_path / "fit.npz", "checkpoint_every": 0}
    with pytest.raises(OSError, match="disk"):
        network().fit(scan(blocks, progress=progress, **options))
    assert (tmp_path / "fit.npz").exists()
    model = network().fit(scan(blocks, **options))
    np.testing.assert_allclose(model.output_coef_, network().fit(scan(blocks)).output_coef_, rtol=1e-6)
