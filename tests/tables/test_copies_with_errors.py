"""Copies of the target with wrong cells, zeros or gaps are found; honest predictors, however strong, are not."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from ocrep.datasets import load
from ocrep.datasets import names as data_sets
from ocrep.tables.leaks import filler_tells, gaps_tell, has_order, is_code, is_copy, separates, tells_target

R = np.random.RandomState(0)
N = 1000
NUMBERS = R.lognormal(size=N)
CLASSES = R.randint(4, size=N).astype(float)
TWO = (R.uniform(size=N) < 0.3).astype(float)


OF_CLASSES = (is_code, separates, filler_tells)


def one_wrong(column, value=1e6):
    return np.where(np.arange(N) == 17, value, column)


def some_zeros(column, share=0.1):
    return np.where(np.random.RandomState(1).uniform(size=N) < share, 0.0, column)


@pytest.mark.parametrize("spoil", [one_wrong, some_zeros], ids=["one wrong cell", "zeros"])
@pytest.mark.parametrize(
    ("leaks", "column", "y"),
    [
        (is_copy, NUMBERS, NUMBERS),
        (is_copy, 3.0 - 2e9 * NUMBERS, NUMBERS),
        (is_copy, NUMBERS.round(3), NUMBERS),
        (has_order, np.log(NUMBERS), NUMBERS),
        (has_order, -(NUMBERS**3), NUMBERS),
        (is_code, CLASSES, CLASSES),
        (is_code, 7.0 - CLASSES, CLASSES),
        (is_code, TWO, TWO),
        (is_code, 1.0 + TWO, TWO),
    ],
)
def test_a_copy_with_errors_is_found(leaks, column, y, spoil):
    assert leaks(column, y)
    assert leaks(spoil(column), y)


def test_a_text_with_one_wrong_target_is_found(rng):
    assert tells_target(rng.integers(50, size=N) * 4.0 + one_wrong(CLASSES, 2.0), CLASSES)
    assert not tells_target(rng.integers(50, size=N), CLASSES)


@pytest.mark.parametrize("filled", [1.0, 0.9])
@pytest.mark.parametrize("y", [TWO, CLASSES], ids=["two classes", "four"])
def test_a_column_that_is_filled_in_for_one_class_only_is_found(y, filled, rng):
    given = (y == 1.0) & (rng.uniform(size=N) < filled)
    assert gaps_tell(~given, y)
    assert gaps_tell(given, y)
    assert gaps_tell(np.where(np.arange(N) == 17, given, ~given), y) == (filled == 1.0)


def wrong_in(n_rows, n_wrong, n_others):
    """Two classes, the second of so many rows, and a column of them with so many wrong rows of each class in turn."""
    y = np.arange(n_rows) < n_others
    column = y.astype(float)
    places = [n_others + k // 2 if k % 2 else k // 2 for k in range(n_wrong)]
    column[places] = 1.0 - column[places]
    return column, y


@pytest.mark.parametrize(
    ("n_rows", "n_wrong", "n_others", "told"),
    [
        (600, 2, 300, True),
        (600, 2, 40, True),
        (600, 2, 19, False),
        (600, 4, 40, False),
        (80, 1, 30, False),
        (20_000, 40, 1000, True),
        (20_000, 40, 60, False),
    ],
)
def test_a_few_wrong_rows_are_a_few_of_the_rarer_class_too(n_rows, n_wrong, n_others, told):
    column, y = wrong_in(n_rows, n_wrong, n_others)
    noise = 0.1 * np.random.RandomState(2).uniform(size=n_rows)
    assert gaps_tell(column == 0.0, y) == told
    assert separates(column + noise, y) == told
    assert tells_target(column, y) == told


def test_the_same_text_in_all_rows_does_not_tell_of_a_rare_class():
    assert not tells_target(np.zeros(50_000), np.arange(50_000) < 40)


@pytest.mark.parametrize("spoil", [np.asarray, one_wrong])
def test_limits_between_classes_are_found(spoil, rng):
    noise = 0.1 * rng.normal(size=N)
    for column, y in ((CLASSES, CLASSES), (-CLASSES, CLASSES), (np.exp(CLASSES), 3.0 - CLASSES), (TWO, TWO)):
        assert separates(spoil(column + noise), y)


def test_limits_between_classes_are_not_found_by_chance(rng):
    """Of 2,000 columns of noise not one, also where a perfect limit takes only five rows at an end."""
    for n_rows in (20, 30, 100):
        for n_others in (5, n_rows // 2):
            y = np.arange(n_rows) < n_others
            assert not any(separates(rng.normal(size=n_rows), y) for _ in range(2000))
    assert not separates(np.arange(12.0), np.arange(12) // 6)
    assert not separates(np.arange(50.0), np.arange(50))
    assert separates(np.arange(60.0), np.arange(60) // 30)


def test_equal_numbers_of_several_classes_have_no_limit_between_them(rng):
    assert not separates(np.zeros(N), TWO)
    assert not separates(np.minimum(CLASSES, 2.0) + 0.0, CLASSES)
    assert not separates((rng.uniform(size=N) < 0.05).astype(float), TWO)


@pytest.mark.parametrize("filler", [0.0, -1.0, 50.0])
def test_a_number_that_stands_for_the_gaps_of_one_class_is_found(filler, rng):
    column = np.where(TWO == 1.0, rng.normal(50.0, 5.0, N), filler)
    assert filler_tells(column, TWO)
    assert filler_tells(one_wrong(column), TWO)
    assert filler_tells(np.where(rng.uniform(size=N) < 0.1, filler, column), TWO)
    assert filler_tells(np.where(rng.uniform(size=N) < 0.1, np.nan, column), TWO)
    assert not filler_tells(np.where(rng.uniform(size=N) < 0.3, filler, column), TWO)
    assert not filler_tells(rng.permutation(column), TWO)
    assert not filler_tells(column, CLASSES)


@pytest.mark.parametrize("noise", [0.05, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("spoil", [np.asarray, one_wrong, some_zeros])
def test_numbers_with_noise_are_honest(noise, spoil, rng):
    """Noise in all rows, in units of the target's deviation: R² is at most 0.9975."""
    y = rng.normal(size=N)
    column = spoil(y + noise * rng.normal(size=N))
    assert not is_copy(column, y)
    assert not has_order(column, y)


