"""The methods of the literature against the equations of their publications."""

import inspect
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Lasso, LinearRegression, Ridge, lars_path
from sklearn.metrics import log_loss
from support.advice import some_advice
from support.contract import scikit_learn_checks
from support.problems import PAPER, choose, smooth_problem, with_condition

from ocrep import Factor, PinvRegressor, RandomLayer, rules
from ocrep.datasets import load
from ocrep.literature import (
    ELMClassifier,
    ELMRegressor,
    OPELMRegressor,
    PrunedELMRegressor,
    RELMClassifier,
    RELMRegressor,
    TROPELMRegressor,
)
from ocrep.literature.elm import robust_weights
from ocrep.literature.op_elm import rank_units
from ocrep.literature.pruned import PATHS, bic

REGRESSORS = [ELMRegressor, RELMRegressor, TROPELMRegressor, OPELMRegressor, PrunedELMRegressor]
EVERY = [*REGRESSORS, ELMClassifier, RELMClassifier]


@scikit_learn_checks(
    [
        ELMRegressor(n_hidden=50),
        ELMClassifier(n_hidden=50),
        RELMRegressor(max_hidden=40),
        RELMClassifier(max_hidden=40, weighted=True),
        TROPELMRegressor(n_hidden=20),
        OPELMRegressor(n_hidden=20),
        PrunedELMRegressor(n_hidden=30),
    ]
)
@some_advice
@pytest.mark.filterwarnings("default")
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [ELMClassifier, RELMClassifier])
def test_classifiers_have_the_probabilities_of_their_network(kind):
    X, y = load("wine", return_X_y=True)
    model = kind(**({"n_hidden": 50} if kind is ELMClassifier else {"max_hidden": 50})).fit(X[::2], y[::2])
    probabilities = model.predict_proba(X[1::2])
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X[1::2]))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert log_loss(y[1::2], probabilities) < 0.5


@pytest.mark.slow
@scikit_learn_checks(
    [
        ELMRegressor(n_hidden=20, C=2.0**10),
        PrunedELMRegressor(n_hidden=30, penalty="elastic_net"),
        PrunedELMRegressor(n_hidden=30, penalty="ridge"),
    ]
)
@some_advice
@pytest.mark.filterwarnings("default")
def test_scikit_learn_contract_with_other_settings(estimator, check):
    check(estimator)


def test_the_defaults_are_those_of_the_publications():
    assert ELMRegressor().n_hidden == ELMClassifier().n_hidden == 1000
    assert RELMRegressor().grid == "relm"
    X, y = smooth_problem(60, 5)
    rule = ELMRegressor(5, random_state=0).fit(X, y).network_.gamma
    assert rule.grid == tuple(sorted(1 / c for c in rules.GRIDS["elm"]))
    assert any(np.isclose(RELMRegressor(random_state=0).fit(X, y).gamma_, rules.GRIDS["relm"]))


def section(estimator, title):
    """Names that a section of the class's docstring describes."""
    text = inspect.cleandoc(estimator.__doc__).partition(f"\n{title}\n{'-' * len(title)}\n")[2]
    return re.findall(r"^(\w+) :", re.split(r"\n\w[\w ]*\n---", text)[0], flags=re.MULTILINE)


@pytest.mark.parametrize("estimator", EVERY)
def test_every_parameter_and_attribute_is_documented(estimator):
    X, y = load("iris", return_X_y=True, as_frame=True)
    model = estimator(n_hidden=5, random_state=0)
    if isinstance(model, RELMRegressor | RELMClassifier):
        model.set_params(weighted=True)
    model.fit(X, X.iloc[:, 0] if estimator in REGRESSORS else y)
    assert section(estimator, "Parameters") == list(inspect.signature(estimator).parameters)
    assert set(section(estimator, "Attributes")) == {name for name in vars(model) if name.endswith("_")}
    assert "\nSee Also\n--------\n" in estimator.__doc__
    assert "\nReferences\n----------\n.. [1]" in estimator.__doc__


@pytest.mark.parametrize("estimator", EVERY)
def test_a_seed_decides_everything(estimator):
    X, y = load("iris", return_X_y=True)
    y = X[:, 0] if estimator in REGRESSORS else y
    X = X[:, 1:]
    model = estimator(n_hidden=20, random_state=3)
    first, second = clone(model).fit(X, y).predict(X), clone(model).fit(X, y).predict(X)
    np.testing.assert_array_equal(first, second)
    other = clone(model).set_params(random_state=np.random.RandomState(7)).fit(X, y)
    again = clone(model).set_params(random_state=np.random.RandomState(7)).fit(X, y)
    np.testing.assert_array_equal(other.predict(X), again.predict(X))


