"""All hidden sizes from one factor: each equals a fit of that size."""

import numpy as np
import pytest
from support.advice import some_advice
from support.folds import fold_numbers
from support.problems import PAPER, random_problem, smooth_problem, with_condition
from support.routes import factored

from ocrep import Factor, PinvClassifier, PinvRegressor, hidden_size_path, rules
from ocrep._linalg.fold_factors import quick_folds
from ocrep.datasets import load

EPS = np.finfo(float).eps


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("n_rows", "n_features"), [(40, 9), (5, 9), (9, 9), (11, 9)])
def test_the_leading_block_is_the_factor_of_the_first_features(n_rows, n_features, intercept):
    H, T = random_problem(n_rows, n_features, 2)
    whole = Factor.of(H, T, intercept=intercept)
    for m in range(1, n_features + 1):
        ours, direct = whole.leading(m).spectrum(), Factor.of(H[:, :m], T, intercept=intercept).spectrum()
        np.testing.assert_allclose(ours.sigma, direct.sigma, rtol=1e-10)
        np.testing.assert_allclose(ours.residual, direct.residual, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(ours.weights(0.1), direct.weights(0.1), rtol=1e-9)
        np.testing.assert_allclose(ours.intercept(0.1), direct.intercept(0.1), rtol=1e-9, atol=1e-12)


def test_a_leading_block_merges_like_any_factor():
    H, T = random_problem(40, 9)
    a, b = Factor.of(H[:20], T[:20], intercept=True).leading(4), Factor.of(H[20:], T[20:], intercept=True).leading(4)
    np.testing.assert_allclose(
        a.merge(b).spectrum().weights(0.2), Factor.of(H[:, :4], T, intercept=True).spectrum().weights(0.2), rtol=1e-10
    )


@pytest.mark.parametrize("m", [0, 10])
def test_sizes_that_are_not_there_raise(m):
    with pytest.raises(ValueError, match="9 features"):
        Factor.of(*random_problem(40, 9)).leading(m)


@pytest.mark.parametrize("gamma", ["ocrep", "gcv", "kfold", "ocrep_cv", 1e-3])
@pytest.mark.parametrize(
    "options",
    [{}, {"direct_link": True, "fit_intercept": True}, {"weight_init": "pairs", "units_see": 3}],
    ids=["plain", "linked", "pairs"],
)
@pytest.mark.parametrize("n_rows", [90, 14])
def test_the_path_equals_separate_fits(gamma, options, n_rows):
    X, y = smooth_problem(n_rows + 50, 5)
    train, test = (X[:n_rows], y[:n_rows]), (X[n_rows:], y[n_rows:])
    sizes = [1, 2, 7, 20]
    path = hidden_size_path(*train, sizes=sizes, gamma=gamma, test=test, random_state=0, **options)
    assert list(path["n_hidden"]) == sizes
    for line in path.itertuples():
        model = PinvRegressor(line.n_hidden, gamma=gamma, random_state=0, store_folds=True, **options).fit(*train)
        assert line.gamma == pytest.approx(model.gamma_, rel=1e-4)
        assert line.condition_number == pytest.approx(
            model.condition_number_, rel=100 * EPS * model.condition_number_ + 1e-9
        )
        assert line.condition == pytest.approx(model.regularized_condition_number_, rel=1e-3)
        error = np.sqrt(np.mean((model.predict(test[0]) - test[1]) ** 2))
        assert line.test_error == pytest.approx(error, rel=1e-4)


def test_cross_validation_chooses_gamma_anew_on_each_training_part():
    X, y = smooth_problem(90, 5)
    path = hidden_size_path(X, y, sizes=[12], gamma="ocrep", random_state=0, input_scaling=None)
    fold = fold_numbers(X)
    lost = 0.0
    for v in range(3):
        model = PinvRegressor(12, gamma="ocrep", random_state=0, input_scaling=None).fit(X[fold != v], y[fold != v])
        lost += np.sum((model.predict(X[fold == v]) - y[fold == v]) ** 2)
    assert path["cv_error"][0] == pytest.approx(np.sqrt(lost / 90), rel=1e-8)


def test_a_path_without_folds_and_with_labels():
    X, y = load("iris", return_X_y=True)
    path = hidden_size_path(X[::2], y[::2], sizes=[3, 30], n_folds=0, test=(X[1::2], y[1::2]), random_state=0)
    assert path["cv_error"].isna().all()
    model = PinvClassifier(30, random_state=0).fit(X[::2], y[::2])
    assert path["test_error"][1] == pytest.approx(1 - model.score(X[1::2], y[1::2]))


@pytest.mark.parametrize("estimator", [PinvRegressor, PinvClassifier])
@pytest.mark.parametrize(
    "options",
    [
        PAPER,
        {"direct_link": True, "fit_intercept": True, "gamma": "kfold"},
        {**PAPER, "weight_init": "pairs"},
        {"gamma": "evidence"},
        {"gamma": 1e-3},
    ],
)
def test_auto_takes_a_size_with_nearly_the_least_error(estimator, options):
    X, y = load("wine", return_X_y=True)
    y = y if estimator is PinvClassifier else X[:, 0]
    X = X[:, 1:]
    model = estimator("auto", max_hidden=30, random_state=0, **options).fit(X, y)
    path = hidden_size_path(X, y, sizes=range(1, 31), random_state=0, **options)
    errors = path.set_index("n_hidden")["cv_error"]
    assert errors[model.n_hidden_] <= 1.03 * errors.min()
    same = estimator(model.n_hidden_, random_state=0, **options).fit(X, y)
    assert model.gamma_ == pytest.approx(same.gamma_, rel=1e-5)
    np.testing.assert_array_equal(model.predict(X) == same.predict(X), True) if estimator is PinvClassifier else (
        np.testing.assert_allclose(model.predict(X), same.predict(X), rtol=1e-5)
    )
    assert model.layer_.transform(X).shape[1] == same.layer_.transform(X).shape[1]


@pytest.mark.parametrize("kind", [PinvRegressor, PinvClassifier])
def test_auto_has_no_partial_fit(kind):
    X, y = smooth_problem(60, 5)
    fitted = kind("auto", max_hidden=20, random_state=0).fit(X, y if kind is PinvRegressor else y > 0)
    for model, what in ((kind("auto"), "give a number"), (fitted, rf"set_params\(n_hidden={fitted.n_hidden_}\)")):
        assert not hasattr(model, "partial_fit")
        with pytest.raises(AttributeError, match=f"all rows at once.*{what}"):
            model.partial_fit([[0.0], [1.0]], [0.0, 1.0])


def test_the_size_that_auto_chose_goes_on_with_partial_fit():
    X, y = smooth_problem(200, 5)
    model = PinvRegressor("auto", max_hidden=20, input_scaling=(-1.0, 1.0), random_state=0).fit(X[:100], y[:100])
    size = model.n_hidden_
    model.set_params(n_hidden=size).partial_fit(X[100:], y[100:])
    assert model.n_hidden_ == size
    same = PinvRegressor(size, input_scaling=(-1.0, 1.0), random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), same.predict(X), rtol=1e-6)


