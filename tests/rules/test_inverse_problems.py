"""The rules from the theory of inverse problems, against their definitions by finite differences."""

import numpy as np
import pytest
from support.problems import with_condition

from ocrep import Factor, rules


@pytest.fixture(scope="module")
def deconvolution():
    """A smoothing kernel, a smooth truth, and noise: singular values fall fast, the noise does not."""
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 60)
    H = np.exp(-((x[:, None] - x) ** 2) / (2 * 0.05**2))
    truth = np.sin(2 * np.pi * x) + 0.5 * x
    noise = 0.01
    T = H @ truth + noise * rng.standard_normal(60)
    return H, T, truth, noise


def curvature(spectrum, gamma, step=1e-3):
    t = np.log(gamma) + step * np.arange(-2, 3)
    x = 0.5 * np.log(spectrum.rss(np.exp(t)))
    y = np.log(spectrum.norm(np.exp(t)))
    first, second = np.array([1, -8, 0, 8, -1]) / (12 * step), np.array([-1, 16, -30, 16, -1]) / (12 * step**2)
    x1, y1, x2, y2 = first @ x, first @ y, second @ x, second @ y
    return (x1 * y2 - x2 * y1) / (x1**2 + y1**2) ** 1.5


def test_the_curvature_equals_finite_differences(deconvolution):
    H, T, _, _ = deconvolution
    spectrum = Factor.of(H, T).spectrum()
    gammas = spectrum.largest**2 * np.logspace(-8, 1, 10)
    analytic = -rules.LCurve().criterion(spectrum, gammas)
    np.testing.assert_allclose(analytic, [curvature(spectrum, g) for g in gammas], rtol=1e-4, atol=1e-6)


def test_quasi_optimality_minimises_the_change_of_the_weights(deconvolution):
    H, T, _, _ = deconvolution
    spectrum = Factor.of(H, T).spectrum()
    choice = rules.QuasiOptimality().choose(spectrum)

    def change(gamma, step=1e-4):
        apart = spectrum.weights(gamma * np.exp(step)) - spectrum.weights(gamma * np.exp(-step))
        return np.linalg.norm(apart / (2 * step)) ** 2

    for gamma, value in list(zip(choice.curve.gammas, choice.curve.criterion, strict=True))[::10]:
        assert value == pytest.approx(change(gamma), rel=1e-4)
    low, high = choice.curve.gammas[[0, -1]]
    assert low == pytest.approx(max(spectrum.smallest**2, np.sqrt(np.finfo(float).eps) * spectrum.largest**2))
    assert high == pytest.approx(spectrum.largest**2)
    near = np.clip([0.8 * choice.gamma, 1.25 * choice.gamma], low, high)
    assert change(choice.gamma) <= min(change(g) for g in near) * (1 + 1e-6)


def test_the_discrepancy_principle_leaves_a_residual_of_the_size_of_the_noise(deconvolution):
    H, T, _, noise = deconvolution
    spectrum = Factor.of(H, T).spectrum()
    choice = rules.Discrepancy(noise=noise).choose(spectrum)
    assert choice.edge is None
    assert spectrum.rss(choice.gamma) == pytest.approx(60 * noise**2, rel=1e-9)
    twice = Factor.of(H, np.column_stack([T, T])).spectrum()
    assert rules.Discrepancy(noise=noise).choose(twice).gamma == pytest.approx(choice.gamma, rel=1e-6)


@pytest.mark.parametrize(("noise", "edge"), [(0.0, "low"), (1e6, "high")])
def test_an_impossible_noise_is_reported_as_an_edge(deconvolution, noise, edge):
    H, T, _, _ = deconvolution
    assert rules.Discrepancy(noise=noise).choose(Factor.of(H, T).spectrum()).edge == edge


@pytest.mark.parametrize(
    "rule", [rules.LCurve(), rules.GCV(), rules.Discrepancy(noise=0.01), rules.MarginalLikelihood()]
)
def test_an_ill_posed_problem_is_solved(deconvolution, rule):
    H, T, truth, _ = deconvolution
    spectrum = Factor.of(H, T).spectrum()
    estimate = spectrum.weights(rule.choose(spectrum).gamma)[:, 0]
    naive = spectrum.weights(0.0)[:, 0]
    error = np.linalg.norm(estimate - truth) / np.linalg.norm(truth)
    assert error < 0.35
    assert error < 1e-3 * np.linalg.norm(naive - truth) / np.linalg.norm(truth)


def test_a_target_of_zeros_does_not_count():
    H = with_condition(1e3, 40, 6)
    T = H @ np.ones((6, 1)) + 0.1 * np.random.default_rng(0).standard_normal((40, 1))
    for rule in (rules.AIC(), rules.MarginalLikelihood()):
        alone, padded = (Factor.of(H, t).spectrum() for t in (T, np.hstack([T, 0 * T])))
        gammas = np.array([1e-4, 1e-2])
        np.testing.assert_allclose(rule.criterion(padded, gammas), rule.criterion(alone, gammas))


def test_information_criteria_equal_their_formulas():
    H = with_condition(1e3, 40, 6)
    rng = np.random.default_rng(0)
    T = H @ np.ones((6, 2)) + 0.1 * rng.standard_normal((40, 2))
    for intercept in (False, True):
        spectrum = Factor.of(H, T, intercept=intercept).spectrum()
        gamma = np.array([1e-4, 1e-2])
        fit = 40 * np.mean(np.log(spectrum.rss_by_target(gamma)), axis=1)
        k = spectrum.dof(gamma) + intercept
        np.testing.assert_allclose(rules.AIC().criterion(spectrum, gamma), fit + 2 * k)
        np.testing.assert_allclose(rules.BIC().criterion(spectrum, gamma), fit + np.log(40) * k)
        np.testing.assert_allclose(rules.AICc().criterion(spectrum, gamma), fit + 2 * (k + 1) * 40 / (40 - k - 2))
        s2 = spectrum.residual / (40 - 6 - 1)
        mallows = np.mean(spectrum.rss_by_target(gamma) / s2, axis=1) + 2 * spectrum.dof(gamma)
        np.testing.assert_allclose(rules.Mallows().criterion(spectrum, gamma), mallows)