# --- ELM and RELM --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.5, 2.0**8])
def test_elm_is_the_c_form_of_the_normal_equations(C):
    X, y = smooth_problem(120, 5)
    model = ELMRegressor(25, C=C, random_state=0).fit(X, y)
    H = RandomLayer(25, random_state=0).fit_transform(X)
    beta = np.linalg.solve(np.eye(25) / C + H.T @ H, H.T @ y)
    np.testing.assert_allclose(model.output_coef_, beta, rtol=1e-7)
    assert pytest.approx(C) == model.C_
    assert model.gamma_ == pytest.approx(1 / C)


@some_advice
def test_elm_searches_its_grid_by_cross_validation():
    X, y = smooth_problem(120, 5)
    grid = [0.1, 10.0, 1e3]
    model = ELMRegressor(25, C=grid, random_state=0).fit(X, y)
    rule = rules.KFold(grid=[1 / c for c in grid], floor=0.0)
    same = PinvRegressor(25, random_state=0, **{**PAPER, "gamma": rule}).fit(X, y)
    assert model.gamma_ == same.gamma_
    np.testing.assert_array_equal(model.predict(X), same.predict(X))


def test_elm_classifies_by_cross_validated_accuracy():
    X, y = load("wine", return_X_y=True)
    model = ELMClassifier(30, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert any(np.isclose(model.C_, rules.GRIDS["elm"]))
    assert (
        model.network_.choice_.curve.criterion.min()
        == model.network_.choice_.curve.criterion[np.isclose(model.network_.choice_.curve.gammas, model.gamma_)].min()
    )


def test_the_unregularized_elm_is_the_pseudoinverse():
    X, y = smooth_problem(120, 5)
    model = ELMRegressor(15, regularized=False, random_state=0).fit(X, y)
    H = RandomLayer(15, random_state=0).fit_transform(X)
    np.testing.assert_allclose(model.output_coef_, np.linalg.pinv(H) @ y, rtol=1e-6)
    assert np.inf == model.C_


@some_advice
def test_relm_takes_the_best_pair_of_size_and_gamma():
    X, y = smooth_problem(120, 5)
    model = RELMRegressor(max_hidden=30, step=10, grid=[1e-6, 1e-3, 1.0], random_state=0).fit(X, y)
    pairs = {}
    for size in (10, 20, 30):
        rule = rules.KFold(grid=[1e-6, 1e-3, 1.0], floor=0.0)
        choice = PinvRegressor(size, gamma=rule, random_state=0).fit(X, y).choice_
        pairs[size, choice.gamma] = choice.curve.criterion.min()
    assert (model.n_hidden_, model.gamma_) == min(pairs, key=pairs.get)


def test_weighted_relm_is_weighted_least_squares():
    X, y = smooth_problem(120, 5)
    y[:5] += 20.0
    model = RELMRegressor(15, weighted=True, random_state=0).fit(X, y)
    H = RandomLayer(15, random_state=0).fit_transform(X)
    ridge = Ridge(alpha=model.gamma_, fit_intercept=False, solver="svd").fit(H, y, sample_weight=model.robust_weights_)
    np.testing.assert_allclose(model.output_coef_, ridge.coef_, rtol=1e-6)
    first = RELMRegressor(15, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.robust_weights_, robust_weights((y - first.predict(X))[:, None]))
    assert np.all(model.robust_weights_[:5] == 1e-4)
    clean = smooth_problem(400, 5, noise=0.0, seed=5)
    assert np.mean((model.predict(clean[0]) - clean[1]) ** 2) < np.mean((first.predict(clean[0]) - clean[1]) ** 2)


def test_robust_weights_follow_the_published_function():
    residuals = np.r_[np.random.default_rng(0).standard_normal(2001), 50.0]
    scale = np.subtract(*np.quantile(residuals, [0.75, 0.25])) / 1.349
    weights = robust_weights(residuals[:, None])
    relative = np.abs(residuals) / scale
    assert np.all(weights[relative <= 2.5] == 1.0)
    middle = (relative > 2.5) & (relative < 3.0)
    np.testing.assert_allclose(weights[middle], np.maximum((3.0 - relative[middle]) / 0.5, 1e-4))
    assert np.all(weights[relative >= 3.0] == 1e-4)
    np.testing.assert_array_equal(robust_weights(np.zeros((10, 1))), 1.0)
    two = np.column_stack([np.zeros(2002), residuals])
    np.testing.assert_allclose(robust_weights(two), weights)


# --- TROP-ELM and OP-ELM -------------------------------------------------------------------------------------


def test_the_ranking_is_that_of_lars_on_the_units_themselves():
    rng = np.random.default_rng(0)
    H = rng.standard_normal((80, 12))
    y = H @ rng.standard_normal(12) + rng.standard_normal(80)
    Hc = H - H.mean(axis=0)
    _, order, _ = lars_path(Hc / np.linalg.norm(Hc, axis=0), y - y.mean(), method="lar")
    np.testing.assert_array_equal(rank_units(Factor.of(H, y, intercept=True)), order)


def test_several_targets_rank_the_units_that_explain_them_first():
    rng = np.random.default_rng(0)
    H = rng.standard_normal((200, 10))
    T = np.column_stack([3 * H[:, 7] + H[:, 2], 3 * H[:, 7] - H[:, 4]]) + 0.1 * rng.standard_normal((200, 2))
    ranking = rank_units(Factor.of(H, T, intercept=True))
    assert ranking[0] == 7
    assert set(ranking[1:3]) == {2, 4}
    assert sorted(ranking) == list(range(10))


def test_constant_and_duplicate_units_are_ranked_last():
    rng = np.random.default_rng(0)
    H = rng.standard_normal((50, 5))
    H[:, 1] = 0.1
    H[:, 3] = H[:, 0]
    ranking = rank_units(Factor.of(H, H[:, 0] + H[:, 2], intercept=True))
    assert sorted(ranking) == list(range(5))
    assert ranking[-1] == 1
    np.testing.assert_array_equal(rank_units(Factor.of(H, np.full(50, 3.0), intercept=True)), np.arange(5))


def candidates_of(X, n_hidden, seed):
    """The units before selection: the scaled inputs, then sigmoid and Gaussian units with one stream of numbers."""
    rng = np.random.RandomState(seed)
    sigmoid = RandomLayer(n_hidden - n_hidden // 2, direct_link=True, random_state=rng).fit_transform(X)
    gaussian = RandomLayer(n_hidden // 2, activation="gaussian", random_state=rng).fit_transform(X)
    return np.hstack([sigmoid, gaussian])


@pytest.mark.parametrize("estimator", [TROPELMRegressor, OPELMRegressor])
def test_press_equals_explicit_leave_one_out(estimator):
    X, y = smooth_problem(40, 4)
    model = estimator(n_hidden=8, random_state=0).fit(X, y)
    candidates = candidates_of(X, 8, 0)[:, model.ranking_]
    for k in (1, 3, model.n_hidden_):
        H = candidates[:, :k]
        alpha = 0.0 if estimator is OPELMRegressor else choose(rules.LOO(), H, y, intercept=True).gamma
        left_out = np.empty(40)
        for i in range(40):
            others = np.arange(40) != i
            fit = Ridge(alpha, solver="svd") if alpha else LinearRegression()
            left_out[i] = fit.fit(H[others], y[others]).predict(H[[i]])[0]
        # The grid's best point against the refined γ: PRESS is flat there.
        assert model.loo_errors_[k - 1] == pytest.approx(np.mean((y - left_out) ** 2), rel=1e-3 if alpha else 1e-7)
    assert model.n_hidden_ == np.argmin(model.loo_errors_) + 1


@pytest.mark.parametrize("estimator", [TROPELMRegressor, OPELMRegressor])
@pytest.mark.parametrize("n_targets", [1, 2])
def test_the_selected_units_are_the_network(estimator, n_targets):
    X, y = smooth_problem(80, 4)
    T = y if n_targets == 1 else np.column_stack([y, X[:, 0]])
    model = estimator(n_hidden=15, random_state=0).fit(X, T)
    candidates = candidates_of(X, 15, 0)
    kept = model.ranking_[: model.n_hidden_]
    ridge = Ridge(model.gamma_, solver="svd") if model.gamma_ else LinearRegression()
    expected = ridge.fit(candidates[:, kept], T).predict(candidates[:, kept])
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(model.map_(X), candidates[:, np.sort(kept)], rtol=1e-12, atol=1e-14)


def test_regularization_helps_where_units_are_many():
    X, y = load("machine_cpu", return_X_y=True)
    errors = {}
    for estimator in (TROPELMRegressor, OPELMRegressor):
        model = estimator(n_hidden=80, random_state=0).fit(X[::2], y[::2])
        errors[estimator] = model.loo_errors_.min()
    assert errors[TROPELMRegressor] <= errors[OPELMRegressor] * (1 + 1e-6)


# --- pruned ELM ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", sorted(PATHS))
@pytest.mark.parametrize("n_targets", [1, 2])
def test_the_model_has_the_least_recomputed_bic(penalty, n_targets):
    X, y = smooth_problem(90, 4)
    T = y[:, None] if n_targets == 1 else np.column_stack([y, X[:, 0]])
    model = PrunedELMRegressor(20, penalty=penalty, random_state=0).fit(X, T)
    H = RandomLayer(20, random_state=0).fit_transform(X)
    factor = Factor.of(H, T, intercept=True)
    _, weights, dof = PATHS[penalty](factor)
    recomputed = []
    for W, k in zip(weights, dof, strict=True):
        residuals = (T - T.mean(axis=0)) - (H - H.mean(axis=0)) @ W
        recomputed.append(90 * np.mean(np.log(np.sum(residuals**2, axis=0) / 90)) + np.log(90) * k)
    recomputed = np.where(2 * dof <= 90, recomputed, np.inf)
    np.testing.assert_allclose(model.bic_, recomputed, rtol=1e-9)
    best = weights[np.argmin(recomputed)]
    zeroed = (H - H.mean(axis=0)) @ best + T.mean(axis=0)
    np.testing.assert_allclose(model.predict(X), zeroed, rtol=1e-9)
    assert model.n_hidden_ == np.count_nonzero(best.any(axis=1)) == model.layer_.transform(X).shape[1]


def test_the_lasso_on_the_factor_is_the_lasso_on_the_rows():
    X, y = smooth_problem(90, 4)
    H = RandomLayer(10, weight_scale=3.0, random_state=0).fit_transform(X)
    factor = Factor.of(H, y, intercept=True)
    penalties, weights, dof = PATHS["lasso"](factor)
    rows = factor.centred().R.shape[0]
    for i in (10, 40):
        lasso = Lasso(penalties[i] * rows / 90, tol=1e-10, max_iter=100_000).fit(H, y)
        np.testing.assert_allclose(weights[i, :, 0], lasso.coef_, atol=1e-6 * np.abs(lasso.coef_).max())
        assert dof[i] == np.count_nonzero(weights[i])


def test_the_elastic_net_counts_the_trace_of_its_smoother():
    H = with_condition(1e2, 60, 6)
    y = H @ np.ones(6) + 0.01 * np.random.default_rng(0).standard_normal(60)
    factor = Factor.of(H, y, intercept=True)
    penalties, weights, dof = PATHS["elastic_net"](factor)
    i = 60
    active = np.flatnonzero(weights[i, :, 0])
    A = (H - H.mean(axis=0))[:, active]
    gamma = 0.5 * penalties[i] * factor.centred().R.shape[0]
    expected = np.trace(np.linalg.solve(A.T @ A + gamma * np.eye(len(active)), A.T @ A))
    assert dof[i] == pytest.approx(expected, rel=1e-9)


def test_the_penalties_span_what_the_docstring_says():
    X, y = smooth_problem(90, 4)
    model = PrunedELMRegressor(10, random_state=0).fit(X, y)
    H = RandomLayer(10, random_state=0).fit_transform(X)
    assert len(model.penalties_) == 100
    assert model.penalties_[-1] / model.penalties_[0] == pytest.approx(1e-5)
    rows = Factor.of(H, y, intercept=True).centred().R.shape[0]
    most = np.abs((H - H.mean(axis=0)).T @ (y - y.mean())).max() / rows
    assert model.penalties_[0] == pytest.approx(most)
    ridge = PrunedELMRegressor(10, penalty="ridge", random_state=0).fit(X, y)
    assert ridge.penalties_[-1] == pytest.approx(np.linalg.norm(H - H.mean(axis=0), 2) ** 2)


@pytest.mark.parametrize("penalty", sorted(PATHS))
def test_bic_does_not_overfit_few_rows(penalty):
    X, y = load("housing", return_X_y=True)
    rows = np.random.default_rng(1).permutation(506)
    train, test = rows[:60], rows[60:]
    model = PrunedELMRegressor(penalty=penalty, random_state=0).fit(X[train], y[train])
    assert np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2)) < y[test].std()
    assert penalty == "ridge" or model.n_hidden_ <= 100


def test_options_reach_the_network():
    X, y = smooth_problem(80, 4)
    for estimator in (ELMRegressor, PrunedELMRegressor):
        model = estimator(n_hidden=8, activation="tanh", input_scaling=None, random_state=0).fit(X, y)
        assert model.layer_.activation == "tanh"
        np.testing.assert_array_equal(model.layer_.center_, 0.0)
    for estimator in (ELMRegressor, RELMRegressor):
        two, five = (estimator(n_hidden=8, n_folds=k, random_state=0) for k in (2, 5))
        assert not np.array_equal(two.fit(X, y).predict(X), five.fit(X, y).predict(X)) or two.gamma_ == five.gamma_
    rule = ELMClassifier(8, n_folds=4, random_state=0).fit(X, y > y.mean()).network_.gamma
    assert (rule.n_folds, rule.scoring, rule.floor) == (4, "error", 0.0)
    small = RELMRegressor(max_hidden=3, step=5, random_state=0).fit(X, y)
    assert small.n_hidden_ == 3


def test_a_second_fit_removes_the_attributes_of_the_first():
    X, y = smooth_problem(60, 4)
    model = RELMRegressor(6, weighted=True, random_state=0).fit(pd.DataFrame(X, columns=list("abcd")), y)
    model.set_params(weighted=False).fit(X, y)
    assert not hasattr(model, "robust_weights_")
    assert not hasattr(model, "feature_names_in_")


def test_several_targets_count_equally():
    X, y = smooth_problem(80, 4)
    noise = np.random.default_rng(0).standard_normal(80)
    predictions = [
        TROPELMRegressor(20, random_state=0).fit(X, np.column_stack([y, unit * noise])).predict(X)[:, 0]
        for unit in (1e-3, 1e3)
    ]
    np.testing.assert_allclose(predictions[0], predictions[1], rtol=1e-6)


def test_a_target_without_signal_is_predicted_by_its_mean():
    X, _ = smooth_problem(60, 4)
    for y in (np.full(60, 3.0), np.zeros(60)):
        model = PrunedELMRegressor(10, random_state=0).fit(X, y)
        assert model.n_hidden_ == 0
        np.testing.assert_allclose(model.predict(X), y)
    factor = Factor.of(np.eye(5), np.zeros(5))
    np.testing.assert_array_equal(
        bic(factor, np.zeros((2, 5, 1)), np.zeros((2, 1)), np.array([0.0, 1.0])), [0, np.log(5)]
    )


# --- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", REGRESSORS)
@pytest.mark.parametrize("labels", [["a", "b"] * 20, np.array(["a", "b"] * 20, dtype=object), [True, False] * 20])
def test_labels_are_an_error_for_methods_of_regression(estimator, labels):
    X, _ = smooth_problem(40, 4)
    with pytest.raises(ValueError, match=r"is a method for regression.*use ELMClassifier"):
        estimator().fit(X, labels)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (ELMRegressor(C=[1.0, -2.0]), "C needs .*> 0"),
        (ELMRegressor(C=0.0), "C needs .*> 0"),
        (ELMRegressor(C=[]), "C needs at least one"),
        (ELMRegressor(C="auto"), "must be 'cv'"),
        (RELMRegressor(grid=[0.0, 1.0]), "grid needs .*> 0"),
        (RELMRegressor(grid="elmo"), "Did you mean 'elm'|Known"),
        (RELMRegressor("auto"), "'search'"),
        (RELMRegressor(step=0), "step=0"),
        (RELMRegressor(0), "n_hidden=0"),
        (RELMRegressor(grid=None), "grid=None"),
        (ELMRegressor("auto"), "n_hidden='auto'"),
        (TROPELMRegressor(10, n_steps=15), "n_steps=15 exceeds the 14 candidate units"),
        (OPELMRegressor(10, n_steps=0), "n_steps=0"),
        (TROPELMRegressor(0), "n_hidden=0"),
        (PrunedELMRegressor(penalty="laso"), "Did you mean 'lasso'"),
    ],
)
def test_bad_parameters_say_what_to_use(estimator, message):
    X, y = smooth_problem(40, 4)
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, y)
    assert set(vars(estimator)) == set(estimator.get_params())


def test_limited_steps_and_names_of_columns():
    X, y = smooth_problem(40, 4)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = TROPELMRegressor(10, n_steps=3, random_state=0).fit(frame, y)
    assert len(model.loo_errors_) == 3
    assert list(model.feature_names_in_) == list("abcd")
    network = ELMRegressor(5, random_state=0).fit(frame, y)
    assert list(network.feature_names_in_) == list("abcd")
    one = TROPELMRegressor(1, random_state=2**32 - 1).fit(X, y)
    assert len(one.loo_errors_) == 4 + 1  # no Gaussian unit
