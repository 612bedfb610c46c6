"""`gradients` of fitted models: central differences of what they predict, in every library and precision."""

import numpy as np
import pytest
from scipy import sparse
from support.device import on_device, to_numpy

from ocrep import (
    PinvClassifier,
    PinvClassifierCV,
    PinvRegressor,
    PinvRegressorCV,
    TikhonovClassifier,
    TikhonovRegressor,
)

RNG = np.random.default_rng(0)
SPREAD = np.array([1.0, 5.0, 0.1, 2.0])
X = RNG.standard_normal((150, 4)) * SPREAD + [0.0, 50.0, 0.0, -3.0]
Y = np.sin(X[:, 0]) + X[:, 1] / 10 + X[:, 2] * X[:, 3]
LABELS = np.digitize(Y, np.quantile(Y, [0.4, 0.7]))
NEW = RNG.standard_normal((20, 4)) * SPREAD + [0.0, 50.0, 0.0, -3.0]
ACTIVATIONS = ("sigmoid", "tanh", "sin", "gaussian", "laplace", "relu", "identity", "hardlimit")


def differences(answer, rows, step=1e-5):
    """Central differences of a function of rows, inputs on the second axis."""
    found = []
    for column, size in enumerate(SPREAD * step):
        shift = np.zeros(4)
        shift[column] = size
        found.append((answer(rows + shift) - answer(rows - shift)) / (2 * size))
    return np.stack(found, axis=1)


def assert_same(found, expected, atol=1e-6):
    size = np.abs(expected).max(axis=0, keepdims=True) + 1e-12
    np.testing.assert_allclose(found / size, expected / size, atol=atol)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("scaling", ["minmax", "squash"])
@pytest.mark.parametrize("direct_link", [True, False])
@pytest.mark.parametrize("metric", [None, "diagonal", "full"])
def test_they_are_central_differences(activation, scaling, direct_link, metric):
    options = {"activation": activation, "input_scaling": scaling, "direct_link": direct_link, "metric": metric}
    if activation == "hardlimit" and metric is not None:
        options["metric"] = None  # no gradients to learn a metric from
    model = PinvRegressor(30, gamma=0.1, random_state=0, **options).fit(X, Y)
    found = model.gradients(NEW)
    assert found.shape == NEW.shape
    assert_same(found, differences(model.predict, NEW))


def test_stacks_targets_and_coefficients():
    members = [
        {"n_hidden": 30, "activation": "tanh"},
        {"n_hidden": 30, "activation": "gaussian", "weight_init": "rows"},
    ]
    stack = PinvRegressorCV(members, random_state=0).fit(X, Y)
    assert_same(stack.gradients(NEW), differences(stack.predict, NEW))
    several = PinvRegressor(30, random_state=0).fit(X, np.column_stack([Y, X[:, 0]]))
    assert several.gradients(NEW).shape == (20, 4, 2)
    assert_same(several.gradients(NEW), differences(several.predict, NEW))
    linear = TikhonovRegressor().fit(X, Y)
    np.testing.assert_allclose(linear.gradients(NEW), np.broadcast_to(linear.coef_, (20, 4)))
    np.testing.assert_allclose(linear.gradients(sparse.csr_array(NEW)), linear.gradients(NEW))


@pytest.mark.parametrize(
    "model",
    [
        PinvClassifier(30, random_state=0),
        PinvClassifier(30, calibrate="loo", random_state=0),
        PinvClassifierCV([{"n_hidden": 30, "activation": "tanh"}], random_state=0),
        TikhonovClassifier(calibrate="loo"),
    ],
    ids=["scores", "log-odds", "stack", "linear"],
)
@pytest.mark.parametrize("y", [LABELS, LABELS > 0, np.column_stack([LABELS > 0, LABELS > 1]).astype(int)])
def test_those_of_labels_are_those_of_the_decision_function(model, y):
    model.fit(X, y)
    assert_same(model.gradients(NEW), differences(model.decision_function, NEW), atol=1e-5)


