"""A metric learned from gradients: it finds the inputs and directions that matter, and is judged honestly."""

import numpy as np
import pytest
from sklearn.base import clone
from support.device import on_device, to_numpy

from ocrep import PinvClassifier, PinvRegressor, PinvRegressorCV, load_model, rules, save_model, scan

D = 30
LAYERS = [{}, {"weight_init": "pairs", "activation": "relu"}, {"weight_init": "rows", "activation": "laplace"}]


def rmse(model, X, expected):
    return np.sqrt(np.mean((model.predict(X) - expected) ** 2))


def four_matter(X):
    return np.sin(2 * X[:, 0]) + X[:, 1] + X[:, 1] * X[:, 2] + (X[:, 3] + 0.3) ** 2


def one_direction(X):
    return np.sin(3 * X[:, :10] @ np.linspace(1, -1, 10) / np.sqrt(3.7))


def rows(function, n=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, D))
    return X, function(X) + 0.1 * rng.standard_normal(n)


def test_inputs_that_do_not_matter_fade():
    X, y = rows(four_matter)
    new, _ = rows(four_matter, seed=1)
    plain = PinvRegressor(300, random_state=0).fit(X, y)
    learned = PinvRegressor(300, metric="diagonal", random_state=0).fit(X, y)
    assert np.sum(learned.metric_[:4] ** 2) >= 0.9 * np.sum(learned.metric_**2)
    assert np.sum(learned.metric_**2) == pytest.approx(D)
    assert rmse(learned, new, four_matter(new)) < 0.5 * rmse(plain, new, four_matter(new))
    assert not hasattr(plain, "metric_")


def test_a_full_metric_finds_a_direction():
    X, y = rows(one_direction)
    new, _ = rows(one_direction, seed=1)
    errors = {
        metric: rmse(PinvRegressor(300, metric=metric, random_state=0).fit(X, y), new, one_direction(new))
        for metric in (None, "diagonal", "full")
    }
    assert errors["full"] < 0.3 * errors["diagonal"] < 0.3 * errors[None]


@pytest.mark.filterwarnings("ignore:gamma=OCRePCV")  # of two folds, one is left when the other is held out
@pytest.mark.parametrize("metric", ["diagonal", "full"])
@pytest.mark.parametrize("layer", [{}, {"weight_init": "rows", "activation": "gaussian", "direct_link": False}])
def test_the_held_out_error_is_that_of_learning_the_metric_anew(metric, layer):
    X, y = rows(four_matter, 300)
    fold = rules.KFold().folds.of(X)
    model = PinvRegressor(40, metric=metric, input_scaling=(-1, 1), random_state=0, **layer).fit(X, y)
    squares = np.empty(len(y))
    for v in range(3):
        out = fold == v
        # The rounds choose γ by the same rule, on the folds that are left.
        alone = clone(model).fit(X[~out], y[~out]).with_gamma(model.gamma_)
        squares[out] = (y[out] - alone.predict(X[out])) ** 2
    assert model.choice_.held_out_error == pytest.approx(squares.mean(), rel=1e-6)


@pytest.mark.filterwarnings("ignore::ocrep.exceptions.RuleEdgeWarning")
def test_noise_is_not_learned_by_heart():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 20))
    y = rng.standard_normal(200)
    for metric in ("diagonal", "full"):
        model = PinvRegressor(60, metric=metric, random_state=0).fit(X, y)
        assert model.choice_.held_out_error > 0.95 * y.var()


def test_candidates_may_have_metrics():
    X, y = rows(four_matter, 600)
    layers = [{"n_hidden": 60}, {"n_hidden": 60, "metric": "diagonal"}]
    search = PinvRegressorCV(layers, random_state=0, ensemble=False).fit(X, y)
    assert search.best_params_ == layers[1]
    assert search.best_estimator_.metric_.shape == (D,)


@pytest.mark.parametrize("metric", ["diagonal", "full"])
@pytest.mark.parametrize("layer", LAYERS)
def test_models_are_saved_streamed_and_classified(metric, layer, tmp_path):
    X, y = rows(four_matter, 400)
    model = PinvRegressor(30, metric=metric, random_state=0, **layer).fit(X, y)
    save_model(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(load_model(tmp_path / "model.skops").predict(X), model.predict(X))
    streamed = clone(model).fit(scan([(X[:150], y[:150]), (X[150:], y[150:])]))
    np.testing.assert_allclose(streamed.predict(X), model.predict(X), rtol=1e-6, atol=1e-6)
    there = clone(model).fit(on_device(X), on_device(y))
    np.testing.assert_allclose(to_numpy(there.predict(on_device(X))), model.predict(X), rtol=1e-5, atol=1e-6)
    labels = y > np.median(y)
    assert PinvClassifier(30, metric=metric, random_state=0, **layer).fit(X, labels).score(X, labels) > 0.75


def test_targets_without_gradients_leave_inputs_alone():
    X, _ = rows(four_matter, 100)
    constant = PinvRegressor(10, metric="full", gamma="gcv", random_state=0).fit(X, np.ones(100))
    assert not hasattr(constant, "metric_")
    np.testing.assert_allclose(constant.predict(X), 1.0)


def test_what_a_metric_cannot_do_is_said_in_a_sentence():
    X, y = rows(four_matter, 60)
    for options, sentence in (
        ({"metric": "round"}, "must be 'diagonal', 'full' or None"),
        ({"metric": "full", "metric_rounds": 0}, "metric_rounds=0"),
        ({"metric": "full", "weight_init": "trees"}, "leaves of trees have none"),
        ({"metric": "full", "calibrate": "loo"}, "set calibrate=None"),
        ({"metric": "full", "gamma": "loo"}, "has seen their targets"),
    ):
        with pytest.raises(ValueError, match=sentence):
            PinvRegressor(10, **options).fit(X, y)
    assert not hasattr(PinvRegressor(metric="full"), "partial_fit")


@pytest.mark.parametrize("seed", range(5))
def test_few_rows_that_no_tree_divides_give_a_model_without_a_warning(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(4 + seed % 2, 3)).astype(float)
    y = np.full(len(X), "a")
    y[rng.permutation(len(X))[:2]] = "b"
    model = PinvClassifier(5, metric="diagonal", gamma=1.0, random_state=0).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
