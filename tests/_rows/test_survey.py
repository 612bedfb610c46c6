"""What is learned of all rows first (ranges, labels, weights of classes) is the same however the rows are cut."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.advice import some_advice
from support.weights import weights_of

from ocrep import PinvClassifier, PinvRegressor, RandomLayer, TikhonovClassifier, parts, scan


def rows(n=50, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 3)), np.arange(n) % 4, rng.integers(0, 3, n).astype(float)


def network(kind=PinvClassifier, **options):
    return kind(5, gamma=1.0, random_state=0, **options)


def assert_same_layer(model, other):
    """Equal to the last bit, and so were the ranges of the inputs."""
    X = rows()[0][:, : model.n_features_in_]
    np.testing.assert_array_equal(model.layer_.transform(X), other.layer_.transform(X))


@some_advice
@settings(max_examples=30)
@given(cuts=st.lists(st.integers(0, 50), max_size=6), weighted=st.booleans(), seed=st.integers(0, 99))
def test_any_cutting_and_order_gives_the_survey_of_the_whole(cuts, weighted, seed):
    X, y, w = rows(seed=seed)
    weight = w if weighted else np.ones(50)
    blocks = [(X[a:b], y[a:b], weight[a:b]) for a, b in pairwise([0, *sorted(cuts), 50])]
    blocks = [blocks[i] for i in np.random.default_rng(seed).permutation(len(blocks))]
    plan = parts.plan(network(class_weight="balanced"))
    surveys = [plan.survey(*block, part_number=i) for i, block in enumerate(blocks)]
    survey = surveys[0]
    for other in surveys[1:]:
        survey = survey.merge(other)
    complete = plan.with_survey(survey)
    part = complete.of(X, y, weight, part_number=0)
    here = network(class_weight="balanced").fit(X, y, weight)
    for model in (network(class_weight="balanced").fit(scan(blocks)), complete.finish(part, n_parts=1)):
        assert_same_layer(model, here)
        np.testing.assert_array_equal(model.classes_, here.classes_)
        np.testing.assert_allclose(weights_of(model), weights_of(here), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("n_columns", [1, 3, 600])
@pytest.mark.parametrize("n_rows", [2, 7, 1500])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_range_is_that_of_each_column_of_rows_that_count(n_rows, n_columns, order):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 3.0, (n_rows + 3, n_columns))
    X[:2] = [[-2.0], [3.0]]
    X[-3:] = 100.0
    weight = np.r_[np.ones(n_rows), np.zeros(3)]
    X, y = np.asarray(X, order=order), rng.standard_normal(n_rows + 3)
    known = RandomLayer(5, input_scaling=(-2.0, 3.0), random_state=0).fit(X).transform(X)
    for found in (network(PinvRegressor).fit(X, y, weight), network(PinvRegressor).fit(X[:-3], y[:-3])):
        layer = RandomLayer(5, random_state=0).fit(X[:-3])
        np.testing.assert_array_equal(found.layer_.transform(X)[:, -5:], layer.transform(X))
        np.testing.assert_allclose(layer.transform(X), known, rtol=1e-12)


@some_advice
def test_classes_of_no_weight_do_not_widen_the_range_and_are_known():
    X, y, _ = rows()
    X[y == 2] += 100.0
    model = network(class_weight={2: 0.0}).fit(X, y)
    assert_same_layer(model, network().fit(X[y != 2], y[y != 2]))
    assert model.classes_.tolist() == [0, 1, 2, 3]


@some_advice
def test_parts_without_rows_say_nothing_of_types_and_labels():
    X, y = np.eye(4, dtype=np.float32), np.array(["u", "v", "u", "v"], dtype=object)
    here = network().fit(X, y)
    nothing = (np.empty((0, 4)), np.empty(0))
    for blocks in ([(X, y), nothing], [nothing, (X, y)]):
        model = network().fit(scan(blocks))
        assert model.predict(X).tolist() == here.predict(X).tolist()
        assert model.decision_function(X).dtype == here.decision_function(X).dtype == np.float32


def survey(X, y, number, model=None):
    return parts.plan(model or network(PinvRegressor)).survey(X, y, part_number=number)


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ((np.zeros((1, 2)), np.zeros(1)), "have 3 inputs, and others 2"),
        ((np.zeros((1, 3)), np.zeros((1, 1))), "one axis for some rows"),
    ],
)
def test_parts_that_cannot_belong_together_raise(others, message):
    with pytest.raises(ValueError, match=message):
        survey(np.zeros((1, 3)), np.zeros(1), 0).merge(survey(*others, 1))


def test_texts_and_numbers_are_not_labels_of_one_set():
    model, X = TikhonovClassifier(), np.zeros((2, 3))
    with pytest.raises(ValueError, match="texts in some rows and numbers in others"):
        survey(X, np.array([0, 1]), 0, model).merge(survey(X, np.array(["a", "b"]), 1, model))
