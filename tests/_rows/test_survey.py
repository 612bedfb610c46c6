"""Surveys: parts cut anywhere and merged in any order tell the same of the whole."""

from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocrep._rows.block import Block
from ocrep._rows.survey import Needs, Survey


def rows(n=50, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 3)), rng.integers(0, 4, n), rng.integers(0, 3, n).astype(float)


def survey_of(X, y, weight=None, *, labels, columns=None):
    """The survey of a block, with everything that can be asked for."""
    needs = Needs(labels=labels, range=True, totals=labels)
    return Survey.of(Block(X, y, weight, columns=columns), needs)


@given(cuts=st.lists(st.integers(0, 50), max_size=6), weighted=st.booleans(), seed=st.integers(0, 99))
def test_any_cutting_and_order_gives_the_survey_of_the_whole(cuts, weighted, seed):
    X, y, w = rows(seed=seed)
    weight = w if weighted else None
    ends = [0, *sorted(cuts), 50]
    parts = [survey_of(X[a:b], y[a:b], None if weight is None else weight[a:b], labels=True) for a, b in pairwise(ends)]
    parts = [parts[i] for i in np.random.default_rng(seed).permutation(len(parts))]
    whole, merged = survey_of(X, y, weight, labels=True), reduce(Survey.merge, parts)
    assert (merged.n_rows, merged.weight_sum, merged.dtype) == (whole.n_rows, whole.weight_sum, whole.dtype)
    for name in ("low", "high", "labels", "totals"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name))


@pytest.mark.parametrize("n_columns", [1, 3, 600])
@pytest.mark.parametrize("n_rows", [1, 7, 5000])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_range_is_that_of_each_column_however_rows_are_laid_out(n_rows, n_columns, order):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.standard_normal((n_rows, n_columns)), order=order)
    weight = np.where(np.arange(n_rows) % 3 == 1, 0.0, 1.0)
    for w, counted in ((None, X), (weight, X[weight > 0])):
        found = survey_of(X, np.zeros(n_rows), w, labels=False)
        np.testing.assert_array_equal(found.low, counted.min(axis=0))
        np.testing.assert_array_equal(found.high, counted.max(axis=0))


def test_the_range_is_that_of_rows_that_count():
    X = np.array([[0.0], [1.0], [9.0]])
    survey = survey_of(X, np.zeros(3), np.array([1.0, 2.0, 0.0]), labels=False)
    assert (survey.low[0], survey.high[0]) == (0.0, 1.0)
    assert survey.labels is None
    assert survey.totals is None
    nothing = survey_of(X, np.zeros(3), np.zeros(3), labels=False)
    assert (nothing.low[0], nothing.high[0], nothing.weight_sum) == (np.inf, -np.inf, 0.0)


def test_totals_are_weights_by_label_and_count_labels_of_zero_weight():
    survey = survey_of(np.zeros((3, 1)), np.array(["b", "a", "b"]), np.array([0.5, 0.0, 2.0]), labels=True)
    assert survey.labels.tolist() == ["a", "b"]
    assert survey.totals.tolist() == [0.0, 2.5]


def test_parts_without_rows_say_nothing_of_types_and_labels():
    X = np.ones((2, 2), dtype=np.float32)
    full = survey_of(X, np.array(["u", "v"], dtype=object), labels=True, columns=("a", "b"))
    empty = survey_of(np.empty((0, 2)), np.empty(0), labels=True, columns=("a", "b"))
    for merged in (full.merge(empty), empty.merge(full)):
        assert merged.dtype == np.float32
        assert merged.labels.tolist() == ["u", "v"]
    assert survey_of(X.astype(np.float64), np.zeros(2), labels=False).dtype == np.float64


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (survey_of(np.zeros((1, 2)), np.zeros(1), labels=False), "have 3 inputs, and others 2"),
        (
            survey_of(np.zeros((1, 3)), np.zeros(1), labels=False, columns=("a", "b", "c")),
            "without names, and others 'a'",
        ),
        (survey_of(np.zeros((1, 3)), np.zeros((1, 1)), labels=False), "one axis for some rows"),
        (survey_of(np.zeros((1, 3)), np.array(["a"]), labels=True), "texts in some rows and numbers in others"),
    ],
)
def test_parts_that_cannot_belong_together_raise(other, message):
    survey = survey_of(np.zeros((1, 3)), np.zeros(1), labels=True)
    with pytest.raises(ValueError, match=message):
        survey.merge(other)


def test_labels_of_several_kinds_raise():
    with pytest.raises(ValueError, match="several kinds"):
        survey_of(np.zeros((2, 1)), np.array([1, "a"], dtype=object), labels=True)


def test_weights_of_classes_enter_the_totals_and_the_range():
    X, y = np.array([[0.0], [1.0], [9.0]]), np.array([0, 1, 2])

    def weigh(y, weight):
        return np.where(y == 2, 0.0, 3.0)

    survey = Survey.of(Block(X, y, None), Needs(labels=True, range=True, totals=True, weigh=weigh))
    assert survey.totals.tolist() == [3.0, 3.0, 0.0]
    assert (survey.low[0], survey.high[0], survey.weight_sum) == (0.0, 1.0, 6.0)


def test_what_was_not_asked_for_is_not_computed():
    survey = Survey.of(Block(np.ones((2, 3)), np.arange(2), None), Needs(labels=True, range=False))
    assert survey.labels is None
    assert survey.totals is None
    assert (survey.low == np.inf).all()
    assert (survey.high == -np.inf).all()