@pytest.mark.parametrize("rule", ["ocrep", "gcv", "evidence", "hoerl_kennard", 0.1])
@pytest.mark.parametrize("condition", [1e1, 1e3, 5e5])
def test_quick_errors_of_sizes_are_the_exact_ones(rule, condition):
    """γ is chosen anew on each training part, from its eigenvalues and from its singular values."""
    rule = rules.resolve(rule)
    whole = factored(with_condition(condition, 300, 20, seed=1), random_problem(300, 20)[1], intercept=True, n_folds=3)
    for m in (20, 12, 1):
        folds = whole.folds_.leading(m)
        for v, (spectrum, fit) in enumerate(quick_folds(folds).spectra_and_fits()):
            gamma = rule.choose(folds.spectra[v]).gamma
            exact = folds.squared_errors(np.array([gamma]))[v, 0]
            *_, errors = fit.refined(rule.choose(spectrum).gamma)
            assert errors.sum() == pytest.approx(exact, rel=1e-7)


@some_advice
@pytest.mark.parametrize("gamma", ["aic", "bic", "aicc"])
def test_the_size_does_not_depend_on_a_target_that_is_constant(gamma):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=200)
    targets = [np.column_stack([y, np.full(200, constant)]) for constant in (0.0, 0.1, 1e6 + 0.1)]
    sizes = {PinvRegressor("auto", gamma=gamma, random_state=0).fit(X, T).n_hidden_ for T in targets}
    assert len(sizes) == 1


