"""The split of a file: exact shares, a permutation as its core, the same for every cutting into blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocrep._files.formats import DataError
from ocrep.tables.split import Split, permuted


@given(st.integers(1, 5000), st.integers(0, 2**32 - 1))
def test_a_permutation_of_every_size(size, key):
    numbers = np.arange(size)
    places = permuted(numbers, np.full(size, size), np.full(size, key))
    assert sorted(places) == list(numbers)


def test_each_number_is_as_likely_at_each_place():
    """χ² of 20 × 20 cells over 2,000 keys: 99.99 % of uniform permutations stay below."""
    keys = np.arange(2000)
    counts = np.zeros((20, 20))
    for number in range(20):
        np.add.at(counts[number], permuted(np.full(2000, number), np.full(2000, 20), keys), 1)
    assert np.sum((counts - 100) ** 2 / 100) < 468


def mask(split, classes, cuts=()):
    held_out = split.begin()
    return np.concatenate([held_out(part) for part in np.split(np.asarray(classes), cuts)])


def test_strata_of_one_file_do_not_share_a_permutation():
    split = Split.of(np.array([500, 500]), 0.5, seed=0)
    held_out = mask(split, [0, 1] * 500)
    assert 200 < np.sum(held_out[::2] == held_out[1::2]) < 300


@given(st.lists(st.integers(0, 3), min_size=20, max_size=200), st.data())
def test_how_rows_are_cut_does_not_matter(classes, data):
    counts = np.bincount(classes, minlength=4)
    counts = counts[counts > 0]
    classes = np.unique(classes, return_inverse=True)[1]
    split = Split.of(counts, 0.3, seed=1)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(classes)), max_size=5)))
    whole = mask(split, classes)
    np.testing.assert_array_equal(mask(split, classes, cuts), whole)
    assert whole.sum() == int(np.ceil(0.3 * len(classes)))


def test_shares_are_kept_where_they_can():
    y = np.array([0] * 20 + [1] * 10)
    held_out = mask(Split.of(np.bincount(y), 0.3, 0), y)
    assert np.bincount(y[held_out]).tolist() == [6, 3]
    rare = np.array([0] * 20 + [1] * 5 + [2])
    masks = [mask(Split.of(np.bincount(rare), 0.3, seed), rare) for seed in range(5)]
    for held_out in masks:
        assert not held_out[-1]  # the only row of a class is trained on
        assert np.bincount(rare[held_out]).tolist() == [6, 2]
    assert len({tuple(held_out) for held_out in masks}) == 5


def test_more_classes_than_rows_of_one_part_are_not_stratified():
    y = np.repeat(np.arange(10), 2)
    for seed in range(5):
        assert mask(Split.of(np.bincount(y), 0.2, seed), y).sum() == 4


def test_parts_that_would_be_too_small():
    with pytest.raises(DataError, match=r"A test part of 0\.3 leaves too few of 12 rows"):
        Split.of(np.array([3, *[1] * 9]), 0.3, 0)
    with pytest.raises(DataError, match="too few of 40 rows"):
        Split.of(np.array([40]), 0.99, 0)
