"""The choice among hidden layers: exact, the same as training the winner alone, and useful where a candidate fails."""

import copy
import pickle
import time
from pathlib import Path

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import softmax
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from support.advice import some_advice
from support.contract import scikit_learn_checks
from support.device import on_device, to_numpy
from support.folds import fold_numbers
from support.problems import augmented_solution, smooth_problem
from support.samples import sample_of

from ocrep import (
    HiddenSizeDisplay,
    PinvClassifier,
    PinvClassifierCV,
    PinvRegressor,
    PinvRegressorCV,
    RandomLayer,
    SpectrumDisplay,
    TikhonovRegressor,
    load_model,
    report,
    rules,
    save_model,
    scan,
)
from ocrep.onnx import to_onnx

LAYERS = [
    {"n_hidden": 5, "direct_link": False, "fit_intercept": False},
    {"n_hidden": 40, "direct_link": True, "fit_intercept": True},
    {"n_hidden": 150, "activation": "tanh", "weight_scale": 2.0, "direct_link": True, "fit_intercept": True},
    {"n_hidden": 40, "weight_init": "normal", "direct_link": False, "fit_intercept": True},
]
X, Y = smooth_problem(220, 4)
LABELS = np.digitize(Y, [-0.3, 0.4])
BOTH = np.column_stack([Y, np.cos(Y)])
FOLD = fold_numbers(X)
WEIGHT = np.random.default_rng(1).uniform(0.2, 2.0, len(Y))


def bad(Z):
    """An activation that says nothing."""
    return Z * np.nan


def codes(labels):
    """±1 in one column per class, or in one for two classes."""
    T = np.where(labels[:, None] == np.unique(labels), 1.0, -1.0)
    return T if T.shape[1] > 2 else T[:, 1:]


def refitted_error(model, number, X, T, weight=None, fold=FOLD):
    """The oracle: fit the output layer of a candidate anew without each fold, and look at the rows left out."""
    parameters, gamma = dict(model.cv_results_["params"][number]), model.cv_results_["gamma"][number]
    intercept = parameters.pop("fit_intercept")
    H = RandomLayer(random_state=model.random_state, **parameters).fit_transform(X)
    weight = np.ones(len(X)) if weight is None else weight
    total = 0.0
    for v in np.unique(fold):
        train, out = fold != v, fold == v
        w = weight[train][:, None]
        mean_H, mean_T = ((w * A[train]).sum(axis=0) / w.sum() * intercept for A in (H, T))
        W = augmented_solution(np.sqrt(w) * (H[train] - mean_H), np.sqrt(w) * (T[train] - mean_T), gamma)
        total += (weight[out][:, None] * (T[out] - mean_T - (H[out] - mean_H) @ W) ** 2).sum()
    return total / (weight.sum() * T.shape[1])


@scikit_learn_checks([PinvRegressorCV(LAYERS[:2], ensemble=False), PinvClassifierCV(LAYERS[:2], ensemble=False)])
@some_advice
@pytest.mark.filterwarnings("default")
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("gamma", ["ocrep_cv", "kfold", 0.01, rules.KFold(n_folds=5, seed=3), rules.LOO()])
def test_held_out_errors_are_those_of_refitting_the_output_layer(gamma):
    model = PinvRegressorCV(LAYERS, gamma=gamma, random_state=0, ensemble=False).fit(X, Y)
    fold = fold_numbers(X, gamma.n_folds, gamma.seed) if isinstance(gamma, rules.KFold) else FOLD
    wanted = [refitted_error(model, number, X, Y[:, None], fold=fold) for number in range(len(LAYERS))]
    np.testing.assert_allclose(-model.cv_results_["mean_test_score"], wanted, rtol=1e-10)
    assert model.best_index_ == np.argmin(wanted)


def test_held_out_errors_of_several_targets_weights_and_labels():
    models = [
        (PinvRegressorCV(LAYERS, random_state=0, ensemble=False).fit(X, BOTH), BOTH, None),
        (PinvRegressorCV(LAYERS, random_state=0, ensemble=False).fit(X, Y, sample_weight=WEIGHT), Y[:, None], WEIGHT),
        (PinvClassifierCV(LAYERS, random_state=0, ensemble=False).fit(X, LABELS), codes(LABELS), None),
        (PinvClassifierCV(LAYERS, random_state=0, ensemble=False).fit(X, LABELS == 1), codes(LABELS == 1), None),
    ]
    for model, T, weight in models:
        wanted = [refitted_error(model, number, X, T, weight) for number in range(len(LAYERS))]
        np.testing.assert_allclose(model.cv_results_["squared_error"], wanted, rtol=1e-10)


