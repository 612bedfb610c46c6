"""The table of rules: one line each, the same as separate fits, and reasons where a rule does not apply."""

import numpy as np
import pandas
import pytest
from sklearn.model_selection import train_test_split
from support.problems import smooth_problem

from ocrep import PinvClassifier, PinvRegressor, TikhonovRegressor, compare_rules, rules
from ocrep.datasets import load


def test_each_line_equals_a_fit():
    X, y = smooth_problem(150, 5)
    train, test = (X[:100], y[:100]), (X[100:], y[100:])
    table = compare_rules(*train, n_hidden=20, test=test, random_state=0, details=True)
    assert set(table.index) == set(rules.names())
    for name in ("ocrep", "gcv", "kfold", "loo", "ocrep_cv", "none", "kibria"):
        model = PinvRegressor(20, gamma=name, random_state=0).fit(*train)
        line = table.loc[name]
        assert line.gamma == pytest.approx(model.gamma_, rel=1e-4)
        assert line.condition == pytest.approx(model.regularized_condition_number_, rel=1e-4)
        assert line.train_error == pytest.approx(np.sqrt(np.mean((model.predict(train[0]) - train[1]) ** 2)), rel=1e-4)
        assert line.test_error == pytest.approx(np.sqrt(np.mean((model.predict(test[0]) - test[1]) ** 2)), rel=1e-4)
    assert table.index[0] == "kfold"
    assert table["cv_error"].dropna().is_monotonic_increasing


def test_labels_are_counted():
    data = load("wine")
    X, X_test, y, y_test = train_test_split(data.data, data.target, random_state=0)
    labels = data.target_names[y]
    chosen = ["ocrep", rules.KFold(), 1e-3, "hoerl_kennard"]
    table = compare_rules(
        X, labels, n_hidden=30, rules=chosen, test=(X_test, data.target_names[y_test]), random_state=0, details=True
    )
    model = PinvClassifier(30, random_state=0).fit(X, labels)
    assert table["test_error"].iloc[0] == pytest.approx(1 - model.score(X_test, data.target_names[y_test]))
    assert table["train_error"].iloc[0] == pytest.approx(1 - model.score(X, labels))
    assert table["cv_error"].between(0, 0.2).iloc[:3].all()
    assert table.index[0] == "ocrep"
    assert np.isnan(table["gamma"].iloc[3])
    assert "one target" in table["reason"].iloc[3]


def test_rules_that_do_not_apply_are_reported_and_the_others_go_on():
    X, y = smooth_problem(20, 5)
    table = compare_rules(X, y, n_hidden=40, random_state=0, details=True)
    assert "test_error" not in table
    assert "more than" in table.loc["kibria", "reason"]
    assert "noise" in table.loc["discrepancy", "reason"]
    for name in ("ocrep", "gcv", "kfold", "loo", "evidence"):
        assert table.loc[name, "gamma"] > 0


def test_own_features_weights_and_too_few_rows():
    X, y = smooth_problem(60, 5)
    w = np.random.default_rng(0).uniform(0, 2, 60)
    table = compare_rules(X, y, n_hidden=None, rules=["gcv"], sample_weight=w, fit_intercept=True, details=True)
    model = TikhonovRegressor("gcv").fit(X, y, sample_weight=w)
    assert table["gamma"].iloc[0] == pytest.approx(model.gamma_, rel=1e-4)
    predicted = model.predict(X)
    assert table["train_error"].iloc[0] == pytest.approx(np.sqrt(np.average((predicted - y) ** 2, weights=w)), rel=1e-6)
    single = compare_rules(X[:1], y[:1], n_hidden=3, rules=["ocrep", "kfold"], details=True)
    assert np.isnan(single["cv_error"].iloc[0])
    assert "two folds" in single["reason"].iloc[1]


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="Did you mean 'kibria'"):
        compare_rules(*smooth_problem(30, 5), rules=["kibira"])


def test_the_task_can_be_set():
    X, y = smooth_problem(60, 5)
    counts = np.round(3 * y).astype(int)
    with pytest.raises(ValueError, match="say task="):
        compare_rules(X, np.arange(60), n_hidden=10)
    as_labels = compare_rules(X, counts, rules="ocrep", n_hidden=10, random_state=0, details=True)
    as_numbers = compare_rules(X, counts, rules="ocrep", task="regression", n_hidden=10, random_state=0, details=True)
    assert as_labels["train_error"].iloc[0] == pytest.approx(
        1 - PinvClassifier(10, gamma="ocrep", random_state=0).fit(X, counts).score(X, counts)
    )
    predicted = PinvRegressor(10, gamma="ocrep", random_state=0).fit(X, counts).predict(X)
    assert as_numbers["train_error"].iloc[0] == pytest.approx(np.sqrt(np.mean((predicted - counts) ** 2)))


def test_several_targets_share_one_mean_error():
    X, y = smooth_problem(60, 5)
    T = np.column_stack([y, 3 * y])
    table = compare_rules(X, T, rules=["ocrep"], n_hidden=10, random_state=0, details=True)
    predicted = PinvRegressor(10, gamma="ocrep", random_state=0).fit(X, T).predict(X)
    assert table["train_error"].iloc[0] == pytest.approx(np.sqrt(np.mean((predicted - T) ** 2)))


def test_class_weights_do_not_weigh_the_errors():
    X, y = load("diabetes", return_X_y=True)
    train, test = (X[::2], y[::2]), (X[1::2], y[1::2])
    table = compare_rules(
        *train, rules=[0.1], n_hidden=20, class_weight="balanced", test=test, random_state=0, details=True
    )
    model = PinvClassifier(20, gamma=0.1, class_weight="balanced", random_state=0).fit(*train)
    assert table["test_error"].iloc[0] == pytest.approx(1 - model.score(*test))
    assert table["train_error"].iloc[0] == pytest.approx(1 - model.score(*train))
    ill = test[0][test[1] == 1], test[1][test[1] == 1]
    one_class = compare_rules(*train, rules=[0.1], n_hidden=20, class_weight="balanced", test=ill, random_state=0)
    assert one_class["test_error"].iloc[0] == pytest.approx(1 - model.score(*ill))


def test_other_numbers_of_folds_can_be_compared():
    X, y = smooth_problem(60, 5)
    table = compare_rules(
        X, y, rules=[rules.KFold(n_folds=5), "kfold"], n_folds=5, n_hidden=10, random_state=0, details=True
    )
    assert table["gamma"].iloc[0] == table["gamma"].iloc[1] > 0  # by its name, a rule reads the folds that there are


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 1.0}, "gamma= cannot be set here"),
        ({"store_folds": True}, "store_folds= cannot be set here"),
        ({"test": np.zeros((3, 5))}, "pair"),
    ],
)
def test_what_a_table_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        compare_rules(*smooth_problem(30, 5), **options)


@pytest.mark.parametrize("more", [{}, {"test": smooth_problem(30, 5, seed=1)}])
def test_the_table_fits_a_terminal(more):
    table = compare_rules(*smooth_problem(120, 5), n_hidden=20, random_state=0, **more)
    assert "muniz_shukur_median_inverse" in table.index
    # pandas leaves out columns of a table as wide as the terminal.
    assert max(map(len, table.to_string().splitlines())) < 80
    details = compare_rules(*smooth_problem(120, 5), n_hidden=20, random_state=0, details=True, **more)
    pandas.testing.assert_frame_equal(details[table.columns], table)
