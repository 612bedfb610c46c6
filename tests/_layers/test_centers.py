"""Gaussian and Laplace units centred on training rows: formula, nesting, invariances, refusals."""

import numpy as np
import pytest
from scipy import sparse

from ocrep import RandomLayer

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.standard_normal((40, 3)), np.full(40, 7.0)])
Y = np.sin(X[:, 0])


def layer(n_hidden=10, **options):
    return RandomLayer(n_hidden, **{"activation": "gaussian", "weight_init": "rows", "random_state": 0, **options})


def centers_of(fitted):
    """The centres in the inputs as they were given."""
    scale = np.where(fitted.scale_ > 0, fitted.scale_, 1.0)
    return fitted.weights_.T / scale + fitted.center_


@pytest.mark.parametrize("weight_scale", [1.0, 0.5])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_each_unit_is_the_formula_about_a_training_row(make, weight_scale):
    fitted = layer(weight_scale=weight_scale).fit(make(X))
    centers = centers_of(fitted)
    assert all(np.isclose(X, center).all(axis=1).sum() == 1 for center in centers)
    Z = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    distance = (((X[:, None] - centers) / Z) ** 2).sum(axis=2)
    expected = np.exp(-(weight_scale**2) * distance / 3)  # three inputs vary
    np.testing.assert_allclose(fitted.transform(make(X)), expected, atol=1e-12)


@pytest.mark.parametrize("weight_scale", [1.0, 0.5])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_laplace_units_are_the_formula_and_one_at_their_rows(make, weight_scale, shift):
    rows = X + shift
    fitted = layer(activation="laplace", weight_scale=weight_scale).fit(make(rows))
    centers = centers_of(fitted)
    Z = np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1.0)
    distance = np.sqrt((((rows[:, None] - centers) / Z) ** 2).sum(axis=2))
    H = fitted.transform(make(rows))
    np.testing.assert_allclose(H, np.exp(-weight_scale * distance / np.sqrt(3)), atol=1e-7 if shift else 1e-12)
    assert np.count_nonzero(H == 1.0) == 10


def test_laplace_units_from_pairs_are_one_at_a_row_and_one_half_at_another():
    H = layer(30, activation="laplace", weight_init="pairs").fit(X, Y).transform(X)
    assert (np.isclose(H, 1.0, atol=1e-12).sum(axis=0) >= 1).all()
    assert (np.isclose(H, 0.5, atol=1e-9).sum(axis=0) >= 1).all()


def test_laplace_units_see_all_inputs():
    with pytest.raises(ValueError, match=r"units_see=2 .* activation='laplace' needs all of them"):
        RandomLayer(5, activation="laplace", units_see=2).fit(X)


def test_rows_are_used_once_before_any_is_used_twice_and_layers_are_nested():
    whole = layer(60).fit(X)
    for size in (1, 25, 40, 41):
        np.testing.assert_array_equal(layer(size).fit(X).weights_, whole.weights_[:, :size])
    first, again = np.unique(whole.weights_[:, :40], axis=1), np.unique(whole.weights_, axis=1)
    assert first.shape == again.shape == (4, 40)


def test_order_weights_and_units_of_measure_do_not_matter(rng):
    expected = layer().fit(X, Y).transform(X)
    order = rng.permutation(40)
    weight = rng.integers(0, 3, 40)
    np.testing.assert_allclose(layer().fit(X[order], Y[order]).transform(X), expected, atol=1e-12)
    np.testing.assert_allclose(layer().fit(3 * X + 5, Y).transform(3 * X + 5), expected, atol=1e-9)
    repeated = layer().fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    np.testing.assert_allclose(layer().fit(X, Y, weight).transform(X), repeated.transform(X), atol=1e-12)


@pytest.mark.parametrize("activation", ["sigmoid", "relu", np.tanh])
def test_other_activations_have_no_centre(activation):
    with pytest.raises(ValueError, match="weight_init='rows' centres units on training rows, and activation="):
        RandomLayer(5, activation=activation, weight_init="rows").fit(X)
    with pytest.raises(ValueError, match="bias_range="):
        layer(bias_range=(0, 1)).fit(X)
    with pytest.raises(ValueError, match="weight_init='rows' takes units from training rows with different inputs"):
        layer().fit(np.ones((5, 2)))
