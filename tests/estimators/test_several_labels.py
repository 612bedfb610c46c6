"""Several labels per row: as many classifiers of two classes, from one factorisation."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import accuracy_score, log_loss
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils import estimator_checks
from support.advice import some_advice
from support.device import on_device, to_numpy
from support.folds import fold_numbers
from support.weights import weights_of

from ocrep import (
    PinvClassifier,
    PinvClassifierCV,
    RandomLayer,
    TikhonovClassifier,
    TikhonovRegressor,
    compare_rules,
    load_model,
    parts,
    rules,
    save_model,
    scan,
)
from ocrep.onnx import OnnxExportError, to_onnx

X, Y = make_multilabel_classification(150, 8, n_classes=4, n_labels=2, random_state=0)
X = X.astype(float)
NEW = X[:20] + 0.3
WEIGHT = np.random.default_rng(0).uniform(0.3, 2.0, len(X))
Q = Y.shape[1]
models = pytest.mark.parametrize(
    "model", [TikhonovClassifier(), PinvClassifier(30, random_state=0)], ids=["own features", "network"]
)


def with_gamma(model, gamma):
    return clone(model).set_params(gamma=gamma)


@models
@pytest.mark.parametrize("gamma", ["ocrep", 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_under_one_gamma_each_label_is_a_classification_of_two_classes(model, gamma, weighted):
    weight = WEIGHT if weighted else None
    together = with_gamma(model, gamma).fit(X, Y, sample_weight=weight)
    np.testing.assert_array_equal(together.classes_, np.arange(Q))
    assert weights_of(together).shape[0] == len(together.intercept_) == Q
    scores, predicted = together.decision_function(NEW), together.predict(NEW)
    assert predicted.dtype == np.int64
    for q in range(Q):
        alone = with_gamma(model, gamma).fit(X, Y[:, q], sample_weight=weight)
        expected = alone.decision_function(NEW)
        np.testing.assert_allclose(scores[:, q], expected, atol=1e-12 * np.abs(expected).max(), rtol=0)
        np.testing.assert_array_equal(predicted[:, q], alone.predict(NEW))


@pytest.mark.parametrize("gamma", ["kfold", "gcv", "loo", "ocrep_cv"])
def test_with_a_gamma_each_the_labels_are_those_of_as_many_classifiers(gamma):
    options = {"gamma": gamma, "calibrate": "loo"}
    together = TikhonovClassifier(**options, gamma_per_target=True).fit(X, Y, sample_weight=WEIGHT)
    assert together.gamma_.shape == (Q,)
    probabilities = together.predict_proba(NEW)
    for q in range(Q):
        alone = TikhonovClassifier(**options).fit(X, Y[:, q], sample_weight=WEIGHT)
        assert together.gamma_[q] == pytest.approx(alone.gamma_, rel=1e-12)
        scale = np.abs(weights_of(alone)).max()  # one of the weights is close to zero
        np.testing.assert_allclose(weights_of(together)[q], weights_of(alone)[0], atol=1e-12 * scale, rtol=0)
        np.testing.assert_allclose(together.decision_function(NEW)[:, q], alone.decision_function(NEW), rtol=1e-9)
        np.testing.assert_allclose(probabilities[:, q], alone.predict_proba(NEW)[:, 1], rtol=1e-11)
        np.testing.assert_array_equal(together.predict(NEW)[:, q], alone.predict(NEW))


def test_it_is_the_ridge_classifier_of_scikit_learn():
    ours = TikhonovClassifier(2.0).fit(X, Y, sample_weight=WEIGHT)
    theirs = RidgeClassifier(2.0).fit(X, Y, sample_weight=WEIGHT)
    np.testing.assert_allclose(weights_of(ours), weights_of(theirs), rtol=1e-9)
    np.testing.assert_allclose(ours.decision_function(NEW), theirs.decision_function(NEW), rtol=1e-9)
    np.testing.assert_array_equal(ours.predict(NEW), theirs.predict(NEW))
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert ours.score(X, Y) == theirs.score(X, Y) == accuracy_score(Y, ours.predict(X))
    several = OneVsRestClassifier(TikhonovClassifier(2.0)).fit(X, Y)
    np.testing.assert_array_equal(TikhonovClassifier(2.0).fit(X, Y).predict(NEW), several.predict(NEW))


@models
def test_probabilities_are_those_of_each_label_and_predictions_follow_them(model):
    model = clone(model).set_params(calibrate="loo").fit(X, Y)
    probabilities = model.predict_proba(NEW)
    assert probabilities.shape == (20, Q)
    np.testing.assert_allclose(np.log(probabilities), model.predict_log_proba(NEW), rtol=1e-10)
    np.testing.assert_allclose(probabilities, 1 / (1 + np.exp(-model.decision_function(NEW))), rtol=1e-10)
    np.testing.assert_array_equal(probabilities > 0.5, model.predict(NEW) == 1)
    assert np.abs(model.predict_proba(X).mean(axis=0) - Y.mean(axis=0)).max() < 0.05


def test_a_label_that_no_row_or_every_row_has_gets_a_probability_near_that():
    same = np.column_stack([Y[:, :2], np.zeros(150, int), np.ones(150, int)])
    model = TikhonovClassifier(1.0, calibrate="loo").fit(X, same)
    np.testing.assert_allclose(model.predict_proba(NEW)[:, 2:], np.tile([0.5 / 151, 150.5 / 151], (20, 1)), rtol=1e-9)
    np.testing.assert_array_equal(model.predict(NEW)[:, 2:], np.tile([0, 1], (20, 1)))


@pytest.mark.parametrize("form", [bool, np.int8, float, "frame", "list"])
def test_indicators_come_in_many_forms(form):
    pandas = pytest.importorskip("pandas")
    given = pandas.DataFrame(Y) if form == "frame" else Y.tolist() if form == "list" else Y.astype(form)
    expected = TikhonovClassifier(1.0).fit(X, Y)
    np.testing.assert_allclose(TikhonovClassifier(1.0).fit(X, given).coef_, expected.coef_, rtol=1e-12)


def test_two_labels_have_a_score_each():
    model = TikhonovClassifier(1.0).fit(X, Y[:, :2])
    assert model.decision_function(NEW).shape == model.predict(NEW).shape == (20, 2)
    assert model.multilabel_
    assert not TikhonovClassifier(1.0).fit(X, Y[:, 0]).multilabel_


@models
def test_blocks_streams_and_files_learn_the_same(model, tmp_path):
    pandas = pytest.importorskip("pandas")
    model = with_gamma(model, "kfold")
    if isinstance(model, PinvClassifier):
        model.set_params(input_scaling=(0.0, 20.0))
    whole = clone(model).set_params(solver="qr").fit(X, Y)
    cuts = [slice(0, 60), slice(60, 61), slice(61, 150)]
    partial = clone(model)
    for cut in cuts:
        partial.partial_fit(X[cut], Y[cut])
    names = [f"label{q}" for q in range(Q)]
    frame = pandas.DataFrame(np.hstack([X, Y]), columns=[*(f"x{i}" for i in range(8)), *names])
    frame[names] = frame[names].astype(int)
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    others = [
        partial,
        clone(model).fit(scan([(X[cut], Y[cut]) for cut in cuts])),
        clone(model).fit(scan(tmp_path / "rows.parquet", target=names)),
        clone(model).fit(scan(tmp_path / "rows.csv", target=names)),
        clone(model).fit(scan(((X[cut], Y[cut]) for cut in cuts), classes=range(Q))),
    ]
    for other in others:
        np.testing.assert_allclose(weights_of(other), weights_of(whole), rtol=1e-7, atol=1e-9)
        assert other.multilabel_


def test_dask_gives_the_same_indicators():
    da = pytest.importorskip("dask.array")
    rows = da.from_array(X, (50, 8)), da.from_array(Y, (50, Q))
    model = TikhonovClassifier(1.0, calibrate=None).fit(*rows)
    whole = TikhonovClassifier(1.0).fit(X, Y)
    np.testing.assert_allclose(weights_of(model), weights_of(whole), rtol=1e-9)
    np.testing.assert_array_equal(model.predict(rows[0]).compute(), whole.predict(X))
    np.testing.assert_allclose(model.decision_function(rows[0]).compute(), whole.decision_function(X), rtol=1e-9)
    assert model.score(*rows) == pytest.approx(whole.score(X, Y))
    calibrated = TikhonovClassifier(1.0, calibrate="loo").fit(X, Y)
    np.testing.assert_array_equal(calibrated.predict_proba(rows[0]).compute(), calibrated.predict_proba(X))


def test_parts_learn_the_same():
    model = TikhonovClassifier("kfold")
    plan = parts.plan(model, n_features=8)
    cuts = [slice(0, 70), slice(70, 150)]
    surveys = [plan.survey(X[cut], Y[cut], part_number=i) for i, cut in enumerate(cuts)]
    plan = plan.with_survey(surveys[0].merge(surveys[1]))
    made = [plan.of(X[cut], Y[cut], part_number=i) for i, cut in enumerate(cuts)]
    finished = plan.finish(made[0].merge(made[1]))
    np.testing.assert_allclose(weights_of(finished), weights_of(model.fit(X, Y)), rtol=1e-7)
    np.testing.assert_array_equal(finished.predict(NEW), model.predict(NEW))


def test_arrays_on_a_device_give_the_same_indicators():
    model = TikhonovClassifier("kfold", calibrate="loo")
    host, there = clone(model).fit(X, Y), clone(model).fit(on_device(X), on_device(Y))
    np.testing.assert_array_equal(to_numpy(there.predict(on_device(NEW))), host.predict(NEW))
    np.testing.assert_allclose(to_numpy(there.predict_proba(on_device(NEW))), host.predict_proba(NEW), rtol=1e-4)


@some_advice
def test_counting_wrong_rows_counts_rows_with_any_wrong_label():
    rule = rules.KFold(scoring="error", grid=[0.1, 10.0, 1e3])
    model = TikhonovClassifier(rule, solver="qr").fit(X, Y)
    fold = rule.folds.of(X)
    for gamma, share in zip(rule.grid, model.choice_.curve.criterion, strict=True):
        wrong = 0
        for v in range(3):
            refitted = TikhonovClassifier(gamma).fit(X[fold != v], Y[fold != v])
            wrong += np.count_nonzero((refitted.predict(X[fold == v]) != Y[fold == v]).any(axis=1))
        assert share == pytest.approx(wrong / len(X))


def test_tables_and_the_search_for_layers_take_several_labels():
    table = compare_rules(X, Y, n_hidden=None, task="classification", rules=["gcv", 1.0], details=True)
    expected = 1 - TikhonovClassifier(1.0).fit(X, Y).score(X, Y)
    assert table["train_error"].iloc[1] == pytest.approx(expected)
    model = PinvClassifierCV(random_state=0, candidates=[{"n_hidden": 10}, {"n_hidden": 40}], ensemble=False).fit(X, Y)
    assert model.predict(NEW).shape == (20, Q)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("init", ["pairs", "rows"])
def test_units_from_training_rows_see_several_labels(init):
    activation = "gaussian" if init == "rows" else "tanh"
    model = PinvClassifier(20, weight_init=init, activation=activation, random_state=0).fit(X, Y)
    assert model.predict(NEW).shape == (20, Q)


def test_files_keep_indicators_and_graphs_refuse_them(tmp_path):
    model = TikhonovClassifier("kfold", calibrate="loo").fit(X, Y)
    save_model(model, tmp_path / "model.ocrep")
    loaded = load_model(tmp_path / "model.ocrep")
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(loaded.predict_proba(NEW), model.predict_proba(NEW))
    with pytest.raises(OnnxExportError, match="gives several labels per row"):
        to_onnx(model)


def test_labels_equal_the_regression_of_their_codes():
    model, regression = TikhonovClassifier("kfold").fit(X, Y), TikhonovRegressor("kfold").fit(X, 2.0 * Y - 1.0)
    assert model.gamma_ == pytest.approx(regression.gamma_, rel=1e-12)
    np.testing.assert_allclose(weights_of(model), weights_of(regression), rtol=1e-11)


@pytest.mark.parametrize(
    ("y", "told"),
    [
        (np.where(Y > 0, 2, 0), "column . holds 2 and not 0 or 1"),
        (np.where(Y > 0, 1.0, np.nan), "holds nan and not 0 or 1"),
        (np.where(Y > 0, "yes", "no"), "holds (yes|no) and not 0 or 1"),
        (Y[:, :, None], "one label per row, or a column of 0 and 1 for each label"),
    ],
)
def test_targets_that_are_not_indicators_raise_with_a_reason(y, told):
    with pytest.raises(ValueError, match=told):
        TikhonovClassifier().fit(X, y)


def test_weights_of_classes_and_other_labels_raise_with_a_reason():
    for given in ("balanced", {0: 2.0}):
        with pytest.raises(ValueError, match="weighs a row by its label, and these rows have several labels"):
            TikhonovClassifier(class_weight=given).fit(X, Y)
    with pytest.raises(ValueError, match="y has 4 columns of indicators: leave classes out"):
        TikhonovClassifier().partial_fit(X, Y, classes=["a", "b"])
    model = TikhonovClassifier().partial_fit(X, Y)
    with pytest.raises(ValueError, match=r"y has the shape .150, 3., but in the first rows it has 4 columns"):
        model.partial_fit(X, Y[:, :3])
    with pytest.raises(ValueError, match=r"y has the shape .150,., but in the first rows it has 4 columns"):
        model.partial_fit(X, Y[:, 0])
    with pytest.raises(ValueError, match=r"y has the shape .150, 4., but in the first rows it has one axis"):
        TikhonovClassifier().partial_fit(X, Y[:, 0], classes=[0, 1]).partial_fit(X, Y)
    with pytest.raises(ValueError, match="in the first rows it has 4 columns"):
        TikhonovClassifier().fit(scan([(X[:50], Y[:50]), (X[50:], Y[50:, :3])]))


@models
def test_scikit_learns_checks_hold(model):
    assert model.__sklearn_tags__().classifier_tags.multi_label
    calibrated = clone(model).set_params(calibrate="loo")
    for check in (
        estimator_checks.check_classifiers_multilabel_representation_invariance,
        estimator_checks.check_classifiers_multilabel_output_format_predict,
        estimator_checks.check_classifiers_multilabel_output_format_predict_proba,
        estimator_checks.check_classifiers_multilabel_output_format_decision_function,
    ):
        check(type(model).__name__, calibrated)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
def test_the_log_loss_of_several_labels_is_the_mean_of_theirs(weight):
    layer = {"n_hidden": 10, "fit_intercept": True, "direct_link": False, "gamma": 0.1}
    model = PinvClassifierCV([layer], random_state=0, ensemble=False).fit(X, Y, sample_weight=weight)
    H, fold = RandomLayer(10, random_state=0).fit_transform(X), fold_numbers(X)
    outputs = np.empty(Y.shape)
    for v in range(3):
        rest, held = fold != v, fold == v
        part = TikhonovRegressor(0.1).fit(H[rest], 2.0 * Y[rest] - 1.0, None if weight is None else weight[rest])
        outputs[held] = part.predict(H[held])
    losses = [
        np.mean([log_loss(Y[:, q], expit(2 * a * outputs[:, q]), sample_weight=weight) for q in range(Q)])
        for a in np.geomspace(0.5, 32.0, 13)  # the temperatures that are tried
    ]
    assert -model.best_score_ == pytest.approx(min(losses), rel=1e-8)
