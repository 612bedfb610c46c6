"""What a choice of γ tells the user: when it speaks, when it is silent, and what it says to try."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine, make_friedman1, make_regression
from sklearn.model_selection import GridSearchCV

from ocrep import PinvClassifier, PinvRegressor, PinvRegressorCV, TikhonovClassifier, TikhonovRegressor, parts, rules
from ocrep.datasets import load
from ocrep.exceptions import RuleEdgeWarning

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, (150, 3))
NOISE = RNG.normal(size=150)
WAVE_X = np.random.default_rng(1).uniform(-1.0, 1.0, (200, 2))
WAVE = np.sin(5.0 * WAVE_X[:, 0])
HELD_OUT = ("kfold", "ocrep_cv")
JUDGING = (*HELD_OUT, "loo", "gcv")


def warned(model, X, y):
    """The one warning of a fit, as it points to the caller of `fit`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert [(w.category, w.filename) for w in caught] == [(RuleEdgeWarning, __file__)]
    assert str(caught[0].message) == model.choice_.advice
    return str(caught[0].message)


@pytest.mark.parametrize("gamma", JUDGING)
@pytest.mark.parametrize("data", [load_diabetes, load_wine, load_breast_cancer, make_friedman1, "housing", "wine"])
def test_ordinary_fits_are_silent(data, gamma):
    """Warnings are errors here."""
    if isinstance(data, str):
        inputs, y = load(data, return_X_y=True)
    else:
        inputs, y = data(noise=1.0, random_state=0) if data is make_friedman1 else data(return_X_y=True)
    network, plain = (PinvRegressor, TikhonovRegressor) if y.dtype.kind == "f" else (PinvClassifier, TikhonovClassifier)
    for model in (network(40, gamma=gamma, random_state=0), plain(gamma)):
        assert model.fit(inputs, y).choice_.advice is None


@pytest.mark.parametrize("kind", [PinvRegressor, TikhonovRegressor])
@pytest.mark.parametrize("gamma", HELD_OUT)
def test_targets_that_the_inputs_do_not_explain_are_reported_with_the_ratio_of_errors(kind, gamma):
    model = kind(gamma=gamma, **({"random_state": 0} if kind is PinvRegressor else {}))
    message = warned(model, X, NOISE)
    ratio = model.choice_.held_out_error / np.var(NOISE)
    assert ratio >= 1.0
    assert f"is {ratio:.4g} times that of predicting the mean" in message
    assert ("hidden layer" in message) is (kind is PinvRegressor)


@pytest.mark.parametrize("gamma", ["loo", "gcv", "evidence"])
def test_the_upper_end_of_the_range_is_reported_where_no_rows_are_held_out(gamma):
    assert "upper end" in warned(TikhonovRegressor(gamma), X, NOISE)


def test_labels_that_the_inputs_do_not_explain_are_reported():
    assert "times that of predicting the mean" in warned(TikhonovClassifier("kfold"), X, NOISE > 0.0)


def test_without_an_intercept_the_comparison_is_with_zero():
    model = TikhonovRegressor("kfold", fit_intercept=False)
    assert "that of predicting zero" in warned(model, X, NOISE - NOISE.mean())
    assert model.choice_.held_out_error >= np.mean((NOISE - NOISE.mean()) ** 2)


def test_a_floor_above_the_minimum_is_reported_and_the_rules_named_do_better(rng):
    message = warned(floored := PinvRegressor(gamma="gcv", random_state=0), WAVE_X, WAVE)
    assert "below its floor" in message
    assert "gamma='kfold'" in message
    with pytest.warns(RuleEdgeWarning, match="lower end"):
        other = PinvRegressor(gamma="kfold", random_state=0).fit(WAVE_X, WAVE)
    new = rng.uniform(-1.0, 1.0, (500, 2))
    errors = [np.mean((model.predict(new) - np.sin(5.0 * new[:, 0])) ** 2) for model in (floored, other)]
    assert errors[1] < 0.5 * errors[0]


def test_an_error_that_still_falls_at_the_lower_end_is_reported_and_other_units_do_better():
    message = warned(model := PinvRegressor(gamma="kfold", random_state=0), WAVE_X, WAVE)
    assert "lower end" in message
    assert "weight_init='pairs'" in message
    with pytest.warns(RuleEdgeWarning, match="lower end"):
        other = PinvRegressor(gamma="kfold", weight_init="pairs", random_state=0).fit(WAVE_X, WAVE)
    assert other.choice_.held_out_error < 0.5 * model.choice_.held_out_error


def test_targets_without_noise_that_are_fitted_exactly_need_no_advice():
    """γ lies at the lower end, and no other model could do better."""
    model = TikhonovRegressor("kfold").fit(X, X @ [1.0, 2.0, -1.0])
    assert model.choice_.edge == "low"
    assert model.choice_.advice is None


def test_a_flat_criterion_is_silent_at_the_lower_end():
    """All labels are right at every γ, so the first of the range is taken, and it is as good as any."""
    model = TikhonovClassifier(rules.KFold(scoring="error")).fit(X, X[:, 0] > 0.0)
    assert model.choice_.advice is None


