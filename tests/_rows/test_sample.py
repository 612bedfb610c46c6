"""Samples of rows: cut anywhere and merged in any order they are the sample of the whole."""

from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from support.device import on_device

from ocrep._rows.block import Block
from ocrep._rows.survey import RowSample

NAMES = np.array(["a", "bc", "d"])


def rows(kind, n=80, seed=0):
    """Inputs of few values, so that rows repeat, with targets of a kind and whole weights."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, n)
    y = {"texts": NAMES[codes], "numbers": codes / 4.0, "labels": codes, "several": codes[:, None] * [1.0, 2.0]}
    return rng.integers(-2, 3, (n, 3)).astype(float), y[kind], rng.integers(0, 3, n).astype(float)


def sample(X, y, weight=None, size=30, **options):
    labels = isinstance(y, np.ndarray) and y.dtype.kind in "iuUO"
    return RowSample.of(Block(X, y, weight), size, weight, labels=labels, **options)


def assert_same(one, other):
    np.testing.assert_array_equal(one.hashes, other.hashes)
    dense = [part.X.toarray() if sparse.issparse(part.X) else part.X for part in (one, other)]
    np.testing.assert_array_equal(*dense)
    np.testing.assert_array_equal(one.y, other.y)
    np.testing.assert_array_equal(one.weight, other.weight)


@settings(deadline=None)
@given(
    kind=st.sampled_from(["texts", "numbers", "labels", "several"]),
    cuts=st.lists(st.integers(0, 80), max_size=8),
    seed=st.integers(0, 99),
    size=st.sampled_from([1, 7, 30, 1000]),
    make=st.sampled_from([np.asarray, sparse.csr_array]),
)
def test_any_cutting_and_order_gives_the_sample_of_the_whole(kind, cuts, seed, size, make):
    X, y, w = rows(kind, seed=seed)
    parts = [sample(make(X[a:b]), y[a:b], w[a:b], size) for a, b in pairwise([0, *sorted(cuts), 80])]
    parts = [parts[i] for i in np.random.default_rng(seed).permutation(len(parts))]
    whole = sample(X, y, w, size)
    assert_same(reduce(RowSample.merge, parts), whole)
    assert len(whole.hashes) == min(size, len(np.unique(np.column_stack([X, y])[w > 0].astype(str), axis=0)))


@settings(deadline=None)
@given(
    kind=st.sampled_from(["texts", "labels", "several"]),
    cuts=st.lists(st.integers(0, 80), max_size=8),
    seed=st.integers(0, 99),
    size=st.sampled_from([1, 7, 30, 1000]),
)
def test_every_label_is_kept_by_any_cutting_and_order(kind, cuts, seed, size):
    X, y, w = rows(kind, seed=seed)
    if kind == "several":
        y = (y > 1.0).astype(float)
    parts = [sample(X[a:b], y[a:b], w[a:b], size, every_label=True) for a, b in pairwise([0, *sorted(cuts), 80])]
    parts = [parts[i] for i in np.random.default_rng(seed).permutation(len(parts))]
    whole = sample(X, y, w, size, every_label=True)
    assert_same(reduce(RowSample.merge, parts), whole)
    assert_same(whole.first(size), sample(X, y, w, size))
    assert_same(sample(X, y, w, 1000, every_label=True).first(size, every_label=True), whole)
    columns, found = (part.reshape(len(part), -1).T for part in (y[w > 0], whole.y))
    assert [set(column) for column in columns] == [set(column) for column in found]


@pytest.mark.parametrize("kind", ["texts", "numbers", "labels", "several"])
def test_it_holds_each_distinct_row_once_with_all_its_weight(kind):
    X, y, w = rows(kind)
    found = sample(X, y, w, 1000)
    for x, target, weight in zip(found.X, found.y, found.weight, strict=True):
        same = (x == X).all(axis=1) & (y == target if y.ndim == 1 else (y == target).all(axis=1))
        assert weight == w[same].sum() > 0
    assert found.weight.sum() == w.sum()


def test_every_row_is_as_likely():
    """Among rows whose numbers have an order, the sample is spread evenly."""
    X = np.arange(5000.0)[:, None]
    found = sample(X, X[:, 0], size=500).X[:, 0]
    assert len(found) == 500
    assert stats.kstest(found / 5000, "uniform").pvalue > 0.01


def test_labels_of_several_types_are_the_same_rows():
    X, y, _ = rows("labels")
    for other in (y.astype(float), y.astype(np.uint8)):
        np.testing.assert_array_equal(
            RowSample.of(Block(X, other, None), 9, None, labels=True).X, sample(X, y, size=9).X
        )
    texts = NAMES[y]
    np.testing.assert_array_equal(sample(X, texts.astype(object), size=9).X, sample(X, texts, size=9).X)
    assert set(sample(X, texts, size=9).hashes) != set(sample(X, NAMES[(y + 1) % 3], size=9).hashes)


def test_rows_on_a_device_give_the_sample_of_the_host():
    X, y, w = rows("numbers")
    device = sample(on_device(X), on_device(y), on_device(w))
    assert isinstance(device.X, np.ndarray)
    assert_same(device, sample(X, y, w))


def test_many_inputs_make_it_smaller():
    X = np.arange(1200.0)[:, None] * np.ones(20_000)
    assert len(RowSample.of(Block(X, None, None), 10_000, None, labels=False).hashes) == 1000


def test_there_may_be_no_rows_and_no_targets():
    X, y, w = rows("numbers")
    nothing = sample(X[:0], y[:0])
    assert_same(nothing.merge(sample(X, y, w)), sample(X, y, w))
    assert len(sample(X, y, 0.0 * w).hashes) == 0
    without = sample(X[:40], None).merge(sample(X[40:], None))
    assert without.y is None
    assert_same(without, sample(X, None))
