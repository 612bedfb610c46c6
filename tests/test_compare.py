"""The table of rules: one line each, the same as separate fits, and reasons where a rule does not apply."""

import numpy as np
import pytest
from problems import smooth_problem
from sklearn.model_selection import train_test_split

from ocrep import PinvClassifier, PinvRegressor, TikhonovRegressor, compare_rules, rules
from ocrep.datasets import load


def test_each_line_equals_a_fit():
    X, y = smooth_problem(150, 5)
    train, test = (X[:100], y[:100]), (X[100:], y[100:])
    table = compare_rules(*train, n_hidden=20, test=test, random_state=0).set_index("rule")
    assert set(table.index) == set(rules.names())
    for name in ("ocrep", "gcv", "kfold", "loo", "ocrep_cv", "none", "kibria"):
        model = PinvRegressor(20, gamma=name, random_state=0).fit(*train)
        line = table.loc[name]
        assert line.gamma == pytest.approx(model.gamma_, rel=1e-4)
        assert line.condition == pytest.approx(model.regularized_condition_number_, rel=1e-4)
        assert line.train_error == pytest.approx(np.sqrt(np.mean((model.predict(train[0]) - train[1]) ** 2)), rel=1e-4)
        assert line.test_error == pytest.approx(np.sqrt(np.mean((model.predict(test[0]) - test[1]) ** 2)), rel=1e-4)
    assert table["cv_error"].idxmin() == "kfold"


def test_labels_are_counted():
    data = load("wine")
    X, X_test, y, y_test = train_test_split(data.data, data.target, random_state=0)
    labels = data.target_names[y]
    chosen = ["ocrep", rules.KFold(), 1e-3, "hoerl_kennard"]
    table = compare_rules(
        X, labels, n_hidden=30, rules=chosen, test=(X_test, data.target_names[y_test]), random_state=0
    )
    model = PinvClassifier(30, random_state=0).fit(X, labels)
    assert table["test_error"][0] == pytest.approx(1 - model.score(X_test, data.target_names[y_test]))
    assert table["train_error"][0] == pytest.approx(1 - model.score(X, labels))
    assert table["cv_error"].between(0, 0.2)[:3].all()
    assert list(table["rule"][:1]) == ["ocrep"]
    assert np.isnan(table["gamma"][3])
    assert "one target" in table["reason"][3]


def test_rules_that_do_not_apply_are_reported_and_the_others_go_on():
    X, y = smooth_problem(20, 5)
    table = compare_rules(X, y, n_hidden=40, random_state=0).set_index("rule")
    assert "more than" in table.loc["kibria", "reason"]
    assert "noise" in table.loc["discrepancy", "reason"]
    for name in ("ocrep", "gcv", "kfold", "loo", "evidence"):
        assert table.loc[name, "gamma"] > 0


def test_own_features_weights_and_too_few_rows():
    X, y = smooth_problem(60, 5)
    w = np.random.default_rng(0).uniform(0, 2, 60)
    table = compare_rules(X, y, n_hidden=None, rules=["gcv"], sample_weight=w, fit_intercept=True)
    model = TikhonovRegressor().fit(X, y, sample_weight=w)
    assert table["gamma"][0] == pytest.approx(model.gamma_, rel=1e-4)
    predicted = model.predict(X)
    assert table["train_error"][0] == pytest.approx(np.sqrt(np.average((predicted - y) ** 2, weights=w)), rel=1e-6)
    single = compare_rules(X[:1], y[:1], n_hidden=3, rules=["ocrep", "kfold"])
    assert np.isnan(single["cv_error"][0])
    assert "two folds" in single["reason"][1]


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="Did you mean 'kibria'"):
        compare_rules(*smooth_problem(30, 5), rules=["kibira"])


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_the_task_can_be_set(task):
    X, y = smooth_problem(60, 5)
    table = compare_rules(X, np.round(y) if task == "classification" else y, rules=["ocrep"], task=task, n_hidden=10)
    assert (table["train_error"][0] <= 1) is not None
    assert np.isfinite(table["cv_error"][0])
