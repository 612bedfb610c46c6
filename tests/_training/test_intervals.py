"""Leave-one-out intervals: exact against refits, of the right coverage, and clear where they cannot be given."""

import pickle

import dask.array as da
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from support.problems import augmented_solution, smooth_problem

from ocrep import PinvRegressor, TikhonovRegressor, load_model, save_model, scan

GAMMA = 0.3


def problem(n=40, m=6, n_targets=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m)) * np.geomspace(1.0, 0.1, m)
    return X, X @ rng.standard_normal((m, n_targets)) + 0.5 * rng.standard_normal((n, n_targets))


def posterior(X, T, w, gamma, intercept, new):
    """Predictions for new rows and hᵀ(XᵀX + γI)⁻¹h of each, by plain linear algebra."""
    root = np.sqrt(w)[:, None]
    mean_X, mean_T = ((w @ a) / w.sum() if intercept else 0.0 * a[0] for a in (X, T))
    W = augmented_solution(root * (X - mean_X), root * (T - mean_T), gamma)
    A = (root * (X - mean_X)).T @ (root * (X - mean_X)) + gamma * np.eye(X.shape[1])
    h = new - mean_X
    return mean_T + h @ W, np.sum(h * np.linalg.solve(A, h.T).T, axis=1) + (1 / w.sum() if intercept else 0.0)


def refitted(X, T, w, gamma, intercept):
    """|error| at each row without it, over its standard deviation, one refit per row."""
    errors = []
    for i in np.flatnonzero(w):
        rest = np.arange(len(X)) != i
        predicted, v = posterior(X[rest], T[rest], w[rest], gamma, intercept, X[i : i + 1])
        errors.append(np.abs(T[i] - predicted[0]) / np.sqrt(1.0 / w[i] + v[0]))
    return np.sort(errors, axis=0)