@pytest.mark.parametrize("intercept", [False, True])
def test_quick_spectra_are_those_of_the_training_parts(intercept):
    H, T = with_condition(5e4, 300, 20, seed=1) + 0.1, random_problem(300, 20, 2)[1]
    folds = factored(H, T, intercept=intercept, n_folds=3).folds_
    quick = [spectrum for spectrum, _ in quick_folds(folds).spectra_and_fits()]
    for ours, exact in zip(quick, folds.spectra, strict=True):
        np.testing.assert_allclose(ours.sigma[-1], exact.sigma[-1], rtol=1e-7)
        np.testing.assert_allclose(ours.sigma, exact.sigma, rtol=1e-3)  # those before it lose some digits
        for read in (
            lambda s: s.rss(1e-6),
            lambda s: s.dof(1e-6),
            lambda s: s.weights(1e-6),
            lambda s: s.intercept(1e-6),
        ):
            np.testing.assert_allclose(read(ours), read(exact), rtol=1e-6)
        assert (ours.n, ours.n_rows, ours.weight_sum) == (exact.n, exact.n_rows, exact.weight_sum)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y: PinvRegressor("auto", gamma="loo").fit(X, y), "chooses the size from factors alone"),
        (
            lambda X, y: PinvRegressor("auto", max_hidden=5, gamma="ocrep").fit(X[:1], y[:1]),
            r"1 sample\(s\) are too few",
        ),
        (lambda X, y: PinvRegressor(5, store_folds=5, gamma=rules.KFold(n_folds=4)).fit(X, y), "make them the same"),
        (lambda X, y: hidden_size_path(X, y, sizes=[2.7]), "whole"),
        (lambda X, y: hidden_size_path(X, y, sizes=[3], gamma=rules.KFold(n_folds=4), n_folds=5), "leave n_folds out"),
        (lambda X, y: PinvRegressor("auto", weight_init="orthogonal").fit(X, y), "nested"),
        (lambda X, y: PinvRegressor("auto", max_hidden=0).fit(X, y), "max_hidden"),
        (lambda X, y: PinvRegressor("automatic").fit(X, y), "'auto'"),
        (lambda X, y: hidden_size_path(X, y, gamma="loo"), "use 'kfold'"),
        (lambda X, y: hidden_size_path(X, y, sizes=[]), "at least one"),
        (lambda X, y: hidden_size_path(X, y, sizes=[3], weight_scale="inverse_sqrt"), "nested"),
        (lambda X, y: hidden_size_path(X, y, sizes=[3], task="rank"), "Unknown task"),
    ],
)
def test_what_a_path_cannot_do_raises(call, message):
    with pytest.raises(ValueError, match=message):
        call(*smooth_problem(30, 5))


def test_sizes_that_a_rule_cannot_judge_are_left_out():
    X, y = smooth_problem(40, 5)
    path = hidden_size_path(X, y, sizes=[5, 10, 60], gamma="hoerl_kennard", random_state=0)
    assert path["gamma"].notna().tolist() == [True, True, False]
    assert "more than" in path["reason"][2]
    model = PinvRegressor("auto", max_hidden=60, gamma="hoerl_kennard", random_state=0).fit(X, y)
    assert model.n_hidden_ < 40
    with pytest.raises(rules.NotApplicable, match="one target"):
        PinvRegressor("auto", max_hidden=5, gamma="hoerl_kennard").fit(X, np.column_stack([y, y]))


def test_several_targets_average_the_error_of_the_path():
    X, y = smooth_problem(60, 5)
    one = hidden_size_path(X, y, sizes=[8], random_state=0)["cv_error"][0]
    two = hidden_size_path(X, np.column_stack([y, y]), sizes=[8], random_state=0)["cv_error"][0]
    assert two == pytest.approx(one, rel=1e-9)


def test_rules_are_checked_before_the_work():
    with pytest.raises(rules.NotApplicable):
        hidden_size_path(*smooth_problem(30, 5), gamma=rules.KFold(scoring="error"))