def test_blocks_do_not_matter(small_blocks):
    model = PinvRegressorCV([{"n_hidden": 30}, {"n_hidden": 40, "weight_init": "trees"}], random_state=0).fit(X, Y)
    whole = model.gradients(NEW)
    small_blocks(50)
    np.testing.assert_allclose(model.gradients(NEW), whole, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("activation", ["sigmoid", "gaussian", "laplace"])
@pytest.mark.parametrize("scaling", ["minmax", "squash"])
def test_single_precision(activation, scaling):
    options = {"activation": activation, "input_scaling": scaling, "gamma": 1.0, "random_state": 0}
    double = PinvRegressor(30, **options).fit(X, Y)
    exact = double.gradients(NEW)
    for single in (double.as_float32(), PinvRegressor(30, **options).fit(X.astype(np.float32), Y.astype(np.float32))):
        found = single.gradients(NEW.astype(np.float32))
        assert found.dtype == np.float32
        assert_same(found.astype(float), exact, atol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        *({"activation": name} for name in ACTIVATIONS),
        {"activation": "laplace", "weight_init": "rows", "metric": "full"},
        {"weight_init": "trees"},
    ],
    ids=str,
)
@pytest.mark.parametrize("scaling", ["minmax", "squash"])
def test_arrays_of_other_libraries(options, scaling):
    options = {"gamma": 0.1, "input_scaling": scaling, "random_state": 0, **options}
    expected = PinvRegressor(25, **options).fit(X, Y).gradients(NEW)
    found = PinvRegressor(25, **options).fit(on_device(X), on_device(Y)).gradients(on_device(NEW))
    assert_same(to_numpy(found), expected, atol=1e-7)


def test_stacks_on_devices():
    members = [{"n_hidden": 25, "weight_init": "trees"}, {"n_hidden": 25}]
    expected = PinvClassifierCV(members, random_state=0).fit(X, LABELS).gradients(NEW)
    found = PinvClassifierCV(members, random_state=0).fit(on_device(X), on_device(LABELS)).gradients(on_device(NEW))
    assert_same(to_numpy(found), expected, atol=1e-5)


@pytest.mark.parametrize("scaling", ["minmax", "squash"])
def test_those_of_leaves_are_differences_across_the_spread_of_a_column(scaling):
    y = np.where(X[:, 0] > 0, 2.0, 0.0) + np.where(X[:, 2] > 0.05, 1.0, 0.0)
    model = PinvRegressor(60, weight_init="trees", input_scaling=scaling, direct_link=False, random_state=0).fit(X, y)
    hidden = model.layer_.map_
    trees = hidden.trees
    step = 1.25 / hidden.scale
    found = model.gradients(NEW)
    for column in range(4):
        up, down = NEW.copy(), NEW.copy()
        up[:, column] += step[column]
        down[:, column] -= step[column]
        thresholds = trees.threshold[trees.feature == column]
        lowest, highest = np.zeros(4), np.zeros(4)
        lowest[column], highest[column] = thresholds.min(), thresholds.max()
        ends = [hidden.unscaled(end)[column] for end in (lowest, highest)]
        x = NEW[:, column]
        length = np.minimum(up[:, column], np.maximum(x, ends[1])) - np.maximum(down[:, column], np.minimum(x, ends[0]))
        np.testing.assert_allclose(found[:, column], (model.predict(up) - model.predict(down)) / length, atol=1e-9)


def test_leaves_tell_a_column_of_zeros_and_ones(rng):
    flag = rng.integers(0, 2, 150).astype(float)
    rows = np.column_stack([X[:, 0], flag])
    model = PinvRegressor(60, weight_init="trees", direct_link=False, random_state=0).fit(rows, 3 * flag + X[:, 0])
    assert abs(model.gradients(rows)[:, 1].mean() - 3.0) < 1.0


def test_mistakes():
    model = PinvRegressor(10, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="X has 3 features"):
        model.gradients(NEW[:, :3])
    with pytest.raises(ValueError, match="contains NaN"):
        model.gradients(np.where(NEW > 0, np.nan, NEW))
    own = PinvRegressor(10, activation=np.cos, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="a function of your own, is not known"):
        own.gradients(NEW)
