"""The rules: their formulas, how they scale, the precision floor, and how they are named."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import random_problem, with_condition, with_spectrum

from ocrep import Factor, rules

EPS = np.finfo(float).eps
EVERY_RULE = [rules.resolve(name) for name in rules.names()]


def spectrum_of(H, T, **options):
    return Factor.of(H, T, **options).spectrum()


def test_ocrep_is_the_product_of_the_ends_of_the_spectrum():
    H, T = random_problem(40, 6)
    sigma = np.linalg.svd(H, compute_uv=False)
    choice = rules.OCReP().choose(spectrum_of(H, T))
    assert choice.gamma == pytest.approx(sigma[0] * sigma[-1], rel=1e-12)
    assert (choice.rule, choice.floored, choice.edge) == ("ocrep", False, None)


@pytest.mark.parametrize("rule", [rules.OCReP, rules.GCV])
def test_the_floor_holds_and_can_be_set_or_turned_off(rule):
    H = with_condition(1e12, n_columns=10)
    spectrum = spectrum_of(H, H @ np.ones(10))
    precise, set_by_hand, off = (rule(floor=f).choose(spectrum) for f in ("precision", 1e-3, 0.0))
    unit = spectrum.largest**2
    assert precise.gamma == pytest.approx(np.sqrt(EPS) * unit)
    assert set_by_hand.gamma == pytest.approx(1e-3 * unit)
    assert precise.floored
    assert set_by_hand.floored
    assert off.gamma < 1e-9 * unit
    assert not off.floored


def test_the_floor_leaves_none_and_a_given_gamma_alone():
    spectrum = spectrum_of(with_condition(1e12), np.ones(120))
    assert rules.resolve("none").choose(spectrum).gamma == 0.0
    assert rules.resolve(1e-30).choose(spectrum).gamma == 1e-30


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize("n_rows", [50, 12])
def test_gcv_minimises_the_formula_with_the_full_hat_matrix(intercept, n_targets, n_rows):
    H, T = random_problem(n_rows, 15, n_targets)
    T += 4 * np.random.default_rng(5).standard_normal(T.shape)
    choice = rules.GCV().choose(spectrum_of(H, T, intercept=intercept))
    C = np.eye(n_rows) - intercept / n_rows

    def formula(gamma):
        Hc, Tc = C @ H, C @ T
        A = Hc @ np.linalg.solve(Hc.T @ Hc + gamma * np.eye(15), Hc.T)
        return n_rows * np.linalg.norm(Tc - A @ Tc) ** 2 / (n_rows - intercept - np.trace(A)) ** 2

    for gamma, value in list(zip(choice.curve.gammas, choice.curve.criterion, strict=True))[::9]:
        if gamma > 1e-6 * choice.curve.gammas[-1]:
            assert value == pytest.approx(formula(gamma), rel=1e-6)
    assert choice.edge is None
    around = choice.gamma * np.array([0.5, 0.9, 0.99, 1.01, 1.1, 2.0])
    assert all(formula(choice.gamma) <= formula(g) for g in around)


def test_gcv_reports_when_the_optimum_sits_at_an_edge():
    rng = np.random.default_rng(0)
    H = rng.standard_normal((50, 5))
    noiseless = rules.GCV().choose(spectrum_of(H, H @ np.ones(5)))
    assert noiseless.edge == "low"
    U = np.linalg.svd(H)[0]
    unrelated = rules.GCV().choose(spectrum_of(H, U[:, 5]))
    assert unrelated.edge == "high"


@given(st.floats(-3, 3), st.integers(0, 5))
def test_gamma_scales_with_h_as_the_rule_declares(exponent, seed):
    c = 10.0**exponent
    H, T = random_problem(40, 6, seed=seed)
    T += 3 * np.random.default_rng(seed).standard_normal(T.shape)
    for rule in EVERY_RULE:
        plain, scaled = (rule.choose(spectrum_of(h, T)).gamma for h in (H, c * H))
        assert scaled == pytest.approx(plain * c**rule.degree, rel=1e-4)


@given(st.floats(-3, 3))
def test_scaling_h_leaves_ocrep_predictions_alone(exponent):
    c = 10.0**exponent
    H, T = random_problem(40, 6)
    plain, scaled = spectrum_of(H, T), spectrum_of(c * H, T)
    gammas = [rules.OCReP().choose(s).gamma for s in (plain, scaled)]
    assert gammas[1] == pytest.approx(c**2 * gammas[0], rel=1e-10)
    np.testing.assert_allclose(c * H @ scaled.weights(gammas[1]), H @ plain.weights(gammas[0]), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("rule", EVERY_RULE, ids=rules.names())
@pytest.mark.parametrize(
    "problem",
    [
        (with_spectrum([1.0, 0.5, 0.0, 0.0], 20), np.arange(20.0)),
        (np.ones((20, 4)), np.arange(20.0)),
        (np.eye(20)[:, :4], np.zeros(20)),
        (np.eye(6)[:3], np.arange(3.0)),
        (np.zeros((5, 2)), np.ones(5)),
        (np.ones((1, 3)), np.ones(1)),
    ],
    ids=["singular", "rank one", "zero target", "wide", "zero", "one row"],
)
@pytest.mark.parametrize("intercept", [False, True])
def test_gamma_and_weights_are_finite_on_degenerate_problems(rule, problem, intercept):
    spectrum = spectrum_of(*problem, intercept=intercept)
    gamma = rule.choose(spectrum).gamma
    assert np.isfinite(gamma)
    assert gamma >= 0
    assert np.isfinite(spectrum.weights(gamma)).all()


def test_a_scaled_target_leaves_gamma_alone():
    H, T = random_problem(40, 6)
    for rule in EVERY_RULE:
        a, b = (rule.choose(spectrum_of(H, t)).gamma for t in (T, 1e3 * T))
        assert b == pytest.approx(a, rel=1e-5)


def test_names_resolve_to_rules_and_rules_to_themselves():
    assert rules.names() == ["gcv", "none", "ocrep"]
    for name in rules.names():
        assert rules.resolve(name).name == name
    rule = rules.OCReP(floor=0.0)
    assert rules.resolve(rule) is rule
    assert rules.resolve(np.float32(0.5)) == rules.Fixed(0.5)


@pytest.mark.parametrize(
    ("gamma", "message"),
    [
        ("ocrp", "Did you mean 'ocrep'.*'gcv', 'none', 'ocrep'"),
        ("zzz", "Known: 'gcv', 'none', 'ocrep'"),
        (-1.0, "finite number ≥ 0"),
        (np.nan, "finite number ≥ 0"),
        (np.inf, "finite number ≥ 0"),
        (None, "Unknown gamma rule None"),
        (True, "Unknown gamma rule True"),
        (rules.OCReP, "rule object such as"),
    ],
)
def test_a_gamma_that_means_nothing_is_refused(gamma, message):
    with pytest.raises(ValueError, match=message):
        rules.resolve(gamma)


@pytest.mark.parametrize("floor", [-1.0, np.nan, np.inf, "none", None])
def test_a_bad_floor_is_refused(floor):
    with pytest.raises(ValueError, match="floor must be"):
        rules.OCReP(floor=floor)