@pytest.mark.parametrize("labels", [LABELS, np.where(LABELS == 1, "b", "a")])
def test_labels_are_judged_by_the_log_loss_of_the_best_temperature(labels):
    model = PinvClassifierCV(LAYERS, random_state=0, ensemble=False).fit(X, labels, sample_weight=WEIGHT)
    fold, T, columns = FOLD, codes(labels), np.unique(labels)
    for number, parameters in enumerate(LAYERS):
        options = {**parameters, "gamma": float(model.cv_results_["gamma"][number]), "random_state": 0}
        H = RandomLayer(**{k: v for k, v in options.items() if k not in ("fit_intercept", "gamma")}).fit_transform(X)
        outputs = np.empty((len(X), T.shape[1]))
        for v in range(3):
            part = TikhonovRegressor(options["gamma"], fit_intercept=options["fit_intercept"])
            part.fit(H[fold != v], T[fold != v], sample_weight=WEIGHT[fold != v])
            outputs[fold == v] = part.predict(H[fold == v])
        scores = outputs if T.shape[1] > 1 else np.hstack([-outputs, outputs])
        losses = [
            log_loss(labels, softmax(a * scores, axis=1), sample_weight=WEIGHT, labels=columns)
            for a in np.geomspace(0.5, 32.0, 13)  # those that are tried
        ]
        assert 0 < np.argmin(losses) < len(losses) - 1
        np.testing.assert_allclose(-model.cv_results_["mean_test_score"][number], min(losses), rtol=1e-8)


@some_advice
def test_a_rule_that_does_not_hold_rows_out_chooses_anew_on_each_part():
    model = PinvRegressorCV(LAYERS[1:2], gamma="gcv", random_state=0, ensemble=False).fit(X, Y)
    fold, H = FOLD, RandomLayer(40, direct_link=True, random_state=0).fit_transform(X)
    rule = rules.GCV(floor=np.sqrt(np.finfo(np.float64).eps))  # that of networks
    parts = [TikhonovRegressor(rule).fit(H[fold != v], Y[fold != v]) for v in range(3)]
    total = sum(((Y[fold == v] - part.predict(H[fold == v])) ** 2).sum() for v, part in enumerate(parts))
    np.testing.assert_allclose(-model.best_score_, total / len(Y), rtol=1e-10)


def test_the_winner_is_the_network_trained_alone():
    model = PinvRegressorCV(LAYERS, random_state=0, ensemble=False).fit(X, Y, sample_weight=WEIGHT)
    alone = PinvRegressor(**model.best_params_, gamma="ocrep_cv", random_state=0).fit(X, Y, sample_weight=WEIGHT)
    for other in (alone, model.best_estimator_):
        assert type(other) is PinvRegressor
        assert np.array_equal(model.predict(X), other.predict(X))
        assert np.array_equal(model.predict(X, return_std=True), other.predict(X, return_std=True))
        assert model.gamma_ == other.gamma_ == model.cv_results_["gamma"][model.best_index_]
    assert model.best_estimator_.get_params() == alone.get_params()
    assert np.array_equal(model.with_gamma("gcv").predict(X), alone.with_gamma("gcv").predict(X))
    assert np.array_equal(model.as_float32().predict(X), alone.as_float32().predict(X))
    assert np.array_equal(np.concatenate(list(model.predict_blocks([X[:100], X[100:]]))), alone.predict(X))


def test_the_winning_classifier_is_calibrated_as_if_trained_alone():
    model = PinvClassifierCV(LAYERS, random_state=0, ensemble=False).fit(X, LABELS)
    options = {**model.best_params_, "gamma": "ocrep_cv", "calibrate": "loo", "random_state": 0}
    alone = PinvClassifier(**options).fit(X, LABELS)
    for other in (alone, model.best_estimator_):
        assert np.array_equal(model.predict_proba(X), other.predict_proba(X))
        assert np.array_equal(model.decision_function(X), other.decision_function(X))


