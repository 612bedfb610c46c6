"""The fast routes to a factor against a full SVD, and the switch between them on both sides."""

import itertools
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import smooth_problem
from support.routes import factored, problem

from ocrep import Factor, PinvClassifier, PinvRegressor, TikhonovRegressor, rules
from ocrep._linalg.folds import FoldPlan
from ocrep._linalg.gram import (
    ALIKE_CONDITION,
    PROVED_CONDITION,
    REFINED_CONDITION,
    GramSums,
    PreconditionedSums,
    refined,
    shifted_root,
)
from ocrep._linalg.solve import ByFold
from ocrep._linalg.triangle import RESIDUAL_SHARE, Products, root

N, M, BLOCK = 3000, 24, 500


@pytest.fixture(autouse=True)
def _small_blocks(small_blocks):
    """So that the rows make several blocks: a single one is factored by reflections at once."""
    small_blocks(BLOCK * M)


def harmless_signal():
    """A target in the leading directions only, so that no weight is large."""
    return np.eye(M)[:, :1]


def refined_by_gram(H, T, *, intercept=False, size=BLOCK):
    """The spectrum by the second pass after a Gram matrix that proves too little: A·R₁⁻¹ with R₁ of that matrix."""
    first, *others = blocks = [(H[a : a + size], T[a : a + size], None) for a in range(0, len(H), size)]
    gram = GramSums.of(first, intercept=intercept)
    for block in others:
        gram = gram.add(block)
    R1 = shifted_root(gram.products)
    if R1 is None:
        return None
    sums = PreconditionedSums.about(R1, gram.counts)
    for block in blocks:
        sums = sums.add(block)
    found = refined(sums)
    return None if found is None else found[1]


