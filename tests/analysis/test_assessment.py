"""Scores on held-out rows against scikit-learn's, in one piece and by blocks; and when which advice is given."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import metrics
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from support.advice import some_advice

from ocrep import PinvClassifier, PinvClassifierCV, PinvRegressor, PinvRegressorCV, rules
from ocrep.analysis.assessment import (
    Advice,
    LabelScores,
    NumberScores,
    UniformSample,
    assess,
    sample_size,
    simple_models,
)


def waves(n, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + noise * rng.standard_normal(n)


def three_classes(n, seed=0):
    X, y = waves(n, seed)
    return X, np.array(["a", "b", "c"])[np.digitize(y, [0.5, 2.0])]


def codes(found):
    return [advice.code for advice in found.advice]


def test_scores_of_numbers_are_those_of_scikit_learn_however_they_are_cut():
    rng = np.random.default_rng(1)
    y, predicted = 1e6 + rng.standard_normal(500), 1e6 + rng.standard_normal(500)
    wanted = {
        "r2": metrics.r2_score(y, predicted),
        "rmse": metrics.root_mean_squared_error(y, predicted),
        "mae": metrics.mean_absolute_error(y, predicted),
    }
    for cuts in ([], [1, 7, 300], range(1, 500)):
        found = NumberScores()
        for part in np.split(np.arange(500), cuts):
            found.add(y[part], predicted[part])
        assert found.n == 500
        assert found.values() == pytest.approx(wanted, rel=1e-9)


def test_equal_targets_have_no_r2():
    found = NumberScores()
    found.add(np.full(3, 0.1), np.zeros(3))
    assert np.isnan(found.values()["r2"])


@pytest.mark.parametrize("n_classes", [2, 4])
def test_scores_of_labels_are_those_of_scikit_learn_however_they_are_cut(n_classes):
    rng = np.random.default_rng(2)
    labels = np.array(list("abcd"))[:n_classes]
    y = labels[rng.choice(n_classes, 400, p=rng.dirichlet(np.ones(n_classes)))]
    probabilities = rng.dirichlet(np.ones(n_classes), 400)
    predicted = labels[probabilities.argmax(axis=1)]
    of_auc = probabilities[:, 1] if n_classes == 2 else probabilities
    wanted = {
        "error": 1 - metrics.accuracy_score(y, predicted),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, predicted),
        "roc_auc": metrics.roc_auc_score(y, of_auc, multi_class="ovr"),
        "log_loss": metrics.log_loss(y, probabilities, labels=labels),
    }
    for cuts in ([], [1, 399], range(1, 400, 3)):
        found = LabelScores(labels, labels)
        for part in np.split(np.arange(400), cuts):
            found.add(y[part], predicted[part], probabilities[part])
        assert found.values() == pytest.approx(wanted)
        np.testing.assert_array_equal(found.confusion, metrics.confusion_matrix(y, predicted, labels=labels))


def test_a_class_that_the_model_does_not_know_is_wrong_and_has_no_log_loss():
    found = LabelScores(np.array([1, 2, 3]), np.array([1, 3]))
    found.add(np.array([1, 2, 3]), np.array([1, 1, 3]), np.array([[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]]))
    assert found.values() == pytest.approx(
        {"error": 1 / 3, "balanced_accuracy": 2 / 3, "roc_auc": 0.5, "log_loss": np.log(2)}
    )
    found = LabelScores(np.array([1, 2]), np.array([1, 2]))
    found.add(np.array([1, 1]), np.array([1, 1]))
    assert np.isnan([found.values()[name] for name in ("roc_auc", "log_loss")]).all()
    found.add(np.array([1, 1]), np.array([1, 1]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert np.isnan(found.values()["roc_auc"])  # of one class
    assert np.isfinite(found.values()["log_loss"])  # although a probability is 0


def test_a_sample_keeps_rows_of_all_blocks_in_their_order():
    sample = UniformSample(100)
    assert len(sample.rows()) == 0
    for start in range(0, 5000, 50):
        sample.add(np.arange(start, start + 50))
    rows = sample.rows()
    assert len(rows) == 100
    assert (np.diff(rows) > 0).all()
    # Uniform: the mean of 100 of 0…4999 is within four standard deviations of the middle.
    assert abs(rows.mean() - 2500) < 4 * 1443 / 10


def test_the_area_of_a_sample_is_near_that_of_all_rows():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 150_000)  # three times as many as the sample holds
    p = 1 / (1 + np.exp(-(y + rng.standard_normal(len(y)))))
    found = LabelScores(np.array([0, 1]), np.array([0, 1]))
    for part in np.split(np.arange(len(y)), 40):
        found.add(y[part], (p > 0.5)[part].astype(int), np.column_stack([1 - p, p])[part])
    # Within four of the standard errors that 25,000 sampled rows of each class allow.
    assert found.values()["roc_auc"] == pytest.approx(metrics.roc_auc_score(y, p), abs=4 / (2 * 25_000**0.5))


def test_the_simple_models_see_fewer_rows_where_columns_or_classes_are_many():
    assert sample_size(20) == 50_000
    assert sample_size(20, 1000) == 2**24 // 20_000
    assert sample_size(2000) == 2500
    assert sample_size(100_000, 100) == 500
    assert sample_size(0) == 50_000


@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_matrix])
def test_a_regression_is_compared_with_the_baseline_the_linear_model_and_boosting(as_given):
    (X, y), (X_test, y_test) = waves(800), waves(400, seed=1)
    model = PinvRegressor(100, random_state=0).fit(X, y)
    found = assess(model, as_given(X), y, as_given(X_test), y_test, boosting=True)
    assert list(found.models) == ["network", "baseline (mean)", "linear model", "gradient boosting"]
    rmse = {name: scores["rmse"] for name, scores in found.models.items()}
    mean = DummyRegressor().fit(X, y).predict(X_test)
    assert rmse["network"] == pytest.approx(metrics.root_mean_squared_error(y_test, model.predict(X_test)))
    assert rmse["baseline (mean)"] == pytest.approx(metrics.root_mean_squared_error(y_test, mean))
    linear = LinearRegression().fit(X, y).predict(X_test)
    assert rmse["linear model"] == pytest.approx(metrics.root_mean_squared_error(y_test, linear), rel=0.01)
    assert rmse["network"] < rmse["gradient boosting"] < rmse["linear model"] < 1.02 * rmse["baseline (mean)"]
    assert found.scores == {**found.models["network"], "baseline_rmse": rmse["baseline (mean)"]}
    assert (found.n_test, found.classes, found.confusion, codes(found)) == (400, None, None, [])
    assert found.to_json()["models"] == found.models


def test_a_classification_is_compared_with_the_baseline_and_the_linear_model():
    (X, y), (X_test, y_test) = three_classes(900), three_classes(400, seed=1)
    model = PinvClassifier(100, calibrate="loo", random_state=0).fit(X, y)
    found = assess(model, X, y, X_test, y_test)
    baseline, linear = DummyClassifier().fit(X, y), LogisticRegression().fit(X, y)
    for name, other in {"network": model, "baseline (majority class)": baseline, "linear model": linear}.items():
        scores = found.models[name]
        assert scores["error"] == pytest.approx(1 - other.score(X_test, y_test), abs=0.01)
        assert scores["log_loss"] == pytest.approx(metrics.log_loss(y_test, other.predict_proba(X_test)), rel=0.02)
    assert found.scores["baseline_error"] == found.models["baseline (majority class)"]["error"]
    np.testing.assert_array_equal(found.confusion, metrics.confusion_matrix(y_test, model.predict(X_test)))
    assert found.classes == ("a", "b", "c")
    assert codes(found) == []


def test_the_simple_models_are_trained_on_a_sample_of_many_rows():
    X, y = waves(51_000)
    seeds = (0, 0, 1)
    first, again, other = (simple_models(X, y, labels=False, seed=seed)["linear model"][-1].coef_ for seed in seeds)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)  # of other rows
    np.testing.assert_allclose(
        first, simple_models(X[:50_000], y[:50_000], labels=False)["linear model"][-1].coef_, atol=0.01
    )
    assert simple_models(X[:100], np.full(100, "a"), labels=True, boosting=True) == {}


def test_advice_when_a_class_is_never_predicted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 4))
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(3000) > 2.75, "rare", "often")
    plain = PinvClassifier(20, gamma=1e3, random_state=0).fit(X, y)
    found = assess(plain, X, y, X, y)
    assert "never_predicted" in codes(found)
    advice = next(one for one in found.advice if one.code == "never_predicted")
    n = int((y == "rare").sum())
    wanted = f"No held-out row is predicted as rare ({n} rows): try "
    assert advice.sentence() == wanted + "--class-weight balanced"
    assert advice.sentence("python") == wanted + 'class_weight="balanced".'
    balanced = PinvClassifier(20, gamma=1e3, class_weight="balanced", random_state=0).fit(X, y)
    assert "never_predicted" not in codes(assess(balanced, X, y, X, y))


def test_many_classes_that_are_never_predicted_are_not_all_named():
    X, y = np.zeros((60, 1)), np.arange(60) % 6
    model = PinvClassifier(3, gamma=1.0, class_weight="balanced", random_state=0).fit(X, y)
    advice = next(one for one in assess(model, X, y, X, y).advice if one.code == "never_predicted")
    assert advice.sentence().endswith(" and 2 more: more rows of such classes would help.")


def test_advice_when_the_baseline_or_a_linear_model_does_as_well():
    rng = np.random.default_rng(0)
    X, noise = rng.standard_normal((300, 3)), rng.standard_normal(300)
    model = PinvRegressor(50, gamma="none", random_state=0).fit(X[:150], noise[:150])
    (first,) = assess(model, X[:150], noise[:150], X[150:], noise[150:]).advice
    assert first.sentence().startswith("The model is no better than the baseline (mean): ")
    labels = np.where(noise > 0, 1, 0)
    guess = PinvClassifier(50, gamma="none", calibrate="loo", random_state=0).fit(X[:150], labels[:150])
    assert codes(assess(guess, X[:150], labels[:150], X[150:], labels[150:]))[0] == "baseline"
    y = X @ [1.0, 2.0, 3.0] + 0.5 * noise
    model = PinvRegressor(100, gamma="none", random_state=0).fit(X[:150], y[:150])
    (first,) = assess(model, X[:150], y[:150], X[150:], y[150:]).advice
    wanted = "A plain linear model is better on the held-out rows"
    assert first.sentence() == f"{wanted}: it may be all that these rows need."
    search = PinvRegressorCV("quick", random_state=0, ensemble=False).fit(X[:150], y[:150])
    found = assess(search, X[:150], y[:150], X[150:], y[150:])
    assert found.advice == () or found.advice[0].change == {"candidates": "thorough"}
    sides = (y > 0).astype(int)
    model = PinvClassifier(140, gamma="none", direct_link=False, random_state=0).fit(X[:150], sides[:150])
    assert codes(assess(model, X[:150], sides[:150], X[150:], sides[150:])) == ["linear"]


def test_advice_when_another_rule_is_clearly_better():
    X, y = waves(3000)
    options = {"n_hidden": 100, "store_folds": True, "random_state": 0}
    found = {
        gamma: assess(
            PinvRegressor(gamma=gamma, **options).fit(X[:2000], y[:2000]), X[:2000], y[:2000], X[2000:], y[2000:]
        )
        for gamma in ("ocrep", "ocrep_cv", "kfold")
    }
    assert codes(found["ocrep"]) == ["rule"]
    assert found["ocrep"].advice[0].sentence().endswith(": try --gamma ocrep_cv")
    assert found["ocrep"].models["network"]["rmse"] > 1.05 * found["ocrep_cv"].models["network"]["rmse"]
    assert codes(found["ocrep_cv"]) == codes(found["kfold"]) == []
    # Without folds nothing is known of other rules.
    plain = PinvRegressor(100, gamma="ocrep", random_state=0).fit(X[:2000], y[:2000])
    assert codes(assess(plain, X[:2000], y[:2000], X[2000:], y[2000:])) == []


@some_advice
def test_advice_when_gamma_lies_at_an_edge():
    X, y = waves(400)
    rule = rules.KFold(grid=(1e-3, 1e-2))
    low = PinvRegressor(30, gamma=rules.KFold(grid=(4e-6, 1e-4)), random_state=0).fit(X, y)
    assert low.choice_.edge == "low"
    (advice,) = assess(low, X, y, X, y).advice
    assert advice.sentence().endswith("needs no regularization: more hidden units may do better.")
    noise = np.random.default_rng(5).standard_normal(400)
    high = PinvRegressor(30, gamma=rule, random_state=0).fit(X, noise)
    assert high.choice_.edge == "high"
    (advice,) = assess(high, X, noise, X, noise).advice
    assert "upper end of its range" in advice.sentence()


def test_other_estimators_get_no_advice_on_gamma():
    X, y = waves(400)
    linear = LinearRegression().fit(X, y)
    assert set(codes(assess(linear, X, y, X, y))) <= {"baseline"}


def test_advice_without_a_change_ends_with_a_full_stop():
    assert Advice("x", "Something is odd").sentence() == "Something is odd."


def test_the_best_of_several_classifiers_is_assessed_as_one():
    (X, y), (X_test, y_test) = three_classes(300), three_classes(100, seed=1)
    model = PinvClassifierCV([{"n_hidden": 30}], random_state=0, ensemble=False).fit(X, y)
    found = assess(model, X, y, X_test, y_test)
    assert found.scores["log_loss"] == pytest.approx(metrics.log_loss(y_test, model.predict_proba(X_test)))


def test_the_verdict_says_if_the_simple_models_had_fewer_rows():
    X, y = waves(52_000)
    model = PinvRegressor(60, random_state=0).fit(X[:51_000], y[:51_000])
    found = assess(model, X[:51_000], y[:51_000], X[51_000:], y[51_000:])
    assert found.n_simple == 50_000
    assert "a linear model trained on 50,000 of the rows" in found.verdict.answer
    few = assess(model, X[:50_000], y[:50_000], X[51_000:], y[51_000:])
    assert few.n_simple is None
    assert "of the rows" not in few.verdict.answer
