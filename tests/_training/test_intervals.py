"""Leave-one-out intervals: exact against refits, of the right coverage, and clear where they cannot be given."""

import pickle
import warnings

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from support.problems import augmented_solution, smooth_problem

from ocrep import PinvRegressor, PinvRegressorCV, TikhonovRegressor, load_model, save_model, scan
from ocrep.exceptions import RuleEdgeWarning

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
    """|error| and √(1 + v) at each row without it, one refit per row; v is in units of a row of the mean weight."""
    errors, deviations = [], []
    for i in np.flatnonzero(w):
        rest = np.arange(len(X)) != i
        predicted, v = posterior(X[rest], T[rest], w[rest], gamma, intercept, X[i : i + 1])
        errors.append(np.abs(T[i] - predicted[0]))
        deviations.append(np.sqrt(1.0 + w[w > 0].mean() * v))
    return np.array(errors), np.array(deviations)


def quantile(sizes, w, coverage):
    """The weighted quantile of each column, where weights add up to (Σw)²/Σw² and the new row is the largest."""
    w = w[w > 0]
    w = w * w.sum() / (w @ w)
    found = []
    for column in sizes.T:
        order = np.argsort(column)
        reached = np.flatnonzero(np.cumsum(w[order]) >= coverage * (w.sum() + 1) - 1e-9)
        found.append(column[order][reached[0]])
    return np.array(found)


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
    assert model.calibrator_.scale is None  # these errors are about the same everywhere
    plain, deviations = refitted(X, T, w, GAMMA, fit_intercept)
    expected = plain / deviations
    np.testing.assert_allclose(model.calibrator_.sizes, np.sort(expected, axis=0), rtol=1e-9, atol=1e-12)
    new = problem(7, X.shape[1], seed=8)[0]
    predicted, v = posterior(X, T, w, GAMMA, fit_intercept, new)
    for coverage in (0.1, 0.5, 0.9):
        half = quantile(expected, w, coverage) * np.sqrt(1.0 + w[w > 0].mean() * v)[:, None]
        if np.median(deviations) > 2.0:  # about as many features as rows
            half = np.maximum(half, quantile(plain, w, coverage))
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


WEIGHTED = {
    "ridge": TikhonovRegressor("kfold", calibrate="loo"),
    "network": PinvRegressor(20, gamma="ocrep_cv", calibrate="loo", random_state=0),
    "stack": PinvRegressorCV([{"n_hidden": 20}, {"n_hidden": 10, "activation": "tanh"}], random_state=0),
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_only_ratios_of_weights_count_and_no_width_jumps(name):
    """Twice, 2.001 times or a thousandth of all weights give the same intervals, and a slight change a slight one."""
    X, y = smooth_problem(90, 4)
    y = y + 0.3 * np.random.default_rng(0).standard_normal(90)
    weights = np.random.default_rng(1).integers(1, 4, 90).astype(float)
    model = WEIGHTED[name]
    ends = model.fit(X, y, weights).predict_interval(X)
    for factor in (2.0, 2.001, 1e-3 / weights.sum(), 1e3):
        np.testing.assert_allclose(model.fit(X, y, factor * weights).predict_interval(X), ends, rtol=1e-4, atol=1e-4)
    nudged = weights + 1e-6 * np.arange(90) / 90
    np.testing.assert_allclose(model.fit(X, y, nudged).predict_interval(X), ends, rtol=1e-2, atol=1e-2)
    once = model.fit(X, y).predict_interval(X)
    np.testing.assert_allclose(model.fit(X, y, np.full(90, 2.0)).predict_interval(X), once, rtol=1e-4, atol=1e-4)


def test_uneven_weights_count_as_fewer_rows():
    X, y = smooth_problem(60, 4)
    model = TikhonovRegressor(1.0, calibrate="loo").fit(X, y, np.r_[1e6, np.ones(59)])
    with pytest.raises(ValueError, match=r"needs at least 9 rows, and the model was calibrated on 1"):
        model.predict_interval(X)


@pytest.mark.parametrize("gamma", ["kfold", "loo"])
@pytest.mark.parametrize("n_features", [10, 30])
def test_intervals_do_not_collapse_with_as_many_features_as_rows(gamma, n_features):
    """A row that is left out tells of a direction that no other row does, and a new row does not."""
    shares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n_features + 401, n_features))
        y = X @ rng.standard_normal(n_features) + rng.standard_normal(len(X))
        train = slice(n_features + 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuleEdgeWarning)
            model = TikhonovRegressor(gamma, calibrate="loo").fit(X[train], y[train])
        low, high = model.predict_interval(X[n_features + 1 :]).T
        shares.append(np.mean((low <= y[n_features + 1 :]) & (y[n_features + 1 :] <= high)))
    assert np.mean(shares) > 0.8
    assert np.mean(np.array(shares) < 0.3) <= 0.1


