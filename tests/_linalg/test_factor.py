"""The factor: one answer however the rows arrive, and as many digits as float64 can give."""

import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import augmented_solution, random_problem, with_condition, with_spectrum

from ocrep import Factor, rules

EPS = np.finfo(float).eps
shapes = pytest.mark.parametrize(
    ("n_rows", "n_features"),
    [(60, 8), (9, 8), (8, 8), (5, 8), (1, 8)],
    ids=["tall", "9x8", "square", "wide", "one row"],
)


@shapes
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("n_targets", [1, 3])
def test_factor_reproduces_the_cross_products(n_rows, n_features, n_targets, intercept):
    H, T = random_problem(n_rows, n_features, n_targets)
    factor = Factor.of(H, T, intercept=intercept)
    rows = np.hstack([np.ones((n_rows, int(intercept))), np.hstack([H, T]) - factor.counts.shift])
    R, QtT, left = factor.triangle.R, factor.triangle.QtT, factor.triangle.left
    expected, k = rows.T @ rows, rows.shape[1] - n_targets
    np.testing.assert_allclose(R.T @ np.hstack([R, QtT]), expected[:k], atol=1e-12 * n_rows)
    np.testing.assert_allclose((QtT**2).sum(0) + left**2, np.diag(expected)[k:], atol=1e-12 * n_rows)
    assert R.shape == (min(n_rows, k), k)
    assert np.array_equal(R, np.triu(R))
    assert (factor.n_features, factor.counts.n_targets, factor.counts.n_rows) == (n_features, n_targets, n_rows)


@shapes
@pytest.mark.parametrize("gamma", [1e-6, 1.0])
def test_weights_solve_the_augmented_system(n_rows, n_features, gamma):
    H, T = random_problem(n_rows, n_features, n_targets=2)
    W = Factor.of(H, T).spectrum().weights(gamma)
    np.testing.assert_allclose(W, augmented_solution(H, T, gamma), rtol=1e-9, atol=1e-11)


@shapes
def test_without_regularization_the_weights_are_the_pseudoinverse(n_rows, n_features):
    H, T = random_problem(n_rows, n_features)
    np.testing.assert_allclose(Factor.of(H, T).spectrum().weights(0.0), np.linalg.pinv(H) @ T, rtol=1e-9)


def test_rank_deficient_rows_give_the_minimum_norm_solution():
    H = with_spectrum([3.0, 2.0, 1.0, 0.0, 0.0], 30)
    T = np.random.default_rng(0).standard_normal((30, 2))
    spectrum = Factor.of(H, T).spectrum()
    assert spectrum.rank == 3
    np.testing.assert_allclose(spectrum.weights(0.0), np.linalg.pinv(H, rcond=1e-10) @ T, rtol=1e-9, atol=1e-13)


def test_wide_problems_stay_as_small_as_their_rows():
    factor = Factor.of(np.random.default_rng(0).standard_normal((20, 5000)), np.ones(20))
    assert factor.triangle.R.shape == (20, 5000)
    assert factor.spectrum().Vt.shape == (20, 5000)


@given(
    cuts=st.lists(st.integers(0, 120), max_size=6),
    order=st.randoms(use_true_random=False),
    log_kappa=st.floats(2, 10),
    intercept=st.booleans(),
)
def test_any_split_and_any_order_of_merging_give_the_same_gamma(cuts, order, log_kappa, intercept):
    H = with_condition(10.0**log_kappa)
    T = np.random.default_rng(1).standard_normal((120, 2))
    whole = Factor.of(H, T, intercept=intercept).spectrum()
    edges = [0, *sorted(cuts), 120]
    parts = [Factor.of(H[a:b], T[a:b], intercept=intercept) for a, b in itertools.pairwise(edges)]
    while len(parts) > 1:
        order.shuffle(parts)
        parts.append(parts.pop().merge(parts.pop()))
    merged = parts[0].spectrum()
    kappa = float(whole.condition())
    gamma, gamma_merged = (rules.OCReP(floor=0.0).choose(s).gamma for s in (whole, merged))
    assert abs(gamma_merged / gamma - 1) <= 100 * EPS * kappa
    np.testing.assert_allclose(merged.residual, whole.residual, rtol=100 * EPS * kappa)
    np.testing.assert_allclose(merged.intercept(1.0), whole.intercept(1.0), atol=1e-12)
    assert merged.n == whole.n


