"""Folds by groups and by splitters: equal to refits by hand without each fold, wherever the rows are."""

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, RepeatedKFold, StratifiedKFold, TimeSeriesSplit
from sklearn.utils.estimator_checks import check_estimator
from support.folds import fold_numbers

from ocrep import (
    PinvClassifier,
    PinvClassifierCV,
    PinvRegressor,
    PinvRegressorCV,
    TikhonovRegressor,
    compare_rules,
    load_model,
    parts,
    rules,
    save_model,
    scan,
)
from ocrep.displays import GammaPathDisplay

N = 90
# The range is given, so that a layer does not depend on the rows that it is trained on.
LAYERS = [{"n_hidden": 15, "input_scaling": (-3.0, 3.0)}, {"n_hidden": 30, "input_scaling": (-3.0, 3.0)}]
# A stack grows the leaves of its trees anew without each fold.
MEMBERS = [*LAYERS, {"n_hidden": 20, "weight_init": "trees", "input_scaling": (-3.0, 3.0)}]


@pytest.fixture
def rows():
    """Inputs, two targets, weights and three groups, of which no two are alike."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (N, 3))
    groups = rng.choice(["north", "south", "west"], N, p=[0.5, 0.3, 0.2])
    Y = np.c_[np.sin(X[:, 0]), X[:, 1] * X[:, 2]] + 0.3 * rng.standard_normal((N, 2))
    Y[groups == "west"] += 1.0
    return X, Y, rng.uniform(0.5, 2.0, N), groups


def fitted(kind, model, X, Y, weight, groups=None):
    """The model on rows in memory, on disk or in Dask."""
    parts_of_rows = (X, Y, weight) if groups is None else (X, Y, weight, groups.astype("U8"))
    if kind == "memory":
        return model.fit(*parts_of_rows)
    if kind == "scan":
        cuts = np.array_split(np.arange(len(X)), 4)
        return model.fit(scan([tuple(part[c] for part in parts_of_rows) for c in cuts]))
    return model.fit(*(da.from_array(part, chunks=25) for part in parts_of_rows))


def fold_of(cv, X, Y, groups):
    """The number of the split that tests on each row."""
    fold = np.empty(len(X), dtype=int)
    for v, (_, test) in enumerate(cv.split(X, Y, groups)):
        fold[test] = v
    return fold


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
    search = fitted(kind, PinvRegressorCV(LAYERS, random_state=0, ensemble=False), X, Y, weight, groups)
    for number, layer in enumerate(LAYERS):
        gamma = search.cv_results_["gamma"][number]
        network = PinvRegressor(**layer, gamma=gamma, random_state=0)
        errors, weights = refitted_errors(network, X, Y, weight, groups)
        assert -search.cv_results_["mean_test_score"][number] == pytest.approx(np.average(errors, weights=weights))
        by_fold = [-search.cv_results_[f"split{v}_test_score"][number] for v in range(3)]
        assert sorted(by_fold) == pytest.approx(sorted(errors))


def squared_errors_of_members(stack, X, Y, weight, fold):
    """The error of each member on held-out rows, and that of refits by hand without each fold."""
    results = stack.cv_results_
    for number, layer in enumerate(MEMBERS):
        network = PinvRegressor(**layer, gamma=results["gamma"][number], random_state=0)
        errors, weights = refitted_errors(network, X, Y, weight, fold)
        yield results["squared_error"][number], np.average(errors, weights=weights)


@pytest.mark.parametrize("kind", ["memory", "scan", "dask"])
def test_members_of_a_stack_are_judged_on_groups_held_out(kind, rows):
    """Leaves of trees are grown anew without each group; other layers do not depend on the rows here."""
    X, Y, weight, groups = rows
    stack = fitted(kind, PinvRegressorCV(MEMBERS, random_state=0), X, Y, weight, groups)
    assert stack.cv_results_["judged"].tolist() == ["exact", "exact", "nested"]
    for found, expected in squared_errors_of_members(stack, X, Y, weight, groups):
        assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("cv", [KFold(4), GroupKFold(3), KFold(5, shuffle=True, random_state=1)])
def test_a_splitter_decides_the_folds_of_a_stack(cv, rows):
    X, Y, weight, groups = rows
    groups = groups if isinstance(cv, GroupKFold) else None
    stack = PinvRegressorCV(MEMBERS, cv=cv, random_state=0).fit(X, Y, weight, groups)
    for found, expected in squared_errors_of_members(stack, X, Y, weight, fold_of(cv, X, Y, groups)):
        assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("cv", [KFold(4), GroupKFold(3), KFold(5, shuffle=True, random_state=1)])
def test_a_splitter_decides_the_folds(cv, rows):
    X, Y, weight, groups = rows
    groups = groups if isinstance(cv, GroupKFold) else None
    search = PinvRegressorCV(LAYERS, cv=cv, random_state=0, ensemble=False).fit(X, Y, weight, groups)
    fold = fold_of(cv, X, Y, groups)
    for number, layer in enumerate(LAYERS):
        network = PinvRegressor(**layer, gamma=search.cv_results_["gamma"][number], random_state=0)
        errors, _ = refitted_errors(network, X, Y, weight, fold)
        by_fold = [-search.cv_results_[f"split{v}_test_score"][number] for v in range(len(errors))]
        assert by_fold == pytest.approx(list(errors))


@pytest.mark.parametrize("kind", ["memory", "scan", "dask"])
@pytest.mark.parametrize("ensemble", [True, False])
def test_a_number_of_folds_divides_rows_by_what_they_hold(kind, ensemble, rows):
    X, Y, weight, _ = rows
    search = fitted(kind, PinvRegressorCV(MEMBERS, cv=4, ensemble=ensemble, random_state=0), X, Y, weight)
    for found, expected in squared_errors_of_members(search, X, Y, weight, fold_numbers(X, n_folds=4)):
        assert found == pytest.approx(expected, rel=1e-9)


def test_a_list_of_splits_and_a_splitter_are_the_same(rows):
    X, Y, weight, _ = rows
    one = PinvRegressorCV(LAYERS, cv=KFold(3), random_state=0, ensemble=False).fit(X, Y, weight)
    other = PinvRegressorCV(LAYERS, cv=list(KFold(3).split(X)), random_state=0, ensemble=False).fit(X, Y, weight)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_a_number_of_folds_is_that_of_the_rule_too(rows):
    X, Y, weight, _ = rows
    search = PinvRegressorCV(LAYERS, cv=5, gamma="kfold", random_state=0, ensemble=False).fit(X, Y, weight)
    assert "split4_test_score" in search.cv_results_
    alone = PinvRegressor(**search.best_params_, gamma=rules.KFold(n_folds=5), random_state=0).fit(X, Y, weight)
    assert search.gamma_ == pytest.approx(alone.gamma_, rel=1e-6)
    assert search.best_estimator_.with_gamma("kfold").gamma_ == pytest.approx(alone.gamma_, rel=1e-6)


def test_labels_are_divided_by_a_splitter_that_looks_at_them(rows):
    X, Y, _, _ = rows
    labels = np.where(Y[:, 0] > 0.6, "high", "low")
    search = PinvClassifierCV(LAYERS, cv=StratifiedKFold(4), random_state=0, ensemble=False).fit(X, labels)
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
        search = PinvRegressorCV([{"n_hidden": 60}], selection_rows=most, random_state=0, ensemble=False).fit(
            X, y, groups=given
        )
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
        (
            [(np.arange(N), np.arange(N // 2)), (np.arange(N), np.arange(N // 2, N))],
            "row 1 for training and for testing",
        ),
        (PredefinedSplit([-1] + [0, 1] * 44 + [0]), "never tests on row 1"),
        (PredefinedSplit([0] * N), "at least two"),
        (PredefinedSplit([0, 1] * N), f"other rows than the {N} of X"),
        (KFold(N + 1), f"cv=KFold.* cannot divide these {N} rows"),
        (GroupKFold(3), "GroupKFold.* cannot divide .* or the groups"),
        (2.5, "must be a number of folds ≥ 2"),
        ("kfold", "must be a number of folds ≥ 2"),
        (1, "must be a number of folds ≥ 2"),
        (True, "must be a number of folds ≥ 2"),
    ],
)
@pytest.mark.parametrize("ensemble", [True, False])
def test_splitters_that_do_not_hold_out_each_row_once_are_refused(cv, sentence, ensemble, rows):
    X, Y, _, groups = rows
    with pytest.raises(ValueError, match=sentence):
        PinvRegressorCV(LAYERS, cv=cv, ensemble=ensemble).fit(X, Y)
    search = PinvRegressorCV(LAYERS, cv=4, ensemble=ensemble)
    with pytest.raises(ValueError, match="3 groups, which cannot fill 4 folds"):
        search.fit(X, Y, groups=groups)
    with pytest.raises(ValueError, match="one group"):
        search.fit(X, Y, groups=np.zeros(N))


@pytest.mark.parametrize("ensemble", [True, False])
def test_a_splitter_needs_rows_in_memory(ensemble, rows):
    X, Y, _, _ = rows
    search = PinvRegressorCV(LAYERS, cv=KFold(3), ensemble=ensemble)
    with pytest.raises(ValueError, match="not in memory"):
        search.fit(scan([(X, Y)]))
    with pytest.raises(ValueError, match="not in memory"):
        search.fit(da.from_array(X), da.from_array(Y))


@pytest.mark.parametrize("kind", ["memory", "scan", "dask"])
@pytest.mark.parametrize("model", [TikhonovRegressor("kfold"), PinvRegressorCV(LAYERS, random_state=0)])
def test_too_few_groups_are_refused_wherever_the_rows_are(model, kind, rows):
    X, Y, weight, groups = rows
    with pytest.raises(ValueError, match="one group"):
        fitted(kind, clone(model), X, Y, weight, np.full(N, "north"))
    two = np.where(groups == "west", "south", groups)
    with pytest.raises(ValueError, match="2 groups, which cannot fill 3 folds"):
        fitted(kind, clone(model), X, Y, weight, two)


def test_a_rule_with_folds_of_its_own_must_agree_with_cv(rows):
    X, Y, _, _ = rows
    five = PinvRegressorCV(LAYERS, gamma=rules.KFold(n_folds=5), random_state=0, ensemble=False)
    assert "split4_test_score" in five.fit(X, Y).cv_results_
    with pytest.raises(ValueError, match="make them the same"):
        five.set_params(cv=4).fit(X, Y)


# --- what surrounds a fit ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [2**53, 2**60, np.uint64(2**63)])
@pytest.mark.parametrize("kind", [np.asarray, list])
def test_large_whole_numbers_are_different_groups(first, kind, rows):
    X, Y, weight, groups = rows
    codes = np.unique(groups, return_inverse=True)[1]
    numbers = np.array([int(first) + code for code in codes.tolist()], dtype=np.uint64)
    expected = TikhonovRegressor().fit(X, Y, weight, groups).choice_.held_out_error
    model = TikhonovRegressor().fit(X, Y, weight, kind(numbers) if kind is np.asarray else numbers.tolist())
    assert model.choice_.held_out_error == pytest.approx(expected, rel=1e-6)


def test_a_model_reads_its_own_folds_under_another_rule(rows):
    X, Y, weight, groups = rows
    model = PinvRegressor(10, gamma=rules.KFold(n_folds=3, seed=5), random_state=0).fit(X, Y, weight, groups)
    assert model.with_gamma(model.gamma).gamma_ == model.gamma_
    for n_folds in (3, 5):
        stored = PinvRegressor(10, gamma="kfold", store_folds=n_folds, random_state=0).fit(X, Y, weight)
        assert len(stored.folds_.factors) == n_folds
        assert stored.with_gamma("kfold").gamma_ == stored.gamma_
    with pytest.raises(ValueError, match="make them the same"):
        PinvRegressor(10, gamma=rules.KFold(n_folds=4), store_folds=5).fit(X, Y)


def test_pictures_and_tables_read_the_folds_of_a_fit(rows):
    X, Y, _, groups = rows
    labels = np.where(Y[:, 0] > 0.6, "high", "low")
    by_groups = PinvClassifier(10, gamma="kfold", random_state=0).fit(X, labels, groups=groups)
    shown = GammaPathDisplay.from_estimator(by_groups, X, labels, rules=["kfold", "gcv"]).choices
    assert [choice.rule for choice in shown if choice.gamma] == ["kfold", "gcv"]
    five = PinvRegressorCV(LAYERS, cv=5, random_state=0, ensemble=False).fit(X, Y[:, 0])
    shown = GammaPathDisplay.from_estimator(five, X, Y[:, 0], rules=["kfold", "ocrep_cv", "gcv"]).choices
    assert [choice.rule for choice in shown if choice.gamma] == ["kfold", "ocrep_cv", "gcv"]
    table = compare_rules(X, Y[:, 0], n_hidden=10, n_folds=5, rules=["kfold"], random_state=0)
    assert np.isfinite(table["gamma"]).all()


@pytest.mark.filterwarnings("ignore::ocrep.exceptions.RuleEdgeWarning")
def test_a_search_with_a_splitter_is_saved_and_checked(rows, tmp_path):
    X, Y, _, _ = rows
    for cv in (KFold(3), StratifiedKFold(3), GroupKFold(3)):
        search = PinvRegressorCV(LAYERS, cv=cv, random_state=0, ensemble=False).set_params(cv=KFold(3)).fit(X, Y)
        search.set_params(cv=cv)
        save_model(search, tmp_path / "search.skops")
        loaded = load_model(tmp_path / "search.skops")
        np.testing.assert_array_equal(loaded.predict(X), search.predict(X))
        assert repr(loaded.cv) == repr(cv)
    check_estimator(PinvRegressorCV([{"n_hidden": 5}], cv=KFold(2), random_state=0, ensemble=False), on_skip=None)


def test_groups_must_come_with_all_rows_or_with_none(rows):
    X, Y, weight, groups = rows
    model = PinvRegressor(10, gamma=0.1, store_folds=True, input_scaling=(-3, 3), random_state=0).fit(X, Y, weight)
    with pytest.raises(ValueError, match="the rows before had none"):
        model.partial_fit(X, Y, weight, groups)
    plan = parts.plan(PinvRegressor(10, gamma="kfold", random_state=0))
    with pytest.raises(ValueError, match="split='groups'"):
        plan.survey(X, Y, weight, groups, part_number=0)


def test_a_generator_of_splits_is_read_once(rows):
    X, Y, _, _ = rows
    search = PinvRegressorCV(LAYERS, cv=KFold(3).split(X), random_state=0, ensemble=False).fit(X, Y)
    with pytest.raises(ValueError, match="give a list"):
        search.fit(X, Y)


def test_folds_that_do_not_fit_into_memory_are_refused_before_work_begins(rows):
    X, Y, _, _ = rows
    many = np.tile(X, (12, 1)) + np.arange(12 * N)[:, None] * 1e-6
    layer = [{"n_hidden": 20_000}]
    with pytest.raises(ValueError, match="GB of memory"):
        PinvRegressorCV(layer, cv=PredefinedSplit(np.arange(12 * N) % 1000), ensemble=False).fit(
            many, np.tile(Y, (12, 1))
        )


def test_a_checkpoint_of_folds_by_blocks_is_not_continued_with_more_rows(rows, tmp_path, small_blocks):
    """The number of rows decides these folds: what was accumulated for fewer rows would be in other folds."""
    small_blocks(100)
    X, Y, _, _ = rows

    def crash(done, _):
        if done >= 50:
            raise RuntimeError("the power failed")

    def fit(arrays, **options):
        stored = scan(arrays[0], arrays[1], checkpoint=tmp_path / "fit.ckpt", checkpoint_every=0, **options)
        return TikhonovRegressor(rules.KFold(split="blocks")).fit(stored)

    with pytest.raises(RuntimeError, match="power"):
        fit((X, Y), progress=crash)
    assert (tmp_path / "fit.ckpt").exists()
    with pytest.raises(ValueError, match="more or fewer rows"):
        fit((np.vstack([X, X + 0.1]), np.vstack([Y, Y])))
