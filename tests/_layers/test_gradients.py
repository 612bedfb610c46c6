"""Gradients of a layer against central differences, and layers drawn on inputs times a metric."""

import numpy as np
import pytest
from scipy import sparse
from support.device import on_device, to_numpy

from ocrep import RandomLayer, onnx
from ocrep._layers.random_layer import _sample_of
from ocrep._rows.survey import observed_range

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.standard_normal((80, 3)) * [1.0, 5.0, 0.1] + [0.0, 50.0, 0.0], np.full(80, 7.0)])
Y = np.sin(X[:, 0]) + X[:, 1]
NEW = np.column_stack([RNG.standard_normal((15, 3)) * [1.0, 5.0, 0.1] + [0.0, 50.0, 0.0], np.full(15, 7.0)])
VECTOR = np.array([2.0, 0.3, 1.0, 1.0])
MATRIX = RNG.standard_normal((4, 4))
SINGULAR = np.outer([1.0, 2.0, -1.0, 0.5], [1.0, 0.0, 1.0, 0.0])
METRICS = {"none": None, "vector": VECTOR, "matrix": MATRIX, "rank one": SINGULAR}
SMOOTH = ("sigmoid", "tanh", "sin", "gaussian", "identity")


def drawn(metric=None, rows=X, **options):
    layer = RandomLayer(**{"n_hidden": 12, "random_state": 0, **options})
    return layer.draw(4, np.float64, observed_range(rows, None), _sample_of(rows, Y, np.ones(rows.shape[0])), metric)


def differences(hidden, W, rows, scaled):
    """Central differences, in the inputs or in the scaled inputs, where the steps are of one size."""
    steps = 1e-4 * np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    found = np.empty((len(rows), 4, W.shape[1]))
    for column in range(4):
        step = np.zeros(4)
        step[column] = steps[column]
        up, down = (hidden(rows + sign * step) @ W for sign in (1, -1))
        length = 2 * steps[column]
        if scaled:
            length = hidden.scaled(rows + step)[:, [column]] - hidden.scaled(rows - step)[:, [column]]
        with np.errstate(invalid="ignore", divide="ignore"):
            found[:, column] = (up - down) / length
    return found


def assert_gradients(hidden, rows=NEW, atol=1e-6):
    W = np.random.default_rng(1).standard_normal((hidden.n_features, 2))
    for scaled in (False, True):
        exact = hidden.gradients(rows, W, scaled=scaled)
        expected = differences(hidden, W, rows, scaled)
        if scaled:  # a constant input cannot be varied
            exact, expected = exact[:, :3], expected[:, :3]
        size = np.abs(expected).max(axis=(0, 2), keepdims=True) + 1e-300
        np.testing.assert_allclose(exact / size, expected / size, atol=atol)


@pytest.mark.parametrize("activation", [*SMOOTH, "relu", "laplace"])
@pytest.mark.parametrize("scaling", ["minmax", "squash", None])
@pytest.mark.parametrize("direct_link", [False, True])
def test_they_are_central_differences(activation, scaling, direct_link):
    scale = 0.05 if scaling is None else 1.0
    options = {"activation": activation, "input_scaling": scaling, "direct_link": direct_link, "weight_scale": scale}
    assert_gradients(drawn(**options).map_)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("scaling", ["minmax", "squash"])
@pytest.mark.parametrize(
    ("activation", "weight_init"),
    [
        ("tanh", "uniform"),
        ("relu", "pairs"),
        ("gaussian", "uniform"),
        ("gaussian", "rows"),
        ("laplace", "rows"),
        ("laplace", "pairs"),
    ],
)
def test_they_are_central_differences_with_a_metric(activation, weight_init, scaling, metric):
    layer = drawn(METRICS[metric], activation=activation, weight_init=weight_init, input_scaling=scaling)
    assert_gradients(layer.map_)