def test_fold_and_absorb_equal_of():
    H, T = random_problem(50, 6, 2)
    w = np.random.default_rng(0).uniform(0, 2, 50)
    for intercept in (False, True):
        whole = Factor.of(H, T, sample_weight=w, intercept=intercept)
        blocks = [(H[a : a + 7], T[a : a + 7], w[a : a + 7]) for a in range(0, 50, 7)]
        folded = Factor.fold(blocks, intercept=intercept)
        resumed = Factor.fold(blocks[3:], start=Factor.fold(blocks[:3], intercept=intercept))
        for other in (folded, resumed):
            np.testing.assert_allclose(other.spectrum().weights(0.5), whole.spectrum().weights(0.5), rtol=1e-11)
            np.testing.assert_allclose(other.spectrum().intercept(0.5), whole.spectrum().intercept(0.5), rtol=1e-10)
            assert other.counts.n_rows == whole.counts.n_rows
            assert other.counts.weight_sum == pytest.approx(whole.counts.weight_sum)


@pytest.mark.parametrize("intercept", [False, True])
def test_whole_weights_equal_repeated_rows(intercept):
    H, T = random_problem(25, 4, 2)
    w = np.random.default_rng(0).integers(0, 4, 25)
    weighted = Factor.of(H, T, sample_weight=w, intercept=intercept)
    repeated = Factor.of(np.repeat(H, w, axis=0), np.repeat(T, w, axis=0), intercept=intercept)
    assert weighted.counts.n == repeated.counts.n == w.sum()
    for gamma in (0.0, 0.7):
        a, b = weighted.spectrum(), repeated.spectrum()
        np.testing.assert_allclose(a.sigma, b.sigma, rtol=1e-12)
        np.testing.assert_allclose(a.weights(gamma), b.weights(gamma), rtol=1e-10)
        np.testing.assert_allclose(a.intercept(gamma), b.intercept(gamma), rtol=1e-10)
        np.testing.assert_allclose(a.rss(gamma), b.rss(gamma), rtol=1e-10)


def test_other_weights_count_rows_and_do_not_depend_on_their_unit():
    H, T = random_problem(25, 4)
    w = np.random.default_rng(0).uniform(0.1, 2, 25)
    w[:5] = 0.0
    one, thousand = (Factor.of(H, T, sample_weight=c * w) for c in (1.0, 1000.0))
    assert one.counts.n == thousand.counts.n == one.counts.n_rows == 20
    gcv = rules.GCV()
    a, b = gcv.choose(one.spectrum()).gamma, gcv.choose(thousand.spectrum()).gamma
    np.testing.assert_allclose(b, 1000 * a, rtol=1e-5)


def test_an_intercept_keeps_the_digits_of_columns_far_from_zero():
    rng = np.random.default_rng(0)
    H, noise = rng.standard_normal((200, 3)), rng.standard_normal(200)
    far_H, T = H + 2.0**30, H @ [1.0, 2.0, 3.0] + noise + 2.0**30
    H_exact, T_exact = far_H - 2.0**30, T - 2.0**30
    near = Factor.of(H_exact, T_exact, intercept=True).spectrum()
    whole = Factor.of(far_H, T, intercept=True)
    merged = Factor.of(far_H[:50], T[:50], intercept=True).merge(Factor.of(far_H[50:], T[50:], intercept=True))
    for far in (whole.spectrum(), merged.spectrum()):
        np.testing.assert_allclose(far.sigma, near.sigma, rtol=1e-12)
        np.testing.assert_allclose(far.weights(0.0), near.weights(0.0), rtol=1e-11)


@pytest.mark.parametrize("log_kappa", [2, 4, 6, 8, 10, 12])
@pytest.mark.parametrize("route", ["whole", "streamed", "merged"])
def test_smallest_singular_value_against_higher_precision(log_kappa, route):
    H = with_condition(10.0**log_kappa, n_rows=60, n_columns=8)
    T = np.zeros(60)
    blocks = [(H[a : a + 13], T[a : a + 13]) for a in range(0, 60, 13)]
    factor = {
        "whole": lambda: Factor.of(H, T),
        "streamed": lambda: Factor.fold(blocks),
        "merged": lambda: Factor.of(H[:30], T[:30]).merge(Factor.of(H[30:], T[30:])),
    }[route]()
    with mpmath.workdps(60):
        exact = mpmath.svd_r(mpmath.matrix(H.tolist()), compute_uv=False)
        kappa = float(exact[0] / exact[7])
        error = abs(mpmath.mpf(factor.spectrum().smallest) / exact[7] - 1)
    assert float(error) <= 100 * EPS * kappa


def test_a_tiny_residual_keeps_its_digits():
    # Noise of 1e-8 of the signal: ‖T‖² − ‖UᵀT‖² would have none left.
    rng = np.random.default_rng(0)
    H = rng.standard_normal((80, 5))
    U = np.linalg.svd(H)[0]
    noise = 1e-8 * U[:, 5]
    T = H @ np.ones(5) + noise
    np.testing.assert_allclose(Factor.of(H, T).spectrum().rss(0.0), 1e-16, rtol=1e-6)


