"""The paper's mathematics, as properties of arbitrary spectra."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import augmented_solution, random_problem, with_spectrum

from ocrep import Factor, rules

exponents = st.lists(st.floats(-6, 6), min_size=2, max_size=12)
factors_of_gamma = st.floats(-8, 8).map(lambda e: 10.0**e)


def spectrum_of(exponents_of_ten):
    sigma = np.sort(10.0 ** np.asarray(exponents_of_ten))[::-1]
    H = np.diag(sigma)
    return Factor.of(H, np.ones(len(sigma))).spectrum()


@given(exponents, factors_of_gamma)
def test_least_gain_sits_at_an_end_of_the_spectrum(e, beta):
    # Theorem 3.1: D_min is D₁ for γ < σ₁σ_p and D_p for γ > σ₁σ_p.
    spectrum = spectrum_of(e)
    gain = spectrum.gain(beta * spectrum.largest * spectrum.smallest)
    end = gain[0] if beta < 1 else gain[-1]
    np.testing.assert_allclose(gain.min(), end, rtol=1e-12)


@given(exponents, factors_of_gamma)
def test_ocrep_minimises_the_condition_number(e, beta):
    spectrum = spectrum_of(e)
    best = spectrum.largest * spectrum.smallest
    assert spectrum.condition(best) <= spectrum.condition(beta * best) * (1 + 1e-12)


@given(exponents, st.floats(0.01, 4), st.floats(0.01, 4))
def test_condition_falls_before_ocrep_and_rises_after_it(e, near, further):
    spectrum = spectrum_of(e)
    best = spectrum.largest * spectrum.smallest
    for sign in (-1, 1):
        close, far = best * 10.0 ** (sign * near), best * 10.0 ** (sign * (near + further))
        assert spectrum.condition(close) <= spectrum.condition(far) * (1 + 1e-12)


@given(exponents)
def test_ocrep_gives_both_ends_the_same_gain_and_keeps_its_bound(e):
    spectrum = spectrum_of(e)
    first, last = spectrum.largest, spectrum.smallest
    gain = spectrum.gain(first * last)
    np.testing.assert_allclose(gain[0], gain[-1], rtol=1e-12)
    assert spectrum.condition(first * last) <= (first + last) / (2 * np.sqrt(first * last)) * (1 + 1e-12)


@given(exponents)
def test_gain_peaks_at_the_square_root_of_gamma(e):
    spectrum = spectrum_of(e)
    middle = float(spectrum.sigma[spectrum.rank // 2])
    gain = spectrum.gain(middle**2)
    np.testing.assert_allclose(gain.max(), 1 / (2 * middle), rtol=1e-12)


@pytest.mark.parametrize("gamma", [0.0, 1e-9, 0.3, 1e5])
@pytest.mark.parametrize("intercept", [False, True])
def test_quantities_equal_their_definitions(gamma, intercept):
    H, T = random_problem(40, 7, n_targets=3)
    spectrum = Factor.of(H, T, intercept=intercept).spectrum()
    Hc, Tc = (H - H.mean(0), T - T.mean(0)) if intercept else (H, T)
    A = Hc @ np.linalg.solve(Hc.T @ Hc + gamma * np.eye(7), Hc.T)
    W = augmented_solution(Hc, Tc, gamma)
    np.testing.assert_allclose(spectrum.weights(gamma), W, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(spectrum.norm(gamma), np.linalg.norm(W), rtol=1e-9)
    np.testing.assert_allclose(spectrum.dof(gamma), np.trace(A), rtol=1e-9)
    np.testing.assert_allclose(spectrum.residual_dof(gamma), 40 - np.trace(A) - intercept, rtol=1e-9)
    np.testing.assert_allclose(spectrum.rss_by_target(gamma), ((Tc - A @ Tc) ** 2).sum(0), rtol=1e-9)
    np.testing.assert_allclose(spectrum.rss(gamma), ((Tc - A @ Tc) ** 2).sum(), rtol=1e-9)
    H_reg = np.linalg.pinv(np.vstack([Hc, np.sqrt(gamma) * np.eye(7)]))[:, :40]
    np.testing.assert_allclose(spectrum.condition(gamma), np.linalg.cond(H_reg), rtol=1e-9)
    np.testing.assert_allclose(
        spectrum.intercept(gamma), T.mean(0) - H.mean(0) @ W if intercept else 0.0, rtol=1e-9, atol=1e-14
    )


def test_an_array_of_gammas_gives_one_result_each():
    H, T = random_problem(30, 5, n_targets=2)
    spectrum = Factor.of(H, T, intercept=True).spectrum()
    gammas = np.array([0.0, 0.1, 10.0])
    for name in (
        "gain",
        "filter",
        "shrinkage",
        "dof",
        "residual_dof",
        "rss_by_target",
        "rss",
        "norm",
        "condition",
        "weights",
        "intercept",
    ):
        method = getattr(spectrum, name)
        np.testing.assert_allclose(method(gammas), np.stack([method(g) for g in gammas]), err_msg=name)


def test_limits_of_gamma():
    H, T = random_problem(30, 5)
    spectrum = Factor.of(H, T).spectrum()
    np.testing.assert_allclose(spectrum.weights(1e-14), np.linalg.lstsq(H, T)[0], rtol=1e-10)
    # γ → ∞: W → HᵀT/γ → 0.
    np.testing.assert_allclose(spectrum.weights(1e14), H.T @ T / 1e14, rtol=1e-10)
    assert spectrum.dof(0.0) == pytest.approx(5)
    assert spectrum.dof(1e14) < 1e-10


def test_small_shrinkage_keeps_its_digits():
    # 1 − filter would be 0 here.
    spectrum = Factor.of(np.diag([1.0, 0.5]), np.ones(2)).spectrum()
    np.testing.assert_allclose(spectrum.shrinkage(1e-20), [1e-20, 4e-20], rtol=1e-14)


def test_scaling_down_to_the_end_of_float64_changes_nothing():
    H, T = random_problem(20, 4)
    plain, tiny = Factor.of(H, T).spectrum(), Factor.of(1e-200 * H, T).spectrum()
    np.testing.assert_allclose(tiny.weights(0.0) * 1e-200, plain.weights(0.0), rtol=1e-12)


def test_directions_below_the_tolerance_are_left_out():
    H = with_spectrum([1.0, 1e-3, 1e-18, 0.0], 30)
    spectrum = Factor.of(H, np.arange(30.0)).spectrum()
    assert spectrum.rank == 2
    assert spectrum.singular_values.shape == (4,)
    assert spectrum.condition() == pytest.approx(1e3)
    np.testing.assert_allclose(spectrum.weights(0.0)[:, 0], np.linalg.pinv(H, rcond=1e-10) @ np.arange(30.0), rtol=1e-9)


def test_the_repr_is_short():
    assert repr(Factor.of(np.eye(3), np.ones(3)).spectrum()) == (
        "Spectrum(rank=3, n=3, n_targets=1, largest=1, smallest=1, intercept_fitted=False)"
    )


def test_a_zero_matrix_has_rank_zero_and_zero_weights():
    spectrum = Factor.of(np.zeros((5, 3)), np.ones(5), intercept=True).spectrum()
    assert spectrum.rank == 0
    assert np.isnan(spectrum.condition())
    np.testing.assert_array_equal(spectrum.weights(1.0), np.zeros((3, 1)))
    np.testing.assert_array_equal(spectrum.intercept(1.0), [1.0])
    for name in ("ocrep", "gcv", "none"):
        assert rules.resolve(name).choose(spectrum).gamma == 0.0
