"""Folds by groups and by splitters: equal to refits by hand without each fold, wherever the rows are."""

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, RepeatedKFold, StratifiedKFold, TimeSeriesSplit

from ocrep import PinvClassifierCV, PinvRegressor, PinvRegressorCV, TikhonovRegressor, rules, scan

N = 90
# The range is given, so that a layer does not depend on the rows that it is trained on.
LAYERS = [{"n_hidden": 15, "input_scaling": (-3.0, 3.0)}, {"n_hidden": 30, "input_scaling": (-3.0, 3.0)}]


@pytest.fixture
def rows():
    """Inputs, two targets, weights and three groups, of which no two are alike."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (N, 3))
    groups = rng.choice(["north", "south", "west"], N, p=[0.5, 0.3, 0.2])
    Y = np.c_[np.sin(X[:, 0]), X[:, 1] * X[:, 2]] + 0.3 * rng.standard_normal((N, 2))
    Y[groups == "west"] += 1.0
    return X, Y, rng.uniform(0.5, 2.0, N), groups


def fitted(kind, model, X, Y, weight, groups):
    """The model on rows in memory, on disk or in Dask."""
    if kind == "memory":
        return model.fit(X, Y, weight, groups)
    if kind == "scan":
        cuts = np.array_split(np.arange(len(X)), 4)
        return model.fit(scan([(X[c], Y[c], weight[c], groups[c]) for c in cuts]))
    columns = (da.from_array(part, chunks=25) for part in (X, Y, weight, groups.astype("U8")))
    return model.fit(*columns)


def refitted_errors(model, X, Y, weight, fold):
    """The mean squared error over each fold of a model with a fixed γ, refitted without it, and the fold's weight."""
    found = []
    for v in np.unique(fold):
        out = fold == v
        predicted = clone(model).fit(X[~out], Y[~out], weight[~out]).predict(X[out])
        squares = np.square(Y[out] - predicted).reshape(out.sum(), -1).mean(axis=1)
        found.append((np.average(squares, weights=weight[out]), weight[out].sum()))
    errors, weights = np.transpose(found)
    return errors, weights


@pytest.mark.parametrize("kind", ["memory", "scan", "dask"])
@pytest.mark.parametrize("gamma", ["kfold", "ocrep_cv"])
def test_groups_are_the_folds_of_every_rule_that_has_folds(kind, gamma, rows):
    X, Y, weight, groups = rows
    model = fitted(kind, TikhonovRegressor(gamma), X, Y, weight, groups)
    errors, weights = refitted_errors(TikhonovRegressor(model.gamma_), X, Y, weight, groups)
    assert model.choice_.held_out_error == pytest.approx(np.average(errors, weights=weights), rel=1e-9)
    # Without groups, rows of a group help to predict each other.
    assert clone(model).fit(X, Y, weight).choice_.held_out_error < model.choice_.held_out_error


@pytest.mark.parametrize("kind", ["memory", "scan", "dask"])
def test_the_search_for_gamma_minimises_the_error_over_groups(kind, rows):
    X, Y, weight, groups = rows
    model = fitted(kind, PinvRegressor(20, gamma="kfold", input_scaling=(-3, 3), random_state=0), *rows)

    def error(gamma):
        errors, weights = refitted_errors(clone(model).set_params(gamma=gamma), X, Y, weight, groups)
        return np.average(errors, weights=weights)

    assert error(model.gamma_) <= min(error(model.gamma_ * factor) for factor in (0.9, 0.99, 1.01, 1.1))


@pytest.mark.parametrize("kind", ["memory", "scan", "dask"])
def test_candidates_are_compared_on_groups_held_out(kind, rows):
    X, Y, weight, groups = rows
    search = fitted(kind, PinvRegressorCV(LAYERS, random_state=0), X, Y, weight, groups)
    for number, layer in enumerate(LAYERS):
        gamma = search.cv_results_["gamma"][number]
        network = PinvRegressor(**layer, gamma=gamma, random_state=0)
        errors, weights = refitted_errors(network, X, Y, weight, groups)
        assert -search.cv_results_["mean_test_score"][number] == pytest.approx(np.average(errors, weights=weights))
        by_fold = [-search.cv_results_[f"split{v}_test_score"][number] for v in range(3)]
        assert sorted(by_fold) == pytest.approx(sorted(errors))


@pytest.mark.parametrize("cv", [KFold(4), GroupKFold(3), KFold(5, shuffle=True, random_state=1)])
def test_a_splitter_decides_the_folds(cv, rows):
    X, Y, weight, groups = rows
    groups = groups if isinstance(cv, GroupKFold) else None
    search = PinvRegressorCV(LAYERS, cv=cv, random_state=0).fit(X, Y, weight, groups)
    fold = np.empty(N, dtype=int)
    for v, (_, test) in enumerate(cv.split(X, Y, groups)):
        fold[test] = v
    for number, layer in enumerate(LAYERS):
        network = PinvRegressor(**layer, gamma=search.cv_results_["gamma"][number], random_state=0)
        errors, _ = refitted_errors(network, X, Y, weight, fold)
        by_fold = [-search.cv_results_[f"split{v}_test_score"][number] for v in range(len(errors))]
        assert by_fold == pytest.approx(list(errors))