SHAPES = {"tall": {}, "wide": {"n": 25, "m": 40}, "a row alone": {}}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("shape", sorted(SHAPES))
@pytest.mark.parametrize("cut", [False, True])
def test_errors_and_ends_equal_those_of_refitting_without_each_row(shape, fit_intercept, weighted, cut, small_blocks):
    X, T = problem(**SHAPES[shape])
    if shape == "a row alone":  # decides a direction by itself
        X[:, 2] = np.arange(len(X)) == 5
    if cut:
        small_blocks(100)
    w = np.random.default_rng(1).integers(0, 4, len(X)) * 0.7 if weighted else np.ones(len(X))
    model = TikhonovRegressor(GAMMA, fit_intercept=fit_intercept, calibrate="loo").fit(X, T, w if weighted else None)
    expected = refitted(X, T, w, GAMMA, fit_intercept)
    np.testing.assert_allclose(model.calibrator_.sizes, expected, rtol=1e-9, atol=1e-12)
    new = problem(7, X.shape[1], seed=8)[0]
    predicted, v = posterior(X, T, w, GAMMA, fit_intercept, new)
    for coverage in (0.1, 0.5, 0.9):
        rank = int(np.ceil(coverage * (len(expected) + 1)))
        half = expected[rank - 1] * np.sqrt(1.0 + v)[:, None]
        ends = model.predict_interval(new, coverage)
        assert ends.shape == (7, 2, 2)
        np.testing.assert_allclose(ends[:, 0], predicted - half, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(ends[:, 1], predicted + half, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("noise", ["normal", "skewed"])
def test_ninety_percent_are_covered_where_training_errors_are_far_too_small(noise):
    shares, naive = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((560, 40))
        error = rng.standard_normal(560) if noise == "normal" else rng.exponential(size=560) - 1.0
        y = X @ rng.standard_normal(40) + error
        model = TikhonovRegressor(1.0, calibrate="loo").fit(X[:60], y[:60])
        ends = model.predict_interval(X[60:])
        shares.append(np.mean((ends[:, 0] <= y[60:]) & (y[60:] <= ends[:, 1])))
        rest = np.quantile(np.abs(y[:60] - model.predict(X[:60])), 0.9)
        naive.append(np.mean(np.abs(y[60:] - model.predict(X[60:])) <= rest))
    assert 0.88 <= np.mean(shares) <= 0.94
    assert np.mean(naive) < 0.6


def test_intervals_follow_the_targets_and_grow_away_from_the_rows():
    X, y = smooth_problem(200, 4)
    plain, moved = (TikhonovRegressor(1.0, calibrate="loo").fit(X, t) for t in (y, 3.0 - 10.0 * y))
    np.testing.assert_allclose(moved.predict_interval(X), 3.0 - 10.0 * plain.predict_interval(X)[:, ::-1], rtol=1e-9)
    widths = [np.ptp(plain.predict_interval(c * X[:1])[0]) for c in (1.0, 10.0, 100.0)]
    assert widths == sorted(widths)
    assert widths[2] > 2 * widths[0]
    narrow, wide = (plain.predict_interval(X, coverage) for coverage in (0.5, 0.95))
    assert (wide[:, 0] < narrow[:, 0]).all()
    assert (narrow[:, 1] < wide[:, 1]).all()


def test_targets_are_those_of_one_fit_each_and_rows_of_no_weight_do_not_count():
    X, T = problem(80)
    model = PinvRegressor(10, gamma=GAMMA, input_scaling=(-3, 3), calibrate="loo", random_state=0)
    both = model.fit(X, T).predict_interval(X)
    for q in range(2):
        alone = model.fit(X, T[:, q]).predict_interval(X)
        assert alone.shape == (80, 2)
        np.testing.assert_allclose(alone, both[:, :, q], rtol=1e-10)
    more = model.fit(np.r_[X, X[:9] + 1], np.r_[T, 1e3 + T[:9]], np.r_[np.ones(80), np.zeros(9)]).predict_interval(X)
    np.testing.assert_allclose(more, both, rtol=1e-10)


@pytest.mark.parametrize("shape", ["tall", "wide", "a row alone"])
def test_whole_weights_are_repeated_rows(shape):
    X, T = problem(**SHAPES[shape])
    if shape == "a row alone":
        X[:, 2] = np.arange(len(X)) == 5
    times = np.random.default_rng(2).integers(0, 4, len(X))
    times[5] = 3
    weighted = TikhonovRegressor(GAMMA, calibrate="loo").fit(X, T, times)
    repeated = TikhonovRegressor(GAMMA, calibrate="loo").fit(*(np.repeat(a, times, axis=0) for a in (X, T)))
    for coverage in (0.05, 0.3, 0.5, 0.77, 0.9):
        np.testing.assert_allclose(
            weighted.predict_interval(X, coverage), repeated.predict_interval(X, coverage), rtol=1e-9, atol=1e-10
        )


def test_intervals_stay_with_the_model(tmp_path):
    X, y = smooth_problem(120, 4)
    model = PinvRegressor(20, gamma="kfold", calibrate="loo", random_state=0).fit(X, y)
    ends = model.predict_interval(X)
    save_model(model, tmp_path / "model.skops")
    for same in (load_model(tmp_path / "model.skops"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(same.predict_interval(X), ends)
    single = model.predict_interval(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, ends, rtol=1e-4, atol=1e-4)
    again = PinvRegressor(20, gamma="kfold", calibrate="loo", random_state=0)
    again.fit(scan([(X[:50], y[:50]), (X[50:], y[50:])]))
    np.testing.assert_allclose(again.predict_interval(X), ends, rtol=1e-8)
    np.testing.assert_array_equal(
        model.predict(X), PinvRegressor(20, gamma="kfold", random_state=0).fit(X, y).predict(X)
    )


@pytest.mark.parametrize(("coverage", "rank"), [(0.9, 9), (0.55, 6), (0.05, 1), (0.5, 5), (np.float32(0.5), 5)])
def test_the_quantile_counts_the_new_row_as_the_largest(coverage, rank):
    """Of nine rows whose left-out errors are known, without inputs that tell anything."""
    y = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0])
    model = TikhonovRegressor(1e9, fit_intercept=False, calibrate="loo").fit(np.full((9, 1), 1e-9), y)
    np.testing.assert_allclose(model.predict_interval([[0.0]], coverage)[0], [-y[rank - 1], y[rank - 1]], rtol=1e-6)


def test_what_cannot_be_given_is_told_in_a_sentence():
    X, y = smooth_problem(30, 4)
    plain, model = TikhonovRegressor(1.0).fit(X, y), TikhonovRegressor(1.0, calibrate="loo").fit(X, y)
    assert not hasattr(plain, "predict_interval")
    with pytest.raises(AttributeError, match="gives intervals only if calibrated: set calibrate='loo'"):
        plain.predict_interval(X)
    for coverage in (0, 1, -0.1, 1.5, np.nan, "0.9", None, True):
        with pytest.raises(ValueError, match="must be a number between 0 and 1"):
            model.predict_interval(X, coverage)
    with pytest.raises(ValueError, match=r"coverage=0\.99 needs at least 99 rows, and the model was calibrated on 30"):
        model.predict_interval(X, 0.99)
    with pytest.raises(NotFittedError, match="This γ is not calibrated"):
        model.with_gamma(2.0).predict_interval(X)
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        TikhonovRegressor(calibrate="loo").predict_interval(X)
    with pytest.raises(TypeError, match="X is a Dask collection"):
        model.predict_interval(da.from_array(X))
    with pytest.raises(ValueError, match="calibrate='loo' reads the rows once more, but partial_fit"):
        TikhonovRegressor(1.0, calibrate="loo").partial_fit(X, y)
    with pytest.raises(ValueError, match="calibrate='loo' reads the rows once more, but these rows can be read only"):
        TikhonovRegressor(1.0, calibrate="loo").fit(scan(iter([(X, y)])))
    with pytest.raises(ValueError, match="calibrate='loo' reads the rows once more, but with Dask"):
        TikhonovRegressor(1.0, calibrate="loo").fit(da.from_array(X), da.from_array(y))
    with pytest.raises(ValueError, match="as many features as rows fit every target"):
        TikhonovRegressor("none", calibrate="loo").fit(X[:4], y[:4])
    with pytest.raises(ValueError, match="'loo' or None"):
        TikhonovRegressor(calibrate="cv").fit(X, y)
