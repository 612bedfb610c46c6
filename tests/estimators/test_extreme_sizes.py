"""Numbers near the limits of float64, and columns far from zero."""

import numpy as np
import pytest
from scipy import sparse

from ocrep import PinvRegressor, PinvRegressorCV, RandomLayer, TikhonovRegressor, rules
from ocrep._linalg.triangle import column_lengths
from ocrep.exceptions import RuleEdgeWarning


def problem(shape=(60, 3)):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape)
    return X, X @ np.arange(1.0, shape[1] + 1.0) + 0.1 * rng.standard_normal(shape[0])


@pytest.mark.parametrize("shape", [(60, 3), (2000, 5), (10, 20)])
@pytest.mark.parametrize("size", [1e-150, 1e-163, 1e-200, 1e-300])
@pytest.mark.parametrize("intercept", [False, True])
def test_numbers_whose_squares_vanish_are_refused_and_not_taken_for_zeros(shape, size, intercept):
    X, y = problem(shape)
    for gamma in ("kfold", "ocrep", "loo", 1.0):
        model = TikhonovRegressor(gamma, fit_intercept=intercept)
        with pytest.raises(ValueError, match=r"features have size \S+, which float64 cannot square: rescale"):
            model.fit(size * X, y)
        with pytest.raises(ValueError, match=r"targets have size \S+, which float64 cannot square: rescale"):
            model.fit(X, size * y)


def test_a_network_scales_its_inputs_and_takes_small_ones():
    X, y = problem()
    usual, small = (PinvRegressor(10, random_state=0).fit(c * X, y).predict(c * X) for c in (1.0, 2.0**-900))
    np.testing.assert_allclose(small, usual, rtol=1e-3)


@pytest.mark.parametrize("size", [1e150, 1e200, 1e300])
def test_targets_whose_squares_overflow_are_named_by_a_stack(size):
    X = np.random.default_rng(0).standard_normal((60, 4))
    with pytest.raises(ValueError, match=r"^The targets are too large: .*Divide them by"):
        PinvRegressorCV("quick", random_state=0).fit(X, size * X[:, 0])


def test_zeros_are_zeros():
    X, y = problem()
    assert not TikhonovRegressor("kfold").fit(X, 0.0 * y).coef_.any()
    assert not TikhonovRegressor("kfold", fit_intercept=False).fit(X, 0.0 * y).coef_.any()
    assert not TikhonovRegressor("gcv").fit(0.0 * X, y).coef_.any()


def test_lengths_keep_their_digits_where_squares_vanish():
    A = np.random.default_rng(0).standard_normal((50, 4))
    A[:, 2] = 0.0
    exact = np.linalg.norm(A, axis=0)
    for size in (1.0, 2.0**-500, 2.0**-1000, 2.0**-540):
        np.testing.assert_allclose(column_lengths(size * A) / size, exact, rtol=1e-12)
    mixed = A * np.array([1.0, 2.0**-600, 1.0, 2.0**-900])
    np.testing.assert_allclose(column_lengths(mixed) / [1.0, 2.0**-600, 1.0, 2.0**-900], exact, rtol=1e-12)
    assert column_lengths(A[:0]).tolist() == [0.0] * 4


@pytest.mark.parametrize("offset", [0.0, 1e3, -1e6, 1e12])
@pytest.mark.parametrize("activation", ["sigmoid", "tanh", "relu"])
def test_sparse_and_dense_rows_agree_where_a_column_is_far_from_zero(offset, activation):
    X = np.random.default_rng(0).uniform(size=(100, 4))
    X[:, 1] += offset
    X[::2, 2] = 0.0
    layer = RandomLayer(20, activation=activation, random_state=0).fit(X)
    for rows in (sparse.csr_array(X), sparse.csc_matrix(X), sparse.coo_array(X)):
        np.testing.assert_allclose(layer.transform(rows), layer.transform(X), rtol=1e-12, atol=1e-13)
        again = RandomLayer(20, activation=activation, random_state=0).fit(rows)
        np.testing.assert_allclose(again.transform(rows), layer.transform(X), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", [name for name in rules.names() if name.endswith("_inverse")])
def test_the_inverse_of_noise_that_is_only_rounding_is_no_regularization(name):
    X, _ = problem()
    with pytest.raises(ValueError, match="divides by zero here: a weight or the noise variance is 0 up to rounding"):
        TikhonovRegressor(name).fit(X, X @ [1.0, 2.0, 3.0])
    noise = 1e-6 * np.random.default_rng(1).standard_normal(60)
    assert TikhonovRegressor(name).fit(X, X @ [1.0, 2.0, 3.0] + noise).gamma_ > 0.0


@pytest.mark.parametrize("size", [1e4, 1e5, 1e6])
@pytest.mark.parametrize("name", ["gcv", "kfold", "loo", "ocrep_cv"])
def test_a_small_column_counts_beside_a_large_one(size, name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = X[:, 1] + 0.1 * rng.standard_normal(200)
    assert TikhonovRegressor(name).fit(X * [size, 1.0], y).score(X * [size, 1.0], y) > 0.98


def test_a_floor_that_hides_a_small_column_is_reported():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2)) * [1e5, 1.0]
    y = X[:, 1] + 0.1 * rng.standard_normal(200)
    with pytest.warns(RuleEdgeWarning, match="below its floor"):
        hidden = TikhonovRegressor(rules.GCV(floor=1e-8)).fit(X, y)
    assert hidden.choice_.floored
    assert hidden.score(X, y) < 0.9