@pytest.mark.parametrize("solver", ["auto", "qr"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kappa", [1e1, 1e3, 2e4, 1e6, 1e8])
def test_gamma_is_that_of_a_full_svd_on_every_route(kappa, intercept, solver):
    H, T = problem(kappa)
    spectrum = factored(H, T, intercept=intercept, solver=solver).spectrum_
    sigma = np.linalg.svd(H - H.mean(0) if intercept else H, compute_uv=False)
    np.testing.assert_allclose(spectrum.sigma[0] * spectrum.sigma[-1], sigma[0] * sigma[-1], rtol=1e-6)
    np.testing.assert_allclose(spectrum.sigma, sigma, rtol=1e-6)


@pytest.mark.parametrize("solver", ["auto", "qr"])
@pytest.mark.parametrize("noise", [1.0, 1e-2, 1e-5, 1e-8])
@pytest.mark.parametrize("kappa", [1e2, 2e4, 1e6, 1e8])
def test_the_residual_norm_is_right_to_1e10_of_the_targets(kappa, noise, solver):
    H, T = problem(kappa, left=noise**2 / (1 + noise**2))
    spectrum = factored(H, T, solver=solver).spectrum_
    expected = noise / np.sqrt(1 + noise**2)
    # The rows themselves are rounded, which moves the residual by ε·κ of the part that H explains.
    assert np.sqrt(spectrum.residual[0]) == pytest.approx(expected, abs=max(1e-10, 4e-16 * kappa))


@pytest.mark.parametrize("kappa", [1e1, 1e3, 1e7, 1e10])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_factor_carries_the_spectrum_that_was_proved(kappa, intercept):
    H, T = problem(kappa, n_targets=3)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, N)
    shifted = H + np.linspace(0, 1, M) * np.abs(H).max()
    model = factored(shifted, T, weight, intercept=intercept)
    factor, spectrum = model.factor_, model.spectrum_
    again = factor.spectrum()
    by_reflections = Factor.of(shifted, T, sample_weight=weight, intercept=intercept)
    exact = by_reflections.spectrum()
    tolerance = max(1e-7, 1e-13 * kappa)
    for other in (again, exact):
        np.testing.assert_allclose(other.sigma, spectrum.sigma, rtol=tolerance)
        # Rounding the rows alone moves the residual by up to ε·κ.
        np.testing.assert_allclose(other.residual, spectrum.residual, rtol=max(1e-9, 1e-17 * kappa))
        for gamma in (1e-4, 1e-2):
            np.testing.assert_allclose(other.weights(gamma), spectrum.weights(gamma), rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(other.intercept(gamma), spectrum.intercept(gamma), rtol=1e-7, atol=1e-9)
    for name in ("n", "n_rows", "weight_sum", "whole_weights", "n_targets"):
        assert getattr(factor.counts, name) == pytest.approx(getattr(by_reflections.counts, name))
    twice = factor.merge(factor).spectrum()
    np.testing.assert_allclose(twice.sigma, np.sqrt(2) * exact.sigma, rtol=tolerance)


@pytest.mark.parametrize(("times", "route"), [(0.8, "gram"), (1.2, "refined")])
def test_the_gram_matrix_is_taken_up_to_its_condition_and_not_beyond(times, route):
    H, T = problem(times * PROVED_CONDITION, signal=harmless_signal())
    assert factored(H, T).route_ == route


@pytest.mark.parametrize(("times", "route"), [(1.2, "gram"), (0.8, "refined")])
def test_the_gram_matrix_is_taken_down_to_its_residual_and_not_below(times, route):
    H, T = problem(10.0, left=times * RESIDUAL_SHARE, signal=harmless_signal())
    assert factored(H, T).route_ == route


def test_large_weights_make_the_residual_uncertain():
    smallest = np.eye(M)[:, -1:]
    assert factored(*problem(3e4, signal=harmless_signal())).route_ == "gram"
    assert factored(*problem(3e4, signal=smallest)).route_ == "refined"


@pytest.mark.parametrize(("times", "route"), [(0.3, "refined"), (3.0, "reflections")])
def test_the_first_block_preconditions_up_to_its_condition_and_not_beyond(times, route):
    H, T = problem(times * REFINED_CONDITION)
    assert factored(H, T).route_ == route


@pytest.mark.parametrize("kappa", [1e6, 1e8, 1e10, 1e11])
@pytest.mark.parametrize("intercept", [False, True])
def test_refined_singular_values_are_as_good_as_float64_can_hold(kappa, intercept):
    H, T = problem(kappa)
    model = factored(H, T, intercept=intercept)
    assert model.route_ == "refined"
    exact = np.linalg.svd(H - H.mean(axis=0) if intercept else H, compute_uv=False)
    for spectrum in (model.spectrum_, refined_by_gram(H, T, intercept=intercept)):
        np.testing.assert_allclose(spectrum.sigma[-1], exact[-1], rtol=200 * 2.2e-16 * kappa)


@pytest.mark.parametrize(("times", "enough"), [(0.3, True), (3.0, False)])
def test_refinement_stops_at_its_condition(times, enough):
    assert (refined_by_gram(*problem(times * REFINED_CONDITION)) is not None) == enough


@pytest.mark.parametrize(
    ("unlike", "route"), [(ALIKE_CONDITION / 10, "refined"), (10 * ALIKE_CONDITION, "reflections")]
)
def test_a_first_block_unlike_the_others_does_not_precondition(unlike, route):
    """One direction is `unlike` times as strong in the later blocks as the first block says."""
    H, T = problem(1e8)
    U, sigma, Vt = np.linalg.svd(H, full_matrices=False)
    later = np.where(np.arange(N) < BLOCK, 1.0, unlike)
    H = H + (later - 1.0)[:, None] * np.outer(U[:, -1] * sigma[-1], Vt[-1])
    model = factored(H, T)
    assert model.route_ == route
    np.testing.assert_allclose(model.spectrum_.sigma, np.linalg.svd(H, compute_uv=False), rtol=1e-6)


def test_a_target_that_the_first_block_fits_exactly_still_has_its_residual():
    H, T = problem(1e8)
    T[:BLOCK] = 0.0
    spectrum = factored(H, T).spectrum_
    residual = T - H @ np.linalg.lstsq(H, T, rcond=None)[0]
    np.testing.assert_allclose(spectrum.residual, (residual**2).sum(axis=0), rtol=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("sign", "route"), [(1.0, "refined"), (-1.0, "reflections")])
def test_a_first_block_with_targets_unlike_the_others_does_not_precondition(sign, route, intercept):
    """Rows that hardly count say how the targets depend on the features, rightly or wrongly."""
    H, _ = problem(1e8)
    rng = np.random.default_rng(1)
    T = H @ rng.standard_normal((M, 1))
    T += 1e-8 * np.linalg.norm(T) / N**0.5 * rng.standard_normal((N, 1))
    T[:BLOCK] *= sign
    weight = np.where(np.arange(N) < BLOCK, 1e-20, 1.0)
    model, by_reflections = (factored(H, T, weight, intercept=intercept, solver=s) for s in ("auto", "qr"))
    assert model.route_ == route
    difference = np.abs(np.sqrt(model.spectrum_.residual) - np.sqrt(by_reflections.spectrum_.residual))
    assert (difference <= 1e-10 * np.linalg.norm(T)).all()


@pytest.mark.parametrize("noise", [1e-8, 1e-2])
@pytest.mark.parametrize("kappa", [1e6, 1e8])
def test_a_target_that_needs_the_weakest_direction_has_its_residual_to_the_error_of_reflections(
    small_blocks, kappa, noise
):
    """The weights are κ, and so ε·κ is what any backward stable method may lose; 60 digits say what is right."""
    Q, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((200, 5)))
    H, T = Q[:, :4] * np.geomspace(1.0, 1.0 / kappa, 4), Q[:, 3] + noise * Q[:, 4]
    small_blocks(50 * 4)
    with mpmath.workdps(60):
        A, t = mpmath.matrix(H.tolist()), mpmath.matrix(T.tolist())
        exact = float(mpmath.norm(t - A * mpmath.lu_solve(A.T * A, A.T * t)))
    for spectrum in (factored(H, T).spectrum_, refined_by_gram(H, T, size=50)):
        if spectrum is not None:
            assert abs(spectrum.residual[0] ** 0.5 - exact) <= 1e-10 + 2.2e-16 * kappa


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("kappa", [1e6, 1e8])
def test_a_target_that_fits_keeps_its_residual_next_to_one_that_does_not(kappa, order):
    H, noise = problem(kappa, signal=np.eye(M)[:, :3], n_targets=3)
    signal = H @ np.random.default_rng(1).standard_normal((M, 3))
    T = np.hstack([noise, signal + 1e-9 * np.linalg.norm(signal) * noise[:, ::-1], 0.0 * noise, noise])[:, ::order]
    exact = factored(H, T, solver="qr").spectrum_
    for spectrum in (factored(H, T).spectrum_, refined_by_gram(H, T)):
        difference = np.abs(np.sqrt(spectrum.residual) - np.sqrt(exact.residual))
        assert (difference <= 1e-12 * np.linalg.norm(T, axis=0)).all()


def test_the_root_leaves_of_a_target_what_is_more_than_its_rounding():
    noisy = 2.2e-15
    FT, TT = np.array([[1.0, 0.0, 1.0]]), np.array([1.0 + noisy, 1.0, 1.0 + 2.2e-16])
    triangle = root(Products(np.array([[1.0]]), FT, TT))
    np.testing.assert_allclose(triangle.QtT, [[1.0, 0.0, 1.0]])
    np.testing.assert_allclose(triangle.left, [noisy**0.5, 1.0, 0.0], rtol=0.1)
    assert triangle.left[2] == 0.0


def test_a_single_block_is_factored_by_reflections_at_once(small_blocks):
    small_blocks(2**21)
    H, T = problem(10.0)
    model = factored(H, T)
    assert model.route_ == "reflections"
    np.testing.assert_allclose(model.spectrum_.sigma, Factor.of(H, T).spectrum().sigma, rtol=1e-13)


@pytest.mark.parametrize("change", [lambda H: H[:, [0, *range(M - 1)]], lambda H: H * (np.arange(M) > 0)])
def test_dependent_and_empty_features_end_at_reflections_with_their_rank(change):
    H, T = problem(10.0)
    H = change(H)
    model = factored(H, T)
    assert model.route_ == "reflections"
    spectrum = model.spectrum_
    assert spectrum.rank == M - 1
    np.testing.assert_allclose(spectrum.weights(0.0), np.linalg.pinv(H) @ T, atol=1e-12)


@pytest.mark.parametrize("kappa", [1e1, 1e7])
def test_targets_may_depend_on_each_other_or_be_zero(kappa):
    H, T = problem(kappa, n_targets=2)
    T = np.column_stack([T, T.sum(axis=1), 0 * T[:, 0]])
    model = factored(H, T, intercept=True)
    factor, spectrum = model.factor_, model.spectrum_
    exact = Factor.of(H, T, intercept=True)
    np.testing.assert_allclose(spectrum.residual, exact.spectrum().residual, rtol=1e-9, atol=1e-15)
    W, b = spectrum.weights(1e-3), spectrum.intercept(1e-3)
    np.testing.assert_allclose(factor.squared_error_by_target(W, b), exact.squared_error_by_target(W, b), rtol=1e-9)


@given(
    st.floats(-60, 60),
    st.floats(-60, 60),
    st.sampled_from([1e1, 1e7]),
    st.booleans(),
)
def test_units_of_features_and_targets_do_not_matter(features, targets, kappa, intercept):
    H, T = problem(kappa)
    one = factored(H, T, intercept=intercept).spectrum_
    other = factored(H * 10.0**features, T * 10.0**targets, intercept=intercept).spectrum_
    np.testing.assert_allclose(other.sigma, one.sigma * 10.0**features, rtol=1e-7)
    np.testing.assert_allclose(other.residual, one.residual * 10.0 ** (2 * targets), rtol=1e-8)


def test_numbers_whose_squares_overflow_are_named():
    H, T = problem(10.0)
    with pytest.raises(ValueError, match="overflow"):
        factored(H * 1e160, T)


@pytest.mark.parametrize("first", ["zero weight", "equal", "zero"])
def test_a_few_first_rows_that_tell_nothing_do_not_mislead(first):
    """Twice as many rows as features are looked at first: they may not count, or look singular."""
    H, T = problem(1e2)
    weight = np.ones(N)
    few = slice(0, 2 * M)
    if first == "zero weight":
        weight[few] = 0.0
    else:
        H[few] = H[0] if first == "equal" else 0.0
    model = factored(H, T, weight, intercept=True)
    assert model.route_ == ("gram" if first == "zero weight" else "refined")
    exact = Factor.of(H, T, sample_weight=weight, intercept=True).spectrum()
    np.testing.assert_allclose(model.spectrum_.sigma, exact.sigma, rtol=1e-10)


def test_rows_of_no_weight_change_nothing():
    H, T = problem(1e2)
    weight = np.where(np.arange(N) < 2 * BLOCK, 0.0, 1.0)
    spectrum = factored(H, T, weight, intercept=True).spectrum_
    exact = factored(H[2 * BLOCK :], T[2 * BLOCK :], intercept=True).spectrum_
    np.testing.assert_allclose(spectrum.sigma, exact.sigma, rtol=1e-10)
    np.testing.assert_allclose(spectrum.residual, exact.residual, rtol=1e-10)


def test_a_mean_far_from_the_first_rows_is_allowed_for():
    """The shift is the first block's mean: a drift away from it is rounding that the proof must count."""
    H, T = problem(2e4, signal=harmless_signal())
    drifting = H + np.where(np.arange(N) < BLOCK, 0.0, 1e6)[:, None] * np.abs(H).max()
    model = factored(drifting, T, intercept=True)
    assert model.route_ != "gram"
    sigma = np.linalg.svd(drifting - drifting.mean(axis=0), compute_uv=False)
    np.testing.assert_allclose(model.spectrum_.sigma[-1], sigma[-1], rtol=1e-5)


@pytest.mark.parametrize(("kappa", "route"), [(200, "gram"), (350, "refined")])
def test_what_the_mean_adds_to_the_sums_counts_as_rounding(kappa, route):
    """κ about the mean is 2·10⁴ and 3·10⁴, both below the limit; the sums about the first block's mean are larger."""
    H, T = problem(kappa, signal=harmless_signal())
    model = factored(H + np.where(np.arange(N) < BLOCK, 0.0, 1.0)[:, None], T, intercept=True)
    assert model.condition_number_ < PROVED_CONDITION
    assert model.route_ == route


def test_estimators_give_the_same_network_on_all_routes():
    X, y = smooth_problem(30_000, 6)
    models = [PinvRegressor(60, solver=solver, random_state=0).fit(X, y) for solver in ("auto", "gram", "qr")]
    assert models[0].condition_number_ < PROVED_CONDITION
    for one, other in itertools.pairwise(models):
        assert one.gamma_ == pytest.approx(other.gamma_, rel=1e-8)
        np.testing.assert_allclose(one.predict(X[:100]), other.predict(X[:100]), rtol=1e-8)
        gcv = [model.with_gamma("gcv").gamma_ for model in (one, other)]
        assert gcv[0] == pytest.approx(gcv[1], rel=1e-5)
    labels = np.digitize(y, [-0.5, 0.5])
    scores = [
        PinvClassifier(60, solver=solver, fit_intercept=True, random_state=0).fit(X, labels).decision_function(X[:100])
        for solver in ("gram", "qr")
    ]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-7, atol=1e-9)


