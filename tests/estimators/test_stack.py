"""Stacks of networks: held-out predictions against refits by hand, weights, files, graphs, and kinds of rows."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import make_classification, make_friedman1
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit

import ocrep
from ocrep import PinvClassifier, PinvClassifierCV, PinvRegressor, PinvRegressorCV, RandomLayer, load_model, save_model

THREE = [
    {"n_hidden": 30, "activation": "relu", "weight_init": "pairs", "input_scaling": "squash"},
    {"n_hidden": 30, "weight_init": "trees", "input_scaling": "squash"},
    {"n_hidden": 30, "activation": "laplace", "weight_init": "rows", "metric": "diagonal", "input_scaling": "squash"},
]


@pytest.fixture(scope="module")
def friedman():
    X, y = make_friedman1(300, 7, noise=1.0, random_state=0)
    return X[:200], y[:200], X[200:], y[200:]


@pytest.fixture(scope="module")
def regressor(friedman):
    X, y, _, _ = friedman
    return PinvRegressorCV(THREE, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def classes():
    X, y = make_classification(300, 6, n_informative=4, n_classes=3, n_clusters_per_class=1, random_state=0)
    return X[:200], np.array(["a", "b", "c"])[y[:200]], X[200:], np.array(["a", "b", "c"])[y[200:]]


@pytest.fixture(scope="module")
def classifier(classes):
    X, y, _, _ = classes
    return PinvClassifierCV(THREE, random_state=0).fit(X, y)


def refitted_error(parameters, gamma, X, y, fold, weight=None):
    """The mean squared error with layer, metric and output weights learned anew without each fold."""
    weight = np.ones(len(y)) if weight is None else weight
    total = 0.0
    for v in np.unique(fold):
        held = fold == v
        network = PinvRegressor(**parameters, gamma=float(gamma), random_state=0)
        network.fit(X[~held], y[~held], weight[~held], groups=fold[~held] if "metric" in parameters else None)
        total += np.sum(weight[held] * (network.predict(X[held]) - y[held]) ** 2)
    return total / weight.sum()


def test_the_held_out_error_of_trees_is_that_of_growing_them_anew(friedman):
    X, y, _, _ = friedman
    fold = np.arange(len(y)) % 3
    parameters = THREE[1]
    model = PinvRegressorCV([parameters], cv=PredefinedSplit(fold), random_state=0).fit(X, y)
    results = model.cv_results_
    assert results["judged"].tolist() == ["nested"]
    # Targets are standardised within a stack, which changes no γ: W and γ‖W‖² scale together.
    expected = refitted_error(parameters, results["gamma"][0], X, y, fold)
    assert results["squared_error"][0] == pytest.approx(expected, rel=1e-8)


def test_the_held_out_error_of_other_layers_is_that_of_refitting_their_outputs(friedman):
    X, y, _, _ = friedman
    fold = np.arange(len(y)) % 4
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    parameters = {"n_hidden": 20, "activation": "tanh", "input_scaling": "squash", "direct_link": False}
    model = PinvRegressorCV([parameters], cv=PredefinedSplit(fold), random_state=0).fit(X, y, weight)
    gamma = model.cv_results_["gamma"][0]
    layer = RandomLayer(20, activation="tanh", input_scaling="squash", random_state=0).fit(X, sample_weight=weight)
    H = layer.transform(X)
    total = 0.0
    for v in range(4):
        held = fold == v
        ridge = Ridge(alpha=gamma).fit(H[~held], y[~held], weight[~held])
        total += np.sum(weight[held] * (ridge.predict(H[held]) - y[held]) ** 2)
    assert model.cv_results_["squared_error"][0] == pytest.approx(total / weight.sum(), rel=1e-8)


@pytest.mark.parametrize("several", [False, True])
def test_predictions_are_the_weighted_sum_of_the_members(friedman, several):
    X, y, X_new, _ = friedman
    y = np.column_stack([y, 100.0 * np.sin(y)]) if several else y
    model = PinvRegressorCV(THREE, random_state=0).fit(X, y)
    assert model.weights_.min() >= 0.0
    assert model.weights_.sum() == pytest.approx(1.0)
    total = 0.0
    for own, share, gamma in zip(THREE, model.weights_, model.cv_results_["gamma"], strict=True):
        if share > 0.0:
            # The metric is learned on the folds of the search.
            single = PinvRegressorCV([{**own, "gamma": float(gamma)}], random_state=0).fit(X, y)
            total = total + share * single.predict(X_new)
    np.testing.assert_allclose(model.predict(X_new), total, rtol=1e-7)


def test_weights_are_the_best_of_all_that_are_not_negative():
    from ocrep._training.stack import nearest_shares

    rng = np.random.default_rng(0)
    T = rng.normal(size=(80, 2))
    predictions = [T + s * rng.normal(size=T.shape) for s in (0.5, 0.7, 2.0, 1.0)]
    weight = rng.uniform(0.1, 3.0, 80)

    def error(w):
        return np.sum(weight[:, None] * (T - sum(a * P for a, P in zip(w, predictions, strict=True))) ** 2)

    found = nearest_shares(predictions, T, weight)
    best = minimize(
        error,
        np.full(4, 0.25),
        bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(found, best.x, atol=1e-4)
    assert error(found) <= best.fun * (1 + 1e-9)


def test_a_stack_is_no_worse_than_its_best_member_on_rows_held_out(regressor, classifier):
    for model in (regressor, classifier):
        assert model.ensemble_score_ >= model.best_score_ - 1e-12


def test_equal_candidates_give_a_model(friedman):
    X, y, X_new, _ = friedman
    model = PinvRegressorCV([THREE[0], THREE[0]], random_state=0).fit(X, y)
    one = PinvRegressorCV([THREE[0]], random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X_new), one.predict(X_new), rtol=1e-7)


def test_what_belongs_to_one_network_is_the_best_members(regressor, friedman):
    _, _, X_new, y_new = friedman
    best = regressor.best_estimator_
    assert isinstance(best, PinvRegressor)
    assert best.gamma_ > 0.0
    assert best.with_gamma("gcv").score(X_new, y_new) > 0.5
    for name in ("spectrum_", "gamma_", "factor_", "singular_values_"):
        with pytest.raises(AttributeError, match=f"use best_estimator_.{name}"):
            getattr(regressor, name)
    with pytest.raises(AttributeError, match=r"best_estimator_\.with_gamma"):
        regressor.with_gamma("gcv")
    with pytest.raises(ValueError, match="predict_interval"):
        regressor.predict(X_new, return_std=True)
    with pytest.raises(AttributeError, match="partial_fit"):
        regressor.partial_fit(X_new, y_new)


def test_the_best_member_is_the_network_trained_alone(friedman):
    X, y, X_new, _ = friedman
    model = PinvRegressorCV(THREE[:2], random_state=0).fit(X, y)
    best = model.best_estimator_
    alone = PinvRegressor(**model.best_params_, gamma=best.gamma_, random_state=0).fit(X, y)
    np.testing.assert_allclose(best.predict(X_new), alone.predict(X_new), rtol=1e-9)


def test_files_graphs_copies_and_single_precision_predict_the_same(regressor, classifier, friedman, classes, tmp_path):
    for model, X_new in ((regressor, friedman[2]), (classifier, classes[2])):
        path = tmp_path / "model.skops"
        save_model(model, path)
        loaded = load_model(path)
        np.testing.assert_array_equal(loaded.predict(X_new), model.predict(X_new))
        np.testing.assert_array_equal(loaded.weights_, model.weights_)
        assert loaded.best_estimator_.gamma_ == model.best_estimator_.gamma_
        outputs = model.predict(X_new) if model is regressor else model.predict_proba(X_new)
        single = model.as_float32()
        again = single.predict(X_new) if model is regressor else single.predict_proba(X_new)
        np.testing.assert_allclose(again, outputs, rtol=1e-3, atol=1e-3)


def test_graphs_predict_the_same(regressor, classifier, friedman, classes):
    runtime = pytest.importorskip("onnxruntime")
    for model, X_new in ((regressor, friedman[2]), (classifier, classes[2])):
        graph = ocrep.onnx.to_onnx(model, dtype="float64")
        session = runtime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
        found = session.run(None, {session.get_inputs()[0].name: X_new})
        if model is regressor:
            np.testing.assert_allclose(np.ravel(found[0]), model.predict(X_new), rtol=1e-9)
        else:
            np.testing.assert_array_equal(found[0], model.predict(X_new))
            np.testing.assert_allclose(found[1], model.predict_proba(X_new), rtol=1e-6)


def test_probabilities_are_calibrated_and_labels_follow_them(classifier, classes):
    _, _, X_new, y_new = classes
    P = classifier.predict_proba(X_new)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(classifier.classes_[P.argmax(axis=1)], classifier.predict(X_new))
    assert classifier.score(X_new, y_new) > 0.7
    true = P[np.arange(len(P)), np.searchsorted(classifier.classes_, y_new)]
    assert -np.mean(np.log(true)) < np.log(3.0)


@pytest.mark.parametrize("own", THREE, ids=["pairs", "trees", "metric"])
def test_intervals_cover_what_they_say(own):
    X, y = make_friedman1(4000, 8, noise=1.0, random_state=1)
    model = PinvRegressorCV([own], random_state=0).fit(X[:1000], y[:1000])
    ends = model.predict_interval(X[1000:], coverage=0.9)
    assert 0.88 <= np.mean((ends[:, 0] <= y[1000:]) & (y[1000:] <= ends[:, 1])) <= 0.925


def noise_scores(candidates, n_draws):
    """R² on held-out rows of models of pure noise."""
    rng = np.random.default_rng(0)
    scores = []
    for seed in range(n_draws):
        X = rng.normal(size=(150, 6))
        y = rng.normal(size=150)
        model = PinvRegressorCV(candidates, random_state=seed).fit(X, y)
        scores.append(1.0 + model.ensemble_score_ / y.var())
    return scores


def test_pure_noise_is_not_learned():
    assert np.mean(noise_scores(THREE, 5)) < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("candidates", [THREE, "default"])
def test_pure_noise_is_not_learned_in_many_draws(candidates):
    scores = np.array(noise_scores(candidates, 30))
    # The weights of the stack are chosen on the same rows: that is worth about as much as one of ten candidates.
    assert scores.mean() < 0.01 + 2.0 * scores.std() / np.sqrt(len(scores))


@pytest.mark.parametrize("kind", ["scan", "dask", "sparse", "float32"])
def test_every_kind_of_rows_gives_the_same_model(kind, friedman, regressor):
    X, y, X_new, _ = friedman
    expected = regressor.predict(X_new)
    model = clone(regressor)
    if kind == "scan":
        model.fit(ocrep.scan([(X[:90], y[:90]), (X[90:], y[90:])]))
    elif kind == "dask":
        da = pytest.importorskip("dask.array")
        model.fit(da.from_array(X, chunks=(60, -1)), da.from_array(y, chunks=60))
    elif kind == "sparse":
        from scipy import sparse

        model.fit(sparse.csr_matrix(X), y)
    else:
        single = X.astype(np.float32)
        model.fit(single, y)
        assert model.predict(X_new.astype(np.float32)).dtype == np.float32
        expected = clone(regressor).fit(single.astype(np.float64), y).predict(X_new)
    tolerance = 1e-3 if kind == "float32" else 1e-7
    np.testing.assert_allclose(model.predict(X_new), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", ["memory", "scan", "dask"])
def test_beyond_selection_rows_members_are_trained_on_all_rows(kind, friedman):
    X, y = make_friedman1(1200, 6, noise=0.5, random_state=2)
    own = {"n_hidden": 25, "activation": "tanh", "input_scaling": (0.0, 1.0), "gamma": 0.1}
    model = PinvRegressorCV([own], selection_rows=200, random_state=0)
    if kind == "memory":
        model.fit(X, y)
    elif kind == "scan":
        model.fit(ocrep.scan([(X[:500], y[:500]), (X[500:], y[500:])]))
    else:
        da = pytest.importorskip("dask.array")
        model.fit(da.from_array(X, chunks=(400, -1)), da.from_array(y, chunks=400))
    assert model.cv_results_["n_rows"].tolist() == [200]
    alone = PinvRegressor(**own, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X[:50]), alone.predict(X[:50]), rtol=1e-6)


def test_weights_equal_repetition(friedman):
    X, y, X_new, _ = friedman
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = PinvRegressorCV(THREE, random_state=0).fit(X, y, times)
    repeated = PinvRegressorCV(THREE, random_state=0).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.predict(X_new), repeated.predict(X_new), rtol=1e-7)


def test_groups_and_splitters_make_the_folds(friedman):
    X, y, X_new, _ = friedman
    groups = np.repeat(np.arange(20), 10)
    by_splitter = PinvRegressorCV(THREE, cv=GroupKFold(4), random_state=0).fit(X, y, groups=groups)
    fold = np.empty(len(y), dtype=int)
    for v, (_, test) in enumerate(GroupKFold(4).split(X, y, groups)):
        fold[test] = v
    given = PinvRegressorCV(THREE, cv=PredefinedSplit(fold), random_state=0).fit(X, y)
    np.testing.assert_allclose(by_splitter.predict(X_new), given.predict(X_new), rtol=1e-9)
    # Copies of a row in every fold would be learned by heart; in one group they are not.
    noise = np.random.default_rng(0).normal(size=60)
    twins = np.repeat(np.random.default_rng(1).normal(size=(60, 3)), 3, axis=0) + 1e-6 * np.arange(180)[:, None]
    honest = PinvRegressorCV(THREE, cv=4, random_state=0).fit(
        twins, np.repeat(noise, 3), groups=np.repeat(np.arange(60), 3)
    )
    fooled = PinvRegressorCV(THREE, cv=KFold(4, shuffle=True, random_state=0), random_state=0)
    fooled.fit(twins, np.repeat(noise, 3))
    assert -honest.ensemble_score_ > 0.8 * noise.var() > -fooled.ensemble_score_


def test_several_labels_and_class_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    Y = np.column_stack([X[:, 0] > 0, X[:, 1] + X[:, 2] > 0.5]).astype(int)
    model = PinvClassifierCV(THREE[:2], random_state=0).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert model.score(X, Y) > 0.8
    assert model.predict_proba(X).shape == Y.shape
    rare = (X[:, 0] + rng.normal(size=200) > 1.5).astype(int)
    plain = PinvClassifierCV(THREE[:2], random_state=0).fit(X, rare)
    balanced = PinvClassifierCV(THREE[:2], class_weight="balanced", random_state=0).fit(X, rare)
    assert balanced.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean()


def test_a_failed_candidate_is_left_out(friedman):
    X, y, X_new, _ = friedman
    constant = np.column_stack([X, np.ones(len(X))])
    bad = {"n_hidden": 5, "input_scaling": None, "activation": lambda Z: Z * np.nan}
    with pytest.warns(UserWarning, match="was left out"):
        model = PinvRegressorCV([THREE[0], bad], random_state=0).fit(constant, y)
    assert model.weights_.tolist() == [1.0, 0.0]
    assert np.isfinite(model.predict(np.column_stack([X_new, np.ones(len(X_new))]))).all()


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"candidates": "best"}, "Unknown candidates 'best'"),
        ({"candidates": [{"n_hidden": "auto"}]}, "give a number"),
        ({"gamma": "gcv"}, "or ensemble=False"),
        ({"time_budget": 0}, "seconds > 0"),
        ({"store_folds": True}, "use ensemble=False"),
    ],
)
def test_bad_parameters(parameters, sentence, friedman):
    X, y, _, _ = friedman
    with pytest.raises(ValueError, match=sentence):
        PinvRegressorCV(**parameters).fit(X, y)


@pytest.mark.parametrize("n_rows", [5, 8, 25])
def test_few_rows_give_a_model(n_rows):
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, 2))
    model = PinvRegressorCV(random_state=0).fit(X, X[:, 0])
    assert np.isfinite(model.predict(X)).all()


def test_one_row_is_refused():
    with pytest.raises(ValueError, match="too few"):
        PinvRegressorCV(random_state=0).fit([[1.0, 2.0]], [3.0])


def test_one_row_of_a_class_constant_columns_and_zero_gradients():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=60), np.full(60, 7.0)])
    y = np.where(np.arange(60) == 3, "rare", np.where(X[:, 0] > 0, "a", "b"))
    model = PinvClassifierCV(random_state=0).fit(X, y)
    assert model.predict_proba(X).shape == (60, 3)
    assert np.isfinite(model.predict_proba(X)).all()
    constant = PinvRegressorCV(random_state=0).fit(X, np.full(60, 5.0))
    np.testing.assert_allclose(constant.predict(X), 5.0)


def test_one_absurd_value_changes_little():
    X, y = make_friedman1(3000, 6, noise=1.0, random_state=0)
    X_new, y_new = make_friedman1(1000, 6, noise=1.0, random_state=1)
    plain = PinvRegressorCV("quick", random_state=0).fit(X, y).score(X_new, y_new)
    X[17, 2] = 1e4
    assert abs(PinvRegressorCV("quick", random_state=0).fit(X, y).score(X_new, y_new) - plain) < 0.01


def test_inputs_that_do_not_matter_are_found():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2500, 30))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3]
    y += 0.5 * rng.normal(size=len(y))
    stack = PinvRegressorCV(random_state=0).fit(X[:1500], y[:1500])
    plain = PinvRegressor(random_state=0).fit(X[:1500], y[:1500])
    error, other = (np.mean((m.predict(X[1500:]) - y[1500:]) ** 2) ** 0.5 for m in (stack, plain))
    assert error < 0.5 * other


def test_no_candidate_is_begun_after_the_budget_of_time(friedman):
    X, y, _, _ = friedman
    model = PinvRegressorCV(THREE, time_budget=1e-9, random_state=0).fit(X, y)
    assert np.count_nonzero(model.weights_) == 1
    assert isinstance(PinvClassifierCV(THREE[:1], random_state=0).fit(X, y > 10).best_estimator_, PinvClassifier)


def test_if_the_first_candidate_fails_after_the_budget_another_is_tried(friedman):
    X, y, _, _ = friedman
    bad = {"n_hidden": 5, "input_scaling": None, "activation": lambda Z: Z * np.nan}
    with pytest.warns(UserWarning, match="was left out"):
        model = PinvRegressorCV([bad, THREE[0], THREE[1]], time_budget=1e-9, random_state=0).fit(X, y)
    assert model.weights_.tolist() == [0.0, 1.0, 0.0]
    assert model.cv_results_["judged"].tolist() == ["", "exact", ""]


def test_numbers_of_numpy_are_numbers(friedman):
    X, y, X_new, _ = friedman
    model = PinvRegressorCV(THREE[:1], gamma=np.float32(0.5), random_state=np.int64(0)).fit(X, y)
    assert model.cv_results_["gamma"].tolist() == [0.5]
    plain = PinvRegressorCV(THREE[:1], gamma=0.5, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X_new), plain.predict(X_new))


def test_weights_equal_repetition_with_layers_that_grow_with_the_rows(friedman):
    X, y, X_new, _ = friedman
    times = np.random.default_rng(1).integers(1, 6, len(y))
    weighted = PinvRegressorCV("quick", random_state=0).fit(X, y, times)
    repeated = PinvRegressorCV("quick", random_state=0).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.predict(X_new), repeated.predict(X_new), rtol=1e-6)


def test_verbose_names_the_candidates_that_are_tried(capsys):
    X = np.random.default_rng(0).normal(size=(2500, 4))
    model = PinvClassifierCV("quick", selection_rows=1000, verbose=True, random_state=0).fit(X, X[:, 0] > 0)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(model.weights_)
    assert all(str(own) in " ".join(lines) for own in model.cv_results_["params"])


def test_gamma_is_found_where_the_error_has_two_minima():
    rng = np.random.default_rng(19)
    group = np.repeat(np.arange(20), 10)
    X = rng.normal(size=(20, 4))[group] + 0.01 * rng.normal(size=(200, 4))
    y = rng.normal(size=20)[group]
    own = {"n_hidden": 20, "activation": "laplace", "weight_init": "rows", "metric": "diagonal"}
    model = PinvRegressorCV([own], random_state=0).fit(X, y, groups=group)
    assert 1.0 + model.ensemble_score_ / y.var() > -0.3


def test_a_checkpoint_is_refused(friedman, tmp_path):
    X, y, _, _ = friedman
    rows = ocrep.scan([(X[:90], y[:90]), (X[90:], y[90:])], checkpoint=tmp_path / "fit.checkpoint")
    with pytest.raises(ValueError, match="use ensemble=False"):
        PinvRegressorCV(THREE, random_state=0).fit(rows)