def noisy(n, seed):
    """Noise that grows sevenfold with an input that the target itself does not depend on."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 4))
    noise = np.exp(1.0 * X[:, 2] - 1.5)
    return X, X[:, 0] + X[:, 1] + noise * rng.standard_normal(n), noise


ADAPTIVE = {
    "ridge": TikhonovRegressor(calibrate="loo"),
    "network": PinvRegressor(60, activation="relu", weight_init="pairs", calibrate="loo", random_state=0),
    "one of a search": PinvRegressorCV([{"n_hidden": 50}], ensemble=False, calibrate="loo", random_state=0),
    "stack": PinvRegressorCV("quick", random_state=0),
    "stack of trees": PinvRegressorCV([{"n_hidden": 100, "weight_init": "trees"}], random_state=0),
}


@pytest.mark.parametrize("name", ADAPTIVE)
def test_intervals_are_as_wide_as_the_noise_is_large(name):
    model = clone(ADAPTIVE[name]).fit(*noisy(1000, 0)[:2])
    X, y, noise = noisy(4000, 1)
    low, high = model.predict_interval(X).T
    inside = (low <= y) & (y <= high)
    assert 0.88 <= inside.mean() <= 0.93
    for order in (np.argsort(high - low), np.argsort(noise)):
        fifths = [part.mean() for part in np.array_split(inside[order], 5)]
        assert 0.83 < min(fifths) < max(fifths) < 0.97, fifths
    assert np.corrcoef(np.log(high - low), np.log(noise))[0, 1] > 0.8


def test_the_scale_of_errors_may_differ_between_targets_and_follows_their_units():
    X, y, _ = noisy(600, 0)
    quiet = X[:, 0] + 0.1 * np.random.default_rng(1).standard_normal(600)
    model = TikhonovRegressor(calibrate="loo", gamma_per_target=True)
    ends = model.fit(X, np.column_stack([y, quiet])).predict_interval(X)
    widths = ends[:, 1] - ends[:, 0]
    assert widths[:, 0].max() > 3 * widths[:, 0].min()
    assert widths[:, 1].max() < 1.2 * widths[:, 1].min()
    np.testing.assert_allclose(model.fit(X, y).predict_interval(X), ends[:, :, 0], rtol=1e-8)
    np.testing.assert_allclose(model.fit(X, 1e6 * y).predict_interval(X), 1e6 * ends[:, :, 0], rtol=1e-6)


@pytest.mark.parametrize("model", [TikhonovRegressor(calibrate="loo"), PinvRegressorCV("quick", random_state=0)])
def test_equal_noise_has_equal_widths_in_most_cases(model):
    """The scale is judged on rows that it did not see, so noise alone seldom makes one."""
    varied = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1.0, 1.0, (150, 4))
        model.fit(X, X[:, 0] + 0.3 * rng.standard_normal(150))
        varied += model.calibrator_.scale is not None
    assert varied <= 2


def test_rows_beyond_those_that_teach_the_scale_are_covered_too():
    X, y, _ = noisy(7000, 2)
    model = TikhonovRegressor(calibrate="loo").fit(X, y)
    assert model.calibrator_.sizes.shape == (7000, 1)
    X, y, noise = noisy(4000, 3)
    low, high = model.predict_interval(X).T
    fifths = [part.mean() for part in np.array_split(((low <= y) & (y <= high))[np.argsort(noise)], 5)]
    assert 0.85 < min(fifths) < max(fifths) < 0.95, fifths


def test_more_features_than_rows_may_have_a_scale_too(tmp_path):
    X, y, noise = noisy(150, 0)
    wide = np.repeat(X, 60, axis=1) / 60
    model = TikhonovRegressor(calibrate="loo").fit(wide, y)
    assert model.calibrator_.scale is not None
    low, high = model.predict_interval(wide).T
    assert np.corrcoef(np.log(high - low), np.log(noise))[0, 1] > 0.8
    for for_prediction in (False, True):
        save_model(model, tmp_path / "model.skops", for_prediction=for_prediction)
        np.testing.assert_allclose(
            load_model(tmp_path / "model.skops").predict_interval(wide).T, (low, high), rtol=1e-12
        )
    single = model.as_float32().predict_interval(wide.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single.T, (low, high), rtol=1e-3, atol=1e-3)


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
    with pytest.raises(AttributeError, match="calibrate='loo' reads the rows once more, but partial_fit"):
        TikhonovRegressor(1.0, calibrate="loo").partial_fit(X, y)
    with pytest.raises(ValueError, match="calibrate='loo' reads the rows once more, but these rows can be read only"):
        TikhonovRegressor(1.0, calibrate="loo").fit(scan(iter([(X, y)])))
    with pytest.raises(ValueError, match="calibrate='loo' reads the rows once more, but with Dask"):
        TikhonovRegressor(1.0, calibrate="loo").fit(da.from_array(X), da.from_array(y))
    with pytest.raises(ValueError, match="as many features as rows fit every target"):
        TikhonovRegressor("none", calibrate="loo").fit(X[:4], y[:4])
    with pytest.raises(ValueError, match="'loo' or None"):
        TikhonovRegressor(calibrate="cv").fit(X, y)
