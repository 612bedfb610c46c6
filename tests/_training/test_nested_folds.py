"""Layers that learn from targets are judged on rows that they have not seen: as if everything had been refitted."""

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

from ocrep import PinvClassifier, PinvClassifierCV, PinvRegressor, PinvRegressorCV, parts, rules, scan

N = 240
# The range is given, so that the scaling does not depend on the rows that a layer is drawn on.
LEAVES = {"n_hidden": 40, "weight_init": "trees", "input_scaling": (-2.0, 2.0), "random_state": 0}
IN_SEARCH = {name: value for name, value in LEAVES.items() if name != "random_state"}


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (N, 3))
    y = np.where(X[:, 0] > 0.3, 1.0, -1.0) + X[:, 1] + 0.5 * rng.standard_normal(N)
    return X, np.c_[y, X[:, 2] + rng.standard_normal(N)], rng.uniform(0.5, 2.0, N), rng.integers(0, 3, N)


def refitted_error(model, X, Y, weight, fold):
    """The error over all rows, each predicted by a model that was fitted without its fold, layer included."""
    squares = np.empty(Y.shape)
    for v in np.unique(fold):
        out = fold == v
        squares[out] = (Y[out] - clone(model).fit(X[~out], Y[~out], weight[~out]).predict(X[out])) ** 2
    return np.average(squares.mean(axis=1), weights=weight)


@pytest.mark.parametrize("kind", ["memory", "scan", "dask"])
@pytest.mark.parametrize("by", ["content", "groups"])
@pytest.mark.parametrize("gamma", ["kfold", "ocrep_cv"])
def test_the_held_out_error_is_that_of_refitting_everything(gamma, by, kind, rows):
    X, Y, weight, groups = rows
    fold = groups if by == "groups" else rules.KFold().folds.of(X)
    given = (groups,) if by == "groups" else ()
    model = PinvRegressor(**LEAVES, gamma=gamma)
    if kind == "memory":
        model.fit(X, Y, weight, *given)
    elif kind == "scan":
        cuts = np.array_split(np.arange(N), 5)
        model.fit(scan([tuple(part[c] for part in (X, Y, weight, *given)) for c in cuts]))
    else:
        model.fit(*(da.from_array(part, chunks=70) for part in (X, Y, weight, *given)))
    expected = refitted_error(PinvRegressor(**LEAVES, gamma=model.gamma_), X, Y, weight, fold)
    assert model.choice_.held_out_error == pytest.approx(expected, rel=1e-7)
    for factor in (0.5, 2.0):
        other = refitted_error(PinvRegressor(**LEAVES, gamma=factor * model.gamma_), X, Y, weight, fold)
        assert gamma != "kfold" or expected <= other


def test_candidates_are_compared_as_if_each_had_been_refitted(rows):
    X, Y, weight, _ = rows
    fold = rules.KFold().folds.of(X)
    layers = [IN_SEARCH, {"n_hidden": 30, "input_scaling": (-2.0, 2.0)}]
    search = PinvRegressorCV(layers, random_state=0, ensemble=False).fit(X, Y, weight)
    gamma = search.cv_results_["gamma"][0]
    expected = refitted_error(PinvRegressor(**LEAVES, gamma=gamma), X, Y, weight, fold)
    assert -search.cv_results_["mean_test_score"][0] == pytest.approx(expected, rel=1e-7)


@pytest.mark.filterwarnings("ignore::ocrep.exceptions.RuleEdgeWarning")
def test_noise_is_not_learned_by_heart():
    """With folds that the trees have seen, leaves would seem to explain a large part of pure noise."""
    rng = np.random.default_rng(1)
    for _ in range(3):
        X, y = rng.standard_normal((300, 5)), rng.standard_normal(300)
        model = PinvRegressor(100, weight_init="trees", random_state=0).fit(X, y)
        assert model.choice_.held_out_error > 0.97 * y.var()
        new = rng.standard_normal((1000, 5))
        assert np.mean(model.predict(new) ** 2) < 0.2


@pytest.mark.filterwarnings("ignore::ocrep.exceptions.RuleEdgeWarning")
def test_labels_are_judged_by_layers_that_have_not_seen_them(rows):
    X, Y, _, _ = rows
    noise = np.random.default_rng(3).integers(0, 2, N)
    search = PinvClassifierCV([IN_SEARCH], calibrate=None, random_state=0, ensemble=False)
    assert -search.fit(X, noise).cv_results_["mean_test_score"][0] > 0.66  # log 2 is 0.693
    assert -search.fit(X, Y[:, 0] > 0).cv_results_["mean_test_score"][0] < 0.5
    assert PinvClassifier(**LEAVES).fit(X, Y[:, 0] > 0).score(X, Y[:, 0] > 0) > 0.8


def test_what_would_judge_leaves_on_rows_that_they_have_seen_is_refused(rows):
    X, Y, _, _ = rows
    for options, sentence in (
        ({"gamma": "loo"}, "has seen their targets: use 'kfold'"),
        ({"calibrate": "loo"}, "set calibrate=None"),
        ({"n_hidden": "auto"}, "give a number"),
        ({"gamma": rules.KFold(split="blocks")}, "split='groups'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            PinvRegressor(**{**LEAVES, **options}).fit(X, Y)
    with pytest.raises(ValueError, match="read only once"):
        PinvRegressor(**LEAVES).fit(scan(iter([(X, Y)])))
    with pytest.raises(ValueError, match="read only once"):
        parts.plan(PinvRegressor(**LEAVES))
    assert not hasattr(PinvRegressor(**LEAVES), "partial_fit")
    assert PinvRegressor(**LEAVES, gamma="gcv").fit(scan(iter([(X, Y)]))).score(X, Y) > 0.3


@pytest.mark.parametrize("layer", [{"weight_init": "trees"}, {"metric": "diagonal"}, {"metric": "full"}])
@pytest.mark.parametrize("n_rows", [2, 3, 4, 5, 8])
@pytest.mark.filterwarnings("ignore:gamma=OCRePCV", "ignore::ocrep.exceptions.RuleEdgeWarning")
def test_few_rows_give_a_model(layer, n_rows, rows):
    """Where a fold leaves nothing to draw a layer on, it is not held out; without two folds γ is that of GCV."""
    X, Y, _, _ = rows
    model = PinvRegressor(10, random_state=0, **layer).fit(X[:n_rows], Y[:n_rows])
    assert np.isfinite(model.predict(X)).all()
    labels = np.arange(n_rows) % 2
    assert set(PinvClassifier(10, random_state=0, **layer).fit(X[:n_rows], labels).predict(X)) <= {0, 1}


@pytest.mark.filterwarnings("ignore:gamma=OCRePCV", "ignore::ocrep.exceptions.RuleEdgeWarning")
def test_rows_that_are_all_alike_give_a_model_or_a_sentence():
    X, y = np.ones((20, 3)), np.arange(20.0)
    with pytest.raises(ValueError, match="different inputs"):
        PinvRegressor(10, weight_init="trees").fit(X, y)
    for metric in ("diagonal", "full"):
        np.testing.assert_allclose(PinvRegressor(10, metric=metric).fit(X, y).predict(X), y.mean())