def test_without_calibration_the_winner_has_the_probabilities_that_it_has_alone():
    model = PinvClassifierCV(LAYERS, random_state=0, ensemble=False, calibrate=None).fit(X, LABELS)
    alone = PinvClassifier(**{**model.best_params_, "gamma": "ocrep_cv", "random_state": 0}).fit(X, LABELS)
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), rtol=1e-6)
    assert PinvClassifierCV.predict_proba.__doc__


def test_class_weights_reach_every_candidate():
    model = PinvClassifierCV(LAYERS[:2], class_weight="balanced", random_state=0, ensemble=False).fit(X, LABELS)
    weight = len(LABELS) / (3 * np.bincount(LABELS)[LABELS])
    same = PinvClassifierCV(LAYERS[:2], random_state=0, ensemble=False).fit(X, LABELS, sample_weight=weight)
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], same.cv_results_["mean_test_score"], rtol=1e-10)


def test_results_are_those_of_a_grid_search():
    model = PinvRegressorCV(LAYERS, random_state=0, ensemble=False).fit(X, Y)
    results = model.cv_results_
    assert results["params"] == LAYERS
    assert list(results["rank_test_score"]) == list(rankdata(-results["mean_test_score"], method="min"))
    assert results["rank_test_score"][model.best_index_] == 1
    assert model.best_score_ == results["mean_test_score"].max()
    assert model.best_params_ == LAYERS[model.best_index_]
    splits = np.array([results[f"split{v}_test_score"] for v in range(3)])
    np.testing.assert_allclose(results["std_test_score"], splits.std(axis=0))
    share = np.bincount(FOLD) / len(X)
    np.testing.assert_allclose(share @ splits, results["mean_test_score"], rtol=1e-12)
    assert list(results["param_n_hidden"]) == [5, 40, 150, 40]
    assert list(results["param_activation"].mask) == [True, True, False, True]
    assert (results["mean_fit_time"] > 0).all()
    assert len(pd.DataFrame(results)) == 4


def test_a_candidate_may_have_a_rule_and_a_seed_of_its_own():
    candidates = [
        {"n_hidden": 40, "gamma": "kfold"},
        {"n_hidden": 40, "gamma": 3.0},
        {"n_hidden": 40, "random_state": 7},
    ]
    model = PinvRegressorCV(candidates, random_state=0, ensemble=False).fit(X, Y)
    for number, own in enumerate(candidates):
        alone = PinvRegressor(**{"gamma": "ocrep_cv", "random_state": 0, **own}).fit(X, Y)
        assert model.cv_results_["gamma"][number] == alone.gamma_
    assert PinvRegressorCV(candidates[2:], ensemble=False).fit(X, Y).best_estimator_.random_state == 7


def test_without_a_seed_the_best_estimator_can_be_drawn_again():
    model = PinvRegressorCV(LAYERS[:2], ensemble=False).fit(X, Y)
    again = clone(model.best_estimator_).fit(X, Y)
    assert np.array_equal(again.predict(X), model.predict(X))
    seeded = [
        PinvRegressorCV(LAYERS[:2], random_state=np.random.RandomState(5), ensemble=False).fit(X, Y).predict(X)
        for _ in range(2)
    ]
    assert np.array_equal(*seeded)


def test_the_number_of_workers_changes_nothing(workers):
    found = []
    for number in (1, 2, 4):
        workers(number)
        found.append(PinvRegressorCV(LAYERS, random_state=0, ensemble=False).fit(X, Y))
    for other in found[1:]:
        np.testing.assert_allclose(other.cv_results_["mean_test_score"], found[0].cv_results_["mean_test_score"], 1e-12)
        assert other.best_index_ == found[0].best_index_


def test_of_equal_candidates_the_first_wins():
    model = PinvRegressorCV([LAYERS[1]] * 3, random_state=0, ensemble=False).fit(X, Y)
    assert model.best_index_ == 0
    assert list(model.cv_results_["rank_test_score"]) == [1, 1, 1]


def test_equal_targets_are_no_mistake():
    model = PinvRegressorCV(LAYERS[1:], random_state=0, ensemble=False).fit(X, np.full(len(X), 3.0))
    np.testing.assert_allclose(model.predict(X), 3.0)


