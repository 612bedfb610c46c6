"""One network under many γ: its errors equal those of separate fits, at every leading size."""

import numpy as np
import pytest
from support.problems import random_problem, smooth_problem

from ocrep import PinvClassifier, PinvRegressor, TikhonovRegressor, rules
from ocrep.analysis.evaluator import Evaluator, gamma_grid

X, Y = smooth_problem(150, 5)
X_TEST, Y_TEST = smooth_problem(60, 5, seed=1)


@pytest.fixture(scope="module")
def model():
    return PinvRegressor(40, gamma="ocrep", random_state=0).fit(X, Y)


def evaluator(fitted, X, y):
    return Evaluator.of(fitted, (X, y)).with_folds(len(y))


def loss(fitted, X, y):
    """Squared error or number of misclassified rows."""
    wrong = fitted.predict(X) != y if isinstance(fitted, PinvClassifier) else fitted.predict(X) - y
    return float(np.sum(wrong.astype(float) ** 2))


@pytest.mark.parametrize("options", [{}, {"direct_link": True, "fit_intercept": True}], ids=["plain", "linked"])
@pytest.mark.parametrize("kind", [PinvRegressor, PinvClassifier])
def test_errors_of_a_leading_size_equal_those_of_a_fit(kind, options):
    classes = kind is PinvClassifier
    y, y_test = (np.digitize(t, [-0.5, 0.5]) if classes else t for t in (Y, Y_TEST))
    common = {"input_scaling": (X.min(axis=0), X.max(axis=0)), "random_state": 0, **options}
    whole = kind(30, gamma="none", store_folds=True, **common).fit(X, y)
    network = Evaluator.of(whole, (X, y), test=(X_TEST, y_test))
    gammas = np.array([1e-4, 1e-2, 1.0])
    fold = whole.folds_.plan.of(X)
    root = 1.0 if classes else 0.5
    for size in (3, 12):
        leading = network.leading(whole.factor_.n_features - 30 + size)
        fits = [kind(size, gamma=gamma, **common).fit(X, y) for gamma in gammas]
        for errors, rows in ((leading.training_errors, (X, y)), (leading.test_errors, (X_TEST, y_test))):
            expected = [(loss(fit, *rows) / len(rows[1])) ** root for fit in fits]
            np.testing.assert_allclose(errors(gammas), expected, rtol=1e-8)
        held_out = sum(
            np.array([loss(fit.fit(X[fold != v], y[fold != v]), X[fold == v], y[fold == v]) for fit in fits])
            for v in range(3)
        )
        np.testing.assert_allclose(leading.cv_errors(gammas), (held_out / len(y)) ** root, rtol=1e-8)


def test_without_rows_errors_are_unknown_and_rules_that_read_rows_do_not_apply(model):
    network = Evaluator.of(model)
    for errors in (network.training_errors, network.test_errors, network.cv_errors):
        assert np.isnan(errors(np.array([1.0, 2.0]))).all()
    assert network.apply("ocrep").gamma == model.gamma_
    assert "reads the rows" in network.apply("loo").reason


def test_the_grid_covers_what_matters_and_holds_every_choice(model):
    spectrum = model.spectrum_
    grid = gamma_grid(spectrum, [None, 0.0, 0.123, 1e-40])
    assert {0.123, 1e-40} <= set(grid)
    assert (np.diff(grid) > 0).all()
    even = gamma_grid(spectrum)
    assert even[0] < spectrum.smallest**2
    assert even[-1] > spectrum.largest**2
    # At the lower end γ changes next to nothing, at the upper end it leaves next to nothing.
    assert spectrum.dof(even[0]) > 0.9 * spectrum.rank
    assert spectrum.norm(even[-1]) < 0.02 * spectrum.norm(spectrum.largest**2)


def test_noise_is_one_standard_error_of_paired_differences():
    H, T = random_problem(60, 5)
    fitted = TikhonovRegressor(gamma=1.0, store_folds=3).fit(H, T[:, 0])
    network = evaluator(fitted, H, T[:, 0])
    gammas, best = np.array([0.5, 50.0]), 0.5
    fold = fitted.folds_.plan.of(H)
    errors = []
    for v in range(3):
        fits = [TikhonovRegressor(gamma=g).fit(H[fold != v], T[fold != v, 0]) for g in gammas]
        errors.append([np.mean((fit.predict(H[fold == v]) - T[fold == v, 0]) ** 2) for fit in fits])
    differences = np.array(errors)[:, 1] - np.array(errors)[:, 0]
    expected = np.std(differences, ddof=1) / np.sqrt(3) / (2 * np.sqrt(np.mean(np.array(errors)[:, 0])))
    np.testing.assert_allclose(network.cv_noise(gammas, best), [0.0, expected], rtol=1e-8)


def test_noise_of_a_share_is_binomial_and_never_zero():
    labels_of_x = (X[:, 0] > 0).astype(int)
    fitted = TikhonovRegressor(gamma=1.0).fit(X, labels_of_x)
    assert evaluator(fitted, X, labels_of_x).apply("ocrep").gamma > 0
    fitted = PinvClassifier(4, activation="identity", random_state=0).fit(X[:, :1], labels_of_x)
    network = evaluator(fitted, X[:, :1], labels_of_x)
    share = network.cv_errors(np.array([1e-6]))[0]
    smoothed = (share * 150 + 1) / 152
    assert network.cv_noise(np.array([1.0]), 1e-6)[0] == pytest.approx(np.sqrt(smoothed * (1 - smoothed) / 150))
    assert network.cv_noise(np.array([1.0]), 1e-6)[0] > 0


def test_perfect_fits_and_few_rows_have_a_noise_too():
    exact = TikhonovRegressor(gamma=0.0, fit_intercept=False).fit(np.eye(2).repeat(5, axis=0), np.zeros(10))
    network = evaluator(exact, np.eye(2).repeat(5, axis=0), np.zeros(10))
    assert network.cv_noise(np.array([0.0, 1.0]), 0.0).tolist() == [0.0, 0.0]
    alone = TikhonovRegressor(gamma=1.0, fit_intercept=False).fit(X[:1], Y[:1])
    assert np.isnan(evaluator(alone, X[:1], Y[:1]).cv_noise(np.array([1.0]), 1.0)).all()


def test_rules_that_do_not_apply_say_why(model):
    outcome = evaluator(model, X, Y).apply(rules.KFold(n_folds=7))
    assert outcome.gamma is None
    assert "n_folds=7" in outcome.reason
