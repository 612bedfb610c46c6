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
from ocrep._linalg import parallel
from ocrep._training.stack import _MemberSums

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


@pytest.mark.parametrize("metric", ["diagonal", "full"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_held_out_error_of_metrics_is_that_of_learning_them_anew(friedman, metric, weighted):
    """Importance, all rounds, their γ, the scaling and the layer come from the other folds alone."""
    X, y, _, _ = friedman
    fold = np.arange(len(y)) % 3
    # With such weights sums are exact in any order, so no tree has to decide between equals by rounding.
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(y)) if weighted else np.ones(len(y))
    own = {**THREE[2], "metric": metric}
    leaves = THREE[1]  # a second candidate must not change what the first one learns
    results = PinvRegressorCV([own, leaves], cv=PredefinedSplit(fold), random_state=0).fit(X, y, weight).cv_results_
    assert results["judged"].tolist() == ["nested", "nested"]
    total = 0.0
    for v in range(3):
        kept, held = fold != v, fold == v
        # A stack of one network is that network; its inner folds are those that are left.
        alone = PinvRegressorCV(
            [{**own, "gamma": float(results["gamma"][0])}], cv=PredefinedSplit(fold[kept]), random_state=0
        )
        found = alone.fit(X[kept], y[kept], weight[kept]).predict(X[held])
        total += np.sum(weight[held] * (found - y[held]) ** 2)
    assert results["squared_error"][0] == pytest.approx(total / weight.sum(), rel=1e-7)


@pytest.mark.parametrize("own", THREE[:2], ids=["pairs", "trees"])
def test_of_many_rows_the_held_out_error_is_that_of_learning_without_the_first_folds(own):
    """The folds that are held out are as many as have a fifth of the rows: here the first two of ten.

    Metrics take gradients at some of so many rows only, and which these are depends on the number of folds.
    """
    X, y = make_friedman1(4_300, 8, noise=1.0, random_state=0)
    fold = np.arange(len(y)) % 10
    results = PinvRegressorCV([own], cv=PredefinedSplit(fold), random_state=0).fit(X, y).cv_results_
    held = fold < 2
    assert results["n_rows"].tolist() == [held.sum()]
    if own is THREE[0]:  # this layer is drawn on all rows, and only its output weights are fitted without the folds
        layer = PinvRegressor(**own, random_state=0).fit(X, y).layer_
        H = layer.transform(X)
        C = H[~held] - H[~held].mean(axis=0)
        gram = C.T @ C + results["gamma"][0] * np.eye(C.shape[1])
        W = np.linalg.solve(gram, C.T @ (y[~held] - y[~held].mean()))
        found = (H[held] - H[~held].mean(axis=0)) @ W + y[~held].mean()
    else:
        # A stack of one network is that network; of fewer than 4,000 rows, its layer is learned on all.
        known = {**own, "gamma": float(results["gamma"][0])}
        alone = PinvRegressorCV([known], cv=PredefinedSplit(fold[~held]), random_state=0)
        found = alone.fit(X[~held], y[~held]).predict(X[held])
    assert results["squared_error"][0] == pytest.approx(np.mean((found - y[held]) ** 2), rel=1e-6)


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


def test_the_network_of_a_stack_is_the_sum_of_its_layers_outputs(regressor, friedman, tmp_path):
    """To the last digits, from the model's public parts; and the same from a file."""
    _, _, X_new, _ = friedman
    path = tmp_path / "model.skops"
    save_model(regressor, path)
    for model in (regressor, load_model(path)):
        total, start = model.intercept_, 0
        for layer in model.layer_.layers:
            H = layer.transform(X_new)
            total = total + H @ model.output_coef_[start : start + H.shape[1]]
            start += H.shape[1]
        assert start == len(model.output_coef_)
        assert len(model.layer_.layers) == np.count_nonzero(model.weights_)
        np.testing.assert_allclose(model.predict(X_new), total, rtol=1e-12, atol=1e-12 * np.abs(total).max())


def test_units_of_targets_and_weights_do_not_matter(friedman, regressor, classes):
    """Nor do they where squares of the targets, or of the weights, are zero in float64."""
    X, y, X_new, _ = friedman
    small = clone(regressor).fit(X, 2.0**-570 * y, np.full(len(y), 2.0**-660))
    np.testing.assert_allclose(small.predict(X_new) * 2.0**570, regressor.predict(X_new), rtol=1e-6)
    widths = [np.diff(m.predict_interval(X_new, coverage=0.9)) for m in (small, regressor)]
    np.testing.assert_allclose(widths[0] * 2.0**570, widths[1], rtol=1e-5)
    X, labels, X_new, _ = classes
    plain = PinvClassifierCV(THREE[:2], random_state=0).fit(X, labels)
    light = PinvClassifierCV(THREE[:2], random_state=0).fit(X, labels, np.full(len(X), 2.0**-660))
    np.testing.assert_allclose(light.weights_, plain.weights_, atol=1e-6)
    np.testing.assert_allclose(light.predict_proba(X_new), plain.predict_proba(X_new), atol=1e-6)


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


KINDS = {
    "uniform": {"n_hidden": 30, "activation": "tanh"},
    "pairs": THREE[0],
    "gaussian": {"n_hidden": 30, "activation": "gaussian", "weight_init": "rows", "input_scaling": "squash"},
    "laplace": {"n_hidden": 30, "activation": "laplace", "weight_init": "rows", "input_scaling": "squash"},
    "trees": THREE[1],
    "diagonal metric": THREE[2],
    "full metric": {**THREE[2], "metric": "full"},
}


@pytest.mark.parametrize("own", [*([own] for own in KINDS.values()), THREE], ids=[*KINDS, "stack"])
def test_intervals_cover_what_they_say(own):
    covered = []
    for seed in range(3):
        X, y = make_friedman1(4000, 8, noise=1.0, random_state=seed)
        ends = PinvRegressorCV(own, random_state=0).fit(X[:1000], y[:1000]).predict_interval(X[1000:], coverage=0.9)
        covered.append(np.mean((ends[:, 0] <= y[1000:]) & (y[1000:] <= ends[:, 1])))
    assert 0.88 <= np.mean(covered) <= 0.92


@pytest.mark.parametrize("own", THREE, ids=["pairs", "trees", "metric"])
def test_intervals_cover_what_they_say_of_many_rows(own):
    covered = []
    for seed in range(3):  # a quantile of 1,667 errors is right to 0.009 only
        X, y = make_friedman1(9_000, 8, noise=1.0, random_state=seed)
        model = PinvRegressorCV([{**own, "n_hidden": 100}], random_state=0).fit(X[:5_000], y[:5_000])
        ends = model.predict_interval(X[5_000:], coverage=0.9)
        covered.append(np.mean((ends[:, 0] <= y[5_000:]) & (y[5_000:] <= ends[:, 1])))
    assert 0.88 <= np.mean(covered) <= 0.92


@pytest.mark.slow
def test_of_many_rows_the_best_network_is_small_and_good():
    X, y = make_friedman1(12_000, 8, noise=0.5, random_state=1)
    model = PinvRegressorCV(random_state=0).fit(X[:9_000], y[:9_000])
    best = model.best_estimator_
    assert best.n_hidden == best.n_hidden_ <= 700 < model.best_params_["n_hidden"]
    assert best.score(X[9_000:], y[9_000:]) > 0.98 * model.score(X[9_000:], y[9_000:])


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


def test_the_sums_of_wide_members_are_held_once_whatever_the_number_of_workers(workers, monkeypatch):
    X, y = make_friedman1(3000, 6, noise=0.5, random_state=2)
    merges = []
    merge = _MemberSums.merge
    monkeypatch.setattr(_MemberSums, "merge", lambda one, other: merges.append(1) or merge(one, other))
    monkeypatch.setattr(parallel, "BLOCK_ENTRIES", 2**12)  # several blocks
    model = PinvRegressorCV(THREE, selection_rows=200, random_state=0)
    weight = np.linspace(0.5, 2.0, len(y))
    expected = clone(model).fit(X, y, weight).predict(X[:50])
    workers(4)
    np.testing.assert_allclose(clone(model).fit(X, y, weight).predict(X[:50]), expected, rtol=1e-9)
    assert merges
    monkeypatch.setattr(parallel, "WIDEST_SHARED", 20)
    merges.clear()
    np.testing.assert_allclose(clone(model).fit(X, y, weight).predict(X[:50]), expected, rtol=1e-9)
    assert not merges


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
        (
            {"candidates": [{"n_hidden": 5}, {"n_hidden": 5, "gamma": ocrep.rules.KFold(n_folds=5)}]},
            r"candidates\[1\] has other folds than candidates\[0\].*cv",
        ),
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


def test_the_record_of_the_best_member_says_whether_its_penalty_was_given(friedman):
    X, y, _, _ = friedman
    for gamma, rule in ((2.0, "fixed"), ("kfold", "kfold")):
        best = PinvRegressorCV(THREE[:1], gamma=gamma, random_state=0).fit(X, y).best_estimator_
        assert best.choice_.rule == rule
        assert gamma == "kfold" or best.gamma_ == gamma


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


def test_leaves_help_where_labels_jump():
    X = np.random.default_rng(0).uniform(0.0, 6.0, (2_600, 4))
    y = (np.floor(X[:, 0] / 2.0) + np.floor(X[:, 1] / 2.0)) % 2
    stack = PinvClassifierCV(random_state=0).fit(X[:600], y[:600])
    others = [own for own in stack.cv_results_["params"] if own["weight_init"] != "trees"]
    without = PinvClassifierCV(others, random_state=0).fit(X[:600], y[:600])
    assert len(others) < len(stack.weights_)
    assert 1.0 - stack.score(X[600:], y[600:]) < 0.8 * (1.0 - without.score(X[600:], y[600:]))


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


@pytest.mark.parametrize("labels", [False, True])
def test_of_many_rows_fewer_decide_which_candidates_go_on(labels):
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (4_500, 3))
    y = np.sin(3.0 * X[:, 0]) + (X[:, 1] > 0.3)
    kind, target = (PinvClassifierCV, y > 0.5) if labels else (PinvRegressorCV, y)
    model = kind("quick", random_state=0).fit(X[:4_100], target[:4_100])
    rows = model.cv_results_["n_rows"]
    assert {p["weight_init"] for p in model.cv_results_["params"]} == {"pairs", "rows", "trees"}
    # The others were judged on the 1,000 rows of the first round, and these on a third of all rows.
    assert np.all((rows == 1_000) | (np.abs(rows - 4_100 / 3) < 100))
    assert np.sum(rows > 1_000) >= min(4, len(rows))
    assert np.all(model.weights_[rows == 1_000] == 0.0)
    assert model.score(X[4_100:], target[4_100:]) > 0.9