def test_one_failing_candidate_is_named_and_the_others_go_on():
    candidates = [{"n_hidden": 9, "activation": bad}, *LAYERS[:2]]
    with pytest.warns(UserWarning, match="candidate {'n_hidden': 9, .*left out") as warned:
        model = PinvRegressorCV(candidates, random_state=0, ensemble=False).fit(X, Y)
    assert len(warned) == 1
    assert np.isnan(model.cv_results_["mean_test_score"][0])
    assert list(model.cv_results_["rank_test_score"]) == [3, 2, 1]
    assert model.best_params_ == LAYERS[1]


def test_if_all_fail_the_first_failure_is_told():
    with pytest.raises(ValueError, match="NaN or infinity"):
        PinvRegressorCV([{"n_hidden": 9, "activation": bad}], ensemble=False).fit(X, Y)
    candidates = [{"n_hidden": 9, "activation": bad}, {"n_hidden": 9, "activation": np.sum}]
    with pytest.raises(ValueError, match=r"All 2 candidates failed, the first, {'n_hidden': 9.*NaN or infinity"):
        PinvRegressorCV(candidates, ensemble=False).fit(X, Y)


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([], r"candidates=\[\] must be 'quick', 'default', 'thorough', or a list of at least one dict"),
        ({"n_hidden": 3}, "or a list of at least one dict"),
        (7, "or a list of at least one dict"),
        ("fast", "Unknown candidates 'fast'"),
        ("defalt", "Did you mean 'default'?"),
        ([{"n_hidden": 3}, 4], r"candidates\[1\]=4 must be a dict"),
        ([{"n_hidden": 3}, {"n_hiden": 3}], r"candidates\[1\] 'n_hiden'. Did you mean 'n_hidden'\?"),
        ([{"solver": "qr"}], r"candidates\[0\] 'solver'"),
        ([{"n_hidden": 0}], r"candidates\[0\]: n_hidden=0 must be a whole number ≥ 1"),
    ],
)
def test_what_cannot_be_a_candidate_is_refused(candidates, message):
    with pytest.raises(ValueError, match=message):
        PinvRegressorCV(candidates, ensemble=False).fit(X, Y)


def test_too_few_distinct_rows_are_refused():
    for estimator, y in (
        (PinvRegressorCV(LAYERS, ensemble=False), np.arange(6.0)),
        (PinvClassifierCV(LAYERS, ensemble=False), np.arange(6) % 2),
    ):
        with pytest.raises(ValueError, match="too few or too alike"):
            estimator.fit(np.ones((6, 2)), y)
    for candidates in ("quick", "default"):
        with pytest.raises(
            ValueError, match=r"^Candidates are compared on rows held out, and 6 sample\(s\) are too few"
        ):
            PinvRegressorCV(candidates, ensemble=False).fit(np.ones((6, 2)), np.arange(6.0))


@some_advice
@pytest.mark.parametrize(("activation", "weight_init"), [("sigmoid", "uniform"), ("gaussian", "rows")])
def test_one_unit_and_an_outlier_give_a_model(activation, weight_init):
    # The unit and the input behind the direct link differ by little more than rounding.
    candidate = {"n_hidden": 1, "activation": activation, "weight_init": weight_init, "direct_link": True}
    for seed in range(10):
        for n in (20, 100):
            for outlier in (1e4, 1e6, 1e8):
                inputs = np.random.default_rng(seed).normal(size=(n, 1))
                y = np.random.default_rng(seed + 100).normal(size=n) + inputs[:, 0]
                inputs[0] = outlier
                model = PinvRegressorCV([candidate], random_state=seed, ensemble=False).fit(inputs, y)
                assert np.isfinite(model.predict(inputs)).all()


@some_advice
@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
@pytest.mark.parametrize("rule", [rules.KFold(split="groups"), rules.OCRePCV(split="groups")])
def test_constant_inputs_with_groups_predict_the_mean(rule, value):
    groups, inputs = np.arange(len(Y)) % 7, np.full_like(X, value)
    layers = [{"n_hidden": 20, "weight_scale": scale} for scale in (0.3, 1.0, 3.0)]
    model = PinvRegressorCV(layers, gamma=rule, random_state=0, ensemble=False).fit(inputs, Y, groups=groups)
    assert model.gamma_ == PinvRegressor(20, gamma=rule).fit(inputs, Y, groups=groups).gamma_ == 0.0
    np.testing.assert_allclose(model.predict(inputs), Y.mean(), rtol=1e-12)
    classifier = PinvClassifierCV(layers, gamma=rule, random_state=0, calibrate=None, ensemble=False).fit(
        inputs, LABELS, groups=groups
    )
    assert set(classifier.predict(inputs)) == {np.bincount(LABELS).argmax()}