def test_what_jumps_has_no_derivative_but_that_of_the_direct_link(rng):
    for options in ({"activation": "hardlimit"}, {"weight_init": "trees"}):
        assert not drawn(**options).map_.gradients(NEW, np.ones((12, 1))).any()
        linked = drawn(direct_link=True, **options)
        W = rng.standard_normal((16, 2))
        expected = np.broadcast_to(linked.scale_[:, None] * W[:4], (15, 4, 2))
        np.testing.assert_allclose(linked.map_.gradients(NEW, W), expected)


def test_a_cone_has_slope_zero_at_its_tip():
    layer = drawn(activation="laplace", weight_init="rows", n_hidden=1)
    tip = X[np.argmax(layer.map_(X)[:, 0])]
    assert (layer.map_.gradients(tip[None], np.ones((1, 1))) == 0).all()


def test_one_output_sparse_rows_no_rows_and_wrong_weights(rng):
    hidden = drawn(direct_link=True).map_
    w = rng.standard_normal(16)
    one = hidden.gradients(NEW, w)
    assert one.shape == (15, 4, 1)
    np.testing.assert_allclose(hidden.gradients(sparse.csr_array(NEW), w), one)
    assert hidden.gradients(NEW[:0], w).shape == (0, 4, 1)
    with pytest.raises(ValueError, match="W has 12 rows, but the layer has 16 features"):
        hidden.gradients(NEW, w[:12])
    own = drawn(activation=np.cos).map_
    with pytest.raises(ValueError, match="a function of your own, is not known"):
        own.gradients(NEW, np.ones(12))


def test_blocks_do_not_matter(small_blocks, rng):
    hidden = drawn(direct_link=True, activation="laplace", weight_init="rows").map_
    W = rng.standard_normal((16, 3))
    whole = hidden.gradients(NEW, W)
    small_blocks(50)
    np.testing.assert_allclose(hidden.gradients(NEW, W), whole, rtol=1e-12)
    single = hidden.astype(np.float32).gradients(NEW, W)
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, whole, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("scaling", ["minmax", "squash"])
@pytest.mark.parametrize(
    "options",
    [
        *({"activation": name} for name in (*SMOOTH, "relu", "hardlimit", "laplace")),
        {"activation": "laplace", "weight_init": "rows"},
        {"weight_init": "trees"},
    ],
    ids=str,
)
def test_devices(options, scaling, rng):
    hidden = drawn(MATRIX, direct_link=True, input_scaling=scaling, **options).map_
    moved = hidden.to_device_of(on_device(NEW))
    W = rng.standard_normal((16, 2))
    np.testing.assert_allclose(to_numpy(moved(on_device(NEW))), hidden(NEW), rtol=1e-9, atol=1e-12)
    found = to_numpy(moved.gradients(on_device(NEW), on_device(W)))
    np.testing.assert_allclose(found, hidden.gradients(NEW, W), rtol=1e-9, atol=1e-12)


# ------------------------------------------------------------------------------
# Metrics


@pytest.mark.parametrize("metric", ["vector", "matrix", "rank one"])
@pytest.mark.parametrize(
    "options", [{}, {"weight_init": "normal"}, {"weight_init": "orthogonal"}, {"units_see": 2}], ids=str
)
def test_random_weights_see_inputs_times_the_metric(metric, options):
    R = METRICS[metric]
    plain, layer = drawn(**options), drawn(R, **options)
    if "units_see" not in options:  # which may see others, where a column of the metric is 0
        scaled = plain.map_.scaled(NEW)
        Q = scaled * R if R.ndim == 1 else scaled @ R
        np.testing.assert_allclose(layer.map_(NEW), 1 / (1 + np.exp(-Q @ plain.weights_ - plain.biases_)), rtol=1e-10)
    assert layer.map_.metric is None
    np.testing.assert_allclose(drawn(np.eye(4), **options).map_(NEW), plain.map_(NEW), rtol=1e-12)