def test_empty_blocks_change_nothing():
    H, T = random_problem(10, 3)
    empty = Factor.of(H[:0], T[:0], intercept=True)
    filled = Factor.of(H, T, intercept=True)
    for factor in (empty.merge(filled), filled.merge(empty), filled.absorb(H[:0], T[:0])):
        np.testing.assert_allclose(factor.spectrum().weights(0.1), filled.spectrum().weights(0.1), rtol=1e-12)
        assert factor.counts.n == 10


def test_an_empty_beginning_does_not_fix_the_shift():
    rng = np.random.default_rng(0)
    H = rng.standard_normal((60, 3)) + 2.0**27
    T = H @ np.ones(3) + rng.standard_normal(60)
    whole = Factor.of(H, T, intercept=True).spectrum().weights(0.0)
    empty, weightless = (H[:0], T[:0], None), (H[:5] + 1e9, T[:5], np.zeros(5))
    for first in (empty, weightless):
        folded = Factor.fold([first, (H[:30], T[:30], None), (H[30:], T[30:], None)], intercept=True)
        np.testing.assert_allclose(folded.spectrum().weights(0.0), whole, rtol=1e-11)
        begun = Factor.of(first[0], first[1], sample_weight=first[2], intercept=True)
        np.testing.assert_allclose(
            begun.merge(Factor.of(H, T, intercept=True)).spectrum().weights(0.0), whole, rtol=1e-11
        )


def test_duplicated_columns_have_rank_one_less_however_the_rows_arrive():
    for seed in range(20):
        Z = np.random.default_rng(seed).standard_normal((600, 2))
        H, T = np.hstack([Z, Z]), Z[:, 0]
        assert Factor.of(H, T).spectrum().rank == 2
        rows = Factor.fold((H[a : a + 3], T[a : a + 3]) for a in range(0, 600, 3))
        assert rows.spectrum().rank == 2


def test_one_block_of_fractions_makes_all_weights_precisions():
    H, T = random_problem(20, 3)
    whole, fractions = np.full(10, 2.0), np.full(10, 0.5)
    for first, second in ((whole, fractions), (fractions, whole)):
        factor = Factor.fold([(H[:10], T[:10], first), (H[10:], T[10:], second)])
        assert factor.counts.n == 20
    assert Factor.of(H, T, sample_weight=np.full(20, 2.0**60)).counts.n == 20


def test_lists_and_single_precision_are_taken_as_float64():
    H, T = random_problem(10, 3)
    from_lists = Factor.of(H.tolist(), T[:, 0].tolist())
    np.testing.assert_array_equal(from_lists.triangle.R, Factor.of(H, T).triangle.R)
    assert Factor.of(H.astype(np.float32), T).triangle.R.dtype == np.float64


def test_inputs_are_not_changed():
    H, T = random_problem(10, 3)
    w = np.full(10, 2.0)
    copies = H.copy(), T.copy(), w.copy()
    Factor.of(H, T, sample_weight=w, intercept=True).absorb(H, T, sample_weight=w)
    for now, before in zip((H, T, w), copies, strict=True):
        np.testing.assert_array_equal(now, before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda H, T: Factor.of(H, T[:-1]), "as many rows"),
        (lambda H, T: Factor.of(H[:, 0], T), "rows × features"),
        (lambda H, T: Factor.of(H, T, sample_weight=np.ones(3)), "one entry per row"),
        (lambda H, T: Factor.of(H, T, sample_weight=-np.ones(10)), "negative"),
        (lambda H, T: Factor.of(H, T, sample_weight=np.full(10, np.nan)), "NaN"),
        (lambda H, T: Factor.of(H, T, sample_weight=np.full(10, np.inf)), "infinite"),
        (lambda H, T: Factor.of(H * np.nan, T), "NaN or infinity"),
        (lambda H, T: Factor.of(H, T * np.inf, intercept=True), "NaN or infinity"),
        (lambda H, T: Factor.of(np.full_like(H, 1e308), T), "overflow"),
        (lambda H, T: Factor.of(H, T).absorb(H[:, :2], T), "same columns"),
        (lambda H, T: Factor.of(H, T).merge(Factor.of(H, np.hstack([T, T]))), "same columns"),
        (lambda H, T: Factor.of(H, T).merge(Factor.of(H, T, intercept=True)), "intercept"),
        (lambda H, T: Factor.fold([(H, T)], intercept=True, start=Factor.of(H, T)), "intercept"),
        (lambda H, T: Factor.fold([]), "no row blocks"),
    ],
)
def test_bad_rows_raise_with_a_reason(call, message):
    with pytest.raises(ValueError, match=message):
        call(*random_problem(10, 3))
