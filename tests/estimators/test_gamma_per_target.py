"""`gamma_per_target=True` and `gamma` as an array: one model of many targets is as many models of one."""

import itertools

import numpy as np
import onnxruntime
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeCV
from sklearn.utils.estimator_checks import check_estimator
from support.advice import some_advice
from support.device import on_device, to_numpy

from ocrep import (
    PinvRegressor,
    TikhonovClassifier,
    TikhonovRegressor,
    compare_rules,
    load_model,
    rules,
    save_model,
    scan,
)
from ocrep.displays import ConditionDisplay, GainDisplay, GammaPathDisplay, SpectrumDisplay
from ocrep.onnx import to_onnx
from ocrep.report import diagnose
from ocrep.rules.ridge import FORMULAS

pytestmark = some_advice  # targets of very different noise
Q = 4


def problem(n_rows, n_features, kappa=10.0, seed=0):
    """Features of a given condition, far from zero, and targets of very different noise."""
    rng = np.random.default_rng(seed)
    p = min(n_rows, n_features)
    U, V = (np.linalg.qr(rng.standard_normal((n, p)))[0] for n in (n_rows, n_features))
    X = n_rows**0.5 * (U * np.geomspace(1.0, 1.0 / kappa, p)) @ V.T + 0.3
    Y = X @ V @ rng.standard_normal((p, Q))
    return X, Y + np.geomspace(1.0, 8.0, Q) * rng.standard_normal((n_rows, Q))


ROUTES = {
    "reflections": ((300, 20), 10.0, "qr"),
    "products": ((1500, 20), 10.0, "gram"),
    "preconditioned": ((1500, 20), 1e6, "auto"),
    "wide": ((30, 60), 5.0, "auto"),
    "wide, ill conditioned": ((30, 60), 1e5, "auto"),
}


def is_flat_at_both(choice, gamma):
    """Whether a rule found another γ only because rounding decides between them: its criterion is the same at both."""
    if choice.curve is None or abs(gamma - choice.gamma) <= 1e-9 * choice.gamma:
        return False
    at_both = np.interp(np.log([gamma, choice.gamma]), np.log(choice.curve.gammas), choice.curve.criterion)
    assert at_both[0] == pytest.approx(at_both[1], rel=1e-12)
    return True


CRITERIA = [name for name in rules.names() if name not in FORMULAS and name not in ("mallows", "discrepancy")]


@pytest.mark.parametrize("rule", [*CRITERIA, rules.Discrepancy(noise=1.0), 0.7], ids=str)
@pytest.mark.parametrize("route", ROUTES)
def test_each_target_is_fitted_as_if_it_were_alone(route, rule, small_blocks):
    small_blocks(2**13)
    shape, kappa, solver = ROUTES[route]
    X, Y = problem(*shape, kappa)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    options = {"gamma": rule, "solver": solver}
    together = TikhonovRegressor(**options, gamma_per_target=True).fit(X, Y, sample_weight=weight)
    assert together.gamma_.shape == together.regularized_condition_number_.shape == (Q,)
    assert together.choice_.gamma is together.gamma_
    predicted, std = together.predict(X, return_std=True)
    for q in range(Q):
        alone = TikhonovRegressor(**options).fit(X, Y[:, q], sample_weight=weight)
        expected, expected_std = alone.predict(X, return_std=True)
        # Where a rule hardly regularizes, the condition number multiplies the rounding of products.
        condition = alone.regularized_condition_number_
        atol = max(1e-12, np.finfo(float).eps * condition) * np.abs(expected).max()
        np.testing.assert_allclose(predicted[:, q], expected, atol=atol, rtol=0)
        if is_flat_at_both(alone.choice_, together.gamma_[q]):
            continue
        np.testing.assert_allclose(std[:, q], expected_std, rtol=1e-10)
        if rule in ("kfold", "ocrep_cv"):
            error = alone.choice_.held_out_error
            assert together.choice_.held_out_error[q] == pytest.approx(error, rel=1e-9)
        assert together.regularized_condition_number_[q] == pytest.approx(condition, rel=1e-10)


@pytest.mark.parametrize("rule", [*FORMULAS, "mallows"])
@pytest.mark.parametrize("route", [route for route in ROUTES if "wide" not in route])
def test_rules_that_read_the_noise_choose_for_each_target_as_if_it_were_alone(route, rule):
    """Coefficients and noise are as right as the route makes them: products of rows prove 10⁻¹⁰."""
    shape, kappa, solver = ROUTES[route]
    X, Y = problem(*shape, kappa)
    together = TikhonovRegressor(rule, solver=solver, gamma_per_target=True).fit(X, Y)
    for q in range(Q):
        alone = TikhonovRegressor(rule, solver=solver).fit(X, Y[:, q])
        expected = alone.predict(X)
        np.testing.assert_allclose(together.predict(X)[:, q], expected, atol=1e-10 * np.abs(expected).max(), rtol=0)