def test_a_failed_fit_leaves_the_estimator_as_it_was():
    model = PinvRegressorCV(LAYERS[:2], random_state=0, ensemble=False).fit(X, Y)
    before = copy.copy(model.__dict__)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full_like(X, np.nan), Y)
    assert model.__dict__ == before


def test_rows_that_come_in_parts_are_for_the_best_estimator():
    model = PinvRegressorCV(LAYERS[:1], random_state=0, ensemble=False)
    with pytest.raises(AttributeError, match=r"best_estimator_\.partial_fit"):
        _ = model.partial_fit
    with pytest.raises(NotFittedError):
        _ = model.best_estimator_
    first = model.fit(X[:120], Y[:120]).best_estimator_
    assert first.partial_fit(X[120:], Y[120:]).factor_.counts.n_rows == len(X)
    assert model.factor_.counts.n_rows == 120


def test_verbose_prints_a_line_per_candidate(capsys):
    PinvRegressorCV(LAYERS[:2], verbose=True, random_state=0, ensemble=False).fit(X, Y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "candidate 2 of 2" in lines[1]
    assert "held-out error" in lines[1]
    PinvRegressorCV(LAYERS[:2], random_state=0, ensemble=False).fit(X, Y)
    assert not capsys.readouterr().err


def test_a_terminal_sees_how_far_a_long_search_has_come(monkeypatch, capsys):
    def slow(Z):
        time.sleep(1.1)
        return np.tanh(Z)

    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    PinvRegressorCV([LAYERS[0], {**LAYERS[1], "activation": slow}], random_state=0, ensemble=False).fit(X, Y)
    shown = capsys.readouterr().err
    assert "candidate 2 of 2" in shown
    assert shown.endswith("\r\x1b[K")


def test_files_pickles_and_copies_keep_the_choice(tmp_path):
    model = PinvClassifierCV(LAYERS[:2], random_state=0, ensemble=False).fit(X, LABELS)
    save_model(model, tmp_path / "m.ocrep")
    for other in (load_model(tmp_path / "m.ocrep"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert np.array_equal(other.predict_proba(X), model.predict_proba(X))
        assert other.best_params_ == model.best_params_
        assert np.array_equal(other.best_estimator_.predict(X), model.predict(X))
        assert np.array_equal(other.cv_results_["param_n_hidden"], model.cv_results_["param_n_hidden"])


def test_graphs_displays_and_reports_take_a_search():
    import onnxruntime

    model = PinvRegressorCV(LAYERS[:2], random_state=0, ensemble=False).fit(X, Y)
    session = onnxruntime.InferenceSession(to_onnx(model, dtype="float64").SerializeToString())
    (found,) = session.run(None, {session.get_inputs()[0].name: X})
    np.testing.assert_allclose(found[:, 0], model.predict(X), rtol=1e-9)
    assert len(SpectrumDisplay.from_estimator(model).singular_values) == len(model.singular_values_)
    assert report.diagnose(model, X, Y).n_hidden == model.n_hidden_
    sizes = HiddenSizeDisplay.from_estimator(model, X, Y, sizes=[5, 40])
    assert list(sizes.sizes) == [5, 40]


# --- many rows -------------------------------------------------------------------------------------------------------


def many(n_rows):
    X, y = smooth_problem(n_rows, 4, noise=0.3, seed=3)
    return X, y


def test_beyond_selection_rows_a_sample_chooses_and_all_rows_train():
    X, y = many(900)
    model = PinvRegressorCV(LAYERS, selection_rows=300, random_state=0, ensemble=False).fit(X, y)
    chosen = PinvRegressorCV(LAYERS, random_state=0, ensemble=False).fit(*sample_of(X, y, 300))
    assert np.array_equal(model.cv_results_["mean_test_score"], chosen.cv_results_["mean_test_score"])
    assert model.best_index_ == chosen.best_index_
    assert list(model.cv_results_["n_rows"]) == [300] * 4
    alone = PinvRegressor(**model.best_params_, gamma="ocrep_cv", random_state=0).fit(X, y)
    assert np.array_equal(model.predict(X), alone.predict(X))
    assert model.factor_.counts.n_rows == 900


def test_the_sample_is_the_same_wherever_the_rows_are(tmp_path):
    X, y = many(900)
    pd.DataFrame(X, columns=list("abcd")).assign(y=y).to_parquet(tmp_path / "rows.parquet")
    kinds = [
        (X[::-1].copy(), y[::-1].copy()),
        (scan(tmp_path / "rows.parquet", target="y"),),
        (scan([(X[:400], y[:400]), (X[400:], y[400:])]),),
        (da.from_array(X, chunks=(250, 4)), da.from_array(y, chunks=250)),
    ]
    memory = PinvRegressorCV(LAYERS, selection_rows=300, random_state=0, ensemble=False).fit(X, y)
    for rows in kinds:
        model = PinvRegressorCV(LAYERS, selection_rows=300, random_state=0, ensemble=False).fit(*rows)
        scores = model.cv_results_["mean_test_score"]
        np.testing.assert_allclose(scores, memory.cv_results_["mean_test_score"], rtol=1e-9)
        assert model.best_index_ == memory.best_index_
        inputs = pd.DataFrame(X, columns=list("abcd")) if hasattr(model, "feature_names_in_") else X
        np.testing.assert_allclose(model.predict(inputs), memory.predict(X), atol=1e-6)


def test_classifiers_on_files_and_dask_have_probabilities(tmp_path):
    X, y = many(600)
    labels = np.where(y > 0.3, "high", "low")
    memory = PinvClassifierCV(LAYERS, random_state=0, ensemble=False).fit(X, labels)
    kinds = [
        (scan([(X[:400], labels[:400]), (X[400:], labels[400:])]),),
        (da.from_array(X, chunks=(250, 4)), da.from_array(labels, chunks=250)),
    ]
    for rows in kinds:
        model = PinvClassifierCV(LAYERS, random_state=0, ensemble=False).fit(*rows)
        assert model.best_index_ == memory.best_index_
        np.testing.assert_allclose(model.predict_proba(X), memory.predict_proba(X), atol=1e-5)


def test_a_sample_of_labels_calibrates():
    X, y = many(900)
    labels = np.digitize(y, [0.0, 0.6])
    model = PinvClassifierCV(LAYERS, selection_rows=500, random_state=0, ensemble=False).fit(X, labels)
    all_rows = PinvClassifier(**model.best_params_, gamma="ocrep_cv", calibrate="loo", random_state=0).fit(X, labels)
    assert np.array_equal(model.output_coef_, all_rows.output_coef_)
    assert 0 < np.abs(model.predict_proba(X) - all_rows.predict_proba(X)).max() < 0.1
    assert model.score(X, labels) > 0.7


def test_a_first_round_leaves_the_best_to_the_second(short_rounds):
    X, y = many(900)
    near = [{"n_hidden": 60, "weight_init": "pairs", "direct_link": True, "fit_intercept": True}, LAYERS[1]]
    bad = [{"n_hidden": 1}, {"n_hidden": 2}, {"n_hidden": 3}]
    model = PinvRegressorCV([*bad, *near], random_state=0, ensemble=False).fit(X, y)
    results = model.cv_results_
    first = PinvRegressorCV([*bad, *near], random_state=0, ensemble=False)
    wanted = first.fit(*sample_of(X, y, 100)).cv_results_["mean_test_score"]
    left = results["n_rows"] == 900
    assert 1 <= left.sum() <= 2
    assert results["n_rows"].tolist().count(100) == 5 - left.sum()
    np.testing.assert_allclose(results["mean_test_score"][~left], wanted[~left], rtol=1e-12)
    assert sorted(results["rank_test_score"][left]) == list(range(1, 1 + left.sum()))
    again = PinvRegressorCV([*bad, *near], random_state=0, selection_rows=900, ensemble=False)
    alone = PinvRegressor(**model.best_params_, gamma="ocrep_cv", random_state=0).fit(X, y)
    assert np.array_equal(model.predict(X), alone.predict(X))
    assert np.array_equal(again.fit(X, y).predict(X), model.predict(X))


def test_a_winner_of_the_first_round_goes_straight_to_all_rows(short_rounds):
    X, y = many(900)
    model = PinvRegressorCV([{"n_hidden": 1}, LAYERS[1]], selection_rows=600, random_state=0, ensemble=False).fit(X, y)
    assert list(model.cv_results_["n_rows"]) == [100, 100]
    assert model.best_index_ == 1
    assert model.factor_.counts.n_rows == 900


def test_a_class_too_rare_for_a_sample_is_compared_on_all_rows(short_rounds):
    X, _ = many(900)
    labels = np.zeros(900, dtype=int)
    labels[:3] = 1
    model = PinvClassifierCV(LAYERS[:2], selection_rows=110, calibrate=None, random_state=0, ensemble=False).fit(
        X, labels
    )
    assert set(model.classes_) == {0, 1}


def test_folds_by_group_are_compared_on_a_sample_too():
    X, y = many(300)
    groups = np.arange(300) // 10
    rule = rules.KFold(split="groups")
    model = PinvRegressorCV(LAYERS[:2], gamma=rule, selection_rows=100, random_state=0, ensemble=False).fit(
        X, y, groups=groups
    )
    assert list(model.cv_results_["n_rows"]) == [100, 100]
    with pytest.raises(ValueError, match="groups"):
        PinvRegressorCV(LAYERS[:2], gamma=rule, random_state=0, ensemble=False).fit(X, y)


def test_rows_that_can_be_read_only_once_are_refused():
    X, y = many(300)
    with pytest.raises(ValueError, match="read several times, but these rows can be read only once"):
        PinvRegressorCV(LAYERS[:2], ensemble=False).fit(scan(block for block in [(X, y)]))


def test_arrays_stay_on_their_device():
    X, y = many(300)
    model = PinvRegressorCV(LAYERS, random_state=0, ensemble=False).fit(on_device(X), on_device(y))
    host = PinvRegressorCV(LAYERS, random_state=0, ensemble=False).fit(X, y)
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], host.cv_results_["mean_test_score"], rtol=1e-9)
    np.testing.assert_allclose(to_numpy(model.predict(on_device(X))), host.predict(X), rtol=1e-6)
    labels = np.digitize(y, [0.0, 0.6])
    sampled = PinvClassifierCV(LAYERS, selection_rows=200, random_state=0, ensemble=False).fit(
        on_device(X), on_device(labels)
    )
    host = PinvClassifierCV(LAYERS, selection_rows=200, random_state=0, ensemble=False).fit(X, labels)
    assert sampled.best_index_ == host.best_index_
    assert to_numpy(sampled.predict_proba(on_device(X))).shape == (300, 3)


def test_single_precision_and_sparse_rows():
    X, y = many(700)
    single, search = X.astype(np.float32), PinvRegressorCV(LAYERS, selection_rows=300, random_state=0, ensemble=False)
    wanted = search.fit(single.astype(float), y).predict(single.astype(float))
    for rows in (single, sparse.csr_array(single)):
        predicted = search.fit(rows, y).predict(rows)
        np.testing.assert_allclose(predicted, wanted, atol=1e-3)
        assert predicted.dtype == np.float32


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="only Linux says how much memory is left")
def test_a_candidate_larger_than_memory_is_refused_before_work():
    large = [*LAYERS[:2], {"n_hidden": 10_000_000}]
    with pytest.raises(
        ValueError, match=r"'n_hidden': 10000000} would take about \S+ GB of memory, and \S+ GB are avail"
    ):
        PinvRegressorCV(large, random_state=0, ensemble=False).fit(X, Y)


def test_selection_rows_must_be_a_size():
    with pytest.raises(ValueError, match="selection_rows=0 must be a whole number ≥ 1"):
        PinvRegressorCV(LAYERS, selection_rows=0, ensemble=False).fit(X, Y)


@pytest.mark.parametrize("name", ["quick", "default", "thorough"])
@pytest.mark.parametrize(("kind", "y"), [(PinvRegressorCV, Y), (PinvClassifierCV, LABELS)])
def test_the_named_lists_hold_what_can_be_trained(kind, y, name):
    model = kind(name, random_state=0).fit(X[:60], y[:60])
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()
    assert len({str(sorted(own.items())) for own in model.cv_results_["params"]}) == len(model.cv_results_["params"])
