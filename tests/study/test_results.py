"""How numbers vary over splits and draws, against simulations and scipy."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support.studies import SYMMETRIC, results, rows

from study.protocol import Variant
from study.results import Row, Spread, difference, log_ratio, paired, percentile


def spread_of(numbers):
    """The spread of numbers by (split, draw)."""
    return Spread.of(series(numbers))


def series(numbers):
    return pd.Series(numbers, dtype=float).rename_axis(["split", "draw"])


def simulated(rng, n_splits, n_draws, between, within, center=0.0):
    """Numbers with known variances between splits and between draws."""
    means = center + between * rng.standard_normal(n_splits)
    draws = means[:, None] + within * rng.standard_normal((n_splits, n_draws))
    return {(split, draw): float(draws[split, draw]) for split in range(n_splits) for draw in range(n_draws)}


def test_components_of_variance_are_recovered():
    spread = spread_of(simulated(np.random.default_rng(0), 4000, 3, between=2.0, within=3.0))
    assert spread.within == pytest.approx(9.0, rel=0.05)
    # A mean over fifty draws on one more split varies by 2² + 3²/50, our means over three by 2² + 3²/3.
    assert np.var(spread.means) == pytest.approx(7.0, rel=0.06)
    assert np.var(spread.predicted) == pytest.approx(4.0 + 9.0 / 50, rel=0.06)
    assert np.mean(spread.predicted) == pytest.approx(np.mean(spread.means))


def test_with_fifty_draws_the_means_stay():
    spread = spread_of(simulated(np.random.default_rng(1), 40, 50, between=1.0, within=1.0))
    np.testing.assert_allclose(spread.predicted, spread.means, rtol=1e-9)


def test_positive_errors_stay_within_their_range():
    # Half of the splits have an outlier among the test rows: error and noise are ten times larger.
    rng = np.random.default_rng(2)
    numbers = {
        (s, d): float((30 if s % 2 else 3) * np.exp(0.1 * rng.standard_normal())) for s in range(100) for d in range(3)
    }
    spread = spread_of(numbers)
    means = np.array(spread.means)
    assert spread.positive
    assert means.min() <= spread.predicted.min() < 3 < 30 < spread.predicted.max() <= means.max()
    assert not spread_of({**numbers, (0, 0): 0.0}).positive


@pytest.mark.parametrize("n_draws", [2, 3, 50])
def test_the_typical_deviation_is_unbiased_by_few_draws_and_outliers(n_draws):
    rng = np.random.default_rng(3)
    numbers = simulated(rng, 3000, n_draws, between=1.0, within=0.5, center=100.0)
    assert spread_of(numbers).typical_deviation == pytest.approx(0.5, rel=0.06)
    for place in numbers:  # one split in ten varies a hundred times as much
        if place[0] % 10 == 0:
            numbers[place] = 100.0 + 90.0 * rng.uniform(-1, 1)
    assert spread_of(numbers).typical_deviation == pytest.approx(0.5, rel=0.25)


def test_the_typical_deviation_of_counts_is_pooled():
    numbers = {(0, 0): 0.0, (0, 1): 0.0, (1, 0): 0.0, (1, 1): 2.0}
    assert spread_of(numbers).typical_deviation == pytest.approx(1.0)
    assert spread_of({(0, 0): 1.0, (1, 0): 2.0}).typical_deviation is None


@pytest.mark.parametrize("n", [12, 400])
def test_a_perfect_reproduction_has_even_percentiles(n):
    rng = np.random.default_rng(4)
    found = [percentile(float(rng.standard_normal()), rng.standard_normal(n)) for _ in range(800)]
    assert stats.kstest(found, stats.uniform(0, 100).cdf).pvalue > 1e-3


def test_percentiles_of_few_values_are_students():
    values = np.array([1.0, 2.0, 4.0, 5.0])
    scale = values.std(ddof=1) * np.sqrt(1 + 1 / 4)
    assert percentile(7.0, values) == pytest.approx(100 * stats.t.cdf((7 - 3) / scale, 3))
    same = np.full(5, 2.0)
    assert [percentile(x, same) for x in (1.0, 2.0, 3.0)] == [0.0, 50.0, 100.0]
    assert percentile(2.004, same, 0.005) == 50.0


def test_rounding_moves_a_number_towards_the_median_and_not_beyond():
    values = np.arange(100.0)
    assert percentile(10.5, values) == pytest.approx(100 * 11.5 / 101)
    assert percentile(10.0, values) == pytest.approx(100 * 11.5 / 101)  # a tie counts for the median's side
    assert percentile(-0.4, values, 0.5) == pytest.approx(100 * 1.5 / 101)
    assert percentile(60.0, values, 30.0) == 50.0
    assert percentile(-5.0, values) == pytest.approx(50 / 101)
    assert percentile(50.0, np.full(60, 50.0)) == 50.0  # ties


def test_each_split_of_ours_is_judged_by_the_others():
    spread = spread_of({(split, 0): float(split) for split in range(60)})
    own = spread.percentiles_of_own()
    assert own[0] == pytest.approx(50 / 60)
    assert own[59] == pytest.approx(100 - 50 / 60)
    assert own[30] == pytest.approx(100 * 30.5 / 60)
    assert spread_of({(0, 0): 1.0, (1, 0): 2.0}).percentiles_of_own().empty


def test_ratios_are_of_split_means_and_vary_as_the_draws_do():
    a, b = {(0, 0): 2.0, (0, 1): 4.0, (1, 0): 8.0}, {(0, 0): 1.0, (0, 1): 1.0, (2, 0): 5.0}
    ratio = log_ratio(*paired(series(a), series(b)))
    assert list(ratio.means.index) == [0]
    assert ratio.means[0] == pytest.approx(np.log(3.0))
    assert ratio.numbers[0, 1] - ratio.numbers[0, 0] == pytest.approx(4 / 3 - 2 / 3)
    assert not ratio.positive
    assert log_ratio(spread_of({(0, 0): 0.0}), spread_of({(0, 0): 1.0})).numbers.empty


def test_differences_are_draw_by_draw_where_both_have_a_finite_number():
    a = series({(0, 0): 3.0, (0, 1): 5.0, (1, 0): 1.0, (2, 0): np.inf})
    b = series({(0, 0): 1.0, (0, 1): 1.0, (1, 1): 2.0, (2, 0): 1.0})
    assert difference(*paired(a, b)).numbers.to_dict() == {(0, 0): 2.0, (0, 1): 4.0}


def test_numbers_that_are_not_finite_are_left_out():
    assert spread_of({(0, 0): float("nan"), (0, 1): 1.0, (1, 0): float("inf")}).numbers.to_dict() == {(0, 1): 1.0}


def test_a_case_that_was_not_run_has_no_numbers():
    found = results(rows("iris", 50, "ocrep", 2.0, n_splits=1, n_draws=1))
    assert found.numbers("fixed", "iris", SYMMETRIC, 50, "ocrep").to_dict() == {(0, 0): 2.0}
    for case in (("fixed", "wine", SYMMETRIC, 50, "ocrep"), ("fixed", "iris", Variant("unit"), 50, "ocrep")):
        assert found.numbers(*case).empty
        assert Spread.of(found.numbers(*case)).percentile(1.0) is None


def test_means_along_sizes_leave_out_places_without_a_finite_number():
    errors = {10: (1.0, 3.0), 20: (np.inf, 1.0), 30: (5.0, 5.0), 40: (None, 1.0)}
    parts = [
        ("path", "iris", "symmetric", 0, draw, Row(size, "ocrep", "raw", error=error))
        for size, both in errors.items()
        for draw, error in enumerate(both)
    ]
    curve = results(parts).along_sizes("iris", SYMMETRIC, "ocrep")
    np.testing.assert_allclose([curve.at, curve.mean, curve.std], [[10, 30], [2, 5], [np.sqrt(2), 0]])
    assert (curve.n_draws, curve.best) == (2, 0)


def test_rows_are_stored_with_the_digits_of_float32():
    row = Row(5, "ocrep", "raw", error=1 / 3, gamma=None)
    assert row.packed() == [5, "ocrep", "raw", 0.3333333, None, None, None]
