"""Forgetting: `partial_fit` with a factor λ equals a fit of all rows with the weights λ^age."""

import numpy as np
import pytest
from support.advice import some_advice
from support.device import on_device, to_numpy
from support.problems import smooth_problem
from support.weights import weights_of

from ocrep import PinvClassifier, PinvRegressor, TikhonovClassifier, TikhonovRegressor, load_model, rules, save_model

N, LAMBDA = 240, 0.7
CUTS = [slice(0, 50), slice(50, 51), slice(51, 130), slice(130, N)]
AGES = np.repeat(np.arange(len(CUTS))[::-1], [s.stop - s.start for s in CUTS])
LAYER = {"n_hidden": 12, "random_state": 0, "input_scaling": (-1.0, 1.0)}
ESTIMATORS = {PinvRegressor: LAYER, PinvClassifier: LAYER, TikhonovRegressor: {}, TikhonovClassifier: {}}


def rows_of(kind):
    X, y = smooth_problem(N, 5)
    labels = np.array(["low", "middle", "high"])[(y > 0).astype(int) + (y > 0.8)]
    return X, labels if kind in (PinvClassifier, TikhonovClassifier) else y


def learned(kind, X, y, weight=None, **options):
    model = kind(**{**ESTIMATORS[kind], **options})
    classes = {"classes": np.unique(y)} if hasattr(model, "class_weight") else {}
    for s in CUTS:
        model.partial_fit(X[s], y[s], sample_weight=None if weight is None else weight[s], **classes)
    return model


def assert_same(ours, batch, rtol=1e-12):
    scale = np.abs(weights_of(batch)).max()
    np.testing.assert_allclose(weights_of(ours), weights_of(batch), rtol=0, atol=rtol * scale)
    np.testing.assert_allclose(ours.intercept_, batch.intercept_, rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(ours.singular_values_, batch.singular_values_, rtol=rtol)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_it_equals_a_fit_with_weights_that_decay_with_age(kind, fit_intercept, weighted):
    X, y = rows_of(kind)
    weight = np.random.default_rng(0).uniform(0.0, 2.0, N) * (np.arange(N) % 3 > 0) if weighted else None
    decayed = LAMBDA**AGES * (1.0 if weight is None else weight)
    options = {"gamma": 0.1, "fit_intercept": fit_intercept}
    batch = kind(**ESTIMATORS[kind], **options).fit(X, y, decayed)
    ours = learned(kind, X, y, weight, forgetting=LAMBDA, **options)
    assert_same(ours, batch)
    for name in ("n_rows", "whole_weights", "n_seen", "n"):
        assert getattr(ours.factor_.counts, name) == getattr(batch.factor_.counts, name)
    assert ours.factor_.counts.weight_sum == pytest.approx(decayed.sum(), rel=1e-14)


@pytest.mark.parametrize(
    "rule", ["gcv", "ocrep", "kfold", "ocrep_cv", rules.KFold(split="blocks", block_length=7)], ids=str
)
def test_rules_see_the_decayed_weights_and_so_do_folds(rule):
    X, y = rows_of(TikhonovRegressor)
    batch = TikhonovRegressor(rule).fit(X, y, LAMBDA**AGES)
    ours = learned(TikhonovRegressor, X, y, gamma=rule, forgetting=LAMBDA)
    assert ours.gamma_ == pytest.approx(batch.gamma_, rel=1e-8)
    if batch.folds_ is not None:
        gammas = np.array([1e-3, 1.0, 100.0])
        np.testing.assert_allclose(ours.folds_.squared_errors(gammas), batch.folds_.squared_errors(gammas), rtol=1e-11)
        np.testing.assert_allclose(ours.folds_.weight_sums, batch.folds_.weight_sums, rtol=1e-13)
        assert ours.folds_.n_read == N


@some_advice
@pytest.mark.parametrize("rule", [0.1, "kfold"])
def test_rows_fewer_than_features_decay_too(rule):
    X, y = np.random.default_rng(1).standard_normal((N, 300)), rows_of(TikhonovRegressor)[1]
    batch = TikhonovRegressor(rule).fit(X, y, LAMBDA**AGES)
    ours = learned(TikhonovRegressor, X, y, gamma=rule, forgetting=LAMBDA)
    assert ours.factor_.rows is not None
    assert ours.gamma_ == pytest.approx(batch.gamma_, rel=1e-8)
    assert_same(ours.with_gamma(0.1), batch.with_gamma(0.1), 1e-11)


def test_a_model_goes_on_after_it_was_saved_and_on_a_device(tmp_path):
    X, y = rows_of(TikhonovRegressor)
    batch = TikhonovRegressor(0.1).fit(X, y, LAMBDA**AGES)
    saved = TikhonovRegressor(0.1, forgetting=LAMBDA)
    there = TikhonovRegressor(0.1, forgetting=LAMBDA)
    for s in CUTS:
        saved.partial_fit(X[s], y[s])
        save_model(saved, tmp_path / "model.skops")
        saved = load_model(tmp_path / "model.skops")
        there.partial_fit(on_device(X[s]), on_device(y[s]))
    assert_same(saved, batch)
    np.testing.assert_allclose(to_numpy(there.coef_), batch.coef_, rtol=0, atol=1e-12)


def test_the_limits_are_all_rows_and_the_last_rows():
    X, y = rows_of(TikhonovRegressor)
    everything = learned(TikhonovRegressor, X, y, gamma="kfold")
    np.testing.assert_array_equal(learned(TikhonovRegressor, X, y, gamma="kfold", forgetting=1).coef_, everything.coef_)
    last = TikhonovRegressor(0.1).fit(X[CUTS[-1]], y[CUTS[-1]])
    nearly = learned(TikhonovRegressor, X, y, gamma=0.1, forgetting=1e-14)
    np.testing.assert_allclose(nearly.coef_, last.coef_, rtol=1e-10)


def test_fit_forgets_nothing_and_its_rows_are_forgotten_later():
    X, y = rows_of(TikhonovRegressor)
    model = TikhonovRegressor(0.1, forgetting=LAMBDA).fit(X[:100], y[:100])
    np.testing.assert_array_equal(model.coef_, TikhonovRegressor(0.1).fit(X[:100], y[:100]).coef_)
    model.partial_fit(X[100:], y[100:])
    assert_same(model, TikhonovRegressor(0.1).fit(X, y, np.where(np.arange(N) < 100, LAMBDA, 1.0)))


@pytest.mark.parametrize("value", [0, -0.5, 1.01, np.inf, np.nan, "0.9", None, True])
def test_other_numbers_are_told_in_a_sentence(value):
    X, y = rows_of(TikhonovRegressor)
    for call in (TikhonovRegressor.fit, TikhonovRegressor.partial_fit):
        with pytest.raises(ValueError, match=r"forgetting=.* must be a number > 0 and ≤ 1"):
            call(TikhonovRegressor(forgetting=value), X, y)