def test_gram_alone_raises_where_it_cannot_prove_its_result():
    X, y = smooth_problem(30_000, 6)
    twins = np.column_stack([X, X[:, 0] + 1e-8 * y])
    with pytest.raises(ValueError, match=r"solver='gram' cannot promise.*solver='auto'"):
        TikhonovRegressor(solver="gram").fit(twins, y)
    model = TikhonovRegressor(solver="auto", gamma=1e-12).fit(twins, y)
    exact = TikhonovRegressor(solver="qr", gamma=1e-12).fit(twins, y)
    np.testing.assert_allclose(model.predict(twins), exact.predict(twins), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("beside", [0, 2, 5])
def test_products_are_the_same_with_and_without_room_beside_the_features(intercept, weighted, beside):
    rng = np.random.default_rng(0)
    blocks = [(rng.standard_normal((30, 4)), rng.standard_normal((30, 2)), rng.uniform(0, 2, 30)) for _ in range(3)]
    scratch = np.empty((40, 4 + beside))
    plain, shared = (GramSums.of((*blocks[0][:2], None), intercept=intercept) for _ in range(2))
    for H, T, weight in blocks:
        weight = weight if weighted else None
        plain = plain.add((H, T, weight))
        scratch[: len(H), :4] = H
        shared = shared.add((scratch[: len(H), :4], T, weight), scratch)
    for one, other in zip(plain.sums, shared.sums, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def fold_grams(n_folds, intercept, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.standard_normal((6, 3)), rng.standard_normal((6, 2)), None
    start = GramSums.of(first, intercept=intercept)  # all folds are about its shift
    parts = [(rng.standard_normal((4, 3)), rng.standard_normal((4, 2)), None) for _ in range(n_folds - 1)]
    empty = GramSums(None, start.counts.without_rows())
    return replace(ByFold.of_sums(empty, FoldPlan(n_folds)), summaries=(start, *map(empty.add, parts)))


@pytest.mark.parametrize("n_folds", [2, 3, 4, 7])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_complement_is_the_sum_of_the_others(n_folds, intercept):
    folds = fold_grams(n_folds, intercept)
    for v, complement in enumerate(folds.complements()):
        others = [sums for k, sums in enumerate(folds.summaries) if k != v]
        assert complement.counts.n_rows == sum(sums.counts.n_rows for sums in others)
        for ours, *each in zip(complement.sums, *(sums.sums for sums in others), strict=True):
            np.testing.assert_allclose(ours, np.sum(each, axis=0), rtol=1e-13, atol=1e-13)


def test_gram_alone_raises_for_more_folds_than_it_proves():
    X, y = smooth_problem(2_000, 6)
    with pytest.raises(ValueError, match="at most 20 folds, and there are 30"):
        TikhonovRegressor(rules.KFold(n_folds=30), solver="gram").fit(X, y)
    assert TikhonovRegressor(rules.KFold(n_folds=30)).fit(X, y).route_ == "reflections"
