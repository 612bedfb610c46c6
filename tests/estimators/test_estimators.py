"""The estimators against oracles: NumPy, scikit-learn's Ridge, and the same rows in other forms."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge, RidgeClassifier
from support.advice import some_advice
from support.problems import PAPER, augmented_solution, random_problem, smooth_problem, with_condition
from support.weights import weights_of

from ocrep import PinvClassifier, PinvRegressor, RandomLayer, TikhonovClassifier, TikhonovRegressor, rules, scan
from ocrep.datasets import load

GAMMAS = ["ocrep", "none", 0.3]


def small(**options):
    return PinvRegressor(**{"n_hidden": 30, "random_state": 0, **PAPER, **options})


def labelled(n_classes=3, n_rows=90, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n_rows, 4))
    return X, np.array(["a", "b", "c", "d"])[(n_classes * (X[:, 0] + X[:, 1] ** 2 + 1) / 3.001).astype(int)]


# --- oracles -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_targets", [1, 3])
def test_a_given_gamma_equals_ridge(gamma, fit_intercept, weighted, n_targets):
    X, T = random_problem(50, 6, n_targets)
    T = T[:, 0] if n_targets == 1 else T
    w = np.random.default_rng(1).uniform(0, 3, 50) if weighted else None
    ours = TikhonovRegressor(gamma, fit_intercept=fit_intercept).fit(X, T, sample_weight=w)
    ridge = Ridge(alpha=gamma, fit_intercept=fit_intercept, solver="svd").fit(X, T, sample_weight=w)
    np.testing.assert_allclose(ours.coef_, ridge.coef_, rtol=1e-9)
    np.testing.assert_allclose(ours.intercept_, ridge.intercept_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.predict(X), ridge.predict(X), rtol=1e-9)
    assert ours.coef_.shape == ridge.coef_.shape


@pytest.mark.parametrize("direct_link", [False, True])
def test_the_network_is_ridge_on_its_hidden_layer(direct_link):
    X, y = smooth_problem(200, 5)
    model = small(gamma=0.1, direct_link=direct_link, fit_intercept=True).fit(X, y)
    H = RandomLayer(30, direct_link=direct_link, random_state=0).fit_transform(X)
    ridge = Ridge(alpha=0.1, solver="svd").fit(H, y)
    np.testing.assert_allclose(model.predict(X), ridge.predict(H), rtol=1e-8)
    np.testing.assert_array_equal(model.layer_.transform(X), H)


def test_ocrep_equals_the_augmented_least_squares_problem():
    X, y = smooth_problem(200, 5)
    model = small().fit(X, y)
    H = RandomLayer(30, random_state=0).fit_transform(X)
    sigma = np.linalg.svd(H, compute_uv=False)
    assert model.gamma_ == pytest.approx(sigma[0] * sigma[-1], rel=1e-8)
    np.testing.assert_allclose(weights_of(model), augmented_solution(H, y[:, None], model.gamma_)[:, 0], rtol=1e-7)
    assert model.condition_number_ == pytest.approx(np.linalg.cond(H), rel=1e-8)
    assert (model.rank_, model.n_hidden_) == (30, 30)
    np.testing.assert_allclose(model.singular_values_, sigma, rtol=1e-8)


@pytest.mark.parametrize("gamma", [1e-4, "kfold"])
@pytest.mark.parametrize(("kappa", "route"), [(1e2, "gram"), (1e8, "refined"), (1e14, "reflections")])
def test_a_model_says_how_its_rows_were_factored(small_blocks, kappa, route, gamma):
    small_blocks(500 * 12)
    H = with_condition(kappa, n_rows=3000)
    y = H[:, 0] + 0.01 * np.random.default_rng(1).standard_normal(3000)
    model = TikhonovRegressor(gamma).fit(H, y)
    assert model.route_ == model.with_gamma("gcv").route_ == route
    assert TikhonovRegressor(gamma, solver="qr").fit(H, y).route_ == "reflections"
    assert model.partial_fit(H[:9], y[:9]).route_ == "reflections"


def test_none_equals_the_pseudoinverse():
    X, T = random_problem(40, 6, 2)
    model = TikhonovRegressor("none", fit_intercept=False).fit(X, T)
    np.testing.assert_allclose(weights_of(model).T, np.linalg.pinv(X) @ T, rtol=1e-10)
    assert model.gamma_ == 0.0


def test_gamma_to_the_limits():
    X, y = smooth_problem(200, 5)
    least_squares = small(gamma=0.0, n_hidden=10, fit_intercept=True).fit(X, y)
    almost = small(gamma=1e-13, n_hidden=10, fit_intercept=True).fit(X, y)
    np.testing.assert_allclose(almost.predict(X), least_squares.predict(X), rtol=1e-7)
    nothing = small(gamma=1e15, fit_intercept=True).fit(X, y)
    np.testing.assert_allclose(nothing.predict(X), y.mean(), rtol=1e-9)


@pytest.mark.parametrize("gamma", [1e-2, 2.0])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 5.0}])
def test_classifier_equals_ridge_classifier(gamma, n_classes, class_weight):
    X, y = labelled(n_classes)
    ours = TikhonovClassifier(gamma, class_weight=class_weight).fit(X, y)
    theirs = RidgeClassifier(alpha=gamma, class_weight=class_weight, solver="svd").fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert weights_of(ours).shape == (1 if n_classes == 2 else 3, 4)
    assert list(ours.classes_) == list("abc")[:n_classes]


# --- the same rows in other forms ----------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_whole_weights_equal_repeated_rows(gamma, fit_intercept):
    X, y = smooth_problem(60, 5)
    w = np.random.default_rng(0).integers(0, 4, 60)
    options = {"gamma": gamma, "fit_intercept": fit_intercept, "n_hidden": 10, "weight_scale": 4.0}
    weighted = small(**options).fit(X, y, sample_weight=w)
    repeated = small(**options).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert weighted.gamma_ == pytest.approx(repeated.gamma_, rel=1e-9)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-7)


@pytest.mark.parametrize("gamma", [*GAMMAS, "gcv"])
@pytest.mark.parametrize("sizes", [[60, 60, 60], [1, 2, 177], [179, 1]])
def test_partial_fit_equals_fit_when_the_range_is_given(gamma, sizes):
    X, y = smooth_problem(180, 5)
    options = {
        "gamma": gamma,
        "input_scaling": (-1.0, 1.0),
        "n_hidden": 12,
        "weight_scale": 3.0,
        "fit_intercept": True,
    }
    whole, parts = small(**options).fit(X, y), small(**options)
    for rows in np.split(np.arange(180), np.cumsum(sizes)[:-1]):
        parts.partial_fit(X[rows], y[rows])
    assert parts.gamma_ == pytest.approx(whole.gamma_, rel=1e-5)
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), rtol=1e-6, atol=1e-9)


def test_partial_fit_takes_the_range_of_its_first_block():
    X, y = smooth_problem(100, 5)
    model = small().partial_fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
    np.testing.assert_array_equal(model.layer_.scale_, RandomLayer(3).fit(X[:40]).scale_)
    given = small(input_scaling=(X[:40].min(0), X[:40].max(0))).fit(X, y)
    np.testing.assert_allclose(model.predict(X), given.predict(X), rtol=1e-6)


def test_partial_fit_goes_on_from_fit():
    X, y = smooth_problem(100, 5)
    model = small(input_scaling=None).fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])
    np.testing.assert_allclose(model.predict(X), small(input_scaling=None).fit(X, y).predict(X), rtol=1e-7)


def test_classifier_partial_fit_equals_fit():
    X, y = labelled(3)
    options = {
        "n_hidden": 12,
        "input_scaling": (-1.0, 1.0),
        "weight_scale": 3.0,
        "class_weight": {"b": 2.0},
        "random_state": 0,
    }
    whole, parts = PinvClassifier(**options).fit(X, y), PinvClassifier(**options)
    order = np.argsort(y)  # the first block holds one class only
    for rows in np.array_split(order, 4):
        parts.partial_fit(X[rows], y[rows], classes=["c", "a", "b"])
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), rtol=1e-6, atol=1e-9)


def test_blocks_do_not_change_the_answer(small_blocks):
    X, y = smooth_problem(300, 5)
    options = {"n_hidden": 12, "weight_scale": 3.0, "fit_intercept": True}
    w = np.random.default_rng(0).uniform(0, 2, 300)
    whole = small(**options).fit(X, y, sample_weight=w)
    small_blocks(800)
    blocks = small(**options).fit(X, y, sample_weight=w)
    assert blocks.gamma_ == pytest.approx(whole.gamma_, rel=1e-10)
    np.testing.assert_allclose(blocks.predict(X), whole.predict(X), rtol=1e-9)


@pytest.mark.parametrize("model", [small(), TikhonovRegressor("ocrep")], ids=["network", "ridge"])
def test_sparse_and_frames_give_the_same_model(model):
    X, y = smooth_problem(80, 5)
    X = np.where(np.abs(X) < 0.3, 0.0, X)
    expected = clone(model).fit(X, y).predict(X)
    frames = [pd.DataFrame(X, columns=list("abcde")), pl.DataFrame(X, schema=list("abcde"))]
    for rows in (sparse.csr_array(X), sparse.coo_matrix(X), *frames):
        fitted = clone(model).fit(rows, y)
        np.testing.assert_allclose(fitted.predict(rows), expected, rtol=1e-8, atol=1e-10)
    assert list(fitted.feature_names_in_) == list("abcde")


def test_the_layer_of_a_frame_knows_its_columns():
    X, y = smooth_problem(50, 5)
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = small(n_hidden=2, direct_link=True).fit(frame, y)
    assert list(model.layer_.get_feature_names_out()) == [*"abcde", "randomlayer0", "randomlayer1"]


def test_single_precision_in_single_precision_out():
    X, y = smooth_problem(100, 5)
    model = small().fit(X.astype(np.float32), y)
    assert weights_of(model).dtype == np.float64
    assert model.predict(X.astype(np.float32)).dtype == np.float32
    assert model.predict(X).dtype == np.float64


def test_a_column_target_stays_a_column():
    X, y = smooth_problem(50, 5)
    model = small().fit(X, y[:, None])
    assert model.predict(X).shape == (50, 1)
    assert weights_of(model).shape == (1, 30)


def test_a_seed_fixes_the_network():
    X, y = smooth_problem(50, 5)
    np.testing.assert_array_equal(small().fit(X, y).predict(X), small().fit(X, y).predict(X))
    assert not np.array_equal(small(random_state=1).fit(X, y).predict(X), small().fit(X, y).predict(X))


# --- with_gamma ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", ["gcv", "none", 0.2, rules.OCReP(floor=0.0)])
def test_with_gamma_equals_a_new_fit(gamma):
    X, y = smooth_problem(100, 5)
    model = small().fit(X, y)
    before = model.predict(X)
    other = model.with_gamma(gamma)
    anew = small(gamma=gamma).fit(X, y)
    assert other.gamma_ == anew.gamma_
    np.testing.assert_array_equal(other.predict(X), anew.predict(X))
    assert other.get_params() == anew.get_params()
    np.testing.assert_array_equal(model.predict(X), before)
    assert model.gamma == "ocrep"


# --- bad input -----------------------------------------------------------------------------------------------


def state(model):
    return {name: id(value) for name, value in vars(model).items()}


BAD_BLOCKS = {
    "NaN": (lambda X, y: (np.where(X > 0.9, np.nan, X), y), "NaN"),
    "infinity": (lambda X, y: (np.where(X > 0.9, np.inf, X), y), "infinity"),
    "width": (lambda X, y: (X[:, :3], y), "features"),
    "no rows": (lambda X, y: (X[:0], y[:0]), "0 sample"),
    "lengths": (lambda X, y: (X, y[:-1]), r"X has 90 rows, but y has the shape \(89,\)"),
}


@pytest.mark.parametrize("case", sorted(BAD_BLOCKS))
@pytest.mark.parametrize("model", [small(), PinvClassifier(5, random_state=0)], ids=["regressor", "classifier"])
def test_a_failing_block_leaves_the_model_as_it_was(case, model):
    spoil, message = BAD_BLOCKS[case]
    X, y = labelled(2)
    if isinstance(model, PinvRegressor):
        y = X[:, 0]
    new, fitted = clone(model), clone(model).fit(X, y)
    bad_X, bad_y = spoil(X, y)
    for estimator, methods in ((fitted, ("partial_fit", "fit")), (new, ("fit",))):
        before = state(estimator)
        for method in methods:
            if estimator is new or method == "partial_fit" or case != "width":
                if estimator is new and case == "width":
                    continue
                with pytest.raises(ValueError, match=message):
                    getattr(estimator, method)(bad_X, bad_y)
                assert state(estimator) == before


def test_a_failing_first_block_leaves_nothing_behind():
    X, y = labelled(2)
    model = PinvClassifier(5)
    with pytest.raises(ValueError, match="all labels"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="'b'"):
        model.partial_fit(X, y, classes=["a", "z"])
    with pytest.raises(ValueError, match="several kinds"):
        model.partial_fit(X, y, classes=["a", None])
    with pytest.raises(ValueError, match="Did you mean"):
        model.set_params(activation="tanhh").partial_fit(X, y, classes=["a", "b"])
    assert set(vars(model)) == set(model.get_params())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": ["a", "b"] * 44 + ["x", "y"]}, r"Row 89: the label 'x' is not among the classes \['a', 'b'\]"),
        ({"classes": ["a", "b", "q"]}, "differs from the first"),
        ({"n_targets": 2}, "Row 1: y has 2 columns, .* column 0 holds [ab] and not 0 or 1"),
    ],
)
def test_partial_fit_of_a_classifier_raises_for_unknown_labels_and_shapes(options, message):
    X, y = labelled(2)
    model = PinvClassifier(5, random_state=0).partial_fit(X, y, classes=["a", "b"])
    before = state(model)
    y = np.asarray(options.get("y", y))
    y = np.column_stack([y, y]) if "n_targets" in options else y
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, y, classes=options.get("classes"))
    assert state(model) == before


def test_partial_fit_with_another_number_of_targets_raises():
    X, y = smooth_problem(50, 5)
    model = small().fit(X, y)
    before = state(model)
    with pytest.raises(ValueError, match="2 targets"):
        model.partial_fit(X, np.column_stack([y, y]))
    assert state(model) == before


@pytest.mark.parametrize("gamma", [-1.0, np.nan, "ocrp"])
def test_with_gamma_that_fails_leaves_the_model_as_it_was(gamma):
    X, y = smooth_problem(50, 5)
    model = small().fit(X, y)
    before = state(model)
    with pytest.raises(ValueError, match="gamma"):
        model.with_gamma(gamma)
    assert state(model) == before
    with pytest.raises(ValueError, match="gamma"):
        small(gamma=gamma).fit(X, y)


def test_missing_targets_raise():
    X, y = smooth_problem(20, 5)
    with pytest.raises(ValueError, match="y contains NaN"):
        small().fit(X, np.array([None, *y[1:]], dtype=object))


def test_a_bad_gamma_raises_before_the_work():
    with pytest.raises(ValueError, match="gamma"):
        small(gamma="ocrp").fit(scan(lambda: pytest.fail("the rows were read")))


def test_another_intercept_cannot_be_streamed_in():
    X, y = smooth_problem(20, 5)
    model = small().partial_fit(X, y)
    with pytest.raises(ValueError, match="intercept"):
        model.set_params(fit_intercept=True).partial_fit(X, y)


def test_classes_may_come_as_a_set_and_weights_as_a_number():
    X, y = labelled(2)
    model = PinvClassifier(5, random_state=0).partial_fit(X, y, classes={"a", "b"}, sample_weight=2.0)
    assert model.factor_.counts.weight_sum == 180


def test_wide_inputs_pass_in_small_blocks():
    # 3000 inputs for 5 units: the block must count the inputs, or it would hold all rows at once.
    X = np.zeros((3000, 3000), dtype=np.float32)
    X[:, 0] = np.arange(3000)
    seen = []
    model = small(n_hidden=5, activation=lambda Z: seen.append(len(Z)) or np.tanh(Z))
    model.fit(X, X[:, 0]).predict(X)
    assert max(seen) <= 3000 / 4


def test_predicting_a_tie_gives_the_first_class():
    model = TikhonovClassifier(1.0, fit_intercept=False).fit([[-1.0], [1.0]], ["a", "b"])
    assert list(model.predict([[0.0]])) == ["a"]


def test_balanced_weights_look_at_the_sample_weights():
    X, y = labelled(2)
    w = np.random.default_rng(0).uniform(0.1, 3, len(y))
    model = TikhonovClassifier(0.5, class_weight="balanced").fit(X, y, sample_weight=w)
    factors = {label: w.sum() / (2 * w[y == label].sum()) for label in "ab"}
    same = TikhonovClassifier(0.5, class_weight=factors).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(model.decision_function(X), same.decision_function(X), rtol=1e-10)
    # A class without weight, among others, is simply not there.
    three_X, three = labelled(3)
    w = np.where(three == "c", 0.0, 1.0)
    model = TikhonovClassifier(0.5, class_weight="balanced").fit(three_X, three, sample_weight=w)
    assert set(model.predict(three_X)) == {"a", "b"}


def test_balanced_weights_need_all_rows():
    X, y = labelled(2)
    with pytest.raises(ValueError, match="use fit"):
        PinvClassifier(5, class_weight="balanced").partial_fit(X, y, classes=["a", "b"])


def test_balanced_weights_equal_rows_repeated_to_balance():
    X, y = labelled(2)
    counts = {label: int((y == label).sum()) for label in "ab"}
    model = TikhonovClassifier(0.5, class_weight="balanced").fit(X, y)
    w = np.array([len(y) / (2 * counts[label]) for label in y])
    np.testing.assert_allclose(
        model.decision_function(X),
        TikhonovClassifier(0.5).fit(X, y, sample_weight=w).decision_function(X),
        rtol=1e-10,
    )


# --- degenerate data is fitted, without warnings (which are errors in these tests) ---------------------------

DEGENERATE = {
    "constant column": lambda X: np.column_stack([X, np.full(len(X), 3.0)]),
    "all columns constant": lambda X: np.full_like(X, 0.1),
    "one row repeated": lambda X: np.tile(X[:1], (len(X), 1)),
    "duplicate columns": lambda X: np.hstack([X, X]),
    "duplicate rows": lambda X: np.repeat(X[:5], len(X) // 5, axis=0),
    "more units than rows": lambda X: X[:9],
    "one row": lambda X: X[:1],
}


@some_advice
@pytest.mark.parametrize("case", sorted(DEGENERATE))
@pytest.mark.parametrize("gamma", [*GAMMAS, "gcv"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("network", [True, False])
def test_degenerate_data_is_fitted(case, gamma, fit_intercept, network):
    X, y = smooth_problem(60, 5)
    X = DEGENERATE[case](X)
    y = y[: len(X)]
    model = (
        small(gamma=gamma, fit_intercept=fit_intercept)
        if network
        else TikhonovRegressor(gamma, fit_intercept=fit_intercept)
    )
    predictions = model.fit(X, y).predict(X)
    assert np.isfinite(predictions).all()
    assert np.abs(predictions).max() < 100 * np.abs(y).max()
    assert np.isfinite(model.gamma_)
    if case in ("all columns constant", "one row repeated") and fit_intercept:
        assert model.rank_ == 0
        np.testing.assert_allclose(model.predict(X + 1.0), y.mean())


def test_bundled_data_end_to_end():
    X, y = load("wine", return_X_y=True)
    assert PinvClassifier(50, random_state=0).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9


@pytest.mark.parametrize(
    ("gamma", "message"),
    [
        ("loo", "call fit with gamma="),
        ("kfold", "store_folds=True"),
        ("ocrep_cv", "store_folds=True"),
        ("discrepancy", "noise="),
    ],
)
def test_with_gamma_names_what_was_not_kept(gamma, message):
    X, y = smooth_problem(50, 5)
    model = small().fit(X, y)
    before = state(model)
    with pytest.raises(rules.NotApplicable, match=message):
        model.with_gamma(gamma)
    assert state(model) == before


@pytest.mark.parametrize("gamma", ["kfold", "ocrep_cv"])
def test_kept_folds_serve_with_gamma_and_partial_fit(gamma):
    X, y = smooth_problem(90, 5)
    kept = small(store_folds=True).fit(X, y).with_gamma(gamma)
    anew = small(gamma=gamma).fit(X, y)
    assert kept.gamma_ == pytest.approx(anew.gamma_, rel=1e-6)
    parts = small(gamma=gamma, input_scaling=(-1.0, 1.0)).partial_fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
    whole = small(gamma=gamma, input_scaling=(-1.0, 1.0)).fit(X, y)
    assert parts.gamma_ == pytest.approx(whole.gamma_, rel=1e-4)


@pytest.mark.parametrize("gamma", ["ocrep", "kfold"])
def test_rows_without_weight_in_front_do_not_matter_to_the_gram_route(gamma):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 20)) + 100.0 * np.arange(1, 21)
    y = X @ np.arange(20.0) + rng.normal(size=60_000)
    weight = np.ones(60_000)
    weight[:40_000] = 0.0
    X[:50_000] -= 7.0  # the means drift, so that a wrong shift would show
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ocrep._linalg.parallel.BLOCK_ENTRIES", 2**17)
        model = TikhonovRegressor(gamma, solver="gram").fit(X, y, sample_weight=weight)
    expected = TikhonovRegressor(gamma, solver="qr").fit(X[40_000:], y[40_000:])
    np.testing.assert_allclose(model.gamma_, expected.gamma_, rtol=1e-5)
    np.testing.assert_allclose(weights_of(model), weights_of(expected), rtol=1e-6)


@some_advice
def test_several_sparse_entries_of_one_place_count_as_their_sum():
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 60, 900), rng.integers(0, 6, 900)
    values = rng.integers(-9, 9, 900).astype(float)  # whole, so that sums do not depend on their order
    doubled = sparse.csr_matrix((values, columns, np.searchsorted(np.sort(rows), np.arange(61))))
    assert not doubled.has_canonical_format
    y, before = rng.normal(size=60), doubled.data.copy()
    model, expected = (PinvRegressor(20, gamma="kfold", random_state=0).fit(X, y) for X in (doubled, doubled.toarray()))
    assert model.gamma_ == pytest.approx(expected.gamma_, rel=1e-6)
    np.testing.assert_array_equal(doubled.data, before)