def test_a_list_of_splits_and_a_splitter_are_the_same(rows):
    X, Y, weight, _ = rows
    one = PinvRegressorCV(LAYERS, cv=KFold(3), random_state=0).fit(X, Y, weight)
    other = PinvRegressorCV(LAYERS, cv=list(KFold(3).split(X)), random_state=0).fit(X, Y, weight)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_a_number_of_folds_is_that_of_the_rule_too(rows):
    X, Y, weight, _ = rows
    search = PinvRegressorCV(LAYERS, cv=5, gamma="kfold", random_state=0).fit(X, Y, weight)
    assert "split4_test_score" in search.cv_results_
    alone = PinvRegressor(**search.best_params_, gamma=rules.KFold(n_folds=5), random_state=0).fit(X, Y, weight)
    assert search.gamma_ == pytest.approx(alone.gamma_, rel=1e-6)
    assert search.best_estimator_.with_gamma("kfold").gamma_ == pytest.approx(alone.gamma_, rel=1e-6)


def test_labels_are_divided_by_a_splitter_that_looks_at_them(rows):
    X, Y, _, _ = rows
    labels = np.where(Y[:, 0] > 0.6, "high", "low")
    search = PinvClassifierCV(LAYERS, cv=StratifiedKFold(4), random_state=0).fit(X, labels)
    assert search.score(X, labels) > 0.7
    assert "split3_test_score" in search.cv_results_


@pytest.mark.filterwarnings("ignore::ocrep.exceptions.RuleEdgeWarning")
def test_rows_of_a_sample_keep_their_groups():
    """Inputs give the group away, and the group most of the target: only folds by groups show what is not known."""
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 40, 2400)
    X = rng.standard_normal((40, 3))[groups] + 0.01 * rng.standard_normal((2400, 3))
    y = 3.0 * rng.standard_normal(40)[groups] + 0.1 * rng.standard_normal(2400)
    scores = {}
    for name, most, given in (("all", 50_000, groups), ("sample", 600, groups), ("content", 600, None)):
        search = PinvRegressorCV([{"n_hidden": 60}], selection_rows=most, random_state=0).fit(X, y, groups=given)
        scores[name] = -search.cv_results_["mean_test_score"][0]
    assert scores["content"] < 0.2 * scores["all"]
    assert scores["sample"] == pytest.approx(scores["all"], rel=0.3)


def test_partial_fit_continues_with_groups(rows):
    X, Y, weight, groups = rows
    model = TikhonovRegressor().partial_fit(X[:50], Y[:50], weight[:50], groups[:50])
    model.partial_fit(X[50:], Y[50:], weight[50:], groups[50:])
    errors, weights = refitted_errors(TikhonovRegressor(model.gamma_), X, Y, weight, groups)
    if len(model.folds_.filled) == 3:  # in a stream groups fall into folds by chance
        assert model.choice_.held_out_error == pytest.approx(np.average(errors, weights=weights), rel=1e-9)
    with pytest.raises(ValueError, match="these rows have none"):
        model.partial_fit(X, Y, weight)


@pytest.mark.parametrize(
    ("cv", "sentence"),
    [
        (TimeSeriesSplit(3), "neither for training nor for testing"),
        (RepeatedKFold(n_splits=3, n_repeats=2), "in two splits"),
        (PredefinedSplit([-1] + [0, 1] * 44 + [0]), "never tests on row 1"),
        (PredefinedSplit([0] * N), "at least two"),
        (1, "must be a number of folds ≥ 2"),
        (True, "must be a number of folds ≥ 2"),
    ],
)
def test_splitters_that_do_not_hold_out_each_row_once_are_refused(cv, sentence, rows):
    X, Y, _, groups = rows
    with pytest.raises(ValueError, match=sentence):
        PinvRegressorCV(LAYERS, cv=cv).fit(X, Y)
    search = PinvRegressorCV(LAYERS, cv=4)
    with pytest.raises(ValueError, match="3 groups, which cannot fill 4 folds"):
        search.fit(X, Y, groups=groups)
    with pytest.raises(ValueError, match="one group"):
        search.fit(X, Y, groups=np.zeros(N))


def test_a_splitter_needs_rows_in_memory(rows):
    X, Y, _, _ = rows
    with pytest.raises(ValueError, match="not in memory"):
        PinvRegressorCV(LAYERS, cv=KFold(3)).fit(scan([(X, Y)]))
    with pytest.raises(ValueError, match="not in memory"):
        PinvRegressorCV(LAYERS, cv=KFold(3)).fit(da.from_array(X), da.from_array(Y))


def test_a_rule_with_folds_of_its_own_must_agree_with_cv(rows):
    X, Y, _, _ = rows
    five = PinvRegressorCV(LAYERS, gamma=rules.KFold(n_folds=5), random_state=0)
    assert "split4_test_score" in five.fit(X, Y).cv_results_
    with pytest.raises(ValueError, match="make them the same"):
        five.set_params(cv=4).fit(X, Y)