@pytest.mark.parametrize("metric", ["vector", "matrix", "rank one"])
@pytest.mark.parametrize("weight_init", ["uniform", "rows"])
@pytest.mark.parametrize("power", [1, 2])
def test_distances_are_those_of_inputs_times_the_metric(metric, weight_init, power):
    R = METRICS[metric]
    activation = {1: "laplace", 2: "gaussian"}[power]
    layer = drawn(R, activation=activation, weight_init=weight_init, input_scaling="squash")
    R = np.diag(R) if R.ndim == 1 else R
    U, C = layer.map_.scaled(X), layer.weights_.T
    Q, centers = U @ R, C @ R
    if weight_init == "rows":
        factor = np.sqrt(3 / Q.var(axis=0).sum())  # three inputs vary
        Q, centers = factor * Q, factor * centers
        biases = np.full(12, 3 ** (-power / 2))
    else:
        biases = np.abs(layer.biases_)
    distance = np.linalg.norm(Q[:, None] - centers, axis=2) ** power
    np.testing.assert_allclose(layer.map_(X), np.exp(-biases * distance), atol=1e-9)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_pairs_in_a_metric(make):
    for metric in (VECTOR, MATRIX, SINGULAR):
        H = drawn(metric, rows=make(X), activation="tanh", weight_init="pairs").map_(X)
        assert (np.isclose(H, 0.5).any(axis=0) & np.isclose(H, -0.5).any(axis=0)).all()
    squashed = drawn(rows=make(X), weight_init="pairs", input_scaling="squash").map_(X)
    equal = drawn(np.full(4, 0.1), rows=make(X), weight_init="pairs", input_scaling="squash").map_(X)
    np.testing.assert_allclose(equal, squashed, rtol=1e-9)
    few = drawn(np.array([1.0, 0.0, 1e-12, 1.0]), rows=make(X), weight_init="pairs", units_see=1)
    assert (few.weights_[1:] == 0).all()


def test_trees_divide_inputs_times_a_matrix():
    angle = np.pi / 4
    rotation = np.eye(4)
    rotation[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    rows = np.random.default_rng(3).standard_normal((200, 4))
    target = np.sign(rows @ rotation[:, 0])
    layer = RandomLayer(23, weight_init="trees", random_state=0, input_scaling=None)
    turned = layer.draw(4, np.float64, None, _sample_of(rows, target, np.ones(200)), rotation).map_
    H = turned(rows)
    means = np.array([target[unit == 1].mean() for unit in H.T])
    assert np.mean(np.abs(means) == 1) > 0.4
    np.testing.assert_array_equal(turned.astype(np.float32)(rows), H)
    factors = layer.draw(4, np.float64, None, _sample_of(rows, target, np.ones(200)), VECTOR).map_
    plain = layer.draw(4, np.float64, None, _sample_of(rows, target, np.ones(200))).map_
    np.testing.assert_array_equal(factors(rows), plain(rows))


@pytest.mark.parametrize("metric", ["vector", "matrix"])
@pytest.mark.parametrize(
    "options",
    [{}, {"activation": "gaussian"}, {"activation": "laplace", "weight_init": "rows"}, {"weight_init": "trees"}],
    ids=str,
)
def test_onnx_and_sparse_rows(metric, options):
    layer = drawn(METRICS[metric], input_scaling="squash", **options)
    layer.n_features_in_ = 4
    assert onnx.to_onnx(layer, dtype="float64") is not None  # it compares the graph with the layer
    np.testing.assert_allclose(layer.map_(sparse.csr_array(NEW)), layer.map_(NEW), atol=1e-12)


def test_metrics_that_cannot_be_used():
    for metric in (np.ones(3), np.ones((4, 3)), np.full(4, np.nan), 2.0):
        with pytest.raises(ValueError, match="it needs 4 finite numbers, one for each input, or a matrix of 4 × 4"):
            drawn(metric)
    with pytest.raises(ValueError, match="The metric is 0 for all inputs that vary"):
        drawn(np.array([0.0, 0.0, 0.0, 1.0]), weight_init="pairs")
