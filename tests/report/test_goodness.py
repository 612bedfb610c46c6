"""Is it good: scores and pictures against scikit-learn's own, and the page that opens with them."""

import re
from dataclasses import replace

import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn import metrics
from sklearn.model_selection import train_test_split
from support.problems import smooth_problem

from ocrep import PinvClassifier, PinvRegressor, TikhonovClassifier, TikhonovRegressor
from ocrep.analysis.assessment import Assessment
from ocrep.report import diagnose
from ocrep.report.figures import goodness_figures
from ocrep.report.goodness import judged, roc_curves
from ocrep.report.page import confusion_table, render, score_table

RULES = ["ocrep", "kfold"]


def parts(X, y):
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    return X, y, X_test, y_test


def labelled(classes, n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 6))
    scores = X[:, : len(classes)] + 0.7 * rng.standard_normal((n_rows, len(classes)))
    return parts(X, np.array(classes)[scores.argmax(axis=1)])


def test_a_regression_is_scored_as_its_own_fit_is():
    X, y, X_test, y_test = parts(*smooth_problem(300, 4))
    estimator = PinvRegressor(50, random_state=0)
    found = diagnose(estimator, X, y, X_test, y_test, rules=RULES).goodness
    predicted = estimator.fit(X, y).predict(X_test)
    own = found.models["network"]
    assert own["r2"] == pytest.approx(metrics.r2_score(y_test, predicted))
    assert own["rmse"] == pytest.approx(metrics.root_mean_squared_error(y_test, predicted))
    assert found.models["baseline (mean)"]["rmse"] == pytest.approx(np.sqrt(np.mean((y_test - y.mean()) ** 2)))
    assert set(found.models) == {"network", "baseline (mean)", "linear model", "gradient boosting"}
    np.testing.assert_allclose(found.true, y_test)
    np.testing.assert_allclose(found.predicted, predicted)
    assert found.finding.code == "good"
    assert [figure["name"] for figure in goodness_figures(found)] == ["predictions", "residuals"]
    assert score_table(found)["rows"][0][1][0][0] == f"{own['r2']:.3f}"
    assert confusion_table(found) is None


@pytest.mark.parametrize("calibrate", [None, "loo"])
def test_two_classes_have_one_roc_curve_and_a_confusion(calibrate):
    X, y, X_test, y_test = labelled(["no", "yes"])
    estimator = PinvClassifier(20, random_state=0, calibrate=calibrate)
    found = diagnose(estimator, X, y, X_test, y_test, rules=RULES).goodness
    model = estimator.fit(X, y)
    area = metrics.roc_auc_score(y_test == "yes", model.decision_function(X_test))
    assert [(curve["label"], curve["area"]) for curve in found.roc] == [("yes", pytest.approx(area))]
    assert found.models["network"]["roc_auc"] == pytest.approx(area)
    under = np.trapezoid(found.roc[0]["true_positive"], found.roc[0]["false_positive"])
    assert under == pytest.approx(area, abs=1e-9)
    assert found.confusion == metrics.confusion_matrix(y_test, model.predict(X_test)).tolist()
    assert found.models["network"]["log_loss"] < 1.0
    texts, shares, right = zip(*confusion_table(found)["rows"][1][1], strict=True)
    assert texts == tuple(str(count) for count in found.confusion[1])
    assert sum(shares) == pytest.approx(1.0)
    assert right == (False, True)


def test_of_many_classes_the_most_frequent_are_drawn():
    names = [f"class {k}" for k in range(8)]
    rng = np.random.default_rng(1)
    y = np.array(names)[np.minimum(rng.geometric(0.35, 600) - 1, 7)]
    X = np.eye(8)[[names.index(label) for label in y]] + 0.8 * rng.standard_normal((600, 8))
    rows = parts(X, y)
    found = diagnose(TikhonovClassifier(), *rows, rules=RULES).goodness
    frequent = sorted(names, key=lambda name: (-np.sum(rows[3] == name), name))
    assert [curve["label"] for curve in found.roc] == frequent[:6]
    areas = [curve["area"] for curve in roc_curves(TikhonovClassifier().fit(*rows[:2]), *rows[2:])]
    assert len(areas) == 8
    assert found.models["network"]["roc_auc"] == pytest.approx(np.mean(areas))
    assert len({look for _, look, _ in goodness_figures(found)[0]["legend"]}) == 7


def test_of_very_many_classes_the_most_confused_pairs_are_listed():
    names = [f"c{k:02d}" for k in range(20)]
    confusion = np.diag(np.full(20, 9))
    confusion[3, 7], confusion[5, 1], confusion[0, 2] = 4, 8, 4
    X, y, X_test, y_test = labelled(["a", "b", "c"])
    found = diagnose(TikhonovClassifier(), X, y, X_test, y_test, rules=RULES).goodness
    table = confusion_table(replace(found, classes=names, confusion=confusion.tolist()))
    shown = [(label, *(text for text, _, _ in cells)) for label, cells in table["rows"]]
    assert shown == [("c05", "c01", "8"), ("c00", "c02", "4"), ("c03", "c07", "4")]


def test_frames_and_sparse_rows_are_scored_as_arrays_are():
    X, y, X_test, y_test = parts(*smooth_problem(120, 4))
    names = ["age", "height", "weight", "dose"]
    plain, framed, thin = (
        diagnose(TikhonovRegressor(), kind(X), y, kind(X_test), pandas.Series(y_test), rules=RULES)
        for kind in (np.asarray, lambda rows: pandas.DataFrame(rows, columns=names), sparse.coo_array)
    )
    assert framed.table["inputs"] == names
    assert plain.table["inputs"] == ["1", "2", "3", "4"]
    for found in (framed, thin):
        for model, scores in plain.goodness.models.items():
            assert found.goodness.models[model] == pytest.approx(scores)