@pytest.mark.parametrize("share", [0.02, 0.05, 0.2])
def test_classes_with_noise_are_honest(share, rng):
    """Noise in so many rows of each class: 2 % of them are more than the few that a copy may have wrong."""
    for y in (TWO, CLASSES):
        levels = np.unique(y)
        wrong = np.concatenate([np.flatnonzero(y == one)[: round(share * np.sum(y == one))] for one in levels])
        column = y.copy()
        column[wrong] = levels[
            (np.searchsorted(levels, y[wrong]) + rng.integers(1, len(levels), len(wrong))) % len(levels)
        ]
        assert not is_code(column, y)
        assert not tells_target(column, y)
        for label in levels:
            assert not gaps_tell(column == label, y)


def test_what_is_mostly_the_same_number_is_honest(rng):
    """Two amounts that are zero in most rows agree there, and a rare event is no copy of the target."""
    y = np.where(rng.uniform(size=N) < 0.9, 0.0, NUMBERS)
    assert not is_copy(np.where(y > 0.0, rng.lognormal(size=N), 0.0), y)
    assert not is_code((rng.uniform(size=N) < 0.5 * TWO).astype(float), TWO)
    assert not gaps_tell(rng.uniform(size=N) < 0.3, TWO)


@pytest.mark.parametrize("name", sorted(set(data_sets()) - {"delta_ailerons"}))  # which is not bundled
def test_the_bundled_data_sets_are_honest(name):
    X, y = load(name, return_X_y=True)
    classes = y.dtype.kind not in "f"
    for column in np.asarray(X, dtype=np.float64).T:
        found = OF_CLASSES if classes else (is_copy, has_order)
        assert not any(tells(column, y) for tells in found)


def test_tables_whose_classes_are_learned_well_are_honest():
    for load_one in (load_breast_cancer, load_digits, load_wine):
        X, y = load_one(return_X_y=True)
        for column in X.T:
            assert not any(tells(column, y) for tells in OF_CLASSES)
