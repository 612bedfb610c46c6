"""The corrected paired t-test: its formula, its limits, and what it is for."""

import math

import numpy as np
import pytest
from scipy import stats

from ocrep.analysis.significance import corrected_paired_t_test


@pytest.fixture
def errors():
    rng = np.random.default_rng(0)
    common = rng.normal(5, 1, 20)
    return common + rng.normal(0.3, 0.5, 20), common + rng.normal(0, 0.5, 20)


def test_formula_by_hand():
    # d = 1, 2, 3: mean 2, variance 1; n_test/n_train = 3/7.
    found = corrected_paired_t_test([2.0, 4.0, 6.0], [1.0, 2.0, 3.0], test_share=0.3)
    t = 2 / math.sqrt(1 / 3 + 3 / 7)
    assert found.difference == pytest.approx(2)
    assert found.t == pytest.approx(t)
    # Student's t with 2 degrees of freedom has the closed distribution function 1/2 + t / (2 √(2 + t²)).
    assert found.p_value == pytest.approx(1 - t / math.sqrt(2 + t**2))
    assert found.n_splits == 3


def test_ordinary_paired_test_as_the_test_share_vanishes(errors):
    found = corrected_paired_t_test(*errors, test_share=1e-14)
    ordinary = stats.ttest_rel(*errors)
    assert found.t == pytest.approx(ordinary.statistic)
    assert found.p_value == pytest.approx(ordinary.pvalue)


@pytest.mark.parametrize("test_share", [0.1, 0.3, 0.5])
def test_t_is_the_ordinary_one_shrunk_by_the_overlap(errors, test_share):
    found = corrected_paired_t_test(*errors, test_share=test_share)
    ordinary = stats.ttest_rel(*errors)
    shrinkage = math.sqrt(1 + 20 * test_share / (1 - test_share))
    assert found.t == pytest.approx(ordinary.statistic / shrinkage)
    assert found.p_value > ordinary.pvalue


def test_exchanging_the_methods_changes_signs_only(errors):
    a, b = errors
    forth, back = corrected_paired_t_test(a, b, test_share=0.3), corrected_paired_t_test(b, a, test_share=0.3)
    assert back.difference == -forth.difference
    assert back.t == -forth.t
    assert back.p_value == forth.p_value


@pytest.mark.parametrize("scale", [1e-150, 1e-4, 1e6])
def test_the_unit_of_the_errors_does_not_matter(errors, scale):
    a, b = errors
    found = corrected_paired_t_test(scale * a, scale * b, test_share=0.3)
    expected = corrected_paired_t_test(a, b, test_share=0.3)
    assert found.difference == pytest.approx(scale * expected.difference)
    assert found.t == pytest.approx(expected.t)
    assert found.p_value == pytest.approx(expected.p_value)


def test_what_all_splits_have_in_common_does_not_matter(errors):
    a, b = errors
    hardness = np.random.default_rng(1).normal(0, 10, 20)
    found = corrected_paired_t_test(a + hardness, b + hardness, test_share=0.3)
    assert found.t == pytest.approx(corrected_paired_t_test(a, b, test_share=0.3).t)


def test_equal_errors_are_no_difference(errors):
    a, _ = errors
    for same in (a, np.zeros(20)):
        found = corrected_paired_t_test(same, same, test_share=0.3)
        assert (found.difference, found.t, found.p_value) == (0, 0, 1)


def test_rounding_is_no_difference(errors):
    a, _ = errors
    for b in (np.nextafter(a, np.inf), a * (1 + np.linspace(1, 2, 20) * 1e-14)):
        assert corrected_paired_t_test(a, b, test_share=0.3).p_value == 1


def test_the_same_difference_on_every_split_proves_nothing():
    # Of 36 test rows of each of two splits, one more is wrong.
    found = corrected_paired_t_test([2 / 36, 2 / 36], [1 / 36, 1 / 36], test_share=0.3)
    assert found.difference == pytest.approx(1 / 36)
    assert math.isnan(found.t)
    assert math.isnan(found.p_value)
    assert not found.p_value < 0.05


def equally_good_methods(rng, n_sets, n_splits, n_rows=100):
    """Test errors (sets × splits) of two regressions through the origin, y on x₁ and y on x₂.

    The two inputs play the same part in y = x₁ + x₂ + noise, so both methods have the same expected error.
    """
    X = rng.normal(size=(n_sets, n_rows, 2))
    y = X.sum(axis=2, keepdims=True) + rng.normal(size=(n_sets, n_rows, 1))
    errors = []
    for _ in range(n_splits):
        rows = rng.permutation(n_rows)
        test, train = rows[: 3 * n_rows // 10], rows[3 * n_rows // 10 :]
        slope = (X[:, train] * y[:, train]).sum(axis=1, keepdims=True) / (X[:, train] ** 2).sum(axis=1, keepdims=True)
        errors.append(((y[:, test] - X[:, test] * slope) ** 2).mean(axis=1))
    return np.moveaxis(np.array(errors), 2, 0).swapaxes(1, 2)


def test_noise_on_overlapping_splits_is_seldom_called_a_difference():
    a, b = equally_good_methods(np.random.default_rng(0), n_sets=1000, n_splits=20)
    ordinary = np.mean(stats.ttest_rel(a, b, axis=1).pvalue < 0.05)
    corrected = np.mean(
        [corrected_paired_t_test(*pair, test_share=0.3).p_value < 0.05 for pair in zip(a, b, strict=True)]
    )
    assert ordinary > 0.4
    assert corrected < 0.08


def test_a_real_difference_is_still_found():
    a, b = equally_good_methods(np.random.default_rng(0), n_sets=200, n_splits=20)
    found = [corrected_paired_t_test(2.5 * x, y, test_share=0.3) for x, y in zip(a, b, strict=True)]
    assert np.mean([result.p_value < 0.05 for result in found]) > 0.8


@pytest.mark.parametrize(
    ("a", "b", "test_share", "message"),
    [
        ([1.0], [2.0], 0.3, "at least 2 splits, not 1"),
        ([], [], 0.3, "at least 2 splits, not 0"),
        ([1.0, 2.0], [1.0, 2.0, 3.0], 0.3, "2 and 3 errors"),
        ([1.0, np.nan], [1.0, 2.0], 0.3, "must be finite"),
        ([1.0, 2.0], [np.inf, 2.0], 0.3, "must be finite"),
        (np.ones((3, 2)), np.ones((3, 2)), 0.3, "average layers first"),
        ([1.0, 2.0], [2.0, 1.0], 0.0, "test_share=0.0 must be above 0"),
        ([1.0, 2.0], [2.0, 1.0], 1.0, "test_share=1.0 must be above 0"),
        ([1.0, 2.0], [2.0, 1.0], np.nan, "test_share=nan must be above 0"),
    ],
)
def test_bad_input(a, b, test_share, message):
    with pytest.raises(ValueError, match=message):
        corrected_paired_t_test(a, b, test_share=test_share)