def test_large_test_parts_are_drawn_in_part_and_scored_whole():
    X, y = smooth_problem(1500, 4)
    found = diagnose(TikhonovRegressor(), X[:200], y[:200], X, y, rules=RULES).goodness
    assert found.n_test == 1500
    assert len(found.true) == len(found.predicted) == 1000
    assert set(found.true) <= set(y.tolist())


def test_without_test_rows_or_with_several_targets_the_page_says_why_there_are_no_scores():
    X, y = smooth_problem(80, 4)
    alone = diagnose(TikhonovRegressor(), X, y, rules=RULES)
    assert alone.goodness is None
    assert "No rows were held out" in render(alone)
    several = diagnose(TikhonovRegressor(), X, np.c_[y, -y], X, np.c_[y, -y], rules=RULES)
    assert several.goodness is None
    assert "for one target" in render(several)


def assessed(network, baseline, linear, boosting, *, labels=False, error=0.1, auc=0.8):
    """Models with these errors, whose losses differ from the network's with a standard error."""
    key = "log_loss" if labels else "rmse"
    more = {"balanced_accuracy": 0.7, "roc_auc": auc, "error": 0.3} if labels else {"r2": 0.5, "mae": 0.1}
    name = "baseline (majority class)" if labels else "baseline (mean)"
    values = {"network": network, name: baseline, "linear model": linear, "gradient boosting": boosting}
    models = {model: {**more, key: value} for model, value in values.items()}
    losses = {model: value if labels else value**2 for model, value in values.items()}
    margins = {model: (loss - losses["network"], error) for model, loss in losses.items() if model != "network"}
    return Assessment("classification" if labels else "regression", 1000, models, None, None, (), margins)


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (assessed(1.0, 2.0, 1.5, 1.4), "good"),
        (assessed(1.0, 2.0, 1.5, 0.97), "good"),  # within a standard error
        (assessed(1.0, 2.0, 1.03, 1.4), "linear"),
        (assessed(1.0, 2.0, 1.5, 0.9), "beaten"),
        (assessed(1.0, 2.0, 0.8, 0.9), "beaten"),
        (assessed(1.0, 1.02, 1.05, 1.05, error=0.01), "weak"),
        (assessed(1.0, 1.02, 1.05, 1.05), "no_better"),  # not beyond chance
        (assessed(2.0, 2.0, 1.5, 1.4), "no_better"),
        (assessed(0.3, 0.6, 0.4, 0.29, labels=True, error=0.02), "good"),
        (assessed(0.3, 0.6, 0.4, 0.25, labels=True, error=0.02), "beaten"),
        (assessed(0.1, 0.1, 0.1, 0.1, labels=True), "ranks"),
        (assessed(0.1, 0.1, 0.1, 0.1, labels=True, auc=0.55), "no_better"),
    ],
)
def test_the_answer_follows_from_the_errors(found, code):
    finding = judged(found)
    assert finding.code == code
    if code == "beaten":  # the better of the two is named
        linear, boosting = (found.models[name] for name in ("linear model", "gradient boosting"))
        measure = "log_loss" if found.task == "classification" else "rmse"
        better = "a linear model" if linear[measure] < boosting[measure] else "gradient boosting"
        assert better in finding.answer


def test_the_advice_is_a_line_of_python_or_the_command():
    X, y, X_test, y_test = parts(*smooth_problem(120, 4))
    estimator = PinvRegressor(20, activation="tanh", random_state=0)
    found = diagnose(estimator, X, y, X_test, y_test, rules=RULES)
    line = eval(found.advised)
    assert line.get_params() == {**estimator.get_params(), "gamma": found.verdict.recommended}
    command = "ocrep fit rows.csv --target y --out model.skops"
    table = {"inputs": ["a", "b", "c", "d"], "left_out": {"id": "an id"}, "n_dropped": 3, "command": command}
    of_program = diagnose(estimator, X, y, X_test, y_test, rules=RULES, table=table)
    assert of_program.advised == f"{command} --gamma {of_program.verdict.recommended}"
    page = render(of_program)
    assert "Not used: id (an id)." in re.sub(r"\s+", " ", page)
    assert "3 rows without a target were dropped." in page
    assert "Inputs: a, b, c, d." in page
    own = diagnose(PinvRegressor(20, gamma=0.25, random_state=0), X, y, rules=[0.25])
    assert eval(own.advised).gamma == 0.25
    none = diagnose(TikhonovRegressor(0.5, fit_intercept=False), X[:1], y[:1], rules=["kfold"])
    assert none.verdict.recommended is None
    assert none.advised == ""


def test_sentences_of_advice_speak_the_readers_language():
    X, _, X_test, _ = parts(*smooth_problem(400, 4))
    rng = np.random.default_rng(0)
    rare = [np.where(rows[:, 0] + 3 * rng.standard_normal(len(rows)) > 5.5, "rare", "usual") for rows in (X, X_test)]
    estimator = PinvClassifier(10, random_state=0)
    python = render(diagnose(estimator, X, rare[0], X_test, rare[1], rules=RULES))
    assert "try class_weight=&#34;balanced&#34;." in python
    table = {"command": "ocrep fit rows.csv"}
    command = render(diagnose(estimator, X, rare[0], X_test, rare[1], rules=RULES, table=table))
    assert "try --class-weight balanced<" in command


def test_an_unknown_key_of_the_table_is_refused():
    X, y = smooth_problem(30, 4)
    with pytest.raises(ValueError, match="'columns', which has no meaning here: use inputs"):
        diagnose(TikhonovRegressor(), X, y, rules=RULES, table={"columns": ["a"]})