def test_files_streams_and_blocks_give_the_same_gammas():
    X, Y = problem(400, 8)
    whole = TikhonovRegressor("kfold", gamma_per_target=True, solver="qr").fit(X, Y)
    blocks = [(X[a:b], Y[a:b]) for a, b in itertools.pairwise((0, 90, 91, 300, 400))]
    scanned = TikhonovRegressor("kfold", gamma_per_target=True).fit(scan(blocks))
    partial = TikhonovRegressor("kfold", gamma_per_target=True)
    for x, y in blocks:
        partial.partial_fit(x, y)
    for other in (scanned, partial):
        np.testing.assert_allclose(other.gamma_, whole.gamma_, rtol=1e-9)


def test_dask_gives_the_same_gammas():
    da = pytest.importorskip("dask.array")
    X, Y = problem(400, 8)
    model = TikhonovRegressor("kfold", gamma_per_target=True)
    ours = clone(model).fit(da.from_array(X, (100, 8)), da.from_array(Y, (100, Q)))
    np.testing.assert_allclose(ours.gamma_, model.fit(X, Y).gamma_, rtol=1e-8)


@pytest.mark.parametrize("rule", ["gcv", "kfold", "loo", "ocrep_cv", "aicc", "evidence", "lcurve", "quasi_optimality"])
def test_arrays_on_a_device_give_the_same_gammas(rule):
    X, Y = problem(60, 5)
    model = TikhonovRegressor(rule, gamma_per_target=True, calibrate="loo")
    ours, theirs = clone(model).fit(X, Y), clone(model).fit(on_device(X), on_device(Y))
    assert isinstance(theirs.gamma_, np.ndarray)
    np.testing.assert_allclose(theirs.gamma_, ours.gamma_, rtol=1e-8)
    np.testing.assert_allclose(to_numpy(theirs.coef_), ours.coef_, rtol=1e-7)
    for name in ("predict", "predict_interval"):
        found = getattr(theirs, name)(on_device(X[:5]))
        np.testing.assert_allclose(to_numpy(found), getattr(ours, name)(X[:5]), rtol=1e-7)


def test_leave_one_out_per_target_is_that_of_ridge_cv():
    X, Y = problem(60, 5)
    grid = np.logspace(-3, 3, 25)
    ours = TikhonovRegressor(rules.LOO(grid=grid), gamma_per_target=True).fit(X, Y)
    theirs = RidgeCV(grid, alpha_per_target=True).fit(X, Y)
    np.testing.assert_array_equal(ours.gamma_, theirs.alpha_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)


def test_gamma_may_be_one_number_for_each_target():
    X, Y = problem(80, 6)
    gammas = np.array([0.0, 1e-3, 2.0, 500.0])
    model = TikhonovRegressor(gammas).fit(X, Y)
    np.testing.assert_array_equal(model.gamma_, gammas)
    for q, gamma in enumerate(gammas):
        alone = TikhonovRegressor(float(gamma)).fit(X, Y[:, q])
        np.testing.assert_allclose(model.coef_[q], alone.coef_, rtol=1e-11)
    again = TikhonovRegressor("gcv").fit(X, Y).with_gamma(gammas.tolist())
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-12)
    np.testing.assert_allclose(again.with_gamma("gcv").gamma_, TikhonovRegressor("gcv").fit(X, Y).gamma_, rtol=1e-12)
    clone(model).fit(X, Y)
    network = PinvRegressor(10, random_state=0).fit(X, Y).with_gamma(gammas)
    np.testing.assert_array_equal(network.gamma_, gammas)


def test_a_rule_chooses_for_each_target_in_with_gamma_too():
    X, Y = problem(80, 6)
    model = TikhonovRegressor("kfold", gamma_per_target=True).fit(X, Y)
    gcv = TikhonovRegressor("gcv", gamma_per_target=True).fit(X, Y)
    np.testing.assert_allclose(model.with_gamma("gcv").gamma_, gcv.gamma_, rtol=1e-10)
    assert model.with_gamma(3.0).gamma_.tolist() == [3.0] * Q


def test_one_target_has_one_gamma_in_an_array():
    X, Y = problem(80, 6)
    model = TikhonovRegressor("gcv", gamma_per_target=True).fit(X, Y[:, 0])
    assert model.gamma_.shape == (1,)
    assert model.predict(X).shape == (80,)
    assert model.coef_.shape == (6,)


@pytest.mark.parametrize(
    ("gamma", "told"),
    [
        (np.ones(3), "gamma has 3 entries, and there are 4 targets"),
        ([1.0, 1.0, -2.0, 1.0], "gamma=-2.0 cannot regularize"),
        ([1.0, 1.0, np.nan, 1.0], "gamma=nan cannot regularize"),
        (np.ones((2, 2)), "one number ≥ 0 for each target, in one dimension"),
        (["gcv", "loo", "gcv", "gcv"], "one number ≥ 0 for each target, in one dimension"),
        ([], "one number ≥ 0 for each target, in one dimension"),
    ],
)
def test_arrays_that_cannot_be_gammas_raise_with_a_reason(gamma, told):
    X, Y = problem(30, 3)
    with pytest.raises(ValueError, match=told):
        TikhonovRegressor(gamma).fit(X, Y)
    with pytest.raises(ValueError, match=told):
        TikhonovRegressor().fit(X, Y).with_gamma(gamma)


