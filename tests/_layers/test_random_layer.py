"""The hidden layer: activations, scaling, nesting, and every container rows may come in."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats
from scipy.special import expit

from ocrep import RandomLayer

DISTRIBUTIONS = ["uniform", "normal", "orthogonal"]

RNG = np.random.default_rng(0)
X = RNG.uniform(-4, 9, size=(30, 4))

FORMULAS = {
    "sigmoid": expit,
    "tanh": np.tanh,
    "relu": lambda z: np.maximum(z, 0),
    "sin": np.sin,
    "hardlimit": lambda z: (z >= 0).astype(float),
    "identity": lambda z: z,
}


def scaled(rows):
    low, high = rows.min(axis=0), rows.max(axis=0)
    return 2 * (rows - low) / (high - low) - 1


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_activation_equals_its_formula(name):
    layer = RandomLayer(20, activation=name, random_state=0).fit(X)
    Z = scaled(X) @ layer.weights_ + layer.biases_
    np.testing.assert_allclose(layer.transform(X), FORMULAS[name](Z), atol=1e-14)


@pytest.mark.parametrize(("name", "power"), [("gaussian", 2), ("laplace", 1)])
def test_gaussian_and_laplace_units_are_radial(name, power):
    layer = RandomLayer(20, activation=name, random_state=0).fit(X)
    distances = np.linalg.norm(scaled(X)[:, :, None] - layer.weights_, axis=1)
    np.testing.assert_allclose(layer.transform(X), np.exp(-np.abs(layer.biases_) * distances**power), rtol=1e-12)


def test_every_activation_is_tested():
    with pytest.raises(ValueError, match="Known: ") as refused:
        RandomLayer(activation="?").fit(X)
    known = str(refused.value).partition("Known: ")[2]
    assert sorted([*FORMULAS, "gaussian", "laplace"]) == re.findall(r"'(\w+)'", known)


def test_sigmoid_does_not_overflow():
    layer = RandomLayer(5, input_scaling=None, weight_scale=1e6, random_state=0).fit(X)
    H = layer.transform(1e6 * X)
    assert np.isfinite(H).all()
    assert H.min() >= 0
    assert H.max() <= 1


def test_a_callable_is_applied():
    layer = RandomLayer(6, activation=np.cos, random_state=0).fit(X)
    np.testing.assert_allclose(layer.transform(X), np.cos(scaled(X) @ layer.weights_ + layer.biases_))


def test_a_callable_that_changes_the_shape_raises():
    layer = RandomLayer(6, activation=lambda Z: Z.sum(axis=1), random_state=0).fit(X)
    with pytest.raises(ValueError, match="each entry by itself"):
        layer.transform(X)


def test_weights_follow_their_distribution():
    uniform = RandomLayer(5000, random_state=0).fit(X)
    for values in (uniform.weights_, uniform.biases_):
        assert np.abs(values).max() < 1
        assert values.var() == pytest.approx(1 / 3, rel=0.1)
    normal = RandomLayer(5000, weight_init="normal", random_state=0).fit(X)
    assert normal.weights_.std() == pytest.approx(1, rel=0.05)
    orthogonal = RandomLayer(10, weight_init="orthogonal", random_state=0).fit(X).weights_
    for group in (orthogonal[:, :4], orthogonal[:, 4:8]):
        np.testing.assert_allclose(group.T @ group, np.eye(4), atol=1e-12)


@pytest.mark.parametrize("weights", DISTRIBUTIONS)
def test_biases_are_uniform_in_their_range_and_weights_are_as_without_it(weights):
    plain = RandomLayer(4000, weight_init=weights, random_state=0).fit(X)
    layer = RandomLayer(4000, weight_init=weights, bias_range=(0, 1), weight_scale=2.0, random_state=0).fit(X)
    np.testing.assert_array_equal(layer.weights_, 2.0 * plain.weights_)
    assert stats.kstest(layer.biases_ / 2.0, stats.uniform(0, 1).cdf).pvalue > 1e-3
    assert np.all(np.diff(layer.biases_[np.argsort(plain.biases_)]) >= 0)  # the same draw, brought to another range


def test_biases_of_a_range_belong_to_their_unit():
    large, small = (RandomLayer(n, bias_range=(0.0, 1.0), random_state=3).fit(X) for n in (50, 20))
    np.testing.assert_array_equal(large.biases_[:20], small.biases_)
    np.testing.assert_array_equal(RandomLayer(9, bias_range=(2, 2), random_state=0).fit(X).biases_, np.full(9, 2.0))


@pytest.mark.parametrize("weights", DISTRIBUTIONS)
def test_weight_scale_multiplies_weights_and_biases(weights):
    one, three, inverse = (
        RandomLayer(16, weight_init=weights, weight_scale=s, random_state=0).fit(X) for s in (1.0, 3.0, "inverse_sqrt")
    )
    np.testing.assert_allclose(three.weights_, 3 * one.weights_)
    np.testing.assert_allclose(three.biases_, 3 * one.biases_)
    np.testing.assert_allclose(inverse.weights_, one.weights_ / 4)


@pytest.mark.parametrize("scale", ["minmax", None, (-5.0, 10.0), (X.min(axis=0), X.max(axis=0) + 1)])
@pytest.mark.parametrize("activation", ["sigmoid", "gaussian"])
@pytest.mark.parametrize("direct_link", [False, True])
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_matrix, pd.DataFrame, pl.DataFrame])
def test_every_container_gives_the_same_units(scale, activation, direct_link, container):
    Z = np.where(X > 5, 0.0, X)
    layer = RandomLayer(9, input_scaling=scale, activation=activation, direct_link=direct_link, random_state=0)
    dense = layer.fit_transform(Z)
    rows = container(Z) if container is not pl.DataFrame else pl.DataFrame(Z, schema=list("abcd"))
    rows = rows if container is not pd.DataFrame else rows.set_axis(list("abcd"), axis=1)
    np.testing.assert_allclose(layer.fit_transform(rows), dense, rtol=1e-12, atol=1e-15)


def test_minmax_uses_the_rows_that_count():
    weight = np.ones(30)
    weight[X[:, 0] > 0] = 0.0
    part = X[weight > 0]
    for rows, kept in ((X, part), (sparse.csr_array(X), sparse.csr_array(part))):
        weighted = RandomLayer(5, random_state=0).fit(rows, sample_weight=weight)
        np.testing.assert_array_equal(weighted.scale_, RandomLayer(5, random_state=0).fit(kept).scale_)


def test_far_away_columns_keep_their_digits():
    Z = np.round(X * 2**20) / 2**20
    near, far = (RandomLayer(8, random_state=0).fit_transform(rows) for rows in (Z, Z + 2.0**20))
    np.testing.assert_allclose(far, near, atol=1e-14)


@pytest.mark.parametrize("value", [0.0, 3.7, -1e9])
def test_constant_inputs_become_zero(value):
    Z = X.copy()
    Z[:, 1] = value
    Z[::2, 1] += np.spacing(value)
    H = RandomLayer(8, direct_link=True, random_state=0).fit_transform(Z)
    np.testing.assert_array_equal(H[:, 1], 0.0)
    assert np.isfinite(H).all()


def test_direct_link_puts_the_scaled_inputs_first():
    layer = RandomLayer(3, direct_link=True, random_state=0)
    H = layer.fit_transform(X)
    np.testing.assert_allclose(H[:, :4], scaled(X), atol=1e-14)
    np.testing.assert_array_equal(H[:, 4:], RandomLayer(3, random_state=0).fit_transform(X))


def test_output_names_and_frames():
    frame = pd.DataFrame(X, columns=list("abcd"))
    layer = RandomLayer(2, direct_link=True, random_state=0).fit(frame)
    names = ["a", "b", "c", "d", "randomlayer0", "randomlayer1"]
    assert list(layer.get_feature_names_out()) == names
    assert list(layer.set_output(transform="pandas").transform(frame).columns) == names
    assert layer.set_output(transform="polars").transform(frame).columns == names


def test_sparse_gaussian_units_stay_between_0_and_1_far_from_zero():
    Z = X.copy()
    Z[:, 0] += 1e8
    layer = RandomLayer(10, activation="gaussian", random_state=0)
    np.testing.assert_allclose(layer.fit_transform(sparse.csr_array(Z)), layer.fit_transform(Z), rtol=1e-12)


def test_sparse_single_precision_is_computed_in_double():
    rows = sparse.csr_array(X.astype(np.float32))
    layer = RandomLayer(10, input_scaling=None, random_state=0).fit(rows)
    exact = expit(X.astype(np.float32).astype(float) @ layer.weights_ + layer.biases_)
    np.testing.assert_allclose(layer.map_(rows), exact, atol=1e-15)


def test_a_failed_fit_and_later_parameters_leave_the_layer_alone():
    layer = RandomLayer(5, random_state=0).fit(X)
    before = layer.transform(X)
    with pytest.raises(ValueError, match="All sample weights are zero"):
        layer.fit(np.hstack([X, X]), sample_weight=np.zeros(30))
    layer.set_params(activation="tanh", direct_link=True)
    np.testing.assert_array_equal(layer.transform(X), before)


def test_a_constant_column_of_single_precision_is_seen():
    Z = X.astype(np.float32)
    Z[:, 1] = 0.1
    Z[::2, 1] = np.nextafter(np.float32(0.1), np.float32(1))
    np.testing.assert_array_equal(RandomLayer(2, direct_link=True).fit_transform(Z)[:, 1], 0.0)


def test_a_callable_that_returns_no_array_raises():
    with pytest.raises(ValueError, match="it gave list"):
        RandomLayer(6, activation=lambda Z: Z.tolist()).fit(X).transform(X)


def test_many_inputs_do_not_cost_orthogonal_weights_their_cube():
    weights = RandomLayer(3, weight_init="orthogonal", random_state=0).fit(np.eye(2, 4000)).weights_
    np.testing.assert_allclose(weights.T @ weights, np.eye(3), atol=1e-12)


def test_single_precision_in_single_precision_out():
    H = RandomLayer(5, random_state=0).fit(X).transform(X.astype(np.float32))
    assert H.dtype == np.float32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activation": "sigmoyd"}, "Did you mean 'sigmoid'.*'gaussian', 'hardlimit'"),
        ({"weight_init": "unifrom"}, "Did you mean 'uniform'"),
        ({"n_hidden": 0}, "whole number ≥ 1"),
        ({"n_hidden": 2.5}, "whole number ≥ 1"),
        ({"weight_scale": 0.0}, "finite number > 0"),
        ({"weight_scale": "sqrt"}, "inverse_sqrt"),
        ({"weight_scale": np.nan}, "finite number > 0"),
        ({"bias_range": (1.0, 0.0)}, "low ≤ high"),
        ({"bias_range": (0.0, np.nan)}, "pair of finite numbers"),
        ({"bias_range": 1.0}, "pair of finite numbers"),
        ({"bias_range": "uniform"}, "pair of finite numbers"),
        ({"input_scaling": "standard"}, "'minmax'"),
        ({"input_scaling": 3.0}, "not a pair"),
        ({"input_scaling": (1.0, -1.0)}, "low ≤ high"),
        ({"input_scaling": (0.0, np.inf)}, "finite"),
        ({"input_scaling": ([0.0, 0.0], 1.0)}, "one per input"),
    ],
)
def test_bad_parameters_say_what_to_use(options, message):
    with pytest.raises(ValueError, match=message):
        RandomLayer(**options).fit(X)