def test_a_criterion_that_hardly_falls_is_silent_at_the_lower_end():
    """A few well-conditioned features: no regularization is nearly as good as the best, and nothing is wrong."""
    inputs, y = make_regression(200, 10, noise=10.0, random_state=0)
    # From this floor on, the criterion changes by more than its rounding.
    choice = TikhonovRegressor(rules.KFold(floor=1e-6)).fit(inputs, y).choice_
    assert (choice.edge, choice.advice) == ("low", None)
    assert choice.curve.criterion[0] < choice.curve.criterion[8]


def test_a_handful_of_rows_tells_too_little_for_advice():
    silent = TikhonovRegressor("kfold").fit(X[:9], NOISE[:9]).choice_
    assert (silent.edge, silent.advice) == ("high", None)
    with pytest.warns(RuleEdgeWarning):
        TikhonovRegressor("kfold").fit(X[:12], NOISE[:12])


@pytest.mark.parametrize("gamma", JUDGING)
def test_targets_that_are_all_equal_are_silent(gamma, rng):
    """The mean predicts them, and rounding decides where γ lies."""
    for value in (0.1, 1e5 / 3.0, 1e3 * np.pi):
        for weight in (None, rng.uniform(0.5, 2.0, len(X))):
            model = TikhonovRegressor(gamma).fit(X, np.full(len(X), value), sample_weight=weight)
            assert model.choice_.advice is None


@pytest.mark.parametrize(
    ("grid", "which"), [((1e3, 1e4, 1e5), "smallest"), ((1e-9, 1e-8), "largest"), ((1e-9, 1.0, 1e9), None)]
)
def test_the_end_of_a_given_grid_is_reported_where_the_criterion_falls_towards_it(grid, which, rng):
    y = X[:, 0] + 0.5 * NOISE
    inputs = np.hstack([X, X + 1e-4 * rng.normal(size=X.shape)])
    model = TikhonovRegressor(rules.KFold(grid=grid))
    if which is None:
        assert model.fit(inputs, y).choice_.advice is None
    else:
        assert f"is the {which} of the grid" in warned(model, inputs, y)


@pytest.mark.parametrize("gamma", ["ocrep", 0.0, 3.0, "none", "hoerl_kennard"])
def test_rules_that_search_nothing_are_silent(gamma):
    assert TikhonovRegressor(gamma).fit(X, NOISE).choice_.advice is None


def test_a_noise_that_cannot_be_reached_is_reported():
    assert "below its floor" in warned(TikhonovRegressor(rules.Discrepancy(noise=0.0)), X, NOISE)
    assert "upper end" in warned(TikhonovRegressor(rules.Discrepancy(noise=9.0)), X, NOISE)


def test_a_gamma_for_each_target_is_reported_if_half_of_the_targets_are_concerned():
    few, half = (np.column_stack([X @ [1, 2, 3], *[X[:, 0] + 0.1 * NOISE] * k, NOISE]) for k in (2, 0))
    model = TikhonovRegressor("kfold", gamma_per_target=True)
    assert model.fit(X, few).choice_.advice is None
    assert "the error of target 1 is" in warned(model, X, half)
    assert "of targets 0, 1, 2, 3, 4, … is" in warned(model, X, np.column_stack([NOISE] * 6))


def test_the_winner_alone_is_reported_and_the_candidates_are_not():
    candidates = [{"n_hidden": 5}, {"n_hidden": 20}, {"n_hidden": 40, "weight_init": "pairs"}]
    warned(search := PinvRegressorCV(candidates, random_state=0, ensemble=False), X, NOISE)
    assert search.best_estimator_.choice_.advice == search.choice_.advice
    assert (
        PinvRegressorCV(candidates, random_state=0, ensemble=False).fit(X, X[:, 0] + 0.1 * NOISE).choice_.advice is None
    )


def test_a_choice_with_another_rule_keeps_its_advice_and_warns_of_nothing():
    model = TikhonovRegressor("ocrep").fit(X, NOISE)
    assert "upper end" in model.with_gamma("gcv").choice_.advice


def test_parts_warn_as_fit_does():
    model = TikhonovRegressor("kfold")
    plan = parts.plan(model, n_features=3)
    with pytest.warns(RuleEdgeWarning, match="times that of predicting the mean"):
        finished = plan.finish(plan.of(X, NOISE, part_number=0))
    assert finished.choice_.advice == warned(model, X, NOISE)


def test_a_warning_turned_into_an_error_leaves_the_model_as_it_was():
    model = TikhonovRegressor("kfold")
    with pytest.raises(RuleEdgeWarning):
        model.fit(X, NOISE)
    assert not hasattr(model, "factor_")


def test_a_grid_search_shows_what_the_filters_let_through():
    search = GridSearchCV(TikhonovRegressor(), {"gamma": ["kfold"]}, cv=2)
    with pytest.warns(RuleEdgeWarning) as caught:
        search.fit(X, NOISE)
    assert len(caught) == 3  # two folds and the refit