def test_a_rule_that_cannot_choose_for_each_target_is_refused_before_a_row_is_read():
    def unread():
        raise AssertionError("rows were read")

    model = TikhonovClassifier(rules.KFold(scoring="error"), gamma_per_target=True)
    with pytest.raises(ValueError, match="judges all targets together and cannot choose a γ for each"):
        model.fit(scan(unread, classes=[0, 1]))


def test_intervals_are_those_of_each_target_alone():
    X, Y = problem(80, 6)
    together = TikhonovRegressor("kfold", gamma_per_target=True, calibrate="loo").fit(X, Y)
    bounds = together.predict_interval(X[:7])
    for q in range(Q):
        alone = TikhonovRegressor("kfold", calibrate="loo").fit(X, Y[:, q])
        np.testing.assert_allclose(bounds[..., q], alone.predict_interval(X[:7]), rtol=1e-10)
    with pytest.raises(ValueError, match="as many features as rows fit every target"):
        TikhonovRegressor([1.0, 0.0, 1.0, 1.0], calibrate="loo").fit(*problem(10, 20))


def test_each_class_may_have_its_own_gamma():
    X, Y = problem(150, 6)
    labels = np.digitize(Y[:, 1], np.quantile(Y[:, 1], [0.3, 0.8]))
    model = TikhonovClassifier("kfold", gamma_per_target=True, calibrate="loo").fit(X, labels)
    codes = 2.0 * (labels[:, None] == model.classes_) - 1.0
    regression = TikhonovRegressor("kfold", gamma_per_target=True).fit(X, codes)
    np.testing.assert_allclose(model.gamma_, regression.gamma_, rtol=1e-12)
    np.testing.assert_allclose(model.coef_, regression.coef_, rtol=1e-11)
    assert len(set(model.gamma_)) == 3
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)
    assert model.score(X, labels) > 0.5


def test_intervals_under_many_gammas_are_those_of_one_target_each():
    X, Y = problem(40, 5)
    gammas = np.array([0.1, 1.0, 10.0, 100.0])
    together = TikhonovRegressor(gammas, calibrate="loo").fit(X, Y).predict_interval(X)
    for q, gamma in enumerate(gammas):
        alone = TikhonovRegressor(float(gamma), calibrate="loo").fit(X, Y[:, q])
        np.testing.assert_allclose(together[:, :, q], alone.predict_interval(X), rtol=1e-9)


def test_files_and_onnx_keep_many_gammas(tmp_path):
    X, Y = problem(80, 6)
    model = TikhonovRegressor("kfold", gamma_per_target=True, store_folds=True).fit(X, Y)
    save_model(model, tmp_path / "model.ocrep")
    loaded = load_model(tmp_path / "model.ocrep")
    np.testing.assert_array_equal(loaded.gamma_, model.gamma_)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.choice_.edge, model.choice_.edge)
    np.testing.assert_allclose(loaded.with_gamma("kfold").gamma_, model.gamma_, rtol=1e-10)
    given = TikhonovRegressor(np.arange(1.0, Q + 1)).fit(X, Y)
    save_model(given, tmp_path / "given.ocrep")
    np.testing.assert_array_equal(load_model(tmp_path / "given.ocrep").gamma_, given.gamma_)
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    (found,) = session.run(None, {session.get_inputs()[0].name: X.astype(np.float32)})
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-3, atol=1e-3)


def test_pictures_tables_and_reports_of_one_gamma_refuse_many():
    X, Y = problem(80, 6)
    model = TikhonovRegressor("gcv", gamma_per_target=True).fit(X, Y)
    told = "show one γ for all targets, and here are 4, one for each"
    for display in (SpectrumDisplay, GainDisplay, ConditionDisplay):
        with pytest.raises(ValueError, match=told):
            display.from_estimator(model)
    with pytest.raises(ValueError, match=told):
        GammaPathDisplay.from_estimator(model, X, Y)
    with pytest.raises(ValueError, match=told):
        compare_rules(X, Y, n_hidden=None, gamma_per_target=True)
    with pytest.raises(ValueError, match=told):
        compare_rules(X, Y, n_hidden=None, rules=[np.ones(Q)])
    with pytest.raises(ValueError, match=told):
        diagnose(clone(model), X, Y)


def test_the_chosen_size_of_a_network_goes_with_given_gammas():
    X, Y = problem(200, 4)
    gammas = np.geomspace(0.1, 10.0, Q)
    model = PinvRegressor("auto", max_hidden=12, gamma=gammas, random_state=0).fit(X, Y)
    fixed = PinvRegressor(model.n_hidden_, gamma=gammas, random_state=0).fit(X, Y)
    np.testing.assert_allclose(fixed.predict(X), model.predict(X), rtol=1e-8)


@pytest.mark.parametrize(
    "model", [TikhonovRegressor("kfold", gamma_per_target=True), TikhonovClassifier(gamma_per_target=True)]
)
def test_scikit_learns_checks_hold(model):
    check_estimator(model, on_skip=None)
