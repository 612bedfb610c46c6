"""Probabilities that add up and are calibrated; standard deviations that cover."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from support.problems import PAPER, smooth_problem

from ocrep import PinvClassifier, PinvRegressor, TikhonovClassifier, TikhonovRegressor
from ocrep.datasets import load


@pytest.mark.parametrize(("name", "n_hidden"), [("diabetes", 100), ("segment", 200)])
def test_probabilities_are_as_good_as_those_of_a_held_out_calibration(name, n_hidden):
    X, y = load(name, return_X_y=True)
    ours, theirs = [], []
    for seed in range(3):
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=seed)
        network = PinvClassifier(n_hidden, random_state=seed)
        calibrated = PinvClassifier(n_hidden, random_state=seed, calibrate="loo").fit(X_train, y_train)
        ours.append(log_loss(y_test, calibrated.predict_proba(X_test)))
        theirs.append(
            log_loss(
                y_test, CalibratedClassifierCV(network, ensemble=False).fit(X_train, y_train).predict_proba(X_test)
            )
        )
    assert np.mean(ours) <= 1.05 * np.mean(theirs)


@pytest.mark.parametrize("name", ["iris", "diabetes"])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": True, "class_weight": "balanced", "gamma": "loo"}])
def test_probabilities_add_up_and_follow_the_outputs(name, options):
    X, y = load(name, return_X_y=True)
    model = PinvClassifier(30, calibrate="loo", random_state=0, **options).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    assert probabilities.min() >= 0
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(probabilities))
    if name == "diabetes":
        assert np.all(np.diff(probabilities[np.argsort(model.decision_function(X)), 1]) >= 0)
        assert options or probabilities[:, 1].mean() == pytest.approx(y.mean(), abs=0.02)
    np.testing.assert_array_equal(model.predict(X), model.classes_[probabilities.argmax(axis=1)])


def test_calibration_leaves_the_network_alone():
    X, y = load("wine", return_X_y=True)
    plain, calibrated = (PinvClassifier(20, random_state=0, calibrate=c).fit(X, y) for c in (None, "loo"))
    np.testing.assert_array_equal(plain.output_coef_, calibrated.output_coef_)
    # One factor changes no label, and the scores are the outputs themselves.
    np.testing.assert_array_equal(plain.predict_proba(X).argmax(axis=1), plain.decision_function(X).argmax(axis=1))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_labels_scores_and_probabilities_agree(n_classes):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 4))
    score = X[:, 0] + rng.standard_normal(600)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes) + 0.5)
    model = PinvClassifier(20, calibrate="loo", random_state=0).fit(X[:300], y[:300])
    scores, probabilities = model.decision_function(X[300:]), model.predict_proba(X[300:])
    np.testing.assert_array_equal(model.predict(X[300:]), model.classes_[probabilities.argmax(axis=1)])
    by_score = (scores > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X[300:]), model.classes_[by_score])


def test_the_softmax_is_fitted_on_left_out_outputs():
    X, y = load("diabetes", return_X_y=True)
    model = PinvClassifier(40, calibrate="loo", random_state=0, **PAPER).fit(X, y)
    H = model.layer_.transform(X)
    T = np.where(y == 1, 1.0, -1.0)
    A = np.linalg.solve(H.T @ H + model.gamma_ * np.eye(40), H.T)
    left_out = T - (T - H @ A @ T) / (1 - np.sum(H * A.T, axis=1))
    logistic = LogisticRegression(C=100.0).fit(left_out[:, None], y)
    np.testing.assert_allclose(model.calibrator_.slope, logistic.coef_, rtol=1e-3)


def test_calibration_without_regularization_does_not_see_the_labels():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 5))
    y = (X[:, 0] + rng.standard_normal(80) > 0).astype(int)
    for gamma in ("none", 1e-10):
        model = PinvClassifier(60, gamma=gamma, calibrate="loo", random_state=0).fit(X[:40], y[:40])
        assert log_loss(y[40:], model.predict_proba(X[40:])) < 1.0


def test_far_inputs_have_finite_log_probabilities():
    X, y = load("iris", return_X_y=True)
    model = TikhonovClassifier(calibrate="loo").fit(X, y)
    assert np.isfinite(model.predict_log_proba(1e4 * X)).all()


def test_separable_classes_get_finite_probabilities():
    X = np.r_[np.zeros((20, 2)), np.ones((20, 2))] + 0.01 * np.random.default_rng(0).standard_normal((40, 2))
    model = TikhonovClassifier(calibrate="loo").fit(X, np.repeat(["a", "b"], 20))
    probabilities = model.predict_proba([[0, 0], [1, 1], [1e6, 1e6]])
    assert np.isfinite(probabilities).all()
    assert probabilities[0, 0] > 0.9
    assert probabilities[1, 1] > 0.9


def test_calibration_that_cannot_work_raises():
    X, y = load("iris", return_X_y=True)
    with pytest.raises(ValueError, match="'loo' or None"):
        PinvClassifier(5, calibrate="isotonic").fit(X, y)
    with pytest.raises(AttributeError, match="calibrate='loo' reads the rows once more, but partial_fit sees"):
        PinvClassifier(5, calibrate="loo").partial_fit(X, y, classes=[0, 1, 2])
    model = PinvClassifier(5, calibrate="loo", random_state=0).fit(X, y)
    with pytest.raises(NotFittedError, match="not calibrated"):
        model.with_gamma("gcv").predict_proba(X)
    assert model.predict_proba(X).shape == (150, 3)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_standard_deviations_equal_the_posterior(fit_intercept):
    X, y = smooth_problem(80, 5)
    model = PinvRegressor(12, gamma=0.5, direct_link=False, fit_intercept=fit_intercept, random_state=0).fit(X, y)
    new = smooth_problem(10, 5, seed=9)[0]
    H, h = model.layer_.transform(X), model.layer_.transform(new)
    if fit_intercept:
        h, H = h - H.mean(axis=0), H - H.mean(axis=0)
    A = H.T @ H + 0.5 * np.eye(12)
    dof = np.trace(np.linalg.solve(A, H.T @ H))
    noise = np.sum((model.predict(X) - y) ** 2) / (80 - dof - fit_intercept)
    variance = noise * (1 + np.sum(h * np.linalg.solve(A, h.T).T, axis=1) + fit_intercept / 80)
    predicted, deviation = model.predict(new, return_std=True)
    np.testing.assert_allclose(deviation, np.sqrt(variance), rtol=1e-9)
    np.testing.assert_array_equal(predicted, model.predict(new))


def test_directions_without_data_are_uncertain():
    X = np.random.default_rng(0).standard_normal((4, 10))
    model = TikhonovRegressor(2.0, fit_intercept=False).fit(X, np.arange(4.0))
    new = np.random.default_rng(1).standard_normal((3, 10))
    A = X.T @ X + 2.0 * np.eye(10)
    left = np.arange(4.0) - model.predict(X)
    noise = left @ left / (4 - np.trace(np.linalg.solve(A, X.T @ X)))
    expected = np.sqrt(noise * (1 + np.sum(new * np.linalg.solve(A, new.T).T, axis=1)))
    np.testing.assert_allclose(model.predict(new, return_std=True)[1], expected, rtol=1e-10)


def test_nothing_is_known_of_the_noise_without_a_degree_of_freedom():
    X = np.random.default_rng(0).standard_normal((4, 10))
    deviation = TikhonovRegressor("none", fit_intercept=False).fit(X, np.arange(4.0)).predict(X, return_std=True)[1]
    np.testing.assert_array_equal(deviation, np.inf)


def test_weights_enter_the_deviation_of_the_constant():
    X, y = smooth_problem(50, 5)
    w = np.full(50, 2.5)
    w[:10] = 0.0
    model = TikhonovRegressor(1.0).fit(X, y, sample_weight=w)
    mean = np.average(X, axis=0, weights=w)
    C, left = X - mean, y - model.predict(X)
    A = (w[:, None] * C).T @ C + np.eye(5)
    noise = w @ left**2 / (model.factor_.counts.n - 1 - np.trace(np.linalg.solve(A, A - np.eye(5))))
    deviation = model.predict(mean[None, :], return_std=True)[1]
    np.testing.assert_allclose(deviation, np.sqrt(noise * (1 + 1 / 100)), rtol=1e-10)


def test_standard_deviations_agree_with_bayesian_ridge():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    y = X @ np.ones(5) + rng.standard_normal(200)
    theirs = BayesianRidge().fit(X, y)
    ours = TikhonovRegressor(theirs.lambda_ / theirs.alpha_).fit(X, y)
    new = rng.standard_normal((20, 5))
    np.testing.assert_allclose(
        ours.predict(new, return_std=True)[1], theirs.predict(new, return_std=True)[1], rtol=0.03
    )


@pytest.mark.parametrize("gamma", ["ocrep", "gcv", "evidence"])
def test_ninety_percent_intervals_cover_ninety_percent(gamma):
    covered = []
    for seed in range(5):
        X, y = smooth_problem(600, 5, noise=0.3, seed=seed)
        model = PinvRegressor(60, gamma=gamma, fit_intercept=True, random_state=seed).fit(X[:300], y[:300])
        predicted, deviation = model.predict(X[300:], return_std=True)
        covered.append(np.mean(np.abs(y[300:] - predicted) <= 1.6449 * deviation))
    assert 0.86 <= np.mean(covered) <= 0.94


def test_several_targets_have_their_own_deviation():
    X, y = smooth_problem(100, 5)
    model = PinvRegressor(10, random_state=0).fit(X, np.column_stack([y, 10 * y]))
    predicted, deviation = model.predict(X.astype(np.float32), return_std=True)
    assert predicted.shape == deviation.shape == (100, 2)
    assert deviation.dtype == np.float32
    np.testing.assert_allclose(deviation[:, 1], 10 * deviation[:, 0], rtol=1e-5)
